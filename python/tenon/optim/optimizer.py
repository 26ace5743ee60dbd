"""Optimizer: the base of the optimizers."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import tenon as tn

from ..nn.module import Module

Schedule = Callable[[tn.Tensor], "tn.Tensor | float"]


class Optimizer:
    """Makes new parameters from parameters and gradients, one tensor at a time.

    A class says in `apply_single` how, and in `init_single` what it remembers of a parameter.
    `state` holds the number of steps, the learning rate and what is remembered, by the parameter's
    name; it is what `compile(inputs=..., outputs=...)` takes. The learning rate may be a function
    of the number of steps before.
    """

    def __init__(self, learning_rate: float | tn.Tensor | Schedule) -> None:
        self.state: dict[str, Any] = {"step": tn.array(0), "moments": {}}
        self.learning_rate = learning_rate

    @property
    def learning_rate(self) -> tn.Tensor:
        return self.state["learning_rate"]

    @learning_rate.setter
    def learning_rate(self, rate: float | tn.Tensor | Schedule) -> None:
        self._schedule = rate if callable(rate) else None
        self._set_rate(rate(self.state["step"]) if callable(rate) else rate)

    def _set_rate(self, rate: float | tn.Tensor) -> None:
        self.state["learning_rate"] = tn.asarray(rate, dtype=tn.float32)

    def init_single(self, parameter: tn.Tensor, state: dict[str, Any]) -> None:
        """Puts into `state` what is to be remembered of a parameter before its first step."""

    def apply_single(
        self, gradient: tn.Tensor, parameter: tn.Tensor, state: dict[str, Any]
    ) -> tn.Tensor:
        """The new parameter; changes what is remembered of it."""
        raise NotImplementedError

    def update(self, model: Module, gradients: Any) -> None:
        """Puts new parameters into a model. `gradients` may leave some out."""
        if isinstance(gradients, Module):
            gradients = gradients.trainable_parameters()
        model.update(self.apply_gradients(gradients, model.parameters()))

    def apply_gradients(self, gradients: Any, parameters: Any) -> Any:
        """New parameters, as a tree like `gradients`."""
        if self._schedule:
            self._set_rate(self._schedule(self.state["step"]))
        self.state["step"] = self.state["step"] + 1
        return self._apply(gradients, parameters, ())

    def _apply(self, gradient: Any, parameter: Any, path: tuple[Any, ...]) -> Any:
        if isinstance(gradient, dict):
            return {k: self._apply(g, parameter[k], (*path, k)) for k, g in gradient.items()}
        if isinstance(gradient, (list, tuple)):
            pairs = zip(gradient, parameter, strict=True)
            return [self._apply(g, p, (*path, i)) for i, (g, p) in enumerate(pairs)]
        moments = self._moments(".".join(map(str, path)), parameter)
        # Computed in at least float32, as the learning rate is, and rounded once.
        return self.apply_single(gradient, parameter, moments).astype(parameter.dtype)

    def _moments(self, name: str, parameter: tn.Tensor) -> dict[str, Any]:
        known = self.state["moments"]
        if name not in known:
            fresh: dict[str, Any] = {}
            self.init_single(parameter, fresh)
            if not fresh:  # nothing to remember: the state stays as it is
                return fresh
            known[name] = fresh
        return known[name]
