"""Optimizers: what makes new parameters from parameters and gradients.

    >>> optimizer = tn.optim.SGD(learning_rate=0.5)
    >>> optimizer.apply_gradients({"w": tn.array([2.0])}, {"w": tn.array([1.0])})
    {'w': tensor([0], dtype=float32)}
"""

from .adam import Adam, AdamW
from .optimizer import Optimizer
from .sgd import SGD

__all__ = ["SGD", "Adam", "AdamW", "Optimizer"]
