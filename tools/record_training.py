#!/usr/bin/env python3
"""Record what PyTorch gives for tests/python/training_cases.py in tests/data/torch_training.npz.

To be run with a Python that has torch and numpy, when the cases change:

    python3 -m venv /tmp/torch && /tmp/torch/bin/pip install torch numpy
    /tmp/torch/bin/python tools/record_training.py
"""

import pathlib
import sys

import numpy as np
import torch

ROOT = pathlib.Path(__file__).resolve().parent.parent
sys.path.insert(0, str(ROOT / "tests/python"))

from record_gradients import record as record_gradients  # noqa: E402
from training_cases import LOSSES  # noqa: E402


def main():
    torch.set_num_threads(1)
    recorded = {"torch": np.asarray(torch.__version__)}
    for case in LOSSES:
        recorded |= record_gradients(case)
    path = ROOT / "tests/data/torch_training.npz"
    np.savez_compressed(path, **recorded)
    print(f"{path}: {len(LOSSES)} losses, {path.stat().st_size >> 10} KiB")


if __name__ == "__main__":
    main()
