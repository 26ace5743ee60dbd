"""Compiled functions: calls trace them, once for each combination of types and structures."""

from __future__ import annotations

import functools
import types
import warnings
import weakref
from collections.abc import Callable, Sequence
from typing import Any

from . import _core, random
from .compile_options import (
    BACKENDS,
    MODES,
    bytes_of,
    check_level,
    one_of,
    plan_settings,
    positions,
    static_arguments,
    timeout_of,
)
from .compiled_modules import compiled_module, is_module
from .module_changes import frames_of_package


def compile_traced(
    fun: Callable[..., Any], options: dict[str, Any], changed: dict[str, Any]
) -> Any:
    """See `tn.compile`. `changed`: those options that a copy must be given again."""
    made = _core._compile(fun, _traces(fun, options), changed)
    # The attributes of an object, such as a module's parameters, are not those of what it computes.
    copied = ("__dict__",) if isinstance(fun, types.FunctionType) else ()
    functools.update_wrapper(made, fun, updated=copied)
    made.__dict__.pop(_TRACES, None)
    return compiled_module(fun, made, options) if is_module(fun) else made


_TRACES = "__tenon_traces__"  # the attribute of functions with what they were compiled to


def _traces(fun: Callable[..., Any], options: dict[str, Any]) -> Any:
    """Return the traces of `fun`, which a plain function without state keeps as an attribute."""
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
    """The traces of a function. They are dropped when cloudpickle pickles the function."""

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
    check_level(optimization_level)
    one_of("mode", mode, MODES)
    one_of("backend", backend, BACKENDS)
    numbers, names = static_arguments(fun, static_argnums, static_argnames)
    owner = fun.__self__ if isinstance(fun, types.MethodType) else fun
    _warn_of_lopsided_state([owner, inputs], [owner, outputs], outputs is not None)
    if hasattr(type(owner), "state"):  # a module's own parameters are not constants
        alone = inputs is None and outputs is None
        inputs = [owner, random.state if alone else inputs]  # Dropout draws anew in each call
        outputs = [owner, random.state if alone else outputs]
    return _core._FunctionTraces(
        inputs,
        outputs,
        bool(shapeless),
        numbers,
        names,
        positions(fun, donate_argnums, "donate_argnums"),
        0 if backend == "interpreter" else optimization_level,
        plan_settings(**plan),
        _core._RunDemands(
            bytes_of(memory_limit),
            bool(check),
            *timeout_of(timeout),
            keeps_lock=mode == "reduce-overhead",
            tunes=mode == "max-autotune",
        ),
    )


def _warn_of_lopsided_state(inputs: Any, outputs: Any, has_outputs: bool) -> None:
    """Warns where modules, optimizers or the random state are on one side only."""
    if not has_outputs:
        return
    read, changed = _holders(inputs), _holders(outputs)
    for key, held in changed.items():
        if key not in read:
            text = "is in outputs= and not in inputs=, so every call starts from its first values"
            _warn(held, text)
    for key, held in read.items():
        if key not in changed and hasattr(held, "apply_gradients"):
            text = "is in inputs= and not in outputs=, so its changes are lost"
            _warn(held, text)


def _warn(held: Any, text: str) -> None:
    name = "tn.random.state" if held is random.state else f"the state of {type(held).__name__}"
    place = frames_of_package() + 1
    warnings.warn(f"compile: {name} {text}: name it in both", stacklevel=place)


def _holders(state: Any) -> dict[int, Any]:
    """Return the modules, the optimizers and the random state in a tree, by what they hold."""
    found: dict[int, Any] = {}
    rest = [state]
    while rest:
        each = rest.pop()
        if isinstance(each, (list, tuple)):
            rest.extend(each)
        elif type(each) is dict:
            rest.extend(each.values())
        elif each is random.state:
            found[id(each)] = each
        elif callable(getattr(each, "modules", None)):
            found |= {id(vars(module)): module for module in each.modules()}
        elif hasattr(each, "apply_gradients"):
            found[id(each.state)] = each
    return found
