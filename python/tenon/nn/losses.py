"""Losses.

`reduction` is "none" (a loss per example), "mean" or "sum". Shapes must be equal where they should
be: what would broadcast is an error, since it gives a loss that was not meant. Gradients are finite
also where a loss has a kink or a logarithm its pole.

    >>> tn.nn.losses.mse_loss(tn.array([1.0, 2.0]), tn.array([3.0, 2.0]))
    tensor(2., dtype=float32)
"""

from __future__ import annotations

import math
from typing import Any

import tenon as tn

from .. import _core
from ..custom import custom_function


def cross_entropy(
    logits: tn.Tensor,
    targets: tn.Tensor,
    weights: tn.Tensor | None = None,
    axis: int = -1,
    label_smoothing: float = 0.0,
    reduction: str = "none",
    ignore_index: int | None = None,
) -> tn.Tensor:
    """Minus the log of the probability that `softmax(logits)` gives the targets.

    They are classes, without `axis`, or probabilities like `logits`. `weights` multiply the losses.
    Those of class `ignore_index` are 0 and do not count in the mean.

        >>> logits = tn.array([[2.0, 0.0], [0.0, 0.0]])
        >>> tn.nn.losses.cross_entropy(logits, tn.array([0, 1]))
        tensor([0.12692809, 0.6931472 ], dtype=float32)
    """
    if ignore_index is None or targets.shape == logits.shape:
        plain = reduction if weights is None and reduction in _REDUCTIONS else "none"
        loss = tn.cross_entropy(logits, targets, plain, label_smoothing, axis)
        return loss if plain != "none" else reduced("cross_entropy", loss, reduction, weights)
    counted = targets != ignore_index
    loss = tn.cross_entropy(logits, tn.where(counted, targets, 0), "none", label_smoothing, axis)
    return reduced("cross_entropy", loss, reduction, weights, counted)


def nll_loss(
    inputs: tn.Tensor,
    targets: tn.Tensor,
    axis: int = -1,
    reduction: str = "none",
    ignore_index: int | None = None,
) -> tn.Tensor:
    """Minus the log probability, in `inputs`, of the target classes.

    `targets` are without `axis`. A class outside the range is an error, which compiled code checks
    under `tn.debug_indices` only; otherwise its loss is NaN.

        >>> tn.nn.losses.nll_loss(tn.log(tn.array([[0.25, 0.75]])), tn.array([1]))
        tensor([0.28768206], dtype=float32)
    """
    without = list(inputs.shape)
    classes = without.pop(axis)
    if tuple(without) != targets.shape:
        _core._fail(
            "value",
            f"nll_loss: targets of shape {tuple(without)} fit inputs of shape {inputs.shape}, "
            f"not {targets.shape}",
        )
    counted = None if ignore_index is None else targets != ignore_index
    if counted is not None:
        targets = tn.where(counted, targets, 0)
    known = tn.logical_and(targets >= 0, targets < classes)
    loss = tn.where(known, -_of_classes(inputs, targets, axis % inputs.ndim), tn.nan)
    return reduced("nll_loss", loss, reduction, counted=counted)


