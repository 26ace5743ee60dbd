"""Checks of layers: their arguments at construction, and the shapes of their inputs."""

from __future__ import annotations

import functools
from collections.abc import Callable, Sequence
from typing import Any, NoReturn, SupportsIndex, TypeAlias, TypeVar

import tenon as tn

from .. import _core
from .module import Module

Sizes: TypeAlias = "int | Sequence[int]"
Pattern: TypeAlias = "tuple[Any, ...]"  # of numbers, names and perhaps ...

Init = TypeVar("Init", bound=Callable[..., None])

MOST_LAYERS = 10_000  # of one module


def also_called(**names: str) -> Callable[[Init], Init]:
    """Lets an `__init__` take arguments by PyTorch's names too: `in_features="input_dims"`."""

    def decorate(init: Init) -> Init:
        @functools.wraps(init)
        def called(self: Module, *args: Any, **kwargs: Any) -> None:
            for theirs in names.keys() & kwargs.keys():
                if names[theirs] in kwargs:
                    text = f"{theirs} and {names[theirs]} are the same argument"
                    _core._fail("type", f"{type(self).__name__}: {text}")
                kwargs[names[theirs]] = kwargs.pop(theirs)
            init(self, *args, **kwargs)

        return called  # type: ignore[return-value]

    return decorate


def refuse(layer: Module, text: str, hint: str = "") -> NoReturn:
    _core._fail("value", f"{type(layer).__name__}: {text}", hint)


def check_shape(layer: Module, x: Any, *pattern: Any) -> None:
    """An error unless `x` has a shape like `pattern`.

    A name stands for any size, `...` for any number of axes.
    """
    if not _fits(x, pattern):
        _refuse_shape(layer, x, pattern)


def check_channels(layer: Any, x: Any, *axes: Any) -> None:
    """An error unless `x` is [batch, channels, *axes], or with `channels_last` the other way."""
    first, last = ("batch", "channels", *axes), ("batch", *axes, "channels")
    check_shape(layer, x, *(last if layer.channels_last else first))


def _fits(x: Any, pattern: Pattern) -> bool:
    shape = getattr(x, "shape", ())
    if ... in pattern:
        at, more = pattern.index(...), len(shape) - len(pattern) + 1
        pattern = pattern[:at] + ("any",) * more + pattern[at + 1 :]
    return len(shape) == len(pattern) and all(
        isinstance(size, str) or size == given for size, given in zip(pattern, shape)
    )


def _refuse_shape(layer: Module, x: Any, pattern: Pattern) -> NoReturn:
    if not hasattr(x, "shape"):
        name = type(layer).__name__
        _core._fail("type", f"{name}: expected a tensor, given a {type(x).__name__}")
    given = f"{x.dtype.name}{list(x.shape)}"
    refuse(layer, f"expected {_text(pattern)}, given {given}")


def _text(pattern: Pattern) -> str:
    return f"[{', '.join('...' if size is ... else str(size) for size in pattern)}]"


def check_sizes(layer: Module, **sizes: int) -> None:
    """An error unless all are positive integers."""
    for name, size in sizes.items():
        if not isinstance(size, SupportsIndex) or size.__index__() < 1:
            refuse(layer, f"{name} must be a positive integer, not {size!r}")


def check_counts(layer: Module, **counts: int) -> None:
    """An error unless all are positive integers that Python may count to."""
    check_sizes(layer, **counts)
    for name, count in counts.items():
        if count > MOST_LAYERS:
            refuse(layer, f"{name} must be at most {MOST_LAYERS}, not {count!r}")


def check_probability(layer: Module, name: str, p: float) -> None:
    if not isinstance(p, (int, float)) or not 0 <= p < 1:
        refuse(layer, f"{name} must be at least 0 and less than 1, not {p!r}")


def check_function(layer: Module, name: str, function: Callable[[tn.Tensor], Any]) -> None:
    if not callable(function):
        hint = f", such as tn.nn.{function}" if isinstance(function, str) else ""
        refuse(layer, f"{name} must be a function{hint}, not {function!r}")
