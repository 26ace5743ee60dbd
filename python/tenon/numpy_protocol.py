"""NumPy functions on tensors: `np.sin(t)` is `tn.sin(t)`, also in traced functions.

A function with a counterpart in Tenon runs it and returns tensors. Others run on arrays, and so do
calls with options or types that the counterpart does not support: ufuncs then return tensors, other
functions return NumPy's result.
"""

from __future__ import annotations

from . import _core
from .numpy_names import dot

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
    "iscomplexobj": lambda x: x.dtype.kind == "complex floating",
    "isrealobj": lambda x: x.dtype.kind != "complex floating",
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
            _core._fail("type", f"{ufunc.__name__}: out= is not supported: tensors are immutable")
        return getattr(ufunc, method)(*_arrays(inputs), out=out, **_arrays(options))
    name = ufunc.__name__
    if method == "__call__" and not options:
        found = getattr(_core, _UFUNCS.get(name, name), None)
        if found is not None:
            return _either(
                lambda: found(*inputs), lambda: _tensors(ufunc(*_arrays(inputs))), inputs
            )
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
    def on_arrays() -> Any:
        return func(*_arrays(args), **_arrays(kwargs))

    if found is not None and (call := found(args, kwargs)) is not None:
        has_choice = any(isinstance(each, str) for each in (*args[1:], *kwargs.values()))
        return _either(call, on_arrays, (args, kwargs), has_choice)
    return on_arrays()


def _either(
    ours: Callable[[], Any], on_arrays: Callable[[], Any], given: Any, has_choice: bool = False
) -> Any:
    """Call `ours`, or NumPy if ours refuses a type that NumPy accepts, such as bool in `max`.

    With `has_choice`, also if ours refuses the value of an option, such as a `mode` of `pad`.
    """
    try:
        return ours()
    except (_core.InvalidType, _core.InvalidValue) as error:
        is_refused = has_choice or isinstance(error, _core.InvalidType)
        if not is_refused or _is_traced(given):  # there are no elements to make arrays of
            raise
    return on_arrays()


def _is_traced(value: Any) -> bool:
    if isinstance(value, _core.Tensor):
        return _core._is_traced(value)
    values = value.values() if type(value) is dict else value
    return type(value) in (list, tuple, dict) and any(map(_is_traced, values))


# Arguments of NumPy's functions, those that are given, as ours have them.


def _in_type(given: dict[str, Any]) -> dict[str, Any]:
    if "floating" in getattr(given.get("dtype"), "kind", ""):  # integers: by rules of NumPy's own
        given["a"] = _core.asarray(given["a"]).astype(given.pop("dtype"))
    return given


def _type(given: Any) -> _core.DType | None:
    """Return the type for a NumPy name, including "i8"; None if Tenon has no such type."""
    import numpy as np

    try:
        known = np.dtype(given) if isinstance(given, str) else given
        return _core.dtype(known) if getattr(known, "isnative", True) else None
    except TypeError:  # also of names that are nothing
        return None


def _deviation(given: dict[str, Any]) -> dict[str, Any]:
    if "ddof" in given:
        given["correction"] = given.pop("ddof")
    return _in_type(given)


def _bounds(given: dict[str, Any]) -> dict[str, Any]:
    return {{"a_min": "min", "a_max": "max"}.get(name, name): v for name, v in given.items()}


def _parts(given: dict[str, Any]) -> dict[str, Any]:
    parts = given.pop("indices_or_sections")
    given["sections" if isinstance(parts, int) else "indices"] = parts
    return given


def _order(given: dict[str, Any]) -> dict[str, Any]:
    """Every sort here is stable, which is one of each kind."""
    given.pop("kind", None)
    given.pop("stable", None)
    if given.get("axis", 0) is None:
        given = {"a": _core.reshape(given["a"], (-1,))}
    return given


def _joined(given: dict[str, Any]) -> dict[str, Any]:
    if given.get("axis", 0) is None:
        given["arrays"] = [_core.reshape(_core.asarray(x), (-1,)) for x in given["arrays"]]
        del given["axis"]
    return given


_ADAPTED: dict[str, Callable[[dict[str, Any]], dict[str, Any]]] = {
    "argsort": _order,
    "clip": _bounds,
    "concatenate": _joined,
    "mean": _in_type,
    "sort": _order,
    "split": _parts,
    "std": _deviation,
    "var": _deviation,
}


def _where(condition: Any, x: Any = None, y: Any = None) -> Any:
    if x is None and y is None:
        return _core.nonzero(_core.asarray(condition))
    return _core.where(condition, x, y)


_OURS: dict[str, Callable[..., Any]] = {  # others of the same name
    "dot": lambda a, b: dot(a, b),
    "tril_indices": _core.tril_indices,
    "triu_indices": _core.triu_indices,
    "where": _where,
}

_counterparts: dict[Any, Any] = {}  # by NumPy's function: what `_counterpart` found


def _counterpart(func: Any) -> Any:
    """Return a function that maps NumPy's arguments to a call of ours, or None."""
    import inspect
    import operator

    place = func.__module__.partition("numpy.")[2]
    name = f"{place}.{func.__name__}".lstrip(".")
    adapt = _ADAPTED.get(name, dict)
    try:
        ours = _OURS.get(name) or operator.attrgetter(name)(_namespace())
        theirs = inspect.signature(func)
        parameters = list(inspect.signature(ours).parameters.values())
    except (AttributeError, TypeError, ValueError):
        return None
    names = {p.name for p in parameters}
    ours_defaults = {p.name: p.default for p in parameters}

    def name_of(theirs_name: str, place: int) -> str | None:
        """Return our parameter of that meaning: with the same name, or an operand at that place."""
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
        defaults = {name: p.default for name, p in theirs.parameters.items()}
        changed = {n: v for n, v in bound.items() if v is not defaults[n]}
        if changed.get("dtype") is not None:
            changed["dtype"] = _type(changed["dtype"])
            if changed["dtype"] is None:
                return None
        changed = adapt(changed)
        given: dict[str, Any] = {}
        places = {name: place for place, name in enumerate(theirs.parameters)}
        for name, value in changed.items():
            here = name_of(name, places.get(name, len(parameters)))
            if here is None or here in given:
                return None
            if value is None and ours_defaults[here] is not None:
                return None  # it says something else than nothing
            given[here] = value
        missing = (p for p in parameters if p.default is p.empty and p.name not in given)
        if any(p.kind not in (p.VAR_POSITIONAL, p.VAR_KEYWORD) for p in missing):
            return None
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
