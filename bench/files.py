"""What saving and loading weights costs, beside NumPy and the safetensors package."""

from __future__ import annotations

import importlib.util
import os
import tempfile
from collections.abc import Callable
from dataclasses import dataclass

import numpy as np

import measure
import tenon as tn

COUNT = 100  # tensors


@dataclass
class Case:
    """Seconds of ours, and of another library's same."""

    name: str
    ours: float
    theirs: float | None = None
    rival: str = ""


def weights(size: int) -> dict[str, tn.Tensor]:
    """`size` bytes in all."""
    key = tn.random.key(0)
    elements = size // 4 // COUNT
    return {f"layers.{i}.weight": tn.random.normal((elements,), key=tn.random.fold_in(key, i))
            for i in range(COUNT)}


def rivals(folder: str, arrays: dict[str, np.ndarray]) -> tuple[str, Callable, Callable]:
    """Name, save, load of another library; NumPy if safetensors is not installed."""
    if importlib.util.find_spec("safetensors"):
        from safetensors.numpy import load_file, save_file

        path = os.path.join(folder, "theirs.safetensors")
        return "safetensors", lambda: save_file(arrays, path), lambda: load_file(path)
    path = os.path.join(folder, "theirs.npz")
    load = lambda: dict(np.load(path).items())
    return "NumPy's npz", lambda: np.savez(path, **arrays), load


def cases(size: int) -> list[Case]:
    tensors = weights(size)
    arrays = {name: tensor.numpy() for name, tensor in tensors.items()}
    used = lambda loaded: tn.eval([tn.sum(tensor) for tensor in loaded.values()])
    with tempfile.TemporaryDirectory() as folder:
        path = os.path.join(folder, "ours.safetensors")
        rival, save, load = rivals(folder, arrays)
        saved = measure.interleave(lambda: tn.save_safetensors(path, tensors), save, 0, 3)
        loaded = measure.interleave(lambda: tn.load(path), load, 0, 3)
        read = measure.interleave(lambda: used(tn.load(path)),
                                  lambda: [a.sum() for a in load().values()], 0, 3)
        verify = measure.in_turn([lambda: tn.load_safetensors(path, verify=True)], 0, 3)
    return [Case("save", *saved, f"{rival}, which may not sync"), Case("load", *loaded, rival),
            Case("load and sum", *read, rival), Case("load and verify", *verify)]
