# The stubs of tenon._core: by hand up to the line in `Tensor` from which on they are generated.
# ruff: noqa
import builtins as _builtins
from collections.abc import Iterable, Iterator, Sequence
from typing import (
    Any, Concatenate, Generic, Literal, NamedTuple, NoReturn, ParamSpec, TypeAlias, TypeVar,
    overload,
)
from types import ModuleType

_bool: TypeAlias = _builtins.bool
_complex: TypeAlias = _builtins.complex
ArrayLike: TypeAlias = Any
DTypeLike: TypeAlias = Any
_EventRow: TypeAlias = tuple[
    str, int, float, float, int, _bool, str, str, int, float, tuple[int, int, int]
]

class DType:
    dtype: Any
    name: str
    itemsize: int
    kind: str

class Device:
    kind: str
    type: str
    index: int
    def __init__(self, name: str | Device | None) -> None: ...
    def __eq__(self, other: object) -> _bool: ...
    def __hash__(self) -> int: ...

class _DeviceContext:
    device: Device
    def __init__(self, device: str | Device | None) -> None: ...
    def __enter__(self) -> Device: ...
    def __exit__(self, *args: object) -> None: ...

def _elsewhere(
    args: tuple[object, ...], kwargs: dict[str, Any]
) -> _DeviceContext | None: ...
def devices() -> list[Device]: ...
def default_device() -> Device: ...
def set_default_device(device: str | Device) -> None: ...

class Dim:
    def __index__(self) -> int: ...

bool: DType
int8: DType
int16: DType
int32: DType
int64: DType
uint8: DType
uint16: DType
uint32: DType
uint64: DType
float8_e4m3: DType
float8_e5m2: DType
float16: DType
bfloat16: DType
float32: DType
float64: DType
complex64: DType
complex128: DType
cpu: Device
__version__: str

class Op:
    __name__: str
    def __call__(self, *args: Any, **kwargs: Any) -> Any: ...

def _samples() -> list[dict[str, Any]]: ...
def _kernels_compiled() -> int: ...
def _interned() -> tuple[int, int, int]: ...
def _set_lasting_count(count: int) -> int: ...
def _op_names() -> list[str]: ...
class _WorkerGroup:
    """Workers that exchange tensors."""
    def rank(self) -> int: ...
    def size(self) -> int: ...
    def split(self, color: int, key: int = 0) -> _WorkerGroup: ...

def _is_worker() -> _bool: ...
def _init_workers() -> _WorkerGroup: ...
def _barrier(group: _WorkerGroup) -> None: ...
def _all_sum(x: Tensor, group: _WorkerGroup) -> Tensor: ...
def _all_max(x: Tensor, group: _WorkerGroup) -> Tensor: ...
def _all_min(x: Tensor, group: _WorkerGroup) -> Tensor: ...
def _all_gather(x: Tensor, group: _WorkerGroup) -> Tensor: ...
def _sum_scatter(x: Tensor, group: _WorkerGroup) -> Tensor: ...
def _all_to_all(x: Tensor, group: _WorkerGroup) -> Tensor: ...
def _sum_gradients(x: Tensor, group: _WorkerGroup) -> Tensor: ...
def _sum_replicated(x: Tensor, group: _WorkerGroup) -> Tensor: ...
def _send(x: Tensor, to: int, group: _WorkerGroup) -> Tensor: ...
def _recv_like(x: Tensor, source: int, group: _WorkerGroup) -> Tensor: ...
def _broadcast(x: Tensor, root: int, group: _WorkerGroup) -> Tensor: ...
def _mesh_device(sizes: list[tuple[str, int, int]]) -> str: ...
def _mesh_axes(device: str) -> list[tuple[str, int, int]]: ...
def _mesh_at(device: str, coordinates: list[tuple[str, int]]) -> str: ...
def _mesh_whole(device: str) -> str: ...
def _mesh_fixed(device: str) -> dict[str, int]: ...
def _shard(
    x: Tensor, axes: list[str], stored: _bool, is_parameter: _bool, anywhere: _bool
) -> Tensor: ...
def _layout(x: Tensor) -> str: ...
def _shard_map(
    f: Any, args: list[Tensor], device: str, in_specs: list[list[str]], out_specs: Any,
    name_of_state: Any,
) -> list[Tensor]: ...
def _mesh_axis(name: str) -> _WorkerGroup: ...
def _axis_index(name: str) -> Tensor: ...
def _blocks(x: Tensor) -> list[Tensor]: ...
def _gather_blocks(x: Tensor) -> Tensor: ...
def _shard_like(x: Tensor, like: Tensor) -> Tensor: ...
def _set_workers(count: int, parts: int) -> None: ...
def _workers() -> int: ...
def _run_command_line(args: list[str], compile: Any) -> int: ...
def _set_package_folder(folder: str) -> None: ...
def _totals() -> dict[str, int]: ...
def _worker_totals() -> list[dict[str, Any]]: ...
def _step_times(f: Any) -> list[_EventRow]: ...
def _fail(fault: str, text: str, hint: str = "") -> NoReturn: ...

class _EventRecorder:
    seconds: float
    missing: int
    def __init__(self, most: int) -> None: ...
    def __len__(self) -> int: ...
    def stop(self) -> None: ...
    def rows(self, first: int, count: int) -> list[_EventRow]: ...

class _EventLog:
    written: int
    missing: int
    error: str
    def __init__(self, file: int, most: int) -> None: ...
    def stop(self) -> None: ...

class TreeStructure:
    num_leaves: int
    def paths(self) -> list[str]: ...
    def _nodes(self) -> list[tuple[str, Any, int, Any, Any]]: ...

class _TensorTree:
    tensors: list[Tensor]
    structure: TreeStructure
    def __init__(self, tree: Any, numbers: _bool = False) -> None: ...
    def with_tensors(self, values: list[Any]) -> Any: ...
    def call(self, f: Any, values: list[Any], has_keywords: _bool) -> Any: ...
    def derivatives(self, values: list[Any]) -> Any: ...
    def matching(self, tree: Any, subject: str) -> list[Tensor | None]: ...
    def axes(self, tree: Any, what: str) -> list[int | None]: ...
    def check_whole(self, transform: str) -> None: ...

_P = ParamSpec("_P")
_Q = ParamSpec("_Q")
_R = TypeVar("_R")
_S = TypeVar("_S")

class CompiledFunction(Generic[_P, _R]):
    __wrapped__: Any
    def __call__(self, *args: _P.args, **kwargs: _P.kwargs) -> _R: ...
    @overload
    def __get__(self, instance: None, owner: Any = None, /) -> CompiledFunction[_P, _R]: ...
    @overload
    def __get__(
        self: CompiledFunction[Concatenate[Any, _Q], _S], instance: object, owner: Any = None, /
    ) -> CompiledFunction[_Q, _S]: ...
    def show(self, stage: str, /, *args: Any, **kwargs: Any) -> str: ...
    def source(self, target: str, /, *args: Any, **kwargs: Any) -> str: ...
    def memory(self, *args: Any, **kwargs: Any) -> MemoryReport: ...
    def stats(self) -> CallStats: ...
    def why_recompiled(self) -> list[str]: ...
    def _explain(self, *args: Any, **kwargs: Any) -> _Explanation: ...

class _Traffic:
    name: str
    axis: str
    workers: int
    type: str
    bytes: int
    sent: int
    times: int
    where: str
    place: str

class _Explanation:
    function: str
    traces: list[str]
    sizes: list[Any]
    guards: list[str]
    graph: str
    decisions: list[Any]
    sharding: str
    collectives: list[_Traffic]
    buffers: list[Any]
    steps: list[Any]
    memory: MemoryReport
    counts: Any

class CallStats:
    traces: int
    hits: int
    graph_compiles: int
    kernel_compiles: int
    replans: int
    traces_by_reason: dict[str, int]

class HotPath:
    @property
    def hash(self) -> str: ...
    sequence: str
    count: int
    @property
    def status(self) -> str: ...
    interpreted_ms: float
    compiled_ms: float
    compile_ms: float
    @property
    def speedup(self) -> float: ...
    reason: str
    region: str

class _RunDemands:
    def __init__(
        self,
        memory_limit: int,
        check: _bool,
        timeout: float,
        timeout_fails: _bool,
        keeps_lock: _bool,
        tunes: _bool,
    ) -> None: ...

class _PlanSettings:
    def __init__(
        self,
        off: list[str],
        on: list[str],
        memory_planning: str,
        optimize_for: str,
        targets: list[str],
    ) -> None: ...

class _FunctionTraces:
    def __init__(
        self,
        inputs: Any,
        outputs: Any,
        shapeless: _bool,
        static_argnums: list[int],
        static_argnames: list[str],
        donate_argnums: list[int],
        optimization_level: int,
        plan: _PlanSettings,
        demands: _RunDemands,
    ) -> None: ...

class ExecutableStats:
    calls: int
    plans: int
    kernels: int
    interpreted: int
    kernels_compiled: int
    target: str
    origin: str
    mesh: str

class _InputInfo:
    name: str
    place: str
    shape: list[tuple[int, int, int, str]]
    dtype: DType | None
    def __init__(
        self, name: str, shape: list[tuple[int, int, int, str]], dtype: DType | None, place: str
    ) -> None: ...

class _Program:
    name: str
    inputs: list[_InputInfo]
    num_outputs: int
    surface: str
    peak_bytes: int
    def memory(self) -> MemoryReport: ...
    def source(self, language: str) -> str: ...
    def show(self, stage: str) -> str: ...
    def stats(self) -> ExecutableStats: ...
    def save(self, path: str, targets: list[str], debug: _bool) -> None: ...
    @staticmethod
    def load(path: str, trust: _bool, verify: _bool | None) -> _Program: ...

class _Executable:
    _program: _Program
    def __init__(
        self,
        program: _Program,
        parameters: list[tuple[str, int, TreeStructure, list[Any]]],
        fixed: list[str],
        results: TreeStructure | None,
    ) -> None: ...
    def __call__(self, *args: Any, **kwargs: Any) -> Any: ...

def _c_source(functions: list[tuple[str, _Program]]) -> tuple[str, bytes]: ...
def _read_cache(key: bytes) -> bytes | None: ...
def _write_cache(key: bytes, value: bytes) -> None: ...
def _cache_directory() -> str | None: ...
def _python_source(
    functions: list[tuple[str, _Program]], target: str, file: str
) -> tuple[str, bytes]: ...

class _CFunction:
    def __init__(
        self,
        name: str,
        address: int,
        inputs: list[str],
        outputs: list[str],
        arena: int,
        constants: bytes,
    ) -> None: ...
    def __call__(self, inputs: list[Tensor]) -> list[Tensor]: ...

class _AtomicFile:
    def __init__(self, path: str) -> None: ...
    def write(self, data: Any) -> int: ...
    def flush(self) -> None: ...
    def commit(self) -> None: ...
    def close(self) -> None: ...

_checksum_hint: str
def _save_safetensors(
    path: str, tensors: dict[str, Tensor], metadata: dict[str, str]
) -> None: ...
def _safetensors_bytes(tensors: dict[str, Tensor], metadata: dict[str, str]) -> bytes: ...
def _load_safetensors(
    path: str, verify: _bool | None
) -> tuple[dict[str, Tensor], dict[str, str]]: ...
def _parse_safetensors(
    data: bytes, name: str, verify: _bool | None
) -> tuple[dict[str, Tensor], dict[str, str]]: ...

def _compile_ahead(
    f: Any,
    inputs: list[_InputInfo],
    name: str,
    optimization_level: int,
    memory_limit: int,
    plan: _PlanSettings,
    constants: list[tuple[str, Tensor]],
    mesh: str,
    surface: Any,
) -> _Program: ...
def _user_place() -> str: ...
_largest_size: int

class LiveBuffer:
    bytes: int
    name: str
    output: _bool
    place: str

class MemoryReport:
    peak: int
    lower_bound: int
    planning: str
    is_least: _bool
    arena: int
    outputs: int
    workspace: int
    constants: int
    donated: int
    step: int
    step_name: str
    step_place: str
    live: list[LiveBuffer]
    needed: list[int]

class Pullback:
    def __call__(self, cotangents: Any) -> Any: ...

def _tree_flatten(tree: Any) -> tuple[list[Any], TreeStructure]: ...
def _tree_unflatten(structure: TreeStructure, leaves: Iterable[Any]) -> Any: ...
def _tree_map(f: Any, tree: Any, *rest: Any) -> Any: ...
def _tree_register(cls: type, flatten: Any, unflatten: Any) -> None: ...
def _tree_register_dict(cls: type) -> None: ...
def _call_value_and_grad(
    f: Any,
    args: tuple[Any, ...],
    kwargs: dict[str, Any],
    keys: tuple[Any, ...],
    has_aux: _bool,
    lists: int = 1,
) -> tuple[Any, Any]: ...
def _stand_ins_of(module: Any) -> list[Any]: ...
def _call_jacobian(
    f: Any,
    args: tuple[Any, ...],
    kwargs: dict[str, Any],
    keys: tuple[Any, ...],
    single: _bool,
    reverse: _bool,
) -> Any: ...
def _call_vjp(f: Any, primals: Any, cotangents: Any) -> tuple[Any, Any]: ...
def _call_jvp(f: Any, primals: Any, tangents: Any) -> tuple[Any, Any]: ...
def _call_vmap(
    f: Any, args: tuple[Any, ...], kwargs: dict[str, Any], in_axes: Any, out_axes: Any
) -> Any: ...
def _cond(pred: Any, then: Any, otherwise: Any, operands: list[Tensor]) -> list[Tensor]: ...
def _while_loop(go_on: Any, body: Any, carry: list[Tensor]) -> list[Tensor]: ...
def _scan(
    body: Any,
    carry: list[Tensor],
    xs: list[Tensor],
    length: int | None = None,
    reverse: _bool = False,
) -> tuple[list[Tensor], list[Tensor]]: ...
def is_grad_enabled() -> _bool: ...
def _set_grad_enabled(enabled: _bool) -> _bool: ...
def _watch(tree: Any) -> None: ...
def _unwatch(tree: Any) -> None: ...
def _refuses_grad(x: Tensor) -> _bool: ...
def _register_module(cls: type) -> None: ...
def _parameters_of(module: Any, frozen: _bool) -> dict[str, Any]: ...
def _named_tensors(tree: Any, path: str) -> list[tuple[str, Tensor]]: ...
def _rebind(tensor: Tensor, value: Tensor) -> None: ...
def _check_rule(optimizer: object) -> None: ...
def _init_rule(optimizer: object, parameter: Tensor, state: dict[str, Any]) -> None: ...
def _apply_rule(
    optimizer: object, gradient: Tensor, parameter: Tensor, state: dict[str, Any]
) -> Tensor: ...
def _read_pickle(
    dtype: str,
    shape: tuple[int, ...],
    data: Any,
    requires_grad: _bool | None,
    type: Any,
    device: str | None = None,
) -> Tensor: ...
def _autocast() -> DType | None: ...
def _set_autocast(dtype: DType | str | None) -> DType | None: ...
def _precision_of(op: str) -> str: ...
def _is_traced(x: Tensor) -> _bool: ...
def _is_taped(x: Tensor) -> _bool: ...
def _is_same_value(x: Tensor, y: Tensor) -> _bool: ...
def _set_debug_nans(sought: int) -> int: ...
def _set_debug_indices(checked: _bool) -> _bool: ...
def _is_tracing() -> _bool: ...
def _enter_module(path: str) -> int: ...
def _leave_module(outer: int) -> None: ...
def _clear_plans() -> None: ...
def _hot_path_policy() -> tuple[int, int]: ...
def _set_hot_path_policy(when: int, threshold: int) -> tuple[int, int]: ...
def _hot_paths() -> list[HotPath]: ...
def _signal_load(path: str | None) -> None: ...
def _signal_config() -> dict[str, dict[str, Any]]: ...
def _signal_enter(name: str, backward: str | None = None) -> int: ...
def _signal_leave(outer: int) -> None: ...
def _signal_exit(name: str) -> None: ...
def _signal_entered() -> list[str]: ...
def _signal_tensor(x: Tensor, name: str) -> Tensor: ...
def _stray_variables() -> list[tuple[str, str]]: ...
def _number(x: Any) -> Tensor: ...
def _checkpoint(f: Any, args: list[Tensor], segments: int = 1) -> list[Tensor]: ...
def _compile(
    f: Any, traces: _FunctionTraces, options: dict[str, Any]
) -> CompiledFunction[..., Any]: ...
def _printing() -> tuple[Any, ...]: ...
def _set_printing(
    precision: int | None,
    threshold: int,
    edgeitems: int,
    linewidth: int,
    suppress: _bool,
    sci_mode: _bool | None,
) -> None: ...
def _set_class(object: object, cls: type) -> None: ...
def _disable_compile(disabled: _bool) -> _bool: ...
def _custom(
    f: Any, args: list[Tensor], vjp: Any, jvp: Any, vmap: Any, constants: list[str]
) -> list[Tensor]: ...
def _random_seed(number: int) -> None: ...
def _random_state() -> Tensor: ...
def _set_random_state(key: Tensor) -> None: ...
def _next_key() -> Tensor: ...

class Error(Exception): ...
class InvalidValue(Error, ValueError): ...
class InvalidType(Error, TypeError): ...
class InvalidIndex(Error, IndexError): ...
class OutOfMemory(Error, MemoryError): ...
class OutOfRange(Error, OverflowError): ...
class Unsupported(Error, NotImplementedError): ...
class InternalError(Error, RuntimeError): ...
class WorkerFailed(Error, RuntimeError): ...

def array(obj: ArrayLike, dtype: DTypeLike = None, *, device: Any = None) -> Tensor: ...
def asarray(
    obj: ArrayLike, dtype: DTypeLike = None, *, device: Any = None, copy: _bool | None = None
) -> Tensor: ...
def from_dlpack(obj: Any, /, *, device: Any = None, copy: _bool | None = None) -> Tensor: ...
def dtype(spec: DTypeLike) -> DType: ...
def result_type(*args: Any) -> DType: ...
def index_update(x: ArrayLike, index: Any, value: ArrayLike, how: str = "set") -> Tensor: ...
def eval(*tensors: Any) -> None: ...
def async_eval(*tensors: Any) -> None: ...
def synchronize() -> None: ...
def graph_text(*tensors: Tensor) -> str: ...
def print(text: str, *values: ArrayLike) -> None: ...
def check(condition: ArrayLike, text: str, *values: ArrayLike) -> None: ...
def num_threads() -> int: ...
def set_num_threads(count: int) -> None: ...
_MatmulPrecision: TypeAlias = Literal["highest", "high", "exact"]
def set_matmul_precision(precision: _MatmulPrecision) -> _MatmulPrecision: ...
def matmul_precision() -> _MatmulPrecision: ...
def active_memory(device: Device | str | None = None) -> int: ...
def peak_memory(device: Device | str | None = None) -> int: ...
def cache_memory(device: Device | str | None = None) -> int: ...
def memory_limit(device: Device | str | None = None) -> int: ...
def reset_peak_memory(device: Device | str | None = None) -> None: ...
def clear_cache(device: Device | str | None = None) -> None: ...
def set_memory_limit(bytes: int, device: Device | str | None = None) -> int: ...
def set_cache_limit(bytes: int) -> int: ...

_Wire: TypeAlias = tuple[str, str, tuple[Any, ...], DType]

class ModelBlock:
    kind: str
    called: str
    terminals: list[tuple[str, str, str, DType | None, _bool]]

class LogicalModel:
    name: str
    _terminals: list[tuple[str, str, str, DType | None, _bool]]
    def __init__(self, name: str) -> None: ...
    def __getattr__(self, name: str) -> Any: ...

class ResolvedModel:
    open: list[_Wire]
    outputs: list[_Wire]
    wires: list[_Wire]
    blocks: list[tuple[str, str, str, list[int], list[int], str]]
    costs: list[Any]
    tried_sizes: dict[str, int]
    def shapes_at(self, sizes: dict[str, int]) -> dict[str, tuple[int, ...]]: ...

class ModelFunctions:
    model: ResolvedModel
    given: list[tuple[str, str, tuple[Any, ...], DType, _bool]]
    outputs: list[str]
    states: list[str]
    training: _bool
    def gather(
        self, params: Any, data: Any, state: Any, own: dict[str, Tensor], ranges: dict[str, Any]
    ) -> list[Tensor]: ...
    def cotangents(self, given: Any) -> list[Tensor | None]: ...
    def forward(self, given: list[Tensor]) -> list[Tensor]: ...
    def gradients(
        self, given: list[Tensor], cotangents: list[Tensor | None]
    ) -> list[Tensor]: ...
    def first_values(self, key: Tensor) -> list[Tensor | None]: ...
    def python_file(
        self, target: str, fixed: dict[str, Tensor], constants_file: str
    ) -> tuple[str, dict[str, Tensor]]: ...
    def text(self, stage: str) -> str: ...

class _HeldValues:
    def __init__(self, values: list[Tensor]) -> None: ...
    def are(self, others: list[Tensor]) -> _bool: ...
    def values(self) -> list[Tensor]: ...

def _pass_names() -> dict[str, _bool]: ...
def _runs_here(targets: list[str]) -> _bool: ...
def _refuse_transforms(given: list[Tensor]) -> None: ...
def _end_derivatives(given: list[Tensor], results: list[Tensor]) -> None: ...
def _make_block(
    kind: str,
    terminals: list[Any],
    sizes: dict[str, int],
    settings: str,
    draws: int,
    compute: Any,
) -> ModelBlock: ...
def _op_block(
    name: str, count: int, text: str, args: tuple[Any, ...], keywords: dict[str, Any]
) -> ModelBlock: ...
def _op_blocks() -> dict[str, tuple[str, _bool, _bool]]: ...
def _block_name(op: str) -> str: ...
def _make_layer(name: str, module: object, *attributes: object) -> None: ...
# The caller knows the type: a tensor, or tuples of them.
def _run_layer(
    name: str, function: str, module: object, *inputs: object
) -> _R: ...  # type: ignore[type-var]
def _describe_layer(name: str, module: object) -> str: ...
def _recurrent_step(kind: str, tensors: list[Tensor]) -> list[Tensor]: ...
def _layer_block(name: str, args: tuple[Any, ...], keywords: dict[str, Any]) -> ModelBlock: ...
def _layer_docs() -> dict[str, str]: ...

