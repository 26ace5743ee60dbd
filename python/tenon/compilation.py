"""compile: a function traced once for every kind of arguments, then run as one plan."""

from __future__ import annotations

import functools
import inspect
from collections.abc import Callable, Sequence
from typing import Any

from . import _core
from .flat_function import check_callable


def _static_arguments(
    f: Callable[..., Any], argnums: int | Sequence[int], argnames: str | Sequence[str]
) -> tuple[list[int], list[str]]:
    """Positions and names of the static arguments; one that has both is found either way."""
    positions = [argnums] if isinstance(argnums, int) else list(argnums)
    names = [argnames] if isinstance(argnames, str) else list(argnames)
    if not positions and not names:
        return [], []
    if not all(isinstance(n, int) for n in positions) or not all(isinstance(n, str) for n in names):
        _core._fail("type", "compile: static_argnums are integers, static_argnames strings")
    try:
        parameters = list(inspect.signature(f).parameters.values())
    except (TypeError, ValueError):
        parameters = []
    kinds = (inspect.Parameter.POSITIONAL_ONLY, inspect.Parameter.POSITIONAL_OR_KEYWORD)
    known = [p.name for p in parameters if p.kind in kinds]
    for n in positions:
        if n < 0 and -n > len(known):
            _core._fail("index", f"compile: no argument {n} of {len(known)} in static_argnums")
    if parameters and not any(p.kind is p.VAR_KEYWORD for p in parameters):
        for name in names:
            if name not in {p.name for p in parameters}:
                _core._fail("value", f"compile: no argument {name!r} for static_argnames")
    positions = [n + len(known) if n < 0 else n for n in positions]
    names += [known[n] for n in positions if n < len(known)]
    positions += [known.index(name) for name in names if name in known]
    return sorted(set(positions)), sorted(set(names))


def compile(
    fun: Callable[..., Any] | None = None,
    *,
    shapeless: bool = False,
    static_argnums: int | Sequence[int] = (),
    static_argnames: str | Sequence[str] = (),
    optimization_level: int = 3,
    off: str | Sequence[str] = (),
) -> Any:
    """`fun`, traced when it is first called with arguments of some kind, then run as one plan.

    Arguments and results are trees. A call runs a former trace when its tensors have the same
    shapes and element types, its trees the same structure, and everything else is equal; `fun` is
    not called then. What `fun` closes over is constant. Static arguments are constants as a whole.

        >>> @tn.compile
        ... def gelu(x):
        ...     return x * (1 + tn.erf(x / 2**0.5)) / 2
        >>> gelu(tn.array([-1.0, 0.0, 1.0]))
        tensor([-0.158655,         0,  0.841345], dtype=float32)

    `optimization_level` 0 interprets, 1 generates code after one round of simplification, 2 and
    above do all that is known. `off` names passes (`tenon opt --list`) and fusions ("fuse",
    "row-kernels", "epilogue", "bundle") to leave out. Compiled functions can be
    differentiated, batched, and called by other compiled functions. A draw of random numbers
    without a key takes its key while tracing, once for all calls, and warns: pass keys.
    """
    if fun is None:
        return functools.partial(
            compile,
            shapeless=shapeless,
            static_argnums=static_argnums,
            static_argnames=static_argnames,
            optimization_level=optimization_level,
            off=off,
        )
    check_callable("compile", fun)
    positions, names = _static_arguments(fun, static_argnums, static_argnames)
    off = [off] if isinstance(off, str) else list(off)
    made = _core._compile(fun, positions, names, shapeless, optimization_level, off)
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
