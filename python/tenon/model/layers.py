"""Layers as blocks: sizes that inference finds may be left out.

Layouts, names of parameters and initial values are those of `tenon.nn`: channels are axis 1.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, SupportsIndex, TypeAlias

from .. import _core
from .logical import Block

Sizes: TypeAlias = "int | Sequence[int]"


def size(layer: str, name: str, value: Any) -> int:
    if isinstance(value, bool) or not isinstance(value, SupportsIndex):
        _core._fail("type", f"{layer}: {name} must be an integer, not {value!r}")
    number = value.__index__()
    if abs(number) >= 2**63:
        _core._fail("value", f"{layer}: {name} does not fit 64 bits: {number}")
    return number


def sizes(layer: str, name: str, value: Any) -> list[int]:
    """An integer, or a few, as a list."""
    if not isinstance(value, (list, tuple)):
        value = [value]
    if len(value) > 3:
        _core._fail("value", f"{layer}: {name} has {len(value)} numbers, at most 3 are taken")
    return [size(layer, name, item) for item in value]


def number(layer: str, name: str, value: Any) -> float:
    if not isinstance(value, (int, float)):
        _core._fail("type", f"{layer}: {name} must be a number, not {value!r}")
    return float(value)


# The rest ------------------------------------------------------------------------------------


def MultiHeadAttention(
    dims: int, num_heads: int, bias: bool = True, causal: bool = False
) -> Block:
    """`softmax(q @ k.T / sqrt(depth)) @ v` in `num_heads` heads of depth `dims / num_heads`.

    Where `key` and `value` are not connected, the input attends to itself. `mask` broadcasts to
    [batch, heads, queries, keys].

        >>> tn.model.MultiHeadAttention(16, 4, bias=False, causal=True).kind
        'MultiHeadAttention'
    """
    layer = "MultiHeadAttention"
    dims, heads = size(layer, "dims", dims), size(layer, "num_heads", num_heads)
    return Block(_core._attention_block(dims, heads, bool(bias), bool(causal)))


# Losses --------------------------------------------------------------------------------------


def MSE(reduction: str = "mean") -> Block:
    """The squared differences of `input` and `target`. `reduction` is "none", "mean" or "sum".

        >>> tn.model.MSE()
        MSE: input, target -> output
    """
    return Block(_core._mse_block(_reduction("MSE", reduction)))


def L1(reduction: str = "mean") -> Block:
    """The absolute differences of `input` and `target`.

        >>> tn.model.L1("sum")
        L1(reduction=sum): input, target -> output
    """
    return Block(_core._l1_block(_reduction("L1", reduction)))


def Huber(delta: float = 1.0, reduction: str = "mean") -> Block:
    """Half the squared difference up to `delta`, and from there on along its tangent.

        >>> tn.model.Huber()
        Huber: input, target -> output
    """
    how = _reduction("Huber", reduction)
    return Block(_core._huber_block(number("Huber", "delta", delta), how))


def BinaryCrossEntropy(reduction: str = "mean") -> Block:
    """Minus the log of the probability of targets 0 and 1 (or between), from logits.

        >>> tn.model.BinaryCrossEntropy()
        BinaryCrossEntropy: input, target -> output
    """
    return Block(_core._binary_cross_entropy_block(_reduction("BinaryCrossEntropy", reduction)))


def CrossEntropy(
    reduction: str = "mean", label_smoothing: float = 0.0, axis: int = -1
) -> Block:
    """Minus the log of the probability of the target's classes, from logits along `axis`.

        >>> tn.model.CrossEntropy()
        CrossEntropy: input, target -> output
    """
    layer = "CrossEntropy"
    smoothing = number(layer, "label_smoothing", label_smoothing)
    how = _reduction(layer, reduction)
    return Block(_core._cross_entropy_block(how, smoothing, size(layer, "axis", axis)))


def _reduction(layer: str, reduction: Any) -> str:
    if not isinstance(reduction, str):
        _core._fail("type", f"{layer}: reduction must be a string, not {reduction!r}")
    return reduction
