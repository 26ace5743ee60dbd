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
from .checks import type_text
from .module import Module


class Loss(Module):
    """The base of the losses: a function, and its options as attributes."""

    buffers = ("weight", "pos_weight")  # what is given is not trained
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
        tensors = [n for n, v in options.items() if isinstance(v, tn.Tensor)]
        unusual = [n for n, v in options.items() if n not in tensors and v != self.defaults[n]]
        texts = [f"{n}={type_text(options[n])}" for n in tensors]
        return ", ".join(texts + [f"{n}={options[n]!r}" for n in unusual])


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
    weight: tn.Tensor | None = None,
    label_smoothing: float = 0.0,
    ignore_index: int = -100,
    reduction: str = "mean",
) -> tn.Tensor:
    """`weight` is one number for each class; the mean is that of weighted losses."""
    axis = _class_axis(inputs)
    if weight is not None:
        log_p = tn.log_softmax(inputs, axis=axis)
        return _weighted(log_p, targets, weight, label_smoothing, ignore_index, reduction)
    return losses.cross_entropy(
        inputs, targets, None, axis, label_smoothing, reduction, ignore_index
    )


def nll_loss(
    inputs: tn.Tensor,
    targets: tn.Tensor,
    weight: tn.Tensor | None = None,
    ignore_index: int = -100,
    reduction: str = "mean",
) -> tn.Tensor:
    if weight is not None:
        return _weighted(inputs, targets, weight, 0.0, ignore_index, reduction)
    return losses.nll_loss(inputs, targets, _class_axis(inputs), reduction, ignore_index)


def _weighted(
    log_p: tn.Tensor,
    targets: tn.Tensor,
    weight: tn.Tensor,
    label_smoothing: float,
    ignore_index: int,
    reduction: str,
) -> tn.Tensor:
    """Minus the log probabilities of the targets, times the weights of their classes."""
    axis = _class_axis(log_p)
    classes = log_p.shape[axis]
    if weight.shape != (classes,):
        _core._fail("value", f"weight: expected shape ({classes},), given {weight.shape}")
    weighted = log_p * tn.reshape(weight, (-1,) + (1,) * (log_p.ndim - 1 - axis))
    if targets.shape == log_p.shape:
        targets = (1 - label_smoothing) * targets + label_smoothing / classes
        return losses.reduced("weight", -tn.sum(weighted * targets, axis=axis), reduction)
    counted = targets != ignore_index
    targets = tn.where(counted, targets, 0)
    chosen = losses.nll_loss(weighted, targets, axis)
    loss = (1 - label_smoothing) * chosen
    if label_smoothing != 0:
        loss = loss - label_smoothing / classes * tn.sum(weighted, axis=axis)
    loss = tn.where(counted, loss, 0)
    if reduction != "mean":
        return losses.reduced("weight", loss, reduction)
    return tn.sum(loss) / tn.sum(tn.where(counted, tn.take(weight, targets), 0))


def binary_cross_entropy(
    inputs: tn.Tensor,
    targets: tn.Tensor,
    weight: tn.Tensor | None = None,
    reduction: str = "mean",
) -> tn.Tensor:
    return losses.binary_cross_entropy(inputs, targets, weight, False, reduction)


def binary_cross_entropy_with_logits(
    inputs: tn.Tensor,
    targets: tn.Tensor,
    weight: tn.Tensor | None = None,
    reduction: str = "mean",
    pos_weight: tn.Tensor | None = None,
) -> tn.Tensor:
    """`pos_weight` multiplies the losses of targets 1: above 1, fewer of them are missed."""
    if pos_weight is None:
        return losses.binary_cross_entropy(inputs, targets, weight, True, reduction)
    losses.check_alike("BCEWithLogitsLoss", inputs=inputs, targets=targets)
    positive = pos_weight * targets * tn.softplus(-inputs)
    loss = positive + (1 - targets) * tn.softplus(inputs)
    return losses.reduced("BCEWithLogitsLoss", loss, reduction, weight)


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
