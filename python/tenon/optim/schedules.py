"""Learning rates as functions of the number of steps before.

    >>> warmup = tn.optim.linear_schedule(0.0, 0.1, steps=2)
    >>> decay = tn.optim.cosine_decay(0.1, decay_steps=4)
    >>> rate = tn.optim.join_schedules([warmup, decay], [2])
    >>> [round(rate(tn.array(step)).item(), 3) for step in range(8)]
    [0.0, 0.05, 0.1, 0.085, 0.05, 0.015, 0.0, 0.0]
    >>> optimizer = tn.optim.AdamW(rate)

The step is a tensor and so is the rate: a compiled training step is not traced again for them.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from functools import partial

import tenon as tn

from .. import _core
from .optimizer import Schedule


def constant(value: float) -> Schedule:
    """`value` at every step."""
    return partial(_constant, value)


def step_decay(init: float, decay_rate: float, step_size: int) -> Schedule:
    """`init`, times `decay_rate` after every `step_size` steps.

    >>> rate = tn.optim.step_decay(1.0, 0.5, step_size=2)
    >>> rate(tn.arange(5))
    tensor([1.  , 1.  , 0.5 , 0.5 , 0.25], dtype=float32)
    """
    _check_steps("step_decay", "step_size", step_size)
    return partial(_step_decay, init, decay_rate, step_size)


def exponential_decay(init: float, decay_rate: float) -> Schedule:
    """`init * decay_rate**step`."""
    return partial(_exponential_decay, init, decay_rate)


def cosine_decay(init: float, decay_steps: int, end: float = 0.0) -> Schedule:
    """Go from `init` to `end` in `decay_steps` steps, along half a cosine, and stay there."""
    _check_steps("cosine_decay", "decay_steps", decay_steps)
    return partial(_cosine_decay, init, end, decay_steps)


def linear_schedule(init: float, end: float, steps: int) -> Schedule:
    """Go from `init` to `end` in `steps` equal steps, and stay there."""
    _check_steps("linear_schedule", "steps", steps)
    return partial(_linear_schedule, init, end, steps)


def join_schedules(schedules: Sequence[Schedule], boundaries: Sequence[int]) -> Schedule:
    """One schedule after the other: at each boundary the next begins, with its step 0."""
    if len(schedules) != len(boundaries) + 1:
        counts = f"{len(schedules)} and {len(boundaries)}"
        text = f"join_schedules: there must be one schedule more than boundaries: {counts}"
        _core._fail("value", text)
    if list(boundaries) != sorted(boundaries):
        _core._fail("value", f"join_schedules: the boundaries do not increase: {list(boundaries)}")
    return partial(_join_schedules, list(schedules), list(boundaries))


# Functions of a module, which unlike those inside of others can be pickled with an optimizer.


def _constant(value: float, step: tn.Tensor) -> tn.Tensor:
    return tn.full((), value, dtype=tn.float32)


def _step_decay(init: float, decay_rate: float, step_size: int, step: tn.Tensor) -> tn.Tensor:
    return init * decay_rate ** _number(step // step_size)


def _exponential_decay(init: float, decay_rate: float, step: tn.Tensor) -> tn.Tensor:
    return init * decay_rate ** _number(step)


def _cosine_decay(init: float, end: float, decay_steps: int, step: tn.Tensor) -> tn.Tensor:
    angle = tn.minimum(_number(step) / decay_steps, 1) * math.pi
    return end + 0.5 * (init - end) * (1 + tn.cos(angle))


def _linear_schedule(init: float, end: float, steps: int, step: tn.Tensor) -> tn.Tensor:
    return init + (end - init) * tn.minimum(_number(step) / steps, 1)


def _join_schedules(
    schedules: list[Schedule], boundaries: list[int], step: tn.Tensor
) -> tn.Tensor:
    rate = schedules[0](step)
    for boundary, following in zip(boundaries, schedules[1:]):
        rate = tn.where(step < boundary, rate, following(tn.maximum(step - boundary, 0)))
    return tn.asarray(rate)


def _number(step: tn.Tensor | int) -> tn.Tensor:
    return tn.asarray(step).astype(tn.float32)


def _check_steps(name: str, argument: str, value: int) -> None:
    if not value > 0:
        _core._fail("value", f"{name}: {argument} must be above 0, not {value}")
