"""Training steps that may need a part of their memory, beside the same steps without a limit.

Both are compiled and have their state given away; losses must be equal, bit for bit.
"""

from __future__ import annotations

import time
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import numpy as np

import measure
import tenon as tn
from workloads import gpt, mlp, resnet
from workloads.layers import layers_of
from workloads.workload import map_tree

CHECKED_STEPS = 3
Step = Callable[..., Any]


@dataclass
class Limited:
    """A step, without a limit and with one."""

    name: str
    part: float  # of the memory that it needs without
    seconds: float
    plain_seconds: float
    peak: int  # bytes
    plain_peak: int
    first: float  # seconds of the first call
    plain_first: float


class Training:
    """A state that a compiled step replaces."""

    def __init__(self, step: Step, state: Any, data: tuple, limit: int | None) -> None:
        self.run = tn.compile(step, donate_argnums=0, memory_limit=limit)
        self.state, self.data = map_tree(tn.array, state), tuple(map(tn.array, data))
        began = time.perf_counter()
        self.losses = [self()]
        self.first = time.perf_counter() - began
        self.losses += [self() for _ in range(CHECKED_STEPS - 1)]
        self.peak = self.run.memory(self.state, *self.data).peak

    def __call__(self) -> float:
        loss, self.state = self.run(self.state, *self.data)
        return loss.item()


def gpt_step(quick: bool) -> tuple[Step, Any, tuple]:
    state, *data = gpt.training_inputs(quick)
    return lambda state, x, y: gpt.step(tn, state, x, y), state, tuple(data)


def descent(loss: Step) -> Step:
    layers = layers_of(tn)

    def step(params: Any, *data: tn.Tensor) -> tuple[tn.Tensor, Any]:
        value, gradient = layers.value_and_grad(loss)(params, *data)
        return value, layers.map(lambda p, g: p - 1e-3 * g, params, gradient)

    return step


def mlp_step(quick: bool) -> tuple[Step, Any, tuple]:
    layers, rows, width = (6, 64, 32) if quick else (24, 1024, 512)
    rng = np.random.default_rng(0)
    normal = lambda *shape: rng.standard_normal(shape, dtype=np.float32)
    params = [{"w": normal(width, width) / np.float32(width**0.5), "b": np.zeros(width, np.float32)}
              for _ in range(layers)]
    return descent(mlp.squared_error(tn)), params, (normal(rows, width), normal(rows, width))


def resnet_step(quick: bool) -> tuple[Step, Any, tuple]:
    batch, side = 16, 112
    cross_entropy = layers_of(tn).cross_entropy
    x = np.random.default_rng(1).standard_normal((batch, 3, side, side), dtype=np.float32)
    loss = lambda params, x, y: cross_entropy(resnet.forward(tn, params, x), y)
    return descent(loss), resnet.weights(), (x, np.arange(batch))


# With the part of its memory that each may need. One kernel of the first layers of ResNet needs
# almost half of what the step does.
STEPS = {"GPT 4 layers, AdamW": (gpt_step, 0.5),
         "MLP 24 layers of 512": (mlp_step, 0.5),
         "ResNet-18, 112x112": (resnet_step, 0.65)}


def cases(quick: bool) -> list[Limited]:
    made = []
    for name, (inputs, part) in STEPS.items():
        if quick and inputs is resnet_step:  # of few small images there is nothing to drop
            continue
        step, state, data = inputs(quick)
        plain = Training(step, state, data, None)
        limited = Training(step, state, data, int(part * plain.peak))
        if limited.losses != plain.losses:
            raise SystemExit(f"bench: {name}: a limit changes losses")
        seconds, plain_seconds = measure.interleave(limited, plain, 0.05 if quick else 6.0)
        made.append(Limited(name, part, seconds, plain_seconds, limited.peak, plain.peak,
                            limited.first, plain.first))
    return made
