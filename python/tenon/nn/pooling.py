"""Pooling, and resizing of images."""

from __future__ import annotations

from collections.abc import Sequence

import tenon as tn

from .checks import SPATIAL_AXES, Sizes, check_channels, check_sizes, one_per_axis, refuse
from .description import described
from .module import Module


class _Pool(Module):
    """What pools share. The stride is that of the kernel when it is left out."""

    spatial_axes: int

    def __init__(
        self, kernel_size: Sizes, stride: Sizes | None, padding: Sizes, channels_last: bool
    ) -> None:
        axes = self.spatial_axes
        self.kernel_size = one_per_axis(self, "kernel_size", kernel_size, axes)
        stride = kernel_size if stride is None else stride
        self.stride = one_per_axis(self, "stride", stride, axes)
        self.padding = one_per_axis(self, "padding", padding, axes, least=0)
        self.channels_last = channels_last

    def _check(self, x: tn.Tensor) -> None:
        check_channels(self, x, "channels", *SPATIAL_AXES[self.spatial_axes])


class _MaxPool(_Pool):
    """The largest element of each window; padding never is."""

    def __init__(
        self,
        kernel_size: Sizes,
        stride: Sizes | None = None,
        padding: Sizes = 0,
        dilation: Sizes = 1,
        *,
        channels_last: bool = False,
    ) -> None:
        super().__init__(kernel_size, stride, padding, channels_last)
        self.dilation = one_per_axis(self, "dilation", dilation, self.spatial_axes)

    def forward(self, x: tn.Tensor) -> tn.Tensor:
        self._check(x)
        return tn.max_pool(
            x, self.kernel_size, self.stride, self.padding, self.dilation, self.channels_last
        )

    def describe(self) -> str:
        usual = {"stride": self.kernel_size, "padding": 0, "dilation": 1, "channels_last": False}
        return described(self, self.kernel_size, **usual)


class MaxPool1d(_MaxPool):
    """The largest element of each window of [batch, channels, length].

        >>> tn.nn.MaxPool1d(2)(tn.array([[[1.0, 3.0, 2.0, 0.0]]])).tolist()
        [[[3.0, 2.0]]]
    """

    spatial_axes = 1


class MaxPool2d(_MaxPool):
    """The largest element of each window of [batch, channels, height, width].

        >>> tn.nn.MaxPool2d(3, stride=2, padding=1)(tn.zeros((2, 8, 16, 20))).shape
        (2, 8, 8, 10)
    """

    spatial_axes = 2


class MaxPool3d(_MaxPool):
    """The largest element of each window of [batch, channels, depth, height, width].

        >>> tn.nn.MaxPool3d(2)(tn.zeros((2, 8, 4, 6, 8))).shape
        (2, 8, 2, 3, 4)
    """

    spatial_axes = 3


class _AvgPool(_Pool):
    """The mean of each window; padding counts as zeros if `count_include_pad`, else not at all."""

    def __init__(
        self,
        kernel_size: Sizes,
        stride: Sizes | None = None,
        padding: Sizes = 0,
        count_include_pad: bool = True,
        *,
        channels_last: bool = False,
    ) -> None:
        super().__init__(kernel_size, stride, padding, channels_last)
        self.count_include_pad = count_include_pad

    def forward(self, x: tn.Tensor) -> tn.Tensor:
        self._check(x)
        return tn.avg_pool(
            x,
            self.kernel_size,
            self.stride,
            self.padding,
            self.count_include_pad,
            self.channels_last,
        )

    def describe(self) -> str:
        usual = {"stride": self.kernel_size, "padding": 0, "channels_last": False}
        return described(self, self.kernel_size, **usual, count_include_pad=True)


class AvgPool1d(_AvgPool):
    """The mean of each window of [batch, channels, length].

        >>> tn.nn.AvgPool1d(2)(tn.array([[[1.0, 3.0, 2.0, 0.0]]])).tolist()
        [[[2.0, 1.0]]]
    """

    spatial_axes = 1


class AvgPool2d(_AvgPool):
    """The mean of each window of [batch, channels, height, width].

        >>> tn.nn.AvgPool2d(2)(tn.zeros((2, 8, 16, 20))).shape
        (2, 8, 8, 10)
    """

    spatial_axes = 2


