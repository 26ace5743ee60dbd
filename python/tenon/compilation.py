"""compile: a function traced once for every kind of arguments, then run as one plan."""

from __future__ import annotations

import functools
import inspect
import re
import types
import weakref
from collections.abc import Callable, Mapping, Sequence
from typing import TYPE_CHECKING, Any, overload

from . import _core, random
from .ahead import compile_ahead
from .compiled_modules import compiled_module, function_of, is_module, plain
from .flat_function import check_callable

if TYPE_CHECKING:
    from typing import ParamSpec, TypedDict, TypeVar

    from typing_extensions import Unpack

    from .executables import Executable
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


def _positional(f: Callable[..., Any]) -> list[str]:
    """The names of the parameters of `f` that have a position, as far as they are known."""
    kinds = (inspect.Parameter.POSITIONAL_ONLY, inspect.Parameter.POSITIONAL_OR_KEYWORD)
    return [p.name for p in _parameters(f) if p.kind in kinds]


def _parameters(f: Callable[..., Any]) -> list[inspect.Parameter]:
    try:
        return list(inspect.signature(f).parameters.values())
    except (TypeError, ValueError):
        return []


def _positions(f: Callable[..., Any], argnums: int | Sequence[int], what: str) -> list[int]:
    """Positions of arguments, counted from the front."""
    given = [argnums] if isinstance(argnums, int) else list(argnums)
    if not all(isinstance(n, int) for n in given):
        _core._fail("type", f"compile: {what} are integers, not {argnums!r}")
    parameters, count = _parameters(f), len(_positional(f))
    most = count if parameters and all(p.kind is not p.VAR_POSITIONAL for p in parameters) else None
    for n in given:
        if n < -count or (most is not None and n >= most):
            _core._fail("index", f"compile: no argument {n} of {count} in {what}")
    return [n + count if n < 0 else n for n in given]


def _static_arguments(
    f: Callable[..., Any], argnums: int | Sequence[int], argnames: str | Sequence[str]
) -> tuple[list[int], list[str]]:
    """Positions and names of the static arguments; one that has both is found either way."""
    positions = _positions(f, argnums, "static_argnums")
    names = [argnames] if isinstance(argnames, str) else list(argnames)
    if not positions and not names:
        return [], []
    if not all(isinstance(n, str) for n in names):
        _core._fail("type", f"compile: static_argnames are strings, not {argnames!r}")
    parameters, known = _parameters(f), _positional(f)
    if parameters and not any(p.kind is p.VAR_KEYWORD for p in parameters):
        for name in names:
            if name not in {p.name for p in parameters}:
                _core._fail("value", f"compile: no argument {name!r} for static_argnames")
    names += [known[n] for n in positions if n < len(known)]
    positions += [known.index(name) for name in names if name in known]
    return sorted(set(positions)), sorted(set(names))


_MODES = (None, "default", "reduce-overhead", "max-autotune")
_BACKENDS = (None, "cpu", "interpreter")
_UNITS = {"": 1, "B": 1} | {
    f"{prefix}{suffix}B": base**power
    for power, prefix in enumerate("KMGT", 1)
    for suffix, base in (("", 1000), ("i", 1024))
}


def _one_of(name: str, given: Any, known: tuple[str | None, ...]) -> None:
    if given not in known:
        names = ", ".join(repr(k) for k in known if k)
        _core._fail("value", f"compile: {name} is one of {names}, not {given!r}")


def _bytes(limit: int | str | None) -> int:
    """A number of bytes: 512, "512MB", "1.5 GiB"; 0 where there is no limit."""
    if limit is None:
        return 0
    match = re.fullmatch(r"\s*(\d+(?:\.\d*)?)\s*([KMGT]?i?B?)\s*", str(limit), re.IGNORECASE)
    units = {name.upper(): size for name, size in _UNITS.items()}
    if not match or match[2].upper() not in units or isinstance(limit, bool):
        _core._fail("value", f"compile: memory_limit is bytes or text like '512MB', not {limit!r}")
    return max(1, int(float(match[1]) * units[match[2].upper()]))


