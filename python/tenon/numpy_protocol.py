"""What NumPy's functions do with tensors: `np.sin(t)` is `tn.sin(t)`, also in traced functions.

A function that has a counterpart here runs it and gives tensors. The others run on arrays: ufuncs
give tensors of what comes out, other functions what NumPy gives.
"""

from __future__ import annotations

from . import _core

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable
    from typing import Any

# Ufuncs whose ops have other names here.
_UFUNCS = {
    "invert": "bitwise_invert",
    "left_shift": "bitwise_left_shift",
    "right_shift": "bitwise_right_shift",
    "rint": "round",
}
# What `ufunc.reduce` and `ufunc.accumulate` are, along `axis`.
_REDUCTIONS = {
    "add": "sum",
    "logical_and": "all",
    "logical_or": "any",
    "maximum": "max",
    "minimum": "min",
    "multiply": "prod",
}
_SCANS = {"add": "cumulative_sum", "multiply": "cumulative_prod"}
_QUESTIONS: dict[str, Callable[[Any], Any]] = {  # answered without a value
    "iscomplexobj": lambda x: x.dtype.kind == "c",
    "isrealobj": lambda x: x.dtype.kind != "c",
    "ndim": lambda x: x.ndim,
    "shape": lambda x: x.shape,
}


def _arrays(value: Any) -> Any:
    """`value` with arrays in place of tensors, also in lists, tuples and dicts."""
    if isinstance(value, _core.Tensor):
        return value.numpy()
    if type(value) in (list, tuple):
        return type(value)(map(_arrays, value))
    if type(value) is dict:
        return {key: _arrays(each) for key, each in value.items()}
    return value


def _tensors(value: Any) -> Any:
    if isinstance(value, tuple):
        return tuple(map(_tensors, value))
    return _core.asarray(value)


def array_ufunc(self: Any, ufunc: Any, method: str, *inputs: Any, **options: Any) -> Any:
    out = options.pop("out", None)
    if out is not None:
        if any(isinstance(each, _core.Tensor) for each in out):
            _core._fail("type", f"{ufunc.__name__}: out is a tensor, which never changes")
        return getattr(ufunc, method)(*_arrays(inputs), out=out, **_arrays(options))
    name = ufunc.__name__
    if method == "__call__" and not options:
        found = getattr(_core, _UFUNCS.get(name, name), None)
        if found is not None:
            return found(*inputs)
    elif method in ("reduce", "accumulate") and set(options) <= {"axis", "keepdims"}:
        known = _REDUCTIONS if method == "reduce" else _SCANS
        if name in known:
            return getattr(_core, known[name])(inputs[0], **({"axis": 0} | options))
    return _tensors(getattr(ufunc, method)(*_arrays(inputs), **_arrays(options)))


def array_function(self: Any, func: Any, types: Any, args: Any, kwargs: Any) -> Any:
    if len(args) == 1 and not kwargs and (answer := _QUESTIONS.get(func.__name__)):
        return answer(args[0])
    if func not in _counterparts:
        _counterparts[func] = _counterpart(func)
    found = _counterparts[func]
    if found is not None and (call := found(args, kwargs)) is not None:
        return call()
    return func(*_arrays(args), **_arrays(kwargs))


_counterparts: dict[Any, Any] = {}  # by NumPy's function: what `_counterpart` found


def _counterpart(func: Any) -> Any:
    """From arguments of NumPy's function to a call of ours; None where there is none."""
    import inspect
    import operator

    place = func.__module__.partition("numpy.")[2]
    try:
        ours = operator.attrgetter(f"{place}.{func.__name__}".lstrip("."))(_namespace())
        theirs = inspect.signature(func)
        parameters = list(inspect.signature(ours).parameters.values())
    except (AttributeError, TypeError, ValueError):
        return None
    names = {p.name for p in parameters}

    def name_of(theirs_name: str, place: int) -> str | None:
        """Of the parameter of ours with that meaning: the same name, or an operand's place."""
        if theirs_name in names:
            return theirs_name
        needed = place < len(parameters) and parameters[place].default is inspect.Parameter.empty
        return parameters[place].name if needed else None

    def call(args: Any, kwargs: Any) -> Callable[[], Any] | None:
        if any(p.kind is p.VAR_POSITIONAL for p in theirs.parameters.values()):
            operands = args[isinstance(args[0], str) :]  # after the pattern of einsum
            plain = not kwargs and all(hasattr(each, "dtype") for each in operands)
            return (lambda: ours(*args)) if plain else None
        bound = theirs.bind(*args, **kwargs).arguments
        given: dict[str, Any] = {}
        for place, (name, parameter) in enumerate(theirs.parameters.items()):
            if name not in bound or bound[name] is parameter.default or bound[name] is None:
                continue
            here = name_of(name, place)
            if here is None or here in given:
                return None
            given[here] = bound[name]
        by_place = [given.pop(p.name) for p in parameters if p.kind is p.POSITIONAL_ONLY]
        return lambda: ours(*by_place, **given)

    return call


def _namespace() -> Any:
    import tenon

    return tenon


def _jax_array(self: Any) -> Any:
    """A JAX array of the elements, for `jnp.asarray(t)`."""
    import jax.numpy as jnp

    return jnp.asarray(self.numpy())


def install(tensor: Any) -> None:
    tensor.__array_ufunc__ = array_ufunc
    tensor.__array_function__ = array_function
    tensor.__jax_array__ = _jax_array