class _At:
    def __getitem__(self, index: Any) -> _AtIndex: ...

class _AtIndex:
    def get(self) -> Tensor: ...
    def set(self, value: ArrayLike) -> Tensor: ...
    def add(self, value: ArrayLike) -> Tensor: ...
    def subtract(self, value: ArrayLike) -> Tensor: ...
    def multiply(self, value: ArrayLike) -> Tensor: ...
    def max(self, value: ArrayLike) -> Tensor: ...
    def min(self, value: ArrayLike) -> Tensor: ...

class Tensor:
    def __copy__(self) -> Tensor: ...
    def __deepcopy__(self, memo: dict[int, Any], /) -> Tensor: ...
    def __init__(self, data: ArrayLike, dtype: DTypeLike = None) -> None: ...
    shape: tuple[int, ...]
    dtype: DType
    device: Device
    ndim: int
    rank: int
    size: int
    itemsize: int
    nbytes: int
    T: Tensor
    mT: Tensor
    real: Tensor
    imag: Tensor
    at: _At
    requires_grad: _bool
    grad: Tensor | None
    is_leaf: _bool
    def requires_grad_(self, requires_grad: _bool = True) -> Tensor: ...
    def backward(self, gradient: ArrayLike | None = None, retain_graph: _bool = False) -> None: ...
    def average(
        self,
        axis: int | Sequence[int] | None = None,
        weights: ArrayLike | None = None,
        returned: _bool = False,
        *,
        keepdims: _bool = False,
    ) -> Any: ...
    def bfloat16(self) -> Tensor: ...
    def clone(self) -> Tensor: ...
    def cpu(self) -> Tensor: ...
    def cuda(self, device: int | str | Device | None = None) -> Tensor: ...
    @property
    def local(self) -> Tensor: ...
    def delete(self, obj: Any, axis: int | None = None) -> Tensor: ...
    def dim(self) -> int: ...
    def dot(self, other: ArrayLike, *contract: Any, **named: Any) -> Tensor: ...
    def double(self) -> Tensor: ...
    def gradient(
        self, *varargs: Any, axis: int | Sequence[int] | None = None, edge_order: int = 1
    ) -> Any: ...
    def half(self) -> Tensor: ...
    def histogram(
        self, bins: Any = 10, range: Any = None, density: _bool = False, weights: Any = None
    ) -> tuple[Tensor, Tensor]: ...
    def insert(self, obj: Any, values: ArrayLike, axis: int | None = None) -> Tensor: ...
    def long(self) -> Tensor: ...
    def masked_fill(self, mask: ArrayLike, value: ArrayLike) -> Tensor: ...
    def norm(self, *args: Any, **kwargs: Any) -> Tensor: ...
    def numel(self) -> int: ...
    def repeat(self, *repeats: ArrayLike, axis: int | None = None) -> Tensor: ...
    def t(self) -> Tensor: ...
    def transpose(self, *axes: int | Sequence[int] | None, **named: Any) -> Tensor: ...
    def unique(
        self,
        return_index: _bool = False,
        return_inverse: _bool = False,
        return_counts: _bool = False,
        axis: int | None = None,
        *,
        equal_nan: _bool = True,
        size: int | None = None,
        fill_value: _complex | None = None,
    ) -> Any: ...
    def where(self, condition: ArrayLike, other: ArrayLike) -> Tensor: ...
    def to(
        self, *target: DTypeLike | Tensor | Device, dtype: DTypeLike = None, device: Any = None
    ) -> Tensor: ...
    def numpy(self) -> Any: ...
    def item(self) -> Any: ...
    def tolist(self) -> Any: ...
    def eval(self) -> Tensor: ...
    def graph(self) -> str: ...
    def to_device(self, device: Any, /, *, stream: Any = None) -> Tensor: ...
    def __array__(self, dtype: Any = None, copy: _bool | None = None) -> Any: ...
    def __array_namespace__(self, *, api_version: str | None = None) -> ModuleType: ...
    def __dlpack__(
        self,
        *,
        stream: Any = None,
        max_version: tuple[int, int] | None = None,
        dl_device: tuple[int, int] | None = None,
        copy: _bool | None = None,
    ) -> Any: ...
    def __dlpack_device__(self) -> tuple[int, int]: ...
    def __getitem__(self, index: Any) -> Tensor: ...
    def __setitem__(self, index: Any, value: ArrayLike) -> None: ...
    def __len__(self) -> int: ...
    def __iter__(self) -> Iterator[Tensor]: ...
    def __reversed__(self) -> Iterator[Tensor]: ...
    def __round__(self, ndigits: int | None = None) -> Tensor: ...
    def __contains__(self, value: ArrayLike) -> _bool: ...
    def __bool__(self) -> _bool: ...
    def __int__(self) -> int: ...
    def __index__(self) -> int: ...
    def __float__(self) -> float: ...
    def __complex__(self) -> _complex: ...
    def __hash__(self) -> int: ...
    # From here on generated by `tenon gen` from the op table; edits are lost.
    def abs(self) -> Tensor: ...
    absolute = abs
    def acos(self) -> Tensor: ...
    arccos = acos
    def acosh(self) -> Tensor: ...
    arccosh = acosh
    def adaptive_avg_pool(self, output_size: int | Sequence[int], channels_last: _bool = False) -> Tensor: ...
    def adaptive_max_pool(self, output_size: int | Sequence[int], channels_last: _bool = False) -> Tensor: ...
    def __add__(self, other: Any) -> Tensor: ...
    def __radd__(self, other: Any) -> Tensor: ...
    def add(self, x2: ArrayLike) -> Tensor: ...
    def addmm(self, a: ArrayLike, b: ArrayLike, alpha: float = 1.0, beta: float = 1.0) -> Tensor: ...
    @overload
    def all(self, axis: int | Sequence[int] | None = None, keepdims: _bool = False) -> Tensor: ...
    @overload
    def all(self, *, dim: int | Sequence[int] | None = ..., keepdim: _bool = ...) -> Tensor: ...
    def allclose(self, x2: ArrayLike, rtol: float = 1e-05, atol: float = 1e-08, equal_nan: _bool = False) -> Tensor: ...
    @overload
    def amax(self, axis: int | Sequence[int] | None = None, keepdims: _bool = False) -> Tensor: ...
    @overload
    def amax(self, *, dim: int | Sequence[int] | None = ..., keepdim: _bool = ...) -> Tensor: ...
    @overload
    def amin(self, axis: int | Sequence[int] | None = None, keepdims: _bool = False) -> Tensor: ...
    @overload
    def amin(self, *, dim: int | Sequence[int] | None = ..., keepdim: _bool = ...) -> Tensor: ...
    def angle(self, deg: _bool = False) -> Tensor: ...
    @overload
    def any(self, axis: int | Sequence[int] | None = None, keepdims: _bool = False) -> Tensor: ...
    @overload
    def any(self, *, dim: int | Sequence[int] | None = ..., keepdim: _bool = ...) -> Tensor: ...
    @overload
    def append(self, values: ArrayLike, axis: int | None = None) -> Tensor: ...
    @overload
    def append(self, values: ArrayLike, *, dim: int | None = ...) -> Tensor: ...
    @overload
    def argmax(self, axis: int | None = None, keepdims: _bool = False) -> Tensor: ...
    @overload
    def argmax(self, *, dim: int | None = ..., keepdim: _bool = ...) -> Tensor: ...
    @overload
    def argmin(self, axis: int | None = None, keepdims: _bool = False) -> Tensor: ...
    @overload
    def argmin(self, *, dim: int | None = ..., keepdim: _bool = ...) -> Tensor: ...
    @overload
    def argpartition(self, kth: int, axis: int = -1) -> Tensor: ...
    @overload
    def argpartition(self, kth: int, *, dim: int = ...) -> Tensor: ...
    @overload
    def argreduce(self, axis: int, mode: Literal["max", "min"] = "max") -> Tensor: ...
    @overload
    def argreduce(self, *, dim: int, mode: Literal["max", "min"] = ...) -> Tensor: ...
    @overload
    def argsort(self, axis: int = -1, descending: _bool = False, stable: _bool = True) -> Tensor: ...
    @overload
    def argsort(self, *, dim: int = ..., descending: _bool = ..., stable: _bool = ...) -> Tensor: ...
    def argwhere(self) -> Tensor: ...
    def array_equal(self, x2: ArrayLike, equal_nan: _bool = False) -> Tensor: ...
    @overload
    def array_split(self, sections: int | Sequence[int] | None = None, axis: int = 0, indices: int | Sequence[int] | None = None) -> tuple[Tensor, ...]: ...
    @overload
    def array_split(self, sections: int | Sequence[int] | None = ..., *, dim: int = ..., indices: int | Sequence[int] | None = ...) -> tuple[Tensor, ...]: ...
    def as_strided(self, shape: int | Sequence[int] | None = None, strides: int | Sequence[int] | None = None, offset: int = 0) -> Tensor: ...
    def asin(self) -> Tensor: ...
    arcsin = asin
    def asinh(self) -> Tensor: ...
    arcsinh = asinh
    def astype(self, dtype: DTypeLike) -> Tensor: ...
    cast = astype
    def atan(self) -> Tensor: ...
    arctan = atan
    def atan2(self, x2: ArrayLike) -> Tensor: ...
    arctan2 = atan2
    def atanh(self) -> Tensor: ...
    arctanh = atanh
    def atleast_1d(self) -> Tensor: ...
    def atleast_2d(self) -> Tensor: ...
    def atleast_3d(self) -> Tensor: ...
    def avg_pool(self, kernel_size: int | Sequence[int], stride: int | Sequence[int] | None = None, padding: int | Sequence[int] = (0,), count_include_pad: _bool = True, channels_last: _bool = False) -> Tensor: ...
    @overload
    def batch_norm(self, mean: ArrayLike, var: ArrayLike, weight: ArrayLike | None = None, bias: ArrayLike | None = None, eps: float = 1e-05, axis: int = -1) -> Tensor: ...
    @overload
    def batch_norm(self, mean: ArrayLike, var: ArrayLike, weight: ArrayLike | None = ..., bias: ArrayLike | None = ..., eps: float = ..., *, dim: int = ...) -> Tensor: ...
    def bincount(self, weights: ArrayLike | None = None, minlength: int = 0, length: int | None = None) -> Tensor: ...
    def bitcast(self, dtype: DTypeLike) -> Tensor: ...
    def __and__(self, other: Any) -> Tensor: ...
    def __rand__(self, other: Any) -> Tensor: ...
    def bitwise_and(self, x2: ArrayLike) -> Tensor: ...
    def __invert__(self) -> Tensor: ...
    def bitwise_invert(self) -> Tensor: ...
    invert = bitwise_invert
    bitwise_not = bitwise_invert
    def __lshift__(self, other: Any) -> Tensor: ...
    def __rlshift__(self, other: Any) -> Tensor: ...
    def bitwise_left_shift(self, x2: ArrayLike) -> Tensor: ...
    left_shift = bitwise_left_shift
    def __or__(self, other: Any) -> Tensor: ...
    def __ror__(self, other: Any) -> Tensor: ...
    def bitwise_or(self, x2: ArrayLike) -> Tensor: ...
    def __rshift__(self, other: Any) -> Tensor: ...
    def __rrshift__(self, other: Any) -> Tensor: ...
    def bitwise_right_shift(self, x2: ArrayLike) -> Tensor: ...
    right_shift = bitwise_right_shift
    def __xor__(self, other: Any) -> Tensor: ...
    def __rxor__(self, other: Any) -> Tensor: ...
    def bitwise_xor(self, x2: ArrayLike) -> Tensor: ...
    def bmm(self, x2: ArrayLike) -> Tensor: ...
    def broadcast_to(self, shape: int | Sequence[int]) -> Tensor: ...
    def cbrt(self) -> Tensor: ...
    def cdist(self, x2: ArrayLike, p: float = 2.0) -> Tensor: ...
    def ceil(self) -> Tensor: ...
    def celu(self, alpha: float = 1.0) -> Tensor: ...
    @overload
    def chunk(self, chunks: int, axis: int = 0) -> tuple[Tensor, ...]: ...
    @overload
    def chunk(self, chunks: int, *, dim: int = ...) -> tuple[Tensor, ...]: ...
    def clip(self, min: ArrayLike | None = None, max: ArrayLike | None = None) -> Tensor: ...
    clamp = clip
    def conj(self) -> Tensor: ...
    conjugate = conj
    def contiguous(self) -> Tensor: ...
    def conv(self, w: ArrayLike, stride: int | Sequence[int] = (1,), padding: int | Sequence[int] = (0,), input_dilation: int | Sequence[int] = (1,), kernel_dilation: int | Sequence[int] = (1,), groups: int | Sequence[int] | None = 1, channels_last: _bool = False) -> Tensor: ...
    def conv1d(self, weight: ArrayLike, bias: ArrayLike | None = None, stride: int | Sequence[int] = (1,), padding: int | Sequence[int] = (0,), dilation: int | Sequence[int] = (1,), groups: int | Sequence[int] | None = 1, channels_last: _bool = False, padding_mode: Literal["given", "same", "valid"] = "given") -> Tensor: ...
    def conv2d(self, weight: ArrayLike, bias: ArrayLike | None = None, stride: int | Sequence[int] = (1,), padding: int | Sequence[int] = (0,), dilation: int | Sequence[int] = (1,), groups: int | Sequence[int] | None = 1, channels_last: _bool = False, padding_mode: Literal["given", "same", "valid"] = "given") -> Tensor: ...
    def conv3d(self, weight: ArrayLike, bias: ArrayLike | None = None, stride: int | Sequence[int] = (1,), padding: int | Sequence[int] = (0,), dilation: int | Sequence[int] = (1,), groups: int | Sequence[int] | None = 1, channels_last: _bool = False, padding_mode: Literal["given", "same", "valid"] = "given") -> Tensor: ...
    def conv_general(self, weight: ArrayLike, stride: int | Sequence[int] = (1,), padding: int | Sequence[int] = (0,), kernel_dilation: int | Sequence[int] = (1,), input_dilation: int | Sequence[int] = (1,), groups: int | Sequence[int] | None = 1, flip: _bool = False, channels_last: _bool = False) -> Tensor: ...
    def conv_transpose1d(self, weight: ArrayLike, bias: ArrayLike | None = None, stride: int | Sequence[int] = (1,), padding: int | Sequence[int] = (0,), output_padding: int | Sequence[int] = (0,), groups: int | Sequence[int] | None = 1, dilation: int | Sequence[int] = (1,), channels_last: _bool = False) -> Tensor: ...
    def conv_transpose2d(self, weight: ArrayLike, bias: ArrayLike | None = None, stride: int | Sequence[int] = (1,), padding: int | Sequence[int] = (0,), output_padding: int | Sequence[int] = (0,), groups: int | Sequence[int] | None = 1, dilation: int | Sequence[int] = (1,), channels_last: _bool = False) -> Tensor: ...
    def conv_transpose3d(self, weight: ArrayLike, bias: ArrayLike | None = None, stride: int | Sequence[int] = (1,), padding: int | Sequence[int] = (0,), output_padding: int | Sequence[int] = (0,), groups: int | Sequence[int] | None = 1, dilation: int | Sequence[int] = (1,), channels_last: _bool = False) -> Tensor: ...
    def convolve(self, x2: ArrayLike, mode: Literal["full", "same", "valid"] = "full") -> Tensor: ...
    def copy(self) -> Tensor: ...
    def copysign(self, x2: ArrayLike) -> Tensor: ...
    def corrcoef(self, y: ArrayLike | None = None, rowvar: _bool = True) -> Tensor: ...
    def cos(self) -> Tensor: ...
    def cosh(self) -> Tensor: ...
    def count_in_bins(self, bins: ArrayLike | None = None, range: ArrayLike | None = None, weights: ArrayLike | None = None, density: _bool = False) -> _count_in_bins_result: ...
    @overload
    def count_nonzero(self, axis: int | Sequence[int] | None = None, keepdims: _bool = False) -> Tensor: ...
    @overload
    def count_nonzero(self, *, dim: int | Sequence[int] | None = ..., keepdim: _bool = ...) -> Tensor: ...
    def cov(self, y: ArrayLike | None = None, fweights: ArrayLike | None = None, aweights: ArrayLike | None = None, rowvar: _bool = True, bias: _bool = False, ddof: int | None = None) -> Tensor: ...
    @overload
    def cross_entropy(self, targets: ArrayLike, reduction: Literal["none", "mean", "sum"] = "mean", label_smoothing: float = 0.0, axis: int = -1) -> Tensor: ...
    @overload
    def cross_entropy(self, targets: ArrayLike, reduction: Literal["none", "mean", "sum"] = ..., label_smoothing: float = ..., *, dim: int = ...) -> Tensor: ...
    @overload
    def cummax(self, axis: int | None = None) -> Tensor: ...
    @overload
    def cummax(self, *, dim: int) -> _cummax_along_dim_result: ...
    @overload
    def cummin(self, axis: int | None = None) -> Tensor: ...
    @overload
    def cummin(self, *, dim: int) -> _cummin_along_dim_result: ...
    @overload
    def cumulative(self, axis: int, mode: Literal["sum", "prod", "max", "min"] = "sum", reverse: _bool = False, exclusive: _bool = False) -> Tensor: ...
    @overload
    def cumulative(self, *, dim: int, mode: Literal["sum", "prod", "max", "min"] = ..., reverse: _bool = ..., exclusive: _bool = ...) -> Tensor: ...
    @overload
    def cumulative_prod(self, axis: int | None = None, dtype: DTypeLike | None = None, include_initial: _bool = False) -> Tensor: ...
    @overload
    def cumulative_prod(self, *, dim: int | None = ..., dtype: DTypeLike | None = ..., include_initial: _bool = ...) -> Tensor: ...
    cumprod = cumulative_prod
    @overload
    def cumulative_sum(self, axis: int | None = None, dtype: DTypeLike | None = None, include_initial: _bool = False) -> Tensor: ...
    @overload
    def cumulative_sum(self, *, dim: int | None = ..., dtype: DTypeLike | None = ..., include_initial: _bool = ...) -> Tensor: ...
    cumsum = cumulative_sum
    def degrees(self) -> Tensor: ...
    rad2deg = degrees
    @overload
    def delete_elements(self, indices: ArrayLike, axis: int | None = None) -> Tensor: ...
    @overload
    def delete_elements(self, indices: ArrayLike, *, dim: int | None = ...) -> Tensor: ...
    def diag(self, k: int = 0) -> Tensor: ...
    def diagonal(self, offset: int = 0, axis1: int = 0, axis2: int = 1) -> Tensor: ...
    @overload
    def diff(self, prepend: ArrayLike | None = None, append: ArrayLike | None = None, axis: int = -1, n: int = 1) -> Tensor: ...
    @overload
    def diff(self, prepend: ArrayLike | None = ..., append: ArrayLike | None = ..., *, dim: int = ..., n: int = ...) -> Tensor: ...
    def digamma(self) -> Tensor: ...
    def digitize(self, bins: ArrayLike, right: _bool = False) -> Tensor: ...
    @overload
    def distinct(self, axis: int | None = None, size: int | None = None, fill_value: _complex | None = None, equal_nan: _bool = True) -> _distinct_result: ...
    @overload
    def distinct(self, *, dim: int | None = ..., size: int | None = ..., fill_value: _complex | None = ..., equal_nan: _bool = ...) -> _distinct_result: ...
    def __truediv__(self, other: Any) -> Tensor: ...
    def __rtruediv__(self, other: Any) -> Tensor: ...
    def divide(self, x2: ArrayLike) -> Tensor: ...
    true_divide = divide
    div = divide
    def divmod(self, x2: ArrayLike) -> _divmod_result: ...
    def dropout(self, key: ArrayLike | None = None, p: float = 0.5) -> Tensor: ...
    def dynamic_slice(self, starts: Sequence[ArrayLike], sizes: int | Sequence[int]) -> Tensor: ...
    def dynamic_update_slice(self, update: ArrayLike, starts: Sequence[ArrayLike]) -> Tensor: ...
    def elu(self, alpha: float = 1.0) -> Tensor: ...
    def embedding(self, indices: ArrayLike) -> Tensor: ...
    def empty_like(self, dtype: DTypeLike | None = None) -> Tensor: ...
    def __eq__(self, other: Any) -> Tensor: ...  # type: ignore[override]
    def equal(self, x2: ArrayLike) -> Tensor: ...
    eq = equal
    def erf(self) -> Tensor: ...
    def erfc(self) -> Tensor: ...
    def erfinv(self) -> Tensor: ...
    def exp(self) -> Tensor: ...
    def exp2(self) -> Tensor: ...
    def expand(self, shape: int | Sequence[int]) -> Tensor: ...
    def expand_as(self, other: ArrayLike) -> Tensor: ...
    @overload
    def expand_dims(self, axis: int | Sequence[int] | None = None) -> Tensor: ...
    @overload
    def expand_dims(self, *, dim: int | Sequence[int] | None = ...) -> Tensor: ...
    unsqueeze = expand_dims
    def expm1(self) -> Tensor: ...
    def fit_polynomial(self, y: ArrayLike, w: ArrayLike | None = None, *, deg: int, rcond: float | None = None) -> Tensor: ...
    def flatten(self, start_axis: int = 0, end_axis: int = -1) -> Tensor: ...
    ravel = flatten
    @overload
    def flip(self, axis: int | Sequence[int] | None = None) -> Tensor: ...
    @overload
    def flip(self, *, dim: int | Sequence[int] | None = ...) -> Tensor: ...
    def fliplr(self) -> Tensor: ...
    def flipud(self) -> Tensor: ...
    def floor(self) -> Tensor: ...
    def __floordiv__(self, other: Any) -> Tensor: ...
    def __rfloordiv__(self, other: Any) -> Tensor: ...
    def floor_divide(self, x2: ArrayLike) -> Tensor: ...
    def fmod(self, x2: ArrayLike) -> Tensor: ...
    def full_like(self, fill_value: ArrayLike, dtype: DTypeLike | None = None) -> Tensor: ...
    @overload
    def gather(self, indices: Sequence[ArrayLike], axes: int | Sequence[int], batch_dims: int = 0, outside: Literal["check", "clamp", "drop", "check_clamp", "check_drop"] = "check") -> Tensor: ...
    @overload
    def gather(self, dim: int, index: ArrayLike) -> Tensor: ...
    def gather_mm(self, x2: ArrayLike, lhs_indices: ArrayLike | None = None, rhs_indices: ArrayLike | None = None) -> Tensor: ...
    def gcd(self, x2: ArrayLike) -> Tensor: ...
    def gelu(self) -> Tensor: ...
    def gelu_tanh(self) -> Tensor: ...
    gelu_approx = gelu_tanh
    def __gt__(self, other: Any) -> Tensor: ...
    def greater(self, x2: ArrayLike) -> Tensor: ...
    gt = greater
    def __ge__(self, other: Any) -> Tensor: ...
    def greater_equal(self, x2: ArrayLike) -> Tensor: ...
    ge = greater_equal
    @overload
    def group_norm(self, weight: ArrayLike | None = None, bias: ArrayLike | None = None, *, num_groups: int, eps: float = 1e-05, axis: int = -1) -> Tensor: ...
    @overload
    def group_norm(self, weight: ArrayLike | None = ..., bias: ArrayLike | None = ..., *, num_groups: int, eps: float = ..., dim: int = ...) -> Tensor: ...
    def hard_tanh(self, min_val: float = -1.0, max_val: float = 1.0) -> Tensor: ...
    hardtanh = hard_tanh
    def hardswish(self) -> Tensor: ...
    def hypot(self, x2: ArrayLike) -> Tensor: ...
    @overload
    def index_select(self, axis: int, indices: ArrayLike) -> Tensor: ...
    @overload
    def index_select(self, *, dim: int, indices: ArrayLike) -> Tensor: ...
    def inner(self, x2: ArrayLike) -> Tensor: ...
    @overload
    def insert_elements(self, indices: ArrayLike, values: ArrayLike, axis: int | None = None) -> Tensor: ...
    @overload
    def insert_elements(self, indices: ArrayLike, values: ArrayLike, *, dim: int | None = ...) -> Tensor: ...
    def interp(self, xp: ArrayLike, fp: ArrayLike, left: ArrayLike | None = None, right: ArrayLike | None = None, period: float | None = None) -> Tensor: ...
    def interpolate(self, size: int | Sequence[int] | None = None, scale_factor: float | None = None, mode: Literal["nearest", "linear", "cubic"] = "nearest", align_corners: _bool = False, channels_last: _bool = False) -> Tensor: ...
    def isclose(self, x2: ArrayLike, rtol: float = 1e-05, atol: float = 1e-08, equal_nan: _bool = False) -> Tensor: ...
    def isfinite(self) -> Tensor: ...
    def isin(self, x2: ArrayLike, invert: _bool = False) -> Tensor: ...
    def isinf(self) -> Tensor: ...
    def isnan(self) -> Tensor: ...
    def isneginf(self) -> Tensor: ...
    def isposinf(self) -> Tensor: ...
    def kron(self, x2: ArrayLike) -> Tensor: ...
    def layer_norm(self, weight: ArrayLike | None = None, bias: ArrayLike | None = None, eps: float = 1e-05, normalized_axes: int = 1) -> Tensor: ...
    def lcm(self, x2: ArrayLike) -> Tensor: ...
    def leaky_relu(self, negative_slope: float = 0.01) -> Tensor: ...
    def lerp(self, end: ArrayLike, weight: ArrayLike) -> Tensor: ...
    def __lt__(self, other: Any) -> Tensor: ...
    def less(self, x2: ArrayLike) -> Tensor: ...
    lt = less
    def __le__(self, other: Any) -> Tensor: ...
    def less_equal(self, x2: ArrayLike) -> Tensor: ...
    le = less_equal
    def lgamma(self) -> Tensor: ...
    def linear(self, weight: ArrayLike, bias: ArrayLike | None = None) -> Tensor: ...
    def log(self) -> Tensor: ...
    def log10(self) -> Tensor: ...
    def log1p(self) -> Tensor: ...
    def log2(self) -> Tensor: ...
    def log_sigmoid(self) -> Tensor: ...
    @overload
    def log_softmax(self, axis: int | Sequence[int] | None = None) -> Tensor: ...
    @overload
    def log_softmax(self, *, dim: int | Sequence[int] | None = ...) -> Tensor: ...
    def logaddexp(self, x2: ArrayLike) -> Tensor: ...
    @overload
    def logcumsumexp(self, axis: int | None = None) -> Tensor: ...
    @overload
    def logcumsumexp(self, *, dim: int | None = ...) -> Tensor: ...
    def logical_and(self, x2: ArrayLike) -> Tensor: ...
    def logical_not(self) -> Tensor: ...
    def logical_or(self, x2: ArrayLike) -> Tensor: ...
    def logical_xor(self, x2: ArrayLike) -> Tensor: ...
    @overload
    def logsumexp(self, axis: int | Sequence[int] | None = None, keepdims: _bool = False) -> Tensor: ...
    @overload
    def logsumexp(self, *, dim: int | Sequence[int] | None = ..., keepdim: _bool = ...) -> Tensor: ...
    def make_complex(self, im: ArrayLike) -> Tensor: ...
    complex = make_complex
    def __matmul__(self, other: Any) -> Tensor: ...
    def __rmatmul__(self, other: Any) -> Tensor: ...
    def matmul(self, x2: ArrayLike) -> Tensor: ...
    def matrix_transpose(self) -> Tensor: ...
    @overload
    def max(self, axis: int | Sequence[int] | None = None, keepdims: _bool = False) -> Tensor: ...
    @overload
    def max(self, *, dim: int, keepdim: _bool = ...) -> _max_along_dim_result: ...
    def max_pool(self, kernel_size: int | Sequence[int], stride: int | Sequence[int] | None = None, padding: int | Sequence[int] = (0,), dilation: int | Sequence[int] = (1,), channels_last: _bool = False) -> Tensor: ...
    def maximum(self, x2: ArrayLike) -> Tensor: ...
    @overload
    def mean(self, axis: int | Sequence[int] | None = None, keepdims: _bool = False) -> Tensor: ...
    @overload
    def mean(self, *, dim: int | Sequence[int] | None = ..., keepdim: _bool = ...) -> Tensor: ...
    @overload
    def median(self, axis: int | Sequence[int] | None = None, keepdims: _bool = False) -> Tensor: ...
    @overload
    def median(self, *, dim: int, keepdim: _bool = ...) -> _median_along_dim_result: ...
    @overload
    def min(self, axis: int | Sequence[int] | None = None, keepdims: _bool = False) -> Tensor: ...
    @overload
    def min(self, *, dim: int, keepdim: _bool = ...) -> _min_along_dim_result: ...
    def minimum(self, x2: ArrayLike) -> Tensor: ...
    def mish(self) -> Tensor: ...
    def moveaxis(self, source: int | Sequence[int], destination: int | Sequence[int]) -> Tensor: ...
    movedim = moveaxis
    def __mul__(self, other: Any) -> Tensor: ...
    def __rmul__(self, other: Any) -> Tensor: ...
    def multiply(self, x2: ArrayLike) -> Tensor: ...
    mul = multiply
    def nan_to_num(self, nan: float = 0.0, posinf: float | None = None, neginf: float | None = None) -> Tensor: ...
    @overload
    def nanmax(self, axis: int | Sequence[int] | None = None, keepdims: _bool = False) -> Tensor: ...
    @overload
    def nanmax(self, *, dim: int | Sequence[int] | None = ..., keepdim: _bool = ...) -> Tensor: ...
    @overload
    def nanmean(self, axis: int | Sequence[int] | None = None, keepdims: _bool = False) -> Tensor: ...
    @overload
    def nanmean(self, *, dim: int | Sequence[int] | None = ..., keepdim: _bool = ...) -> Tensor: ...
    @overload
    def nanmin(self, axis: int | Sequence[int] | None = None, keepdims: _bool = False) -> Tensor: ...
    @overload
    def nanmin(self, *, dim: int | Sequence[int] | None = ..., keepdim: _bool = ...) -> Tensor: ...
    @overload
    def nanprod(self, axis: int | Sequence[int] | None = None, dtype: DTypeLike | None = None, keepdims: _bool = False) -> Tensor: ...
    @overload
    def nanprod(self, *, dim: int | Sequence[int] | None = ..., dtype: DTypeLike | None = ..., keepdim: _bool = ...) -> Tensor: ...
    @overload
    def nanstd(self, axis: int | Sequence[int] | None = None, correction: float = 0.0, keepdims: _bool = False) -> Tensor: ...
    @overload
    def nanstd(self, *, dim: int | Sequence[int] | None = ..., correction: float = ..., keepdim: _bool = ...) -> Tensor: ...
    @overload
    def nansum(self, axis: int | Sequence[int] | None = None, dtype: DTypeLike | None = None, keepdims: _bool = False) -> Tensor: ...
    @overload
    def nansum(self, *, dim: int | Sequence[int] | None = ..., dtype: DTypeLike | None = ..., keepdim: _bool = ...) -> Tensor: ...
    @overload
    def nanvar(self, axis: int | Sequence[int] | None = None, correction: float = 0.0, keepdims: _bool = False) -> Tensor: ...
    @overload
    def nanvar(self, *, dim: int | Sequence[int] | None = ..., correction: float = ..., keepdim: _bool = ...) -> Tensor: ...
    @overload
    def narrow(self, axis: int, start: int | Sequence[int], length: int) -> Tensor: ...
    @overload
    def narrow(self, *, dim: int, start: int | Sequence[int], length: int) -> Tensor: ...
    def __neg__(self) -> Tensor: ...
    def negative(self) -> Tensor: ...
    neg = negative
    def nextafter(self, x2: ArrayLike) -> Tensor: ...
    def nonzero(self) -> tuple[Tensor, ...]: ...
    def __ne__(self, other: Any) -> Tensor: ...  # type: ignore[override]
    def not_equal(self, x2: ArrayLike) -> Tensor: ...
    ne = not_equal
    def one_hot(self, num_classes: int, dtype: DTypeLike = "float32") -> Tensor: ...
    def ones_like(self, dtype: DTypeLike | None = None) -> Tensor: ...
    def outer(self, x2: ArrayLike) -> Tensor: ...
    def pad(self, pad_width: int | Sequence[int], mode: Literal["constant", "edge", "reflect", "wrap"] = "constant", constant_values: _complex = 0) -> Tensor: ...
    def pad_with(self, value: ArrayLike, pad_width: int | Sequence[int], mode: Literal["constant", "edge", "reflect", "wrap"] = "constant") -> Tensor: ...
    @overload
    def partition(self, kth: int, axis: int = -1) -> Tensor: ...
    @overload
    def partition(self, kth: int, *, dim: int = ...) -> Tensor: ...
    @overload
    def percentile(self, q: ArrayLike, axis: int | Sequence[int] | None = None, keepdims: _bool = False, method: Literal["linear", "lower", "higher", "midpoint", "nearest"] = "linear") -> Tensor: ...
    @overload
    def percentile(self, q: ArrayLike, *, dim: int | Sequence[int] | None = ..., keepdim: _bool = ..., method: Literal["linear", "lower", "higher", "midpoint", "nearest"] = ...) -> Tensor: ...
    @overload
    def permute_dims(self, axes: Sequence[int] | None = None) -> Tensor: ...
    @overload
    def permute_dims(self, *, dim: Sequence[int] | None = ...) -> Tensor: ...
    permute = permute_dims
    def pixel_shuffle(self, upscale_factor: int, channels_last: _bool = False) -> Tensor: ...
    def pixel_unshuffle(self, downscale_factor: int, channels_last: _bool = False) -> Tensor: ...
    def polygamma(self, order: int = 0) -> Tensor: ...
    def polyval(self, x: ArrayLike) -> Tensor: ...
    def __pos__(self) -> Tensor: ...
    def positive(self) -> Tensor: ...
    def __pow__(self, other: Any) -> Tensor: ...
    def __rpow__(self, other: Any) -> Tensor: ...
    def pow(self, x2: ArrayLike) -> Tensor: ...
    power = pow
    @overload
    def prod(self, axis: int | Sequence[int] | None = None, dtype: DTypeLike | None = None, keepdims: _bool = False) -> Tensor: ...
    @overload
    def prod(self, *, dim: int | Sequence[int] | None = ..., dtype: DTypeLike | None = ..., keepdim: _bool = ...) -> Tensor: ...
    @overload
    def put_along_axis(self, indices: ArrayLike, values: ArrayLike, axis: int = -1, mode: Literal["set", "add", "mul", "max", "min"] = "set") -> Tensor: ...
    @overload
    def put_along_axis(self, indices: ArrayLike, values: ArrayLike, *, dim: int = ..., mode: Literal["set", "add", "mul", "max", "min"] = ...) -> Tensor: ...
    @overload
    def quantile(self, q: ArrayLike, axis: int | Sequence[int] | None = None, keepdims: _bool = False, method: Literal["linear", "lower", "higher", "midpoint", "nearest"] = "linear") -> Tensor: ...
    @overload
    def quantile(self, q: ArrayLike, *, dim: int | Sequence[int] | None = ..., keepdim: _bool = ..., method: Literal["linear", "lower", "higher", "midpoint", "nearest"] = ...) -> Tensor: ...
    def radians(self) -> Tensor: ...
    deg2rad = radians
    def random_key(self) -> Tensor: ...
    def reciprocal(self) -> Tensor: ...
    def relu(self) -> Tensor: ...
    def relu6(self) -> Tensor: ...
    def __mod__(self, other: Any) -> Tensor: ...
    def __rmod__(self, other: Any) -> Tensor: ...
    def remainder(self, x2: ArrayLike) -> Tensor: ...
    mod = remainder
    @overload
    def repeat_interleave(self, repeats: ArrayLike, axis: int | None = None) -> Tensor: ...
    @overload
    def repeat_interleave(self, repeats: ArrayLike, *, dim: int | None = ...) -> Tensor: ...
    def reshape(self, shape: int | Sequence[int]) -> Tensor: ...
    view = reshape
    def rms_norm(self, weight: ArrayLike | None = None, eps: float = 1e-05) -> Tensor: ...
    @overload
    def roll(self, shift: int | Sequence[int], axis: int | Sequence[int] | None = None) -> Tensor: ...
    @overload
    def roll(self, shift: int | Sequence[int], *, dim: int | Sequence[int] | None = ...) -> Tensor: ...
    def rope(self, dims: int, base: float = 10000.0, traditional: _bool = False, scale: float = 1.0, offset: int = 0) -> Tensor: ...
    @overload
    def rot90(self, k: int = 1, axes: int | Sequence[int] | None = None) -> Tensor: ...
    @overload
    def rot90(self, k: int = ..., *, dim: int | Sequence[int] | None = ...) -> Tensor: ...
    def round(self, decimals: int = 0) -> Tensor: ...
    rint = round
    def rsqrt(self) -> Tensor: ...
    def scaled_dot_product_attention(self, k: ArrayLike, v: ArrayLike, mask: ArrayLike | None = None, scale: float | None = None, is_causal: _bool = False) -> Tensor: ...
    @overload
    def scatter(self, updates: ArrayLike, indices: Sequence[ArrayLike], axes: int | Sequence[int], mode: Literal["set", "add", "mul", "max", "min"] = "set", batch_dims: int = 0, outside: Literal["check", "clamp", "drop", "check_clamp", "check_drop"] = "check") -> Tensor: ...
    @overload
    def scatter(self, dim: int, index: ArrayLike, src: ArrayLike, reduce: Literal["set", "add", "multiply"] = ...) -> Tensor: ...
    @overload
    def scatter_add(self, updates: ArrayLike, indices: Sequence[ArrayLike], axes: int | Sequence[int]) -> Tensor: ...
    @overload
    def scatter_add(self, dim: int, index: ArrayLike, src: ArrayLike) -> Tensor: ...
    def searchsorted(self, x2: ArrayLike, sorter: ArrayLike | None = None, side: Literal["left", "right"] = "left", batch_dims: int = 0) -> Tensor: ...
    def segment_max(self, segment_ids: ArrayLike, num_segments: int) -> Tensor: ...
    def segment_min(self, segment_ids: ArrayLike, num_segments: int) -> Tensor: ...
    def segment_prod(self, segment_ids: ArrayLike, num_segments: int) -> Tensor: ...
    def segment_sum(self, segment_ids: ArrayLike, num_segments: int) -> Tensor: ...
    def selu(self) -> Tensor: ...
    def sigmoid(self) -> Tensor: ...
    def sign(self) -> Tensor: ...
    def signbit(self) -> Tensor: ...
    def silu(self) -> Tensor: ...
    swish = silu
    def sin(self) -> Tensor: ...
    def sinc(self) -> Tensor: ...
    def sinh(self) -> Tensor: ...
    @overload
    def slice(self, start: int | Sequence[int], stop: int | Sequence[int], step: int | Sequence[int] | None = None, axis: int | Sequence[int] | None = None) -> Tensor: ...
    @overload
    def slice(self, start: int | Sequence[int], stop: int | Sequence[int], step: int | Sequence[int] | None = ..., *, dim: int | Sequence[int] | None = ...) -> Tensor: ...
    @overload
    def slice_update(self, update: ArrayLike, start: int | Sequence[int], stop: int | Sequence[int], step: int | Sequence[int] | None = None, axis: int | Sequence[int] | None = None) -> Tensor: ...
    @overload
    def slice_update(self, update: ArrayLike, start: int | Sequence[int], stop: int | Sequence[int], step: int | Sequence[int] | None = ..., *, dim: int | Sequence[int] | None = ...) -> Tensor: ...
    @overload
    def slopes(self, spacing: ArrayLike | None = None, axis: int = 0, edge_order: int = 1) -> Tensor: ...
    @overload
    def slopes(self, spacing: ArrayLike | None = ..., *, dim: int = ..., edge_order: int = ...) -> Tensor: ...
    @overload
    def softmax(self, axis: int | Sequence[int] | None = None) -> Tensor: ...
    @overload
    def softmax(self, *, dim: int | Sequence[int] | None = ...) -> Tensor: ...
    def softplus(self) -> Tensor: ...
    def softsign(self) -> Tensor: ...
    @overload
    def sort(self, axis: int = -1, descending: _bool = False, stable: _bool = True) -> Tensor: ...
    @overload
    def sort(self, *, dim: int, descending: _bool = ..., stable: _bool = ...) -> _sort_along_dim_result: ...
    @overload
    def split(self, sections: int | Sequence[int] | None = None, axis: int = 0, indices: int | Sequence[int] | None = None) -> tuple[Tensor, ...]: ...
    @overload
    def split(self, split_size_or_sections: int | Sequence[int] | None = ..., sizes: int | Sequence[int] | None = ..., *, dim: int = ...) -> tuple[Tensor, ...]: ...
    def sqrt(self) -> Tensor: ...
    def square(self) -> Tensor: ...
    @overload
    def squeeze(self, axis: int | Sequence[int] | None = None) -> Tensor: ...
    @overload
    def squeeze(self, *, dim: int | Sequence[int] | None = ...) -> Tensor: ...
    @overload
    def std(self, axis: int | Sequence[int] | None = None, correction: float = 0.0, keepdims: _bool = False) -> Tensor: ...
    @overload
    def std(self, *, dim: int | Sequence[int] | None = ..., unbiased: _bool | None = ..., keepdim: _bool = ..., correction: float = ...) -> Tensor: ...
    def stop_gradient(self) -> Tensor: ...
    detach = stop_gradient
    def __sub__(self, other: Any) -> Tensor: ...
    def __rsub__(self, other: Any) -> Tensor: ...
    def subtract(self, x2: ArrayLike) -> Tensor: ...
    sub = subtract
    @overload
    def sum(self, axis: int | Sequence[int] | None = None, dtype: DTypeLike | None = None, keepdims: _bool = False) -> Tensor: ...
    @overload
    def sum(self, *, dim: int | Sequence[int] | None = ..., dtype: DTypeLike | None = ..., keepdim: _bool = ...) -> Tensor: ...
    def swapaxes(self, axis1: int, axis2: int) -> Tensor: ...
    swapdims = swapaxes
    @overload
    def take(self, indices: ArrayLike, axis: int | None = None) -> Tensor: ...
    @overload
    def take(self, indices: ArrayLike, *, dim: int | None = ...) -> Tensor: ...
    @overload
    def take_along_axis(self, indices: ArrayLike, axis: int = -1) -> Tensor: ...
    @overload
    def take_along_axis(self, indices: ArrayLike, *, dim: int = ...) -> Tensor: ...
    take_along_dim = take_along_axis
    def tan(self) -> Tensor: ...
    def tanh(self) -> Tensor: ...
    @overload
    def tensordot(self, x2: ArrayLike, axes: int | Sequence[int] | None = None, x2_axes: int | Sequence[int] | None = None) -> Tensor: ...
    @overload
    def tensordot(self, x2: ArrayLike, *, dim: int | Sequence[int] | None = ..., x2_axes: int | Sequence[int] | None = ...) -> Tensor: ...
    def tile(self, repetitions: int | Sequence[int]) -> Tensor: ...
    @overload
    def top_k(self, k: int, axis: int = -1) -> _top_k_result: ...
    @overload
    def top_k(self, k: int, *, dim: int = ...) -> _top_k_result: ...
    topk = top_k
    def trace(self, offset: int = 0, axis1: int = 0, axis2: int = 1, dtype: DTypeLike | None = None) -> Tensor: ...
    @overload
    def trapezoid(self, x: ArrayLike | None = None, dx: float = 1.0, axis: int = -1) -> Tensor: ...
    @overload
    def trapezoid(self, x: ArrayLike | None = ..., dx: float = ..., *, dim: int = ...) -> Tensor: ...
    trapz = trapezoid
    def tril(self, k: int = 0) -> Tensor: ...
    def triu(self, k: int = 0) -> Tensor: ...
    def trunc(self) -> Tensor: ...
    @overload
    def unflatten(self, axis: int, shape: int | Sequence[int]) -> Tensor: ...
    @overload
    def unflatten(self, *, dim: int, shape: int | Sequence[int]) -> Tensor: ...
    def unique_all(self) -> _unique_all_result: ...
    def unique_counts(self) -> _unique_counts_result: ...
    def unique_inverse(self) -> _unique_inverse_result: ...
    def unique_values(self) -> Tensor: ...
    def unravel_index(self, shape: int | Sequence[int]) -> tuple[Tensor, ...]: ...
    @overload
    def unstack(self, axis: int = 0) -> tuple[Tensor, ...]: ...
    @overload
    def unstack(self, *, dim: int = ...) -> tuple[Tensor, ...]: ...
    unbind = unstack
    @overload
    def var(self, axis: int | Sequence[int] | None = None, correction: float = 0.0, keepdims: _bool = False) -> Tensor: ...
    @overload
    def var(self, *, dim: int | Sequence[int] | None = ..., unbiased: _bool | None = ..., keepdim: _bool = ..., correction: float = ...) -> Tensor: ...
    def vdot(self, x2: ArrayLike) -> Tensor: ...
    @overload
    def vecdot(self, x2: ArrayLike, axis: int = -1) -> Tensor: ...
    @overload
    def vecdot(self, x2: ArrayLike, *, dim: int = ...) -> Tensor: ...
    @overload
    def weighted_mean(self, weights: ArrayLike | None = None, axis: int | Sequence[int] | None = None, keepdims: _bool = False) -> _weighted_mean_result: ...
    @overload
    def weighted_mean(self, weights: ArrayLike | None = ..., *, dim: int | Sequence[int] | None = ..., keepdim: _bool = ...) -> _weighted_mean_result: ...
    def window(self, size: int | Sequence[int], step: int | Sequence[int] = (1,), dilation: int | Sequence[int] = (1,)) -> Tensor: ...
    def window_fold(self, extents: int | Sequence[int], step: int | Sequence[int] = (1,), dilation: int | Sequence[int] = (1,)) -> Tensor: ...
    def zeros_like(self, dtype: DTypeLike | None = None) -> Tensor: ...

