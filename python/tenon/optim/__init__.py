"""Optimizers: what makes new parameters from parameters and gradients.

    >>> optimizer = tn.optim.SGD(learning_rate=0.5)
    >>> optimizer.apply_gradients({"w": tn.array([2.0])}, {"w": tn.array([1.0])})
    {'w': tensor([0.], dtype=float32)}
"""

from typing import TYPE_CHECKING

from .. import nn as _nn  # noqa: F401  first: it imports optimizers, and they import its modules
from . import clipping, lr_scheduler, optimizers, schedules
from .accumulation import accumulate
from .clipping import clip_grad_norm, clip_grad_norm_, clip_grad_value, clip_grad_value_
from .lbfgs import LBFGS
from .multi import MultiOptimizer
from .optimizer import Optimizer
from .optimizers import *  # noqa: F403
from .schedules import (
    constant,
    cosine_decay,
    exponential_decay,
    join_schedules,
    linear_schedule,
    step_decay,
)

__all__ = [
    "LBFGS",
    "MultiOptimizer",
    "Optimizer",
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
__all__ += optimizers.__all__


if not TYPE_CHECKING:  # to type checkers it would say that every name exists

    def __getattr__(name: str) -> object:
        from .._advice import missing_name

        raise AttributeError(missing_name(name, globals(), __name__), name=name)
