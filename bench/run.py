"""Measures what the project promises, beside its rivals in the same run.

    make bench                      every workload; PEERS=1 with PyTorch, JAX and ONNX Runtime
    make bench ONLY="gelu mlp"      some of them
    make bench ONLY=reductions      a section of uncompiled figures beside NumPy: elementwise,
                                    reductions, random, fft, linalg, products, conv, calls,
                                    transforms, training, compile, executables,
                                    files, models, import, watching, cpp
    bench/run.py --quick            tiny sizes: tests the program, not the library

The table stands on the terminal, in bench/results/latest.json and, as a chart, in
bench/results/latest.svg.
"""

from __future__ import annotations

import argparse
import os
import pathlib
import sys
import time

import libraries
import measure
import report
import rig
import sections
from workloads import WORKLOADS


def workload_rows(names: list[str], options: rig.Options) -> list[dict]:
    progress, rows = report.Progress(len(names)), []
    for name in names:
        try:
            rows.append(rig.measure(WORKLOADS[name], options, progress.tell))
            progress.finish(rows[-1])
        except rig.RivalFailed as error:
            progress.close()
            print(f"bench: {error}", file=sys.stderr)
    progress.close()
    return rows


def usable_cores() -> int:
    return len(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else os.cpu_count() or 1


def arguments() -> argparse.Namespace:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("names", nargs="*", metavar="NAME",
                        help=" ".join([*WORKLOADS, *sections.SECTIONS]))
    parser.add_argument("--threads", type=int, default=usable_cores(), help="of every rival")
    parser.add_argument("--quick", action="store_true", help="tiny sizes, to test the program")
    parser.add_argument("--warm", action="store_true",
                        help="no first calls with nothing compiled before: they take minutes")
    parser.add_argument("--peers-python", help="the interpreter that has the other libraries")
    others = [rival for rival in libraries.RIVALS if rival != "tenon"]
    parser.add_argument("--rivals", nargs="*", choices=others,
                        help="beside tenon; default: all that are installed")
    parser.add_argument("--rounds", type=int, help="turns of every rival")
    parser.add_argument("--limits", type=pathlib.Path, help="the program tenon_limits")
    parser.add_argument("--results", type=pathlib.Path, default=rig.HERE / "results",
                        help="the folder of latest.json and latest.svg")
    given = parser.parse_args()
    unknown = set(given.names) - set(WORKLOADS) - set(sections.SECTIONS)
    if unknown:
        parser.error(f"unknown names: {', '.join(sorted(unknown))}; "
                     f"known: {', '.join([*WORKLOADS, *sections.SECTIONS])}")
    return given


def options_of(given: argparse.Namespace) -> rig.Options:
    chosen = {name: getattr(given, name)
              for name in ("rounds", "limits", "peers_python") if getattr(given, name)}
    quick = {"quick": True, "rounds": 2, "turn": 0.02} if given.quick else {}
    quick["cold"] = not (given.quick or given.warm)
    if given.rivals is not None:
        chosen["rivals"] = ("tenon", *given.rivals)
    return rig.Options(given.threads, **(quick | chosen))


def main() -> None:
    given, began = arguments(), time.perf_counter()
    names = given.names or list(WORKLOADS)
    machine = measure.machine() | {"threads": given.threads}
    chosen = [name for name in WORKLOADS if name in names]
    rows = workload_rows(chosen, options_of(given))
    notes = []
    if rows:
        print(report.table(rows))
        notes += report.remarks(rows)
    figures = sections.run([name for name in sections.SECTIONS if name in names], given.quick)
    if figures:
        print(sections.table(figures))
        notes += [f"missed: {row.name}" for row in figures if row.met is False]
    report.write(given.results, rows, [row.facts() for row in figures], machine)
    facts = ", ".join(f"{key} {value}" for key, value in machine.items())
    print(f"\n{facts}; {time.perf_counter() - began:.0f} s")
    print("\n".join(notes) or "all goals met")
    missed = any(row.must_be_met and row.met is False for row in figures)
    sys.exit(len(rows) < len(chosen) or missed or any("results" in note for note in notes))


if __name__ == "__main__":
    main()
