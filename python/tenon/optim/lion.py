"""Lion."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import tenon as tn

from .optimizer import Decay, Optimizer, Rate, both_habits


class Lion(Optimizer):
    """Lion (Chen and others, 2023), whose steps all have one size, with `decoupled` weight decay:

        w = w - learning_rate * sign(beta1 * m + (1 - beta1) * gradient)
        m = beta2 * m + (1 - beta2) * gradient

    Its learning rate is 3 to 10 times smaller than that of AdamW, and its weight decay larger.
    """

    decoupled = True

    @both_habits
    def __init__(
        self,
        learning_rate: Rate = 1e-4,
        betas: Sequence[float] = (0.9, 0.99),
        weight_decay: Decay = 0.0,
    ) -> None:
        super().__init__(learning_rate, weight_decay)
        self._check_shares(betas=betas)
        self.betas = betas

    def init_single(self, parameter: tn.Tensor, state: dict[str, Any]) -> None:
        state["m"] = tn.zeros_like(parameter)

    def apply_single(
        self, gradient: tn.Tensor, parameter: tn.Tensor, state: dict[str, Any]
    ) -> tn.Tensor:
        beta1, beta2 = self.betas
        m = state["m"]
        state["m"] = beta2 * m + (1 - beta2) * gradient
        return parameter - self.learning_rate * tn.sign(beta1 * m + (1 - beta1) * gradient)
