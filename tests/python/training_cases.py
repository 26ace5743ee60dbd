"""Losses and optimizers written twice, for PyTorch and for Tenon, that must agree.

tools/record_training.py runs the first and keeps what they gave in tests/data/torch_training.npz;
test_losses.py and test_optim.py run the second.
"""

from dataclasses import dataclass
from typing import Any, Callable

import numpy as np

from torch_cases import Case, F, below, positive, real, tn, torch


def signs(*shape):
    return lambda rng: rng.choice([-1.0, 1.0], shape)


def probabilities(*shape):
    return lambda rng: rng.dirichlet(np.ones(shape[-1]), shape[:-1])


def log_probabilities(*shape):
    return lambda rng: np.log(probabilities(*shape)(rng))


def loss(name, inputs, theirs, of="", **options):
    """`tn.nn.losses.name` with options; its results are those of every reduction."""

    def ours(*args, reduction):
        return getattr(tn.nn.losses, name)(*args, **options, reduction=reduction)

    def every(f):
        return lambda *args: [f(*args, reduction=r) for r in ("none", "mean", "sum")]

    return Case(f"{name} {of}".strip(), inputs, every(theirs), every(ours))


def reduced(pointwise):
    """A loss that PyTorch does not have, from its ops."""

    def made(*args, reduction):
        value = pointwise(*args)
        return value if reduction == "none" else getattr(value, reduction)()

    return made


def called(name, **options):
    """The function of torch.nn.functional."""
    return lambda *args, reduction: getattr(F, name)(*args, **options, reduction=reduction)


def module(name, inputs, **options):
    """A loss that is a module of the same name in both libraries."""
    text = ", ".join(f"{key}={value!r}" for key, value in options.items())
    return Case(
        f"{name}({text})",
        inputs,
        lambda *x: getattr(torch.nn, name)(**options)(*x),
        lambda *x: getattr(tn.nn, name)(**options)(*x),
    )


PAIR = [real(4, 3), real(4, 3)]
SMOOTH = {"label_smoothing": 0.1}
CLASSES = [real(5, 4), below(4, 5)]
IMAGES = [real(2, 4, 3), below(4, 2, 3)]
LOGITS = [real(4, 3, lo=-9, hi=9), real(4, 3, lo=0, hi=1)]
TRIPLES = [real(4, 3), real(4, 3), real(4, 3)]
RANKED = [real(5), real(5), signs(5)]
LOGS = [log_probabilities(4, 3), log_probabilities(4, 3)]


LOSSES = [
    loss("cross_entropy", CLASSES, called("cross_entropy")),
    loss("cross_entropy", CLASSES, called("cross_entropy", **SMOOTH), "smoothed", **SMOOTH),
    loss("cross_entropy", IMAGES, called("cross_entropy"), "of places", axis=1),
    loss(
        "cross_entropy",
        CLASSES,
        called("cross_entropy", ignore_index=1),
        "without a class",
        ignore_index=1,
    ),
    loss(
        "cross_entropy",
        [real(5, 4), probabilities(5, 4)],
        called("cross_entropy"),
        "of probabilities",
    ),
    loss("nll_loss", CLASSES, called("nll_loss")),
    loss("nll_loss", IMAGES, called("nll_loss", ignore_index=2), "of some", axis=1, ignore_index=2),
    loss("binary_cross_entropy", LOGITS, called("binary_cross_entropy_with_logits")),
    loss(
        "binary_cross_entropy",
        [*LOGITS, positive(4, 3)],
        reduced(lambda x, t, w: w * F.binary_cross_entropy_with_logits(x, t, reduction="none")),
        "with weights",
    ),
    loss(
        "binary_cross_entropy",
        [real(4, 3, lo=0, hi=1), real(4, 3, lo=0, hi=1)],
        called("binary_cross_entropy"),
        "of probabilities",
        with_logits=False,
    ),
    loss("mse_loss", PAIR, called("mse_loss")),
    loss("l1_loss", PAIR, called("l1_loss")),
    loss("huber_loss", PAIR, called("huber_loss")),
    loss("huber_loss", PAIR, called("huber_loss", delta=0.3), "from 0.3", delta=0.3),
    loss("smooth_l1_loss", PAIR, called("smooth_l1_loss")),
    loss("smooth_l1_loss", PAIR, called("smooth_l1_loss", beta=0.3), "from 0.3", beta=0.3),
    loss("smooth_l1_loss", PAIR, called("smooth_l1_loss", beta=0.0), "not smooth", beta=0.0),
    loss("log_cosh_loss", PAIR, reduced(lambda x, t: (x - t).cosh().log())),
    loss("gaussian_nll_loss", [*PAIR, positive(4, 3)], called("gaussian_nll_loss")),
    loss(
        "gaussian_nll_loss",
        [*PAIR, positive(4, 3)],
        called("gaussian_nll_loss", full=True, eps=1.0),
        "in full, of small variances",
        full=True,
        eps=1.0,
    ),
    loss(
        "kl_div_loss",
        LOGS,
        reduced(lambda x, t: F.kl_div(x, t, reduction="none", log_target=True).sum(-1)),
    ),
    loss("hinge_loss", [real(5), signs(5)], reduced(lambda x, t: (1 - x * t).relu())),
    loss("margin_ranking_loss", RANKED, called("margin_ranking_loss")),
    loss(
        "margin_ranking_loss",
        RANKED,
        called("margin_ranking_loss", margin=0.5),
        "by 0.5",
        margin=0.5,
    ),
    loss("triplet_loss", TRIPLES, called("triplet_margin_loss")),
    loss(
        "triplet_loss", TRIPLES, called("triplet_margin_loss", p=3, margin=2), "p=3", p=3, margin=2
    ),
    loss("cosine_similarity_loss", PAIR, reduced(lambda x, y: F.cosine_similarity(x, y))),
    loss(
        "cosine_similarity_loss",
        PAIR,
        reduced(lambda x, y: F.cosine_similarity(x, y, dim=0)),
        "of columns",
        axis=0,
    ),
    module("BCELoss", [real(4, 3, lo=0, hi=1), real(4, 3, lo=0, hi=1)]),
    module("BCEWithLogitsLoss", LOGITS, reduction="sum"),
    module("CrossEntropyLoss", CLASSES),
    module("CrossEntropyLoss", IMAGES, ignore_index=1, label_smoothing=0.2),
    module("CrossEntropyLoss", [real(2, 4, 3), probabilities(2, 4, 3)]),
    module("GaussianNLLLoss", [*PAIR, positive(4, 3)]),
    module("HuberLoss", PAIR, delta=0.5),
    module("KLDivLoss", [log_probabilities(4, 3), probabilities(4, 3)]),
    module("KLDivLoss", [log_probabilities(4, 3), probabilities(4, 3)], reduction="batchmean"),
    module("KLDivLoss", LOGS, log_target=True, reduction="sum"),
    module("L1Loss", PAIR),
    module("MSELoss", PAIR),
    module("MarginRankingLoss", RANKED, margin=0.1),
    module("NLLLoss", CLASSES),
    module("SmoothL1Loss", PAIR, beta=0.5),
    module("TripletMarginLoss", TRIPLES, margin=0.5),
]
