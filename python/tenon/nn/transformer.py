"""Transformers: layers of attention and an MLP, with residual connections around both."""

from __future__ import annotations

from collections.abc import Callable
from typing import TypeAlias

import tenon as tn

from .attention import MultiHeadAttention
from .checks import check_counts, check_function
from .dropout import Dropout
from .linear import Linear
from .module import Module
from .normalization import LayerNorm

Activation: TypeAlias = Callable[[tn.Tensor], tn.Tensor]


class _Layer(Module):
    """Base class of encoder and decoder layers: the residual and the perceptron."""

    def __init__(
        self,
        dims: int,
        num_heads: int,
        mlp_dims: int | None = None,
        dropout: float = 0.1,
        activation: Activation = tn.relu,
        norm_first: bool = False,
        *,
        batch_first: bool = True,
    ) -> None:
        check_function(self, "activation", activation)
        mlp_dims = 4 * dims if mlp_dims is None else mlp_dims
        self.self_attn = MultiHeadAttention(dims, num_heads, batch_first=batch_first)
        self.linear1 = Linear(dims, mlp_dims)
        self.linear2 = Linear(mlp_dims, dims)
        self.norm1 = LayerNorm(dims)
        self.norm2 = LayerNorm(dims)
        self.dropout = Dropout(dropout)
        self.activation = activation
        self.norm_first = norm_first

    def _residual(
        self, x: tn.Tensor, norm: LayerNorm, f: Callable[[tn.Tensor], tn.Tensor]
    ) -> tn.Tensor:
        before = norm(x) if self.norm_first else x
        y: tn.Tensor = x + self.dropout(f(before))
        if not self.norm_first:
            y = norm(y)
        return y

    def _perceptron(self, x: tn.Tensor) -> tn.Tensor:
        y: tn.Tensor = self.linear2(self.dropout(self.activation(self.linear1(x))))
        return y


class TransformerEncoderLayer(_Layer):
    """Self-attention and an MLP with one hidden layer of `mlp_dims` features (default: 4 `dims`).

    `x` is [batch, positions, dims], or [positions, batch, dims] without `batch_first`; `mask` and
    `causal` are those of `MultiHeadAttention`. Each sublayer f computes `norm(x + f(x))`, or with
    `norm_first` `x + f(norm(x))`; `dropout` applies to the results of f and to the hidden layer.
    Parameters have PyTorch's names.

        >>> layer = tn.nn.TransformerEncoderLayer(16, num_heads=4)
        >>> layer(tn.zeros((2, 5, 16))).shape
        (2, 5, 16)
    """

    def forward(
        self, x: tn.Tensor, mask: tn.Tensor | None = None, causal: bool = False
    ) -> tn.Tensor:
        def attend(x: tn.Tensor) -> tn.Tensor:
            y: tn.Tensor = self.self_attn(x, mask=mask, causal=causal)
            return y

        x = self._residual(x, self.norm1, attend)
        return self._residual(x, self.norm2, self._perceptron)


class TransformerDecoderLayer(_Layer):
    """A `TransformerEncoderLayer` that also attends to `memory`, the result of an encoder.

        >>> layer = tn.nn.TransformerDecoderLayer(16, num_heads=4)
        >>> layer(tn.zeros((2, 5, 16)), tn.zeros((2, 7, 16)), causal=True).shape
        (2, 5, 16)
    """

    def __init__(
        self,
        dims: int,
        num_heads: int,
        mlp_dims: int | None = None,
        dropout: float = 0.1,
        activation: Activation = tn.relu,
        norm_first: bool = False,
        *,
        batch_first: bool = True,
    ) -> None:
        options = (mlp_dims, dropout, activation, norm_first)
        super().__init__(dims, num_heads, *options, batch_first=batch_first)
        self.multihead_attn = MultiHeadAttention(dims, num_heads, batch_first=batch_first)
        self.norm3 = LayerNorm(dims)

    def forward(
        self,
        x: tn.Tensor,
        memory: tn.Tensor,
        mask: tn.Tensor | None = None,
        memory_mask: tn.Tensor | None = None,
        causal: bool = False,
    ) -> tn.Tensor:
        def attend(x: tn.Tensor) -> tn.Tensor:
            y: tn.Tensor = self.self_attn(x, mask=mask, causal=causal)
            return y

        def attend_to_memory(x: tn.Tensor) -> tn.Tensor:
            y: tn.Tensor = self.multihead_attn(x, memory, mask=memory_mask)
            return y

        x = self._residual(x, self.norm1, attend)
        x = self._residual(x, self.norm2, attend_to_memory)
        return self._residual(x, self.norm3, self._perceptron)


