"""Transforms of Python functions on trees of tensors. They nest in any order."""

from __future__ import annotations

import functools
import inspect
import math
from collections.abc import Callable, Sequence
from typing import Any, ParamSpec, TypeVar

from . import _core, tree
from .flat_function import FlatFunction, as_tensors, check_callable
from .module_changes import without_changes

Function = Callable[..., Any]
P = ParamSpec("P")
R = TypeVar("R")


def _parameters(f: Function) -> list[str] | None:
    """The names of the parameters of `f`, or None when it takes any or they are not known."""
    try:
        parameters = inspect.signature(f).parameters.values()
    except (TypeError, ValueError):
        return None
    anything = any(p.kind is p.VAR_KEYWORD for p in parameters)
    return None if anything else [p.name for p in parameters if p.kind is not p.VAR_POSITIONAL]


def _argument_names(f: Function, keys: Sequence[int | str] | None, count: int) -> list[str]:
    """Return names for errors of the arguments at `keys`, by default of the first `count`."""
    try:
        parameters = inspect.signature(f).parameters.values()
        by_name = (inspect.Parameter.KEYWORD_ONLY, inspect.Parameter.VAR_KEYWORD)
        known = [p.name for p in parameters if p.kind not in (*by_name, p.VAR_POSITIONAL)]
    except (TypeError, ValueError):
        known = []
    names = dict(enumerate(known))
    chosen = range(count) if keys is None else keys
    return [k if isinstance(k, str) else names.get(k, f"argument {k}") for k in chosen]


def _several(name: str, what: str, given: Any, kind: type) -> tuple[Any, ...]:
    """One or a sequence of `kind`, as a tuple."""
    several = (given,) if isinstance(given, (kind, str)) else given
    if not isinstance(several, Sequence) or not all(isinstance(n, kind) for n in several):
        wanted = {int: "an integer or a sequence of integers", str: "a name or a sequence of names"}
        _core._fail("type", f"{name}: {what} must be {wanted[kind]}, not {given!r}")
    return tuple(several)


def _keys(
    name: str,
    f: Function,
    argnums: int | Sequence[int] | None,
    argnames: str | Sequence[str] | None,
) -> tuple[tuple[int, ...], tuple[str, ...]]:
    """The positions and names of the arguments to differentiate."""
    if argnums is None:
        argnums = 0 if argnames is None else ()
    positions = _several(name, "argnums", argnums, int)
    names = () if argnames is None else _several(name, "argnames", argnames, str)
    if not positions and not names:
        _core._fail("value", f"{name}: argnums and argnames are both empty")
    known = _parameters(f)
    for n in names:
        if known is not None and n not in known:
            _core._fail("value", f"{name}: no argument {n!r} among {', '.join(known) or 'none'}")
    return positions, names


def value_and_grad(
    f: Callable[P, Any],
    argnums: int | Sequence[int] | None = None,
    argnames: str | Sequence[str] | None = None,
    has_aux: bool = False,
) -> Callable[P, tuple[Any, Any]]:
    """A function that returns the result of `f` together with its gradient.

    `f` returns a scalar, or a tuple that starts with one; the rest of the tuple is returned too.

        >>> loss_and_grad = tn.value_and_grad(lambda w, x: tn.sum(w * x))
        >>> loss_and_grad(tn.array([1.0, 2.0]), tn.array([3.0, 4.0]))
        (tensor(11., dtype=float32), tensor([3., 4.], dtype=float32))

    The arguments mean the same as for `grad`.
    """
    check_callable("grad", f)
    positions, names = _keys("grad", f, argnums, argnames)
    keys = (*positions, *names)
    single = isinstance(argnums, int) or argnums is None
    call = _core._call_value_and_grad

    if not names:

        @functools.wraps(f)
        def wrapper(*args: Any, **kwargs: Any) -> Any:
            value, grads = call(f, args, kwargs, keys, has_aux)
            return value, grads[0] if single else grads

        return wrapper

    @functools.wraps(f)
    def named_wrapper(*args: Any, **kwargs: Any) -> Any:
        value, grads = call(f, args, kwargs, keys, has_aux)
        by_name = dict(zip(names, grads[len(positions) :]))
        if not positions:
            return value, by_name
        by_position = grads[0] if single else grads[: len(positions)]
        return value, (by_position, by_name)

    return named_wrapper


def grad(
    f: Callable[P, Any],
    argnums: int | Sequence[int] | None = None,
    argnames: str | Sequence[str] | None = None,
    has_aux: bool = False,
) -> Callable[P, Any]:
    """A function that returns the gradient of `f`, which returns a scalar.

    `argnums` are the positions of the arguments to differentiate (0 by default), `argnames` the
    names of keyword arguments. The gradient has the structure of the argument; for a sequence of
    positions it is a tuple, for names a dict, for both a pair of these. Arguments are trees of
    floating-point tensors; numbers are float32. With `has_aux`, `f` returns a scalar and another
    value, and the result is the gradient and that value.

        >>> tn.grad(lambda p: tn.sum(p["w"] * p["w"] + p["b"]))({"w": tn.ones(2), "b": 1.0})
        {'w': tensor([2., 2.], dtype=float32), 'b': tensor(2., dtype=float32)}
        >>> tn.grad(tn.grad(lambda x: x**3))(2.0)
        tensor(12., dtype=float32)
    """
    value_and_grad_f = value_and_grad(f, argnums, argnames, has_aux)

    @functools.wraps(f)
    def wrapper(*args: Any, **kwargs: Any) -> Any:
        value, grads = value_and_grad_f(*args, **kwargs)
        return (grads, value[1]) if has_aux else grads

    return wrapper


