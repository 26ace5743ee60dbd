"""Logical models: described once by blocks, names and connections, compiled for many backends.

    >>> from tenon.model import Linear, Relu
    >>> model = tn.Model()
    >>> model |= Linear(64)(input="x", output="h")
    >>> model += Relu()
    >>> model += Linear(10)
    >>> physical = tn.compile(model, tn.CpuBackend(), shapes={"x": [32, 16]})
    >>> physical.get_shapes()["linear_1.weight"]
    (10, 64)

Every op is a block under its capitalized name (`Softmax`, `Add`), and so is every layer of
`tenon.nn`. Sizes that can be inferred may be omitted.
"""

from __future__ import annotations

from typing import Any

from .backends import (
    CBackend,
    CpuBackend,
    CudaBackend,
    InterpreterBackend,
    JaxBackend,
    NumpyBackend,
    TorchBackend,
)
from .blocks import block_named, block_names
from .connections import Connection
from .logical import Block, Connected, IOKey, Model, Terminal
from .modules import block
from .physical import PhysicalModel, compile_model
from .training import PhysicalTrainModel, TrainModel

__all__ = [  # noqa: PLE0604  the last entry adds strings
    "Block",
    "CBackend",
    "Connected",
    "Connection",
    "CpuBackend",
    "CudaBackend",
    "IOKey",
    "InterpreterBackend",
    "JaxBackend",
    "Model",
    "NumpyBackend",
    "PhysicalModel",
    "PhysicalTrainModel",
    "Terminal",
    "TorchBackend",
    "TrainModel",
    "block",
    "compile_model",
    *block_names(),
]


def __getattr__(name: str) -> Any:
    return block_named(name)


def __dir__() -> list[str]:
    return sorted({*globals(), *block_names()})
