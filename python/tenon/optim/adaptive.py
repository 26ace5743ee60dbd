"""Optimizers that divide gradients by how large they were."""

from __future__ import annotations

from typing import Any

import tenon as tn

from .optimizer import Decay, Optimizer, Rate, both_habits


class RMSprop(Optimizer):
    """RMSprop (Hinton, 2012):

        v = alpha * v + (1 - alpha) * gradient**2
        w = w - learning_rate * gradient / (sqrt(v) + eps)

    `centered` takes the square of the gradient's own running mean from `v`. With `momentum` the
    steps add up: `b = momentum * b + gradient / (sqrt(v) + eps)`.
    """

    @both_habits
    def __init__(
        self,
        learning_rate: Rate = 1e-2,
        alpha: float = 0.99,
        eps: float = 1e-8,
        weight_decay: Decay = 0.0,
        momentum: float = 0.0,
        centered: bool = False,
    ) -> None:
        super().__init__(learning_rate, weight_decay)
        self._check_shares(alpha=alpha)
        self._check_not_negative(eps=eps, momentum=momentum)
        self.alpha, self.eps, self.momentum, self.centered = alpha, eps, momentum, centered

    def init_single(self, parameter: tn.Tensor, state: dict[str, Any]) -> None:
        for name, needed in (("v", True), ("b", self.momentum > 0), ("mean", self.centered)):
            if needed:
                state[name] = tn.zeros_like(parameter)

    def apply_single(
        self, gradient: tn.Tensor, parameter: tn.Tensor, state: dict[str, Any]
    ) -> tn.Tensor:
        v = state["v"] = self.alpha * state["v"] + (1 - self.alpha) * tn.square(gradient)
        if self.centered:
            state["mean"] = self.alpha * state["mean"] + (1 - self.alpha) * gradient
            v = tn.maximum(v - tn.square(state["mean"]), 0)  # rounding may go below
        change = gradient / (tn.sqrt(v) + self.eps)
        if self.momentum > 0:
            change = state["b"] = self.momentum * state["b"] + change
        return parameter - self.learning_rate * change


class Adagrad(Optimizer):
    """Adagrad (Duchi, Hazan and Singer, 2011):

        v = v + gradient**2
        w = w - learning_rate / (1 + (step - 1) * lr_decay) * gradient / (sqrt(v) + eps)

    where `v` begins with `initial_accumulator_value`.
    """

    @both_habits
    def __init__(
        self,
        learning_rate: Rate = 1e-2,
        eps: float = 1e-10,
        weight_decay: Decay = 0.0,
        lr_decay: float = 0.0,
        initial_accumulator_value: float = 0.0,
    ) -> None:
        super().__init__(learning_rate, weight_decay)
        self._check_not_negative(
            eps=eps, lr_decay=lr_decay, initial_accumulator_value=initial_accumulator_value
        )
        self.eps, self.lr_decay = eps, lr_decay
        self.initial_accumulator_value = initial_accumulator_value

    def init_single(self, parameter: tn.Tensor, state: dict[str, Any]) -> None:
        state["v"] = tn.full_like(parameter, self.initial_accumulator_value)

    def apply_single(
        self, gradient: tn.Tensor, parameter: tn.Tensor, state: dict[str, Any]
    ) -> tn.Tensor:
        v = state["v"] = state["v"] + tn.square(gradient)
        rate = self.learning_rate
        if self.lr_decay != 0:
            rate = rate / (1 + (self.state["step"] - 1) * self.lr_decay)
        return parameter - rate * gradient / (tn.sqrt(v) + self.eps)


class AdaDelta(Optimizer):
    """AdaDelta (Zeiler, 2012), whose steps have the size of those before:

        v = rho * v + (1 - rho) * gradient**2
        change = sqrt(u + eps) / sqrt(v + eps) * gradient
        u = rho * u + (1 - rho) * change**2
        w = w - learning_rate * change
    """

    @both_habits
    def __init__(
        self,
        learning_rate: Rate = 1.0,
        rho: float = 0.9,
        eps: float = 1e-6,
        weight_decay: Decay = 0.0,
    ) -> None:
        super().__init__(learning_rate, weight_decay)
        self._check_shares(rho=rho)
        self._check_not_negative(eps=eps)
        self.rho, self.eps = rho, eps

    def init_single(self, parameter: tn.Tensor, state: dict[str, Any]) -> None:
        state["v"] = tn.zeros_like(parameter)
        state["u"] = tn.zeros_like(parameter)

    def apply_single(
        self, gradient: tn.Tensor, parameter: tn.Tensor, state: dict[str, Any]
    ) -> tn.Tensor:
        v, u = state["v"], state["u"]
        v = self.rho * v + (1 - self.rho) * tn.square(gradient)
        change = tn.sqrt(u + self.eps) / tn.sqrt(v + self.eps) * gradient
        state["v"], state["u"] = v, self.rho * u + (1 - self.rho) * tn.square(change)
        return parameter - self.learning_rate * change
