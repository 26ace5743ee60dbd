"""Recorded control flow: branches and loops on values that are unknown while tracing."""

from __future__ import annotations

import operator
from collections.abc import Callable, Sequence
from typing import Any, SupportsIndex

from . import _core, tree
from .flat_function import FlatFunction, as_tensors, check_alike, check_callable
from .module_changes import without_changes


def cond(
    pred: Any, true_fn: Callable[..., Any], false_fn: Callable[..., Any], *operands: Any
) -> Any:
    """`true_fn(*operands)` if `pred` is true, else `false_fn(*operands)`.

    Only the selected branch runs, except under `vmap` with a `pred` that differs between examples:
    then both run. Both must return trees of the same structure, shapes and types.

        >>> tn.cond(tn.array(2.0) > 1, lambda x: x + 1, lambda x: x - 1, tn.array(5.0))
        tensor(6., dtype=float32)
    """
    for f in (true_fn, false_fn):
        check_callable("cond", f)
    given = _core._TensorTree(operands)
    true_fn, false_fn = without_changes("cond", true_fn), without_changes("cond", false_fn)
    yes = FlatFunction("cond", true_fn, given, number=_core._number)
    no = FlatFunction("cond", false_fn, given, like=yes, number=_core._number)
    made = _core._cond(pred, yes, no, given.tensors)
    return (yes.made or no.results).with_tensors(made)


def while_loop(cond_fn: Callable[[Any], Any], body_fn: Callable[[Any], Any], init: Any) -> Any:
    """Applies `body_fn` repeatedly, starting from `init`, while `cond_fn` of the value is true.

    The body returns a tree with the structure, shapes and types of `init`. Only forward-mode
    derivatives exist (`jvp`); for `grad` use `scan`, whose length is known.

        >>> tn.while_loop(lambda x: x < 100, lambda x: x * 2, tn.array(3.0))
        tensor(192., dtype=float32)
    """
    for f in (body_fn, cond_fn):
        check_callable("while_loop", f)
    cond_fn, body_fn = (without_changes("while_loop", f) for f in (cond_fn, body_fn))
    given = _core._TensorTree((as_tensors(init, _core._number),))
    going = FlatFunction("while_loop", cond_fn, given)
    body = FlatFunction(
        "while_loop", lambda carry: (body_fn(carry),), given, like=given, number=_core._number
    )
    return given.with_tensors(_core._while_loop(going, body, given.tensors))[0]


def switch(index: Any, branches: Sequence[Callable[..., Any]], *operands: Any) -> Any:
    """`branches[index](*operands)`; an index out of bounds is clamped.

    Only the selected branch runs, except under `vmap` with an `index` that differs between
    examples. All branches return trees of the same structure, shapes and types.

        >>> tn.switch(2, [lambda x: x, lambda x: x * 10, lambda x: x * 100], tn.array(3.0))
        tensor(300., dtype=float32)
    """
    if not branches:
        _core._fail("value", "switch: there are no branches")
    index = _core.asarray(index)
    if index.ndim or not str(index.dtype.name).startswith(("int", "uint")):
        _core._fail("type", f"switch: index is one integer, not {index.dtype.name}{index.shape}")

    def between(first: int, end: int) -> Callable[..., Any]:
        """The branches from `first` on, as a function of the index and the operands."""
        if end - first == 1:
            return lambda index, *given: branches[first](*given)
        middle = (first + end) // 2
        lower, upper = between(first, middle), between(middle, end)
        return lambda index, *given: cond(index < middle, lower, upper, index, *given)

    return between(0, len(branches))(index, *operands)


def fori_loop(
    lower: Any, upper: Any, body_fun: Callable[[Any, Any], Any], init_val: Any
) -> Any:
    """`val = body_fun(i, val)` for i in range(lower, upper), starting from `init_val`.

    With integer bounds it is a `scan`, which is differentiable in both modes; with tensor bounds it
    is a `while_loop`.

        >>> tn.fori_loop(0, 5, lambda i, total: total + i, tn.array(0))
        tensor(10, dtype=int64)
    """
    check_callable("fori_loop", body_fun)
    if not isinstance(lower, _core.Tensor) and not isinstance(upper, _core.Tensor):
        for bound in (lower, upper):
            if not isinstance(bound, SupportsIndex):
                _core._fail("type", f"fori_loop: a bound must be an integer, not {bound!r}")
        length = max(0, operator.index(upper) - operator.index(lower))
        if length >= 2**63:
            _core._fail("value", f"fori_loop: more steps than can be counted: {length}")
        start = _core.asarray(operator.index(lower), dtype=_core.int64)
        (_, made), _ = scan(  # counting needs no memory, as elements of arange would
            lambda carry, _: ((carry[0] + 1, body_fun(carry[0], carry[1])), None),
            (start, init_val),
            length=length,
        )
        return made
    first, end = (_core.asarray(bound).astype(_core.int64) for bound in (lower, upper))
    made = while_loop(
        lambda carry: carry[0] < end,
        lambda carry: (carry[0] + 1, body_fun(carry[0], carry[1])),
        (first, init_val),
    )
    return made[1]