def vjp(f: Function, primals: Sequence[Any], cotangents: Any = None) -> tuple[Any, Any]:
    """`f(*primals)` and the cotangents of `primals`, from those of the result (reverse mode).

    `cotangents` is a tree like the result, in which None means zero. Without it, the second value
    is a function from cotangents of the result to cotangents of `primals`, which can be called any
    number of times. The cotangent of an integer is None.

        >>> y, (dx,) = tn.vjp(tn.square, [tn.array([1.0, 2.0])], tn.array([1.0, 10.0]))
        >>> dx
        tensor([ 2., 40.], dtype=float32)
    """
    check_callable("vjp", f)
    return _core._call_vjp(f, primals, cotangents)


def jvp(f: Function, primals: Sequence[Any], tangents: Sequence[Any]) -> tuple[Any, Any]:
    """`f(*primals)` and the derivative of the result in the direction `tangents` (forward mode).

    `tangents` is a tree like `primals`, in which None means zero.

        >>> tn.jvp(tn.square, [tn.array(3.0)], [tn.array(1.0)])
        (tensor(9., dtype=float32), tensor(6., dtype=float32))
    """
    check_callable("jvp", f)
    return _core._call_jvp(f, primals, tangents)


def vmap(f: Callable[P, R], in_axes: Any = 0, out_axes: Any = 0) -> Callable[P, R]:
    """Vectorizes `f` over a batch axis of its arguments.

    `in_axes` gives the batch axis of each tensor in the arguments, None for tensors shared by all
    examples. It is one axis for everything, or a list with an axis or a tree of axes per argument,
    where an axis applies to all tensors below it. `out_axes` does the same for the results. Keyword
    arguments, and leaves that are not tensors, are shared by all examples.

        >>> pairs = tn.vmap(lambda x, y: tn.sum(x * y), in_axes=(0, None))
        >>> pairs(tn.array([[1.0, 2.0], [3.0, 4.0]]), tn.array([1.0, 10.0]))
        tensor([21., 43.], dtype=float32)
    """
    check_callable("vmap", f)
    traced = without_changes("vmap", lambda *args, **kwargs: as_tensors(f(*args, **kwargs)))
    functools.update_wrapper(traced, f)
    call = _core._call_vmap

    @functools.wraps(f)
    def wrapper(*args: Any, **kwargs: Any) -> Any:
        return call(traced, args, kwargs, in_axes, out_axes)

    return wrapper


def linearize(f: Function, *primals: Any, has_aux: bool = False) -> tuple[Any, ...]:
    """`f(*primals)` and its derivative at that point, as a function of the tangents.

    `f` runs once; the derivative can be called any number of times. With `has_aux`, `f` returns a
    result and another value, which is returned as the third item.

        >>> y, along = tn.linearize(tn.square, tn.array(3.0))
        >>> along(tn.array(1.0)), along(tn.array(10.0))
        (tensor(6., dtype=float32), tensor(60., dtype=float32))
    """
    check_callable("linearize", f)
    aux: list[Any] = []

    def primal(*args: Any) -> Any:
        made = f(*args)
        if not has_aux:
            return made
        if not isinstance(made, tuple) or len(made) != 2:
            _core._fail("type", "linearize: with has_aux the function must return a pair")
        aux[:] = [made[1]]
        return made[0]

    value, pullback = vjp(primal, primals)
    # The pullback is linear, so that its own pullback, anywhere, is the derivative of f.
    zeros = tree.map(_core.zeros_like, value)
    _, along = vjp(lambda ct: pullback(ct), [zeros])

    def tangents_of(*tangents: Any) -> Any:
        if len(tangents) != len(primals):
            _core._fail(
                "type", f"linearize: {len(tangents)} tangents are given for {len(primals)} primals"
            )
        return along(tangents)[0]

    return (value, tangents_of, *aux)


class ShapeDtypeStruct:
    """The shape and the element type of a tensor, without its values."""

    __slots__ = ("dtype", "shape")

    def __init__(self, shape: Sequence[int], dtype: Any) -> None:
        self.shape, self.dtype = tuple(shape), _core.dtype(dtype)

    def __eq__(self, other: object) -> bool:
        if not isinstance(other, ShapeDtypeStruct):
            return NotImplemented
        return (self.shape, self.dtype) == (other.shape, other.dtype)

    def __hash__(self) -> int:
        return hash((self.shape, self.dtype))

    def __repr__(self) -> str:
        return f"ShapeDtypeStruct(shape={self.shape}, dtype={self.dtype.name})"

    @property
    def ndim(self) -> int:
        return len(self.shape)

    @property
    def size(self) -> int:
        return math.prod(self.shape)


