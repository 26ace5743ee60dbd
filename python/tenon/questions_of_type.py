"""Code that asks what a value is, where an open number cannot answer as a plain one does."""

from __future__ import annotations

import dis
import functools
import types
from typing import Any


def find(fun: Any, objects: list[Any]) -> str | None:
    """Where `fun` asks, or a function that it names, among them those of `objects` that it reads;
    as text for readers."""
    seen: set[types.CodeType] = set()
    operators = {name for o in objects for name in dir(type(o)) if _is_operator(name)}
    waiting = [fun, *objects, *_named(objects, operators)]
    while waiting:
        f = _plain(waiting.pop())
        if f is None or f.__code__ in seen or f.__module__.split(".")[0] == "tenon":
            continue
        seen.add(f.__code__)
        if found := _question(f.__code__):
            return found
        waiting += [f.__globals__.get(name) for name in _names(f.__code__)]
        waiting += _named(objects, _names(f.__code__))
        waiting += [cell.cell_contents for cell in f.__closure__ or () if _is_filled(cell)]
    return None


def _is_operator(name: str) -> bool:
    """Whether it is called without being named: `__call__`."""
    return name.startswith("__") and name.endswith("__") and not hasattr(object, name)


def _named(objects: list[Any], names: set[str]) -> list[Any]:
    """The functions behind attributes, also those of properties."""
    found = []
    for o in objects:
        places = [vars(o) if hasattr(o, "__dict__") else {}, *map(vars, type(o).__mro__)]
        found += [place[name] for place in places for name in names if name in place]
    inner = [getattr(f, name, None) for f in found for name in ("fget", "func", "__func__")]
    return found + [f for f in inner if f is not None]


def _plain(f: Any) -> types.FunctionType | None:
    """The function of Python behind a callable, if it is one of these."""
    while isinstance(f, functools.partial):
        f = f.func
    if not isinstance(f, (types.FunctionType, types.MethodType, type)):
        f = getattr(type(f), "__call__", None)
    f = getattr(f, "__func__", f)
    return f if isinstance(f, types.FunctionType) and f.__module__ else None


def _is_filled(cell: types.CellType) -> bool:
    try:
        cell.cell_contents  # noqa: B018
    except ValueError:
        return False
    return True


def _inner(code: types.CodeType) -> list[types.CodeType]:
    return [c for c in code.co_consts if isinstance(c, types.CodeType)]


def _names(code: types.CodeType) -> set[str]:
    """The names that may be globals, in functions inside too."""
    return set(code.co_names).union(*(_names(c) for c in _inner(code)))


def _question(code: types.CodeType) -> str | None:
    line, before = code.co_firstlineno, None
    for now in dis.get_instructions(code):
        line = now.starts_line or line
        asked = None
        if now.opname in ("LOAD_GLOBAL", "LOAD_NAME") and now.argval in ("type", "id"):
            asked = f"{now.argval}(...)"
        elif now.opname.startswith("LOAD") and now.argval == "Tensor":
            asked = "Tensor"
        elif now.opname == "IS_OP" and before and _is_number(before):
            asked = f"is {before.argval}"
        if asked:
            return f"`{asked}` is asked ({code.co_filename}:{line}, in {code.co_name})"
        before = now
    return next(filter(None, map(_question, _inner(code))), None)


def _is_number(instruction: dis.Instruction) -> bool:
    return instruction.opname == "LOAD_CONST" and type(instruction.argval) in (int, float)
