"""PyTorch's schedulers: schedules that count steps of their own, often epochs.

    >>> optimizer = tn.optim.SGD(lr=0.5)
    >>> scheduler = tn.optim.lr_scheduler.StepLR(optimizer, step_size=2, gamma=0.5)
    >>> rates = []
    >>> for epoch in range(4):
    ...     rates.append(optimizer.learning_rate.item())
    ...     scheduler.step()
    >>> rates
    [0.5, 0.5, 0.25, 0.25]

Without such a count, `SGD(step_decay(0.5, 0.5, 2))` does the same in the optimizer's own steps.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from collections.abc import Callable

import tenon as tn

from .optimizer import Optimizer, Schedule
from .schedules import cosine_decay, exponential_decay, linear_schedule, step_decay


class LRScheduler:
    """Sets the learning rate of an optimizer to `schedule` of the number of its steps."""

    def __init__(self, optimizer: Optimizer, schedule: Schedule) -> None:
        self.optimizer, self.schedule, self.last_epoch = optimizer, schedule, -1
        self.step()

    def step(self) -> None:
        self.last_epoch += 1
        self.optimizer.learning_rate = tn.asarray(self.schedule(tn.array(self.last_epoch)))

    def state_dict(self) -> dict[str, int]:
        """The number of steps, for a checkpoint."""
        return {"last_epoch": self.last_epoch}

    def load_state_dict(self, state: dict[str, int]) -> None:
        self.last_epoch = state["last_epoch"] - 1
        self.step()

    def get_last_lr(self) -> list[float]:
        return [self.optimizer.learning_rate.item()]


class LambdaLR(LRScheduler):
    """The first learning rate times a function of the step."""

    def __init__(self, optimizer: Optimizer, lr_lambda: Callable[[int], float]) -> None:
        first = optimizer.learning_rate.item()
        super().__init__(optimizer, lambda step: first * lr_lambda(step.item()))


class StepLR(LRScheduler):
    """The first learning rate, times `gamma` after every `step_size` steps."""

    def __init__(self, optimizer: Optimizer, step_size: int, gamma: float = 0.1) -> None:
        super().__init__(optimizer, step_decay(optimizer.learning_rate.item(), gamma, step_size))


class ExponentialLR(LRScheduler):
    """The first learning rate times `gamma**step`."""

    def __init__(self, optimizer: Optimizer, gamma: float) -> None:
        super().__init__(optimizer, exponential_decay(optimizer.learning_rate.item(), gamma))


class LinearLR(LRScheduler):
    """The first learning rate times a factor between two, in `total_iters` steps."""

    def __init__(
        self,
        optimizer: Optimizer,
        start_factor: float = 1 / 3,
        end_factor: float = 1.0,
        total_iters: int = 5,
    ) -> None:
        first = optimizer.learning_rate.item()
        rates = (first * start_factor, first * end_factor)
        super().__init__(optimizer, linear_schedule(*rates, total_iters))


class CosineAnnealingLR(LRScheduler):
    """From the first learning rate to `eta_min` in `T_max` steps; there it stays."""

    def __init__(self, optimizer: Optimizer, T_max: int, eta_min: float = 0.0) -> None:
        super().__init__(optimizer, cosine_decay(optimizer.learning_rate.item(), T_max, eta_min))


if not TYPE_CHECKING:  # to type checkers it would say that every name exists

    def __getattr__(name: str) -> object:
        from .._advice import missing_name

        raise AttributeError(missing_name(name, globals(), __name__), name=name)
