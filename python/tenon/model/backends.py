"""What physical models run on."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any


@dataclass(frozen=True)
class CpuBackend:
    """The compiler of this library, for the processor at hand."""

    precision: Any = "float32"
    threads: int | None = None


@dataclass(frozen=True)
class InterpreterBackend:
    """The interpreter of this library: nothing is compiled, the bits are the same."""

    precision: Any = "float32"
