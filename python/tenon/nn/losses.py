"""Losses. `reduction` is "none" (a loss per example), "mean" or "sum"."""

from __future__ import annotations

import tenon as tn

from .. import _core


def cross_entropy(
    logits: tn.Tensor,
    targets: tn.Tensor,
    weights: tn.Tensor | None = None,
    axis: int = -1,
    label_smoothing: float = 0.0,
    reduction: str = "none",
) -> tn.Tensor:
    """Minus the log of the probability that `softmax(logits)` gives the targets.

    They are classes, without `axis`, or probabilities like `logits`. `weights` multiply the losses.
    """
    loss = tn.cross_entropy(logits, targets, "none", label_smoothing, axis)
    return _reduced("cross_entropy", loss, weights, reduction)


def binary_cross_entropy(
    inputs: tn.Tensor,
    targets: tn.Tensor,
    weights: tn.Tensor | None = None,
    with_logits: bool = True,
    reduction: str = "mean",
) -> tn.Tensor:
    """Minus the log of the probability of targets 0 and 1 (or between).

    `inputs` are logits, or the probabilities of 1 when not `with_logits`. The log of a
    probability counts as at least -100.
    """
    _check_alike("binary_cross_entropy", inputs, targets)
    if with_logits:
        loss = tn.softplus(inputs) - inputs * targets
    else:
        log_true = tn.clip(tn.log(inputs), min=-100)
        log_false = tn.clip(tn.log1p(-inputs), min=-100)
        loss = -(targets * log_true + (1 - targets) * log_false)
    return _reduced("binary_cross_entropy", loss, weights, reduction)


def mse_loss(predictions: tn.Tensor, targets: tn.Tensor, reduction: str = "mean") -> tn.Tensor:
    """The squared differences."""
    _check_alike("mse_loss", predictions, targets)
    return _reduced("mse_loss", tn.square(predictions - targets), None, reduction)


def _check_alike(name: str, inputs: tn.Tensor, targets: tn.Tensor) -> None:
    """Other shapes would broadcast, to a loss that nobody meant."""
    if inputs.shape != targets.shape:
        _core._fail(
            "value", f"{name}: shapes differ: {inputs.shape} (inputs) and {targets.shape} (targets)"
        )


def _reduced(
    name: str, loss: tn.Tensor, weights: tn.Tensor | None, reduction: str
) -> tn.Tensor:
    if weights is not None:
        loss = loss * weights
    if reduction == "mean":
        return tn.mean(loss)
    if reduction == "sum":
        return tn.sum(loss)
    if reduction != "none":
        _core._fail("value", f"{name}: reduction is 'none', 'mean' or 'sum', not {reduction!r}")
    return loss