class _count_in_bins_result(NamedTuple):
    counts: Tensor
    bin_edges: Tensor

class _cummax_along_dim_result(NamedTuple):
    values: Tensor
    indices: Tensor

class _cummin_along_dim_result(NamedTuple):
    values: Tensor
    indices: Tensor

class _distinct_result(NamedTuple):
    values: Tensor
    indices: Tensor
    inverse_indices: Tensor
    counts: Tensor

class _divmod_result(NamedTuple):
    quotient: Tensor
    remainder: Tensor

class _eig_result(NamedTuple):
    eigenvalues: Tensor
    eigenvectors: Tensor

class _eigh_result(NamedTuple):
    eigenvalues: Tensor
    eigenvectors: Tensor

class _lstsq_result(NamedTuple):
    x: Tensor
    residuals: Tensor
    rank: Tensor
    singular_values: Tensor

class _lu_factor_result(NamedTuple):
    lu: Tensor
    pivots: Tensor
    permutation: Tensor

class _max_along_dim_result(NamedTuple):
    values: Tensor
    indices: Tensor

class _median_along_dim_result(NamedTuple):
    values: Tensor
    indices: Tensor

class _min_along_dim_result(NamedTuple):
    values: Tensor
    indices: Tensor

class _qr_result(NamedTuple):
    Q: Tensor
    R: Tensor

