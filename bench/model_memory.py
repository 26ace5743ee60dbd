"""Training steps of a deep MLP, checkpointed in segments, beside the same step without.

Planned is what the compiler says a run needs, measured the most that was in use during one. Losses
and gradients must be equal, bit for bit.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np

import measure
import tenon as tn

SEGMENTS = (1, 2, 4, 6)


@dataclass
class Segmented:
    """A step in segments; 0: without a checkpoint."""

    segments: int
    planned: int  # bytes
    measured: int
    seconds: float = 0.0


def forward(params: list[tuple[tn.Tensor, tn.Tensor]], x: tn.Tensor) -> tn.Tensor:
    for w, b in params:
        x = tn.nn.relu(x @ w + b)
    return x


def step_of(segments: int) -> Any:
    f = tn.checkpoint(forward, segments=segments) if segments else forward
    return tn.compile(tn.value_and_grad(lambda params, x, y: tn.mean((f(params, x) - y) ** 2)))


def measured_peak(step: Any, args: tuple) -> int:
    """Bytes that a call takes besides what is there before it."""
    tn.eval(step(*args))
    tn.memory.reset_peak_memory()
    before = tn.memory.active_memory()
    made = step(*args)
    tn.eval(made)
    return tn.memory.peak_memory() - before


def cases(quick: bool) -> list[Segmented]:
    layers, rows, width = (24, 256, 16) if quick else (24, 4096, 256)
    rng = np.random.default_rng(0)
    normal = lambda *shape: tn.array(rng.standard_normal(shape, dtype=np.float32))
    params = [(normal(width, width) / width**0.5, tn.zeros(width)) for _ in range(layers)]
    args = params, normal(rows, width), normal(rows, width)
    tn.eval(args)
    plain, made, runs = step_of(0), [], []
    wanted = [np.asarray(t) for t in tn.tree.leaves(plain(*args))]
    for segments in (0, *SEGMENTS):
        step = step_of(segments)
        got = [np.asarray(t) for t in tn.tree.leaves(step(*args))]
        if any(not np.array_equal(a, b) for a, b in zip(wanted, got)):
            raise SystemExit(f"bench: {segments} segments change results")
        made.append(Segmented(segments, step.memory(*args).peak, measured_peak(step, args)))
        runs.append(lambda step=step: tn.eval(step(*args)))
    for one, seconds in zip(made, measure.in_turn(runs, 0.05 if quick else 4.0)):
        one.seconds = seconds
    return made
