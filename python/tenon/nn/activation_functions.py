"""Activations that are no ops, as functions."""

from __future__ import annotations

import tenon as tn

from .._core import gelu_tanh

gelu_approx = gelu_tanh


def gelu_fast_approx(x: tn.Tensor) -> tn.Tensor:
    """`x * sigmoid(1.702 x)`.

        >>> tn.nn.gelu_fast_approx(tn.array([0.0, 100.0])).tolist()
        [0.0, 100.0]
    """
    return x * tn.sigmoid(1.702 * x)


def glu(x: tn.Tensor, axis: int = -1) -> tn.Tensor:
    """`a * sigmoid(b)`, where `a` and `b` are the halves of `x` along `axis`.

        >>> tn.nn.glu(tn.array([2.0, 4.0, 0.0, 0.0])).tolist()
        [1.0, 2.0]
    """
    a, b = tn.split(x, 2, axis)
    return a * tn.sigmoid(b)


def hard_shrink(x: tn.Tensor, lambd: float = 0.5) -> tn.Tensor:
    """`x` where its magnitude exceeds `lambd`, else 0.

        >>> tn.nn.hard_shrink(tn.array([-1.0, 0.5, 2.0])).tolist()
        [-1.0, 0.0, 2.0]
    """
    return tn.where(tn.abs(x) <= lambd, 0, x)


def prelu(x: tn.Tensor, weight: tn.Tensor) -> tn.Tensor:
    """`x`, multiplied by `weight` where it is negative.

        >>> tn.nn.prelu(tn.array([-2.0, 3.0]), tn.array(0.25)).tolist()
        [-0.5, 3.0]
    """
    return tn.where(x > 0, x, weight * x)


def relu2(x: tn.Tensor) -> tn.Tensor:
    """`relu(x)` squared.

        >>> tn.nn.relu2(tn.array([-2.0, 3.0])).tolist()
        [0.0, 9.0]
    """
    return tn.square(tn.relu(x))


def softmin(x: tn.Tensor, axis: int = -1) -> tn.Tensor:
    """`softmax(-x)`.

        >>> tn.nn.softmin(tn.array([1.0, 1.0])).tolist()
        [0.5, 0.5]
    """
    return tn.softmax(-x, axis)


def softshrink(x: tn.Tensor, lambd: float = 0.5) -> tn.Tensor:
    """`x` shrunk towards 0 by `lambd`; 0 where its magnitude is at most `lambd`.

        >>> tn.nn.softshrink(tn.array([-1.0, 0.25, 2.0])).tolist()
        [-0.5, 0.0, 1.5]
    """
    return tn.where(tn.abs(x) <= lambd, 0, x - tn.sign(x) * lambd)


def step(x: tn.Tensor, threshold: float = 0.0) -> tn.Tensor:
    """1 where `x` exceeds `threshold`, else 0.

        >>> tn.nn.step(tn.array([-1.0, 0.0, 2.0])).tolist()
        [0.0, 0.0, 1.0]
    """
    return (x > threshold).astype(x.dtype)
