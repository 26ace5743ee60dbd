"""Activations, as functions and as modules."""

from __future__ import annotations

from collections.abc import Callable

import tenon as tn

from .._core import gelu, gelu_tanh
from .checks import also_called, check_channels, check_sizes, refuse
from .description import described
from .module import Module

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


class CELU(Module):
    """`x` where it is positive, else `alpha * (exp(x / alpha) - 1)`.

        >>> tn.nn.CELU()(tn.array([0.0, 2.0])).tolist()
        [0.0, 2.0]
    """

    def __init__(self, alpha: float = 1.0) -> None:
        self.alpha = alpha

    def forward(self, x: tn.Tensor) -> tn.Tensor:
        return tn.celu(x, self.alpha)


class ELU(Module):
    """`x` where it is positive, else `alpha * (exp(x) - 1)`.

        >>> tn.nn.ELU()(tn.array([0.0, 2.0])).tolist()
        [0.0, 2.0]
    """

    def __init__(self, alpha: float = 1.0) -> None:
        self.alpha = alpha

    def forward(self, x: tn.Tensor) -> tn.Tensor:
        return tn.elu(x, self.alpha)


class GELU(Module):
    """`x` times the cumulative distribution function of the normal distribution at `x`.

    `approximate` is "none", "tanh" (`gelu_approx`) or "fast" (`gelu_fast_approx`).

        >>> tn.nn.GELU()(tn.array([0.0, 100.0])).tolist()
        [0.0, 100.0]
    """

    def __init__(self, approximate: str = "none") -> None:
        if approximate not in _GELUS:
            refuse(self, f"approximate must be one of {', '.join(_GELUS)}, not {approximate!r}")
        self.approximate = approximate

    def forward(self, x: tn.Tensor) -> tn.Tensor:
        return _GELUS[self.approximate](x)


_GELUS: dict[str, Callable[[tn.Tensor], tn.Tensor]] = {
    "none": gelu,
    "tanh": gelu_tanh,
    "fast": gelu_fast_approx,
}


class GLU(Module):
    """`a * sigmoid(b)`, where `a` and `b` are the halves of `x` along `axis`.

        >>> tn.nn.GLU()(tn.array([2.0, 0.0])).tolist()
        [1.0]
    """

    @also_called(dim="axis")
    def __init__(self, axis: int = -1) -> None:
        self.axis = axis

    def forward(self, x: tn.Tensor) -> tn.Tensor:
        return glu(x, self.axis)


class HardShrink(Module):
    """`x` where its magnitude exceeds `lambd`, else 0.

        >>> tn.nn.HardShrink()(tn.array([-1.0, 0.5, 2.0])).tolist()
        [-1.0, 0.0, 2.0]
    """

    def __init__(self, lambd: float = 0.5) -> None:
        self.lambd = lambd

    def forward(self, x: tn.Tensor) -> tn.Tensor:
        return hard_shrink(x, self.lambd)


class Hardswish(Module):
    """`x * relu6(x + 3) / 6`.

        >>> tn.nn.Hardswish()(tn.array([0.0, 3.0])).tolist()
        [0.0, 3.0]
    """

    def forward(self, x: tn.Tensor) -> tn.Tensor:
        return tn.hardswish(x)


class HardTanh(Module):
    """`x` limited to [`min_val`, `max_val`].

        >>> tn.nn.HardTanh()(tn.array([-3.0, 0.5])).tolist()
        [-1.0, 0.5]
    """

    def __init__(self, min_val: float = -1.0, max_val: float = 1.0) -> None:
        self.min_val = min_val
        self.max_val = max_val

    def forward(self, x: tn.Tensor) -> tn.Tensor:
        return tn.hard_tanh(x, self.min_val, self.max_val)


class LeakyReLU(Module):
    """`x`, multiplied by `negative_slope` where it is negative.

        >>> tn.nn.LeakyReLU(0.25)(tn.array([-2.0, 3.0])).tolist()
        [-0.5, 3.0]
    """

    def __init__(self, negative_slope: float = 0.01) -> None:
        self.negative_slope = negative_slope

    def forward(self, x: tn.Tensor) -> tn.Tensor:
        return tn.leaky_relu(x, self.negative_slope)


class LogSigmoid(Module):
    """`log(sigmoid(x))`, without overflow.

        >>> tn.nn.LogSigmoid()(tn.array([-200.0])).tolist()
        [-200.0]
    """

    def forward(self, x: tn.Tensor) -> tn.Tensor:
        return tn.log_sigmoid(x)


class LogSoftmax(Module):
    """`log(softmax(x))` along `axis`, without overflow.

        >>> tn.nn.LogSoftmax()(tn.array([-200.0, 0.0])).tolist()
        [-200.0, 0.0]
    """

    @also_called(dim="axis")
    def __init__(self, axis: int = -1) -> None:
        self.axis = axis

    def forward(self, x: tn.Tensor) -> tn.Tensor:
        return tn.log_softmax(x, self.axis)


class Mish(Module):
    """`x * tanh(softplus(x))`.

        >>> tn.nn.Mish()(tn.array([0.0, 100.0])).tolist()
        [0.0, 100.0]
    """

    def forward(self, x: tn.Tensor) -> tn.Tensor:
        return tn.mish(x)


