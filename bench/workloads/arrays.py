"""Work that memory bounds: elementwise chains, rows, a sum, and the cost of one small call."""

from __future__ import annotations

import math

import numpy as np

from workloads.workload import Goal, Work, Workload


def normal(*shapes: tuple[int, ...]) -> tuple[np.ndarray, ...]:
    rng = np.random.default_rng(0)
    return tuple(rng.standard_normal(shape, dtype=np.float32) for shape in shapes)


def numpy_gelu(np, x):
    from scipy.special import erf  # NumPy has none of its own

    return 0.5 * x * (1 + erf(x * np.float32(math.sqrt(0.5))))


def five_ops_gelu(erf, x):
    return x * (1 + erf(x / math.sqrt(2))) / 2


def chain(lib, x):
    """Twenty cheap ops that no algebra shortens."""
    for _ in range(5):
        x = abs(x * 1.01 + 0.1) - 0.7
    return x


def numpy_softmax(np, x):
    e = np.exp(x - x.max(axis=-1, keepdims=True))
    return e / e.sum(axis=-1, keepdims=True)


def numpy_layer_norm(np, x, weight, bias):
    centred = x - x.mean(axis=-1, keepdims=True)
    variance = (centred * centred).mean(axis=-1, keepdims=True)
    return centred / np.sqrt(variance + np.float32(1e-5)) * weight + bias


def jax_layer_norm(jax, x, weight, bias):
    centred = x - x.mean(axis=-1, keepdims=True)
    variance = (centred * centred).mean(axis=-1, keepdims=True)
    return centred * jax.lax.rsqrt(variance + 1e-5) * weight + bias


M = 1 << 20
GELU, ROWS, SUM = 8 * 1000 * 4096, 4096 * 4096, 64 * M

WORKLOADS = [
    Workload(
        "gelu", "gelu (erf), 8x1000x4096",
        lambda quick: normal((8, 10 if quick else 1000, 4096)),
        {
            "tenon": lambda tn, x: tn.gelu(x),
            "numpy": numpy_gelu,
            "torch": lambda torch, x: torch.nn.functional.gelu(x),
            "jax": lambda jax, x: jax.nn.gelu(x, approximate=False),
        },
        Work(4 * GELU, 4 * GELU), Goal(4.0, least_ratio_many=4.0, first_call_ms=25),
    ),
    Workload(
        "gelu_ops", "gelu of five ops, 8x1000x4096",
        lambda quick: normal((8, 10 if quick else 1000, 4096)),
        {
            "tenon": lambda tn, x: five_ops_gelu(tn.erf, x),
            "torch": lambda torch, x: five_ops_gelu(torch.erf, x),
            "jax": lambda jax, x: five_ops_gelu(jax.scipy.special.erf, x),
        },
        Work(4 * GELU, 4 * GELU), Goal(5.0, "torch"), rivals=("tenon uncompiled",),
    ),
    *(
        Workload(
            f"gelu_{short}", f"gelu (erf), 8x1000x4096, {dtype}",
            lambda quick: normal((8, 10 if quick else 1000, 4096)),
            {
                "tenon": lambda tn, x: tn.gelu(x),
                "torch": lambda torch, x: torch.nn.functional.gelu(x),
                "jax": lambda jax, x: jax.nn.gelu(x, approximate=False),
            },
            Work(2 * GELU, 2 * GELU), Goal(1.0, "tenon float32"), tolerance=0.1, dtype=dtype,
            rivals=("tenon float32",),
        )
        for short, dtype in (("bf16", "bfloat16"), ("f16", "float16"))
    ),
    Workload(
        "chain", "chain of 20 elementwise ops, 16 M",
        lambda quick: normal((M // 64 if quick else 16 * M,)),
        {"tenon": chain, "numpy": chain, "torch": chain, "jax": chain},
        Work(64 * M, 64 * M), Goal(3.5, copy_times=1.3),
    ),
    Workload(
        "softmax", "softmax, 4096x4096",
        lambda quick: normal((64 if quick else 4096, 4096)),
        {
            "tenon": lambda tn, x: tn.softmax(x),
            "numpy": numpy_softmax,
            "torch": lambda torch, x: torch.softmax(x, -1),
            "jax": lambda jax, x: jax.nn.softmax(x),
        },
        Work(4 * ROWS, 4 * ROWS), Goal(4.0, least_ratio_many=3.0),
    ),
    Workload(
        "layer_norm", "layer norm, 8192x1024",
        lambda quick: normal((64 if quick else 8192, 1024), (1024,), (1024,)),
        {
            "tenon": lambda tn, x, weight, bias: tn.layer_norm(x, weight, bias),
            "numpy": numpy_layer_norm,
            "torch": lambda torch, x, weight, bias: torch.nn.functional.layer_norm(
                x, (1024,), weight, bias),
            "jax": jax_layer_norm,
        },
        Work(32 * M, 32 * M), Goal(5.0, least_ratio_many=3.0),
    ),
    Workload(
        "sum", "sum(x * y), 64 M",
        lambda quick: normal((M // 64 if quick else SUM,), (M // 64 if quick else SUM,)),
        {
            "tenon": lambda tn, x, y: tn.sum(x * y),
            "numpy": lambda np, x, y: np.sum(x * y),
            "torch": lambda torch, x, y: torch.sum(x * y),
            "jax": lambda jax, x, y: jax.numpy.sum(x * y),
        },
        Work(8 * SUM), Goal(1.0), tolerance=1e-2,
    ),
    Workload(
        "call", "exp(-x) + y, 16 elements",
        lambda quick: normal((16,), (16,)),
        {
            "tenon": lambda tn, x, y: tn.exp(-x) + y,
            "numpy": lambda np, x, y: np.exp(-x) + y,
            "torch": lambda torch, x, y: torch.exp(-x) + y,
            "jax": lambda jax, x, y: jax.numpy.exp(-x) + y,
        },
        goal=Goal(7.0, "jax", most_ms=1e-3),
    ),
]
