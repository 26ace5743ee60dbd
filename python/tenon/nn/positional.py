"""Positional encodings for sequence models."""

from __future__ import annotations

from math import log, pi, sqrt

import tenon as tn

from .checks import check_shape, check_sizes, refuse
from .module import Module


class RoPE(Module):
    """Rotary positional encoding: rotates pairs of the first `dims` features by their position.

    `x` is [..., positions, features]. At position p, pair i is rotated by the angle
    `(p + offset) * scale * base ** (-2 i / dims)`. A pair is features i and i + dims / 2, or 2 i
    and 2 i + 1 when `traditional`.

        >>> tn.nn.RoPE(4)(tn.ones((2, 5, 8))).shape
        (2, 5, 8)
    """

    def __init__(
        self, dims: int, traditional: bool = False, base: float = 10000.0, scale: float = 1.0
    ) -> None:
        _check_even(self, dims)
        self.dims = dims
        self.traditional = traditional
        self.base = base
        self.scale = scale

    def forward(self, x: tn.Tensor, offset: int = 0) -> tn.Tensor:
        check_shape(self, x, ..., "positions", "features")
        if x.shape[-1] < self.dims:
            check_shape(self, x, ..., "positions", self.dims)
        return tn.rope(x, self.dims, self.base, self.traditional, self.scale, offset)


class SinusoidalPositionalEncoding(Module):
    """`scale` times the sines, then the cosines, of positions times `dims / 2` frequencies.

    The frequencies decrease geometrically from `max_freq` to `min_freq`, in radians per position,
    or in full turns if `full_turns`. `scale` defaults to sqrt(2 / dims), which gives encodings of
    length 1. `cos_first` puts the cosines first.

        >>> encoding = tn.nn.SinusoidalPositionalEncoding(8)
        >>> encoding(tn.arange(5)).shape
        (5, 8)
        >>> encoding(tn.array(0)).tolist()
        [0.0, 0.0, 0.0, 0.0, 0.5, 0.5, 0.5, 0.5]
    """

    def __init__(
        self,
        dims: int,
        min_freq: float = 0.0001,
        max_freq: float = 1.0,
        scale: float | None = None,
        cos_first: bool = False,
        full_turns: bool = False,
    ) -> None:
        _check_even(self, dims)
        if not 0 < min_freq <= max_freq:
            refuse(self, f"0 < min_freq <= max_freq must hold: {min_freq} and {max_freq}")
        logs = tn.linspace(log(max_freq), log(min_freq), dims // 2)
        self._frequencies = tn.exp(logs) * (2 * pi if full_turns else 1)
        self.scale = sqrt(2 / dims) if scale is None else scale
        self.cos_first = cos_first

    def forward(self, positions: tn.Tensor) -> tn.Tensor:
        angles = positions[..., None] * self._frequencies
        parts = [tn.sin(angles), tn.cos(angles)]
        return self.scale * tn.concat(parts[::-1] if self.cos_first else parts, axis=-1)


class ALiBi(Module):
    """Attention scores minus the distance between query and key times a slope per head.

    Scores are [batch, heads, queries, keys]; the first query is at position `offset` of the keys.
    Head i of n has the slope `2 ** (-8 (i + 1) / n)`. `mask` is added if it is given.

        >>> tn.nn.ALiBi()(tn.zeros((1, 1, 2, 3))).tolist()
        [[[[0.0, -0.00390625, -0.0078125], [-0.00390625, 0.0, -0.00390625]]]]

    `bias` returns the added term, which can also be the mask of `tn.scaled_dot_product_attention`.
    """

    def forward(
        self, scores: tn.Tensor, offset: int = 0, mask: tn.Tensor | None = None
    ) -> tn.Tensor:
        check_shape(self, scores, "batch", "heads", "queries", "keys")
        scores = scores + self.bias(*scores.shape[1:], offset=offset).astype(scores.dtype)
        return scores if mask is None else scores + mask

    def bias(self, heads: int, queries: int, keys: int, offset: int = 0) -> tn.Tensor:
        """The negative distances times the slopes: [heads, queries, keys].

            >>> tn.nn.ALiBi().bias(8, 5, 5).shape
            (8, 5, 5)
        """
        slopes = 2.0 ** (-8 / heads * tn.arange(1, heads + 1))
        distances = tn.abs(tn.arange(queries)[:, None] + offset - tn.arange(keys))
        return -slopes[:, None, None] * distances


def _check_even(layer: Module, dims: int) -> None:
    check_sizes(layer, dims=dims)
    if dims % 2 != 0:
        refuse(layer, f"dims must be even, not {dims}")
