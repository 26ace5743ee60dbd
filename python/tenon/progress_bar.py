"""A progress bar for training: steps, rate, remaining time, memory and reported values."""

from __future__ import annotations

import sys
import time
from collections.abc import Iterable, Iterator, Sized
from types import TracebackType
from typing import Any, TextIO

from . import _core
from .explanation.units import bytes_text

_IS_WORKER = _core._is_worker()
_SECONDS_BETWEEN = 0.2  # two drawings
_WIDTH = 24  # of the bar


class Progress:
    """Shows the progress of a loop on a terminal; elsewhere it is silent.

        >>> with tn.Progress(total=100, description="train") as bar:
        ...     for step in range(100):
        ...         loss = tn.array(1.0) / (step + 1)
        ...         bar.update(loss=loss)

    Reported values may be tensors. They are evaluated only when they are drawn, a few times per
    second; those on a mesh of workers at once, since all processes must do so at the same step.
    The line stays when the loop completes, and is removed when it fails.
    """

    def __init__(
        self,
        total: int | None = None,
        description: str = "",
        *,
        file: TextIO | None = None,
        disable: bool = False,
    ) -> None:
        self.total, self.description, self.steps = total, description, 0
        self._values: dict[str, Any] = {}
        self._rate = _Rate()
        self._next = 0.0
        self._line = None if disable else _line(sys.stderr if file is None else file)

    def update(self, steps: int = 1, **values: Any) -> None:
        """Counts steps, and sets the values to show: `bar.update(loss=loss)`."""
        self.steps += steps
        self.show(**values)

    def show(self, **values: Any) -> None:
        """Sets the values to show, without counting a step."""
        for value in values.values():  # processes do not draw at the same steps
            is_tensor = isinstance(value, _core.Tensor)
            if is_tensor and (_IS_WORKER or value.device.kind == "mesh"):
                value.eval()
        if self._line is None:
            return
        self._values.update(values)
        now = time.monotonic()
        if now >= self._next:
            self._draw()
            self._next = time.monotonic() + _SECONDS_BETWEEN

    def close(self, keep: bool = True) -> None:
        """Ends the line, or removes it."""
        if self._line is None:
            return
        line = self._line
        try:
            if keep:
                self._draw()
        finally:
            self._line = None
            line.close(keep)

    def _draw(self) -> None:
        assert self._line is not None
        values = [f"{name} {_text(value)}" for name, value in self._values.items()]
        rate = self._rate.at(self.steps)
        parts = [self._count(), *values, f"{rate:.3g} steps/s", bytes_text(_core.active_memory())]
        if self.total and 0 < self.steps < self.total and rate > 0:
            parts.append(f"{_time((self.total - self.steps) / rate)} left")
        share = min(self.steps / self.total, 1.0) if self.total else None
        self._line.draw(self.description, share, "  ".join(parts))

    def _count(self) -> str:
        return f"{self.steps}/{self.total}" if self.total else f"{self.steps} steps"

    def __enter__(self) -> Progress:
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        self.close(keep=kind is None)


class progress(Progress):
    """The items of `iterable`, with a `Progress` that counts them; `show` reports values.

        >>> bar = tn.progress(tn.data.batches(tn.arange(6), 2))
        >>> for x in bar:
        ...     bar.show(loss=tn.sum(x))
        >>> bar.steps
        3
    """

    def __init__(
        self,
        iterable: Iterable[Any],
        description: str = "",
        *,
        total: int | None = None,
        file: TextIO | None = None,
        disable: bool = False,
    ) -> None:
        if total is None and isinstance(iterable, Sized):
            total = _length(iterable)
        super().__init__(total, description, file=file, disable=disable)
        self._iterable = iterable

    def __iter__(self) -> Iterator[Any]:
        keep = False
        try:
            for item in self._iterable:
                yield item
                self.update()
            keep = True
        finally:
            self.close(keep)


class _Rate:
    """Steps per second lately: the older a drawing, the less it counts."""

    def __init__(self) -> None:
        self._time, self._steps = time.monotonic(), 0
        self._seconds = self._done = 0.0

    def at(self, steps: int) -> float:
        now = time.monotonic()
        fade = 0.5 ** ((now - self._time) / 5)
        self._seconds = self._seconds * fade + (now - self._time)
        self._done = self._done * fade + (steps - self._steps)
        self._time, self._steps = now, steps
        return self._done / self._seconds if self._seconds > 0 else 0.0


class _PlainLine:
    """One line of a terminal, written over and over."""

    def __init__(self, file: TextIO) -> None:
        self._file = file

    def draw(self, description: str, share: float | None, text: str) -> None:
        filled = 0 if share is None else round(share * _WIDTH)
        bar = "" if share is None else f"[{'#' * filled}{'.' * (_WIDTH - filled)}] "
        start = f"{description} " if description else ""
        self._write(f"\r{start}{bar}{text}\x1b[K")

    def close(self, keep: bool) -> None:
        self._write("\n" if keep else "\r\x1b[K")

    def _write(self, text: str) -> None:
        try:
            self._file.write(text)
            self._file.flush()
        except (OSError, ValueError):
            pass  # the terminal is gone, which is no reason to stop training


class _RichLine:
    """The same by `rich`, which also draws in notebooks."""

    def __init__(self, console: Any) -> None:
        from rich.progress import BarColumn, TextColumn
        from rich.progress import Progress as RichProgress

        self._progress = RichProgress(
            TextColumn("{task.description}"),
            BarColumn(_WIDTH),
            TextColumn("{task.fields[text]}"),
            console=console,
            auto_refresh=False,  # no thread that draws between two steps
        )
        self._task = self._progress.add_task("", total=1.0, text="")
        self._started = False

    def draw(self, description: str, share: float | None, text: str) -> None:
        if not self._started:
            self._progress.start()
            self._started = True
        self._progress.update(
            self._task,
            description=description,
            total=None if share is None else 1.0,
            completed=share or 0.0,
            text=text,
            refresh=True,
        )

    def close(self, keep: bool) -> None:
        if self._started:
            self._progress.live.transient = not keep
            self._progress.stop()


def _line(file: TextIO) -> _PlainLine | _RichLine | None:
    """Return the object that draws, or None where the bar would not be visible."""
    is_terminal = hasattr(file, "isatty") and file.isatty()
    if not is_terminal and "ipykernel" not in sys.modules:
        return None
    try:
        from rich.console import Console
    except ImportError:
        return _PlainLine(file) if is_terminal else None
    console = Console(file=file)
    return _RichLine(console) if is_terminal or console.is_jupyter else None


def _length(iterable: Sized) -> int | None:
    try:
        return len(iterable)
    except TypeError:  # batches without an end have no length
        return None


def _text(value: Any) -> str:
    if isinstance(value, _core.Tensor) and value.size == 1:
        value = value.item()
    return f"{value:.4g}" if isinstance(value, float) else str(value)


def _time(seconds: float) -> str:
    minutes, rest = divmod(round(seconds), 60)
    hours, minutes = divmod(minutes, 60)
    return f"{hours}:{minutes:02}:{rest:02}" if hours else f"{minutes}:{rest:02}"
