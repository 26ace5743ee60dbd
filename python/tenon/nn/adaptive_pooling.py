"""Pooling into a given number of windows."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import tenon as tn

from .checks import SPATIAL_AXES, check_channels, one_per_axis
from .description import described
from .module import Module


class _AdaptivePool(Module):
    """What pools into a given number of windows share. A size of None leaves an axis as it is."""

    spatial_axes: int
    _kept: str  # of a window, in the documentation

    def __init_subclass__(cls, axes: int = 0, **kwargs: Any) -> None:
        """A class with a number of spatial axes is documented as all of its kind are."""
        super().__init_subclass__(**kwargs)
        if axes:
            cls.spatial_axes = axes
            cls.__doc__ = f"""{cls._kept} of `output_size` windows of \
[{", ".join(("batch", "channels", *SPATIAL_AXES[axes]))}].

        A size of None leaves an axis as it is.

        >>> tn.nn.{cls.__name__}(2)(tn.zeros({(2, 8, 4, 6, 9)[: axes + 2]})).shape
        {(2, 8, 2, 2, 2)[: axes + 2]}
    """

    def __init__(
        self, output_size: int | Sequence[int | None] | None, *, channels_last: bool = False
    ) -> None:
        axes = self.spatial_axes
        each = isinstance(output_size, (list, tuple))
        sizes = tuple(output_size) if each else (output_size,) * axes  # type: ignore[arg-type]
        known = [1 if size is None else size for size in sizes]
        one_per_axis(self, "output_size", known, axes)
        self.output_size = sizes
        self.channels_last = channels_last

    def _sizes(self, x: tn.Tensor) -> list[int]:
        check_channels(self, x, "channels", *SPATIAL_AXES[self.spatial_axes])
        extents = x.shape[1:-1] if self.channels_last else x.shape[2:]
        return [extent if n is None else n for n, extent in zip(self.output_size, extents)]

    def describe(self) -> str:
        return described(self, self.output_size, channels_last=False)


class _AdaptiveAvgPool(_AdaptivePool):
    _kept = "The means"

    def forward(self, x: tn.Tensor) -> tn.Tensor:
        return tn.adaptive_avg_pool(x, self._sizes(x), self.channels_last)


class _AdaptiveMaxPool(_AdaptivePool):
    _kept = "The largest elements"

    def forward(self, x: tn.Tensor) -> tn.Tensor:
        return tn.adaptive_max_pool(x, self._sizes(x), self.channels_last)


class AdaptiveAvgPool1d(_AdaptiveAvgPool, axes=1): ...
class AdaptiveAvgPool2d(_AdaptiveAvgPool, axes=2): ...
class AdaptiveAvgPool3d(_AdaptiveAvgPool, axes=3): ...
class AdaptiveMaxPool1d(_AdaptiveMaxPool, axes=1): ...
class AdaptiveMaxPool2d(_AdaptiveMaxPool, axes=2): ...
class AdaptiveMaxPool3d(_AdaptiveMaxPool, axes=3): ...
