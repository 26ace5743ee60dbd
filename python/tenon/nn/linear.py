"""Layers that are linear in each of their inputs."""

from __future__ import annotations

import tenon as tn

from .checks import also_called, check_shape, check_sizes
from .module import Module


class Linear(Module):
    """`x @ weight.T + bias`, along the last axis of `x`.

    The weight is [output_dims, input_dims]. It and the bias are drawn uniformly between plus and
    minus 1 / sqrt(input_dims).

        >>> layer = tn.nn.Linear(3, 8)
        >>> layer
        Linear(3 -> 8)
        >>> layer(tn.zeros((5, 3))).shape
        (5, 8)
    """

    @also_called(in_features="input_dims", out_features="output_dims")
    def __init__(self, input_dims: int, output_dims: int, bias: bool = True) -> None:
        check_sizes(self, input_dims=input_dims, output_dims=output_dims)
        self.input_dims = input_dims
        self.output_dims = output_dims
        bound = input_dims**-0.5
        self.weight = tn.random.uniform(-bound, bound, (output_dims, input_dims))
        self.bias = tn.random.uniform(-bound, bound, (output_dims,)) if bias else None

    def forward(self, x: tn.Tensor) -> tn.Tensor:
        check_shape(self, x, ..., self.input_dims)
        return tn.linear(x, self.weight, self.bias)

    def describe(self) -> str:
        bias = ", bias=False" if self.bias is None else ""
        return f"{self.input_dims} -> {self.output_dims}{bias}"


class Bilinear(Module):
    """`y[o] = sum of x1[i] * weight[o, i, j] * x2[j] over i and j, + bias[o]`, along last axes.

        >>> layer = tn.nn.Bilinear(3, 4, 2)
        >>> layer(tn.zeros((5, 3)), tn.zeros((5, 4))).shape
        (5, 2)
    """

    @also_called(
        in1_features="input1_dims", in2_features="input2_dims", out_features="output_dims"
    )
    def __init__(
        self, input1_dims: int, input2_dims: int, output_dims: int, bias: bool = True
    ) -> None:
        check_sizes(
            self, input1_dims=input1_dims, input2_dims=input2_dims, output_dims=output_dims
        )
        self.input_dims = (input1_dims, input2_dims)
        self.output_dims = output_dims
        bound = input1_dims**-0.5
        shape = (output_dims, input1_dims, input2_dims)
        self.weight = tn.random.uniform(-bound, bound, shape)
        self.bias = tn.random.uniform(-bound, bound, (output_dims,)) if bias else None

    def forward(self, x1: tn.Tensor, x2: tn.Tensor) -> tn.Tensor:
        for x, dims in zip((x1, x2), self.input_dims):
            check_shape(self, x, ..., dims)
        y = tn.einsum("...i,oij,...j->...o", x1, self.weight, x2)
        return y if self.bias is None else y + self.bias

    def describe(self) -> str:
        return f"{self.input_dims[0]}, {self.input_dims[1]} -> {self.output_dims}"


class Embedding(Module):
    """The rows of the weight [num_embeddings, dims] at the given integers, of any shape.

    Negative ones count from the end; one out of bounds is an error, which compiled code checks
    under `tn.debug_indices` only and clamps otherwise. The weight is drawn from the standard normal
    distribution; its row at `padding_idx` is zero, and no gradient reaches it.

        >>> layer = tn.nn.Embedding(100, 8)
        >>> layer
        Embedding(100 of 8)
        >>> layer(tn.array([[3, 1, 4]])).shape
        (1, 3, 8)
    """

    padding_idx: int | None = None

    @also_called(embedding_dim="dims")
    def __init__(self, num_embeddings: int, dims: int, padding_idx: int | None = None) -> None:
        check_sizes(self, num_embeddings=num_embeddings, dims=dims)
        self.num_embeddings = num_embeddings
        self.dims = dims
        self.weight = tn.random.normal((num_embeddings, dims))
        if padding_idx is not None:
            self.weight = self.weight.at[padding_idx].set(0.0)
            self.padding_idx = range(num_embeddings)[padding_idx]

    def forward(self, indices: tn.Tensor) -> tn.Tensor:
        rows = tn.embedding(self.weight, indices)
        if self.padding_idx is None:
            return rows
        is_padding = tn.remainder(indices, self.num_embeddings) == self.padding_idx
        return tn.where(tn.expand_dims(is_padding, -1), tn.stop_gradient(rows), rows)

    def as_linear(self, x: tn.Tensor) -> tn.Tensor:
        """`x @ weight.T`: the logits of a model whose last layer has the weight of its first."""
        check_shape(self, x, ..., self.dims)
        return tn.linear(x, self.weight)

    def describe(self) -> str:
        return f"{self.num_embeddings} of {self.dims}"
