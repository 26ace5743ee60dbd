"""Losses and optimizers written twice, for PyTorch and for Tenon, that must agree.

tools/record_training.py runs the first and keeps what they gave in tests/data/torch_training.npz;
test_losses.py and test_optim.py run the second.
"""

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

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


# Optimizers ---------------------------------------------------------------------------------

SHAPES = {"matrix": (4, 6), "tall": (5, 2), "vector": (4,), "cube": (2, 3, 2)}
MATRICES = ("matrix", "tall")
RECORDED = (3, 10)  # after so many steps


@dataclass
class Steps:
    """Steps of an optimizer from the same parameters with the same gradients on both sides."""

    name: str
    theirs: Callable[[Any], Any]  # from parameters to an optimizer
    ours: Callable[[], Any]
    schedule: Callable[[Any], Any] | None = None  # theirs; ours is the learning rate
    max_norm: float | None = None
    parameters: tuple[str, ...] = tuple(SHAPES)

    def drawn(self):
        """The parameters before, and the gradients of each step."""
        rng = np.random.default_rng(0)

        def arrays():
            return {name: rng.normal(size=shape) for name, shape in SHAPES.items()}

        made = [arrays() for _ in range(1 + max(RECORDED))]
        return [{name: each[name] for name in self.parameters} for each in made]


def steps(name, ours=None, parameters=tuple(SHAPES), names=None, **options):
    """An optimizer with the same options on both sides, but for `names` of ours."""
    names = names or {}
    text = ", ".join(f"{key}={value!r}" for key, value in options.items())
    return Steps(
        f"{name}({text})",
        lambda p: getattr(torch.optim, name)(p, **options),
        lambda: getattr(tn.optim, ours or name)(
            **{names.get(key, key): value for key, value in options.items()}
        ),
        parameters=parameters,
    )


def scheduled(title, ours, theirs):
    """SGD whose learning rate begins with 0.2."""
    return Steps(
        f"{title} of the learning rate",
        lambda p: torch.optim.SGD(p, lr=0.2),
        lambda: tn.optim.SGD(ours(tn.optim)),
        lambda optimizer: theirs(torch.optim.lr_scheduler, optimizer),
    )


ADAFACTOR = {"d": "clip_threshold", "beta2_decay": "decay_rate"}

OPTIMIZERS = [
    steps("SGD", lr=0.1),
    steps("SGD", lr=0.1, momentum=0.8, weight_decay=0.2, dampening=0.3),
    steps("SGD", lr=0.1, momentum=0.9, nesterov=True),
    steps("RMSprop"),
    steps("RMSprop", lr=0.05, alpha=0.8, eps=1e-3, weight_decay=0.1),
    steps("RMSprop", lr=0.01, momentum=0.9, centered=True),
    steps("Adagrad"),
    steps("Adagrad", lr=0.1, lr_decay=0.1, weight_decay=0.1, initial_accumulator_value=0.5),
    steps("Adafactor", names=ADAFACTOR),
    steps("Adafactor", lr=0.5, beta2_decay=-0.5, d=1.5, weight_decay=0.1, names=ADAFACTOR),
    steps("Adadelta"),
    steps("Adadelta", "AdaDelta", lr=0.5, rho=0.5, eps=1e-3, weight_decay=0.1),
    steps("Adam"),
    steps("Adam", lr=0.1, betas=(0.5, 0.75), eps=0.1, weight_decay=0.1),
    steps("Adam", lr=0.1, amsgrad=True),
    steps("AdamW"),
    steps("AdamW", lr=0.1, weight_decay=0.3, amsgrad=True),
    steps("Adamax"),
    steps("Adamax", lr=0.1, betas=(0.5, 0.75), eps=0.1, weight_decay=0.1),
    steps("Muon", parameters=MATRICES),
    steps("Muon", lr=0.1, weight_decay=0.3, momentum=0.5, nesterov=False, parameters=MATRICES),
    steps("Muon", lr=0.1, adjust_lr_fn="match_rms_adamw", ns_steps=3, parameters=MATRICES),
    scheduled(
        "exponential decay",
        lambda o: o.exponential_decay(0.2, 0.9),
        lambda s, optimizer: s.ExponentialLR(optimizer, 0.9),
    ),
    scheduled(
        "decay every 4 steps",
        lambda o: o.step_decay(0.2, 0.5, 4),
        lambda s, optimizer: s.StepLR(optimizer, 4, 0.5),
    ),
    scheduled(
        "cosine decay",
        lambda o: o.cosine_decay(0.2, 10, 0.01),
        lambda s, optimizer: s.CosineAnnealingLR(optimizer, 10, 0.01),
    ),
    scheduled(
        "linear decay",
        lambda o: o.linear_schedule(0.2, 0.05, 7),
        lambda s, optimizer: s.LinearLR(optimizer, 1.0, 0.25, 7),
    ),
    scheduled(
        "warm-up and decay",
        lambda o: o.join_schedules([o.linear_schedule(0.02, 0.2, 4), o.constant(0.2)], [4]),
        lambda s, optimizer: s.LinearLR(optimizer, 0.1, 1.0, 4),
    ),
    Steps(
        "clipped gradients",
        lambda p: torch.optim.AdamW(p, lr=0.1),
        lambda: tn.optim.AdamW(lr=0.1),
        max_norm=1.0,
    ),
    Steps(
        "gradients that need no clipping",
        lambda p: torch.optim.SGD(p, lr=0.1),
        lambda: tn.optim.SGD(lr=0.1),
        max_norm=1e3,
    ),
]