class _Stack(Module):
    """Layers one after the other, with a last normalisation if `norm`."""

    layer_class: type[_Layer]

    def __init__(
        self,
        num_layers: int,
        dims: int,
        num_heads: int,
        mlp_dims: int | None = None,
        dropout: float = 0.1,
        activation: Activation = tn.relu,
        norm_first: bool = False,
        norm: bool = True,
        *,
        batch_first: bool = True,
    ) -> None:
        check_counts(self, num_layers=num_layers)
        options = (dims, num_heads, mlp_dims, dropout, activation, norm_first)
        self.layers = [
            self.layer_class(*options, batch_first=batch_first) for _ in range(num_layers)
        ]
        self.norm = LayerNorm(dims) if norm else None

    def _finish(self, x: tn.Tensor) -> tn.Tensor:
        return x if self.norm is None else self.norm(x)


class TransformerEncoder(_Stack):
    """`num_layers` of `TransformerEncoderLayer`, and a final normalization if `norm`.

        >>> encoder = tn.nn.TransformerEncoder(2, dims=16, num_heads=4, norm_first=True)
        >>> encoder(tn.zeros((2, 5, 16))).shape
        (2, 5, 16)
    """

    layer_class = TransformerEncoderLayer

    def forward(
        self, x: tn.Tensor, mask: tn.Tensor | None = None, causal: bool = False
    ) -> tn.Tensor:
        for layer in self.layers:
            x = layer(x, mask, causal)
        return self._finish(x)


class TransformerDecoder(_Stack):
    """`num_layers` of `TransformerDecoderLayer`, and a final normalization if `norm`.

        >>> decoder = tn.nn.TransformerDecoder(2, dims=16, num_heads=4)
        >>> decoder(tn.zeros((2, 5, 16)), tn.zeros((2, 7, 16)), causal=True).shape
        (2, 5, 16)
    """

    layer_class = TransformerDecoderLayer

    def forward(
        self,
        x: tn.Tensor,
        memory: tn.Tensor,
        mask: tn.Tensor | None = None,
        memory_mask: tn.Tensor | None = None,
        causal: bool = False,
    ) -> tn.Tensor:
        for layer in self.layers:
            x = layer(x, memory, mask, memory_mask, causal)
        return self._finish(x)


class Transformer(Module):
    """An encoder of `source` and a decoder of `target`, both [batch, positions, dims].

    The masks apply to the two self-attentions and to the decoder's attention to the encoder's
    result. With `causal`, a target position attends only to itself and earlier positions.

        >>> model = tn.nn.Transformer(16, 4, num_encoder_layers=2, num_decoder_layers=2)
        >>> model(tn.zeros((2, 7, 16)), tn.zeros((2, 5, 16)), causal=True).shape
        (2, 5, 16)
    """

    def __init__(
        self,
        dims: int = 512,
        num_heads: int = 8,
        num_encoder_layers: int = 6,
        num_decoder_layers: int = 6,
        mlp_dims: int | None = None,
        dropout: float = 0.1,
        activation: Activation = tn.relu,
        norm_first: bool = False,
        *,
        batch_first: bool = True,
    ) -> None:
        options = (dims, num_heads, mlp_dims, dropout, activation, norm_first)
        self.encoder = TransformerEncoder(num_encoder_layers, *options, batch_first=batch_first)
        self.decoder = TransformerDecoder(num_decoder_layers, *options, batch_first=batch_first)

    def forward(
        self,
        source: tn.Tensor,
        target: tn.Tensor,
        source_mask: tn.Tensor | None = None,
        target_mask: tn.Tensor | None = None,
        memory_mask: tn.Tensor | None = None,
        causal: bool = False,
    ) -> tn.Tensor:
        memory = self.encoder(source, source_mask)
        y: tn.Tensor = self.decoder(target, memory, target_mask, memory_mask, causal)
        return y