class _slogdet_result(NamedTuple):
    sign: Tensor
    logabsdet: Tensor

class _sort_along_dim_result(NamedTuple):
    values: Tensor
    indices: Tensor

class _svd_result(NamedTuple):
    U: Tensor
    S: Tensor
    Vh: Tensor

class _top_k_result(NamedTuple):
    values: Tensor
    indices: Tensor

class _tril_indices_result(NamedTuple):
    rows: Tensor
    columns: Tensor

class _triu_indices_result(NamedTuple):
    rows: Tensor
    columns: Tensor

class _unique_all_result(NamedTuple):
    values: Tensor
    indices: Tensor
    inverse_indices: Tensor
    counts: Tensor

class _unique_counts_result(NamedTuple):
    values: Tensor
    counts: Tensor

class _unique_inverse_result(NamedTuple):
    values: Tensor
    inverse_indices: Tensor

class _weighted_mean_result(NamedTuple):
    mean: Tensor
    sum_of_weights: Tensor

def abs(x: ArrayLike) -> Tensor:
    """The absolute value; of complex numbers the real magnitude."""
absolute = abs
def acos(x: ArrayLike) -> Tensor:
    """The angle in [0, pi] whose cosine is `x`."""
arccos = acos
def acosh(x: ArrayLike) -> Tensor:
    """The non-negative number whose hyperbolic cosine is `x`."""
arccosh = acosh
def adaptive_avg_pool(x: ArrayLike, output_size: int | Sequence[int], channels_last: _bool = False) -> Tensor:
    """Means of `output_size` windows along each of the 1 to 3 spatial axes of `x`, [batch, channels, spatial axes ...]: window i of m has the elements from floor(i * n / m) on, up to ceil((i + 1) * n / m)."""
def adaptive_max_pool(x: ArrayLike, output_size: int | Sequence[int], channels_last: _bool = False) -> Tensor:
    """The largest elements of the windows of `adaptive_avg_pool`."""
def add(x1: ArrayLike, x2: ArrayLike) -> Tensor:
    """The sum `x1 + x2`."""
def addmm(c: ArrayLike, a: ArrayLike, b: ArrayLike, alpha: float = 1.0, beta: float = 1.0) -> Tensor:
    """`beta * c + alpha * (a @ b)`, with `c` broadcast."""
@overload
def all(x: ArrayLike, axis: int | Sequence[int] | None = None, keepdims: _bool = False) -> Tensor:
    """Whether every element over `axis` is true, that is, not 0."""
@overload
def all(x: ArrayLike, *, dim: int | Sequence[int] | None = ..., keepdim: _bool = ...) -> Tensor: ...
def allclose(x1: ArrayLike, x2: ArrayLike, rtol: float = 1e-05, atol: float = 1e-08, equal_nan: _bool = False) -> Tensor:
    """Whether all elements are close, as `isclose` says; true when there are none."""
@overload
def amax(x: ArrayLike, axis: int | Sequence[int] | None = None, keepdims: _bool = False) -> Tensor:
    """`max`, by NumPy's other name."""
@overload
def amax(x: ArrayLike, *, dim: int | Sequence[int] | None = ..., keepdim: _bool = ...) -> Tensor: ...
@overload
def amin(x: ArrayLike, axis: int | Sequence[int] | None = None, keepdims: _bool = False) -> Tensor:
    """`min`, by NumPy's other name."""
@overload
def amin(x: ArrayLike, *, dim: int | Sequence[int] | None = ..., keepdim: _bool = ...) -> Tensor: ...
def angle(x: ArrayLike, deg: _bool = False) -> Tensor:
    """The angle of a complex number in [-pi, pi], in degrees when `deg`; of reals 0, or pi for negative ones."""
@overload
def any(x: ArrayLike, axis: int | Sequence[int] | None = None, keepdims: _bool = False) -> Tensor:
    """Whether some element over `axis` is true, that is, not 0."""
@overload
def any(x: ArrayLike, *, dim: int | Sequence[int] | None = ..., keepdim: _bool = ...) -> Tensor: ...
@overload
def append(x: ArrayLike, values: ArrayLike, axis: int | None = None) -> Tensor:
    """`values` behind the elements of `x` along `axis`; without it both are flattened first."""
@overload
def append(x: ArrayLike, values: ArrayLike, *, dim: int | None = ...) -> Tensor: ...
def arange(start: _complex, stop: _complex | None = None, step: _complex = 1, dtype: DTypeLike | None = None, *, device: str | Device | None = None, requires_grad: _bool = False) -> Tensor:
    """`start`, `start + step` and so on, up to but without `stop`; with one number, from 0 to it."""
@overload
def argmax(x: ArrayLike, axis: int | None = None, keepdims: _bool = False) -> Tensor:
    """Index of the largest element along `axis`, in row-major order of all elements when it is left out; the first of equal ones, the first NaN if there is one."""
@overload
def argmax(x: ArrayLike, *, dim: int | None = ..., keepdim: _bool = ...) -> Tensor: ...
@overload
def argmin(x: ArrayLike, axis: int | None = None, keepdims: _bool = False) -> Tensor:
    """Index of the smallest element along `axis`, in row-major order of all elements when it is left out; the first of equal ones, the first NaN if there is one."""
@overload
def argmin(x: ArrayLike, *, dim: int | None = ..., keepdim: _bool = ...) -> Tensor: ...
@overload
def argpartition(x: ArrayLike, kth: int, axis: int = -1) -> Tensor:
    """The positions, as int64, that `partition` along `axis`."""
@overload
def argpartition(x: ArrayLike, kth: int, *, dim: int = ...) -> Tensor: ...
@overload
def argreduce(x: ArrayLike, axis: int, mode: Literal["max", "min"] = "max") -> Tensor:
    """Index of the first largest or smallest element along `axis`, as int64."""
@overload
def argreduce(x: ArrayLike, *, dim: int, mode: Literal["max", "min"] = ...) -> Tensor: ...
@overload
def argsort(x: ArrayLike, axis: int = -1, descending: _bool = False, stable: _bool = True) -> Tensor:
    """The positions, as int64, that sort `x` along `axis`: `take_along_axis(x, argsort(x), axis)` is `sort(x)`."""
@overload
def argsort(x: ArrayLike, *, dim: int = ..., descending: _bool = ..., stable: _bool = ...) -> Tensor: ...
def argwhere(x: ArrayLike) -> Tensor:
    """The positions of the elements that are not 0, in row-major order: one row per element, one column per axis, as int64."""
def array_equal(x1: ArrayLike, x2: ArrayLike, equal_nan: _bool = False) -> Tensor:
    """Whether the operands have the same shape and equal elements; with `equal_nan`, NaN equals NaN."""
@overload
def array_split(x: ArrayLike, sections: int | Sequence[int] | None = None, axis: int = 0, indices: int | Sequence[int] | None = None) -> tuple[Tensor, ...]:
    """Pieces along `axis`: `sections` of nearly equal size, the first ones longer by one where the axis does not divide, or cut before each of `indices`."""
@overload
def array_split(x: ArrayLike, sections: int | Sequence[int] | None = ..., *, dim: int = ..., indices: int | Sequence[int] | None = ...) -> tuple[Tensor, ...]: ...
def as_strided(x: ArrayLike, shape: int | Sequence[int] | None = None, strides: int | Sequence[int] | None = None, offset: int = 0) -> Tensor:
    """Element (i, j, …) is number `offset + i*strides[0] + j*strides[1] + …` of `x` in row-major order."""
def asin(x: ArrayLike) -> Tensor:
    """The angle in [-pi/2, pi/2] whose sine is `x`."""
arcsin = asin
def asinh(x: ArrayLike) -> Tensor:
    """The number whose hyperbolic sine is `x`."""
arcsinh = asinh
def astype(x: ArrayLike, dtype: DTypeLike) -> Tensor:
    """`x` converted to the element type `dtype`."""
cast = astype
def atan(x: ArrayLike) -> Tensor:
    """The angle in [-pi/2, pi/2] whose tangent is `x`."""
arctan = atan
def atan2(x1: ArrayLike, x2: ArrayLike) -> Tensor:
    """The angle in [-pi, pi] of the point with ordinate `x1` and abscissa `x2`."""
arctan2 = atan2
def atanh(x: ArrayLike) -> Tensor:
    """The number whose hyperbolic tangent is `x`."""
arctanh = atanh
def atleast_1d(x: ArrayLike) -> Tensor:
    """A 0-d tensor as 1-d; others stay."""
def atleast_2d(x: ArrayLike) -> Tensor:
    """A tensor of fewer than two axes with axes of extent 1 in front; others stay."""
def atleast_3d(x: ArrayLike) -> Tensor:
    """A tensor with three axes at least: [] becomes [1,1,1], [n] becomes [1,n,1], [m,n] becomes [m,n,1]; others stay."""
def avg_pool(x: ArrayLike, kernel_size: int | Sequence[int], stride: int | Sequence[int] | None = None, padding: int | Sequence[int] = (0,), count_include_pad: _bool = True, channels_last: _bool = False) -> Tensor:
    """Mean of each window over the 1 to 3 spatial axes of `x`, [batch, channels, spatial axes ...]."""
@overload
def batch_norm(x: ArrayLike, mean: ArrayLike, var: ArrayLike, weight: ArrayLike | None = None, bias: ArrayLike | None = None, eps: float = 1e-05, axis: int = -1) -> Tensor:
    """`(x - mean) / sqrt(var + eps) * weight + bias` with one value of each per index of `axis`, the channels."""
@overload
def batch_norm(x: ArrayLike, mean: ArrayLike, var: ArrayLike, weight: ArrayLike | None = ..., bias: ArrayLike | None = ..., eps: float = ..., *, dim: int = ...) -> Tensor: ...
def binary_cross_entropy(inputs: ArrayLike, targets: ArrayLike, weights: ArrayLike | None = None, with_logits: _bool = True, reduction: Literal["none", "mean", "sum"] = "mean") -> Tensor:
    """Minus the log of the probability of targets 0 and 1 (or between)."""
def bincount(x: ArrayLike, weights: ArrayLike | None = None, minlength: int = 0, length: int | None = None) -> Tensor:
    """How often each integer from 0 on occurs in `x`, or the sum of its `weights`."""
def bitcast(x: ArrayLike, dtype: DTypeLike) -> Tensor:
    """The bits of every element read as another type of the same size: `float32` 1.0 as `uint32` is 0x3f800000."""
def bitwise_and(x1: ArrayLike, x2: ArrayLike) -> Tensor:
    """The bits set in both operands; of booleans their conjunction."""
def bitwise_invert(x: ArrayLike) -> Tensor:
    """Every bit flipped; the negation of booleans."""
invert = bitwise_invert
bitwise_not = bitwise_invert
def bitwise_left_shift(x1: ArrayLike, x2: ArrayLike) -> Tensor:
    """The bits of `x1` moved up by `x2` places; zeros come in."""
left_shift = bitwise_left_shift
def bitwise_or(x1: ArrayLike, x2: ArrayLike) -> Tensor:
    """The bits set in either operand; of booleans their disjunction."""
def bitwise_right_shift(x1: ArrayLike, x2: ArrayLike) -> Tensor:
    """The bits of `x1` moved down by `x2` places; the sign comes in."""
right_shift = bitwise_right_shift
def bitwise_xor(x1: ArrayLike, x2: ArrayLike) -> Tensor:
    """The bits set in exactly one operand."""
def bmm(x1: ArrayLike, x2: ArrayLike) -> Tensor:
    """Products of the matrices of two batches, [batch, m, k] and [batch, k, n]; nothing is broadcast."""
def broadcast_arrays(arrays: Sequence[ArrayLike]) -> tuple[Tensor, ...]:
    """Broadcasts tensors against each other."""
def broadcast_to(x: ArrayLike, shape: int | Sequence[int]) -> Tensor:
    """Repeats axes of extent 1, and new axes in front, to reach `shape`."""
def cbrt(x: ArrayLike) -> Tensor:
    """The real cube root, of negative numbers too."""
def cdist(x1: ArrayLike, x2: ArrayLike, p: float = 2.0) -> Tensor:
    """The distances between the rows of `x1`, [..., m, k], and of `x2`, [..., n, k], as [..., m, n]: the `p`-norm of their differences, as of `vector_norm`."""
def ceil(x: ArrayLike) -> Tensor:
    """The smallest whole number not below `x`."""
def celu(x: ArrayLike, alpha: float = 1.0) -> Tensor:
    """`x`, or `alpha * (exp(x / alpha) - 1)` where it is negative."""
def cholesky(x: ArrayLike, upper: _bool = False) -> Tensor:
    """The lower triangular matrix with positive diagonal whose product with its conjugate transpose is `x`, or that transpose when `upper`."""
@overload
def chunk(x: ArrayLike, chunks: int, axis: int = 0) -> tuple[Tensor, ...]:
    """At most `chunks` pieces along `axis`, all of the same size but the last, which may be smaller: 5 elements make pieces of 2, 2 and 1."""
@overload
def chunk(x: ArrayLike, chunks: int, *, dim: int = ...) -> tuple[Tensor, ...]: ...
def clip(x: ArrayLike, min: ArrayLike | None = None, max: ArrayLike | None = None) -> Tensor:
    """`x` limited to [`min`, `max`]; a bound that is left out does not limit."""
clamp = clip
def column_stack(arrays: Sequence[ArrayLike]) -> Tensor:
    """Joins tensors along axis 1; those of one axis become columns first."""
@overload
def concat(arrays: Sequence[ArrayLike], axis: int | None = 0) -> Tensor:
    """Joins tensors along an existing axis; with `axis` None they are flattened first."""
@overload
def concat(arrays: Sequence[ArrayLike], *, dim: int | None = ...) -> Tensor: ...
concatenate = concat
cat = concat
def condition_number(x: ArrayLike, ord: Literal["fro", "nuc", "1", "-1", "2", "-2", "inf", "-inf"] = "2") -> Tensor:
    """How much a matrix may enlarge relative errors: the quotient of its largest and smallest singular values, or the product of the norms, as `matrix_norm` has them, of a square matrix and its inverse."""
def conj(x: ArrayLike) -> Tensor:
    """The number with its imaginary part negated; real numbers stay as they are."""
conjugate = conj
def contiguous(x: ArrayLike) -> Tensor:
    """`x` itself: computed tensors are always row-major."""
def conv(x: ArrayLike, w: ArrayLike, stride: int | Sequence[int] = (1,), padding: int | Sequence[int] = (0,), input_dilation: int | Sequence[int] = (1,), kernel_dilation: int | Sequence[int] = (1,), groups: int | Sequence[int] | None = 1, channels_last: _bool = False) -> Tensor:
    """Slides kernels over `x`, [batch, channels, spatial axes ...], without mirroring them: `w` is [channels out, channels / groups, kernel axes ...]."""
def conv1d(x: ArrayLike, weight: ArrayLike, bias: ArrayLike | None = None, stride: int | Sequence[int] = (1,), padding: int | Sequence[int] = (0,), dilation: int | Sequence[int] = (1,), groups: int | Sequence[int] | None = 1, channels_last: _bool = False, padding_mode: Literal["given", "same", "valid"] = "given") -> Tensor:
    """Slides kernels along `x`, [batch, channels, length], without mirroring them: `weight` is [channels out, channels / groups, k]."""
def conv2d(x: ArrayLike, weight: ArrayLike, bias: ArrayLike | None = None, stride: int | Sequence[int] = (1,), padding: int | Sequence[int] = (0,), dilation: int | Sequence[int] = (1,), groups: int | Sequence[int] | None = 1, channels_last: _bool = False, padding_mode: Literal["given", "same", "valid"] = "given") -> Tensor:
    """Slides kernels over `x`, [batch, channels, height, width], without mirroring them: `weight` is [channels out, channels / groups, kh, kw], `bias` has one number for each channel out."""
def conv3d(x: ArrayLike, weight: ArrayLike, bias: ArrayLike | None = None, stride: int | Sequence[int] = (1,), padding: int | Sequence[int] = (0,), dilation: int | Sequence[int] = (1,), groups: int | Sequence[int] | None = 1, channels_last: _bool = False, padding_mode: Literal["given", "same", "valid"] = "given") -> Tensor:
    """Slides kernels through `x`, [batch, channels, depth, height, width], without mirroring them: `weight` is [channels out, channels / groups, kd, kh, kw]."""
def conv_general(x: ArrayLike, weight: ArrayLike, stride: int | Sequence[int] = (1,), padding: int | Sequence[int] = (0,), kernel_dilation: int | Sequence[int] = (1,), input_dilation: int | Sequence[int] = (1,), groups: int | Sequence[int] | None = 1, flip: _bool = False, channels_last: _bool = False) -> Tensor:
    """Convolution over 1 to 3 spatial axes with every option: as `conv1d`, `conv2d` and `conv3d`, and `input_dilation` puts zeros between the elements of `x`; `flip` mirrors the kernel."""
def conv_transpose1d(x: ArrayLike, weight: ArrayLike, bias: ArrayLike | None = None, stride: int | Sequence[int] = (1,), padding: int | Sequence[int] = (0,), output_padding: int | Sequence[int] = (0,), groups: int | Sequence[int] | None = 1, dilation: int | Sequence[int] = (1,), channels_last: _bool = False) -> Tensor:
    """The adjoint of `conv1d` in its input: `x` is [batch, channels, length], `weight` is [channels, channels out / groups, k]."""
def conv_transpose2d(x: ArrayLike, weight: ArrayLike, bias: ArrayLike | None = None, stride: int | Sequence[int] = (1,), padding: int | Sequence[int] = (0,), output_padding: int | Sequence[int] = (0,), groups: int | Sequence[int] | None = 1, dilation: int | Sequence[int] = (1,), channels_last: _bool = False) -> Tensor:
    """The adjoint of `conv2d` in its input, with the same `stride`, `padding` and `dilation`: `x` is [batch, channels, height, width], `weight` is [channels, channels out / groups, kh, kw]."""
def conv_transpose3d(x: ArrayLike, weight: ArrayLike, bias: ArrayLike | None = None, stride: int | Sequence[int] = (1,), padding: int | Sequence[int] = (0,), output_padding: int | Sequence[int] = (0,), groups: int | Sequence[int] | None = 1, dilation: int | Sequence[int] = (1,), channels_last: _bool = False) -> Tensor:
    """The adjoint of `conv3d` in its input: `x` is [batch, channels, depth, height, width], `weight` is [channels, channels out / groups, kd, kh, kw]."""
