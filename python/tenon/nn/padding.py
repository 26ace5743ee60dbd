"""Elements put around the spatial axes of images and signals."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import tenon as tn

from .. import _core
from .checks import SPATIAL_AXES, Sizes, check_channels, refuse
from .description import one_for_all
from .module import Module

# PyTorch's names for what is put there, and those of `tn.pad`.
MODES = {"zeros": "constant", "reflect": "reflect", "replicate": "edge", "circular": "wrap"}


def padded(
    x: tn.Tensor,
    sides: Sequence[tuple[int, int]],
    mode: str,
    channels_last: bool,
    value: float = 0.0,
) -> tn.Tensor:
    """`x`, [..., channels, spatial axes ...], with so many elements before and after each axis."""
    if mode == "reflect":
        first = x.ndim - len(sides) - (1 if channels_last else 0)
        for side, extent in zip(sides, x.shape[first:]):
            if max(side) >= extent:
                text = f"reflect needs more elements than it adds: {max(side)} to {extent}"
                _core._fail("value", f"pad: {text}", "mode 'circular' or 'replicate' does not")
    around = [(0, 0)] * (x.ndim - len(sides) - (1 if channels_last else 0))
    widths = [*around, *sides, *([(0, 0)] if channels_last else [])]
    return tn.pad(x, widths, MODES[mode], value)


class _Pad(Module):
    """What the layers share. `padding` is one number for all sides, or (left, right, top, bottom,
    front, back) as far as there are such axes: PyTorch's order, from the last axis on.
    """

    spatial_axes: int
    mode = "zeros"
    _around = "zeros"  # in the documentation
    _given = "1"  # in its example

    def __init_subclass__(cls, axes: int = 0, **kwargs: Any) -> None:
        """A class with a number of spatial axes is documented as all of its kind are."""
        super().__init_subclass__(**kwargs)
        if axes:
            cls.spatial_axes = axes
            cls.__doc__ = f"""[{", ".join(("batch", "channels", *SPATIAL_AXES[axes]))}] with \
{cls._around} around it.

        >>> tn.nn.{cls.__name__}({cls._given})(tn.zeros({(2, 3, 4, 5, 6)[: axes + 2]})).shape
        {(2, 3, 6, 7, 8)[: axes + 2]}
    """

    def __init__(self, padding: Sizes, *, channels_last: bool = False) -> None:
        axes = self.spatial_axes
        sides = list(padding) if isinstance(padding, (list, tuple)) else [padding] * 2 * axes
        if len(sides) != 2 * axes or not all(isinstance(n, int) and n >= 0 for n in sides):
            counts = f"an integer from 0 on, or {2 * axes} of them"
            refuse(self, f"padding must be {counts}, not {padding!r}")
        self.padding = tuple(sides)
        self.channels_last = channels_last

    def forward(self, x: tn.Tensor) -> tn.Tensor:
        self._check(x)
        pairs = list(zip(self.padding[::2], self.padding[1::2]))
        return padded(x, pairs[::-1], self.mode, self.channels_last, self._value())

    def _check(self, x: tn.Tensor) -> None:
        axes = SPATIAL_AXES[self.spatial_axes]
        if getattr(x, "ndim", 0) != len(axes) + 1:  # one example alone, without a batch
            check_channels(self, x, "channels", *axes)

    def _value(self) -> float:
        return 0.0

    def describe(self) -> str:
        text = str(one_for_all(self.padding))
        return f"{text}, channels_last=True" if self.channels_last else text


class _ConstantPad(_Pad):
    _around = "the constant `value`"
    _given = "1, 0.5"

    def __init__(self, padding: Sizes, value: float, *, channels_last: bool = False) -> None:
        super().__init__(padding, channels_last=channels_last)
        self.value = value

    def _value(self) -> float:
        return self.value

    def describe(self) -> str:
        return f"{super().describe()}, value={self.value!r}"


class _ReflectionPad(_Pad):
    mode = "reflect"
    _around = "the elements mirrored"


class _ReplicationPad(_Pad):
    mode = "replicate"
    _around = "the elements at the edge"


class _CircularPad(_Pad):
    mode = "circular"
    _around = "the elements of the other end"


class ConstantPad1d(_ConstantPad, axes=1): ...
class ConstantPad2d(_ConstantPad, axes=2): ...
class ConstantPad3d(_ConstantPad, axes=3): ...
class ZeroPad1d(_Pad, axes=1): ...
class ZeroPad2d(_Pad, axes=2): ...
class ZeroPad3d(_Pad, axes=3): ...
class ReflectionPad1d(_ReflectionPad, axes=1): ...
class ReflectionPad2d(_ReflectionPad, axes=2): ...
class ReflectionPad3d(_ReflectionPad, axes=3): ...
class ReplicationPad1d(_ReplicationPad, axes=1): ...
class ReplicationPad2d(_ReplicationPad, axes=2): ...
class ReplicationPad3d(_ReplicationPad, axes=3): ...
class CircularPad1d(_CircularPad, axes=1): ...
class CircularPad2d(_CircularPad, axes=2): ...
class CircularPad3d(_CircularPad, axes=3): ...
