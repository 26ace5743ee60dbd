"""Hot paths: repeated computations are compiled automatically."""

from __future__ import annotations

from html import escape
from typing import Any

from . import _core
from .explanation.units import time_text


class set_auto_compile:
    """Compiles sequences of ops in the background once they have run `threshold` times.

    While a hot sequence is compiled, the interpreter continues to run it. Then both versions are
    measured, and the faster one is kept. Results keep their bits. `tn.hot_paths()` reports the
    outcome, and `TENON_DEBUG_COMPILE=1` logs it. `False` disables detection.

    The setting is permanent, or lasts until the end of a `with` statement. `TENON_AUTO_COMPILE=1`
    enables it from the start, after `TENON_HOTPATH_THRESHOLD` (10) runs; `TENON_COMPILE=1` compiles
    everything before its first run.

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
    speedup = f"{path.speedup:.2f}x" if path.speedup else "-"
    return (path.hash, path.sequence, str(path.count), path.status, _time(path.interpreted_ms),
            _time(path.compiled_ms), speedup, _time(path.compile_ms), path.region, path.reason)


def _folded(paths: list[_core.HotPath]) -> list[tuple[str, ...]]:
    """Rows, with one for all that were not compiled because too many are alike."""
    rows: list[tuple[str, ...]] = []
    alike: dict[tuple[str, str], list[int]] = {}  # the place of their row, how many, their runs
    for path in paths:
        row = _row(path)
        if path.status == "capped":
            known = alike.setdefault((path.sequence, path.region), [len(rows), 0, 0])
            known[1:] = known[1] + 1, known[2] + path.count
            if known[1] > 1:
                of_all = (f"({known[1]} alike)", path.sequence, str(known[2]), path.status)
                rows[known[0]] = of_all + rows[known[0]][4:]
                continue
        rows.append(row)
    return rows


class HotPaths(list[_core.HotPath]):
    """Sequences of ops, the most frequent first. Prints as a table, also in notebooks.

    The table merges the capped variants of a sequence into one row, and omits empty columns.
    """

    def __getitem__(self, index: Any) -> Any:
        found = super().__getitem__(index)
        return HotPaths(found) if isinstance(index, slice) else found

    def _table(self) -> tuple[list[tuple[str, ...]], list[bool]]:
        """Return the rows, the header first, and whether each column is numeric."""
        rows = _folded(self)
        shown = [i for i in range(len(_HEADS)) if any(row[i] not in ("", "-") for row in rows)]
        cells = [tuple(row[i] for i in shown) for row in [_HEADS, *rows]]
        return cells, [i in _NUMBERS for i in shown]

    def __str__(self) -> str:
        if not self:
            return "no hot paths"
        rows, numbers = self._table()
        widths = [max(map(len, column)) for column in zip(*rows)]
        lines = []
        for row in rows:
            cells = [
                cell.rjust(width) if number else cell.ljust(width)
                for cell, width, number in zip(row, widths, numbers)
            ]
            lines.append("  ".join(cells).rstrip())
        return "\n".join(lines)

    __repr__ = __str__

    def _repr_html_(self) -> str:
        def line(tag: str, cells: tuple[str, ...]) -> str:
            return "<tr>" + "".join(f"<{tag}>{escape(c)}</{tag}>" for c in cells) + "</tr>"

        heads, *rows = self._table()[0]
        body = "".join(line("td", row) for row in rows)
        return f"<table><thead>{line('th', heads)}</thead><tbody>{body}</tbody></table>"


def hot_paths() -> HotPaths:
    """The sequences of ops that ran while `set_auto_compile` was enabled, as a table.

    Each has `hash`, `sequence`, `count`, `status` (cold, queued, compiling, trial, kept, dropped,
    failed or capped), `interpreted_ms`, `compiled_ms`, `speedup`, `compile_ms`, the `reason`
    why it is not compiled, and the `region`: the signal that configures it (`tn.signal`). Times
    are the minimum of the measured runs.

        >>> tn.hot_paths()  # doctest: +SKIP
        hash          sequence               runs  status  interpreted  compiled  speed-up  ...
        5d2c41a9e07b  matmul -> relu -> sum   500  kept        2.31 ms   1.12 ms     2.06x  ...
    """
    return HotPaths(_core._hot_paths())
