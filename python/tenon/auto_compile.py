"""Hot paths: what a program computes again and again is compiled by itself."""

from __future__ import annotations

from html import escape

from . import _core
from .explanation.units import time_text


class set_auto_compile:
    """Compiles what is computed `threshold` times, in the background; `False` stops that.

    A sequence of ops counts each time it is computed. When it is hot, one thread compiles it while
    the interpreter goes on; then both are measured, and the faster one stays. Results keep their
    bits. `tn.hot_paths()` tells what happened, `TENON_DEBUG_COMPILE=1` while it does.

    As a statement it lasts, in a `with` statement until its end. `TENON_AUTO_COMPILE=1` in the
    environment does it from the start, after `TENON_HOTPATH_THRESHOLD` (10) runs;
    `TENON_COMPILE=1` compiles everything before its first run.

        >>> with tn.set_auto_compile(True, threshold=3):
        ...     for _ in range(4):
        ...         total = tn.sum(tn.exp(tn.ones(4))).item()
        >>> max(path.count for path in tn.hot_paths() if path.sequence.endswith("exp -> sum"))
        4
    """

    def __init__(self, enabled: bool = True, threshold: int = 10) -> None:
        if not isinstance(enabled, int) or enabled not in (0, 1):
            _core._fail("type", f"set_auto_compile: enabled is True or False, not {enabled!r}")
        if isinstance(threshold, bool) or not isinstance(threshold, int):
            _core._fail("type", f"set_auto_compile: threshold is a number of runs: {threshold!r}")
        self._said = f"set_auto_compile({bool(enabled)}, threshold={threshold})"
        self._before = _core._set_hot_path_policy(1 if enabled else 0, threshold)

    def __repr__(self) -> str:
        return self._said

    def __enter__(self) -> set_auto_compile:
        return self

    def __exit__(self, *_: object) -> None:
        _core._set_hot_path_policy(*self._before)


_HEADS = ("hash", "sequence", "runs", "status", "interpreted", "compiled", "speed-up", "compiling",
          "signal", "reason")
_NUMBERS = (2, 4, 5, 6, 7)  # columns that end in line


def _time(milliseconds: float) -> str:
    return time_text(milliseconds / 1e3) if milliseconds else "-"


def _row(path: _core.HotPath) -> tuple[str, ...]:
    speedup = f"{path.speedup:.1f}x" if path.speedup else "-"
    return (path.hash, path.sequence, str(path.count), path.status, _time(path.interpreted_ms),
            _time(path.compiled_ms), speedup, _time(path.compile_ms), path.region, path.reason)


class HotPaths(list[_core.HotPath]):
    """Sequences of ops, the most frequent first. Prints as a table, in notebooks too."""

    def __str__(self) -> str:
        if not self:
            return "no hot paths"
        rows = [_HEADS, *map(_row, self)]
        widths = [max(map(len, column)) for column in zip(*rows)]
        lines = []
        for row in rows:
            cells = [
                cell.rjust(width) if i in _NUMBERS else cell.ljust(width)
                for i, (cell, width) in enumerate(zip(row, widths))
            ]
            lines.append("  ".join(cells).rstrip())
        return "\n".join(lines)

    __repr__ = __str__

    def _repr_html_(self) -> str:
        def line(tag: str, cells: tuple[str, ...]) -> str:
            return "<tr>" + "".join(f"<{tag}>{escape(c)}</{tag}>" for c in cells) + "</tr>"

        rows = "".join(line("td", _row(path)) for path in self)
        return f"<table><thead>{line('th', _HEADS)}</thead><tbody>{rows}</tbody></table>"


def hot_paths() -> HotPaths:
    """The sequences of ops that were computed while `set_auto_compile` was on, as a table.

    Each has `hash`, `sequence`, `count`, `status` (cold, queued, compiling, trial, kept, dropped,
    failed or capped), `interpreted_ms`, `compiled_ms`, `speedup`, `compile_ms`, the `reason`
    why it is not compiled, and the `region`: the signal that decides about it (`tn.signal`). Times
    are the least of the measured runs.

        >>> tn.hot_paths()  # doctest: +SKIP
        hash          sequence               runs  status  interpreted  compiled  speed-up  ...
        5d2c41a9e07b  matmul -> relu -> sum   500  kept        2.31 ms   1.12 ms      2.1x  ...
    """
    return HotPaths(_core._hot_paths())
