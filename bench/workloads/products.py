"""Products of matrices, which arithmetic bounds."""

from __future__ import annotations

import numpy as np

from workloads.arrays import normal
from workloads.workload import Goal, Work, Workload


def matrices(n: int, quick: bool) -> tuple[np.ndarray, ...]:
    n = 64 if quick else n
    a, b = normal((n, n), (n, n))
    return a, b / np.float32(n**0.5)


def with_bias(quick: bool) -> tuple[np.ndarray, ...]:
    a, b = matrices(1024, quick)
    return a, b, *normal((len(a),))


def matmul(lib, a, b):
    return a @ b


def has_amx() -> bool:
    try:
        with open("/proc/cpuinfo") as lines:
            return "amx_bf16" in lines.read()
    except OSError:
        return False


WORKLOADS = [
    Workload(
        "matmul_bias_relu", "matmul 1024x1024x1024 + bias, relu",
        with_bias,
        {
            "tenon": lambda tn, a, b, c: tn.relu(a @ b + c),
            "numpy": lambda np, a, b, c: np.maximum(a @ b + c, 0),
            "torch": lambda torch, a, b, c: torch.relu(torch.addmm(c, a, b)),
            "jax": lambda jax, a, b, c: jax.nn.relu(a @ b + c),
        },
        Work(multiply_adds=1024**3), Goal(1.05), tolerance=1e-3,
    ),
    Workload(
        "matmul", "matmul 2048x2048x2048",
        lambda quick: matrices(2048, quick),
        {"tenon": matmul, "numpy": matmul, "torch": matmul, "jax": matmul},
        Work(multiply_adds=2048**3), Goal(0.95), tolerance=1e-3,
    ),
    Workload(
        "matmul_bf16", "matmul 2048x2048x2048, bfloat16",
        lambda quick: matrices(2048, quick),
        {"tenon": matmul, "torch": matmul, "jax": matmul},
        Work(), Goal(2.5 if has_amx() else None, "tenon float32"), tolerance=0.1,
        dtype="bfloat16", rivals=("tenon float32",),
    ),
]