def convolve(x1: ArrayLike, x2: ArrayLike, mode: Literal["full", "same", "valid"] = "full") -> Tensor:
    """The sums of x1[i] * x2[k - i] for every k, of two lists: all of them (`full`), as many as the longer list has elements, from the middle (`same`), or those that use all of the shorter one (`valid`)."""
def copy(x: ArrayLike) -> Tensor:
    """`x` itself, as a tensor of its own to transforms such as `grad`."""
def copysign(x1: ArrayLike, x2: ArrayLike) -> Tensor:
    """The magnitude of `x1` with the sign of `x2`, zeros and NaN included."""
def corrcoef(x: ArrayLike, y: ArrayLike | None = None, rowvar: _bool = True) -> Tensor:
    """The correlations of variables: `cov` divided by the standard deviations of both."""
def cos(x: ArrayLike) -> Tensor:
    """The cosine of an angle in radians."""
def cosh(x: ArrayLike) -> Tensor:
    """The hyperbolic cosine."""
@overload
def cosine_similarity_loss(x1: ArrayLike, x2: ArrayLike, axis: int = 1, eps: float = 1e-08, reduction: Literal["none", "mean", "sum"] = "none") -> Tensor:
    """The cosine of the angle between vectors along `axis`, 1 when they point the same way."""
@overload
def cosine_similarity_loss(x1: ArrayLike, x2: ArrayLike, *, dim: int = ..., eps: float = ..., reduction: Literal["none", "mean", "sum"] = ...) -> Tensor: ...
def count_in_bins(x: ArrayLike, bins: ArrayLike | None = None, range: ArrayLike | None = None, weights: ArrayLike | None = None, density: _bool = False) -> _count_in_bins_result:
    """How many elements of `x` lie in each bin, and the edges of the bins."""
@overload
def count_nonzero(x: ArrayLike, axis: int | Sequence[int] | None = None, keepdims: _bool = False) -> Tensor:
    """Number of elements over `axis` that are not 0, as int64."""
@overload
def count_nonzero(x: ArrayLike, *, dim: int | Sequence[int] | None = ..., keepdim: _bool = ...) -> Tensor: ...
def cov(x: ArrayLike, y: ArrayLike | None = None, fweights: ArrayLike | None = None, aweights: ArrayLike | None = None, rowvar: _bool = True, bias: _bool = False, ddof: int | None = None) -> Tensor:
    """The covariances of variables, which are the rows of `x` and `y`, or the columns unless `rowvar`."""
@overload
def cross(x1: ArrayLike, x2: ArrayLike, axis: int = -1) -> Tensor:
    """The cross product of the vectors of three numbers along `axis`; the rest broadcasts."""
@overload
def cross(x1: ArrayLike, x2: ArrayLike, *, dim: int = ...) -> Tensor: ...
@overload
def cross_entropy(logits: ArrayLike, targets: ArrayLike, reduction: Literal["none", "mean", "sum"] = "mean", label_smoothing: float = 0.0, axis: int = -1) -> Tensor:
    """Minus the log of the probability that `softmax(logits)` along `axis` gives the targets: classes (integers, the shape of `logits` without `axis`) or probabilities (the shape of `logits`)."""
@overload
def cross_entropy(logits: ArrayLike, targets: ArrayLike, reduction: Literal["none", "mean", "sum"] = ..., label_smoothing: float = ..., *, dim: int = ...) -> Tensor: ...
@overload
def cross_entropy_loss(logits: ArrayLike, targets: ArrayLike, weights: ArrayLike | None = None, axis: int = -1, label_smoothing: float = 0.0, reduction: Literal["none", "mean", "sum"] = "none", ignore_index: int | None = None) -> Tensor:
    """`cross_entropy` with weights: minus the log of the probability that `softmax(logits)` gives the targets, which are classes, without `axis`, or probabilities like `logits`."""
@overload
def cross_entropy_loss(logits: ArrayLike, targets: ArrayLike, weights: ArrayLike | None = ..., *, dim: int = ..., label_smoothing: float = ..., reduction: Literal["none", "mean", "sum"] = ..., ignore_index: int | None = ...) -> Tensor: ...
@overload
def cummax(x: ArrayLike, axis: int | None = None) -> Tensor:
    """Largest element up to each one along `axis`; of the flattened tensor when it is left out."""
@overload
def cummax(x: ArrayLike, *, dim: int) -> _cummax_along_dim_result: ...
@overload
def cummin(x: ArrayLike, axis: int | None = None) -> Tensor:
    """Smallest element up to each one along `axis`; of the flattened tensor when it is left out."""
@overload
def cummin(x: ArrayLike, *, dim: int) -> _cummin_along_dim_result: ...
@overload
def cumulative(x: ArrayLike, axis: int, mode: Literal["sum", "prod", "max", "min"] = "sum", reverse: _bool = False, exclusive: _bool = False) -> Tensor:
    """Running sum, product, largest or smallest element along `axis`, from the end with `reverse`, without the element itself with `exclusive`."""
@overload
def cumulative(x: ArrayLike, *, dim: int, mode: Literal["sum", "prod", "max", "min"] = ..., reverse: _bool = ..., exclusive: _bool = ...) -> Tensor: ...
@overload
def cumulative_prod(x: ArrayLike, axis: int | None = None, dtype: DTypeLike | None = None, include_initial: _bool = False) -> Tensor:
    """Product of the elements up to each one along `axis`; of the flattened tensor when it is left out."""
@overload
def cumulative_prod(x: ArrayLike, *, dim: int | None = ..., dtype: DTypeLike | None = ..., include_initial: _bool = ...) -> Tensor: ...
cumprod = cumulative_prod
@overload
def cumulative_sum(x: ArrayLike, axis: int | None = None, dtype: DTypeLike | None = None, include_initial: _bool = False) -> Tensor:
    """Sum of the elements up to each one along `axis`; of the flattened tensor when it is left out."""
@overload
def cumulative_sum(x: ArrayLike, *, dim: int | None = ..., dtype: DTypeLike | None = ..., include_initial: _bool = ...) -> Tensor: ...
cumsum = cumulative_sum
def degrees(x: ArrayLike) -> Tensor:
    """Radians as degrees: `x * 180 / pi`."""
rad2deg = degrees
@overload
def delete_elements(x: ArrayLike, indices: ArrayLike, axis: int | None = None) -> Tensor:
    """`x` without the elements at `indices` along `axis`; without it `x` is flattened first."""
@overload
def delete_elements(x: ArrayLike, indices: ArrayLike, *, dim: int | None = ...) -> Tensor: ...
def det(x: ArrayLike) -> Tensor:
    """The determinant; 1 for a matrix of no elements."""
def diag(x: ArrayLike, k: int = 0) -> Tensor:
    """The matrix with a 1-d tensor as its diagonal number `k` and 0 elsewhere, or diagonal number `k` of a matrix."""
def diagonal(x: ArrayLike, offset: int = 0, axis1: int = 0, axis2: int = 1) -> Tensor:
    """The diagonal of the matrices in `axis1` and `axis2`, as the last axis; `offset` places to the right of the main one, to the left when negative."""
@overload
def diff(x: ArrayLike, prepend: ArrayLike | None = None, append: ArrayLike | None = None, axis: int = -1, n: int = 1) -> Tensor:
    """Differences of neighbours along `axis`, taken `n` times, after joining `prepend` and `append` to it."""
@overload
def diff(x: ArrayLike, prepend: ArrayLike | None = ..., append: ArrayLike | None = ..., *, dim: int = ..., n: int = ...) -> Tensor: ...
def digamma(x: ArrayLike) -> Tensor:
    """The derivative of `lgamma`; `polygamma` has the further ones."""
def digitize(x: ArrayLike, bins: ArrayLike, right: _bool = False) -> Tensor:
    """The number of the bin each element of `x` lies in, as int64: `bins[i-1] <= x < bins[i]`, or `bins[i-1] < x <= bins[i]` when `right`."""
@overload
def distinct(x: ArrayLike, axis: int | None = None, size: int | None = None, fill_value: _complex | None = None, equal_nan: _bool = True) -> _distinct_result:
    """The distinct elements in ascending order, or the distinct slices along `axis`; where the first of each is, for each element the number of its value, and how often each value occurs."""
@overload
def distinct(x: ArrayLike, *, dim: int | None = ..., size: int | None = ..., fill_value: _complex | None = ..., equal_nan: _bool = ...) -> _distinct_result: ...
def divide(x1: ArrayLike, x2: ArrayLike) -> Tensor:
    """The quotient `x1 / x2`."""
true_divide = divide
div = divide
def divmod(x1: ArrayLike, x2: ArrayLike) -> _divmod_result:
    """Floor division and its remainder: `(floor_divide(x1, x2), remainder(x1, x2))`."""
def dot(x1: ArrayLike, x2: ArrayLike, lhs_contract: int | Sequence[int], rhs_contract: int | Sequence[int], lhs_batch: int | Sequence[int] = (), rhs_batch: int | Sequence[int] = ()) -> Tensor:
    """Sums products over paired axes of both operands."""
def dropout(x: ArrayLike, key: ArrayLike | None = None, p: float = 0.5) -> Tensor:
    """`x` with elements set to 0 with probability `p` and the others divided by 1 - p."""
def dstack(arrays: Sequence[ArrayLike]) -> Tensor:
    """Joins tensors along axis 2; [n] counts as [1,n,1] and [m,n] as [m,n,1]."""
def dynamic_slice(x: ArrayLike, starts: Sequence[ArrayLike], sizes: int | Sequence[int]) -> Tensor:
    """The block of `sizes` that begins at `starts`, one integer for each axis."""
def dynamic_update_slice(x: ArrayLike, update: ArrayLike, starts: Sequence[ArrayLike]) -> Tensor:
    """`x` with the block that begins at `starts` replaced by `update`."""
def eig(x: ArrayLike) -> _eig_result:
    """Eigenvalues, in no particular order, and eigenvectors, as columns of norm 1, both complex."""
def eigh(x: ArrayLike) -> _eigh_result:
    """Eigenvalues, real and in ascending order, and orthonormal eigenvectors, as columns, of a Hermitian matrix; `x` counts as (x + xᴴ)/2."""
def eigvals(x: ArrayLike) -> Tensor:
    """The eigenvalues, complex and in no particular order."""
def eigvalsh(x: ArrayLike) -> Tensor:
    """The eigenvalues of a Hermitian matrix, in ascending order."""
def einsum(equation: str, operands: Sequence[ArrayLike]) -> Tensor:
    """Sums products of the operands over the labels that are not in the result: "ij,jk->ik"."""
def elu(x: ArrayLike, alpha: float = 1.0) -> Tensor:
    """`x`, or `alpha * (exp(x) - 1)` where it is negative."""
def embedding(weight: ArrayLike, indices: ArrayLike) -> Tensor:
    """The rows of `weight` at `indices`, which are integers of any shape."""
def empty(shape: int | Sequence[int], dtype: DTypeLike = "float32", *, device: str | Device | None = None, requires_grad: _bool = False) -> Tensor:
    """A tensor whose values do not matter; they are zero."""
def empty_like(x: ArrayLike, dtype: DTypeLike | None = None, *, device: str | Device | None = None, requires_grad: _bool = False) -> Tensor:
    """A tensor like `x` whose values do not matter; they are zero."""
def equal(x1: ArrayLike, x2: ArrayLike) -> Tensor:
    """Whether the operands are equal."""
eq = equal
def erf(x: ArrayLike) -> Tensor:
    """The error function."""
def erfc(x: ArrayLike) -> Tensor:
    """The complementary error function `1 - erf(x)`, accurate where it is small."""
def erfinv(x: ArrayLike) -> Tensor:
    """The inverse of `erf`."""
def exp(x: ArrayLike) -> Tensor:
    """e to the power `x`."""
def exp2(x: ArrayLike) -> Tensor:
    """2 to the power `x`."""
def expand(x: ArrayLike, shape: int | Sequence[int]) -> Tensor:
    """As `broadcast_to`, where -1 keeps the extent."""
def expand_as(x: ArrayLike, other: ArrayLike) -> Tensor:
    """`x` broadcast to the shape of `other`."""
@overload
def expand_dims(x: ArrayLike, axis: int | Sequence[int] | None = None) -> Tensor:
    """Adds axes of extent 1 at the places `axis` of the result; in front when it is left out."""
@overload
def expand_dims(x: ArrayLike, *, dim: int | Sequence[int] | None = ...) -> Tensor: ...
unsqueeze = expand_dims
def expm(x: ArrayLike, max_squarings: int = 16) -> Tensor:
    """The exponential of a square matrix: the sum of its powers over their factorials."""
def expm1(x: ArrayLike) -> Tensor:
    """`exp(x) - 1`, accurate near zero."""
def eye(n_rows: int, n_cols: int | None = None, k: int = 0, dtype: DTypeLike = "float32", *, device: str | Device | None = None, requires_grad: _bool = False) -> Tensor:
    """One on the diagonal `k` (0 is the main one, positive ones lie above), zero elsewhere."""
@overload
def fft(x: ArrayLike, n: int | None = None, axis: int = -1, norm: Literal["backward", "ortho", "forward"] = "backward") -> Tensor:
    """The discrete Fourier transform `sum(x[j] * exp(-2j * pi * j * k / n))` along `axis`, which is first cut, or filled up with zeros, to `n` numbers."""
@overload
def fft(x: ArrayLike, n: int | None = ..., *, dim: int = ..., norm: Literal["backward", "ortho", "forward"] = ...) -> Tensor: ...
@overload
def fft2(x: ArrayLike, s: int | Sequence[int] | None = None, axes: int | Sequence[int] | None = None, norm: Literal["backward", "ortho", "forward"] = "backward") -> Tensor:
    """`fftn` along the last two axes, unless `axes` are given."""
@overload
def fft2(x: ArrayLike, s: int | Sequence[int] | None = ..., *, dim: int | Sequence[int] | None = ..., norm: Literal["backward", "ortho", "forward"] = ...) -> Tensor: ...
@overload
def fft_axis(x: ArrayLike, kind: Literal["c2c", "r2c", "c2r"] = "c2c", inverse: _bool = False, scale: float = 1.0, n: int | None = None, axis: int = -1, divisor: Literal["one", "root", "length"] = "one") -> Tensor:
    """`scale * sum(x[j] * exp(-2j * pi * j * k / n))` along `axis` for every k, with the other sign when `inverse`."""
@overload
def fft_axis(x: ArrayLike, kind: Literal["c2c", "r2c", "c2r"] = ..., inverse: _bool = ..., scale: float = ..., n: int | None = ..., *, dim: int = ..., divisor: Literal["one", "root", "length"] = ...) -> Tensor: ...
def fftfreq(n: int, d: float = 1.0, dtype: DTypeLike = "float32", *, device: str | Device | None = None, requires_grad: _bool = False) -> Tensor:
    """The frequencies that `fft` of `n` samples at distances `d` computes, in its order: 0 and up, then the negative ones, in units of 1 / (n * d)."""
@overload
def fftn(x: ArrayLike, s: int | Sequence[int] | None = None, axes: int | Sequence[int] | None = None, norm: Literal["backward", "ortho", "forward"] = "backward") -> Tensor:
    """`fft` along each of `axes`, to the lengths `s`."""
@overload
def fftn(x: ArrayLike, s: int | Sequence[int] | None = ..., *, dim: int | Sequence[int] | None = ..., norm: Literal["backward", "ortho", "forward"] = ...) -> Tensor: ...
@overload
def fftshift(x: ArrayLike, axes: int | Sequence[int] | None = None) -> Tensor:
    """Moves frequency 0 to the middle of `axes` (all by default)."""
@overload
def fftshift(x: ArrayLike, *, dim: int | Sequence[int] | None = ...) -> Tensor: ...
def fit_polynomial(x: ArrayLike, y: ArrayLike, w: ArrayLike | None = None, *, deg: int, rcond: float | None = None) -> Tensor:
    """The coefficients, highest power first, of the polynomial of degree `deg` nearest to `y` at `x`, in the sum of squares, which weights `w` multiply before squaring."""
def flatten(x: ArrayLike, start_axis: int = 0, end_axis: int = -1) -> Tensor:
    """Merges the axes from `start_axis` to `end_axis`, both included, into one."""
ravel = flatten
@overload
def flip(x: ArrayLike, axis: int | Sequence[int] | None = None) -> Tensor:
    """Reverses the order of the elements along `axis`, along all axes when it is left out."""
@overload
def flip(x: ArrayLike, *, dim: int | Sequence[int] | None = ...) -> Tensor: ...
def fliplr(x: ArrayLike) -> Tensor:
    """Reverses axis 1."""
def flipud(x: ArrayLike) -> Tensor:
    """Reverses axis 0."""
def floor(x: ArrayLike) -> Tensor:
    """The largest whole number not above `x`."""
def floor_divide(x1: ArrayLike, x2: ArrayLike) -> Tensor:
    """The quotient rounded towards minus infinity."""
def fmod(x1: ArrayLike, x2: ArrayLike) -> Tensor:
    """What is left of `x1` after division by `x2` rounded towards zero; it has the sign of `x1`."""
def full(shape: int | Sequence[int], fill_value: _complex, dtype: DTypeLike | None = None, *, device: str | Device | None = None, requires_grad: _bool = False) -> Tensor:
    """`fill_value` everywhere."""
def full_like(x: ArrayLike, fill_value: ArrayLike, dtype: DTypeLike | None = None, *, device: str | Device | None = None, requires_grad: _bool = False) -> Tensor:
    """`fill_value`, a number or a tensor that broadcasts, with the shape of `x` and its element type unless `dtype` is given."""
@overload
def gather(x: ArrayLike, indices: Sequence[ArrayLike], axes: int | Sequence[int], batch_dims: int = 0, outside: Literal["check", "clamp", "drop", "check_clamp", "check_drop"] = "check") -> Tensor:
    """Elements of `x` at `indices`, one integer tensor for each of `axes`, which broadcast together; their axes stand in the place of the first indexed axis, axes not indexed stay."""
@overload
def gather(x: ArrayLike, dim: int, index: ArrayLike) -> Tensor: ...
def gather_mm(x1: ArrayLike, x2: ArrayLike, lhs_indices: ArrayLike | None = None, rhs_indices: ArrayLike | None = None) -> Tensor:
    """Products of chosen matrices: `x1[lhs_indices] @ x2[rhs_indices]`, where indices count the matrices of an operand in row-major order of its leading axes."""
def gaussian_nll_loss(inputs: ArrayLike, targets: ArrayLike, vars: ArrayLike, full: _bool = False, eps: float = 1e-06, reduction: Literal["none", "mean", "sum"] = "mean") -> Tensor:
    """Minus the log density of `targets` for normal variables with means `inputs`."""
def gcd(x1: ArrayLike, x2: ArrayLike) -> Tensor:
    """The greatest common divisor of the magnitudes of two integers; 0 of two zeros."""
def gelu(x: ArrayLike) -> Tensor:
    """`x` times the normal distribution function of `x`: `x * erfc(-x / sqrt(2)) / 2`."""
def gelu_fast_approx(x: ArrayLike) -> Tensor:
    """`x * sigmoid(1.702 x)`, a rough approximation of `gelu`."""
def gelu_tanh(x: ArrayLike) -> Tensor:
    """The approximation of `gelu` by tanh: `x * (1 + tanh(sqrt(2/pi) * (x + 0.044715 x**3))) / 2`."""
gelu_approx = gelu_tanh
def geomspace(start: _complex, stop: _complex, num: int = 50, endpoint: _bool = True, dtype: DTypeLike = "float32", *, device: str | Device | None = None, requires_grad: _bool = False) -> Tensor:
    """`num` numbers from `start` to `stop`, each the same multiple of the one before."""
@overload
def glu(x: ArrayLike, axis: int = -1) -> Tensor:
    """`a * sigmoid(b)`, where `a` and `b` are the halves of `x` along `axis`."""
@overload
def glu(x: ArrayLike, *, dim: int = ...) -> Tensor: ...
def greater(x1: ArrayLike, x2: ArrayLike) -> Tensor:
    """Whether `x1 > x2`; false where either is NaN."""
gt = greater
def greater_equal(x1: ArrayLike, x2: ArrayLike) -> Tensor:
    """Whether `x1 >= x2`; false where either is NaN."""
ge = greater_equal
@overload
def group_norm(x: ArrayLike, weight: ArrayLike | None = None, bias: ArrayLike | None = None, *, num_groups: int, eps: float = 1e-05, axis: int = -1) -> Tensor:
    """Normalises each index of axis 0 and each of `num_groups` runs of channels over everything else: `(x - mean) / sqrt(var + eps) * weight + bias`, with one weight and bias per index of `axis`, the channels."""
@overload
def group_norm(x: ArrayLike, weight: ArrayLike | None = ..., bias: ArrayLike | None = ..., *, num_groups: int, eps: float = ..., dim: int = ...) -> Tensor: ...
def hard_shrink(x: ArrayLike, lambd: float = 0.5) -> Tensor:
    """`x` where its magnitude exceeds `lambd`, else 0."""
def hard_tanh(x: ArrayLike, min_val: float = -1.0, max_val: float = 1.0) -> Tensor:
    """`x` limited to [`min_val`, `max_val`]; NaN stays NaN."""
hardtanh = hard_tanh
def hardswish(x: ArrayLike) -> Tensor:
    """`x * relu6(x + 3) / 6`."""
@overload
def hfft(x: ArrayLike, n: int | None = None, axis: int = -1, norm: Literal["backward", "ortho", "forward"] = "backward") -> Tensor:
    """The real `fft` of `n` numbers whose second half mirrors the first as conjugates; `x` holds the first `n // 2 + 1`."""
@overload
def hfft(x: ArrayLike, n: int | None = ..., *, dim: int = ..., norm: Literal["backward", "ortho", "forward"] = ...) -> Tensor: ...
def hinge_loss(inputs: ArrayLike, targets: ArrayLike, reduction: Literal["none", "mean", "sum"] = "none") -> Tensor:
    """`max(0, 1 - inputs * targets)`, with targets -1 and 1."""
