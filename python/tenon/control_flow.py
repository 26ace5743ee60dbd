"""Control flow that is recorded: decisions and loops on values that are not known yet."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, SupportsIndex

from . import _core
from .flat_function import FlatFunction, as_tensors, check_alike, check_callable


def cond(
    pred: Any, true_fn: Callable[..., Any], false_fn: Callable[..., Any], *operands: Any
) -> Any:
    """`true_fn(*operands)` where `pred` is true, `false_fn(*operands)` where it is not.

    Only the chosen function is computed, except under `vmap` with a `pred` that differs between
    examples: then both are. They must return trees of the same structure, shapes and types.

        >>> tn.cond(tn.array(2.0) > 1, lambda x: x + 1, lambda x: x - 1, tn.array(5.0))
        tensor(6., dtype=float32)
    """
    given = _core._TensorTree(operands)
    yes = FlatFunction("cond", true_fn, given, number=_core._number)
    no = FlatFunction("cond", false_fn, given, like=yes, number=_core._number)
    made = _core._cond(pred, yes, no, given.tensors)
    return (yes.results or no.results).with_tensors(made)


def while_loop(cond_fn: Callable[[Any], Any], body_fn: Callable[[Any], Any], init: Any) -> Any:
    """`body_fn` applied to its own result, from `init`, as long as `cond_fn` of it is true.

    The body returns a tree of the structure, shapes and types of `init`. Derivatives go forward
    only (`jvp`); for `grad` use `scan`, whose length is known.

        >>> tn.while_loop(lambda x: x < 100, lambda x: x * 2, tn.array(3.0))
        tensor(192., dtype=float32)
    """
    check_callable("while_loop", body_fn)
    given = _core._TensorTree((as_tensors(init, _core._number),))
    going = FlatFunction("while_loop", cond_fn, given)
    body = FlatFunction(
        "while_loop", lambda carry: (body_fn(carry),), given, like=given, number=_core._number
    )
    return given.with_tensors(_core._while_loop(going, body, given.tensors))[0]


def scan(
    f: Callable[[Any, Any], tuple[Any, Any]],
    init: Any,
    xs: Any = None,
    length: int | None = None,
    reverse: bool = False,
) -> tuple[Any, Any]:
    """A loop over the first axis of `xs`: `carry, y = f(carry, x)`.

    Returns the last carry and the `y` of all steps, stacked. Without `xs`, `length` says how often.
    `reverse` starts from the end of `xs`; each `y` is put where its `x` came from. The function is
    traced once: random numbers that differ from step to step need keys among `xs`.

        >>> tn.scan(lambda total, x: (total + x, total), tn.array(0.0), tn.array([1.0, 2.0, 3.0]))
        (tensor(6., dtype=float32), tensor([0., 1., 3.], dtype=float32))
    """
    check_callable("scan", f)
    if length is not None and not isinstance(length, SupportsIndex):
        _core._fail("type", f"scan: length must be an integer, not {length!r}")
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
