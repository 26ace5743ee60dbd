"""Neural networks: modules, the functions they are made of, losses, and the optimizers.

    >>> model = tn.nn.Sequential(tn.nn.Linear(3, 8), tn.nn.relu, tn.nn.Linear(8, 1))
    >>> model(tn.zeros((5, 3))).shape
    (5, 1)
"""

from .._core import gelu, relu
from . import losses
from .layers import Dropout, Linear, Sequential
from .loss_modules import (
    BCELoss,
    BCEWithLogitsLoss,
    CrossEntropyLoss,
    GaussianNLLLoss,
    HuberLoss,
    KLDivLoss,
    L1Loss,
    MarginRankingLoss,
    MSELoss,
    NLLLoss,
    SmoothL1Loss,
    TripletMarginLoss,
)
from .module import Module, value_and_grad

from ..optim import SGD, Adam, AdamW, Optimizer  # isort: skip (it imports Module from here)

__all__ = [
    "SGD",
    "Adam",
    "AdamW",
    "BCELoss",
    "BCEWithLogitsLoss",
    "CrossEntropyLoss",
    "Dropout",
    "GaussianNLLLoss",
    "HuberLoss",
    "KLDivLoss",
    "L1Loss",
    "Linear",
    "MSELoss",
    "MarginRankingLoss",
    "Module",
    "NLLLoss",
    "Optimizer",
    "Sequential",
    "SmoothL1Loss",
    "TripletMarginLoss",
    "gelu",
    "losses",
    "relu",
    "value_and_grad",
]