def eval_shape(f: Function, *args: Any, **kwargs: Any) -> Any:
    """The result of `f` with a `ShapeDtypeStruct` for every tensor; nothing is computed.

    Arguments may be tensors or any objects with a `shape` and a `dtype`. Reading a value inside `f`
    is an error, as under `compile`.

        >>> tn.eval_shape(lambda x, w: x @ w, tn.zeros((2, 3)), tn.zeros((3, 4)))
        ShapeDtypeStruct(shape=(2, 4), dtype=float32)
    """
    check_callable("eval_shape", f)

    def placed(x: Any) -> Any:
        if isinstance(x, _core.Tensor) or not (hasattr(x, "shape") and hasattr(x, "dtype")):
            return x
        return _core.zeros(tuple(x.shape), x.dtype)

    given = _core._TensorTree(tree.map(placed, (args, kwargs)))
    flat = FlatFunction("eval_shape", without_changes("eval_shape", f), given, keywords=True)
    # The body of a loop of one step is traced without values; the loop itself never runs.
    once = [_core.expand_dims(x, 0) for x in given.tensors]
    _, ys = _core._scan(flat, [], once, None if once else 1, False)

    def described(x: Any) -> Any:
        return ShapeDtypeStruct(x.shape[1:], x.dtype) if isinstance(x, _core.Tensor) else x

    return tree.map(described, flat.results.with_tensors(ys))


def jacrev(f: Callable[P, Any], argnums: int | Sequence[int] = 0) -> Callable[P, Any]:
    """A function that returns the Jacobian of `f`, computed by rows in reverse mode.

    The Jacobian is a tree like the result of `f`, whose leaves are trees like the argument, or
    tuples of these for a sequence of positions. The shape of a leaf is that of the result followed
    by that of the argument.

        >>> tn.jacrev(lambda x: x * tn.sum(x))(tn.array([2.0, 3.0]))
        tensor([[7., 2.],
                [3., 8.]], dtype=float32)
    """
    return _jacobian("jacrev", f, argnums, reverse=True)


def jacfwd(f: Callable[P, Any], argnums: int | Sequence[int] = 0) -> Callable[P, Any]:
    """Like `jacrev`, computed by columns in forward mode: faster for more results than arguments.

    >>> tn.jacfwd(lambda x: x * x * tn.array([1.0, 2.0, 3.0]))(2.0)
    tensor([ 4.,  8., 12.], dtype=float32)
    """
    return _jacobian("jacfwd", f, argnums, reverse=False)


jacobian = jacrev


def hessian(f: Callable[P, Any], argnums: int | Sequence[int] = 0) -> Callable[P, Any]:
    """A function that returns the second derivatives of `f`, which returns a scalar.

    The result is a tree like the argument, whose leaves are trees like the argument.

        >>> tn.hessian(lambda x: tn.sum(x * x * x))(tn.array([3.0, 5.0]))
        tensor([[18.,  0.],
                [ 0., 30.]], dtype=float32)
    """
    return jacfwd(grad(f, argnums), argnums)


def _jacobian(name: str, f: Function, argnums: int | Sequence[int], reverse: bool) -> Function:
    check_callable(name, f)
    keys, _ = _keys(name, f, argnums, None)
    single = isinstance(argnums, int)
    call = _core._call_jacobian

    @functools.wraps(f)
    def wrapper(*args: Any, **kwargs: Any) -> Any:
        return call(f, args, kwargs, keys, single, reverse)

    return wrapper


def checkpoint(f: Callable[P, R], segments: int = 1) -> Callable[P, R]:
    """Rematerialises `f` in derivatives: only its arguments are kept, the rest is recomputed.

    This trades time for memory. Values and gradients are bit-identical (up to the order of a sum,
    if one tensor is used by several checkpoints). `segments` splits `f` into that many parts:
    derivatives also keep the values between parts, and recompute one part at a time.

        >>> block = tn.checkpoint(lambda x, w: tn.tanh(x @ w))
        >>> tn.grad(lambda w: tn.sum(block(tn.ones((2, 2)), w)))(tn.zeros((2, 2)))
        tensor([[2., 2.],
                [2., 2.]], dtype=float32)
    """
    check_callable("checkpoint", f)
    if not isinstance(segments, int) or isinstance(segments, bool) or segments < 1:
        _core._fail("value", f"checkpoint: segments must be 1 or more, not {segments!r}")

    @functools.wraps(f)
    def wrapper(*args: Any, **kwargs: Any) -> Any:
        given = _core._TensorTree((args, kwargs))
        flat = FlatFunction("checkpoint", f, given, keywords=True)
        made = _core._checkpoint(flat, given.tensors, segments)
        return flat.results.with_tensors(made)

    return wrapper
