"""Muon."""

from __future__ import annotations

import math
from typing import Any

import tenon as tn

from .optimizer import Decay, Optimizer, Rate, both_habits

# What one step of the iteration makes of a singular value: a*s + b*s**3 + c*s**5. It need not
# converge to 1: values between 0.7 and 1.2 after few steps train as well (Jordan and others, 2024).
_A, _B, _C = 3.4445, -4.7750, 2.0315
MOST_STEPS = 1000


class Muon(Optimizer):
    """Muon (Jordan and others, 2024): steps whose singular values are all about 1.

        m = momentum * m + (1 - momentum) * gradient
        w = w - rate * orthogonal(momentum * m + (1 - momentum) * gradient)

    Without `nesterov` it is `orthogonal(m)`. `ns_steps` Newton-Schulz iterations make the matrix
    orthogonal, in the type of the parameter and at least float32. A matrix with more rows than
    columns has the rate `learning_rate * sqrt(rows / columns)`; with
    `adjust_lr_fn="match_rms_adamw"` all have `0.2 * learning_rate * sqrt(max(rows, columns))`, and
    then take the learning rates of AdamW. Weight decay is `decoupled`.

    It is for the matrices inside a model. Of parameters with more axes, as those of convolutions,
    the axes after the first count as one; vectors take plain steps with momentum. Embeddings, the
    last layer and vectors are better left to another optimizer:

        >>> hidden = lambda name, w: w.ndim > 1 and "embedding" not in name
        >>> optimizer = tn.optim.MultiOptimizer([tn.optim.Muon(0.02), tn.optim.AdamW()], [hidden])
    """

    decoupled = True

    @both_habits
    def __init__(
        self,
        learning_rate: Rate = 1e-3,
        momentum: float = 0.95,
        weight_decay: Decay = 0.1,
        nesterov: bool = True,
        ns_steps: int = 5,
        eps: float = 1e-7,
        adjust_lr_fn: str | None = None,
    ) -> None:
        super().__init__(learning_rate, weight_decay)
        self._check_shares(momentum=momentum)
        if adjust_lr_fn not in (None, "original", "match_rms_adamw"):
            self._refuse(f"adjust_lr_fn is 'original' or 'match_rms_adamw', not {adjust_lr_fn!r}")
        self.momentum, self.nesterov, self.adjust_lr_fn = momentum, nesterov, adjust_lr_fn
        if not 0 <= ns_steps <= MOST_STEPS:
            self._refuse(f"ns_steps must be at least 0 and at most {MOST_STEPS}, not {ns_steps}")
        self.ns_steps, self.eps = ns_steps, eps

    def init_single(self, parameter: tn.Tensor, state: dict[str, Any]) -> None:
        state["m"] = tn.zeros_like(parameter)

    def apply_single(
        self, gradient: tn.Tensor, parameter: tn.Tensor, state: dict[str, Any]
    ) -> tn.Tensor:
        m = state["m"] = self.momentum * state["m"] + (1 - self.momentum) * gradient
        change = self.momentum * m + (1 - self.momentum) * gradient if self.nesterov else m
        if change.ndim < 2:
            return parameter - self.learning_rate * change
        matrix = change.reshape(change.shape[0], -1)
        change = self._orthogonal(matrix).reshape(change.shape)
        return parameter - self._adjustment(*matrix.shape) * self.learning_rate * change

    def _adjustment(self, rows: int, columns: int) -> float:
        if self.adjust_lr_fn == "match_rms_adamw":
            return 0.2 * math.sqrt(max(rows, columns))
        return math.sqrt(max(1, rows / columns))

    def _orthogonal(self, x: tn.Tensor) -> tn.Tensor:
        """`x` with singular values of about 1, by products with the smaller of its squares."""
        if x.shape[0] > x.shape[1]:
            return self._orthogonal(x.T).T
        x = x / tn.maximum(tn.linalg.vector_norm(x), self.eps)  # no singular value above 1
        for _ in range(self.ns_steps):
            square = x @ x.T
            x = _A * x + (_B * square + _C * square @ square) @ x
        return x
