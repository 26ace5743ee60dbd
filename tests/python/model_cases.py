"""Models that every backend is tried with. It needs no pytest: other Pythons import it too."""

from __future__ import annotations

from typing import Any

import numpy as np

import tenon as tn


def mlp() -> tuple[tn.Model, dict[str, list[int]]]:
    model = tn.Model("mlp")
    model |= tn.model.Linear(16)(input="input")
    model += tn.model.Gelu()
    model += tn.model.Linear(4)
    return model, {"input": [8, 6]}


def cnn() -> tuple[tn.Model, dict[str, list[int]]]:
    model = tn.Model("cnn")
    model |= tn.model.Conv2d(3, 8, kernel_size=3)(input="input")
    model += tn.model.BatchNorm2d(8)
    model += tn.model.Relu()
    model += tn.model.Conv2d(8, 16, kernel_size=3)
    model += tn.model.GlobalAvgPool2d()
    model += tn.model.Linear(16, 10)
    return model, {"input": [2, 3, 12, 12]}


def transformer() -> tuple[tn.Model, dict[str, list[int]]]:
    model = tn.Model("transformer")
    model |= tn.model.LayerNorm()(input="input", output="normed")
    for name in ("q", "k", "v"):
        model |= tn.model.Linear(16)(input="normed", output=name)
    model |= tn.model.Matmul()(x1="q", x2="kt", output="scores")
    model |= tn.model.Softmax(axis=-1)(input="scores", output="weights")
    model |= tn.model.Matmul()(x1="weights", x2="v", output="mixed")
    model |= tn.model.PermuteDims(axes=(0, 2, 1))(input="k", output="kt")
    model |= tn.model.Add()(x1="mixed", x2="input", output="attended")
    model |= tn.model.LayerNorm()(input="attended")
    model += tn.model.Linear(32)
    model += tn.model.Gelu()
    model += tn.model.Linear(16)(output="fed")
    model |= tn.model.Add()(x1="attended", x2="fed", output="output")
    return model, {"input": [2, 5, 16]}


def pointwise() -> tuple[tn.Model, dict[str, list[int]]]:
    """Without products: bits are the same wherever they are computed exactly."""
    model = tn.Model("pointwise")
    model |= tn.model.LayerNorm()(input="input")
    model += tn.model.Gelu()
    model += tn.model.Softmax(axis=-1)
    model += tn.model.BatchNorm1d()
    return model, {"input": [6, 24]}


MODELS = {"mlp": mlp, "cnn": cnn, "transformer": transformer, "pointwise": pointwise}


def evaluated(kind: str, backend: Any, **said: Any) -> dict[str, np.ndarray]:
    """Outputs and gradients by name."""
    model, shapes = MODELS[kind]()
    physical = tn.compile(model, backend, shapes=shapes, **said)
    # Drawn once, on the CPU: what is drawn is no part of this.
    params = tn.compile(model, shapes=shapes).randomize_params(seed=1)
    data = {"input": tn.random.normal(shapes["input"], key=tn.random.key(2))}
    if said.get("inference"):
        return {n: np.asarray(v) for n, v in physical.evaluate(params, data).items()}
    shape = physical.get_shapes()["output"]
    seed = tn.random.normal(shape, key=tn.random.key(3))
    outputs, gradients = physical.evaluate(params, data, {"output": seed})
    return {n: np.asarray(v) for n, v in {**outputs, **gradients}.items()}


def agree(kind: str, backend: Any, rtol: float = 1e-5, **said: Any) -> None:
    wanted = evaluated(kind, tn.CpuBackend(), **{n: v for n, v in said.items() if n == "inference"})
    made = evaluated(kind, backend, **said)
    assert list(made) == list(wanted)
    for name, value in wanted.items():
        scale = max(1.0, float(np.abs(value).max()))
        np.testing.assert_allclose(made[name], value, rtol=rtol, atol=rtol * scale, err_msg=name)
