"""The rivals by name: how each library is asked to run a workload.

`prepare(workload, inputs)` gives a function that runs it once and returns when the results are
there; `values(result)` gives those as an array of NumPy.
"""

from __future__ import annotations

import importlib
from typing import Any

RIVALS = {  # name -> module here, and what tells its instances apart
    "tenon": ("on_tenon", {}),
    "tenon float32": ("on_tenon", {"dtype": "float32"}),
    "tenon uncompiled": ("on_tenon", {"compiles": False}),
    "numpy": ("on_numpy", {}),
    "torch": ("on_torch", {"mode": "eager"}),
    "torch.compile": ("on_torch", {"mode": "compile"}),
    "torch frozen": ("on_torch", {"mode": "frozen"}),
    "jax": ("on_jax", {}),
    "onnxruntime": ("on_onnxruntime", {}),
}
FAMILIES = {"torch.compile": "torch", "torch frozen": "torch",
            "tenon float32": "tenon", "tenon uncompiled": "tenon"}
# These run where a workload names them.
BEYOND_VERSIONS = ("tenon float32", "tenon uncompiled", "torch frozen")


def family(rival: str) -> str:
    """The library of a rival, as `versions` of a workload names it."""
    return FAMILIES.get(rival, rival)


def load(rival: str, threads: int) -> Any:
    module, options = RIVALS[rival]
    return importlib.import_module(f"libraries.{module}").Library(threads, **options)
