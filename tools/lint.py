#!/usr/bin/env python3
"""Run the static checks in parallel, print what failed, and end with a summary.

`lint.py NAME ...` runs some of them. Checks that need a build are absent without one.
"""
import concurrent.futures
import os
import pathlib
import subprocess
import sys
import time

from sources import ROOT

PYTHON = sys.executable
TOOLS = pathlib.Path(PYTHON).parent  # of the environment; not resolved, since python is a link
MODULE = "build/release/python/tenon"
PYTHON_FOLDERS = ["python", "tools", "bench", "tests", "examples"]

# Name, command, what must exist for it to run. The slowest come first.
CHECKS = [
    ("pyright", [TOOLS / "pyright"], "tests/typing"),
    ("mypy", [PYTHON, "-m", "mypy"], "python/tenon"),
    ("stubs", [PYTHON, "tools/check_stubs.py"], f"{MODULE}/_core.pyi"),
    ("format", [PYTHON, "tools/format.py", "--check"], "src"),
    ("sizes", [PYTHON, "tools/check_sizes.py"], "src"),
    ("names", [PYTHON, "tools/check_names.py"], "src"),
    ("purposes", [PYTHON, "tools/where.py", "--check"], "src"),
    ("layers", [PYTHON, "tools/check_layers.py"], "src"),
    ("op table", [PYTHON, "tools/collect_ops.py", "--check"], "src/ops"),
    ("ruff", [TOOLS / "ruff", "check", *PYTHON_FOLDERS], "python/tenon"),
]


def run(name, command, needed):
    """(name, verdict, seconds, output) of one check."""
    if not (ROOT / needed).exists():
        return name, "absent", 0.0, f"{needed} does not exist"
    began = time.monotonic()
    done = subprocess.run(command, cwd=ROOT, capture_output=True, text=True)
    verdict = "FAILED" if done.returncode else "passed"
    return name, verdict, time.monotonic() - began, done.stdout + done.stderr


def main():
    chosen = sys.argv[1:]
    unknown = set(chosen) - {name for name, _, _ in CHECKS}
    if unknown:
        sys.exit(f"lint: no check is called {', '.join(sorted(unknown))}")
    checks = [check for check in CHECKS if not chosen or check[0] in chosen]
    with concurrent.futures.ThreadPoolExecutor(os.cpu_count()) as pool:
        results = list(pool.map(lambda check: run(*check), checks))
    for name, verdict, _, output in results:
        if verdict == "FAILED":
            print(f"== {name}\n{output.rstrip()}\n")
    for name, verdict, seconds, _ in results:
        print(f"{name:<20}{verdict:>8}{seconds:>9.1f} s")
    sys.exit(any(verdict == "FAILED" for _, verdict, _, _ in results))


if __name__ == "__main__":
    main()
