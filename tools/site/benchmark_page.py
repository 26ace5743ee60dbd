"""The page of benchmarks, from what `make bench` wrote."""
import json
import pathlib
import sys

ROOT = pathlib.Path(__file__).resolve().parents[2]
sys.path.insert(0, str(ROOT / "bench"))
import report  # noqa: E402

ABSENT = """# Benchmarks

There are no results in this build of the site. Measure them, then build the site again:

```console
$ make bench PEERS=1
$ make docs
```

`make bench` runs the workloads of `bench/workloads` in every library that is installed. Each
library has a process of its own, and they take turns, so a ratio inside one run is meaningful.
`PEERS=1` installs PyTorch, JAX and ONNX Runtime into an environment of their own.
[Contributing](CONTRIBUTING.md#recipe-measure) says how to add a workload.
"""

PRESENT = """# Benchmarks

Measured by `make bench` on {cpu}, {threads} threads, with Tenon {tenon}. Libraries take turns in
processes of their own, so ratios are comparable within this table. Times are medians in
milliseconds. *Spread* is the distance between the quartiles of Tenon's times. *Of limit* is the
share of what the machine can do at all. *First call* includes compilation.
"""


def page(results):
    """The text of the page."""
    if not results.exists():
        return ABSENT
    found = json.loads(results.read_text())
    rows, figures, machine = found["rows"], found["figures"], found["machine"]
    parts = [PRESENT.format(**machine)]
    if rows:
        chart = report.chart(rows, machine)
        parts += ["## Against the fastest peer\n", f'<div class="chart">\n{chart}</div>\n',
                  "## Workloads\n", workloads(rows)]
    if figures:
        parts += ["## Parts of the library\n", parts_of_library(figures)]
    return "\n".join(parts)


def table(heads, lines):
    """A Markdown table whose numbers are aligned to the right."""
    rule = ["---"] + ["--:"] * (len(heads) - 1)
    return "\n".join("| " + " | ".join(cells) + " |" for cells in [heads, rule, *lines]) + "\n"


def workloads(rows):
    peers = [peer for peer in report.libraries.RIVALS if any(peer in row["peers"] for row in rows)]
    lines = []
    for row in rows:
        ratio, share = row["speedup_over_best_peer"], row["share_of_limit"]
        lines.append([
            row["title"], report.ms_text(row["tenon_ms"]), report.spread_text(row),
            *(report.ms_text(row["peers"].get(peer)) for peer in peers),
            f"{ratio:.2f}x" if ratio else "", f"{share:.0%}" if share else "",
            report.ms_text(row["first_call_ms"])])
    return table(["workload", "tenon", "spread", *peers, "ratio", "of limit", "first call"], lines)


def parts_of_library(figures):
    lines = [[row["name"], amount(row["ours"], row["unit"]), amount(row["theirs"], row["unit"]),
              row["rival"], f"{row['ratio']:.2f}x" if row["ratio"] else "", row["goal"]]
             for row in figures]
    return table(["figure", "tenon", "rival", "", "ratio", "goal"], lines)


def amount(value, unit):
    if value is None:
        return ""
    return f"{report.ms_text(1e3 * value)} ms" if unit == "s" else f"{value:.0f} {unit}".rstrip()
