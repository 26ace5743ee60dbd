"""Attention: which positions look at which."""

from __future__ import annotations

from typing import TypeAlias

import tenon as tn

from . import init
from .checks import check_divides, check_shape, check_sizes
from .linear import Linear
from .module import Module

Cache: TypeAlias = "tuple[tn.Tensor, tn.Tensor]"


class MultiHeadAttention(Module):
    """`softmax(q @ k.T / sqrt(depth)) @ v` in `num_heads` heads of depth `dims / num_heads`.

    `q`, `k` and `v` are linear in the queries, keys and values, [batch, positions, dims], and so is
    the result in the heads. Without keys the queries attend to themselves, without values these are
    the keys. With `batch_first=False`, PyTorch's default, all are [positions, batch, dims]. `mask`
    broadcasts to [batch, heads, queries, keys]: bool keeps where true, floats are added. With
    `causal` a query sees the keys up to its own position.

    The parameters are PyTorch's: `in_proj_weight` [3 dims, dims] and `in_proj_bias` for queries,
    keys and values in this order, then `out_proj`. If keys or values have other sizes, `key_dims`
    and `value_dims`, there are `q_proj_weight`, `k_proj_weight` and `v_proj_weight` instead.

        >>> attention = tn.nn.MultiHeadAttention(16, num_heads=4)
        >>> attention(tn.zeros((2, 5, 16)), causal=True).shape
        (2, 5, 16)
        >>> attention(tn.zeros((2, 1, 16)), tn.zeros((2, 5, 16))).shape
        (2, 1, 16)
    """

    def __init__(
        self,
        dims: int,
        num_heads: int,
        bias: bool = True,
        key_dims: int | None = None,
        value_dims: int | None = None,
        *,
        batch_first: bool = True,
    ) -> None:
        self.batch_first = batch_first
        key_dims = dims if key_dims is None else key_dims
        value_dims = dims if value_dims is None else value_dims
        check_sizes(
            self, dims=dims, num_heads=num_heads, key_dims=key_dims, value_dims=value_dims
        )
        check_divides(self, "num_heads", num_heads, dims=dims)
        self.num_heads = num_heads
        self.input_dims = (dims, key_dims, value_dims)
        draw = init.glorot_uniform()
        if key_dims == value_dims == dims:
            self.in_proj_weight = draw(tn.zeros((3 * dims, dims)))
        else:
            self.q_proj_weight = draw(tn.zeros((dims, dims)))
            self.k_proj_weight = draw(tn.zeros((dims, key_dims)))
            self.v_proj_weight = draw(tn.zeros((dims, value_dims)))
        self.in_proj_bias = tn.zeros(3 * dims) if bias else None
        self.out_proj = Linear(dims, dims, bias)
        if bias:
            self.out_proj.bias = tn.zeros(dims)

    def forward(
        self,
        queries: tn.Tensor,
        keys: tn.Tensor | None = None,
        values: tn.Tensor | None = None,
        mask: tn.Tensor | None = None,
        causal: bool = False,
    ) -> tn.Tensor:
        return self._attend(*self._project(queries, keys, values), mask, causal)

    def step(
        self, x: tn.Tensor, cache: Cache | None = None, mask: tn.Tensor | None = None
    ) -> tuple[tn.Tensor, Cache]:
        """Causal self-attention of the next positions, and what the ones after them need.

        `cache` is what the call for the positions before returned.

            >>> attention = tn.nn.MultiHeadAttention(16, num_heads=4)
            >>> first, cache = attention.step(tn.zeros((2, 5, 16)))
            >>> second, cache = attention.step(tn.zeros((2, 1, 16)), cache)
            >>> second.shape, cache[0].shape
            ((2, 1, 16), (2, 4, 6, 4))
        """
        q, k, v = self._project(x, None, None)
        if cache is not None:
            k, v = (tn.concat(pair, axis=-2) for pair in zip(cache, (k, v)))
        return self._attend(q, k, v, mask, causal=True), (k, v)

    def _project(
        self, queries: tn.Tensor, keys: tn.Tensor | None, values: tn.Tensor | None
    ) -> list[tn.Tensor]:
        """Queries, keys and values as [batch, heads, positions, depth]."""
        to_itself = keys is None and values is None
        keys = queries if keys is None else keys
        given = (queries, keys, keys if values is None else values)
        axes = ("batch", "positions") if self.batch_first else ("positions", "batch")
        for x, dims in zip(given, self.input_dims):
            check_shape(self, x, *axes, dims)
        if not self.batch_first:
            given = tuple(tn.swapaxes(x, 0, 1) for x in given)
            queries = given[0]
        together = len(set(self.input_dims)) == 1
        if together and to_itself:  # one product instead of three
            projected = tn.split(tn.linear(queries, self.in_proj_weight, self.in_proj_bias), 3, -1)
        else:
            weights = (
                tn.split(self.in_proj_weight, 3)
                if together
                else (self.q_proj_weight, self.k_proj_weight, self.v_proj_weight)
            )
            bias = self.in_proj_bias
            biases = (None,) * 3 if bias is None else tn.split(bias, 3)
            projected = tuple(map(tn.linear, given, weights, biases))
        return [tn.swapaxes(tn.unflatten(p, -1, (self.num_heads, -1)), 1, 2) for p in projected]

    def _attend(
        self, q: tn.Tensor, k: tn.Tensor, v: tn.Tensor, mask: tn.Tensor | None, causal: bool
    ) -> tn.Tensor:
        heads = tn.scaled_dot_product_attention(q, k, v, mask, is_causal=causal)
        out = self.out_proj(tn.flatten(tn.swapaxes(heads, 1, 2), -2, -1))
        return out if self.batch_first else tn.swapaxes(out, 0, 1)

    def describe(self) -> str:
        text = f"{self.input_dims[0]} in {self.num_heads} heads"
        return text if self.batch_first else f"{text}, batch_first=False"
