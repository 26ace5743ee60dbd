"""The rows of the workloads as a table, a chart and JSON."""

from __future__ import annotations

import json
import math
import pathlib
import sys
from html import escape

import libraries


class Progress:
    """A bar on a terminal; a line per workload elsewhere."""

    def __init__(self, total: int) -> None:
        self.total, self.done, self.live = total, 0, sys.stderr.isatty()

    def tell(self, text: str) -> None:
        if self.live:
            width = 24
            full = width * self.done // max(1, self.total)
            bar = "#" * full + "." * (width - full)
            print(f"\r\033[K[{bar}] {self.done}/{self.total} {text}", end="", file=sys.stderr,
                  flush=True)

    def finish(self, row: dict) -> None:
        self.done += 1
        if not self.live:
            print(f"bench: {self.done}/{self.total} {row['name']}: {ms_text(row['tenon_ms'])} ms",
                  file=sys.stderr, flush=True)

    def close(self) -> None:
        if self.live:
            print("\r\033[K", end="", file=sys.stderr, flush=True)


def ms_text(value: float | None) -> str:
    """Three digits."""
    if value is None:
        return "-"
    if value >= 100:
        return f"{value:.0f}"
    return f"{value:#.3g}" if value >= 0.1 else f"{value:.2g}"


def spread_text(row: dict) -> str:
    low, high = row["quartiles_ms"]["tenon"]
    return f"{100 * (high - low) / row['tenon_ms']:.0f}%"


def table(rows: list[dict]) -> str:
    """Milliseconds; `spread` is the distance of the quartiles of Tenon's times."""
    peers = [rival for rival in libraries.RIVALS if any(rival in row["peers"] for row in rows)]
    heads = ["tenon", "spread", *peers, "ratio", "of limit", "first call"]
    lines = []
    for row in rows:
        ratio, share = row["speedup_over_best_peer"], row["share_of_limit"]
        lines.append([
            ms_text(row["tenon_ms"]), spread_text(row),
            *(ms_text(row["peers"].get(peer)) for peer in peers),
            f"{ratio:.2f}x" if ratio else "-", f"{share:.0%}" if share else "-",
            ms_text(row["first_call_ms"]),
        ])
    widths = [max(map(len, column)) for column in zip(heads, *lines)]
    left = max(len(row["title"]) for row in rows)
    text = [" " * left + "".join(f"  {head:>{w}}" for head, w in zip(heads, widths)) + "  met"]
    for row, line in zip(rows, lines):
        cells = "".join(f"  {cell:>{w}}" for cell, w in zip(line, widths))
        met = {True: "yes", False: "NO", None: ""}[row["met"]]
        text.append(f"{row['title']:<{left}}{cells}  {met}".rstrip())
    return "\n".join(text)


def remarks(rows: list[dict]) -> list[str]:
    """What was missed, and what could not be measured."""
    missed = [f"missed: {row['name']}: {part}" for row in rows
              for part, met in row["goal"].items() if not met]
    absent = [f"absent: {row['name']}: {rival}: {note}" for row in rows
              for rival, note in row["notes"].items() if not note.startswith("results")]
    return missed + absent


def write(folder: pathlib.Path, rows: list[dict], figures: list[dict],
          machine: dict[str, object]) -> None:
    """`latest.json` and, where workloads ran, `latest.svg`."""
    folder.mkdir(parents=True, exist_ok=True)
    listed = json.dumps({"machine": machine, "rows": rows, "figures": figures}, indent=1)
    (folder / "latest.json").write_text(listed + "\n")
    if rows:
        (folder / "latest.svg").write_text(chart(rows, machine))


BAR, GAP, LEFT, WIDTH, RIGHT, TOP = 18, 12, 290, 520, 210, 64
BETTER, WORSE, INK, FAINT = "#2a7f62", "#b5523b", "#222", "#999"
TICKS = (0.01, 0.02, 0.05, 0.1, 0.2, 0.5, 1, 2, 5, 10, 20, 50)


def chart(rows: list[dict], machine: dict[str, object]) -> str:
    """Bars of the speed-up over the best peer, on a logarithmic scale from 1."""
    rows = [row for row in rows if row["speedup_over_best_peer"]]
    ratios = [row["speedup_over_best_peer"] for row in rows] or [1.0]
    low, high = min(0.5, *ratios) / 1.15, max(2.0, *ratios) * 1.15

    def x(ratio: float) -> float:
        return LEFT + WIDTH * math.log(ratio / low) / math.log(high / low)

    height = TOP + len(rows) * (BAR + GAP) + 36
    parts = [text(16, 26, "Times as fast as the fastest peer", INK, size=16, weight="bold"),
             text(16, 46, f"{machine['cpu']}, {machine['threads']} threads, float32; "
                          "logarithmic scale, medians of interleaved runs", FAINT, size=12)]
    bottom = height - 30
    for tick in TICKS:
        if low <= tick <= high:
            stroke = INK if tick == 1 else "#ddd"
            parts.append(f'<line x1="{x(tick):.1f}" y1="{TOP - 6}" x2="{x(tick):.1f}" '
                         f'y2="{bottom}" stroke="{stroke}"/>')
            parts.append(text(x(tick), bottom + 16, f"{tick:g}x", FAINT, "middle"))
    for i, row in enumerate(rows):
        parts += bar(row, TOP + i * (BAR + GAP), x)
    width = LEFT + WIDTH + RIGHT
    return (f'<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 {width} {height}" '
            f'width="{width}" height="{height}" font-family="sans-serif">\n'
            '<rect width="100%" height="100%" fill="white"/>\n' + "\n".join(parts) + "\n</svg>\n")


def bar(row: dict, y: float, x) -> list[str]:
    ratio = row["speedup_over_best_peer"]
    begin, end = sorted((x(1.0), x(ratio)))
    colour = BETTER if ratio >= 1 else WORSE
    middle = y + BAR - 5
    label = f"{ratio:.2f}x {row['best_peer']} ({ms_text(row['tenon_ms'])} ms)"
    return [text(LEFT - 12, middle, row["title"], INK, "end"),
            f'<rect x="{begin:.1f}" y="{y}" width="{max(1.0, end - begin):.1f}" height="{BAR}" '
            f'fill="{colour}"/>',
            text(max(end, x(1.0)) + 6, middle, label, INK)]


def text(x: float, y: float, content: str, colour: str, anchor: str = "start", size: int = 13,
         weight: str = "normal") -> str:
    return (f'<text x="{x:.1f}" y="{y:.1f}" fill="{colour}" text-anchor="{anchor}" '
            f'font-size="{size}" font-weight="{weight}" '
            f'paint-order="stroke" stroke="white" stroke-width="3">{escape(content)}</text>')
