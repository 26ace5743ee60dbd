"""Shared by the examples: terminal colours and sparklines, command-line options, output folder."""

from __future__ import annotations

import argparse
import os
import sys
from collections.abc import Sequence
from pathlib import Path

BARS = "▁▂▃▄▅▆▇█"


class Style:
    """Coloured text on a terminal, plain text elsewhere."""

    def __init__(self) -> None:
        wanted = sys.stdout.isatty() and not os.environ.get("NO_COLOR")
        self.on = wanted and os.environ.get("TERM") != "dumb"

    def __call__(self, code: str, text: str) -> str:
        return f"\033[{code}m{text}\033[0m" if self.on else text

    def title(self, text: str) -> str:
        return self("1;36", text)

    def strong(self, text: str) -> str:
        return self("1", text)

    def code(self, text: str) -> str:
        return self("32", text)

    def faint(self, text: str) -> str:
        return self("2", text)

    def bad(self, text: str) -> str:
        return self("31", text)


def sparkline(values: Sequence[float], width: int = 24) -> str:
    """`values` as a row of bars: averages over equal parts, scaled between minimum and maximum."""
    width = min(width, len(values))
    edges = [round(i * len(values) / width) for i in range(width + 1)]
    means = [sum(values[a:b]) / (b - a) for a, b in zip(edges, edges[1:])]
    low, high = min(means), max(means)
    scale = (len(BARS) - 1) / (high - low) if high > low else 0
    return "".join(BARS[round((mean - low) * scale)] for mean in means)


def options(
    about: str, usual: int, quick: int, given: Sequence[str] | None, **flags: str
) -> argparse.Namespace:
    """The command-line options: `--steps N` or `--quick`, and `flags`, each with its help text."""
    parser = argparse.ArgumentParser(description=about.splitlines()[0])
    parser.add_argument("--steps", type=int, default=usual, help=f"training steps ({usual})")
    parser.add_argument("--quick", action="store_true", help=f"train for {quick} steps")
    for name, text in flags.items():
        parser.add_argument(f"--{name}", action="store_true", help=text)
    chosen = parser.parse_args(given)
    chosen.steps = quick if chosen.quick else chosen.steps
    return chosen


def output_folder() -> Path:
    """The output folder of the examples, below the build tree; created if missing."""
    folder = Path(__file__).resolve().parent.parent / "build" / "examples"
    folder.mkdir(parents=True, exist_ok=True)
    return folder
