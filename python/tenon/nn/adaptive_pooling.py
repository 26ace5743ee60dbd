"""Pooling into a given number of windows."""

from __future__ import annotations

from collections.abc import Sequence

import tenon as tn

from .checks import SPATIAL_AXES, check_channels, one_per_axis
from .description import described
from .module import Module


class _AdaptivePool(Module):
    """What pools into a given number of windows share. A size of None leaves an axis as it is."""

    spatial_axes: int

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
    def forward(self, x: tn.Tensor) -> tn.Tensor:
        return tn.adaptive_avg_pool(x, self._sizes(x), self.channels_last)


class _AdaptiveMaxPool(_AdaptivePool):
    def forward(self, x: tn.Tensor) -> tn.Tensor:
        return tn.adaptive_max_pool(x, self._sizes(x), self.channels_last)


class AdaptiveAvgPool1d(_AdaptiveAvgPool):
    """The means of `output_size` windows of [batch, channels, length].

        >>> tn.nn.AdaptiveAvgPool1d(7)(tn.zeros((2, 8, 20))).shape
        (2, 8, 7)
    """

    spatial_axes = 1


class AdaptiveAvgPool2d(_AdaptiveAvgPool):
    """The means of `output_size` windows of [batch, channels, height, width].

        >>> tn.nn.AdaptiveAvgPool2d((3, None))(tn.zeros((2, 8, 16, 20))).shape
        (2, 8, 3, 20)
    """

    spatial_axes = 2


class AdaptiveAvgPool3d(_AdaptiveAvgPool):
    """The means of `output_size` windows of [batch, channels, depth, height, width].

        >>> tn.nn.AdaptiveAvgPool3d(2)(tn.zeros((2, 8, 4, 6, 8))).shape
        (2, 8, 2, 2, 2)
    """

    spatial_axes = 3


class AdaptiveMaxPool1d(_AdaptiveMaxPool):
    """The largest elements of `output_size` windows of [batch, channels, length].

        >>> tn.nn.AdaptiveMaxPool1d(7)(tn.zeros((2, 8, 20))).shape
        (2, 8, 7)
    """

    spatial_axes = 1


class AdaptiveMaxPool2d(_AdaptiveMaxPool):
    """The largest elements of `output_size` windows of [batch, channels, height, width].

        >>> tn.nn.AdaptiveMaxPool2d((3, None))(tn.zeros((2, 8, 16, 20))).shape
        (2, 8, 3, 20)
    """

    spatial_axes = 2


class AdaptiveMaxPool3d(_AdaptiveMaxPool):
    """The largest elements of `output_size` windows of [batch, channels, depth, height, width].

        >>> tn.nn.AdaptiveMaxPool3d(2)(tn.zeros((2, 8, 4, 6, 8))).shape
        (2, 8, 2, 2, 2)
    """

    spatial_axes = 3
