"""`profile`: the time of each step of a function, as text and as an HTML page."""

from __future__ import annotations

import functools
import os
import time
from collections.abc import Callable
from contextlib import AbstractContextManager
from dataclasses import dataclass
from pathlib import Path
from typing import Any, overload

from .. import _core
from ..compiled_modules import function_of
from ..files import path_of
from ..watching.recording import Event, recorded
from .units import time_text

MOST_NAMES = 4  # of the steps of a line


@dataclass(frozen=True)
class TimedStep:
    """A kernel or a call of the library that has run."""

    name: str
    place: str  # the user's line
    kind: str  # "code", "library", "interpreted"; "": not known
    began: float  # seconds since the function was called
    seconds: float


@dataclass(frozen=True)
class TimedLine:
    """The steps that come from one line of the user's program."""

    place: str
    steps: list[TimedStep]

    @property
    def seconds(self) -> float:
        return sum(step.seconds for step in self.steps)

    def names(self) -> str:
        """Return the names of what ran; if there are many, those that took longest."""
        times: dict[str, float] = {}
        for step in self.steps:
            times[step.name] = times.get(step.name, 0.0) + step.seconds
        longest = sorted(times, key=lambda name: -times[name])[:MOST_NAMES]
        more = f" and {len(times) - MOST_NAMES} others" if len(times) > MOST_NAMES else ""
        return ", ".join(name for name in times if name in longest) + more


@dataclass(frozen=True)
class Profile:
    """The steps of one call of a function, in order, with their times.

    `print` it, or `save` it as a page. `result` is the result of the function.
    """

    function: str
    steps: list[TimedStep]
    seconds: float
    result: Any

    def lines(self) -> list[TimedLine]:
        """The steps by source line, in the order of their first steps.

        A derivative belongs to the line that it differentiates.
        """
        lines: dict[str, list[TimedStep]] = {}
        for step in self.steps:
            lines.setdefault(step.place, []).append(step)
        return [TimedLine(place, steps) for place, steps in lines.items()]

    def __str__(self) -> str:
        running = sum(step.seconds for step in self.steps)
        count = f"{len(self.steps)} step{'s' * (len(self.steps) != 1)}"
        total = f"{time_text(self.seconds)}, {time_text(running)} of it in {count}"
        rows = [f"{100 * line.seconds / running:5.1f} % {time_text(line.seconds):>8}  "
                f"{line.names()}{f'  ({line.place})' if line.place else ''}"
                for line in sorted(self.lines(), key=lambda line: -line.seconds)]
        return "\n".join([f"{self.function}: {total}", *rows])

    def __repr__(self) -> str:
        return f"<profile of {self.function}: {len(self.steps)} steps, {time_text(self.seconds)}>"

    def html(self) -> str:
        """A self-contained HTML page: no network, no other files."""
        from .timeline import page

        return page(self)

    def save(self, path: str | os.PathLike[str]) -> Path:
        """Writes the page, or the text if the name ends in ".txt"."""
        target = Path(path_of("Profile.save", path))
        target.write_text(str(self) if target.suffix == ".txt" else self.html(), encoding="utf-8")
        return target


@overload
def profile(fun: str | os.PathLike[str]) -> AbstractContextManager[None]: ...
@overload
def profile(fun: Callable[..., Any], calls: int = 1) -> Callable[..., Profile]: ...
def profile(fun: Any, calls: int = 1) -> Any:
    """A function of the arguments of `fun` that calls it and measures its steps.

    The result is evaluated. With several calls, the one with the median time is reported. The
    first call of a compiled function compiles it, so call it before. Work of other threads is not
    included.

        >>> double = tn.compile(lambda x: x * 2)
        >>> timing = tn.profile(double)(tn.ones(3))
        >>> len(timing.steps), timing.result
        (1, tensor([2., 2., 2.], dtype=float32))

    With a file name instead of a function it is a context manager that records everything that
    happens inside, on all threads. `.json` is for chrome://tracing and ui.perfetto.dev, `.html` is
    a stand-alone timeline, `.png` and `.svg` are pictures, `.log` is text for
    `python -m tenon.visualize`.

        with tn.profile("trace.json"):
            train()
    """
    if isinstance(fun, (str, os.PathLike)):
        return recorded(fun)
    if not callable(fun):
        _core._fail("type", f"profile: expected a function or the name of a file, not {fun!r} "
                            f"({type(fun).__name__})")
    if calls < 1:
        _core._fail("value", f"profile: at least 1 call is needed, not {calls}")
    name = getattr(fun, "__name__", type(fun).__name__)

    def profiled(*args: Any, **kwargs: Any) -> Profile:
        _core.eval(*_tensors_in((args, kwargs)))  # what they took to compute is not of the function
        made = sorted((_timed(fun, args, kwargs) for _ in range(calls)), key=lambda call: call[0])
        seconds, steps, result = made[calls // 2]
        timed = [TimedStep(s.name, s.place, kind, s.began, s.seconds)
                 for s, kind in zip(steps, _kinds(fun, steps, args, kwargs))]
        return Profile(name, timed, seconds, result)

    return functools.update_wrapper(profiled, fun)


def _timed(fun: Any, args: Any, kwargs: Any) -> tuple[float, list[Event], Any]:
    """The time of one call, its steps and its result."""
    result = None

    def call() -> None:
        nonlocal result
        result = fun(*args, **kwargs)
        _core.eval(*_tensors_in(result))

    began = time.perf_counter()
    rows = _core._step_times(call)
    return time.perf_counter() - began, [Event._make(row) for row in rows], result


def _tensors_in(trees: Any) -> list[Any]:
    from .. import tree

    return [leaf for leaf in tree.leaves(trees) if isinstance(leaf, _core.Tensor)]


def _kinds(fun: Any, steps: list[Event], args: Any, kwargs: Any) -> list[str]:
    """Return the kinds of steps of a compiled function, if all belong to one plan."""
    unknown = [""] * len(steps)
    fun = function_of(fun)
    if not isinstance(fun, _core.CompiledFunction):
        return unknown
    known = {step.step: step.kind for step in fun._explain(*args, **kwargs).steps}
    return [known[i] for i in range(len(steps))] if len(known) == len(steps) else unknown