def _timeout(given: Any) -> tuple[float, bool]:
    """Seconds (0: any number), and whether to fail after them."""
    seconds, then = given if isinstance(given, tuple) and len(given) == 2 else (given, "interpret")
    _one_of("what follows timeout", then, ("interpret", "error"))
    if seconds is None:
        return 0.0, False
    if isinstance(seconds, bool) or not isinstance(seconds, (int, float)) or not seconds > 0:
        _core._fail("value", f"compile: timeout is a number of seconds above 0, not {given!r}")
    return float(seconds), then == "error"


_TRACES = "__tenon_traces__"  # the attribute of functions with what they were compiled to


def _traces(fun: Callable[..., Any], options: dict[str, Any]) -> Any:
    """Where the traces of `fun` are kept: with the function, if it is a plain one without state."""
    shared = options["inputs"] is None and options["outputs"] is None
    if type(fun) is not types.FunctionType or not shared:
        return _new_traces(fun, **options)
    key = tuple(repr(value) for value in options.values())
    known = fun.__dict__.get(_TRACES)
    # functools.wraps copies the attributes of a function to another one.
    if known is None or known.function is None or known.function() is not fun:
        known = fun.__dict__[_TRACES] = _KnownTraces(fun)
    if key not in known.by_options:
        known.by_options[key] = _new_traces(fun, **options)
    return known.by_options[key]


class _KnownTraces:
    """What a function was compiled to. It is left behind where cloudpickle takes the function."""

    def __init__(self, fun: Callable[..., Any] | None = None) -> None:
        self.function = fun and weakref.ref(fun)
        self.by_options: dict[tuple[str, ...], Any] = {}

    def __reduce__(self) -> tuple[Any, ...]:
        return _KnownTraces, ()


def _new_traces(
    fun: Callable[..., Any],
    inputs: Any,
    outputs: Any,
    shapeless: bool,
    static_argnums: int | Sequence[int],
    static_argnames: str | Sequence[str],
    donate_argnums: int | Sequence[int],
    optimization_level: int,
    mode: str | None,
    backend: str | None,
    memory_limit: int | str | None,
    timeout: float | tuple[float, str] | None,
    check: bool,
    **plan: Any,
) -> Any:
    _check_level(optimization_level)
    _one_of("mode", mode, _MODES)
    _one_of("backend", backend, _BACKENDS)
    positions, names = _static_arguments(fun, static_argnums, static_argnames)
    owner = fun.__self__ if isinstance(fun, types.MethodType) else fun
    if hasattr(type(owner), "state"):  # a module's own parameters are not constants
        alone = inputs is None and outputs is None
        inputs = [owner, random.state if alone else inputs]  # Dropout draws anew in each call
        outputs = [owner, random.state if alone else outputs]
    return _core._FunctionTraces(
        inputs,
        outputs,
        bool(shapeless),
        positions,
        names,
        _positions(fun, donate_argnums, "donate_argnums"),
        0 if backend == "interpreter" else optimization_level,
        _plan_settings(**plan),
        _core._RunDemands(
            _bytes(memory_limit),
            bool(check),
            *_timeout(timeout),
            keeps_lock=mode == "reduce-overhead",
            tunes=mode == "max-autotune",
        ),
    )


def _names(option: str, given: str | Sequence[str]) -> list[str]:
    names = list(given) if isinstance(given, Sequence) and not isinstance(given, str) else [given]
    if not all(isinstance(name, str) for name in names):
        _core._fail("type", f"compile: {option} takes names, not {given!r}")
    return names


def _plan_settings(
    off: str | Sequence[str],
    on: str | Sequence[str],
    memory_planning: str | None,
    optimize_for: str,
    target_hardware: str | Sequence[str],
) -> _core._PlanSettings:
    _one_of("memory_planning", memory_planning, (None, "greedy", "best_fit", "optimal", "none"))
    _one_of("optimize_for", optimize_for, ("latency", "throughput"))
    return _core._PlanSettings(
        _names("off", off),
        _names("on", on),
        memory_planning or "",
        optimize_for,
        _names("target_hardware", target_hardware),
    )


def _check_level(level: Any) -> None:
    if not isinstance(level, int) or isinstance(level, bool) or not 0 <= level <= 5:
        _core._fail("value", f"compile: optimization_level is 0 to 5, not {level!r}")


