"""Layers that leave out a part of their input in training.

They draw from `tn.random.state`: a compiled function captures that.
"""

from __future__ import annotations

import tenon as tn

from .checks import SPATIAL_AXES, check_channels, check_probability
from .description import described
from .module import Module


class Dropout(Module):
    """In training, sets elements to zero with probability `p` and divides the others by `1 - p`.

        >>> layer = tn.nn.Dropout(0.25)
        >>> sorted(set(layer(tn.ones(100)).tolist()))
        [0.0, 1.3333333730697632]
        >>> layer.eval()(tn.ones(2)).tolist()
        [1.0, 1.0]
    """

    def __init__(self, p: float = 0.5) -> None:
        check_probability(self, "p", p)
        self.p = p

    def forward(self, x: tn.Tensor) -> tn.Tensor:
        return tn.dropout(x, p=self.p) if self.training else x


class _ChannelDropout(Dropout):
    spatial_axes: int

    def __init__(self, p: float = 0.5, *, channels_last: bool = False) -> None:
        super().__init__(p)
        self.channels_last = channels_last

    def forward(self, x: tn.Tensor) -> tn.Tensor:
        check_channels(self, x, "channels", *SPATIAL_AXES[self.spatial_axes])
        if not self.training:
            return x
        every, one = slice(None), [slice(1)] * self.spatial_axes
        chosen = (every, *one, every) if self.channels_last else (every, every, *one)
        return x * tn.dropout(tn.ones_like(x[chosen]), p=self.p)

    def describe(self) -> str:
        return described(self, f"p={self.p}", channels_last=False)


class Dropout2d(_ChannelDropout):
    """`Dropout` of whole channels of [batch, channels, height, width].

        >>> out = tn.nn.Dropout2d(0.5)(tn.ones((4, 8, 3, 3)))
        >>> tn.all(out == out[:, :, :1, :1]).item()
        True
    """

    spatial_axes = 2


class Dropout3d(_ChannelDropout):
    """`Dropout` of whole channels of [batch, channels, depth, height, width].

        >>> tn.nn.Dropout3d(0.5)(tn.ones((4, 8, 3, 3, 3))).shape
        (4, 8, 3, 3, 3)
    """

    spatial_axes = 3