def _of_classes(x: tn.Tensor, classes: tn.Tensor, axis: int) -> tn.Tensor:
    """`x` at the classes along `axis`, of which negative ones do not count from the end."""
    places = [tn.expand_dims(classes, axis=axis)]
    for k in range(axis + 1, x.ndim):
        shape = [1] * x.ndim
        shape[k] = x.shape[k]
        places.append(tn.reshape(tn.arange(x.shape[k], device=x.device), shape))
    axes = list(range(axis, x.ndim))
    return tn.squeeze(tn.gather(x, places, axes=axes, batch_dims=axis), axis=axis)


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

        >>> tn.nn.losses.binary_cross_entropy(tn.array([0.0, 100.0]), tn.array([1.0, 0.0]),
        ...                                   reduction="none")
        tensor([  0.6931472, 100.       ], dtype=float32)
    """
    check_alike("binary_cross_entropy", inputs=inputs, targets=targets)
    if with_logits:
        loss = tn.softplus(inputs) - inputs * targets
    else:
        loss = _bernoulli_loss(inputs, targets)
    return reduced("binary_cross_entropy", loss, reduction, weights)


@custom_function
def _bernoulli_loss(p: tn.Tensor, targets: tn.Tensor) -> tn.Tensor:
    log_true, log_false = _bounded_logs(p)
    return -(targets * log_true + (1 - targets) * log_false)


@_bernoulli_loss.jvp
def _bernoulli_loss_jvp(primals: tuple[tn.Tensor, ...], tangents: tuple[tn.Tensor, ...]) -> Any:
    """The slope is bounded but large, so that a prediction that is surely wrong still moves."""
    p, targets = primals
    log_true, log_false = _bounded_logs(p)
    slope = (p - targets) / tn.maximum(p * (1 - p), 1e-12)
    return slope * tangents[0] + (log_false - log_true) * tangents[1]


def _bounded_logs(p: tn.Tensor) -> tuple[tn.Tensor, tn.Tensor]:
    return tn.clip(tn.log(p), min=-100), tn.clip(tn.log1p(-p), min=-100)


def mse_loss(predictions: tn.Tensor, targets: tn.Tensor, reduction: str = "mean") -> tn.Tensor:
    """The squared differences."""
    check_alike("mse_loss", predictions=predictions, targets=targets)
    return reduced("mse_loss", tn.square(predictions - targets), reduction)


def l1_loss(predictions: tn.Tensor, targets: tn.Tensor, reduction: str = "mean") -> tn.Tensor:
    """The absolute differences."""
    check_alike("l1_loss", predictions=predictions, targets=targets)
    return reduced("l1_loss", tn.abs(predictions - targets), reduction)


def huber_loss(
    inputs: tn.Tensor, targets: tn.Tensor, delta: float = 1.0, reduction: str = "none"
) -> tn.Tensor:
    """Half the squared difference up to `delta`, and from there on along its tangent.

        >>> tn.nn.losses.huber_loss(tn.array([0.5, 3.0]), tn.array([0.0, 0.0]))
        tensor([0.125, 2.5  ], dtype=float32)
    """
    check_alike("huber_loss", inputs=inputs, targets=targets)
    _check_positive("huber_loss", "delta", delta)
    return reduced("huber_loss", _huber(inputs - targets, delta), reduction)


def smooth_l1_loss(
    predictions: tn.Tensor, targets: tn.Tensor, beta: float = 1.0, reduction: str = "mean"
) -> tn.Tensor:
    """`huber_loss` with `delta=beta`, divided by `beta`: absolute differences, smooth around 0."""
    if beta == 0:
        return l1_loss(predictions, targets, reduction)
    check_alike("smooth_l1_loss", predictions=predictions, targets=targets)
    _check_positive("smooth_l1_loss", "beta", beta)
    return reduced("smooth_l1_loss", _huber(predictions - targets, beta) / beta, reduction)


def _huber(error: tn.Tensor, delta: float) -> tn.Tensor:
    size = tn.abs(error)
    curved = tn.minimum(size, delta)
    return 0.5 * tn.square(curved) + delta * (size - curved)


def log_cosh_loss(inputs: tn.Tensor, targets: tn.Tensor, reduction: str = "none") -> tn.Tensor:
    """`log(cosh(inputs - targets))`: like half the square near 0, like the size far from it.

        >>> tn.nn.losses.log_cosh_loss(tn.array([1e-4, 1000.0]), tn.array([0.0, 0.0]))
        tensor([4.9999995e-09, 9.9930682e+02], dtype=float32)
    """
    check_alike("log_cosh_loss", inputs=inputs, targets=targets)
    size = tn.abs(inputs - targets)
    near = tn.log1p(2 * tn.square(tn.sinh(tn.minimum(size, 1) / 2)))  # nothing cancels
    far = size + tn.log1p(tn.exp(-2 * size)) - math.log(2)  # nothing overflows
    return reduced("log_cosh_loss", tn.where(size < 1, near, far), reduction)


def gaussian_nll_loss(
    inputs: tn.Tensor,
    targets: tn.Tensor,
    vars: tn.Tensor,
    full: bool = False,
    eps: float = 1e-6,
    reduction: str = "mean",
) -> tn.Tensor:
    """Minus the log density of `targets` for normal variables with means `inputs`.

    `vars` are their variances, taken as at least `eps`; the constant term is there when `full`.
    """
    check_alike("gaussian_nll_loss", inputs=inputs, targets=targets, vars=vars)
    # A variance below eps has the slope at eps, which makes it grow again.
    bounded = vars + tn.stop_gradient(tn.maximum(vars, eps) - vars)
    loss = 0.5 * (tn.log(bounded) + tn.square(inputs - targets) / bounded)
    if full:
        loss = loss + 0.5 * math.log(2 * math.pi)
    return reduced("gaussian_nll_loss", loss, reduction)


def kl_div_loss(
    inputs: tn.Tensor, targets: tn.Tensor, axis: int = -1, reduction: str = "none"
) -> tn.Tensor:
    """How far `inputs` are from `targets`, both log probabilities along `axis`:

        sum(exp(targets) * (targets - inputs))
    """
    check_alike("kl_div_loss", inputs=inputs, targets=targets)
    p = tn.exp(targets)
    return reduced("kl_div_loss", tn.sum(divergence(p, targets, inputs), axis=axis), reduction)


def divergence(p: tn.Tensor, log_p: tn.Tensor, inputs: tn.Tensor) -> tn.Tensor:
    """What is impossible adds nothing, though its log is -inf."""
    return p * tn.where(p > 0, log_p - inputs, 0)


def hinge_loss(inputs: tn.Tensor, targets: tn.Tensor, reduction: str = "none") -> tn.Tensor:
    """`max(0, 1 - inputs * targets)`, with targets -1 and 1."""
    check_alike("hinge_loss", inputs=inputs, targets=targets)
    return reduced("hinge_loss", tn.relu(1 - inputs * targets), reduction)


def margin_ranking_loss(
    inputs1: tn.Tensor,
    inputs2: tn.Tensor,
    targets: tn.Tensor,
    margin: float = 0.0,
    reduction: str = "none",
) -> tn.Tensor:
    """`max(0, margin - targets * (inputs1 - inputs2))`.

    A target is 1 where the first input should be the larger one, and -1 otherwise.
    """
    check_alike("margin_ranking_loss", inputs1=inputs1, inputs2=inputs2, targets=targets)
    loss = tn.relu(margin - targets * (inputs1 - inputs2))
    return reduced("margin_ranking_loss", loss, reduction)


def triplet_loss(
    anchors: tn.Tensor,
    positives: tn.Tensor,
    negatives: tn.Tensor,
    axis: int = -1,
    p: float = 2,
    margin: float = 1.0,
    eps: float = 1e-6,
    reduction: str = "none",
) -> tn.Tensor:
    """`max(0, d(anchors, positives) - d(anchors, negatives) + margin)`.

    `d(x, y)` is the norm of order `p` of `x - y + eps` along `axis`.
    """
    check_alike("triplet_loss", anchors=anchors, positives=positives, negatives=negatives)

    def distance(others: tn.Tensor) -> tn.Tensor:
        return tn.linalg.vector_norm(anchors - others + eps, ord=p, axis=axis)

    loss = tn.relu(distance(positives) - distance(negatives) + margin)
    return reduced("triplet_loss", loss, reduction)


def cosine_similarity_loss(
    x1: tn.Tensor, x2: tn.Tensor, axis: int = 1, eps: float = 1e-8, reduction: str = "none"
) -> tn.Tensor:
    """The cosine of the angle between vectors along `axis`, 1 when they point the same way.

    Norms count as at least `eps`.

        >>> tn.nn.losses.cosine_similarity_loss(tn.array([[3.0, 4.0]]), tn.array([[4.0, 3.0]]))
        tensor([0.96], dtype=float32)
    """
    check_alike("cosine_similarity_loss", x1=x1, x2=x2)

    def norm(x: tn.Tensor) -> tn.Tensor:
        return tn.maximum(tn.linalg.vector_norm(x, axis=axis), eps)

    loss = tn.sum(x1 * x2, axis=axis) / (norm(x1) * norm(x2))
    return reduced("cosine_similarity_loss", loss, reduction)


_REDUCTIONS = ("none", "mean", "sum")


def check_alike(name: str, **tensors: tn.Tensor) -> None:
    first, *others = (x.shape for x in tensors.values())
    if any(first != other for other in others):  # hashing would ask symbolic sizes for numbers
        shapes = [f"{x.shape} ({argument})" for argument, x in tensors.items()]
        _core._fail("value", f"{name}: shapes differ: {', '.join(shapes[:-1])} and {shapes[-1]}")


def _check_positive(name: str, argument: str, value: float) -> None:
    if not value > 0:
        _core._fail("value", f"{name}: {argument} must be above 0, not {value}")


def reduced(
    name: str,
    loss: tn.Tensor,
    reduction: str,
    weights: tn.Tensor | None = None,
    counted: tn.Tensor | None = None,
) -> tn.Tensor:
    """The reduced loss, times `weights`, of those that are `counted`."""
    if reduction not in _REDUCTIONS:
        _core._fail("value", f"{name}: reduction is 'none', 'mean' or 'sum', not {reduction!r}")
    if weights is not None:
        if tn.broadcast_shapes(loss.shape, weights.shape) != loss.shape:
            shapes = f"{weights.shape} for losses of shape {loss.shape}"
            _core._fail("value", f"{name}: weights of shape {shapes}")
        loss = loss * weights
    if counted is not None:
        loss = tn.where(counted, loss, 0)
    if reduction == "none":
        return loss
    if reduction == "sum" or counted is None:
        return tn.mean(loss) if reduction == "mean" else tn.sum(loss)
    return tn.sum(loss) / tn.maximum(tn.sum(counted), 1)
