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

import math
import operator
from collections.abc import Callable, Sequence
from functools import partial
from typing import TYPE_CHECKING, Any

import tenon as tn

from .. import _core
from .optimizer import Optimizer, Schedule
from .schedules import exponential_decay, linear_schedule, step_decay


class LRScheduler:
    """Sets the learning rate of an optimizer to `schedule` of the number of its steps.

    An optimizer with several groups of parameters may have a schedule for each.
    """

    def __init__(self, optimizer: Optimizer, schedule: Schedule, *others: Schedule) -> None:
        self.optimizer, self.schedules, self.last_epoch = optimizer, (schedule, *others), -1
        if others and len(self.schedules) != len(optimizer.param_groups):
            counts = f"{len(self.schedules)} schedules for {len(optimizer.param_groups)} groups"
            _core._fail("value", f"{type(self).__name__}: {counts} of parameters")
        self.step()

    def step(self) -> None:
        self.last_epoch += 1
        groups = self.optimizer.param_groups
        schedules = self.schedules if len(self.schedules) > 1 else self.schedules * len(groups)
        for group, schedule in zip(groups, schedules):
            group["lr"] = tn.asarray(schedule(tn.array(self.last_epoch)))

    def state_dict(self) -> dict[str, Any]:
        """The number of steps, for a checkpoint."""
        return {"last_epoch": self.last_epoch}

    def load_state_dict(self, state: dict[str, Any]) -> None:
        self.last_epoch = state["last_epoch"] - 1
        self.step()

    def get_last_lr(self) -> list[float]:
        """The learning rate of each group of parameters."""
        return rates_of(self.optimizer)


def rates_of(optimizer: Optimizer) -> list[float]:
    if not isinstance(optimizer, Optimizer):
        kind = type(optimizer).__name__
        _core._fail("type", f"lr_scheduler: the first argument is an optimizer, not a {kind}")
    return [group["lr"] for group in optimizer.param_groups]


class LambdaLR(LRScheduler):
    """The first learning rate times a function of the step, or of one for each group."""

    def __init__(
        self,
        optimizer: Optimizer,
        lr_lambda: Callable[[int], float] | Sequence[Callable[[int], float]],
    ) -> None:
        rates = rates_of(optimizer)
        factors = [lr_lambda] * len(rates) if callable(lr_lambda) else list(lr_lambda)
        super().__init__(optimizer, *map(partial, [_scaled] * len(rates), rates, factors))


def _scaled(first: float, factor: Callable[[int], float], step: tn.Tensor) -> float:
    return first * factor(int(step.item()))


class StepLR(LRScheduler):
    """The first learning rate, times `gamma` after every `step_size` steps."""

    def __init__(self, optimizer: Optimizer, step_size: int, gamma: float = 0.1) -> None:
        rates = rates_of(optimizer)
        super().__init__(optimizer, *(step_decay(first, gamma, step_size) for first in rates))


class MultiStepLR(LRScheduler):
    """The first learning rate, times `gamma` after each of the steps in `milestones`.

        >>> optimizer = tn.optim.SGD(lr=1.0)
        >>> scheduler = tn.optim.lr_scheduler.MultiStepLR(optimizer, [1, 3], gamma=0.5)
        >>> rates = []
        >>> for epoch in range(4):
        ...     rates += scheduler.get_last_lr()
        ...     scheduler.step()
        >>> rates
        [1.0, 0.5, 0.5, 0.25]
    """

    def __init__(
        self, optimizer: Optimizer, milestones: Sequence[int], gamma: float = 0.1
    ) -> None:
        schedule = partial(partial, _multi_step, sorted(milestones), gamma)
        super().__init__(optimizer, *map(schedule, rates_of(optimizer)))


def _multi_step(steps: list[int], gamma: float, first: float, step: tn.Tensor) -> tn.Tensor:
    passed = tn.sum(tn.array(steps, dtype=tn.int64) <= step)
    return first * gamma ** passed.astype(tn.float32)


class ExponentialLR(LRScheduler):
    """The first learning rate times `gamma**step`."""

    def __init__(self, optimizer: Optimizer, gamma: float) -> None:
        rates = rates_of(optimizer)
        super().__init__(optimizer, *(exponential_decay(first, gamma) for first in rates))


class LinearLR(LRScheduler):
    """The first learning rate times a factor between two, in `total_iters` steps."""

    def __init__(
        self,
        optimizer: Optimizer,
        start_factor: float = 1 / 3,
        end_factor: float = 1.0,
        total_iters: int = 5,
    ) -> None:
        schedules = (
            linear_schedule(first * start_factor, first * end_factor, total_iters)
            for first in rates_of(optimizer)
        )
        super().__init__(optimizer, *schedules)


