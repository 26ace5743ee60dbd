#!/usr/bin/env python3
"""Record what PyTorch gives for tests/python/training_cases.py in tests/data/torch_training.npz.

To be run with a Python that has torch and numpy, when the cases change:

    python3 -m venv /tmp/torch && /tmp/torch/bin/pip install torch numpy
    /tmp/torch/bin/python tools/record_training.py

With --new only those are recorded that are not there yet.
"""

import pathlib
import sys
from unittest import mock

import numpy as np
import torch

ROOT = pathlib.Path(__file__).resolve().parent.parent
sys.path.insert(0, str(ROOT / "tests/python"))

from record_gradients import record as record_gradients  # noqa: E402
from training_cases import (  # noqa: E402
    LOSSES,
    MINIMIZED,
    OPTIMIZERS,
    RECORDED,
    SCHEDULERS,
)


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


def record_rates(case):
    """The learning rate, and the momentum where it changes, of every step."""
    optimizer = torch.optim.SGD([torch.nn.Parameter(torch.zeros(1))], lr=0.5, momentum=0.9)
    scheduler, rows = case.theirs(torch.optim.lr_scheduler, optimizer), []
    for metric in case.metrics:
        group = optimizer.param_groups[0]
        rows.append([group["lr"], group["momentum"]])
        optimizer.step()
        scheduler.step() if metric is None else scheduler.step(metric)
    return {f"{case.name}/rates": np.asarray(rows)}


def record_minima(case):
    """The parameters after every step of LBFGS."""
    parameters = [torch.nn.Parameter(torch.tensor(start)) for start in case.start]
    optimizer, rows = torch.optim.LBFGS(parameters, **case.options), []

    def closure():
        optimizer.zero_grad()
        loss = case.loss(*parameters)
        loss.backward()
        return loss

    for _ in range(case.steps):
        optimizer.step(closure)
        rows.append(np.concatenate([p.detach().numpy().ravel() for p in parameters]))
    return {f"{case.name}/minimum": np.stack(rows)}


def main():
    torch.set_num_threads(1)
    path = ROOT / "tests/data/torch_training.npz"
    recorded = {}
    if "--new" in sys.argv[1:]:
        with np.load(path) as file:
            recorded = dict(file)
    known = {key.split("/")[0] for key in recorded}
    recorded.setdefault("torch", np.asarray(torch.__version__))
    for record, cases in (
        (record_gradients, LOSSES),
        (record_steps, OPTIMIZERS),
        (record_rates, SCHEDULERS),
        (record_minima, MINIMIZED),
    ):
        for case in cases:
            if case.name not in known:
                recorded |= record(case)
    np.savez_compressed(path, **recorded)
    counts = f"{len(LOSSES)} losses, {len(OPTIMIZERS)} optimizers"
    print(f"{path}: {counts}, {path.stat().st_size >> 10} KiB")


if __name__ == "__main__":
    main()
