"""JAX, through `jax.jit`. Weights are arguments: as constants XLA would fold them for minutes."""

from __future__ import annotations

import jax
import numpy as np

from workloads.workload import leaves, map_tree


class Library:
    def __init__(self, threads: int) -> None:
        pass  # it takes one thread for each processor the process may use

    def prepare(self, workload, inputs):
        def array(a):
            x = jax.numpy.asarray(a)
            return x.astype(workload.dtype) if x.dtype == np.float32 else x

        f = workload.versions["jax"]
        inputs = map_tree(array, inputs)
        if workload.kind != "step":
            function = jax.jit(lambda *inputs: f(jax, *inputs))
            return lambda: jax.block_until_ready(function(*inputs))
        step = jax.jit(lambda *inputs: f(jax, *inputs), donate_argnums=0)
        state, *batch = inputs

        def run():
            nonlocal state
            loss, state = jax.block_until_ready(step(state, *batch))
            return loss

        return run

    def values(self, result) -> np.ndarray:
        return np.concatenate([np.ravel(a).astype(np.float32) for a in leaves(result)])
