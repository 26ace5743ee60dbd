#!/usr/bin/env python3
"""Record what PyTorch gives for tests/python/tensor_cases.py in tests/data/torch_tensors.npz.

To be run with a Python that has torch and numpy, when the cases change:

    python3 -m venv /tmp/torch && /tmp/torch/bin/pip install torch numpy
    /tmp/torch/bin/python tools/record_tensors.py
"""

import pathlib
import sys

import numpy as np
import torch

ROOT = pathlib.Path(__file__).resolve().parent.parent
sys.path.insert(0, str(ROOT / "tests/python"))

from layer_cases import save  # noqa: E402
from tensor_cases import ARRAYS, CALLS, results  # noqa: E402


def main():
    names = {name: torch.tensor(array) for name, array in ARRAYS.items()}
    recorded = {}
    for call in CALLS:
        for i, array in enumerate(results(eval(call, {"t": torch, **names}))):
            dtype = np.float32 if array.dtype.kind == "f" else array.dtype
            recorded[f"{call}/{i}"] = array.astype(dtype)
    path = ROOT / "tests/data/torch_tensors.npz"
    save(path, recorded)
    print(f"{path}: {len(CALLS)} calls, {path.stat().st_size >> 10} KiB")


if __name__ == "__main__":
    main()
