"""Pools as blocks, over [batch, channels, spatial axes ...]."""

from __future__ import annotations

from typing import Any

from .. import _core
from .layers import Sizes, sizes
from .logical import Block


def _max_pool(axes: int, kernel_size: Any, stride: Any, padding: Any, dilation: Any) -> Block:
    layer = f"MaxPool{axes}d"
    return Block(
        _core._max_pool_block(
            axes,
            [] if kernel_size is None else sizes(layer, "kernel_size", kernel_size),
            None if stride is None else sizes(layer, "stride", stride),
            sizes(layer, "padding", padding),
            sizes(layer, "dilation", dilation),
            True,
        )
    )


def _avg_pool(axes: int, kernel_size: Any, stride: Any, padding: Any, padded: bool) -> Block:
    layer = f"AvgPool{axes}d"
    return Block(
        _core._avg_pool_block(
            axes,
            [] if kernel_size is None else sizes(layer, "kernel_size", kernel_size),
            None if stride is None else sizes(layer, "stride", stride),
            sizes(layer, "padding", padding),
            [1],
            bool(padded),
        )
    )


def MaxPool1d(
    kernel_size: Sizes | None = None,
    stride: Sizes | None = None,
    padding: Sizes = 0,
    dilation: Sizes = 1,
) -> Block:
    """The largest element of each window of [batch, channels, length].

        >>> tn.model.MaxPool1d(2)
        MaxPool1d(kernel_size=2): input -> output
    """
    return _max_pool(1, kernel_size, stride, padding, dilation)


def MaxPool2d(
    kernel_size: Sizes | None = None,
    stride: Sizes | None = None,
    padding: Sizes = 0,
    dilation: Sizes = 1,
) -> Block:
    """The largest element of each window of [batch, channels, height, width].

        >>> tn.model.MaxPool2d(kernel_size=3, stride=2, padding=1)
        MaxPool2d(kernel_size=3, stride=2, padding=1): input -> output
    """
    return _max_pool(2, kernel_size, stride, padding, dilation)


def MaxPool3d(
    kernel_size: Sizes | None = None,
    stride: Sizes | None = None,
    padding: Sizes = 0,
    dilation: Sizes = 1,
) -> Block:
    """The largest element of each window of [batch, channels, depth, height, width].

        >>> tn.model.MaxPool3d((1, 2, 2))
        MaxPool3d(kernel_size=[1, 2, 2]): input -> output
    """
    return _max_pool(3, kernel_size, stride, padding, dilation)


def AvgPool1d(
    kernel_size: Sizes | None = None,
    stride: Sizes | None = None,
    padding: Sizes = 0,
    count_include_pad: bool = True,
) -> Block:
    """The mean of each window of [batch, channels, length].

        >>> tn.model.AvgPool1d(2)
        AvgPool1d(kernel_size=2): input -> output
    """
    return _avg_pool(1, kernel_size, stride, padding, count_include_pad)


def AvgPool2d(
    kernel_size: Sizes | None = None,
    stride: Sizes | None = None,
    padding: Sizes = 0,
    count_include_pad: bool = True,
) -> Block:
    """The mean of each window of [batch, channels, height, width].

        >>> tn.model.AvgPool2d(2)
        AvgPool2d(kernel_size=2): input -> output
    """
    return _avg_pool(2, kernel_size, stride, padding, count_include_pad)


def AvgPool3d(
    kernel_size: Sizes | None = None,
    stride: Sizes | None = None,
    padding: Sizes = 0,
    count_include_pad: bool = True,
) -> Block:
    """The mean of each window of [batch, channels, depth, height, width].

        >>> tn.model.AvgPool3d(2)
        AvgPool3d(kernel_size=2): input -> output
    """
    return _avg_pool(3, kernel_size, stride, padding, count_include_pad)


def GlobalAvgPool1d() -> Block:
    """The mean of each channel of [batch, channels, length]: [batch, channels].

        >>> tn.model.GlobalAvgPool1d()
        GlobalAvgPool1d: input -> output
    """
    return Block(_core._global_avg_pool_block(1))


def GlobalAvgPool2d() -> Block:
    """The mean of each channel of [batch, channels, height, width]: [batch, channels].

        >>> tn.model.GlobalAvgPool2d()
        GlobalAvgPool2d: input -> output
    """
    return Block(_core._global_avg_pool_block(2))


def GlobalAvgPool3d() -> Block:
    """The mean of each channel of [batch, channels, depth, height, width]: [batch, channels].

        >>> tn.model.GlobalAvgPool3d()
        GlobalAvgPool3d: input -> output
    """
    return Block(_core._global_avg_pool_block(3))


def GlobalMaxPool1d() -> Block:
    """The largest element of each channel of [batch, channels, length]: [batch, channels].

        >>> tn.model.GlobalMaxPool1d()
        GlobalMaxPool1d: input -> output
    """
    return Block(_core._global_max_pool_block(1))


def GlobalMaxPool2d() -> Block:
    """The largest element of each channel of [batch, channels, height, width]: [batch, channels].

        >>> tn.model.GlobalMaxPool2d()
        GlobalMaxPool2d: input -> output
    """
    return Block(_core._global_max_pool_block(2))


def GlobalMaxPool3d() -> Block:
    """The largest element of each channel of [batch, channels, depth, height, width].

        >>> tn.model.GlobalMaxPool3d()
        GlobalMaxPool3d: input -> output
    """
    return Block(_core._global_max_pool_block(3))


def AdaptiveAvgPool1d(output_size: Sizes) -> Block:
    """The mean of each of `output_size` parts of [batch, channels, length].

    Where it does not divide the length, neighbouring parts share elements.

        >>> tn.model.AdaptiveAvgPool1d(7)
        AdaptiveAvgPool1d(output_size=7): input -> output
    """
    layer = "AdaptiveAvgPool1d"
    return Block(_core._adaptive_avg_pool_block(1, sizes(layer, "output_size", output_size)))


def AdaptiveAvgPool2d(output_size: Sizes) -> Block:
    """The mean of each of `output_size` parts of both spatial axes. See `AdaptiveAvgPool1d`.

        >>> tn.model.AdaptiveAvgPool2d((7, 1))
        AdaptiveAvgPool2d(output_size=[7, 1]): input -> output
    """
    layer = "AdaptiveAvgPool2d"
    return Block(_core._adaptive_avg_pool_block(2, sizes(layer, "output_size", output_size)))


def AdaptiveAvgPool3d(output_size: Sizes) -> Block:
    """The mean of each of `output_size` parts of all spatial axes. See `AdaptiveAvgPool1d`.

        >>> tn.model.AdaptiveAvgPool3d(2)
        AdaptiveAvgPool3d(output_size=2): input -> output
    """
    layer = "AdaptiveAvgPool3d"
    return Block(_core._adaptive_avg_pool_block(3, sizes(layer, "output_size", output_size)))
