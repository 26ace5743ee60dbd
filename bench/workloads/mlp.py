"""Small networks: a training step of 784-256-10, and the gradient of 8 layers of 64."""

from __future__ import annotations

import numpy as np

from workloads.layers import layers_of
from workloads.workload import Goal, Work, Workload

RATE = 0.1
BATCH, SIZES = 128, (784, 256, 10)


def inputs(quick: bool):
    rng = np.random.default_rng(0)
    params = [{"w": rng.standard_normal((n, m), dtype=np.float32) / np.float32(n**0.5),
               "b": np.zeros(m, np.float32)} for n, m in zip(SIZES, SIZES[1:])]
    x = rng.standard_normal((BATCH, SIZES[0]), dtype=np.float32)
    return params, x, rng.integers(0, SIZES[-1], BATCH)


def loss_of(lib):
    layers = layers_of(lib)

    def loss(params, x, y):
        hidden, out = params
        x = layers.relu(x @ hidden["w"] + hidden["b"])
        return layers.cross_entropy(x @ out["w"] + out["b"], y)

    return loss


def step(lib, params, x, y):
    layers = layers_of(lib)
    loss, gradient = layers.value_and_grad(loss_of(lib))(params, x, y)
    return loss, layers.map(lambda p, g: p - RATE * g, params, gradient)


def torch_step(torch, compiled, params):
    loss_function = compiled(loss_of(torch))
    leaves = [leaf.requires_grad_() for layer in params for leaf in layer.values()]
    optimizer = torch.optim.SGD(leaves, lr=RATE, foreach=True)

    def run(x, y):
        loss = loss_function(params, x, y)
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
        return loss.detach()

    return run


LAYERS, WIDTH, ROWS = 8, 64, 64


def square_inputs(quick: bool):
    rng = np.random.default_rng(0)

    def normal(*shape: int) -> np.ndarray:
        return rng.standard_normal(shape, dtype=np.float32)

    layers = [{"w": normal(WIDTH, WIDTH) / 8, "b": normal(WIDTH) / 8} for _ in range(LAYERS)]
    return layers, normal(ROWS, WIDTH), normal(ROWS, WIDTH)


def squared_error(lib):
    relu = layers_of(lib).relu

    def loss(params, x, y):
        for layer in params[:-1]:
            x = relu(x @ layer["w"] + layer["b"])
        d = x @ params[-1]["w"] + params[-1]["b"] - y
        return (d * d).mean()

    return loss


def gradient(lib, params, x, y):
    return layers_of(lib).value_and_grad(squared_error(lib))(params, x, y)


# Forward, and backward in weights for both layers and in the activations of the second.
MULTIPLY_ADDS = BATCH * (2 * 784 * 256 + 3 * 256 * 10)

WORKLOADS = [
    Workload(
        "mlp", "MLP 784-256-10, batch 128, SGD step", inputs,
        {"tenon": step, "torch": torch_step, "jax": step},
        Work(multiply_adds=MULTIPLY_ADDS), Goal(1.5, first_call_ms=150), kind="step",
    ),
    Workload(
        "mlp_grad", f"value_and_grad, {LAYERS} layers of {WIDTH}, batch {ROWS}", square_inputs,
        {"tenon": gradient, "torch": gradient, "jax": gradient},
        Work(multiply_adds=(3 * LAYERS - 1) * ROWS * WIDTH**2),
        Goal(2.0, "jax", first_call_ratio=5.0), tolerance=1e-3,
    ),
]
