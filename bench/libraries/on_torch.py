"""PyTorch: eager, torch.compile, and torch.compile with frozen weights."""

from __future__ import annotations

import numpy as np
import torch

from workloads.workload import leaves, map_tree


class Library:
    def __init__(self, threads: int, mode: str) -> None:
        torch.set_num_threads(threads)
        self.mode = mode
        if mode == "frozen":
            from torch._inductor import config

            config.freezing = True

    def compiled(self, f):
        return f if self.mode == "eager" else torch.compile(f)

    def array(self, a: np.ndarray, dtype: str):
        x = torch.tensor(a)
        return x.to(getattr(torch, dtype)) if x.is_floating_point() else x

    def prepare(self, workload, inputs):
        f = workload.versions["torch"]
        inputs = map_tree(lambda a: self.array(np.asarray(a), workload.dtype), inputs)
        if workload.kind == "step":
            state, *batch = inputs
            step = f(torch, self.compiled, state)
            return lambda: step(*batch)
        if workload.kind == "model":
            weights, *inputs = inputs
            function = self.compiled(Model(f, weights))
        else:
            function = self.compiled(lambda *inputs: f(torch, *inputs))

        def run():
            with torch.no_grad():
                return function(*inputs)

        return run

    def values(self, result) -> np.ndarray:
        return torch.cat([a.detach().float().ravel() for a in leaves(result)]).numpy()


class Model(torch.nn.Module):
    """Weights become parameters, which is what freezing looks for."""

    def __init__(self, f, weights) -> None:
        super().__init__()
        self.f = f
        self.weights = map_tree(self.parameter, weights)

    def parameter(self, tensor):
        parameter = torch.nn.Parameter(tensor, requires_grad=False)
        self.register_parameter(f"p{len(self._parameters)}", parameter)
        return parameter

    def forward(self, *inputs):
        return self.f(torch, self.weights, *inputs)