def _executable(
    fun: Callable[..., Any],
    args: Sequence[Any] | None,
    kwargs: Mapping[str, Any] | None,
    options: dict[str, Any],
) -> Any:
    """`fun` compiled ahead of time. A level may come second, as in `compile(f, 5, args=[...])`."""
    level = options["optimization_level"]
    if type(options["inputs"]) is int:
        level, options["inputs"] = options["inputs"], None
    _check_level(level)
    plan_options = inspect.signature(_plan_settings).parameters
    defaults = inspect.signature(compile).parameters
    for name, value in options.items():
        known = name in ("optimization_level", "memory_limit", *plan_options)
        if not known and value != defaults[name].default:
            _core._fail("value", f"compile: {name} says nothing about executables: {value!r}")
    given = [] if args is None else args, {} if kwargs is None else kwargs
    plan = _plan_settings(**{name: options[name] for name in plan_options})
    return compile_ahead(fun, *given, level, _bytes(options["memory_limit"]), plan)


@overload
def compile(
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
    **options: Unpack[Options],
) -> Executable: ...
@overload
def compile(
    fun: Callable[P, R], *, kwargs: Mapping[str, Any], **options: Unpack[Options]
) -> Executable: ...
@overload
def compile(
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
    fun: Model | None = ..., *args: Any, model: Model | None = ..., **model_options: Any
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
    model: Any = None,
    **model_options: Any,
) -> Any:
    """`fun`, traced when it is first called with arguments of some kind, then run as one plan.

    Arguments and results are trees. A call runs a former trace when its tensors have the same
    shapes and element types, its trees the same structure, and everything else is equal; `fun` is
    not called then. A size or a number that has varied is open from the next trace on: any other
    value runs that one. With `shapeless` all sizes are open from the first call on. Static
    arguments are constants as a whole. Of objects that are no trees, such as `self` of a method of
    a plain class, or an object or a module in a variable, the attributes that `fun` reads are
    compared, as far as objects, lists and dicts lead from one to the other; a number or a tensor
    that has varied is open. What `fun` itself does to them happens when it is traced, and a warning
    says so.

        >>> @tn.compile
        ... def gelu(x):
        ...     return x * (1 + tn.erf(x / 2**0.5)) / 2
        >>> gelu(tn.array([-1.0, 0.0, 1.0]))
        tensor([-0.15865526,  0.        ,  0.8413447 ], dtype=float32)

    Tensors and containers that `fun` closes over are constant. Containers that it reads or changes
    are given as `inputs` and `outputs`: lists, dicts, modules, optimizers, `tn.random.state`, and
    trees of them. Every call reads what the inputs hold then, and puts into the outputs what `fun`
    does. A module, or a method of one, has its own state among them.

        >>> state = {"steps": tn.array(0)}
        >>> @tn.compile(inputs=state, outputs=state)
        ... def step(x):
        ...     state["steps"] = state["steps"] + 1
        ...     return x * state["steps"]
        >>> [step(tn.array(2)).item() for _ in range(3)]
        [2, 4, 6]

    A compiled module is a module with the same state, whose calls run so: as a part of another one
    its parameters are found under the same names, trained and saved.

    Results may take the memory of what `outputs` replace, where no other code holds it, and of the
    arguments at `donate_argnums`, which must not be used afterwards.

    `optimization_level` 0 interprets, 1 generates code after one round of simplification, 2 and
    above do all that is known. `mode` "reduce-overhead" makes calls of short functions cheaper: no
    other Python thread runs meanwhile. "max-autotune" measures, on the arguments of the first call,
    which of the ways to compute the function is fastest (fusions, layout, threads), and remembers
    that on disk. `backend` "interpreter" is
    level 0. Where a call would need more than `memory_limit` (bytes, or text like "512MB") besides
    its arguments, values are computed again until it fits, which `show("decisions")` tells about;
    where nothing fits, it fails. With `check` the interpreter runs beside the compiled code, and a
    difference is an error. When compiling takes longer than `timeout` seconds, the interpreter runs
    meanwhile; `(seconds, "error")` fails instead. `off` names passes (`tenon opt --list`) and
    fusions ("fuse", "row-kernels", "epilogue", "bundle") to leave out, `on` passes that run only
    where they are asked for, because results are rounded otherwise: "absorb" takes factors and
    terms of channels into the weights of products and convolutions.

    `memory_planning` says how values are placed: "greedy" in the order of time, where there is
    room; "best_fit" in several ways, of which the best is taken; "optimal" in all ways, as far as
    that takes no time to speak of; "none" gives each a place of its own. `optimize_for`
    "throughput" keeps a call on the thread that makes it, so that threads that call at once do not
    wait for each other; with "latency" all threads work on each call. `target_hardware` names CPUs
    to make code for: "x86-64-v2", "x86-64-v3", "x86-64-v4", "native", or processors like "haswell"
    and "zen4"; executables hold code for all that are named. None of these changes results.

    Compiled functions can be differentiated, batched, and called by other compiled functions.
    `stats()` counts what their calls did, `why_recompiled()` says why they were traced. Compiling a
    function again with the same options finds its traces, which live as long as the function.

    With `args` or `kwargs`, `fun` is compiled now, ahead of any call, and an `Executable` is made,
    which can be saved. Where a `tn.InputInfo` or a `tn.DimensionInputInfo` is among them, also
    inside lists, dicts and other trees, calls give a tensor or a size; everything else is constant.

        >>> info = tn.InputInfo(shape=((1, 8, 16), 2), dtype=tn.float32)
        >>> scaled = tn.compile(lambda x, by: x * by, args=[info], kwargs={"by": 3})
        >>> scaled(tn.ones((1, 2)))
        tensor([[3., 3.]], dtype=float32)

    A logical model, as the first argument or as `model`, becomes a physical one on `backend`, with
    the options of `tn.model.compile_model`.
    """
    options = dict(locals())
    for name in ("fun", "model", "model_options"):
        del options[name]
    if is_model(fun) or model is not None:
        return _physical(fun if model is None else model, options, model_options)
    if model_options:
        unknown = next(iter(model_options))
        raise TypeError(f"compile() got an unexpected keyword argument {unknown!r}")
    if fun is None:
        return functools.partial(compile, **options)
    check_callable("compile", fun)
    fun = plain(fun)
    del options["args"], options["kwargs"]
    if args is not None or kwargs is not None:
        return _executable(fun, args, kwargs, options)
    usual = {"inputs": None, "outputs": None, "shapeless": False} | (compile.__kwdefaults__ or {})
    changed = {name: value for name, value in options.items() if value is not usual[name]}
    made = _core._compile(fun, _traces(fun, options), changed)
    # The attributes of an object, such as a module's parameters, are not those of what it computes.
    copied = ("__dict__",) if isinstance(fun, types.FunctionType) else ()
    functools.update_wrapper(made, fun, updated=copied)
    made.__dict__.pop(_TRACES, None)
    return compiled_module(fun, made, options) if is_module(fun) else made


