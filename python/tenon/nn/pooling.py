"""Resizing of images. The pools themselves are in `pools`."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Literal

import tenon as tn

from .checks import Sizes, check_channels, refuse
from .description import described
from .module import Module
from .pools import *  # noqa: F403  (pickles of earlier versions find them here)


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
        mode: Literal["nearest", "linear", "cubic"] = "nearest",
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
        check_channels(self, x, "length", ...)
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
