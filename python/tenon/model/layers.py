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


def ends(layer: str, given: tuple[Any, ...], most: int = 2) -> tuple[int | None, int, list[Any]]:
    """`(out)` or `(in, out)`, and what comes behind that."""
    if not 1 <= len(given) <= most:
        forms = f"{layer}(out) or {layer}(in, out)"
        _core._fail("type", f"{layer}: {len(given)} sizes given; it is {forms}")
    if len(given) == 1:
        return None, size(layer, "out", given[0]), []
    return size(layer, "in", given[0]), size(layer, "out", given[1]), list(given[2:])


# Convolutions --------------------------------------------------------------------------------


def _conv(
    layer: str,
    given: tuple[Any, ...],
    kernel_size: Any,
    stride: Any,
    padding: Any,
    dilation: Any,
    groups: int,
    bias: bool,
    output_padding: Any = None,
) -> Block:
    before, out, rest = ends(layer, given, 3)
    if rest and kernel_size is not None:
        _core._fail("type", f"{layer}: kernel_size is given twice")
    kernel_size = rest[0] if rest else kernel_size
    by_name = isinstance(padding, str)
    make = _core._conv_block if output_padding is None else _core._conv_transpose_block
    return Block(
        make(
            int(layer[-2]),
            out,
            before,
            [] if kernel_size is None else sizes(layer, "kernel_size", kernel_size),
            sizes(layer, "stride", stride),
            [0] if by_name else sizes(layer, "padding", padding),
            padding if by_name else "given",
            sizes(layer, "dilation", dilation),
            size(layer, "groups", groups),
            bool(bias),
            [0] if output_padding is None else sizes(layer, "output_padding", output_padding),
        )
    )


def Conv1d(
    *channels: int,
    kernel_size: Sizes | None = None,
    stride: Sizes = 1,
    padding: Sizes | str = 0,
    dilation: Sizes = 1,
    groups: int = 1,
    bias: bool = True,
) -> Block:
    """Kernels slid over [batch, in, length]: `Conv1d(out, kernel_size=3)`, `Conv1d(in, out, 3)`.

    `padding` may also be "same" or "valid".

        >>> tn.model.Conv1d(8, kernel_size=5, stride=2)
        Conv1d(out=8, kernel_size=5, stride=2): input, weight, bias -> output
    """
    return _conv("Conv1d", channels, kernel_size, stride, padding, dilation, groups, bias)


def Conv2d(
    *channels: int,
    kernel_size: Sizes | None = None,
    stride: Sizes = 1,
    padding: Sizes | str = 0,
    dilation: Sizes = 1,
    groups: int = 1,
    bias: bool = True,
) -> Block:
    """Kernels slid over [batch, in, height, width]. See `Conv1d`.

        >>> tn.model.Conv2d(3, 64, kernel_size=3, padding="same")
        Conv2d(in=3, out=64, kernel_size=3, padding=same): input, weight, bias -> output
    """
    return _conv("Conv2d", channels, kernel_size, stride, padding, dilation, groups, bias)


def Conv3d(
    *channels: int,
    kernel_size: Sizes | None = None,
    stride: Sizes = 1,
    padding: Sizes | str = 0,
    dilation: Sizes = 1,
    groups: int = 1,
    bias: bool = True,
) -> Block:
    """Kernels slid over [batch, in, depth, height, width]. See `Conv1d`.

        >>> tn.model.Conv3d(8, kernel_size=(1, 3, 3), bias=False)
        Conv3d(out=8, kernel_size=[1, 3, 3], bias=false): input, weight -> output
    """
    return _conv("Conv3d", channels, kernel_size, stride, padding, dilation, groups, bias)


def ConvTranspose1d(
    *channels: int,
    kernel_size: Sizes | None = None,
    stride: Sizes = 1,
    padding: Sizes = 0,
    output_padding: Sizes = 0,
    groups: int = 1,
    bias: bool = True,
    dilation: Sizes = 1,
) -> Block:
    """The adjoint of `Conv1d` in its input; the weight is [in, out / groups, kernel_size].

        >>> tn.model.ConvTranspose1d(8, kernel_size=2, stride=2)
        ConvTranspose1d(out=8, kernel_size=2, stride=2): input, weight, bias -> output
    """
    layer = "ConvTranspose1d"
    return _conv(
        layer, channels, kernel_size, stride, padding, dilation, groups, bias, output_padding
    )


def ConvTranspose2d(
    *channels: int,
    kernel_size: Sizes | None = None,
    stride: Sizes = 1,
    padding: Sizes = 0,
    output_padding: Sizes = 0,
    groups: int = 1,
    bias: bool = True,
    dilation: Sizes = 1,
) -> Block:
    """The adjoint of `Conv2d` in its input. See `ConvTranspose1d`.

        >>> tn.model.ConvTranspose2d(8, kernel_size=2, stride=2)
        ConvTranspose2d(out=8, kernel_size=2, stride=2): input, weight, bias -> output
    """
    layer = "ConvTranspose2d"
    return _conv(
        layer, channels, kernel_size, stride, padding, dilation, groups, bias, output_padding
    )


def ConvTranspose3d(
    *channels: int,
    kernel_size: Sizes | None = None,
    stride: Sizes = 1,
    padding: Sizes = 0,
    output_padding: Sizes = 0,
    groups: int = 1,
    bias: bool = True,
    dilation: Sizes = 1,
) -> Block:
    """The adjoint of `Conv3d` in its input. See `ConvTranspose1d`.

        >>> tn.model.ConvTranspose3d(8, kernel_size=2, stride=2)
        ConvTranspose3d(out=8, kernel_size=2, stride=2): input, weight, bias -> output
    """
    layer = "ConvTranspose3d"
    return _conv(
        layer, channels, kernel_size, stride, padding, dilation, groups, bias, output_padding
    )


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
