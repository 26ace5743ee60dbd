#!/usr/bin/env python3
"""Record PyTorch's gradients of tests/python/torch_cases.py in tests/data/torch_gradients.npz.

To be run with a Python that has torch and numpy, when the cases change:

    python3 -m venv /tmp/torch && /tmp/torch/bin/pip install torch numpy
    /tmp/torch/bin/python tools/record_gradients.py
"""

import pathlib
import sys
import zlib

import numpy as np
import torch

ROOT = pathlib.Path(__file__).resolve().parent.parent
sys.path.insert(0, str(ROOT / "tests/python"))

from torch_cases import CASES  # noqa: E402


def record(case):
    """Arrays by name. PyTorch's gradients are conjugates of Tenon's, and of its pairs with them."""
    arrays = case.draw()
    inputs = [torch.tensor(x, requires_grad=x.dtype.kind in "fc") for x in arrays]
    out = case.theirs(*inputs)
    out = list(out) if isinstance(out, (list, tuple)) else [out]
    rng = np.random.default_rng(zlib.crc32(case.name.encode()) + 1)
    cts = [rng.uniform(-1, 1, tuple(y.shape)) for y in out]
    cts = [c + 1j * rng.uniform(-1, 1, c.shape) if y.is_complex() else c for c, y in zip(cts, out)]
    wanted = [x for x in inputs if x.requires_grad]
    back = torch.autograd.grad(out, wanted, [torch.tensor(np.conj(c)) for c in cts])
    made = {f"in{i}": x for i, x in enumerate(arrays)}
    made |= {f"out{i}": y.detach().resolve_conj().numpy() for i, y in enumerate(out)}
    made |= {f"ct{i}": c for i, c in enumerate(cts)}
    made |= {f"grad{i}": g.conj().resolve_conj().numpy() for i, g in enumerate(back)}
    return {f"{case.name}/{key}": value for key, value in made.items()}


def main():
    torch.set_num_threads(1)
    recorded = {"torch": np.asarray(torch.__version__)}
    for case in CASES:
        recorded |= record(case)
    path = ROOT / "tests/data/torch_gradients.npz"
    path.parent.mkdir(exist_ok=True)
    np.savez_compressed(path, **recorded)
    print(f"{path}: {len(CASES)} cases, {path.stat().st_size >> 10} KiB")


if __name__ == "__main__":
    main()