# Schedulers, and methods that evaluate the loss themselves ------------------------------------


@dataclass
class Rates:
    """The learning rates of a scheduler from 0.5 on, for as many steps as there are metrics."""

    name: str
    make: str  # of both, with the module of schedulers as `s` and the optimizer as `o`
    metrics: tuple[float | None, ...] = (None,) * 12

    def theirs(self, s, o):
        return eval(self.make, {"s": s, "o": o})

    def ours(self, o):
        return self.theirs(tn.optim.lr_scheduler, o)


PLATEAU = (5.0, 4.0, 4.0, 4.0, 4.0, 3.9999, 3.5, 3.5, 3.5, 3.5, 3.5, 3.5, 3.5, 3.5)

SCHEDULERS = [
    Rates("MultiStepLR", "s.MultiStepLR(o, [3, 7, 8], gamma=0.5)"),
    Rates("OneCycleLR", "s.OneCycleLR(o, 0.8, total_steps=12)"),
    Rates(
        "OneCycleLR linear",
        "s.OneCycleLR(o, 0.8, epochs=3, steps_per_epoch=4, anneal_strategy='linear')",
    ),
    Rates(
        "OneCycleLR of three phases",
        "s.OneCycleLR(o, 0.8, 12, three_phase=True, div_factor=4, final_div_factor=10)",
    ),
    Rates(
        "OneCycleLR without momentum",
        "s.OneCycleLR(o, 0.8, total_steps=13, cycle_momentum=False)",
        (None,) * 13,
    ),
    Rates("ReduceLROnPlateau", "s.ReduceLROnPlateau(o, patience=1, factor=0.5)", PLATEAU),
    Rates(
        "ReduceLROnPlateau upwards",
        "s.ReduceLROnPlateau(o, 'max', 0.5, 0, 0.2, 'abs', cooldown=1, min_lr=0.1)",
        tuple(-metric for metric in PLATEAU),
    ),
]


@dataclass
class Minimized:
    """Steps of LBFGS on the same function; it is written with what both libraries have."""

    name: str
    start: list[Any]
    loss: Callable[..., Any]
    options: dict[str, Any]
    steps: int = 3


def rosenbrock(x, y):
    return ((1 - x) ** 2).sum() + 10 * ((y - x**2) ** 2).sum()


def quartic(x, y):
    return ((x - 1) ** 4).sum() + ((y + 2 * x[:2]) ** 2).sum() + 0.1 * (x * x).sum()


VALLEY = [np.array([-1.2, 0.5]), np.array([1.0, -0.3])]
BOWL = [np.array([3.0, -2.0, 0.5]), np.array([1.0, -1.0])]

MINIMIZED = [
    Minimized("LBFGS", BOWL, quartic, {"lr": 0.1}),
    Minimized("LBFGS that remembers little", BOWL, quartic, {"lr": 0.2, "history_size": 2}),
    Minimized("LBFGS of few evaluations", BOWL, quartic, {"lr": 0.1, "max_iter": 4, "max_eval": 3}),
    Minimized("LBFGS searching", VALLEY, rosenbrock, {"line_search_fn": "strong_wolfe"}),
    Minimized(
        "LBFGS searching from afar",
        BOWL,
        quartic,
        {"lr": 10.0, "line_search_fn": "strong_wolfe", "max_iter": 6},
    ),
]
