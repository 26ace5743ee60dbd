#!/usr/bin/env python3
"""Record what PyTorch gives for tests/python/training_cases.py in tests/data/torch_training.npz.

To be run with a Python that has torch and numpy, when the cases change:

    python3 -m venv /tmp/torch && /tmp/torch/bin/pip install torch numpy
    /tmp/torch/bin/python tools/record_training.py
"""

import pathlib
import sys
from unittest import mock

import numpy as np
import torch

ROOT = pathlib.Path(__file__).resolve().parent.parent
sys.path.insert(0, str(ROOT / "tests/python"))

from record_gradients import record as record_gradients  # noqa: E402
from training_cases import LOSSES, OPTIMIZERS, RECORDED  # noqa: E402


def record_steps(case):
    """The parameters after some of the steps, in one row each. Muon computes in bfloat16, which
    no two programs do alike: it is given float64 in its place."""
    start, *gradients = case.drawn()
    parameters = [torch.nn.Parameter(torch.tensor(array)) for array in start.values()]
    optimizer = case.theirs(parameters)
    schedule = case.schedule(optimizer) if case.schedule else None
    rows = []
    for number, arrays in enumerate(gradients, 1):
        for parameter, gradient in zip(parameters, arrays.values()):
            parameter.grad = torch.tensor(gradient)
        if case.max_norm:
            torch.nn.utils.clip_grad_norm_(parameters, case.max_norm)
        with mock.patch.object(torch, "bfloat16", torch.float64):
            optimizer.step()
        if schedule:
            schedule.step()
        if number in RECORDED:
            rows.append(np.concatenate([p.detach().numpy().ravel() for p in parameters]))
    return {f"{case.name}/steps": np.stack(rows)}


def main():
    torch.set_num_threads(1)
    recorded = {"torch": np.asarray(torch.__version__)}
    for case in LOSSES:
        recorded |= record_gradients(case)
    for case in OPTIMIZERS:
        recorded |= record_steps(case)
    path = ROOT / "tests/data/torch_training.npz"
    np.savez_compressed(path, **recorded)
    counts = f"{len(LOSSES)} losses, {len(OPTIMIZERS)} optimizers"
    print(f"{path}: {counts}, {path.stat().st_size >> 10} KiB")


if __name__ == "__main__":
    main()
