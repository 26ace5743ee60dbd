"""What physical models run on."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, ClassVar

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


@dataclass(frozen=True)
class SourceBackend(Backend):
    """Writes a model as one file, and evaluates with that file: nothing of Tenon is in it."""

    language: ClassVar[str]
    suffix: ClassVar[str] = ".py"


@dataclass(frozen=True)
class CBackend(SourceBackend):
    """One C file, for deployment: `cc -O3 model.c -lm`. Sizes are fixed; arrays are the caller's.

    Evaluating compiles it with the C compiler at hand; with more than one of `threads`, with
    OpenMP.
    """

    threads: int = 1

    language: ClassVar[str] = "c"
    suffix: ClassVar[str] = ".c"


@dataclass(frozen=True)
class NumpyBackend(SourceBackend):
    """One Python file that imports NumPy."""

    language: ClassVar[str] = "numpy"


@dataclass(frozen=True)
class TorchBackend(SourceBackend):
    """One Python file that imports PyTorch, run on `device`: "cpu", "cuda".

    With `jit=True` its functions go through `torch.compile`, with `mode` and `backend` of
    `jit_options`.
    """

    device: str = "cpu"

    language: ClassVar[str] = "torch"


@dataclass(frozen=True)
class JaxBackend(SourceBackend):
    """One Python file that imports JAX, run on `device`: "cpu", "gpu"; None: the one JAX prefers.

    Its functions go through `jax.jit`, unless with `jit=False`.
    """

    device: str | None = None

    language: ClassVar[str] = "jax"


class CudaBackend:
    """Comes with the GPU work."""

    def __init__(self, *_: Any, **__: Any) -> None:
        _core._fail("value", "CudaBackend: it comes with the GPU work; CpuBackend runs here")
