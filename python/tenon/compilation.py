"""`compile`: functions that are traced once per kind of arguments and run as one plan."""

from __future__ import annotations

import functools
from collections.abc import Callable, Mapping, Sequence
from typing import TYPE_CHECKING, Any, overload

from . import _core
from ._advice import nearest
from .ahead import compile_ahead
from .compiled_modules import function_of, plain
from .flat_function import check_callable
from .tensor_names import Elsewhere
from .traced_functions import compile_traced

if TYPE_CHECKING:
    from typing import ParamSpec, TypedDict, TypeVar

    from typing_extensions import Unpack

    from .executables import Executable
    from .mesh import Mesh
    from .model import Model, PhysicalModel
    from .nn import Module

    P = ParamSpec("P")
    R = TypeVar("R")
    M = TypeVar("M", bound=Module)

    class Options(TypedDict, total=False):
        """The options of `compile` for functions, by name."""

        static_argnums: int | Sequence[int]
        static_argnames: str | Sequence[str]
        donate_argnums: int | Sequence[int]
        optimization_level: int
        mode: str | None
        backend: str | None
        memory_limit: int | str | None
        timeout: float | tuple[float, str] | None
        check: bool
        off: str | Sequence[str]
        on: str | Sequence[str]
        memory_planning: str | None
        optimize_for: str
        target_hardware: str | Sequence[str]


