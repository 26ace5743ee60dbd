"""Descriptions of the inputs of executables: tensors with ranges of sizes, and sizes."""

from __future__ import annotations

import operator
from collections.abc import Sequence
from typing import Any, NamedTuple

from . import _core

Range = tuple[int, int, int]


def _integer(what: str, size: Any) -> int:
    try:
        if not isinstance(size, bool):
            return operator.index(size)
    except TypeError:
        pass
    kind = type(size).__name__
    _core._fail("type", f"{what} is neither an integer nor (min, opt, max): {size!r} ({kind})")


def _range(what: str, sizes: Any) -> Range:
    """(min, opt, max), also of one size, after checks."""
    if not isinstance(sizes, (tuple, list)):
        sizes = (sizes,) * 3
    if len(sizes) != 3:
        _core._fail("value", f"{what} has {len(sizes)} bounds in place of (min, opt, max): {sizes}")
    low, best, high = (_integer(what, size) for size in sizes)
    if low < 0:
        _core._fail("value", f"{what} is negative: {low}")
    if not low <= best <= high:
        _core._fail("value", f"{what} needs min <= opt <= max: {(low, best, high)}")
    if high > _core._largest_size:
        _core._fail("value", f"{what} is above {_core._largest_size}: {high}")
    return low, best, high


class NamedDimension:
    """A named size from `min` to `max`; code is optimized for `opt`.

    Sizes with the same name must be equal in every call.

        >>> tn.NamedDimension("batch", 1, 8, 16)
        NamedDimension('batch', min=1, opt=8, max=16)
    """

    __slots__ = ("max", "min", "name", "opt")

    def __init__(self, name: str, min: int, opt: int, max: int) -> None:
        if not isinstance(name, str) or not name:
            _core._fail("type", f"NamedDimension: the name is a text, not {name!r}")
        self.name = name
        self.min, self.opt, self.max = _range(f"NamedDimension: {name!r}", (min, opt, max))

    @property
    def range(self) -> Range:
        return self.min, self.opt, self.max

    def __eq__(self, other: object) -> bool:
        if not isinstance(other, NamedDimension):
            return False
        return (self.name, self.range) == (other.name, other.range)

    def __hash__(self) -> int:
        return hash((self.name, self.range))

    def __repr__(self) -> str:
        return f"NamedDimension({self.name!r}, min={self.min}, opt={self.opt}, max={self.max})"


Dimension = int | Range | NamedDimension


def _dimension(what: str, given: Any) -> Dimension:
    """A size that is fixed is an integer, however it was given."""
    if isinstance(given, NamedDimension):
        return given
    low, best, high = _range(what, given)
    return low if low == high else (low, best, high)


def _bounds(dimension: Dimension) -> Range:
    if isinstance(dimension, int):
        return dimension, dimension, dimension
    return dimension.range if isinstance(dimension, NamedDimension) else dimension


def _core_dimension(dimension: Dimension) -> tuple[int, int, int, str]:
    name = dimension.name if isinstance(dimension, NamedDimension) else ""
    return *_bounds(dimension), name


class ShapeBounds(NamedTuple):
    min: tuple[int, ...]
    opt: tuple[int, ...]
    max: tuple[int, ...]


class InputInfo:
    """A tensor input of an executable: its shape and its element type.

    A size is an integer, a range `(min, opt, max)` optimized for `opt`, or a `NamedDimension`.
    `place` is the source location where it was created.

        >>> tn.InputInfo(shape=((1, 8, 16), 2), dtype=tn.float32)
        InputInfo(shape=((1, 8, 16), 2), dtype=float32)
    """

    __slots__ = ("dtype", "place", "shape")

    def __init__(self, shape: Sequence[Any], dtype: Any) -> None:
        if not isinstance(shape, (tuple, list)):
            hint = f"shape=({shape},)" if isinstance(shape, int) else ""
            kind = type(shape).__name__
            _core._fail("type", f"InputInfo: a shape is a tuple of sizes: {shape!r} ({kind})", hint)
        self.shape: tuple[Dimension, ...] = tuple(
            _dimension(f"InputInfo: dimension {axis}", size) for axis, size in enumerate(shape)
        )
        self.dtype: _core.DType = _core.dtype(dtype)
        self.place: str = _core._user_place()

    @property
    def shape_bounds(self) -> ShapeBounds:
        """The smallest shape, the best one and the largest."""
        each = [_bounds(size) for size in self.shape]
        return ShapeBounds(*(tuple(bounds[k] for bounds in each) for k in range(3)))

    def __eq__(self, other: object) -> bool:
        if not isinstance(other, InputInfo):
            return False
        return (self.shape, self.dtype) == (other.shape, other.dtype)

    def __hash__(self) -> int:
        return hash((self.shape, self.dtype))

    def __repr__(self) -> str:
        return f"InputInfo(shape={self.shape}, dtype={self.dtype})"


class DimensionInputInfo:
    """A size input of an executable: an integer within `(min, opt, max)`.

    The traced function receives a symbolic number that stands for every size of the range.

        >>> ones = tn.compile(lambda n: tn.ones((n, 2)), args=[tn.DimensionInputInfo((1, 4, 8))])
        >>> ones(3).shape
        (3, 2)
    """

    __slots__ = ("dimension", "place")

    def __init__(self, value_bounds: Any) -> None:
        self.dimension: Dimension = _dimension("DimensionInputInfo: the size", value_bounds)
        self.place: str = _core._user_place()

    @property
    def value_bounds(self) -> Range:
        return _bounds(self.dimension)

    def __eq__(self, other: object) -> bool:
        return isinstance(other, DimensionInputInfo) and self.dimension == other.dimension

    def __hash__(self) -> int:
        return hash(self.dimension)

    def __repr__(self) -> str:
        return f"DimensionInputInfo({self.dimension!r})"


Info = InputInfo | DimensionInputInfo


def to_core(name: str, info: Info) -> _core._InputInfo:
    """Convert an input's description for the core."""
    if isinstance(info, DimensionInputInfo):
        return _core._InputInfo(name, [_core_dimension(info.dimension)], None, info.place)
    shape = [_core_dimension(size) for size in info.shape]
    return _core._InputInfo(name, shape, info.dtype, info.place)


def from_core(info: _core._InputInfo) -> Info:
    """The same as Python shows it."""
    shape = [NamedDimension(d[3], *d[:3]) if d[3] else d[:3] for d in info.shape]
    made = DimensionInputInfo(shape[0]) if info.dtype is None else InputInfo(shape, info.dtype)
    made.place = info.place
    return made
