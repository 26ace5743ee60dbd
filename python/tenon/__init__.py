"""A tensor compiler: lazy tensors, transforms, compiled functions, and training."""

from __future__ import annotations

import os as _os

from . import _core

_core._set_package_folder(_os.path.dirname(__file__) + _os.sep)

from ._core import *  # noqa: F403
from ._core import __version__ as __version__
from .at import install as _install_at
from .creation import array as array
from .creation import asarray as asarray
from .creation import from_dlpack as from_dlpack
from .creation import result_type as result_type
from .einops_backend import install as _install_einops
from .numpy_names import average as average
from .numpy_names import delete as delete
from .numpy_names import dot as dot
from .numpy_names import gradient as gradient
from .numpy_names import histogram as histogram
from .numpy_names import insert as insert
from .numpy_names import install as _install_numpy_names
from .numpy_names import polyfit as polyfit
from .numpy_names import select as select
from .numpy_names import tril_indices as tril_indices
from .numpy_names import triu_indices as triu_indices
from .numpy_names import unique as unique
from .numpy_protocol import install as _install_numpy
from .tensor_names import install as _install_names
from .tensor_names import transpose as transpose

for _install in (_install_at, _install_names, _install_numpy, _install_numpy_names):
    _install(_core.Tensor)
_install_einops()

# Everything else is imported when it is first used: `import tenon` is to take no time. What type
# checkers and editors see of it stands here, and once more in the table below.
TYPE_CHECKING = False  # they take it for typing's; importing typing takes longer than all of this
if TYPE_CHECKING:
    from . import amp as amp
    from . import data as data
    from . import distributed as distributed
    from . import fft as fft
    from . import linalg as linalg
    from . import memory as memory
    from . import model as model
    from . import nn as nn
    from . import optim as optim
    from . import random as random
    from . import signal as signal
    from . import testing as testing
    from . import tree as tree
    from .array_api import (
        __array_api_version__ as __array_api_version__,
    )
    from .array_api import (
        __array_namespace_info__ as __array_namespace_info__,
    )
    from .array_api import (
        broadcast_shapes as broadcast_shapes,
    )
    from .array_api import (
        can_cast as can_cast,
    )
    from .array_api import (
        e as e,
    )
    from .array_api import (
        finfo as finfo,
    )
    from .array_api import (
        iinfo as iinfo,
    )
    from .array_api import (
        inf as inf,
    )
    from .array_api import (
        isdtype as isdtype,
    )
    from .array_api import (
        nan as nan,
    )
    from .array_api import (
        newaxis as newaxis,
    )
    from .array_api import (
        pi as pi,
    )
    from .auto_compile import (
        HotPaths as HotPaths,
    )
    from .auto_compile import (
        hot_paths as hot_paths,
    )
    from .auto_compile import (
        set_auto_compile as set_auto_compile,
    )
    from .checkpoints import (
        Checkpoints as Checkpoints,
    )
    from .checkpoints import (
        load_checkpoint as load_checkpoint,
    )
    from .checkpoints import (
        save_checkpoint as save_checkpoint,
    )
    from .compilation import (
        compile as compile,
    )
    from .compilation import (
        disable_compile as disable_compile,
    )
    from .compilation import (
        enable_compile as enable_compile,
    )
    from .compilation import (
        show as show,
    )
    from .control_flow import (
        associative_scan as associative_scan,
    )
    from .control_flow import (
        cond as cond,
    )
    from .control_flow import (
        fori_loop as fori_loop,
    )
    from .control_flow import (
        map as map,
    )
    from .control_flow import (
        scan as scan,
    )
    from .control_flow import (
        switch as switch,
    )
    from .control_flow import (
        while_loop as while_loop,
    )
    from .custom import (
        custom_function as custom_function,
    )
    from .custom import (
        custom_jvp as custom_jvp,
    )
    from .custom import (
        custom_vjp as custom_vjp,
    )
    from .debugging import debug_indices as debug_indices
    from .debugging import debug_nans as debug_nans
    from .device_scope import device as device
    from .executables import Executable as Executable
    from .explanation import (
        Explanation as Explanation,
    )
    from .explanation import (
        Profile as Profile,
    )
    from .explanation import (
        explain as explain,
    )
    from .explanation import (
        profile as profile,
    )
    from .files import (
        MissingFile as MissingFile,
    )
    from .files import (
        load as load,
    )
    from .files import (
        load_safetensors as load_safetensors,
    )
    from .files import (
        save as save,
    )
    from .files import (
        save_safetensors as save_safetensors,
    )
    from .files import (
        savez as savez,
    )
    from .files import (
        savez_compressed as savez_compressed,
    )
    from .grad_mode import enable_grad as enable_grad
    from .grad_mode import no_grad as no_grad
    from .input_infos import (
        DimensionInputInfo as DimensionInputInfo,
    )
    from .input_infos import (
        InputInfo as InputInfo,
    )
    from .input_infos import (
        NamedDimension as NamedDimension,
    )
    from .mesh import Mesh as Mesh
    from .mesh import layout as layout
    from .mesh import place as place
    from .mesh import shard as shard
    from .mesh import shard_map as shard_map
    from .mesh import stored as stored
    from .mesh import worker_stats as worker_stats
    from .mesh import workers as workers
    from .model import (
        CBackend as CBackend,
    )
    from .model import (
        CpuBackend as CpuBackend,
    )
    from .model import (
        CudaBackend as CudaBackend,
    )
    from .model import (
        InterpreterBackend as InterpreterBackend,
    )
    from .model import (
        IOKey as IOKey,
    )
    from .model import (
        JaxBackend as JaxBackend,
    )
    from .model import (
        Model as Model,
    )
    from .model import (
        NumpyBackend as NumpyBackend,
    )
    from .model import (
        PhysicalModel as PhysicalModel,
    )
    from .model import (
        TorchBackend as TorchBackend,
    )
    from .model import (
        TrainModel as TrainModel,
    )
    from .nn import (
        Conv as Conv,
    )
    from .nn import (
        ConvTranspose as ConvTranspose,
    )
    from .nn import (
        Embedding as Embedding,
    )
    from .nn import (
        GroupNorm as GroupNorm,
    )
    from .nn import (
        LayerNorm as LayerNorm,
    )
    from .nn import (
        Linear as Linear,
    )
    from .nn import (
        Module as Module,
    )
    from .nn import (
        RMSNorm as RMSNorm,
    )
    from .nn import (
        Sequential as Sequential,
    )
    from .nn import (
        pipeline as pipeline,
    )
    from .printing import (
        get_printoptions as get_printoptions,
    )
    from .printing import (
        printoptions as printoptions,
    )
    from .printing import (
        set_printoptions as set_printoptions,
    )
    from .progress_bar import Progress as Progress
    from .progress_bar import progress as progress
    from .random import (
        multinomial as multinomial,
    )
    from .random import (
        rand as rand,
    )
    from .random import (
        rand_like as rand_like,
    )
    from .random import (
        randn as randn,
    )
    from .random import (
        randn_like as randn_like,
    )
    from .transforms import (
        ShapeDtypeStruct as ShapeDtypeStruct,
    )
    from .transforms import (
        checkpoint as checkpoint,
    )
    from .transforms import (
        eval_shape as eval_shape,
    )
    from .transforms import (
        grad as grad,
    )
    from .transforms import (
        hessian as hessian,
    )
    from .transforms import (
        jacfwd as jacfwd,
    )
    from .transforms import (
        jacobian as jacobian,
    )
    from .transforms import (
        jacrev as jacrev,
    )
    from .transforms import (
        jvp as jvp,
    )
    from .transforms import (
        linearize as linearize,
    )
    from .transforms import (
        value_and_grad as value_and_grad,
    )
    from .transforms import (
        vjp as vjp,
    )
    from .transforms import (
        vmap as vmap,
    )

