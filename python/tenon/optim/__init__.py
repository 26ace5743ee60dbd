"""Optimizers: what makes new parameters from parameters and gradients.

    >>> optimizer = tn.optim.SGD(learning_rate=0.5)
    >>> optimizer.apply_gradients({"w": tn.array([2.0])}, {"w": tn.array([1.0])})
    {'w': tensor([0.], dtype=float32)}
"""

from .. import nn as _nn  # noqa: F401  first: it imports optimizers, and they import its modules
from . import clipping, lr_scheduler, schedules
from .accumulation import accumulate
from .adafactor import Adafactor
from .adam import Adam, Adamax, AdamW
from .adaptive import AdaDelta, Adagrad, RMSprop
from .clipping import clip_grad_norm, clip_grad_norm_, clip_grad_value, clip_grad_value_
from .lbfgs import LBFGS
from .lion import Lion
from .multi import MultiOptimizer
from .muon import Muon
from .optimizer import Optimizer
from .schedules import (
    constant,
    cosine_decay,
    exponential_decay,
    join_schedules,
    linear_schedule,
    step_decay,
)
from .sgd import SGD

Adadelta = AdaDelta  # PyTorch's spelling

__all__ = [
    "LBFGS",
    "SGD",
    "AdaDelta",
    "Adadelta",
    "Adafactor",
    "Adagrad",
    "Adam",
    "AdamW",
    "Adamax",
    "Lion",
    "MultiOptimizer",
    "Muon",
    "Optimizer",
    "RMSprop",
    "accumulate",
    "clip_grad_norm",
    "clip_grad_norm_",
    "clip_grad_value",
    "clip_grad_value_",
    "clipping",
    "constant",
    "cosine_decay",
    "exponential_decay",
    "join_schedules",
    "linear_schedule",
    "lr_scheduler",
    "schedules",
    "step_decay",
]
