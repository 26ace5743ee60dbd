"""Tracks assignments to modules by traced functions: tensors of a trace are invalid after it.

Modules tell of each assignment while a function is traced. Where the trace does not carry a tensor
out, as `tn.compile(model)` and `outputs=` do, the attribute gets back what it was, and a warning
says so.
"""

from __future__ import annotations

import functools
import sys
import threading
import warnings
from collections.abc import Callable
from typing import Any

from . import _core, tree
from .watched_classes import quiet

_ABSENT = object()


class _Stack(threading.local):
    def __init__(self) -> None:
        self.under_way: list[ModuleChanges] = []


on_this_thread = _Stack()


def _tensors(value: Any) -> list[_core.Tensor]:
    try:
        leaves = tree.leaves(value)
    except _core.Error:  # a list that holds itself
        return []
    return [x for x in leaves if isinstance(x, _core.Tensor)]


def _is_lost(value: Any, before: Any) -> bool:
    """Whether it has no meaning outside the trace, or another one than in every call."""
    made = _tensors(value)
    from_nothing = before is _ABSENT or before is None  # such as weights that are made when needed
    return any(map(_core._is_traced, made)) or bool(made and not from_nothing)


class ModuleChanges:
    """Records assignments to modules on this thread, until `end` or `undo`."""

    def __init__(self, what: str, instead: str) -> None:
        """`what` assigns, for the warning, and what to do `instead`."""
        self._what, self._instead = what, instead
        # By id and name: the module, what the attribute was, and what was assigned last.
        self._noted: dict[tuple[int, str], tuple[Any, Any, Any]] = {}
        self._made_inside: set[int] = set()  # ids of modules
        on_this_thread.under_way.append(self)

    def note(self, module: Any, name: str, value: Any) -> None:
        with quiet():
            held = vars(module)
        if not held:
            self._made_inside.add(id(module))
        place = id(module), name
        _, before, _ = self._noted.get(place, (module, held.get(name, _ABSENT), None))
        self._noted[place] = module, before, value

    def undo(self) -> list[tuple[str, Any]]:
        """Takes such tensors out again. Returns those, with what they were assigned to."""
        return [(_title(module, name), now) for module, name, now in self.take()]

    def take(self) -> list[tuple[Any, str, Any]]:
        """The same, by module and name of the attribute."""
        on_this_thread.under_way.remove(self)
        lost = []
        for (at, name), (module, before, now) in self._noted.items():
            with quiet():
                held = vars(module)
            is_state = held.get(name, _ABSENT) is not now  # which is as it was already
            if at in self._made_inside or is_state or not _is_lost(now, before):
                continue
            lost.append((module, name, now))
            if before is _ABSENT:
                del held[name]
            else:
                held[name] = before
        self._noted.clear()
        return lost

    def end(self, results: Any) -> None:
        """The function has returned; what is among the `results` is not lost."""
        lost = self.undo()
        if not lost:
            return
        returned = _tensors(results)
        for name, value in lost:
            tensors = _tensors(value)
            if not all(any(_core._is_same_value(x, y) for y in returned) for x in tensors):
                text = f"{self._what} assigns to {name}, and the change is lost: {self._instead}"
                warnings.warn(text, stacklevel=frames_of_package() + 1)
                return


class StateOnWorkers:
    """`f` for `shard_map`: what it assigns to modules is carried out beside its results."""

    def __init__(self, f: Callable[..., Any]) -> None:
        self._f = f
        self._taken: list[tuple[Any, str, Any]] = []

    def __call__(self, *args: Any) -> tuple[Any, list[Any]]:
        changes = ModuleChanges("shard_map: the function", "return the new value")
        try:
            made = self._f(*args)
        except BaseException:
            changes.undo()
            raise
        self._taken = changes.take()
        return made, [value for _, _, value in self._taken]

    @property
    def count(self) -> int:
        """The number of tensors in the values."""
        return sum(len(_tensors(value)) for _, _, value in self._taken)

    def name(self, tensor: int) -> str:
        """Return the attribute to which tensor number `tensor` of the values is assigned."""
        for module, name, value in self._taken:
            tensor -= len(_tensors(value))
            if tensor < 0:
                return _title(module, name)
        return ""

    def assign(self, values: list[Any]) -> None:
        for (module, name, _), value in zip(self._taken, values):
            setattr(module, name, value)


def _title(module: Any, name: str) -> str:
    return f"{name} of a {type(module).__name__}"


class ChangesByCompiled(ModuleChanges):
    """Changes by a function that `compile` traces. Also warns of draws from other generators."""

    def __init__(self, place: str) -> None:
        instead = "compile the module itself, name it in inputs= and outputs=, or return the new"
        super().__init__(f"compile: {place}", f"{instead} value")
        self._is_outermost = len(on_this_thread.under_way) == 1
        self._drawn = _positions_of_generators()

    def end(self, results: Any) -> None:
        super().end(results)
        now = _positions_of_generators()
        names = [name for name, position in now.items() if position != self._drawn.get(name)]
        if names and self._is_outermost:
            text = f"{self._what} draws from {' and '.join(names)} at trace time, so every call "
            instead = "reuses the same numbers: draw with tn.random, or pass them as arguments"
            warnings.warn(text + instead, stacklevel=frames_of_package() + 1)


def _positions_of_generators() -> dict[str, Any]:
    """Return the states of the global generators of Python and NumPy."""
    found: dict[str, Any] = {}
    if "random" in sys.modules:
        found["random"] = sys.modules["random"].getstate()
    if "numpy.random" in sys.modules:
        state = sys.modules["numpy.random"].get_state(legacy=False)
        numbers = state["state"]
        found["np.random"] = {n: getattr(v, "tobytes", lambda v=v: v)() for n, v in numbers.items()}
    return found


def frames_of_package() -> int:
    """Return the number of innermost frames that belong to the package."""
    frame, count = sys._getframe(1), 0
    while frame.f_back and str(frame.f_globals.get("__package__")).split(".")[0] == __package__:
        frame, count = frame.f_back, count + 1
    return count


def without_changes(name: str, f: Callable[..., Any]) -> Callable[..., Any]:
    """`f` for the transform called `name`, which carries out nothing but results."""

    @functools.wraps(f)
    def traced(*args: Any, **kwargs: Any) -> Any:
        changes = ModuleChanges(f"{name}: the function", "return the new value")
        try:
            made = f(*args, **kwargs)
        except BaseException:
            changes.undo()
            raise
        changes.end(made)
        return made

    return traced
