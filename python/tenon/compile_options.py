"""The options of `compile`: what is given, read and checked."""

from __future__ import annotations

import inspect
import re
from collections.abc import Callable, Sequence
from typing import Any

from . import _core


def _positional(f: Callable[..., Any]) -> list[str]:
    """The names of the parameters of `f` that have a position, as far as they are known."""
    kinds = (inspect.Parameter.POSITIONAL_ONLY, inspect.Parameter.POSITIONAL_OR_KEYWORD)
    return [p.name for p in _parameters(f) if p.kind in kinds]


def _parameters(f: Callable[..., Any]) -> list[inspect.Parameter]:
    try:
        return list(inspect.signature(f).parameters.values())
    except (TypeError, ValueError):
        return []


def positions(f: Callable[..., Any], argnums: int | Sequence[int], what: str) -> list[int]:
    """Positions of arguments, counted from the front."""
    given = [argnums] if isinstance(argnums, int) else list(argnums)
    if not all(isinstance(n, int) for n in given):
        _core._fail("type", f"compile: {what} are integers, not {argnums!r}")
    parameters, count = _parameters(f), len(_positional(f))
    most = count if parameters and all(p.kind is not p.VAR_POSITIONAL for p in parameters) else None
    for n in given:
        if n < -count or (most is not None and n >= most):
            _core._fail("index", f"compile: no argument {n} of {count} in {what}")
    return [n + count if n < 0 else n for n in given]


def static_arguments(
    f: Callable[..., Any], argnums: int | Sequence[int], argnames: str | Sequence[str]
) -> tuple[list[int], list[str]]:
    """Positions and names of the static arguments; one that has both is found either way."""
    numbers = positions(f, argnums, "static_argnums")
    names = [argnames] if isinstance(argnames, str) else list(argnames)
    if not numbers and not names:
        return [], []
    if not all(isinstance(n, str) for n in names):
        _core._fail("type", f"compile: static_argnames are strings, not {argnames!r}")
    parameters, known = _parameters(f), _positional(f)
    if parameters and not any(p.kind is p.VAR_KEYWORD for p in parameters):
        for name in names:
            if name not in {p.name for p in parameters}:
                _core._fail("value", f"compile: no argument {name!r} for static_argnames")
    names += [known[n] for n in numbers if n < len(known)]
    numbers += [known.index(name) for name in names if name in known]
    return sorted(set(numbers)), sorted(set(names))


MODES = (None, "default", "reduce-overhead", "max-autotune")
BACKENDS = (None, "cpu", "interpreter")
_UNITS = {"": 1, "B": 1} | {
    f"{prefix}{suffix}B": base**power
    for power, prefix in enumerate("KMGT", 1)
    for suffix, base in (("", 1000), ("i", 1024))
}


def one_of(name: str, given: Any, known: tuple[str | None, ...]) -> None:
    if given not in known:
        names = ", ".join(repr(k) for k in known if k)
        _core._fail("value", f"compile: {name} is one of {names}, not {given!r}")


def bytes_of(limit: int | str | None) -> int:
    """A number of bytes: 512, "512MB", "1.5 GiB"; 0 where there is no limit."""
    if limit is None:
        return 0
    match = re.fullmatch(r"\s*(\d+(?:\.\d*)?)\s*([KMGT]?i?B?)\s*", str(limit), re.IGNORECASE)
    units = {name.upper(): size for name, size in _UNITS.items()}
    if not match or match[2].upper() not in units or isinstance(limit, bool):
        _core._fail("value", f"compile: memory_limit is bytes or text like '512MB', not {limit!r}")
    return max(1, int(float(match[1]) * units[match[2].upper()]))


def timeout_of(given: Any) -> tuple[float, bool]:
    """Seconds (0: any number), and whether to fail after them."""
    seconds, then = given if isinstance(given, tuple) and len(given) == 2 else (given, "interpret")
    one_of("what follows timeout", then, ("interpret", "error"))
    if seconds is None:
        return 0.0, False
    if isinstance(seconds, bool) or not isinstance(seconds, (int, float)) or not seconds > 0:
        _core._fail("value", f"compile: timeout is a number of seconds above 0, not {given!r}")
    return float(seconds), then == "error"


def _names(option: str, given: str | Sequence[str]) -> list[str]:
    names = list(given) if isinstance(given, Sequence) and not isinstance(given, str) else [given]
    if not all(isinstance(name, str) for name in names):
        _core._fail("type", f"compile: {option} takes names, not {given!r}")
    return names


def plan_settings(
    off: str | Sequence[str],
    on: str | Sequence[str],
    memory_planning: str | None,
    optimize_for: str,
    target_hardware: str | Sequence[str],
) -> _core._PlanSettings:
    one_of("memory_planning", memory_planning, (None, "greedy", "best_fit", "optimal", "none"))
    one_of("optimize_for", optimize_for, ("latency", "throughput"))
    return _core._PlanSettings(
        _names("off", off),
        _names("on", on),
        memory_planning or "",
        optimize_for,
        _names("target_hardware", target_hardware),
    )


def check_level(level: Any) -> None:
    if not isinstance(level, int) or isinstance(level, bool) or not 0 <= level <= 5:
        _core._fail("value", f"compile: optimization_level is 0 to 5, not {level!r}")
