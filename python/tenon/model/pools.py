"""Pools as blocks, over [batch, channels, spatial axes ...]."""

from __future__ import annotations

from .. import _core
from .layers import Sizes, sizes
from .logical import Block


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