def map(f: Callable[[Any], Any], xs: Any) -> Any:
    """Applies `f` to each element along the first axis of `xs` in sequence, and stacks the results.

    `vmap` computes all of them at once; `map` needs the memory of one.

        >>> tn.map(lambda x: x * x, tn.array([1.0, 2.0, 3.0]))
        tensor([1., 4., 9.], dtype=float32)
    """
    check_callable("map", f)
    return scan(lambda carry, x: (carry, f(x)), (), xs)[1]


def associative_scan(
    fn: Callable[[Any, Any], Any], elems: Any, reverse: bool = False, axis: int = 0
) -> Any:
    """Prefix results of the associative `fn` along `axis`: a, fn(a, b), fn(fn(a, b), c) ...

    `fn` receives trees like `elems` with several elements along the axis, and combines them
    elementwise; it is called a logarithmic number of times. `reverse` starts from the end.

        >>> tn.associative_scan(tn.maximum, tn.array([3, 1, 4, 1, 5])).tolist()
        [3, 3, 4, 4, 5]
    """
    check_callable("associative_scan", fn)
    given, structure = tree.flatten(as_tensors(elems))
    if not given:
        _core._fail("value", "associative_scan: there are no tensors")
    given = [_core.moveaxis(x, axis, 0) for x in given]
    lengths = {x.shape[0] for x in given}
    if len(lengths) > 1:
        _core._fail("value", f"associative_scan: lengths differ: {sorted(lengths)}")
    if reverse:
        given = [_core.flip(x, 0) for x in given]

    def combine(earlier: list[Any], later: list[Any]) -> list[Any]:
        parts = (tree.unflatten(structure, part) for part in (earlier, later))
        made, structure_made = tree.flatten(fn(*parts))
        if structure_made != structure:
            _core._fail("value", "associative_scan: the function changes the structure")
        for x, before in zip(made, earlier):
            if getattr(x, "shape", None) != before.shape:
                text = f"{tuple(before.shape)} to {getattr(x, 'shape', type(x).__name__)}"
                _core._fail("value", f"associative_scan: the function changes the shape: {text}")
        return made

    made = _running(combine, given)
    if reverse:
        made = [_core.flip(x, 0) for x in made]
    return tree.unflatten(structure, [_core.moveaxis(x, 0, axis) for x in made])


def _running(combine: Callable[[list[Any], list[Any]], list[Any]], xs: list[Any]) -> list[Any]:
    """Results of pairs give those at odd places; one more step gives those at even ones."""
    length = xs[0].shape[0]
    if length < 2:
        return xs
    pairs = combine([x[: length - 1 : 2] for x in xs], [x[1::2] for x in xs])
    odd = _running(combine, pairs)
    even = [x[:1] for x in xs]
    if length > 2:
        before = [x[: (length - 1) // 2] for x in odd]
        later = combine(before, [x[2::2] for x in xs])
        even = [_core.concat([first, rest]) for first, rest in zip(even, later)]
    return [_interleaved(e, o) for e, o in zip(even, odd)]


def _interleaved(even: _core.Tensor, odd: _core.Tensor) -> _core.Tensor:
    """even[0], odd[0], even[1] ..."""
    count = odd.shape[0]
    joined = _core.stack([even[:count], odd], axis=1)
    joined = _core.reshape(joined, (2 * count, *odd.shape[1:]))
    return _core.concat([joined, even[count:]]) if even.shape[0] > count else joined


def scan(
    f: Callable[[Any, Any], tuple[Any, Any]],
    init: Any,
    xs: Any = None,
    length: int | None = None,
    reverse: bool = False,
) -> tuple[Any, Any]:
    """A loop over the first axis of `xs`: `carry, y = f(carry, x)`.

    Returns the last carry and the `y` of all steps, stacked. Without `xs`, `length` is the number
    of steps. `reverse` starts from the end of `xs`; each `y` is at the position of its `x`. The
    function is traced once. Steps that draw from the random state draw different numbers.

        >>> tn.scan(lambda total, x: (total + x, total), tn.array(0.0), tn.array([1.0, 2.0, 3.0]))
        (tensor(6., dtype=float32), tensor([0., 1., 3.], dtype=float32))
    """
    check_callable("scan", f)
    if length is not None and not isinstance(length, SupportsIndex):
        _core._fail("type", f"scan: length must be an integer, not {length!r}")
    f = without_changes("scan", f)
    start = _core._TensorTree(as_tensors(init, _core._number))
    given = _core._TensorTree(xs, numbers=True)
    last: list[_core._TensorTree] = []

    def flat(tensors: list[_core.Tensor]) -> list[_core.Tensor]:
        carries = len(start.tensors)
        made = f(start.with_tensors(tensors[:carries]), given.with_tensors(tensors[carries:]))
        if not isinstance(made, tuple) or len(made) != 2:
            _core._fail("type", "scan: the function must return a pair: carry and y")
        carry, y = (_core._TensorTree(as_tensors(part, _core._number)) for part in made)
        check_alike("scan: carry", carry, start)
        carry.check_whole("scan")
        y.check_whole("scan")
        last[:] = [y]
        return carry.tensors + y.tensors

    carry, ys = _core._scan(flat, start.tensors, given.tensors, length, reverse)
    return start.with_tensors(carry), last[0].with_tensors(ys)
