"""Functions with custom derivatives and batching rules."""

from __future__ import annotations

import functools
import threading
import types
from collections.abc import Callable, Sequence
from typing import Any

from . import _core, tree
from .flat_function import FlatFunction, as_tensors, check_alike, check_callable
from .transforms import vjp as vjp_of

Rule = Callable[..., Any]


class _Running(threading.local):
    def __init__(self) -> None:
        self.forward: list[custom_vjp] = []  # those whose `fwd` runs instead of the function


_on_this_thread = _Running()


class custom_function:
    """A function with custom derivative rules; missing rules are derived from the function.

    The exception: with a vjp but no jvp there is no forward derivative; use `jacrev(grad(f))` for a
    Hessian. Rules receive the positional arguments: the argument itself if there is one, else a
    tuple. Keyword arguments and tensors that the function closes over have no derivative.

    - `vjp(primals, cotangents, outputs)` returns cotangents like `primals`; None means zero
    - `jvp(primals, tangents)` returns tangents like the result
    - `vmap(inputs, axes)` returns the results and their axes; the axes of `inputs` are 0, or None
      for inputs shared by all examples

        >>> @tn.custom_function
        ... def clipped(x):
        ...     return tn.clip(x, -1, 1)
        >>> @clipped.vjp
        ... def clipped_vjp(x, ct, y):
        ...     return ct  # the straight-through estimator
        >>> tn.grad(lambda x: clipped(x) * 3)(7.0)
        tensor(3., dtype=float32)
    """

    def __init__(self, f: Callable[..., Any]) -> None:
        check_callable("custom_function", f)
        functools.update_wrapper(self, f)  # first: it copies the rules of a custom `f` too
        self._f = f
        self._vjp: Rule | None = None
        self._jvp: Rule | None = None
        self._vmap: Rule | None = None

    def vjp(self, rule: Rule) -> Rule:
        """Sets the reverse-mode rule; usable as a decorator."""
        self._vjp = rule
        return rule

    def jvp(self, rule: Rule) -> Rule:
        """Sets the forward-mode rule; usable as a decorator."""
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


class custom_vjp:
    """A function with a reverse-mode rule, in JAX's form.

    `defvjp(fwd, bwd)` sets the rule. `fwd` takes the arguments of the function and returns its
    result and residuals for `bwd`. `bwd` takes the residuals and the cotangents of the result, and
    returns a tuple with one cotangent per argument, None for zero. `fwd` runs instead of the
    function, and may call it. Arguments at `nondiff_argnums` are not differentiated; `bwd` receives
    them first.

        >>> @tn.custom_vjp
        ... def clipped(x):
        ...     return tn.clip(x, -1, 1)
        >>> clipped.defvjp(lambda x: (clipped(x), x), lambda x, ct: (ct,))
        >>> tn.grad(lambda x: clipped(x) * 3)(7.0)
        tensor(3., dtype=float32)
    """

    def __init__(self, fun: Callable[..., Any], nondiff_argnums: Sequence[int] = ()) -> None:
        check_callable("custom_vjp", fun)
        functools.update_wrapper(self, fun)
        self.fun = fun
        self._fixed = tuple(nondiff_argnums)
        self._fwd: Rule | None = None
        self._bwd: Rule | None = None

    def defvjp(self, fwd: Rule, bwd: Rule) -> None:
        """Sets the rule: `fwd(*args)` gives the result and what `bwd` takes."""
        check_callable("defvjp", fwd)
        check_callable("defvjp", bwd)
        self._fwd, self._bwd = fwd, bwd

    def __get__(self, instance: object, owner: type | None = None) -> Any:
        return self if instance is None else types.MethodType(self, instance)

    def __call__(self, *args: Any, **kwargs: Any) -> Any:
        if self in _on_this_thread.forward:  # `fwd` calls the function to get its result
            return self.fun(*args, **kwargs)
        if self._fwd is None or self._bwd is None:
            _core._fail("value", f"custom_vjp: {_name_of(self.fun)} has no rule; call defvjp first")
        call = _VjpCall(self, self._fwd, self._bwd, args, kwargs)
        held = custom_function(call.forward)
        held.vjp(call.backward)
        return held(*call.varying)[0]


