"""Tenon, through `tn.compile`."""

from __future__ import annotations

import functools

import numpy as np

import tenon as tn
from workloads.workload import leaves, map_tree


class Library:
    def __init__(self, threads: int, dtype: str | None = None, compiles: bool = True) -> None:
        tn.set_num_threads(threads)
        self.dtype = dtype
        self.compiles = compiles

    def array(self, a: np.ndarray, dtype: str):
        converts = a.dtype == np.float32 and dtype != "float32"
        return tn.array(a).astype(getattr(tn, dtype)).eval() if converts else tn.array(a)

    def prepare(self, workload, inputs):
        dtype = self.dtype or workload.dtype
        f = workload.versions["tenon"]
        first, *rest = inputs = map_tree(lambda a: self.array(np.asarray(a), dtype), inputs)
        if workload.kind == "model":
            forward = tn.compile(lambda *inputs: f(tn, first, *inputs))
            return functools.partial(forward, *rest)
        if workload.kind == "function" and not self.compiles:
            return lambda: f(tn, *inputs).eval()
        if workload.kind == "function":
            function = tn.compile(lambda *inputs: f(tn, *inputs))
            return functools.partial(function, *inputs)  # a compiled call returns values
        step, state = tn.compile(lambda *inputs: f(tn, *inputs)), first

        def run():
            nonlocal state
            loss, state = step(state, *rest)
            tn.eval(loss, state)
            return loss

        return run

    def values(self, result) -> np.ndarray:
        return np.concatenate([np.asarray(a.astype(tn.float32)).ravel() for a in leaves(result)])

    def peak_bytes(self) -> int:
        return tn.memory.peak_memory()
