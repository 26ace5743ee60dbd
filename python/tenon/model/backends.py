"""What physical models run on."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

from .. import _core


@dataclass(frozen=True)
class Backend:
    """`precision` is the element type of floating parameters, states and data.

    Results are `tn.Tensor` on every backend, so that programs need not know which one it is.
    """

    precision: Any = "float32"

    def __post_init__(self) -> None:
        if _core.dtype(self.precision).kind != "real floating":
            name = type(self).__name__
            _core._fail("value", f"{name}: precision is a floating type, not {self.precision!r}")


@dataclass(frozen=True)
class CpuBackend(Backend):
    """The compiler of this library, for the processor at hand.

    With `threads=1` an evaluation stays on the thread that asks for it. Any other number is that
    of the process, whose threads all evaluations share: compiling sets it.
    """

    threads: int | None = None

    def __post_init__(self) -> None:
        super().__post_init__()
        known = self.threads is None or type(self.threads) is int and self.threads >= 1
        if not known:
            _core._fail("value", f"CpuBackend: threads is 1 or more, not {self.threads!r}")


@dataclass(frozen=True)
class InterpreterBackend(Backend):
    """The interpreter of this library: nothing is compiled, the bits are the same."""


class CudaBackend:
    """Comes with the GPU work."""

    def __init__(self, *_: Any, **__: Any) -> None:
        _core._fail("value", "CudaBackend: it comes with the GPU work; CpuBackend runs here")
