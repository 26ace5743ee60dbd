"""Stochastic gradient descent."""

from __future__ import annotations

from typing import Any

import tenon as tn

from .optimizer import Decay, Optimizer, Rate, both_habits


class SGD(Optimizer):
    """Stochastic gradient descent, with momentum

        v = momentum * v + (1 - dampening) * gradient
        w = w - learning_rate * v

    where the first `v` is the gradient. With `nesterov` it is `gradient + momentum * v` in place of
    `v`.
    """

    @both_habits
    def __init__(
        self,
        learning_rate: Rate = 1e-3,
        momentum: float = 0.0,
        weight_decay: Decay = 0.0,
        dampening: float = 0.0,
        nesterov: bool = False,
    ) -> None:
        super().__init__(learning_rate, weight_decay)
        self._check_not_negative(momentum=momentum)
        if nesterov and (momentum == 0 or dampening != 0):
            self._refuse("nesterov needs a momentum above 0 and no dampening")
        self.momentum, self.dampening, self.nesterov = momentum, dampening, nesterov

    def init_single(self, parameter: tn.Tensor, state: dict[str, Any]) -> None:
        if self.momentum > 0:
            state["v"] = tn.zeros_like(parameter)

    def apply_single(
        self, gradient: tn.Tensor, parameter: tn.Tensor, state: dict[str, Any]
    ) -> tn.Tensor:
        if self.momentum > 0:
            added = gradient
            if self.dampening != 0:
                first = self.state["step"] == 1
                added = tn.where(first, 1.0, 1 - self.dampening) * gradient
            v = self.momentum * state["v"] + added
            state["v"] = v
            gradient = gradient + self.momentum * v if self.nesterov else v
        return parameter - self.learning_rate * gradient
