"""Functions with derivatives and batching of their own."""

from __future__ import annotations

import functools
import types
from collections.abc import Callable
from typing import Any

from . import _core
from .flat_function import FlatFunction, as_tensors, check_alike

Rule = Callable[..., Any]


class custom_function:
    """A function whose derivatives are given by rules; what is not given follows from the function.
    (Only where a vjp is given and no jvp, there is none forwards: `jacrev(grad(f))` for a hessian.)

    Rules see the positional arguments: the argument itself when there is one, else a tuple of them.
    There is no derivative in tensors given by name, nor in those that the function closes over.

    - `vjp(primals, cotangents, outputs)` returns cotangents like `primals`; None for zeros
    - `jvp(primals, tangents)` returns tangents like the result
    - `vmap(inputs, axes)` returns the results and their axes; the axes of `inputs` are 0, or None
      for what is the same for every example

        >>> @tn.custom_function
        ... def clipped(x):
        ...     return tn.clip(x, -1, 1)
        >>> @clipped.vjp
        ... def clipped_vjp(x, ct, y):
        ...     return ct  # as if it were not there
        >>> tn.grad(lambda x: clipped(x) * 3)(7.0)
        tensor(3., dtype=float32)
    """

    def __init__(self, f: Callable[..., Any]) -> None:
        if not callable(f):
            _core._fail("type", f"custom_function: not a function: {type(f).__name__}")
        functools.update_wrapper(self, f)  # first: it copies the rules of a custom `f` too
        self._f = f
        self._vjp: Rule | None = None
        self._jvp: Rule | None = None
        self._vmap: Rule | None = None

    def vjp(self, rule: Rule) -> Rule:
        """Sets the rule for cotangents; usable as a decorator."""
        self._vjp = rule
        return rule

    def jvp(self, rule: Rule) -> Rule:
        """Sets the rule for tangents; usable as a decorator."""
        self._jvp = rule
        return rule

    def vmap(self, rule: Rule) -> Rule:
        """Sets the rule for batches; usable as a decorator."""
        self._vmap = rule
        return rule

    def __get__(self, instance: object, owner: type | None = None) -> Any:
        """Binds as a function does; rules are then given the instance among the arguments."""
        return self if instance is None else types.MethodType(self, instance)

    def __call__(self, *args: Any, **kwargs: Any) -> Any:
        call = _CustomCall(self._f, args, kwargs)
        made = _core._custom(
            call.flat,
            call.given.tensors,
            self._vjp and functools.partial(call.vjp, self._vjp),
            self._jvp and functools.partial(call.jvp, self._jvp),
            self._vmap and functools.partial(call.vmap, self._vmap),
            call.constants,
        )
        return call.flat.results.with_tensors(made)


class _CustomCall:
    """The rules of one call, on lists of tensors."""

    def __init__(self, f: Rule, args: tuple[Any, ...], kwargs: dict[str, Any]) -> None:
        self.single = len(args) == 1
        self.args = _core._TensorTree(args)
        self.given = _core._TensorTree((args, kwargs))
        self.constants = [k for k in kwargs for _ in _core._TensorTree(kwargs[k]).tensors]
        self.flat = FlatFunction("custom_function", f, self.given, keywords=True)

    def _seen(self, args: tuple[Any, ...]) -> Any:
        return args[0] if self.single else args

    def _primals(self, values: list[Any]) -> Any:
        """The positional arguments as rules see them."""
        return self._seen(self.args.with_tensors(values))

    def _beside_primals(self, values: list[Any]) -> Any:
        """A tree like the positional arguments, with None where there is no tensor."""
        return self._seen(self.args.derivatives(values))

    def vjp(self, rule: Rule, primals: list[Any], cts: list[Any], outputs: list[Any]) -> list[Any]:
        results = self.flat.results
        made = rule(
            self._primals(primals), results.derivatives(cts), results.with_tensors(outputs)
        )
        return self.args.matching(
            (made,) if self.single else made,
            "custom_function: cotangents and arguments differ in structure",
        )

    def jvp(self, rule: Rule, primals: list[Any], tangents: list[Any]) -> list[Any]:
        made = rule(self._primals(primals), self._beside_primals(tangents))
        return self.flat.results.matching(
            made, "custom_function: tangents and results differ in structure"
        )

    def vmap(
        self, rule: Rule, size: int, batched: list[bool], args: list[Any]
    ) -> tuple[list[Any], list[bool]]:
        axes = [0 if b else None for b in batched]
        made = rule(self._primals(args), self._beside_primals(axes))
        if not isinstance(made, tuple) or len(made) != 2:
            _core._fail("type", "custom_function: vmap must return results and their axes")
        results = _core._TensorTree(as_tensors(made[0]))
        check_alike("custom_function: vmap", results, self.flat.results)
        out_axes = results.axes(made[1], "axes and results")
        moved = [
            t if not axis else _core.moveaxis(t, axis, 0)
            for t, axis in zip(results.tensors, out_axes)
        ]
        return moved, [axis is not None for axis in out_axes]
