"""Several optimizers for the parameters of one model."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from typing import Any

import tenon as tn

from .optimizer import Optimizer, Rate
from .parameter_group import ParameterGroup

Filter = Callable[[str, tn.Tensor], bool]


class MultiOptimizer(Optimizer):
    """Gives each parameter to the first optimizer whose filter takes it; the last takes the rest.

    A filter is a function of a parameter's name and the parameter:

        >>> optimizer = tn.optim.MultiOptimizer(
        ...     [tn.optim.SGD(1.0), tn.optim.SGD(0.5)], [lambda name, w: name == "bias"])
        >>> ones = {"weight": tn.ones(1), "bias": tn.ones(1)}
        >>> optimizer.apply_gradients(ones, ones)
        {'weight': tensor([0.5], dtype=float32), 'bias': tensor([0.], dtype=float32)}
    """

    def __init__(self, optimizers: Sequence[Optimizer], filters: Sequence[Filter] = ()) -> None:
        self.optimizers, self.filters = list(optimizers), list(filters)
        if len(self.optimizers) != len(self.filters) + 1:
            counts = f"{len(self.filters)} filters for {len(self.optimizers)} optimizers"
            self._refuse(f"{counts}; the last optimizer has none")
        # Not those of the base: it has no steps and no learning rate of its own.
        self.state = {"optimizers": [optimizer.state for optimizer in self.optimizers]}
        self._modules = []

    @property
    def learning_rate(self) -> tn.Tensor:
        """The learning rate of the first optimizer; assigning it sets all."""
        return self.optimizers[0].learning_rate

    @learning_rate.setter
    def learning_rate(self, rate: Rate) -> None:
        for optimizer in self.optimizers:
            optimizer.learning_rate = rate

    def _change_rate(self, rate: Rate) -> None:
        self.learning_rate = rate

    @property
    def param_groups(self) -> list[ParameterGroup]:
        """The optimizers as groups. Their parameters are found by the filters, and not listed."""
        return [group for optimizer in self.optimizers for group in optimizer.param_groups]

    def add_param_group(self, param_group: dict[str, Any]) -> None:
        hint = "give it another optimizer"
        self._refuse("it has optimizers, not groups of parameters", hint=hint)

    def _count_step(self) -> None:
        for optimizer in self.optimizers:
            optimizer._count_step()

    def _move_numbers(self, parameters: Iterable[tn.Tensor]) -> None:
        parameters = list(parameters)
        for optimizer in self.optimizers:
            optimizer._move_numbers(parameters)

    def _applied(self, name: str, gradient: tn.Tensor, parameter: tn.Tensor) -> tn.Tensor:
        return self._optimizer_of(name, parameter)._applied(name, gradient, parameter)

    def _moments(self, name: str, parameter: tn.Tensor) -> dict[str, Any]:
        return self._optimizer_of(name, parameter)._moments(name, parameter)

    def _optimizer_of(self, name: str, parameter: tn.Tensor) -> Optimizer:
        taking = (o for o, takes in zip(self.optimizers, self.filters) if takes(name, parameter))
        return next(taking, self.optimizers[-1])
