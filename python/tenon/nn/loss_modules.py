"""Losses as modules, with PyTorch's names and defaults.

    >>> tn.nn.HuberLoss(delta=0.5)(tn.array([0.0, 3.0]), tn.array([0.0, 0.0]))
    tensor(0.6875, dtype=float32)
"""

from __future__ import annotations

import inspect
from collections.abc import Callable
from typing import Any

import tenon as tn

from .. import _core
from . import losses
from .module import Module


class Loss(Module):
    """The base of the losses: a function, and its options as attributes."""

    function: Callable[..., tn.Tensor]
    defaults: dict[str, Any]

    def __init__(self, **options: Any) -> None:
        for name in options:
            if name not in self.defaults:
                known = f"; there are {', '.join(self.defaults)}"
                _core._fail("type", f"{type(self).__name__}: no option {name!r}{known}")
        vars(self).update(self.defaults | options)

    def forward(self, *inputs: tn.Tensor) -> tn.Tensor:
        return self.function(*inputs, **{name: getattr(self, name) for name in self.defaults})

    def describe(self) -> str:
        options = {name: getattr(self, name) for name in self.defaults}
        unusual = [f"{n}={v!r}" for n, v in options.items() if v != self.defaults[n]]
        return ", ".join(unusual)


def _loss(name: str, function: Callable[..., tn.Tensor]) -> type[Loss]:
    """The class of a loss, whose options are the arguments of `function` that have a default."""
    arguments = inspect.signature(function).parameters.values()
    defaults = {p.name: p.default for p in arguments if p.default is not p.empty}
    defaults["reduction"] = "mean"
    body = {
        "__doc__": f"`{function.__name__}` as a module, reduced to its mean.",
        "__module__": __name__,
        "function": staticmethod(function),
        "defaults": defaults,
    }
    return type(name, (Loss,), body)


def _class_axis(inputs: tn.Tensor) -> int:
    """PyTorch has classes after the axis of examples, if there is one."""
    return min(1, inputs.ndim - 1)


def cross_entropy(
    inputs: tn.Tensor,
    targets: tn.Tensor,
    label_smoothing: float = 0.0,
    ignore_index: int = -100,
    reduction: str = "mean",
) -> tn.Tensor:
    axis = _class_axis(inputs)
    return losses.cross_entropy(
        inputs, targets, None, axis, label_smoothing, reduction, ignore_index
    )


def nll_loss(
    inputs: tn.Tensor, targets: tn.Tensor, ignore_index: int = -100, reduction: str = "mean"
) -> tn.Tensor:
    return losses.nll_loss(inputs, targets, _class_axis(inputs), reduction, ignore_index)


def binary_cross_entropy(
    inputs: tn.Tensor, targets: tn.Tensor, reduction: str = "mean"
) -> tn.Tensor:
    return losses.binary_cross_entropy(inputs, targets, None, False, reduction)


def binary_cross_entropy_with_logits(
    inputs: tn.Tensor, targets: tn.Tensor, reduction: str = "mean"
) -> tn.Tensor:
    return losses.binary_cross_entropy(inputs, targets, None, True, reduction)


def kl_div(
    inputs: tn.Tensor, targets: tn.Tensor, log_target: bool = False, reduction: str = "mean"
) -> tn.Tensor:
    """PyTorch's mean is that of all elements; that of examples is "batchmean"."""
    losses.check_alike("KLDivLoss", inputs=inputs, targets=targets)
    if log_target:
        loss = losses.divergence(tn.exp(targets), targets, inputs)
    else:
        loss = losses.divergence(targets, tn.log(tn.where(targets > 0, targets, 1)), inputs)
    if reduction == "batchmean":
        return tn.sum(loss) / inputs.shape[0]
    return losses.reduced("KLDivLoss", loss, reduction)


BCELoss = _loss("BCELoss", binary_cross_entropy)
BCEWithLogitsLoss = _loss("BCEWithLogitsLoss", binary_cross_entropy_with_logits)
CrossEntropyLoss = _loss("CrossEntropyLoss", cross_entropy)
GaussianNLLLoss = _loss("GaussianNLLLoss", losses.gaussian_nll_loss)
HuberLoss = _loss("HuberLoss", losses.huber_loss)
KLDivLoss = _loss("KLDivLoss", kl_div)
L1Loss = _loss("L1Loss", losses.l1_loss)
MarginRankingLoss = _loss("MarginRankingLoss", losses.margin_ranking_loss)
MSELoss = _loss("MSELoss", losses.mse_loss)
NLLLoss = _loss("NLLLoss", nll_loss)
SmoothL1Loss = _loss("SmoothL1Loss", losses.smooth_l1_loss)
TripletMarginLoss = _loss("TripletMarginLoss", losses.triplet_loss)