class CosineAnnealingLR(LRScheduler):
    """Goes from the first learning rate to `eta_min` in `T_max` steps, then back up in as many.

    `optim.cosine_decay` stays at its end.

        >>> optimizer = tn.optim.SGD(lr=1.0)
        >>> scheduler = tn.optim.lr_scheduler.CosineAnnealingLR(optimizer, T_max=2)
        >>> rates = []
        >>> for epoch in range(5):
        ...     rates += scheduler.get_last_lr()
        ...     scheduler.step()
        >>> rates
        [1.0, 0.5, 0.0, 0.5, 1.0]
    """

    def __init__(self, optimizer: Optimizer, T_max: int, eta_min: float = 0.0) -> None:
        if not T_max > 0:
            _core._fail("value", f"CosineAnnealingLR: T_max must be above 0, not {T_max}")
        schedule = partial(partial, _cosine_wave, T_max, eta_min)
        super().__init__(optimizer, *map(schedule, rates_of(optimizer)))


def _cosine_wave(steps: int, least: float, first: float, step: tn.Tensor) -> float:
    place = int(step.item()) % (2 * steps) / steps
    return least + (first - least) * (1 + math.cos(math.pi * place)) / 2


class OneCycleLR(LRScheduler):
    """Up from `max_lr / div_factor` to `max_lr`, then down to nearly nothing (Smith and Topin).

    It takes `total_steps` steps, or `epochs * steps_per_epoch`, a share `pct_start` of them up. The
    last rate is the first divided by `final_div_factor`. With `three_phase` it goes down to the
    first rate as fast as it went up, and only then to the last. `total_steps` calls of `step` are
    taken, of which the last leaves the rate as it is; more are errors.

    With `cycle_momentum` the momentum, or the first of `betas`, goes the other way, between
    `max_momentum` and `base_momentum`. That is an option of the optimizer, which a compiled step
    has as a constant: there, give `cycle_momentum=False`.

        >>> optimizer = tn.optim.SGD(lr=0.1, momentum=0.9)
        >>> cycle = tn.optim.lr_scheduler.OneCycleLR(optimizer, max_lr=1.0, total_steps=10)
        >>> round(cycle.get_last_lr()[0], 6), round(optimizer.momentum, 6)
        (0.04, 0.95)
    """

    def __init__(
        self,
        optimizer: Optimizer,
        max_lr: float | Sequence[float],
        total_steps: int | None = None,
        epochs: int | None = None,
        steps_per_epoch: int | None = None,
        pct_start: float = 0.3,
        anneal_strategy: str = "cos",
        cycle_momentum: bool = True,
        base_momentum: float = 0.85,
        max_momentum: float = 0.95,
        div_factor: float = 25.0,
        final_div_factor: float = 1e4,
        three_phase: bool = False,
    ) -> None:
        if total_steps is None and epochs is not None and steps_per_epoch is not None:
            total_steps = operator.index(epochs) * operator.index(steps_per_epoch)
        if total_steps is None or total_steps < 2:
            hint = "give total_steps, or epochs and steps_per_epoch"
            _core._fail("value", f"OneCycleLR: total_steps is at least 2, not {total_steps}", hint)
        if not 0 < pct_start < 1:
            _core._fail("value", f"OneCycleLR: pct_start must lie in (0, 1), not {pct_start}")
        if anneal_strategy not in ("cos", "linear"):
            text = f"anneal_strategy must be 'cos' or 'linear', not {anneal_strategy!r}"
            _core._fail("value", f"OneCycleLR: {text}")
        self.total_steps, self.anneal_strategy = total_steps, anneal_strategy
        up = pct_start * total_steps - 1
        ends = [up, 2 * up, total_steps - 1] if three_phase else [up, total_steps - 1]
        groups = optimizer.param_groups
        tops = list(max_lr) if isinstance(max_lr, Sequence) else [max_lr] * len(groups)
        first = [top / div_factor for top in tops]
        last = [rate / final_div_factor for rate in first]
        middle = [first] if three_phase else []
        high, low = max_momentum, base_momentum
        self._momenta = (high, low, high, high) if three_phase else (high, low, high)
        self._ends, self._cycles = [0.0, *ends], cycle_momentum
        if cycle_momentum and not all("momentum" in g or "betas" in g for g in groups):
            text = f"{type(optimizer).__name__} has neither momentum nor betas"
            _core._fail("value", f"OneCycleLR: {text}", "give cycle_momentum=False")
        super().__init__(optimizer, *map(self._schedule, zip(*[first, tops, *middle, last])))

    def _schedule(self, rates: Sequence[float]) -> Schedule:
        return partial(self._rate, rates)

    def _rate(self, rates: Sequence[float], step: tn.Tensor) -> float:
        return self._at(rates)

    def step(self) -> None:
        if self.last_epoch >= self.total_steps:
            _core._fail("value", f"OneCycleLR: the cycle ends after {self.total_steps} steps")
        super().step()
        if self._cycles:
            momentum = self._at(self._momenta)
            for group in self.optimizer.param_groups:
                if "momentum" in group:
                    group["momentum"] = momentum
                else:
                    group["betas"] = (momentum, *group["betas"][1:])

    def _at(self, values: Sequence[float]) -> float:
        """Between the two of `values` around the step, those at the ends of the phases."""
        step = min(self.last_epoch, self.total_steps - 1)
        phase = next(i for i, end in enumerate(self._ends[1:]) if step <= end)
        start, end = self._ends[phase : phase + 2]
        share = (step - start) / (end - start)
        if self.anneal_strategy == "cos":
            share = (1 - math.cos(math.pi * share)) / 2
        return values[phase] + (values[phase + 1] - values[phase]) * share


