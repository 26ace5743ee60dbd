"""Lazy tensors: write tensor code plainly, run it when a value is needed."""

from __future__ import annotations

import os as _os

from . import _core

_core._set_package_folder(_os.path.dirname(__file__) + _os.sep)

from . import data, fft, linalg, memory, random, tree
from ._core import *  # noqa: F403
from ._core import __version__
from .array_api import (
    __array_api_version__,
    __array_namespace_info__,
    broadcast_shapes,
    can_cast,
    e,
    finfo,
    iinfo,
    inf,
    isdtype,
    nan,
    newaxis,
    pi,
)
from .at import install as _install_at
from .auto_compile import HotPaths, hot_paths, set_auto_compile
from .checkpoints import Checkpoints, load_checkpoint, save_checkpoint
from .compilation import compile, disable_compile, enable_compile, show
from .control_flow import cond, scan, while_loop
from .creation import array, asarray, from_dlpack, result_type
from .custom import custom_function
from .debugging import debug_nans
from .executables import Executable
from .explanation import Explanation, Profile, explain, profile
from .files import (
    MissingFile,
    load,
    load_safetensors,
    save,
    save_safetensors,
    savez,
    savez_compressed,
)
from .grad_mode import enable_grad, no_grad
from .input_infos import DimensionInputInfo, InputInfo, NamedDimension
from .progress_bar import Progress, progress
from .random import rand, randn
from .tensor_names import install as _install_names
from .transforms import (
    checkpoint,
    grad,
    hessian,
    jacfwd,
    jacobian,
    jacrev,
    jvp,
    value_and_grad,
    vjp,
    vmap,
)

_install_at(_core.Tensor)
_install_names(_core.Tensor)

from . import amp, nn, optim, signal  # noqa: E402  (written on what is above)
from .nn import (  # noqa: E402
    Conv,
    ConvTranspose,
    Embedding,
    GroupNorm,
    LayerNorm,
    Linear,
    Module,
    RMSNorm,
    Sequential,
)


_LATER = {  # parts that are imported when first used; names, and the modules that hold them
    "model": None,
    "testing": None,
    "CBackend": "model",
    "CpuBackend": "model",
    "CudaBackend": "model",
    "IOKey": "model",
    "InterpreterBackend": "model",
    "JaxBackend": "model",
    "Model": "model",
    "NumpyBackend": "model",
    "PhysicalModel": "model",
    "TorchBackend": "model",
    "TrainModel": "model",
}


def __getattr__(name: str) -> object:
    """Parts that are imported when first used, and advice for names that do not exist."""
    if name in _LATER:
        import importlib

        module = importlib.import_module(f"tenon.{_LATER[name] or name}")
        return getattr(module, name) if _LATER[name] else module
    from ._advice import missing_name

    raise AttributeError(missing_name(name, globals()), name=name)


def __dir__() -> list[str]:
    return sorted([*(n for n in globals() if not n.startswith("_")), *_LATER, "__version__"])


for _name, _near in _core._stray_variables():
    import warnings as _warnings

    _warnings.warn(f"{_name} means nothing; did you mean {_near}?", stacklevel=2)
if _os.environ.get("TENON_WATCH", "0") not in ("", "0"):
    from .watching.door import open_door as _open_door

    _open_door()
if _os.environ.get("TENON_TRACE"):
    from .watching.self_recording import start as _start_recording

    _start_recording()
