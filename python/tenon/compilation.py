"""compile: a function traced once for every kind of arguments, then run as one plan."""

from __future__ import annotations

import functools
import inspect
from collections.abc import Callable, Sequence
from typing import Any

from . import _core
from .flat_function import check_callable


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
    count = len(_positional(f)) if any(n < 0 for n in given) else 0
    for n in given:
        if n < -count:
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
    off: str | Sequence[str] = (),
) -> Any:
    """`fun`, traced when it is first called with arguments of some kind, then run as one plan.

    Arguments and results are trees. A call runs a former trace when its tensors have the same
    shapes and element types, its trees the same structure, and everything else is equal; `fun` is
    not called then. A size or a number that has varied is open from the next trace on: any other
    value runs that one. With `shapeless` all sizes are open from the first call on. Static
    arguments are constants as a whole.

        >>> @tn.compile
        ... def gelu(x):
        ...     return x * (1 + tn.erf(x / 2**0.5)) / 2
        >>> gelu(tn.array([-1.0, 0.0, 1.0]))
        tensor([-0.158655,         0,  0.841345], dtype=float32)

    What `fun` closes over is constant. Containers that it reads or changes are given as `inputs`
    and `outputs`: lists, dicts, modules, optimizers, `tn.random.state`, and trees of them. Every
    call reads what the inputs hold then, and puts into the outputs what `fun` does.

        >>> state = {"steps": tn.array(0)}
        >>> @tn.compile(inputs=state, outputs=state)
        ... def step(x):
        ...     state["steps"] = state["steps"] + 1
        ...     return x * state["steps"]
        >>> [step(tn.array(2)).item() for _ in range(3)]
        [2, 4, 6]

    Results may take the memory of what `outputs` replace, where nobody else holds it, and of the
    arguments at `donate_argnums`, which must not be used afterwards.

    `optimization_level` 0 interprets, 1 generates code after one round of simplification, 2 and
    above do all that is known. `off` names passes (`tenon opt --list`) and fusions ("fuse",
    "row-kernels", "epilogue", "bundle") to leave out. Compiled functions can be
    differentiated, batched, and called by other compiled functions.
    """
    options = dict(locals())
    del options["fun"]
    if fun is None:
        return functools.partial(compile, **options)
    check_callable("compile", fun)
    positions, names = _static_arguments(fun, static_argnums, static_argnames)
    made = _core._compile(
        fun,
        inputs,
        outputs,
        shapeless,
        positions,
        names,
        _positions(fun, donate_argnums, "donate_argnums"),
        optimization_level,
        [off] if isinstance(off, str) else list(off),
    )
    return functools.update_wrapper(made, fun)


def show(fun: Callable[..., Any], *args: Any, what: str = "graph", **kwargs: Any) -> str:
    """A stage of the compilation of `fun` for these arguments, as text.

    `what` is "graph" (as traced), "optimized", "loops", "kernels" (machine code), "plan",
    "memory" or "decisions". A function that is not compiled yet is.

        >>> print(tn.show(lambda x: tn.exp(x) + 1, tn.zeros(3)))
        func @main(%x0: f32[3]) -> f32[3] {
          %0 = exp %x0 : f32[3]
          %1 = constant {value=1} : f32[]
          %2 = add %0, %1 : f32[3]
          return %2
        }
    """
    compiled = fun if isinstance(fun, _core.CompiledFunction) else compile(fun)
    return compiled.show(what, *args, **kwargs)