@overload
def compile(  # type: ignore[overload-overlap]  # a module is callable too: the first match counts
    fun: M,
    inputs: Any = ...,
    outputs: Any = ...,
    shapeless: bool = ...,
    **options: Unpack[Options],
) -> M: ...
@overload
def compile(
    fun: Callable[P, R],
    *,
    args: Sequence[Any],
    kwargs: Mapping[str, Any] | None = ...,
    mesh: Mesh | None = ...,
    **options: Unpack[Options],
) -> Executable: ...
@overload
def compile(
    fun: Callable[P, R],
    *,
    kwargs: Mapping[str, Any],
    mesh: Mesh | None = ...,
    **options: Unpack[Options],
) -> Executable: ...
@overload
def compile(  # type: ignore[overload-overlap]  # a model is callable too
    fun: Callable[P, R],
    inputs: Any = ...,
    outputs: Any = ...,
    shapeless: bool = ...,
    **options: Unpack[Options],
) -> _core.CompiledFunction[P, R]: ...
@overload
def compile(
    *,
    inputs: Any = ...,
    outputs: Any = ...,
    shapeless: bool = ...,
    **options: Unpack[Options],
) -> Callable[[Callable[P, R]], _core.CompiledFunction[P, R]]: ...
@overload
def compile(
    fun: Model | None = ...,
    inputs: Any = ...,
    outputs: Any = ...,
    shapeless: Any = ...,
    *,
    model: Model | None = ...,
    **model_options: Any,
) -> PhysicalModel: ...
def compile(
    fun: Callable[..., Any] | None = None,
    inputs: Any = None,
    outputs: Any = None,
    shapeless: bool = False,
    *,
    static_argnums: int | Sequence[int] = (),
    static_argnames: str | Sequence[str] = (),
    donate_argnums: int | Sequence[int] = (),
    optimization_level: int = 3,
    mode: str | None = None,
    backend: str | None = None,
    memory_limit: int | str | None = None,
    timeout: float | tuple[float, str] | None = None,
    check: bool = False,
    off: str | Sequence[str] = (),
    on: str | Sequence[str] = (),
    memory_planning: str | None = None,
    optimize_for: str = "latency",
    target_hardware: str | Sequence[str] = "native",
    args: Sequence[Any] | None = None,
    kwargs: Mapping[str, Any] | None = None,
    mesh: Mesh | None = None,
    model: Any = None,
    **model_options: Any,
) -> Any:
    """Compiles `fun`: it is traced once per kind of arguments and then runs as one plan.

    Arguments and results are trees. A call reuses a trace if its tensors have the same shapes and
    element types, its trees the same structure, and all other values are equal; `fun` is not
    called then. A size or number that has varied becomes symbolic in the next trace, which accepts
    any other value. `shapeless` makes all sizes symbolic from the first call. Static arguments are
    constants.

    Attributes that `fun` reads from other objects (`self` of a plain class, an object or a module
    in a variable) are compared in every call, through nested objects, lists and dicts. Side
    effects on them happen at trace time only, with a warning.

        >>> @tn.compile
        ... def gelu(x):
        ...     return x * (1 + tn.erf(x / 2**0.5)) / 2
        >>> gelu(tn.array([-1.0, 0.0, 1.0]))
        tensor([-0.15865526,  0.        ,  0.8413447 ], dtype=float32)

    Tensors and containers that `fun` closes over are constants. `inputs` and `outputs` name the
    containers that it reads and changes: lists, dicts, modules, optimizers, `tn.random.state`, and
    trees of these. Every call reads the current contents of the inputs and updates the outputs. The
    state of a module is included if `fun` is the module or one of its methods.

        >>> state = {"steps": tn.array(0)}
        >>> @tn.compile(inputs=state, outputs=state)
        ... def step(x):
        ...     state["steps"] = state["steps"] + 1
        ...     return x * state["steps"]
        >>> [step(tn.array(2)).item() for _ in range(3)]
        [2, 4, 6]

    A compiled module is a module with the same state, whose calls are compiled. As part of another
    module its parameters keep their names, and are trained and saved as usual.

    Results may reuse the memory of donated tensors: state that `outputs` replace, if nothing else
    references it, and the arguments at `donate_argnums`, which must not be used afterwards.

    - `optimization_level`: 0 interprets (also `backend="interpreter"`), 1 generates code after one
      round of simplification, 2 and above apply all optimizations
    - `mode`: "reduce-overhead" makes calls of short functions cheaper and keeps the GIL.
      "max-autotune" measures variants (fusions, layout, threads) on the arguments of the first
      call, keeps the fastest, and caches the choice on disk
    - `memory_limit`: bytes, or text like "512MB", besides the arguments. Values are rematerialised
      until the plan fits, which `show("decisions")` lists; it is an error if no plan fits
    - `check`: also runs the interpreter; a difference is an error
    - `timeout`: if compilation takes longer than these seconds, the interpreter runs until the code
      is ready; `(seconds, "error")` fails instead
    - `off`: passes (`tenon opt --list`) and fusions ("fuse", "row-kernels", "epilogue", "bundle")
      to disable
    - `on`: passes that change rounding and are off by default: "absorb" folds factors and terms of
      channels into the weights of products and convolutions
    - `memory_planning`: "greedy" places values in program order; "best_fit" tries several orders;
      "optimal" searches all within a bounded effort; "none" gives each value its own place
    - `optimize_for`: "throughput" runs each call on its calling thread, for concurrent callers;
      "latency" uses all threads for each call
    - `target_hardware`: CPUs to generate code for: "x86-64-v2", "x86-64-v3", "x86-64-v4", "native",
      or processors like "haswell" and "zen4"; executables hold code for all of them

    Compiled functions can be differentiated, batched, and called by other compiled functions.
    `stats()` counts traces and calls, `why_recompiled()` lists the reason of each trace. Compiling
    a function again with the same options finds its traces, which live as long as the function.

    With `args` or `kwargs`, `fun` is compiled ahead of time, and the result is an `Executable`,
    which can be saved. A `tn.InputInfo` or `tn.DimensionInputInfo` among them, also inside lists,
    dicts and other trees, describes an input of the calls; everything else is constant.

        >>> info = tn.InputInfo(shape=((1, 8, 16), 2), dtype=tn.float32)
        >>> scaled = tn.compile(lambda x, by: x * by, args=[info], kwargs={"by": 3})
        >>> scaled(tn.ones((1, 2)))
        tensor([[3., 3.]], dtype=float32)

    With `mesh` an executable runs on the workers of a `tn.Mesh`: constants stay divided as they
    are, inputs of the host travel there, and results lie there. Without it an executable is
    undivided, even if the function uses tensors of a mesh.

    A logical model, as the first argument or as `model`, is compiled to a physical model for
    `backend`, with the options of `tn.model.compile_model`.
    """
    options = dict(locals())
    for name in ("fun", "model", "model_options"):
        del options[name]
    if is_model(fun) or model is not None:
        from .model.physical import compile_given

        chosen: Any = fun if model is None else model
        return compile_given(chosen, _changed(options), model_options)
    if model_options:
        unknown = next(iter(model_options))
        near = nearest(unknown, options)
        hint = f"did you mean {near!r}?" if near else ""
        _core._fail("type", f"compile: unknown keyword: {unknown}", hint)
    if fun is None:
        return functools.partial(compile, **options)
    check_callable("compile", fun)
    fun = plain(fun)
    del options["args"], options["kwargs"], options["mesh"]
    if args is not None or kwargs is not None:
        return compile_ahead(fun, args, kwargs, mesh, options, _changed(options))
    if mesh is not None:
        hint = "it runs where its arguments lie: divide them by tn.shard"
        _core._fail("value", f"compile: mesh applies to executables (args=[...]): {mesh!r}", hint)
    return compile_traced(fun, options, _changed(options))