class PReLU(Module):
    """`x`, multiplied by a learned slope where it is negative.

    There is one slope, or one per channel of [batch, channels, ...], or with `channels_last` of
    [batch, ..., channels].

        >>> tn.nn.PReLU()(tn.array([-2.0, 3.0])).tolist()
        [-0.5, 3.0]
    """

    def __init__(
        self, num_parameters: int = 1, init: float = 0.25, *, channels_last: bool = False
    ) -> None:
        check_sizes(self, num_parameters=num_parameters)
        self.num_parameters = num_parameters
        self.weight = tn.full(num_parameters, init)
        self.channels_last = channels_last

    def forward(self, x: tn.Tensor) -> tn.Tensor:
        slopes = self.weight
        if self.num_parameters > 1:
            check_channels(self, x, self.num_parameters, ...)
            if not self.channels_last:
                slopes = tn.reshape(slopes, (-1,) + (1,) * (x.ndim - 2))
        return prelu(x, slopes)

    def describe(self) -> str:
        return described(self, self.num_parameters, channels_last=False)


class ReLU(Module):
    """`max(x, 0)`.

        >>> tn.nn.ReLU()(tn.array([-2.0, 3.0])).tolist()
        [0.0, 3.0]
    """

    def forward(self, x: tn.Tensor) -> tn.Tensor:
        return tn.relu(x)


class ReLU2(Module):
    """`relu(x)` squared.

        >>> tn.nn.ReLU2()(tn.array([-2.0, 3.0])).tolist()
        [0.0, 9.0]
    """

    def forward(self, x: tn.Tensor) -> tn.Tensor:
        return relu2(x)


class ReLU6(Module):
    """`x` limited to [0, 6].

        >>> tn.nn.ReLU6()(tn.array([-2.0, 3.0, 7.0])).tolist()
        [0.0, 3.0, 6.0]
    """

    def forward(self, x: tn.Tensor) -> tn.Tensor:
        return tn.relu6(x)


class SELU(Module):
    """A scaled `elu` whose constants preserve mean 0 and variance 1 from layer to layer.

        >>> tn.nn.SELU()(tn.array([0.0, 1.0])).tolist()
        [0.0, 1.0507010221481323]
    """

    def forward(self, x: tn.Tensor) -> tn.Tensor:
        return tn.selu(x)


class Sigmoid(Module):
    """`1 / (1 + exp(-x))`.

        >>> tn.nn.Sigmoid()(tn.array([0.0])).tolist()
        [0.5]
    """

    def forward(self, x: tn.Tensor) -> tn.Tensor:
        return tn.sigmoid(x)


class SiLU(Module):
    """`x * sigmoid(x)`.

        >>> tn.nn.SiLU()(tn.array([0.0, 100.0])).tolist()
        [0.0, 100.0]
    """

    def forward(self, x: tn.Tensor) -> tn.Tensor:
        return tn.silu(x)


class Softmax(Module):
    """`exp(x)`, scaled to sum to 1 along `axis`.

        >>> tn.nn.Softmax()(tn.array([1.0, 1.0])).tolist()
        [0.5, 0.5]
    """

    @also_called(dim="axis")
    def __init__(self, axis: int = -1) -> None:
        self.axis = axis

    def forward(self, x: tn.Tensor) -> tn.Tensor:
        return tn.softmax(x, self.axis)


class Softmin(Module):
    """`softmax(-x)` along `axis`.

        >>> tn.nn.Softmin()(tn.array([-200.0, 0.0])).tolist()
        [1.0, 0.0]
    """

    @also_called(dim="axis")
    def __init__(self, axis: int = -1) -> None:
        self.axis = axis

    def forward(self, x: tn.Tensor) -> tn.Tensor:
        return softmin(x, self.axis)


class Softplus(Module):
    """`log(1 + exp(x))`, without overflow.

        >>> tn.nn.Softplus()(tn.array([-200.0, 200.0])).tolist()
        [0.0, 200.0]
    """

    def forward(self, x: tn.Tensor) -> tn.Tensor:
        return tn.softplus(x)


class Softshrink(Module):
    """`x` shrunk towards 0 by `lambd`; 0 where its magnitude is at most `lambd`.

        >>> tn.nn.Softshrink()(tn.array([-1.0, 0.25])).tolist()
        [-0.5, 0.0]
    """

    def __init__(self, lambd: float = 0.5) -> None:
        self.lambd = lambd

    def forward(self, x: tn.Tensor) -> tn.Tensor:
        return softshrink(x, self.lambd)


class Softsign(Module):
    """`x / (1 + abs(x))`.

        >>> tn.nn.Softsign()(tn.array([-1.0, 3.0])).tolist()
        [-0.5, 0.75]
    """

    def forward(self, x: tn.Tensor) -> tn.Tensor:
        return tn.softsign(x)


class Step(Module):
    """1 where `x` exceeds `threshold`, else 0.

        >>> tn.nn.Step()(tn.array([-1.0, 2.0])).tolist()
        [0.0, 1.0]
    """

    def __init__(self, threshold: float = 0.0) -> None:
        self.threshold = threshold

    def forward(self, x: tn.Tensor) -> tn.Tensor:
        return step(x, self.threshold)


class Tanh(Module):
    """`tanh(x)`.

        >>> tn.nn.Tanh()(tn.array([0.0, 100.0])).tolist()
        [0.0, 1.0]
    """

    def forward(self, x: tn.Tensor) -> tn.Tensor:
        return tn.tanh(x)