class AvgPool3d(_AvgPool):
    """The mean of each window of [batch, channels, depth, height, width].

        >>> tn.nn.AvgPool3d(2)(tn.zeros((2, 8, 4, 6, 8))).shape
        (2, 8, 2, 3, 4)
    """

    spatial_axes = 3


class GlobalAvgPool2d(Module):
    """The mean of each channel of [batch, channels, height, width]: [batch, channels].

        >>> tn.nn.GlobalAvgPool2d()(tn.zeros((2, 8, 16, 20))).shape
        (2, 8)
    """

    def __init__(self, *, channels_last: bool = False) -> None:
        self.channels_last = channels_last

    def forward(self, x: tn.Tensor) -> tn.Tensor:
        check_channels(self, x, "channels", *SPATIAL_AXES[2])
        return tn.mean(x, (1, 2) if self.channels_last else (2, 3))

    def describe(self) -> str:
        return described(self, channels_last=False)


class PixelShuffle(Module):
    """[..., channels * r**2, height, width] as [..., channels, height * r, width * r].

        >>> tn.nn.PixelShuffle(2)(tn.zeros((2, 12, 4, 5))).shape
        (2, 3, 8, 10)
    """

    def __init__(self, upscale_factor: int, *, channels_last: bool = False) -> None:
        check_sizes(self, upscale_factor=upscale_factor)
        self.upscale_factor = upscale_factor
        self.channels_last = channels_last

    def forward(self, x: tn.Tensor) -> tn.Tensor:
        return tn.pixel_shuffle(x, self.upscale_factor, self.channels_last)

    def describe(self) -> str:
        return described(self, self.upscale_factor, channels_last=False)


class PixelUnshuffle(Module):
    """The inverse of `PixelShuffle`.

        >>> tn.nn.PixelUnshuffle(2)(tn.zeros((2, 3, 8, 10))).shape
        (2, 12, 4, 5)
    """

    def __init__(self, downscale_factor: int, *, channels_last: bool = False) -> None:
        check_sizes(self, downscale_factor=downscale_factor)
        self.downscale_factor = downscale_factor
        self.channels_last = channels_last

    def forward(self, x: tn.Tensor) -> tn.Tensor:
        return tn.pixel_unshuffle(x, self.downscale_factor, self.channels_last)

    def describe(self) -> str:
        return described(self, self.downscale_factor, channels_last=False)


class Upsample(Module):
    """Resizes the 1 to 3 spatial axes of [batch, channels, spatial axes ...].

    They get the extents `size`, or `scale_factor` times those they have; either is one number for
    all axes or one for each. `mode` is "nearest", "linear" (of two axes, bilinear) or "cubic".
    With `align_corners` the first and last elements stay where they are.

        >>> tn.nn.Upsample(scale_factor=2)(tn.array([[[1.0, 2.0]]])).tolist()
        [[[1.0, 1.0, 2.0, 2.0]]]
    """

    def __init__(
        self,
        size: Sizes | None = None,
        scale_factor: float | Sequence[float] | None = None,
        mode: str = "nearest",
        align_corners: bool = False,
        *,
        channels_last: bool = False,
    ) -> None:
        if (size is None) == (scale_factor is None):
            refuse(self, "give either size or scale_factor")
        if mode not in ("nearest", "linear", "cubic"):
            refuse(self, f"mode must be 'nearest', 'linear' or 'cubic', not {mode!r}")
        self.size = size
        self.scale_factor = scale_factor
        self.mode = mode
        self.align_corners = align_corners
        self.channels_last = channels_last

    def forward(self, x: tn.Tensor) -> tn.Tensor:
        check_channels(self, x, "channels", "length", ...)
        size, factor = self.size, self.scale_factor
        if isinstance(factor, Sequence):
            extents = x.shape[1:-1] if self.channels_last else x.shape[2:]
            size, factor = self._scaled(extents, factor), None
        more = {"channels_last": self.channels_last}
        return tn.interpolate(x, size, factor, self.mode, self.align_corners, **more)

    def describe(self) -> str:
        usual = {"mode": "nearest", "align_corners": False, "channels_last": False}
        return described(self, size=None, scale_factor=None, **usual)

    def _scaled(self, extents: tuple[int, ...], factors: Sequence[float]) -> list[int]:
        if len(factors) != len(extents):
            refuse(self, f"scale_factor has {len(factors)} numbers, x {len(extents)} spatial axes")
        return [int(extent * factor) for extent, factor in zip(extents, factors)]
