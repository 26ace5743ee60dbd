"""A language model of the width of GPT-2 small: its forward pass and a training step.

Width 768, 12 heads, tied embeddings, learned positions. Forward: GPT-2 small itself, 12 layers and
50,257 tokens, from 1x256 tokens to the logits of the next one; weights constant. Training: 4 layers
and 8,192 tokens, logits at all of 4x128 places, AdamW.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from workloads.layers import layers_of
from workloads.workload import Goal, Work, Workload

RATE, BETA1, BETA2, EPSILON, DECAY = 1e-4, 0.9, 0.999, 1e-8, 0.01


@dataclass(frozen=True)
class Config:
    layers: int
    batch: int
    length: int
    vocabulary: int
    width: int = 768

    def multiply_adds(self, places: int) -> float:
        """Of one forward pass with logits at so many places."""
        blocks = 12 * self.layers * self.width**2
        attention = self.layers * self.length * self.width  # without the masked half
        tokens = self.batch * self.length
        return tokens * (blocks + attention) + places * self.vocabulary * self.width


FORWARD = Config(layers=12, batch=1, length=256, vocabulary=50257)
TRAINING = Config(layers=4, batch=4, length=128, vocabulary=8192)
HEAD = 64  # elements of one head


def tiny(config: Config) -> Config:
    return Config(layers=2, batch=config.batch, length=16, vocabulary=101, width=2 * HEAD)


def weights(config: Config):
    rng = np.random.default_rng(0)

    def linear(n: int, m: int):
        return {"w": 0.02 * rng.standard_normal((n, m), dtype=np.float32),
                "b": np.zeros(m, np.float32)}

    def norm():
        return {"w": np.ones(d, np.float32), "b": np.zeros(d, np.float32)}

    d = config.width
    block = lambda: {"norm1": norm(), "qkv": linear(d, 3 * d), "proj": linear(d, d),
                     "norm2": norm(), "up": linear(d, 4 * d), "down": linear(4 * d, d)}
    return {"token": linear(config.vocabulary, d)["w"], "position": linear(config.length, d)["w"],
            "blocks": [block() for _ in range(config.layers)], "norm": norm()}


def tokens(config: Config) -> np.ndarray:
    shape = (config.batch, config.length)
    return np.random.default_rng(1).integers(0, config.vocabulary, shape)


def block_of(lib):
    """One block: attention, then two layers."""
    layers = layers_of(lib)

    def linear(p, x):
        return x @ p["w"] + p["b"]

    def norm(p, x):
        return layers.layer_norm(x, p["w"], p["b"])

    def attention(p, x):
        batch, length, width = x.shape
        split = linear(p["qkv"], x).reshape(batch, length, 3, width // HEAD, HEAD)
        q, k, v = (split[:, :, i].swapaxes(1, 2) for i in range(3))
        joined = layers.attention(q, k, v).swapaxes(1, 2).reshape(batch, length, width)
        return linear(p["proj"], joined)

    def block(p, x):
        x = x + attention(p, norm(p["norm1"], x))
        return x + linear(p["down"], layers.gelu(linear(p["up"], norm(p["norm2"], x))))

    return block


def last_layer_of(lib):
    """The model up to its logits."""
    layers, block = layers_of(lib), block_of(lib)

    def last_layer(params, tokens):
        x = layers.embedding(params["token"], tokens) + params["position"]
        for p in params["blocks"]:
            x = block(p, x)
        return layers.layer_norm(x, params["norm"]["w"], params["norm"]["b"])

    return last_layer


def forward(lib, params, tokens):
    return last_layer_of(lib)(params, tokens)[:, -1] @ params["token"].T


def loss_of(lib):
    last_layer, cross_entropy = last_layer_of(lib), layers_of(lib).cross_entropy
    return lambda params, x, y: cross_entropy(last_layer(params, x) @ params["token"].T, y)


def adamw(layers, state, gradient):
    t = state["t"] + 1
    m = layers.map(lambda m, g: BETA1 * m + (1 - BETA1) * g, state["m"], gradient)
    v = layers.map(lambda v, g: BETA2 * v + (1 - BETA2) * (g * g), state["v"], gradient)
    scale1, scale2 = 1 / (1 - BETA1**t), 1 / (1 - BETA2**t)

    def update(p, m, v):
        return p - RATE * (m * scale1 / (layers.sqrt(v * scale2) + EPSILON) + DECAY * p)

    return {"params": layers.map(update, state["params"], m, v), "m": m, "v": v, "t": t}


def step(lib, state, x, y):
    layers = layers_of(lib)
    loss, gradient = layers.value_and_grad(loss_of(lib))(state["params"], x, y)
    return loss, adamw(layers, state, gradient)


def torch_step(torch, compiled, state):
    params, leaves = state["params"], []
    loss_function = compiled(loss_of(torch))
    torch.utils._pytree.tree_map(lambda leaf: leaves.append(leaf.requires_grad_()), params)
    optimizer = torch.optim.AdamW(leaves, RATE, (BETA1, BETA2), EPSILON, DECAY, fused=True)

    def run(x, y):
        loss = loss_function(params, x, y)
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
        return loss.detach()

    return run


def forward_inputs(quick: bool):
    config = tiny(FORWARD) if quick else FORWARD
    return weights(config), tokens(config)


def training_inputs(quick: bool):
    config = tiny(TRAINING) if quick else TRAINING
    params = weights(config)

    def zeros():
        return {"token": np.zeros_like(params["token"]),
                "position": np.zeros_like(params["position"]),
                "blocks": [{name: {k: np.zeros_like(a) for k, a in part.items()}
                            for name, part in block.items()} for block in params["blocks"]],
                "norm": {k: np.zeros_like(a) for k, a in params["norm"].items()}}

    state = {"params": params, "m": zeros(), "v": zeros(), "t": np.float32(0)}
    x = tokens(config)
    return state, x, np.roll(x, -1, axis=1)


VERSIONS = {"tenon": forward, "torch": forward, "jax": forward}

WORKLOADS = [
    Workload(
        "gpt_forward", "GPT-2 small forward, 1x256, 12 layers", forward_inputs, VERSIONS,
        Work(multiply_adds=FORWARD.multiply_adds(1)), Goal(1.0, "torch frozen"), kind="model",
        tolerance=1e-3, rivals=("torch frozen",),
    ),
    Workload(
        "gpt_train", "GPT 4 layers, 4x128, AdamW step", training_inputs,
        {"tenon": step, "torch": torch_step, "jax": step},
        Work(multiply_adds=3 * TRAINING.multiply_adds(4 * 128)), Goal(1.15, first_call_ms=1000),
        kind="step", tolerance=1e-3,
    ),
]