_PARTS = (  # that users import by name
    "amp data distributed fft linalg memory model nn optim random signal testing tree".split()
)
_HOMES = {  # modules, and the names that are taken from them
    "array_api": "__array_api_version__ __array_namespace_info__ broadcast_shapes can_cast e finfo"
    " iinfo inf isdtype nan newaxis pi",
    "auto_compile": "HotPaths hot_paths set_auto_compile",
    "checkpoints": "Checkpoints load_checkpoint save_checkpoint",
    "compilation": "compile disable_compile enable_compile show",
    "control_flow": "associative_scan cond fori_loop map scan switch while_loop",
    "custom": "custom_function custom_jvp custom_vjp",
    "debugging": "debug_indices debug_nans",
    "device_scope": "device",
    "mesh": "Mesh layout place shard shard_map stored worker_stats workers",
    "executables": "Executable",
    "explanation": "Explanation Profile explain profile",
    "files": "MissingFile load load_safetensors save save_safetensors savez savez_compressed",
    "grad_mode": "enable_grad no_grad",
    "input_infos": "DimensionInputInfo InputInfo NamedDimension",
    "model": "CBackend CpuBackend CudaBackend IOKey InterpreterBackend JaxBackend Model"
    " NumpyBackend PhysicalModel TorchBackend TrainModel",
    "nn": "Conv ConvTranspose Embedding GroupNorm LayerNorm Linear Module RMSNorm Sequential"
    " pipeline",
    "printing": "get_printoptions printoptions set_printoptions",
    "progress_bar": "Progress progress",
    "random": "multinomial rand rand_like randn randn_like",
    "transforms": "ShapeDtypeStruct checkpoint eval_shape grad hessian jacfwd jacobian jacrev jvp"
    " linearize value_and_grad vjp vmap",
}
_LATER = {name: home for home, names in _HOMES.items() for name in names.split()}


if not TYPE_CHECKING:  # to type checkers it would say that every name exists

    def __getattr__(name: str) -> object:
        """Parts that are imported when first used, and advice for names that do not exist."""
        from importlib import import_module

        if name in _PARTS:
            return import_module(f"tenon.{name}")  # which makes it an attribute
        if name in _LATER:
            found = getattr(import_module(f"tenon.{_LATER[name]}"), name)
            globals()[name] = found
            return found
        if name.endswith("_result"):
            from .copying import result_class

            if kind := result_class(name):
                return kind
        from ._advice import missing_name

        raise AttributeError(missing_name(name, __dir__()), name=name)


def __dir__() -> list[str]:
    """List the public names, without imports and modules of the implementation."""
    module = type(_core)
    hidden = {"TYPE_CHECKING", "annotations"}
    here = [
        name
        for name, value in list(globals().items())  # other threads may import parts meanwhile
        if not name.startswith("_") and name not in hidden and type(value) is not module
    ]
    return sorted({*here, *_PARTS, *_LATER, "__version__"})


for _name, _near in _core._stray_variables():
    import warnings as _warnings

    _warnings.warn(f"unknown environment variable {_name}; did you mean {_near}?", stacklevel=2)
if _core._is_worker():  # what it starts is none, and gets the variables from here
    _os.environ["TENON_WORKER_PROCESS"] = str(_os.getpid())
if _os.environ.get("TENON_WATCH", "0") not in ("", "0"):
    from .watching.door import open_door as _open_door

    _open_door()
if _os.environ.get("TENON_TRACE"):
    from .watching.self_recording import start as _start_recording

    _start_recording()
