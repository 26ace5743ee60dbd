"""python -m tenon.visualize: timelines of traces, as pictures (.png, .svg) or a page (.html)."""

from __future__ import annotations

import argparse
import sys
from pathlib import Path

from .. import _core
from ..watching import log_reader, timeline_drawing
from ..watching.recording import Recording
from ..watching.recording_summary import gain, summary_of
from ..watching.timeline_page import page

SUFFIXES = (".png", ".svg", ".html")


def main(arguments: list[str] | None = None) -> int:
    """Returns the exit status."""
    parser = argparse.ArgumentParser(prog="python -m tenon.visualize", description=__doc__)
    parser.add_argument("traces", nargs="*", type=Path, help="logs of tenon.trace, or instruction "
                        "logs; several are drawn over the same time")
    parser.add_argument("--compare", nargs=2, type=Path, metavar=("BEFORE", "AFTER"),
                        help="draws two, and says what changed")
    parser.add_argument("--output", type=Path, default=Path("timeline.png"),
                        help="a name that ends in .png, .svg or .html (timeline.png)")
    given = parser.parse_args(arguments)
    paths = [*given.traces, *(given.compare or [])]
    if not paths:
        parser.error("no traces: python -m tenon.trace makes them")
    if given.output.suffix.lower() not in SUFFIXES:
        parser.error(f"--output ends in {', '.join(SUFFIXES)}, not {given.output.name}")
    try:
        recordings = [log_reader.read(path) for path in paths]
        shown = [] if given.compare else log_reader.joined(recordings)
        if len(shown) in (0, len(recordings)):
            shown = _with_titles(recordings, paths)
        given.output.write_bytes(_drawn(shown, given.output.suffix))
    except OSError as error:
        print(f"tenon.visualize: {error.filename}: {error.strerror}", file=sys.stderr)
        return 2
    except (UnicodeDecodeError, _core.InvalidValue) as error:
        # The file and its line are in the first line; the others are places of this program.
        print(f"tenon.visualize: {str(error).splitlines()[0]}", file=sys.stderr)
        return 2
    if given.compare:
        print(comparison(*recordings[-2:]))
    print(f"tenon.visualize: {given.output}", file=sys.stderr)
    return 0


def _drawn(recordings: list[Recording], suffix: str) -> bytes:
    if suffix.lower() == ".png":
        return timeline_drawing.png(*recordings)
    text = timeline_drawing.svg(*recordings) if suffix.lower() == ".svg" else page(recordings)
    return text.encode()


def _with_titles(recordings: list[Recording], paths: list[Path]) -> list[Recording]:
    """Names of folders too, where names of files are not enough: before/trace_1, after/trace_2."""
    folders = len({path.resolve().parent for path in paths}) > 1
    return [r._replace(title=f"{p.resolve().parent.name}/{p.stem}" if folders else p.stem)
            for r, p in zip(recordings, paths)]


def comparison(before: Recording, after: Recording) -> str:
    """A table of the figures of both."""
    first, second = summary_of(before).rows(), summary_of(after).rows()
    both = ((name, first[name], second.get(name, "-")) for name in first)
    rows = [("", "before", "after"), *both]
    lines = [f"{name:<13} {one:>12} {two:>12}" for name, one, two in rows]
    return "\n".join(filter(None, [*lines, gain(before, after)]))


if __name__ == "__main__":
    raise SystemExit(main())
