"""The backends of physical models."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, ClassVar

from .. import _core


@dataclass(frozen=True)
class Backend:
    """`precision` is the element type of floating parameters, states and data.

    Results are `tn.Tensor` on every backend.
    """

    precision: Any = "float32"

    def __post_init__(self) -> None:
        if _core.dtype(self.precision).kind != "real floating":
            name = type(self).__name__
            _core._fail("value", f"{name}: precision is a floating type, not {self.precision!r}")


@dataclass(frozen=True)
class CpuBackend(Backend):
    """The compiler of this library, for this machine.

    With `threads=1` an evaluation runs on its calling thread. Any other number sets the number of
    threads of the process, which all evaluations share.
    """

    threads: int | None = None

    def __post_init__(self) -> None:
        super().__post_init__()
        known = self.threads is None or type(self.threads) is int and self.threads >= 1
        if not known:
            _core._fail("value", f"CpuBackend: threads is 1 or more, not {self.threads!r}")


@dataclass(frozen=True)
class CudaBackend(Backend):
    """The compiler of this library, for an NVIDIA GPU: `device` is "cuda", "cuda:1".

    Parameters, states and results are on the GPU. Values that are elsewhere, such as NumPy arrays,
    are copied there by every evaluation. A machine without a GPU can compile for one: `save` writes
    code for the `target_hardware` of `tn.compile`.
    """

    device: Any = "cuda"

    def __post_init__(self) -> None:
        super().__post_init__()
        if str(self.device).partition(":")[0] != "cuda":
            text = f"CudaBackend: device is \"cuda\" or \"cuda:1\", not {self.device!r}"
            _core._fail("value", text, "tn.CpuBackend() is for CPUs")


@dataclass(frozen=True)
class InterpreterBackend(Backend):
    """The interpreter of this library: no code generation, the same bits."""


@dataclass(frozen=True)
class SourceBackend(Backend):
    """Writes a model as one source file, which does not need Tenon, and evaluates with it."""

    language: ClassVar[str]
    suffix: ClassVar[str] = ".py"


@dataclass(frozen=True)
class CBackend(SourceBackend):
    """One C file, for deployment: `cc -O3 model.c -lm`. Sizes are fixed; the caller owns arrays.

    Evaluation compiles it with the system's C compiler, and with OpenMP for several `threads`.
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

    With `jit=True` its functions are compiled by `torch.compile`, with `mode` and `backend` of
    `jit_options`.
    """

    device: str = "cpu"

    language: ClassVar[str] = "torch"


@dataclass(frozen=True)
class JaxBackend(SourceBackend):
    """One Python file that imports JAX, run on `device`: "cpu", "gpu"; None: JAX's default.

    Its functions are compiled by `jax.jit` unless `jit=False`.
    """

    device: str | None = None

    language: ClassVar[str] = "jax"