class _VjpCall:
    """One call of a `custom_vjp`: a custom function that returns the residuals too."""

    def __init__(
        self, f: custom_vjp, fwd: Rule, bwd: Rule, args: tuple[Any, ...], kwargs: dict[str, Any]
    ) -> None:
        self._f, self._fwd, self._bwd, self._kwargs = f, fwd, bwd, kwargs
        self._fixed, self.varying, self._whole = _split(f._fixed, args)
        self._kept: list[Any] = []

    def forward(self, *given: Any) -> tuple[Any, list[_core.Tensor]]:
        _on_this_thread.forward.append(self._f)
        try:
            result, leaves, structure, places = self._run(given)
        finally:
            _on_this_thread.forward.pop()
        self._kept = [leaves, structure, places]
        return result, [leaves[i] for i in places]

    def _run(self, given: Sequence[Any]) -> tuple[Any, list[Any], Any, list[int]]:
        """Return the result of `fwd`, its residuals, and which of these are tensors."""
        made = self._fwd(*self._whole(given), **self._kwargs)
        if not isinstance(made, tuple) or len(made) != 2:
            _core._fail("type", "custom_vjp: fwd must return a pair: result and residuals")
        leaves, structure = tree.flatten(made[1])
        places = [i for i, leaf in enumerate(leaves) if isinstance(leaf, _core.Tensor)]
        return made[0], leaves, structure, places

    def backward(self, primals: Any, cts: Any, outputs: Any) -> Any:
        leaves, structure, places = self._kept
        single = len(self.varying) == 1
        residuals = list(leaves)
        values = self._residuals((primals,) if single else primals, outputs[1])
        for place, value in zip(places, values):
            residuals[place] = value
        whole_cts = _filled(cts[0], outputs[0])
        made = self._bwd(*self._fixed, tree.unflatten(structure, residuals), whole_cts)
        if not isinstance(made, tuple) or len(made) != len(self.varying):
            _core._fail(
                "type",
                f"custom_vjp: bwd must return a tuple of {len(self.varying)} cotangents, one for "
                "each argument",
            )
        return made[0] if single else made

    def _residuals(self, primals: Sequence[Any], values: list[_core.Tensor]) -> list[_core.Tensor]:
        """Return the residuals as a function of the arguments: `bwd` may be differentiated again.

        Their own derivative runs `fwd` once more. It calls the function with its rule then, so that
        a second derivative is the derivative of the rule too.
        """
        if not values:
            return values
        count, places = len(primals), self._kept[2]

        def of_primals(*given: Any) -> list[Any]:
            _, leaves, _, _ = self._run(given)
            return [leaves[i] for i in places]

        def rule(given: Sequence[Any], cts: Any, _: Any) -> tuple[Any, ...]:
            _, through = vjp_of(of_primals, given[:count], cts)
            return (*through, *(None for _ in values))

        held = custom_function(lambda *given: list(given[count:]))
        held.vjp(rule)
        made: list[_core.Tensor] = held(*primals, *map(_core.stop_gradient, values))
        return made


class custom_jvp:
    """A function with a forward-mode rule, in JAX's form; reverse mode is derived from it.

    `defjvp(jvp)` sets the rule: `jvp(primals, tangents)` takes tuples and returns the result and
    its tangents. `defjvps` sets one rule per argument instead. Arguments at `nondiff_argnums` are
    not differentiated; the rule receives them first.

        >>> @tn.custom_jvp
        ... def sin_of(x):
        ...     return tn.sin(x)
        >>> @sin_of.defjvp
        ... def sin_jvp(primals, tangents):
        ...     return sin_of(primals[0]), tn.cos(primals[0]) * tangents[0]
        >>> tn.grad(sin_of)(0.0)
        tensor(1., dtype=float32)
    """

    def __init__(self, fun: Callable[..., Any], nondiff_argnums: Sequence[int] = ()) -> None:
        check_callable("custom_jvp", fun)
        functools.update_wrapper(self, fun)
        self.fun = fun
        self._fixed = tuple(nondiff_argnums)
        self._jvp: Rule | None = None

    def defjvp(self, jvp: Rule) -> Rule:
        """Sets the rule for all arguments; usable as a decorator."""
        check_callable("defjvp", jvp)
        self._jvp = jvp
        return jvp

    def defjvps(self, *jvps: Rule | None) -> None:
        """Sets a rule for each argument, `jvp(tangent, result, *primals)`; None: it has none."""

        def jvp(primals: tuple[Any, ...], tangents: tuple[Any, ...]) -> tuple[Any, Any]:
            result = self(*primals)
            parts = [f(t, result, *primals) for f, t in zip(jvps, tangents) if f is not None]
            zeros = tree.map(_core.zeros_like, result)
            return result, functools.reduce(lambda a, b: tree.map(_core.add, a, b), parts, zeros)

        self._jvp = jvp

    def __get__(self, instance: object, owner: type | None = None) -> Any:
        return self if instance is None else types.MethodType(self, instance)

    def __call__(self, *args: Any, **kwargs: Any) -> Any:
        jvp = self._jvp
        if jvp is None:
            _core._fail("value", f"custom_jvp: {_name_of(self.fun)} has no rule; call defjvp first")
        fixed, varying, whole = _split(self._fixed, args)

        def tangents_of(primals: Any, tangents: Any) -> Any:
            if len(varying) == 1:
                primals, tangents = (primals,), (tangents,)
            made = jvp(*fixed, primals, _filled(tangents, primals))
            if not isinstance(made, tuple) or len(made) != 2:
                _core._fail("type", "custom_jvp: the rule must return a pair: result and tangents")
            return made[1]

        held = custom_function(lambda *given: self.fun(*whole(given), **kwargs))
        held.jvp(tangents_of)
        return held(*varying)


def _name_of(f: Any) -> str:
    return getattr(f, "__name__", type(f).__name__)


def _split(
    fixed: tuple[int, ...], args: tuple[Any, ...]
) -> tuple[list[Any], list[Any], Callable[[Sequence[Any]], list[Any]]]:
    """Arguments at `fixed`, the others, and all of them again with other values for the latter."""
    places = {i % len(args) for i in fixed} if args else set()
    others = [i for i in range(len(args)) if i not in places]

    def whole(varying: Sequence[Any]) -> list[Any]:
        made = list(args)
        for place, value in zip(others, varying):
            made[place] = value
        return made

    return [args[i] for i in sorted(places)], [args[i] for i in others], whole


def _filled(derivatives: Any, like: Any) -> Any:
    """Tangents or cotangents with zeros where there are none."""
    if derivatives is None:
        return tree.map(lambda x: _core.zeros_like(x), like)
    if isinstance(derivatives, (list, tuple)) and isinstance(like, (list, tuple)):
        return type(like)(_filled(d, x) for d, x in zip(derivatives, like))
    if isinstance(derivatives, dict) and isinstance(like, dict):
        return {key: _filled(derivatives[key], like[key]) for key in like}
    return derivatives


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