def hstack(arrays: Sequence[ArrayLike]) -> Tensor:
    """Joins tensors side by side: along axis 1, those of one axis along axis 0."""
def huber_loss(inputs: ArrayLike, targets: ArrayLike, delta: float = 1.0, reduction: Literal["none", "mean", "sum"] = "none") -> Tensor:
    """Half the squared difference up to `delta`, and from there on along its tangent."""
def hypot(x1: ArrayLike, x2: ArrayLike) -> Tensor:
    """`sqrt(x1**2 + x2**2)` without overflow on the way."""
def identity(n: int, dtype: DTypeLike = "float32", *, device: str | Device | None = None, requires_grad: _bool = False) -> Tensor:
    """The identity matrix with `n` rows."""
@overload
def ifft(x: ArrayLike, n: int | None = None, axis: int = -1, norm: Literal["backward", "ortho", "forward"] = "backward") -> Tensor:
    """The inverse of `fft`, for equal `n`, `axis` and `norm`."""
@overload
def ifft(x: ArrayLike, n: int | None = ..., *, dim: int = ..., norm: Literal["backward", "ortho", "forward"] = ...) -> Tensor: ...
@overload
def ifft2(x: ArrayLike, s: int | Sequence[int] | None = None, axes: int | Sequence[int] | None = None, norm: Literal["backward", "ortho", "forward"] = "backward") -> Tensor:
    """The inverse of `fft2`, for equal `s`, `axes` and `norm`."""
@overload
def ifft2(x: ArrayLike, s: int | Sequence[int] | None = ..., *, dim: int | Sequence[int] | None = ..., norm: Literal["backward", "ortho", "forward"] = ...) -> Tensor: ...
@overload
def ifftn(x: ArrayLike, s: int | Sequence[int] | None = None, axes: int | Sequence[int] | None = None, norm: Literal["backward", "ortho", "forward"] = "backward") -> Tensor:
    """The inverse of `fftn`, for equal `s`, `axes` and `norm`."""
@overload
def ifftn(x: ArrayLike, s: int | Sequence[int] | None = ..., *, dim: int | Sequence[int] | None = ..., norm: Literal["backward", "ortho", "forward"] = ...) -> Tensor: ...
@overload
def ifftshift(x: ArrayLike, axes: int | Sequence[int] | None = None) -> Tensor:
    """The inverse of `fftshift`."""
@overload
def ifftshift(x: ArrayLike, *, dim: int | Sequence[int] | None = ...) -> Tensor: ...
@overload
def ihfft(x: ArrayLike, n: int | None = None, axis: int = -1, norm: Literal["backward", "ortho", "forward"] = "backward") -> Tensor:
    """The inverse of `hfft`: the first `n // 2 + 1` numbers of the `ifft` of reals."""
@overload
def ihfft(x: ArrayLike, n: int | None = ..., *, dim: int = ..., norm: Literal["backward", "ortho", "forward"] = ...) -> Tensor: ...
def imag(x: ArrayLike) -> Tensor:
    """The imaginary part; 0 for real numbers."""
@overload
def index_select(x: ArrayLike, axis: int, indices: ArrayLike) -> Tensor:
    """`take(x, indices, axis)` of indices with at most one axis."""
@overload
def index_select(x: ArrayLike, *, dim: int, indices: ArrayLike) -> Tensor: ...
def inner(x1: ArrayLike, x2: ArrayLike) -> Tensor:
    """Sums products over the last axes of both operands; scalars multiply."""
@overload
def insert_elements(x: ArrayLike, indices: ArrayLike, values: ArrayLike, axis: int | None = None) -> Tensor:
    """`x` with `values` before the elements at `indices` along `axis`; without it `x` is flattened first."""
@overload
def insert_elements(x: ArrayLike, indices: ArrayLike, values: ArrayLike, *, dim: int | None = ...) -> Tensor: ...
def interp(x: ArrayLike, xp: ArrayLike, fp: ArrayLike, left: ArrayLike | None = None, right: ArrayLike | None = None, period: float | None = None) -> Tensor:
    """The function with the values `fp` at the ascending points `xp`, straight in between, at `x`."""
def interpolate(x: ArrayLike, size: int | Sequence[int] | None = None, scale_factor: float | None = None, mode: Literal["nearest", "linear", "cubic"] = "nearest", align_corners: _bool = False, channels_last: _bool = False) -> Tensor:
    """Resizes the spatial axes of `x`, [batch, channels, spatial axes ...], to `size` (one number for all, or one each) or by `scale_factor`."""
def inv(x: ArrayLike) -> Tensor:
    """The inverse matrix."""
@overload
def iota(shape: int | Sequence[int], axis: int = 0, dtype: DTypeLike = "int64", *, device: str | Device | None = None, requires_grad: _bool = False) -> Tensor:
    """The coordinate of every element along `axis`: 0, 1, 2 and so on."""
@overload
def iota(shape: int | Sequence[int], *, dim: int = ..., dtype: DTypeLike = ..., device: str | Device | None = None, requires_grad: _bool = False) -> Tensor: ...
@overload
def irfft(x: ArrayLike, n: int | None = None, axis: int = -1, norm: Literal["backward", "ortho", "forward"] = "backward") -> Tensor:
    """The inverse of `rfft`: `n` reals from the first `n // 2 + 1` numbers of their transform."""
@overload
def irfft(x: ArrayLike, n: int | None = ..., *, dim: int = ..., norm: Literal["backward", "ortho", "forward"] = ...) -> Tensor: ...
@overload
def irfft2(x: ArrayLike, s: int | Sequence[int] | None = None, axes: int | Sequence[int] | None = None, norm: Literal["backward", "ortho", "forward"] = "backward") -> Tensor:
    """The inverse of `rfft2`, for equal `s`, `axes` and `norm`."""
@overload
def irfft2(x: ArrayLike, s: int | Sequence[int] | None = ..., *, dim: int | Sequence[int] | None = ..., norm: Literal["backward", "ortho", "forward"] = ...) -> Tensor: ...
@overload
def irfftn(x: ArrayLike, s: int | Sequence[int] | None = None, axes: int | Sequence[int] | None = None, norm: Literal["backward", "ortho", "forward"] = "backward") -> Tensor:
    """The inverse of `rfftn`: `ifft` along all but the last of `axes`, then `irfft` along it."""
@overload
def irfftn(x: ArrayLike, s: int | Sequence[int] | None = ..., *, dim: int | Sequence[int] | None = ..., norm: Literal["backward", "ortho", "forward"] = ...) -> Tensor: ...
def isclose(x1: ArrayLike, x2: ArrayLike, rtol: float = 1e-05, atol: float = 1e-08, equal_nan: _bool = False) -> Tensor:
    """Whether `abs(x1 - x2) <= atol + rtol * abs(x2)`, or both are the same infinity."""
def isfinite(x: ArrayLike) -> Tensor:
    """Whether the number is neither NaN nor an infinity, in both parts."""
def isin(x1: ArrayLike, x2: ArrayLike, invert: _bool = False) -> Tensor:
    """Whether each element of `x1` is among those of `x2`, or is not when `invert` is set."""
def isinf(x: ArrayLike) -> Tensor:
    """Whether the number is an infinity, or a part of it is."""
def isnan(x: ArrayLike) -> Tensor:
    """Whether the number is NaN, or a part of it is."""
def isneginf(x: ArrayLike) -> Tensor:
    """Whether the number is minus infinity."""
def isposinf(x: ArrayLike) -> Tensor:
    """Whether the number is plus infinity."""
@overload
def kl_div_loss(inputs: ArrayLike, targets: ArrayLike, axis: int = -1, reduction: Literal["none", "mean", "sum"] = "none") -> Tensor:
    """How far `inputs` are from `targets`, both log probabilities along `axis`: `sum(exp(targets) * (targets - inputs))`."""
@overload
def kl_div_loss(inputs: ArrayLike, targets: ArrayLike, *, dim: int = ..., reduction: Literal["none", "mean", "sum"] = ...) -> Tensor: ...
def kron(x1: ArrayLike, x2: ArrayLike) -> Tensor:
    """The Kronecker product: every element of `x1` replaced by its product with `x2`."""
def l1_loss(predictions: ArrayLike, targets: ArrayLike, reduction: Literal["none", "mean", "sum"] = "mean") -> Tensor:
    """The absolute differences."""
def layer_norm(x: ArrayLike, weight: ArrayLike | None = None, bias: ArrayLike | None = None, eps: float = 1e-05, normalized_axes: int = 1) -> Tensor:
    """`(x - mean) / sqrt(var + eps) * weight + bias` over the last `normalized_axes` axes, whose shape `weight` and `bias` have."""
def lcm(x1: ArrayLike, x2: ArrayLike) -> Tensor:
    """The least common multiple of the magnitudes of two integers; 0 where one of them is."""
def leaky_relu(x: ArrayLike, negative_slope: float = 0.01) -> Tensor:
    """`x`, times `negative_slope` where it is negative."""
def lerp(x: ArrayLike, end: ArrayLike, weight: ArrayLike) -> Tensor:
    """`x + weight * (end - x)`: `x` for a weight of 0, `end` for 1."""
def less(x1: ArrayLike, x2: ArrayLike) -> Tensor:
    """Whether `x1 < x2`; false where either is NaN."""
lt = less
def less_equal(x1: ArrayLike, x2: ArrayLike) -> Tensor:
    """Whether `x1 <= x2`; false where either is NaN."""
le = less_equal
def lgamma(x: ArrayLike) -> Tensor:
    """The logarithm of the absolute value of the gamma function."""
def linear(x: ArrayLike, weight: ArrayLike, bias: ArrayLike | None = None) -> Tensor:
    """`x @ weight.T + bias`: a layer whose `weight` is [out, in] and whose `bias` is [out]."""
def linspace(start: _complex, stop: _complex, num: int = 50, dtype: DTypeLike | None = None, endpoint: _bool = True, *, device: str | Device | None = None, requires_grad: _bool = False) -> Tensor:
    """`num` numbers at equal distances from `start` to `stop`, which is the last one if `endpoint`."""
def log(x: ArrayLike) -> Tensor:
    """The natural logarithm."""
def log10(x: ArrayLike) -> Tensor:
    """The logarithm to base 10."""
def log1p(x: ArrayLike) -> Tensor:
    """`log(1 + x)`, accurate near zero."""
def log2(x: ArrayLike) -> Tensor:
    """The logarithm to base 2."""
def log_cosh_loss(inputs: ArrayLike, targets: ArrayLike, reduction: Literal["none", "mean", "sum"] = "none") -> Tensor:
    """`log(cosh(inputs - targets))`: like half the square near 0, like the size far from it."""
def log_sigmoid(x: ArrayLike) -> Tensor:
    """`log(sigmoid(x))`, accurate where it is small and without overflow where it is large."""
@overload
def log_softmax(x: ArrayLike, axis: int | Sequence[int] | None = None) -> Tensor:
    """The logarithm of `softmax(x)` along `axis`, the last one when it is left out, without its overflow."""
@overload
def log_softmax(x: ArrayLike, *, dim: int | Sequence[int] | None = ...) -> Tensor: ...
def logaddexp(x1: ArrayLike, x2: ArrayLike) -> Tensor:
    """`log(exp(x1) + exp(x2))` without overflow."""
@overload
def logcumsumexp(x: ArrayLike, axis: int | None = None) -> Tensor:
    """Logarithm of the running sum of exponentials along `axis`; of the flattened tensor when it is left out."""
@overload
def logcumsumexp(x: ArrayLike, *, dim: int | None = ...) -> Tensor: ...
def logical_and(x1: ArrayLike, x2: ArrayLike) -> Tensor:
    """Whether both operands are true; numbers are true where they are not 0, NaN included."""
def logical_not(x: ArrayLike) -> Tensor:
    """Whether the operand is false; numbers are false where they are 0."""
def logical_or(x1: ArrayLike, x2: ArrayLike) -> Tensor:
    """Whether either operand is true; numbers are true where they are not 0, NaN included."""
def logical_xor(x1: ArrayLike, x2: ArrayLike) -> Tensor:
    """Whether exactly one operand is true; numbers are true where they are not 0, NaN included."""
def logspace(start: _complex, stop: _complex, num: int = 50, endpoint: _bool = True, base: float = 10.0, dtype: DTypeLike = "float32", *, device: str | Device | None = None, requires_grad: _bool = False) -> Tensor:
    """`base` to the powers `linspace(start, stop, num, endpoint=endpoint)`."""
@overload
def logsumexp(x: ArrayLike, axis: int | Sequence[int] | None = None, keepdims: _bool = False) -> Tensor:
    """`log(sum(exp(x)))` over `axis`, over all axes when it is left out, without overflow."""
@overload
def logsumexp(x: ArrayLike, *, dim: int | Sequence[int] | None = ..., keepdim: _bool = ...) -> Tensor: ...
def lstsq(x1: ArrayLike, x2: ArrayLike, rcond: float | None = None) -> _lstsq_result:
    """The least squares solution X of `x1` @ X = `x2`, the shortest of several: X, the sum of squares that each column leaves (none unless there are more equations than unknowns, nor where values are known and the rank is less), the rank of `x1` and its singular values."""
def lu_factor(x: ArrayLike) -> _lu_factor_result:
    """`x` with rows in the order of `permutation` is L·U: `lu` holds U on and above the diagonal, L below it, whose own diagonal is 1."""
def make_complex(re: ArrayLike, im: ArrayLike) -> Tensor:
    """The complex numbers `re + im * 1j` from their parts."""
complex = make_complex
def margin_ranking_loss(inputs1: ArrayLike, inputs2: ArrayLike, targets: ArrayLike, margin: float = 0.0, reduction: Literal["none", "mean", "sum"] = "none") -> Tensor:
    """`max(0, margin - targets * (inputs1 - inputs2))`."""
def matmul(x1: ArrayLike, x2: ArrayLike) -> Tensor:
    """Matrix product over the last axis of `x1` and the last but one of `x2`; leading axes broadcast."""
def matrix_norm(x: ArrayLike, keepdims: _bool = False, ord: Literal["fro", "nuc", "1", "-1", "2", "-2", "inf", "-inf"] = "fro") -> Tensor:
    """The norm of matrices: the root of the sum of squares (`fro`), the sum (`nuc`), the largest (`2`) or the smallest (`-2`) of the singular values, the largest or smallest sum of magnitudes of a column (`1`, `-1`) or a row (`inf`, `-inf`)."""
def matrix_power(x: ArrayLike, n: int) -> Tensor:
    """The product of `n` matrices `x`; of its inverses when `n` is negative."""
def matrix_rank(x: ArrayLike, rtol: float | None = None) -> Tensor:
    """The number of singular values above `rtol` times the largest."""
def matrix_solve(x1: ArrayLike, x2: ArrayLike, transpose: _bool = False) -> Tensor:
    """The matrix X with `x1` @ X = `x2`, or `x1.mT` @ X = `x2` when `transpose`; leading axes broadcast."""
def matrix_transpose(x: ArrayLike) -> Tensor:
    """Exchanges the last two axes."""
@overload
def max(x: ArrayLike, axis: int | Sequence[int] | None = None, keepdims: _bool = False) -> Tensor:
    """Largest element over `axis`, over all axes when it is left out."""
@overload
def max(x: ArrayLike, *, dim: int, keepdim: _bool = ...) -> _max_along_dim_result: ...
def max_pool(x: ArrayLike, kernel_size: int | Sequence[int], stride: int | Sequence[int] | None = None, padding: int | Sequence[int] = (0,), dilation: int | Sequence[int] = (1,), channels_last: _bool = False) -> Tensor:
    """Largest element of each window over the 1 to 3 spatial axes of `x`, [batch, channels, spatial axes ...]; NaN if any is NaN."""
def maximum(x1: ArrayLike, x2: ArrayLike) -> Tensor:
    """The larger operand; NaN where either is NaN."""
@overload
def mean(x: ArrayLike, axis: int | Sequence[int] | None = None, keepdims: _bool = False) -> Tensor:
    """Arithmetic mean over `axis`, over all axes when it is left out."""
@overload
def mean(x: ArrayLike, *, dim: int | Sequence[int] | None = ..., keepdim: _bool = ...) -> Tensor: ...
@overload
def median(x: ArrayLike, axis: int | Sequence[int] | None = None, keepdims: _bool = False) -> Tensor:
    """The middle element over `axis` in sorted order, the mean of the two middle ones for an even number."""
@overload
def median(x: ArrayLike, *, dim: int, keepdim: _bool = ...) -> _median_along_dim_result: ...
def meshgrid(arrays: Sequence[ArrayLike], indexing: Literal["xy", "ij"] = "xy") -> tuple[Tensor, ...]:
    """Each operand spread over the grid of all of them: operand i varies along axis i, except that `xy` indexing swaps the first two."""
@overload
def min(x: ArrayLike, axis: int | Sequence[int] | None = None, keepdims: _bool = False) -> Tensor:
    """Smallest element over `axis`, over all axes when it is left out."""
@overload
def min(x: ArrayLike, *, dim: int, keepdim: _bool = ...) -> _min_along_dim_result: ...
def minimum(x1: ArrayLike, x2: ArrayLike) -> Tensor:
    """The smaller operand; NaN where either is NaN."""
def mish(x: ArrayLike) -> Tensor:
    """`x * tanh(softplus(x))`."""
def moveaxis(x: ArrayLike, source: int | Sequence[int], destination: int | Sequence[int]) -> Tensor:
    """Moves the axes `source` to the places `destination`; the others keep their order."""
movedim = moveaxis
def mse_loss(predictions: ArrayLike, targets: ArrayLike, reduction: Literal["none", "mean", "sum"] = "mean") -> Tensor:
    """The squared differences."""
def multi_dot(arrays: Sequence[ArrayLike]) -> Tensor:
    """The product of two or more matrices, multiplied in the order that takes the fewest operations."""
def multiply(x1: ArrayLike, x2: ArrayLike) -> Tensor:
    """The product `x1 * x2`."""
mul = multiply
def nan_to_num(x: ArrayLike, nan: float = 0.0, posinf: float | None = None, neginf: float | None = None) -> Tensor:
    """`x` with NaN replaced by `nan`, infinities by `posinf` and `neginf`, which default to the largest and smallest number of the type."""
@overload
def nanmax(x: ArrayLike, axis: int | Sequence[int] | None = None, keepdims: _bool = False) -> Tensor:
    """The largest element over `axis` that is not NaN; NaN where all are."""
@overload
def nanmax(x: ArrayLike, *, dim: int | Sequence[int] | None = ..., keepdim: _bool = ...) -> Tensor: ...
@overload
def nanmean(x: ArrayLike, axis: int | Sequence[int] | None = None, keepdims: _bool = False) -> Tensor:
    """The mean over `axis` of the elements that are not NaN; NaN where all are."""
@overload
def nanmean(x: ArrayLike, *, dim: int | Sequence[int] | None = ..., keepdim: _bool = ...) -> Tensor: ...
@overload
def nanmin(x: ArrayLike, axis: int | Sequence[int] | None = None, keepdims: _bool = False) -> Tensor:
    """The smallest element over `axis` that is not NaN; NaN where all are."""
@overload
def nanmin(x: ArrayLike, *, dim: int | Sequence[int] | None = ..., keepdim: _bool = ...) -> Tensor: ...
@overload
def nanprod(x: ArrayLike, axis: int | Sequence[int] | None = None, dtype: DTypeLike | None = None, keepdims: _bool = False) -> Tensor:
    """`prod` with NaN as 1."""
@overload
def nanprod(x: ArrayLike, *, dim: int | Sequence[int] | None = ..., dtype: DTypeLike | None = ..., keepdim: _bool = ...) -> Tensor: ...
@overload
def nanstd(x: ArrayLike, axis: int | Sequence[int] | None = None, correction: float = 0.0, keepdims: _bool = False) -> Tensor:
    """The square root of `nanvar`."""
@overload
def nanstd(x: ArrayLike, *, dim: int | Sequence[int] | None = ..., correction: float = ..., keepdim: _bool = ...) -> Tensor: ...
@overload
def nansum(x: ArrayLike, axis: int | Sequence[int] | None = None, dtype: DTypeLike | None = None, keepdims: _bool = False) -> Tensor:
    """`sum` with NaN as 0."""
@overload
def nansum(x: ArrayLike, *, dim: int | Sequence[int] | None = ..., dtype: DTypeLike | None = ..., keepdim: _bool = ...) -> Tensor: ...
@overload
def nanvar(x: ArrayLike, axis: int | Sequence[int] | None = None, correction: float = 0.0, keepdims: _bool = False) -> Tensor:
    """`var` over `axis` of the elements that are not NaN."""
@overload
def nanvar(x: ArrayLike, *, dim: int | Sequence[int] | None = ..., correction: float = ..., keepdim: _bool = ...) -> Tensor: ...
@overload
def narrow(x: ArrayLike, axis: int, start: int | Sequence[int], length: int) -> Tensor:
    """The `length` elements of `axis` from `start` on, which counts from the end when it is negative."""
@overload
def narrow(x: ArrayLike, *, dim: int, start: int | Sequence[int], length: int) -> Tensor: ...
def negative(x: ArrayLike) -> Tensor:
    """The number with its sign changed."""
neg = negative
def nextafter(x1: ArrayLike, x2: ArrayLike) -> Tensor:
    """The next number after `x1` towards `x2` that its type can hold; `x2` where they are equal, NaN where either is."""
@overload
def nll_loss(inputs: ArrayLike, targets: ArrayLike, axis: int = -1, reduction: Literal["none", "mean", "sum"] = "none", ignore_index: int | None = None) -> Tensor:
    """Minus the log probability, in `inputs`, of the target classes, which are without `axis`."""