def is_model(fun: Any) -> bool:
    """Whether it is a logical model."""
    return isinstance(getattr(fun, "_core", None), _core.LogicalModel)


def _physical(model: Any, options: dict[str, Any], given: dict[str, Any]) -> Any:
    from .model.options import one_name
    from .model.physical import compile_model

    usual = {name: p.default for name, p in inspect.signature(compile).parameters.items()}
    places = {"inputs": "backend", "outputs": "shapes"}  # the second and third argument
    changed = {
        places.get(name, name): value
        for name, value in options.items()
        if value is not usual[name] and value != usual[name]
    }
    said = given | changed
    for name in said:
        one_name("option", name, inspect.signature(compile_model).parameters)
    return compile_model(model, **said)


def compiled_function(fun: Callable[..., Any]) -> _core.CompiledFunction[..., Any]:
    """`fun`, compiled if it is not yet."""
    found = function_of(fun)
    return found if isinstance(found, _core.CompiledFunction) else function_of(compile(fun))


def _html(self: _core.CompiledFunction[..., Any]) -> str:
    from .notebook import compiled_html

    return compiled_html(self)


_core.CompiledFunction._repr_html_ = _html  # type: ignore[attr-defined]


def show(fun: Callable[..., Any], *args: Any, what: str = "graph", **kwargs: Any) -> str:
    """A stage of the compilation of `fun` for these arguments, as text.

    `what` is "graph" (as traced), "optimized", "loops", "kernels" (machine code), "plan",
    "memory" or "decisions"; or the function as a Python file for "numpy", "torch" or "jax". A
    function that is not compiled yet is.

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
    """From here on compiled functions call the function itself: prints and debuggers work in it.

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
