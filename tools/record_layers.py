#!/usr/bin/env python3
"""Record what PyTorch gives for tests/python/layer_cases.py in tests/data/torch_layers.npz.

To be run with a Python that has torch and numpy, when the cases change:

    python3 -m venv /tmp/torch && /tmp/torch/bin/pip install torch numpy
    /tmp/torch/bin/python tools/record_layers.py

With --new only those are recorded that are not there yet.
"""

import pathlib
import sys
import zlib

import numpy as np
import torch

ROOT = pathlib.Path(__file__).resolve().parent.parent
sys.path.insert(0, str(ROOT / "tests/python"))

from layer_cases import CASES, as_float32, cotangent, flat, load, save  # noqa: E402

BUFFERS = ("running_mean", "running_var")


def draw_state(case, layer):
    """Random parameters for the layer, by name; variances are positive."""
    rng = np.random.default_rng(zlib.crc32(case.name.encode()) + 1)
    state = {}
    for name, tensor in layer.state_dict().items():
        if name.endswith("num_batches_tracked"):
            continue
        low = 0.3 if name.endswith("running_var") else -1
        state[name] = as_float32(rng.uniform(low, 1, tuple(tensor.shape)))
    return state


def record(case):
    """Arrays by name, computed in double precision from inputs in single precision."""
    layer = case.theirs().double().train(case.training)
    arrays, state = case.draw(), draw_state(case, layer)
    layer.load_state_dict({k: torch.tensor(v) for k, v in state.items()}, strict=False)
    inputs = [torch.tensor(x, dtype=torch.float64 if x.dtype.kind == "f" else None) for x in arrays]
    wanted = [x.requires_grad_() for x in inputs if x.is_floating_point()]
    parameters = dict(layer.named_parameters())
    out = flat(case.call_theirs(layer, *inputs))
    loss = sum(torch.sum(y * torch.tensor(cotangent(tuple(y.shape)))) for y in out)
    gradients = torch.autograd.grad(loss, [*wanted, *parameters.values()])
    made = {f"in/{i}": x for i, x in enumerate(arrays)}
    made |= {f"state/{k}": v for k, v in state.items()}
    made |= {f"out/{i}": y.detach().numpy() for i, y in enumerate(out)}
    made |= {f"input gradient/{i}": g.numpy() for i, g in enumerate(gradients[: len(wanted)])}
    made |= {f"gradient/{k}": g.numpy() for k, g in zip(parameters, gradients[len(wanted) :])}
    after = {k: v for k, v in layer.state_dict().items() if k.split(".")[-1] in BUFFERS}
    made |= {f"after/{k}": v.numpy() for k, v in after.items()}
    return {f"{case.name}/{key}": as_float32(value) for key, value in made.items()}


def main():
    torch.set_num_threads(1)
    path = ROOT / "tests/data/torch_layers.npz"
    recorded = load(path) if "--new" in sys.argv[1:] else {}
    known = {key.split("/")[0] for key in recorded}
    for case in CASES:
        if case.name not in known:
            recorded |= record(case)
    save(path, recorded)
    print(f"{path}: {len(CASES)} layers, {path.stat().st_size >> 10} KiB")


if __name__ == "__main__":
    main()
