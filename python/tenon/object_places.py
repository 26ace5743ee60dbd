"""Paths to objects: attributes, and indices into the containers there."""

from __future__ import annotations

from collections import OrderedDict
from collections.abc import Iterator
from typing import Any

from .object_kinds import CONTAINERS, is_array

Steps = tuple[Any, ...] | None  # indices into containers; None: none lead there, as in a set


def contents(value: Any) -> list[Any]:
    """Return the elements of a container (a dict's keys), even if its class has an `__iter__`."""
    if is_array(value):
        return value.ravel().tolist() if value.dtype.hasobject else []
    own = next(base for base in (OrderedDict, *CONTAINERS) if isinstance(value, base))
    return list(own.__iter__(value))


def path_text(owner: str, name: str, steps: Steps) -> str:
    path = owner if name == "__dict__" else f"{owner}.{name}"
    if name == "__dict__" and steps:
        path, steps = f"{path}.{steps[0]}", steps[1:]
    return path + text_of(steps)


def text_of(steps: Steps) -> str:
    return "[...]" if steps is None else "".join(f"[{s!r}]" for s in steps)


def parts(value: Any) -> Iterator[tuple[Steps, Any]]:
    """Yield the elements of a container, each with its index, if it has one."""
    inside = contents(value)
    if isinstance(value, dict):
        yield None, tuple(inside)
        yield from (((key,), dict.get(value, key)) for key in inside)
    elif isinstance(value, (list, tuple)):
        yield from (((at,), part) for at, part in enumerate(inside))
    else:
        yield from ((None, part) for part in inside)


def further(steps: Steps, step: Steps) -> Steps:
    return None if steps is None or step is None else (*steps, *step)


def reached(holder: Any, name: str, steps: Steps, value: Any) -> tuple[Any, ...]:
    """Return the path by which calls find a value; the value itself, if it has no indices."""
    return (None, -1, value, ()) if steps is None else (holder, name, steps)