def _changed(options: dict[str, Any]) -> dict[str, Any]:
    """Return the options that differ from their defaults."""
    usual = {"inputs": None, "outputs": None, "shapeless": False} | (compile.__kwdefaults__ or {})
    return {name: value for name, value in options.items() if value is not usual[name]}


def is_model(fun: Any) -> bool:
    """Whether it is a logical model."""
    return isinstance(getattr(fun, "_core", None), _core.LogicalModel)


def compiled_function(fun: Callable[..., Any]) -> _core.CompiledFunction[..., Any]:
    """`fun`, compiled if it is not yet."""
    found = function_of(fun)
    return found if isinstance(found, _core.CompiledFunction) else function_of(compile(fun))


def _html(self: _core.CompiledFunction[..., Any]) -> str:
    from .notebook import compiled_html

    return compiled_html(self)


_core.CompiledFunction._repr_html_ = _html  # type: ignore[attr-defined]
_core.CompiledFunction.save = Elsewhere(  # type: ignore[attr-defined]
    "CompiledFunction", "save", 'tn.compile(f, args=[tn.InputInfo(shape, dtype)]).save("f.tnx")'
)


def show(fun: Callable[..., Any], *args: Any, what: str = "graph", **kwargs: Any) -> str:
    """A stage of the compilation of `fun` for these arguments, as text.

    `what` is "graph" (as traced), "optimized", "loops", "kernels" (machine code), "plan",
    "memory", "decisions" or "sharding" (over a mesh); or the function as a Python file for "numpy",
    "torch" or "jax". A plain function is compiled first.

        >>> print(tn.show(lambda x: tn.exp(x) + 1, tn.zeros(3)))
        func @main(%x0: f32[3]) -> f32[3] {
          %0 = exp %x0 : f32[3]
          %1 = constant {value=1} : f32[]
          %2 = add %0, %1 : f32[3]
          return %2
        }
    """
    return compiled_function(fun).show(what, *args, **kwargs)


class _Switch:
    """Turns compilation on or off, for good or, as a context manager, inside."""

    def __init__(self, disabled: bool) -> None:
        self._before = _core._disable_compile(disabled)

    def __enter__(self) -> None:
        pass

    def __exit__(self, *error: object) -> None:
        _core._disable_compile(self._before)


def disable_compile() -> _Switch:
    """Disables compilation: compiled functions call the Python function, for prints and debuggers.

    `TENON_DISABLE_COMPILE=1` in the environment does the same from the start.

        >>> f = tn.compile(lambda x: print("called") or x)
        >>> with tn.disable_compile():
        ...     f(1), f(1)
        called
        called
        (1, 1)
    """
    return _Switch(True)


def enable_compile() -> _Switch:
    """Undoes `disable_compile`."""
    return _Switch(False)