@overload
def nll_loss(inputs: ArrayLike, targets: ArrayLike, *, dim: int = ..., reduction: Literal["none", "mean", "sum"] = ..., ignore_index: int | None = ...) -> Tensor: ...
def nonzero(x: ArrayLike) -> tuple[Tensor, ...]:
    """The positions of the elements that are not 0, in row-major order: one int64 tensor per axis."""
def not_equal(x1: ArrayLike, x2: ArrayLike) -> Tensor:
    """Whether the operands differ."""
ne = not_equal
def one_hot(x: ArrayLike, num_classes: int, dtype: DTypeLike = "float32") -> Tensor:
    """A new last axis of `num_classes` that is 1 at the index in `x` and 0 elsewhere; all 0 when the index is out of bounds, as -1 for no class."""
def ones(shape: int | Sequence[int], dtype: DTypeLike = "float32", *, device: str | Device | None = None, requires_grad: _bool = False) -> Tensor:
    """One everywhere."""
def ones_like(x: ArrayLike, dtype: DTypeLike | None = None, *, device: str | Device | None = None, requires_grad: _bool = False) -> Tensor:
    """One everywhere, with the shape of `x` and its element type unless `dtype` is given."""
def outer(x1: ArrayLike, x2: ArrayLike) -> Tensor:
    """The product of every element of `x1` with every element of `x2`, both read in row-major order."""
def pad(x: ArrayLike, pad_width: int | Sequence[int], mode: Literal["constant", "edge", "reflect", "wrap"] = "constant", constant_values: _complex = 0) -> Tensor:
    """Adds elements before and after each axis: `pad_width` is one number for all sides, (before, after) for all axes, or one such pair for each axis."""
def pad_with(x: ArrayLike, value: ArrayLike, pad_width: int | Sequence[int], mode: Literal["constant", "edge", "reflect", "wrap"] = "constant") -> Tensor:
    """As `pad`, with the value of the new elements as a 0-d tensor."""
@overload
def partition(x: ArrayLike, kth: int, axis: int = -1) -> Tensor:
    """The elements along `axis` reordered so that number `kth` stands where sorting puts it, smaller or equal ones before it and larger or equal ones after it."""
@overload
def partition(x: ArrayLike, kth: int, *, dim: int = ...) -> Tensor: ...
@overload
def percentile(x: ArrayLike, q: ArrayLike, axis: int | Sequence[int] | None = None, keepdims: _bool = False, method: Literal["linear", "lower", "higher", "midpoint", "nearest"] = "linear") -> Tensor:
    """`quantile` of shares in percent: `q` lies in [0, 100]."""
@overload
def percentile(x: ArrayLike, q: ArrayLike, *, dim: int | Sequence[int] | None = ..., keepdim: _bool = ..., method: Literal["linear", "lower", "higher", "midpoint", "nearest"] = ...) -> Tensor: ...
@overload
def permute_dims(x: ArrayLike, axes: Sequence[int] | None = None) -> Tensor:
    """The axes in another order: axis k of the result is axis `axes[k]` of `x`."""
@overload
def permute_dims(x: ArrayLike, *, dim: Sequence[int] | None = ...) -> Tensor: ...
transpose = permute_dims
permute = permute_dims
def pinv(x: ArrayLike, rtol: float | None = None) -> Tensor:
    """The pseudoinverse, by singular values: those not above `rtol` times the largest count as 0."""
def pixel_shuffle(x: ArrayLike, upscale_factor: int, channels_last: _bool = False) -> Tensor:
    """Images [..., c * r**2, h, w] as [..., c, h * r, w * r], r being the `upscale_factor`: the channels become r by r pixels."""
def pixel_unshuffle(x: ArrayLike, downscale_factor: int, channels_last: _bool = False) -> Tensor:
    """The inverse of `pixel_shuffle`: [..., c, h * r, w * r] as [..., c * r**2, h, w]."""
def polygamma(x: ArrayLike, order: int = 0) -> Tensor:
    """The derivative of `digamma` of an order in [0, 30]; order 0 is `digamma` itself."""
def polyval(p: ArrayLike, x: ArrayLike) -> Tensor:
    """The polynomial with the coefficients `p`, highest power first, at `x`."""
def positive(x: ArrayLike) -> Tensor:
    """The number itself."""
def pow(x1: ArrayLike, x2: ArrayLike) -> Tensor:
    """`x1` to the power `x2`."""
power = pow
def prelu(x: ArrayLike, weight: ArrayLike) -> Tensor:
    """`x`, multiplied by `weight` where it is negative."""
@overload
def prod(x: ArrayLike, axis: int | Sequence[int] | None = None, dtype: DTypeLike | None = None, keepdims: _bool = False) -> Tensor:
    """Product over `axis`, over all axes when it is left out."""
@overload
def prod(x: ArrayLike, *, dim: int | Sequence[int] | None = ..., dtype: DTypeLike | None = ..., keepdim: _bool = ...) -> Tensor: ...
@overload
def put_along_axis(x: ArrayLike, indices: ArrayLike, values: ArrayLike, axis: int = -1, mode: Literal["set", "add", "mul", "max", "min"] = "set") -> Tensor:
    """`x` with the elements that `take_along_axis` reads replaced by `values`, or combined with them by `mode`."""
@overload
def put_along_axis(x: ArrayLike, indices: ArrayLike, values: ArrayLike, *, dim: int = ..., mode: Literal["set", "add", "mul", "max", "min"] = ...) -> Tensor: ...
def qr(x: ArrayLike, mode: Literal["reduced", "complete"] = "reduced") -> _qr_result:
    """The factors of `x` = Q @ R: Q has orthonormal columns, R zeros below the diagonal."""
@overload
def quantile(x: ArrayLike, q: ArrayLike, axis: int | Sequence[int] | None = None, keepdims: _bool = False, method: Literal["linear", "lower", "higher", "midpoint", "nearest"] = "linear") -> Tensor:
    """The element below which a share `q` of the elements over `axis` lies."""
@overload
def quantile(x: ArrayLike, q: ArrayLike, *, dim: int | Sequence[int] | None = ..., keepdim: _bool = ..., method: Literal["linear", "lower", "higher", "midpoint", "nearest"] = ...) -> Tensor: ...
def radians(x: ArrayLike) -> Tensor:
    """Degrees as radians: `x * pi / 180`."""
deg2rad = radians
def random_bernoulli(key: ArrayLike, p: ArrayLike, shape: int | Sequence[int] | None = None) -> Tensor:
    """true with probability `p`, which broadcasts to `shape`; its own shape by default."""
def random_bits(key: ArrayLike, shape: int | Sequence[int] = (), dtype: DTypeLike = "uint32", *, device: str | Device | None = None, requires_grad: _bool = False) -> Tensor:
    """Random bits of an unsigned type from a key of two words (uint32): Threefry-2x32 of the key and of the row-major position in `shape`, the two words joined for uint64, their exclusive or for narrower types."""
@overload
def random_categorical(key: ArrayLike, logits: ArrayLike, axis: int = -1, shape: int | Sequence[int] | None = None, num_samples: int | None = None) -> Tensor:
    """Classes, as int64, drawn with the probabilities softmax(`logits`) along `axis`."""
@overload
def random_categorical(key: ArrayLike, logits: ArrayLike, *, dim: int = ..., shape: int | Sequence[int] | None = ..., num_samples: int | None = ...) -> Tensor: ...
@overload
def random_choice(key: ArrayLike, x: ArrayLike, p: ArrayLike | None = None, shape: int | Sequence[int] = (), replace: _bool = True, axis: int = 0) -> Tensor:
    """Elements drawn from `x` along `axis`, with the probabilities `p` if given; of a number n, from the numbers below it."""
@overload
def random_choice(key: ArrayLike, x: ArrayLike, p: ArrayLike | None = ..., shape: int | Sequence[int] = ..., replace: _bool = ..., *, dim: int = ...) -> Tensor: ...
def random_exponential(key: ArrayLike, scale: ArrayLike, shape: int | Sequence[int] = (), dtype: DTypeLike = "float32", *, device: str | Device | None = None, requires_grad: _bool = False) -> Tensor:
    """Numbers of the exponential distribution of mean `scale`, which broadcasts to `shape`."""
def random_fold_in(key: ArrayLike, data: ArrayLike) -> Tensor:
    """A new key for each of the integers `data`, which are taken modulo 2**32: a stream of keys by number."""
def random_gamma(key: ArrayLike, a: ArrayLike, shape: int | Sequence[int] | None = None, dtype: DTypeLike = "float32", *, device: str | Device | None = None, requires_grad: _bool = False) -> Tensor:
    """Numbers of the gamma distribution with parameter `a` and scale 1, float32 or float64."""
def random_gumbel(key: ArrayLike, shape: int | Sequence[int] = (), dtype: DTypeLike = "float32", *, device: str | Device | None = None, requires_grad: _bool = False) -> Tensor:
    """Numbers of the standard Gumbel distribution: -log(-log(u)) of uniform ones."""
def random_key(seed: ArrayLike) -> Tensor:
    """The key of an integer: its upper and lower 32 bits as uint32[2]."""
def random_laplace(key: ArrayLike, loc: ArrayLike, scale: ArrayLike, shape: int | Sequence[int] = (), dtype: DTypeLike = "float32", *, device: str | Device | None = None, requires_grad: _bool = False) -> Tensor:
    """Numbers of the Laplace distribution around `loc`, of mean distance `scale`; both broadcast to `shape`."""
def random_multinomial(key: ArrayLike, weights: ArrayLike, num_samples: int, replacement: _bool = False) -> Tensor:
    """`num_samples` classes, as int64, drawn with probabilities in proportion to `weights`, along their last axis; each at most once unless there is `replacement`."""
def random_multivariate_normal(key: ArrayLike, mean: ArrayLike, cov: ArrayLike, shape: int | Sequence[int] | None = None, dtype: DTypeLike = "float32", *, device: str | Device | None = None, requires_grad: _bool = False) -> Tensor:
    """Normal vectors of mean `mean` [..., n] and covariance `cov` [..., n, n], which is positive definite; `shape` is that of the leading axes, by default those of both."""
def random_normal(key: ArrayLike, loc: ArrayLike, scale: ArrayLike, shape: int | Sequence[int] = (), dtype: DTypeLike = "float32", *, device: str | Device | None = None, requires_grad: _bool = False) -> Tensor:
    """Normal numbers of mean `loc` and standard deviation `scale`, which broadcast to `shape`."""
@overload
def random_permutation(key: ArrayLike, x: ArrayLike, axis: int = 0, independent: _bool = False) -> Tensor:
    """`x` in random order along `axis`, or every line along it in its own if `independent`."""
@overload
def random_permutation(key: ArrayLike, x: ArrayLike, *, dim: int = ..., independent: _bool = ...) -> Tensor: ...
def random_poisson(key: ArrayLike, lam: ArrayLike, shape: int | Sequence[int] | None = None, dtype: DTypeLike = "int64", *, device: str | Device | None = None, requires_grad: _bool = False) -> Tensor:
    """Counts of the Poisson distribution with rate `lam`, int32 or int64."""
def random_randint(key: ArrayLike, low: ArrayLike, high: ArrayLike, shape: int | Sequence[int] = (), dtype: DTypeLike = "int64", *, device: str | Device | None = None, requires_grad: _bool = False) -> Tensor:
    """Integers from `low` on and below `high`, which broadcast to `shape`."""
def random_split(key: ArrayLike, num: int | Sequence[int]) -> Tensor:
    """`num` new keys (a number or a shape) from one: [num, 2]."""
def random_truncated_normal(key: ArrayLike, lower: ArrayLike, upper: ArrayLike, shape: int | Sequence[int] | None = None, dtype: DTypeLike = "float32", *, device: str | Device | None = None, requires_grad: _bool = False) -> Tensor:
    """Standard normal numbers given that they lie between `lower` and `upper`, which broadcast to `shape`, by default to each other; never the bounds themselves."""
def random_uniform(key: ArrayLike, low: ArrayLike, high: ArrayLike, shape: int | Sequence[int] = (), dtype: DTypeLike = "float32", *, device: str | Device | None = None, requires_grad: _bool = False) -> Tensor:
    """Uniform numbers from `low` on and below `high`, which broadcast to `shape`."""
def real(x: ArrayLike) -> Tensor:
    """The real part; real numbers stay as they are."""
def reciprocal(x: ArrayLike) -> Tensor:
    """`1 / x`, in float32 for booleans and integers."""
def relu(x: ArrayLike) -> Tensor:
    """`maximum(x, 0)`; NaN stays NaN."""
def relu2(x: ArrayLike) -> Tensor:
    """`relu(x)` squared."""
def relu6(x: ArrayLike) -> Tensor:
    """`x` limited to [0, 6]; NaN stays NaN."""
def remainder(x1: ArrayLike, x2: ArrayLike) -> Tensor:
    """What is left of `x1` after floor division by `x2`; it has the sign of `x2`."""
mod = remainder
@overload
def repeat(x: ArrayLike, repeats: ArrayLike, axis: int | None = None) -> Tensor:
    """Repeats each element `repeats` times along `axis`; of the flattened tensor when it is left out."""
@overload
def repeat(x: ArrayLike, repeats: ArrayLike, *, dim: int | None = ...) -> Tensor: ...
repeat_interleave = repeat
def reshape(x: ArrayLike, shape: int | Sequence[int]) -> Tensor:
    """The same elements in row-major order under another shape."""
view = reshape
@overload
def rfft(x: ArrayLike, n: int | None = None, axis: int = -1, norm: Literal["backward", "ortho", "forward"] = "backward") -> Tensor:
    """`fft` of reals: the first `n // 2 + 1` numbers, of which the rest are the conjugates."""
@overload
def rfft(x: ArrayLike, n: int | None = ..., *, dim: int = ..., norm: Literal["backward", "ortho", "forward"] = ...) -> Tensor: ...
@overload
def rfft2(x: ArrayLike, s: int | Sequence[int] | None = None, axes: int | Sequence[int] | None = None, norm: Literal["backward", "ortho", "forward"] = "backward") -> Tensor:
    """`rfftn` along the last two axes, unless `axes` are given."""
@overload
def rfft2(x: ArrayLike, s: int | Sequence[int] | None = ..., *, dim: int | Sequence[int] | None = ..., norm: Literal["backward", "ortho", "forward"] = ...) -> Tensor: ...
def rfftfreq(n: int, d: float = 1.0, dtype: DTypeLike = "float32", *, device: str | Device | None = None, requires_grad: _bool = False) -> Tensor:
    """The `n // 2 + 1` frequencies that `rfft` of `n` samples at distances `d` computes."""
@overload
def rfftn(x: ArrayLike, s: int | Sequence[int] | None = None, axes: int | Sequence[int] | None = None, norm: Literal["backward", "ortho", "forward"] = "backward") -> Tensor:
    """`rfft` along the last of `axes`, then `fft` along the others."""
@overload
def rfftn(x: ArrayLike, s: int | Sequence[int] | None = ..., *, dim: int | Sequence[int] | None = ..., norm: Literal["backward", "ortho", "forward"] = ...) -> Tensor: ...
def rms_norm(x: ArrayLike, weight: ArrayLike | None = None, eps: float = 1e-05) -> Tensor:
    """`x / sqrt(mean(x * x) + eps) * weight` over the last axis, whose size `weight` has."""
@overload
def roll(x: ArrayLike, shift: int | Sequence[int], axis: int | Sequence[int] | None = None) -> Tensor:
    """Shifts elements along `axis` by `shift` places; those that leave at the end come back at the start."""
@overload
def roll(x: ArrayLike, shift: int | Sequence[int], *, dim: int | Sequence[int] | None = ...) -> Tensor: ...
def rope(x: ArrayLike, dims: int, base: float = 10000.0, traditional: _bool = False, scale: float = 1.0, offset: int = 0) -> Tensor:
    """Rotary positions: turns pairs of the first `dims` features (last axis) at position p (last axis but one) by `(p + offset) * scale * base ** (-2 i / dims)` for pair i."""
@overload
def rot90(x: ArrayLike, k: int = 1, axes: int | Sequence[int] | None = None) -> Tensor:
    """Turns the plane of `axes` (0 and 1 by default) by `k` quarters, from the first axis towards the second."""
@overload
def rot90(x: ArrayLike, k: int = ..., *, dim: int | Sequence[int] | None = ...) -> Tensor: ...
def round(x: ArrayLike, decimals: int = 0) -> Tensor:
    """The nearest whole number, or the nearest number with `decimals` decimals; halves go to the even neighbour."""
rint = round
def rsqrt(x: ArrayLike) -> Tensor:
    """`1 / sqrt(x)`."""
def scaled_dot_product_attention(q: ArrayLike, k: ArrayLike, v: ArrayLike, mask: ArrayLike | None = None, scale: float | None = None, is_causal: _bool = False) -> Tensor:
    """`softmax(scale * q @ k.T + mask) @ v` for `q` of shape [batch, heads, queries, depth] and `k`, `v` of shape [batch, key heads, keys, depth]."""
@overload
def scatter(x: ArrayLike, updates: ArrayLike, indices: Sequence[ArrayLike], axes: int | Sequence[int], mode: Literal["set", "add", "mul", "max", "min"] = "set", batch_dims: int = 0, outside: Literal["check", "clamp", "drop", "check_clamp", "check_drop"] = "check") -> Tensor:
    """`x` with the elements at `indices` replaced by `updates`, or combined with them: `mode` is set, add, mul, max or min."""
@overload
def scatter(x: ArrayLike, dim: int, index: ArrayLike, src: ArrayLike, reduce: Literal["set", "add", "multiply"] = ...) -> Tensor: ...
@overload
def scatter_add(x: ArrayLike, updates: ArrayLike, indices: Sequence[ArrayLike], axes: int | Sequence[int]) -> Tensor:
    """`x` with `updates` added at `indices`, as `scatter` does it."""
@overload
def scatter_add(x: ArrayLike, dim: int, index: ArrayLike, src: ArrayLike) -> Tensor: ...
def searchsorted(x1: ArrayLike, x2: ArrayLike, sorter: ArrayLike | None = None, side: Literal["left", "right"] = "left", batch_dims: int = 0) -> Tensor:
    """Where each element of `x2` belongs in the ascending `x1`, as int64: before equal elements, or after them when `side` is "right"."""
def segment_max(x: ArrayLike, segment_ids: ArrayLike, num_segments: int) -> Tensor:
    """Row s is the maximum of the rows of `x` whose segment in `segment_ids` is s; the least value of the type, -inf for floats, when there is none."""
def segment_min(x: ArrayLike, segment_ids: ArrayLike, num_segments: int) -> Tensor:
    """Row s is the minimum of the rows of `x` whose segment in `segment_ids` is s; the largest value of the type, inf for floats, when there is none."""
def segment_prod(x: ArrayLike, segment_ids: ArrayLike, num_segments: int) -> Tensor:
    """Row s is the product of the rows of `x` whose segment in `segment_ids` is s; 1 when there is none."""
def segment_sum(x: ArrayLike, segment_ids: ArrayLike, num_segments: int) -> Tensor:
    """Row s is the sum of the rows of `x` whose segment in `segment_ids` is s; 0 when there is none."""
def selu(x: ArrayLike) -> Tensor:
    """`scale * elu(x, alpha)` with the constants that keep mean 0 and variance 1 through layers."""
def sigmoid(x: ArrayLike) -> Tensor:
    """`1 / (1 + exp(-x))`, between 0 and 1."""
def sign(x: ArrayLike) -> Tensor:
    """-1, 0 or 1 by the sign of `x`; `x / abs(x)` for complex numbers."""
def signbit(x: ArrayLike) -> Tensor:
    """Whether the sign is negative; true for -0.0 and for a NaN with its sign set."""
def silu(x: ArrayLike) -> Tensor:
    """`x * sigmoid(x)`."""
swish = silu
def sin(x: ArrayLike) -> Tensor:
    """The sine of an angle in radians."""
def sinc(x: ArrayLike) -> Tensor:
    """`sin(pi * x) / (pi * x)`; 1 at 0."""
def sinh(x: ArrayLike) -> Tensor:
    """The hyperbolic sine."""
@overload
def slice(x: ArrayLike, start: int | Sequence[int], stop: int | Sequence[int], step: int | Sequence[int] | None = None, axis: int | Sequence[int] | None = None) -> Tensor:
    """Elements `start`, `start + step`, … before `stop` of each axis in `axis`; of the first axes when it is left out."""
@overload
def slice(x: ArrayLike, start: int | Sequence[int], stop: int | Sequence[int], step: int | Sequence[int] | None = ..., *, dim: int | Sequence[int] | None = ...) -> Tensor: ...
@overload
def slice_update(x: ArrayLike, update: ArrayLike, start: int | Sequence[int], stop: int | Sequence[int], step: int | Sequence[int] | None = None, axis: int | Sequence[int] | None = None) -> Tensor:
    """`x` with the elements that `slice` takes replaced by `update`, which broadcasts to them."""
@overload
def slice_update(x: ArrayLike, update: ArrayLike, start: int | Sequence[int], stop: int | Sequence[int], step: int | Sequence[int] | None = ..., *, dim: int | Sequence[int] | None = ...) -> Tensor: ...
def slogdet(x: ArrayLike) -> _slogdet_result:
    """The determinant as its `sign` (a complex number of magnitude 1 if complex) and the logarithm of its magnitude; 0 and -inf for a singular matrix."""
@overload
def slopes(x: ArrayLike, spacing: ArrayLike | None = None, axis: int = 0, edge_order: int = 1) -> Tensor:
    """The slopes of `x` along `axis`, from central differences inside and one-sided ones of `edge_order` 1 or 2 at the ends."""
@overload
def slopes(x: ArrayLike, spacing: ArrayLike | None = ..., *, dim: int = ..., edge_order: int = ...) -> Tensor: ...
def smooth_l1_loss(predictions: ArrayLike, targets: ArrayLike, beta: float = 1.0, reduction: Literal["none", "mean", "sum"] = "mean") -> Tensor:
    """`huber_loss` with `delta=beta`, divided by `beta`: absolute differences, smooth around 0."""
@overload
def softmax(x: ArrayLike, axis: int | Sequence[int] | None = None) -> Tensor:
    """`exp(x)` scaled to sum to one along `axis`, the last one when it is left out."""
