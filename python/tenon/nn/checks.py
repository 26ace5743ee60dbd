"""What layers check: their arguments when they are made, and the shapes they are given."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any, NoReturn, SupportsIndex, TypeAlias

import tenon as tn

from .. import _core
from .module import Module

Sizes: TypeAlias = "int | Sequence[int]"
Pattern: TypeAlias = "tuple[Any, ...]"  # of numbers, names and perhaps ...


def refuse(layer: Module, text: str) -> NoReturn:
    _core._fail("value", f"{type(layer).__name__}: {text}")


def check_shape(layer: Module, x: Any, *pattern: Any) -> None:
    """An error unless `x` has a shape like `pattern`.

    A name stands for any size, `...` for any number of axes.
    """
    if not hasattr(x, "shape"):
        name = type(layer).__name__
        _core._fail("type", f"{name}: expected a tensor, given a {type(x).__name__}")
    if not _fits(x.shape, pattern):
        expected = ", ".join("..." if size is ... else str(size) for size in pattern)
        refuse(layer, f"expected [{expected}], given {type_text(x)}")


def _fits(shape: tuple[int, ...], pattern: Pattern) -> bool:
    if ... in pattern:
        at, more = pattern.index(...), len(shape) - len(pattern) + 1
        pattern = pattern[:at] + ("any",) * more + pattern[at + 1 :]
    return len(shape) == len(pattern) and all(
        isinstance(size, str) or size == given for size, given in zip(pattern, shape)
    )


def type_text(x: tn.Tensor) -> str:
    return f"{x.dtype.name}{list(x.shape)}"


def channel_pattern(channels: int, channels_last: bool) -> Pattern:
    """The shape of a batch with any number of other axes."""
    return ("batch", ..., channels) if channels_last else ("batch", channels, ...)


def spatial_pattern(axes: int, channels: int | str, channels_last: bool) -> Pattern:
    """The shape of a batch with this many spatial axes."""
    names = ("length",) if axes == 1 else ("depth", "height", "width")[-axes:]
    return ("batch", *names, channels) if channels_last else ("batch", channels, *names)


def check_sizes(layer: Module, **sizes: int) -> None:
    """An error unless all are positive integers."""
    for name, size in sizes.items():
        if not _is_integer(size, 1):
            refuse(layer, f"{name} must be a positive integer, not {size!r}")


def _is_integer(value: Any, least: int) -> bool:
    return isinstance(value, SupportsIndex) and value >= least


def check_divides(layer: Module, divisor: str, number: int, **sizes: int) -> None:
    """An error unless the argument called `divisor`, which is `number`, divides the sizes."""
    for name, size in sizes.items():
        if size % number != 0:
            refuse(layer, f"{divisor} must divide {name}: {number} and {size}")


def one_per_axis(
    layer: Module, name: str, value: Sizes, axes: int, least: int = 1
) -> tuple[int, ...]:
    """`value`, an integer for all axes or one for each, as one for each."""
    sizes = tuple(value) if isinstance(value, (list, tuple)) else (value,) * axes
    if len(sizes) != axes or not all(_is_integer(size, least) for size in sizes):
        each = "" if axes == 1 else f", or {axes} of them"
        refuse(layer, f"{name} must be an integer from {least} on{each}, not {value!r}")
    return tuple(int(size) for size in sizes)


def check_probability(layer: Module, name: str, p: float) -> None:
    if not isinstance(p, (int, float)) or not 0 <= p < 1:
        refuse(layer, f"{name} must be at least 0 and less than 1, not {p!r}")


def check_function(layer: Module, name: str, function: Callable[[tn.Tensor], Any]) -> None:
    if not callable(function):
        hint = f", such as tn.nn.{function}" if isinstance(function, str) else ""
        refuse(layer, f"{name} must be a function{hint}, not {function!r}")