class ReduceLROnPlateau:
    """Multiplies the learning rates by `factor` when a metric has not improved for long.

    `step(metric)` after every epoch: `patience` epochs without a better one than the best, by
    `threshold` of it ("rel") or in itself ("abs"), are waited for; `cooldown` epochs after each
    reduction do not count. `mode` says whether lower ("min") or higher ("max") is better.

        >>> optimizer = tn.optim.SGD(lr=1.0)
        >>> scheduler = tn.optim.lr_scheduler.ReduceLROnPlateau(optimizer, patience=1, factor=0.5)
        >>> for loss in [3.0, 2.0, 2.0, 2.0]:
        ...     scheduler.step(loss)
        >>> optimizer.learning_rate.item()
        0.5
    """

    def __init__(
        self,
        optimizer: Optimizer,
        mode: str = "min",
        factor: float = 0.1,
        patience: int = 10,
        threshold: float = 1e-4,
        threshold_mode: str = "rel",
        cooldown: int = 0,
        min_lr: float | Sequence[float] = 0.0,
        eps: float = 1e-8,
    ) -> None:
        choices = (("mode", mode, "min", "max"), ("threshold_mode", threshold_mode, "rel", "abs"))
        for name, given, *known in choices:
            if given not in known:
                text = f"{name} must be {known[0]!r} or {known[1]!r}, not {given!r}"
                _core._fail("value", f"ReduceLROnPlateau: {text}")
        if not 0 <= factor < 1:
            text = f"factor must be at least 0 and less than 1, not {factor}"
            _core._fail("value", f"ReduceLROnPlateau: {text}")
        count = len(optimizer.param_groups)
        self.optimizer, self.mode, self.factor, self.patience = optimizer, mode, factor, patience
        self.threshold, self.threshold_mode, self.cooldown = threshold, threshold_mode, cooldown
        self.min_lrs = list(min_lr) if isinstance(min_lr, Sequence) else [min_lr] * count
        self.eps, self.last_epoch = eps, 0
        self.best = math.inf if mode == "min" else -math.inf
        self.num_bad_epochs = self.cooldown_counter = 0

    def step(self, metrics: float | tn.Tensor) -> None:
        self.last_epoch += 1
        value = float(metrics)
        better = self._is_better(value)
        self.best = value if better else self.best
        self.num_bad_epochs = 0 if better else self.num_bad_epochs + 1
        if self.cooldown_counter > 0:
            self.cooldown_counter -= 1
            self.num_bad_epochs = 0
        if self.num_bad_epochs > self.patience:
            self._reduce()
            self.cooldown_counter, self.num_bad_epochs = self.cooldown, 0

    def _is_better(self, value: float) -> bool:
        sign = -1 if self.mode == "min" else 1
        if self.threshold_mode == "rel":
            wanted = self.best * (1 + sign * self.threshold)
        else:
            wanted = self.best + sign * self.threshold
        return sign * value > sign * wanted

    def _reduce(self) -> None:
        for group, least in zip(self.optimizer.param_groups, self.min_lrs):
            old = group["lr"]
            new = max(old * self.factor, least)
            if old - new > self.eps:
                group["lr"] = new

    def state_dict(self) -> dict[str, Any]:
        """Return the state for a checkpoint: what is known of earlier epochs."""
        return {name: getattr(self, name) for name in _PLATEAU}

    def load_state_dict(self, state: dict[str, Any]) -> None:
        for name in _PLATEAU:
            setattr(self, name, state[name])

    def get_last_lr(self) -> list[float]:
        """The learning rate of each group of parameters."""
        return rates_of(self.optimizer)


_PLATEAU = ("best", "num_bad_epochs", "cooldown_counter", "last_epoch")


if not TYPE_CHECKING:  # to type checkers it would say that every name exists

    def __getattr__(name: str) -> object:
        from .._advice import missing_name

        raise AttributeError(missing_name(name, globals(), __name__), name=name)