@overload
def softmax(x: ArrayLike, *, dim: int | Sequence[int] | None = ...) -> Tensor: ...
@overload
def softmin(x: ArrayLike, axis: int = -1) -> Tensor:
    """`softmax(-x)` along `axis`."""
@overload
def softmin(x: ArrayLike, *, dim: int = ...) -> Tensor: ...
def softplus(x: ArrayLike) -> Tensor:
    """`log(1 + exp(x))` without overflow."""
def softshrink(x: ArrayLike, lambd: float = 0.5) -> Tensor:
    """`x` shrunk towards 0 by `lambd`; 0 where its magnitude is at most `lambd`."""
def softsign(x: ArrayLike) -> Tensor:
    """`x / (1 + abs(x))`, between -1 and 1."""
def solve(x1: ArrayLike, x2: ArrayLike) -> Tensor:
    """The solution X of `x1` @ X = `x2` for square `x1`; leading axes broadcast."""
@overload
def sort(x: ArrayLike, axis: int = -1, descending: _bool = False, stable: _bool = True) -> Tensor:
    """The elements in ascending order along `axis`, or in `descending` order."""
@overload
def sort(x: ArrayLike, *, dim: int, descending: _bool = ..., stable: _bool = ...) -> _sort_along_dim_result: ...
@overload
def split(x: ArrayLike, sections: int | Sequence[int] | None = None, axis: int = 0, indices: int | Sequence[int] | None = None) -> tuple[Tensor, ...]:
    """Pieces along `axis`: `sections` of equal size, or cut before each of `indices`."""
@overload
def split(x: ArrayLike, split_size_or_sections: int | Sequence[int] | None = ..., sizes: int | Sequence[int] | None = ..., *, dim: int = ...) -> tuple[Tensor, ...]: ...
def sqrt(x: ArrayLike) -> Tensor:
    """The square root, correctly rounded."""
def square(x: ArrayLike) -> Tensor:
    """`x * x`."""
@overload
def squeeze(x: ArrayLike, axis: int | Sequence[int] | None = None) -> Tensor:
    """Removes the axes in `axis`, which must have extent 1; all such axes when it is left out."""
@overload
def squeeze(x: ArrayLike, *, dim: int | Sequence[int] | None = ...) -> Tensor: ...
@overload
def stack(arrays: Sequence[ArrayLike], axis: int = 0) -> Tensor:
    """Joins tensors of one shape along a new axis at `axis`."""
@overload
def stack(arrays: Sequence[ArrayLike], *, dim: int = ...) -> Tensor: ...
@overload
def std(x: ArrayLike, axis: int | Sequence[int] | None = None, correction: float = 0.0, keepdims: _bool = False) -> Tensor:
    """Standard deviation over `axis`: the square root of `var`."""
@overload
def std(x: ArrayLike, *, dim: int | Sequence[int] | None = ..., unbiased: _bool | None = ..., keepdim: _bool = ..., correction: float = ...) -> Tensor: ...
def step(x: ArrayLike, threshold: float = 0.0) -> Tensor:
    """1 where `x` exceeds `threshold`, else 0."""
def stop_gradient(x: ArrayLike) -> Tensor:
    """`x` itself, as a constant to differentiation."""
detach = stop_gradient
def subtract(x1: ArrayLike, x2: ArrayLike) -> Tensor:
    """The difference `x1 - x2`."""
sub = subtract
@overload
def sum(x: ArrayLike, axis: int | Sequence[int] | None = None, dtype: DTypeLike | None = None, keepdims: _bool = False) -> Tensor:
    """Sum over `axis`, over all axes when it is left out."""
@overload
def sum(x: ArrayLike, *, dim: int | Sequence[int] | None = ..., dtype: DTypeLike | None = ..., keepdim: _bool = ...) -> Tensor: ...
def svd(x: ArrayLike, full_matrices: _bool = True) -> _svd_result:
    """The factors of `x` = U @ diag(S) @ Vh: U and Vh are unitary, the singular values S real, not negative and in descending order."""
def svdvals(x: ArrayLike) -> Tensor:
    """The singular values, in descending order."""
def swapaxes(x: ArrayLike, axis1: int, axis2: int) -> Tensor:
    """Exchanges two axes."""
swapdims = swapaxes
@overload
def take(x: ArrayLike, indices: ArrayLike, axis: int | None = None) -> Tensor:
    """Elements at `indices` along `axis`; of the flattened tensor when it is left out."""
@overload
def take(x: ArrayLike, indices: ArrayLike, *, dim: int | None = ...) -> Tensor: ...
@overload
def take_along_axis(x: ArrayLike, indices: ArrayLike, axis: int = -1) -> Tensor:
    """For each line along `axis` the elements at the matching line of `indices`; the other axes broadcast."""
@overload
def take_along_axis(x: ArrayLike, indices: ArrayLike, *, dim: int = ...) -> Tensor: ...
take_along_dim = take_along_axis
def tan(x: ArrayLike) -> Tensor:
    """The tangent of an angle in radians."""
def tanh(x: ArrayLike) -> Tensor:
    """The hyperbolic tangent, between -1 and 1."""
@overload
def tensordot(x1: ArrayLike, x2: ArrayLike, axes: int | Sequence[int] | None = None, x2_axes: int | Sequence[int] | None = None) -> Tensor:
    """Sums products over pairs of axes: over the last `axes` of `x1` and the first of `x2` when `axes` is one number (default 2), else over axes `axes` of `x1` and `x2_axes` of `x2`."""
@overload
def tensordot(x1: ArrayLike, x2: ArrayLike, *, dim: int | Sequence[int] | None = ..., x2_axes: int | Sequence[int] | None = ...) -> Tensor: ...
def tile(x: ArrayLike, repetitions: int | Sequence[int]) -> Tensor:
    """Repeats the whole tensor `repetitions[k]` times along axis k; missing axes and repetitions count from the end."""
@overload
def top_k(x: ArrayLike, k: int, axis: int = -1) -> _top_k_result:
    """The `k` largest elements along `axis`, the largest first, and their positions as int64."""
@overload
def top_k(x: ArrayLike, k: int, *, dim: int = ...) -> _top_k_result: ...
topk = top_k
def trace(x: ArrayLike, offset: int = 0, axis1: int = 0, axis2: int = 1, dtype: DTypeLike | None = None) -> Tensor:
    """Sum of the diagonal `offset` of the matrices in `axis1` and `axis2`."""
@overload
def trapezoid(y: ArrayLike, x: ArrayLike | None = None, dx: float = 1.0, axis: int = -1) -> Tensor:
    """The integral of `y` along `axis` by the trapezoidal rule, over the points `x`, or points `dx` apart."""
@overload
def trapezoid(y: ArrayLike, x: ArrayLike | None = ..., dx: float = ..., *, dim: int = ...) -> Tensor: ...
trapz = trapezoid
def tri(n: int, m: int | None = None, k: int = 0, dtype: DTypeLike = "float32", *, device: str | Device | None = None, requires_grad: _bool = False) -> Tensor:
    """One on and below the diagonal `k` of a matrix with `n` rows and `m` columns, zero above."""
def triangular_solve(x1: ArrayLike, x2: ArrayLike, upper: _bool = False, transpose: _bool = False, unit_diagonal: _bool = False) -> Tensor:
    """The matrix X with `x1` @ X = `x2`, or `x1.mT` @ X = `x2` when `transpose`."""
def tril(x: ArrayLike, k: int = 0) -> Tensor:
    """`x` with zeros above the diagonal `k` of its last two axes."""
def tril_indices(n: int, k: int = 0, m: int | None = None, *, device: str | Device | None = None, requires_grad: _bool = False) -> _tril_indices_result:
    """The rows and columns of the elements on and below diagonal `k` of a matrix with `n` rows and `m` columns (`n` by default), as int64: `x[tril_indices(n)]` are those elements."""
@overload
def triplet_loss(anchors: ArrayLike, positives: ArrayLike, negatives: ArrayLike, axis: int = -1, p: float = 2.0, margin: float = 1.0, eps: float = 1e-06, reduction: Literal["none", "mean", "sum"] = "none") -> Tensor:
    """`max(0, d(anchors, positives) - d(anchors, negatives) + margin)`, where `d(x, y)` is the norm of order `p` of `x - y + eps` along `axis`."""
@overload
def triplet_loss(anchors: ArrayLike, positives: ArrayLike, negatives: ArrayLike, *, dim: int = ..., p: float = ..., margin: float = ..., eps: float = ..., reduction: Literal["none", "mean", "sum"] = ...) -> Tensor: ...
def triu(x: ArrayLike, k: int = 0) -> Tensor:
    """`x` with zeros below the diagonal `k` of its last two axes."""
def triu_indices(n: int, k: int = 0, m: int | None = None, *, device: str | Device | None = None, requires_grad: _bool = False) -> _triu_indices_result:
    """The rows and columns of the elements on and above diagonal `k` of a matrix with `n` rows and `m` columns (`n` by default), as int64: `x[triu_indices(n)]` are those elements."""
def trunc(x: ArrayLike) -> Tensor:
    """`x` without its fraction."""
@overload
def unflatten(x: ArrayLike, axis: int, shape: int | Sequence[int]) -> Tensor:
    """Parts `axis` into axes of `shape`, where one extent may be -1."""
@overload
def unflatten(x: ArrayLike, *, dim: int, shape: int | Sequence[int]) -> Tensor: ...
def unique_all(x: ArrayLike) -> _unique_all_result:
    """The distinct elements in ascending order, the row-major position of the first of each, for each element the number of its value (in the shape of `x`), and how often each value occurs."""
def unique_counts(x: ArrayLike) -> _unique_counts_result:
    """The distinct elements in ascending order and how often each occurs."""
def unique_inverse(x: ArrayLike) -> _unique_inverse_result:
    """The distinct elements in ascending order and, in the shape of `x`, for each element the number of its value: `take(values, inverse_indices)` is `x`."""
def unique_values(x: ArrayLike) -> Tensor:
    """The distinct elements in ascending order."""
def unravel_index(indices: ArrayLike, shape: int | Sequence[int]) -> tuple[Tensor, ...]:
    """The coordinates, one tensor of int64 for each axis, of the elements of a tensor of `shape` with the row-major numbers `indices`."""
@overload
def unstack(x: ArrayLike, axis: int = 0) -> tuple[Tensor, ...]:
    """The slices along `axis`, without it."""
@overload
def unstack(x: ArrayLike, *, dim: int = ...) -> tuple[Tensor, ...]: ...
unbind = unstack
@overload
def var(x: ArrayLike, axis: int | Sequence[int] | None = None, correction: float = 0.0, keepdims: _bool = False) -> Tensor:
    """Variance over `axis`: the sum of squared distances from the mean, divided by the number of elements less `correction`."""
@overload
def var(x: ArrayLike, *, dim: int | Sequence[int] | None = ..., unbiased: _bool | None = ..., keepdim: _bool = ..., correction: float = ...) -> Tensor: ...
def vdot(x1: ArrayLike, x2: ArrayLike) -> Tensor:
    """Sums the products of `conj(x1)` and `x2`, both read in row-major order."""
@overload
def vecdot(x1: ArrayLike, x2: ArrayLike, axis: int = -1) -> Tensor:
    """Sums the products of `conj(x1)` and `x2` along `axis`; the other axes broadcast."""
@overload
def vecdot(x1: ArrayLike, x2: ArrayLike, *, dim: int = ...) -> Tensor: ...
@overload
def vector_norm(x: ArrayLike, axis: int | Sequence[int] | None = None, keepdims: _bool = False, ord: float = 2.0) -> Tensor:
    """The norm of the vectors along `axis` (all elements by default): sum(|x|^ord)^(1/ord), the largest magnitude for inf, the smallest for -inf, the number of elements that are not 0 for 0."""
@overload
def vector_norm(x: ArrayLike, *, dim: int | Sequence[int] | None = ..., keepdim: _bool = ..., ord: float = ...) -> Tensor: ...
def vstack(arrays: Sequence[ArrayLike]) -> Tensor:
    """Joins tensors as rows, along axis 0; those of one axis become rows first."""
@overload
def weighted_mean(x: ArrayLike, weights: ArrayLike | None = None, axis: int | Sequence[int] | None = None, keepdims: _bool = False) -> _weighted_mean_result:
    """The mean over `axis` with `weights`, and the sum of the weights, which is the number of elements when there are none."""
@overload
def weighted_mean(x: ArrayLike, weights: ArrayLike | None = ..., *, dim: int | Sequence[int] | None = ..., keepdim: _bool = ...) -> _weighted_mean_result: ...
def where(condition: ArrayLike, x1: ArrayLike, x2: ArrayLike) -> Tensor:
    """`x1` where `condition` holds, `x2` elsewhere."""
def window(x: ArrayLike, size: int | Sequence[int], step: int | Sequence[int] = (1,), dilation: int | Sequence[int] = (1,)) -> Tensor:
    """The windows of `size` over the trailing axes (1 to 3, as many as `size` has numbers): [..., n] becomes [..., places, size], of several axes first all places, then all sizes."""
def window_fold(x: ArrayLike, extents: int | Sequence[int], step: int | Sequence[int] = (1,), dilation: int | Sequence[int] = (1,)) -> Tensor:
    """Adds windows where they came from: the adjoint of `window` of a tensor whose trailing axes have `extents`."""
def zeros(shape: int | Sequence[int], dtype: DTypeLike = "float32", *, device: str | Device | None = None, requires_grad: _bool = False) -> Tensor:
    """Zero everywhere."""
def zeros_like(x: ArrayLike, dtype: DTypeLike | None = None, *, device: str | Device | None = None, requires_grad: _bool = False) -> Tensor:
    """Zero everywhere, with the shape of `x` and its element type unless `dtype` is given."""

__all__ = [
    "ArrayLike",
    "CallStats",
    "CompiledFunction",
    "DType",
    "DTypeLike",
    "Device",
    "Dim",
    "Error",
    "ExecutableStats",
    "HotPath",
    "InternalError",
    "InvalidIndex",
    "InvalidType",
    "InvalidValue",
    "LiveBuffer",
    "LogicalModel",
    "MemoryReport",
    "ModelBlock",
    "ModelFunctions",
    "Op",
    "OutOfMemory",
    "OutOfRange",
    "Pullback",
    "ResolvedModel",
    "Tensor",
    "TreeStructure",
    "Unsupported",
    "WorkerFailed",
    "abs",
    "absolute",
    "acos",
    "acosh",
    "active_memory",
    "adaptive_avg_pool",
    "adaptive_max_pool",
    "add",
    "addmm",
    "all",
    "allclose",
    "amax",
    "amin",
    "angle",
    "any",
    "append",
    "arange",
    "arccos",
    "arccosh",
    "arcsin",
    "arcsinh",
    "arctan",
    "arctan2",
    "arctanh",
    "argmax",
    "argmin",
    "argpartition",
    "argreduce",
    "argsort",
    "argwhere",
    "array",
    "array_equal",
    "array_split",
    "as_strided",
    "asarray",
    "asin",
    "asinh",
    "astype",
    "async_eval",
    "atan",
    "atan2",
    "atanh",
    "atleast_1d",
    "atleast_2d",
    "atleast_3d",
    "avg_pool",
    "batch_norm",
    "bfloat16",
    "bincount",
    "bitcast",
    "bitwise_and",
    "bitwise_invert",
    "bitwise_left_shift",
    "bitwise_not",
    "bitwise_or",
    "bitwise_right_shift",
    "bitwise_xor",
    "bmm",
    "bool",
    "broadcast_arrays",
    "broadcast_to",
    "cache_memory",
    "cast",
    "cat",
    "cbrt",
    "cdist",
    "ceil",
    "celu",
    "check",
    "chunk",
    "clamp",
    "clear_cache",
    "clip",
    "column_stack",
    "complex",
    "complex128",
    "complex64",
    "concat",
    "concatenate",
    "conj",
    "conjugate",
    "contiguous",
    "conv",
    "conv1d",
    "conv2d",
    "conv3d",
    "conv_general",
    "conv_transpose1d",
    "conv_transpose2d",
    "conv_transpose3d",
    "convolve",
    "copy",
    "copysign",
    "corrcoef",
    "cos",
    "cosh",
    "count_in_bins",
    "count_nonzero",
    "cov",
    "cpu",
    "cross_entropy",
    "cummax",
    "cummin",
    "cumprod",
    "cumsum",
    "cumulative",
    "cumulative_prod",
    "cumulative_sum",
    "default_device",
    "deg2rad",
    "degrees",
    "delete_elements",
    "detach",
    "devices",
    "diag",
    "diagonal",
    "diff",
    "digamma",
    "digitize",
    "distinct",
    "div",
    "divide",
    "divmod",
    "dropout",
    "dstack",
    "dtype",
    "dynamic_slice",
    "dynamic_update_slice",
    "einsum",
    "elu",
    "embedding",
    "empty",
    "empty_like",
    "eq",
    "equal",
    "erf",
    "erfc",
    "erfinv",
    "eval",
    "exp",
    "exp2",
    "expand",
    "expand_as",
    "expand_dims",
    "expm1",
    "eye",
    "fit_polynomial",
    "flatten",
    "flip",
    "fliplr",
    "flipud",
    "float16",
    "float32",
    "float64",
    "float8_e4m3",
    "float8_e5m2",
    "floor",
    "floor_divide",
    "fmod",
    "from_dlpack",
    "full",
    "full_like",
    "gather",
    "gather_mm",
    "gcd",
    "ge",
    "gelu",
    "gelu_approx",
    "gelu_tanh",
    "geomspace",
    "graph_text",
    "greater",
    "greater_equal",
    "group_norm",
    "gt",
    "hard_tanh",
    "hardswish",
    "hardtanh",
    "hstack",
    "hypot",
    "identity",
    "imag",
    "index_select",
    "index_update",
    "inner",
    "insert_elements",
    "int16",
    "int32",
    "int64",
    "int8",
    "interp",
    "interpolate",
    "invert",
    "iota",
    "is_grad_enabled",
    "isclose",
    "isfinite",
    "isin",
    "isinf",
    "isnan",
    "isneginf",
    "isposinf",
    "kron",
    "layer_norm",
    "lcm",
    "le",
    "leaky_relu",
    "left_shift",
    "lerp",
    "less",
    "less_equal",
    "lgamma",
    "linear",
    "linspace",
    "log",
    "log10",
    "log1p",
    "log2",
    "log_sigmoid",
    "log_softmax",
    "logaddexp",
    "logcumsumexp",
    "logical_and",
    "logical_not",
    "logical_or",
    "logical_xor",
    "logspace",
    "logsumexp",
    "lt",
    "make_complex",
    "matmul",
    "matmul_precision",
    "matrix_transpose",
    "max",
    "max_pool",
    "maximum",
    "mean",
    "median",
    "memory_limit",
    "meshgrid",
    "min",
    "minimum",
    "mish",
    "mod",
    "moveaxis",
    "movedim",
    "mul",
    "multiply",
    "nan_to_num",
    "nanmax",
    "nanmean",
    "nanmin",
    "nanprod",
    "nanstd",
    "nansum",
    "nanvar",
    "narrow",
    "ne",
    "neg",
    "negative",
    "nextafter",
    "nonzero",
    "not_equal",
    "num_threads",
    "one_hot",
    "ones",
    "ones_like",
    "outer",
    "pad",
    "pad_with",
    "partition",
    "peak_memory",
    "percentile",
    "permute",
    "permute_dims",
    "pixel_shuffle",
    "pixel_unshuffle",
    "polygamma",
    "polyval",
    "positive",
    "pow",
    "power",
    "print",
    "prod",
    "put_along_axis",
    "quantile",
    "rad2deg",
    "radians",
    "random_bernoulli",
    "random_bits",
    "random_categorical",
    "random_choice",
    "random_exponential",
    "random_fold_in",
    "random_gamma",
    "random_gumbel",
    "random_key",
    "random_laplace",
    "random_multinomial",
    "random_multivariate_normal",
    "random_normal",
    "random_permutation",
    "random_poisson",
    "random_randint",
    "random_split",
    "random_truncated_normal",
    "random_uniform",
    "ravel",
    "real",
    "reciprocal",
    "relu",
    "relu6",
    "remainder",
    "repeat",
    "repeat_interleave",
    "reset_peak_memory",
    "reshape",
    "result_type",
    "right_shift",
    "rint",
    "rms_norm",
    "roll",
    "rope",
    "rot90",
    "round",
    "rsqrt",
    "scaled_dot_product_attention",
    "scatter",
    "scatter_add",
    "searchsorted",
    "segment_max",
    "segment_min",
    "segment_prod",
    "segment_sum",
    "selu",
    "set_cache_limit",
    "set_default_device",
    "set_matmul_precision",
    "set_memory_limit",
    "set_num_threads",
    "sigmoid",
    "sign",
    "signbit",
    "silu",
    "sin",
    "sinc",
    "sinh",
    "slice",
    "slice_update",
    "slopes",
    "softmax",
    "softplus",
    "softsign",
    "sort",
    "split",
    "sqrt",
    "square",
    "squeeze",
    "stack",
    "std",
    "stop_gradient",
    "sub",
    "subtract",
    "sum",
    "swapaxes",
    "swapdims",
    "swish",
    "synchronize",
    "take",
    "take_along_axis",
    "take_along_dim",
    "tan",
    "tanh",
    "tensordot",
    "tile",
    "top_k",
    "topk",
    "trace",
    "trapezoid",
    "trapz",
    "tri",
    "tril",
    "triu",
    "true_divide",
    "trunc",
    "uint16",
    "uint32",
    "uint64",
    "uint8",
    "unbind",
    "unflatten",
    "unique_all",
    "unique_counts",
    "unique_inverse",
    "unique_values",
    "unravel_index",
    "unsqueeze",
    "unstack",
    "var",
    "vdot",
    "vecdot",
    "view",
    "vstack",
    "weighted_mean",
    "where",
    "window",
    "window_fold",
    "zeros",
    "zeros_like",
]
