"""Code that asks what a value is, where an open number cannot answer as a plain one does."""

from __future__ import annotations

import dis
import types
from collections.abc import Collection
from typing import Any

from .function_variables import inner_code, is_filled, is_foreign, names_in, plain_function


def find(fun: Any, objects: list[Any]) -> str | None:
    """Return the place where `fun`, or a function that it names, asks for a type, as text.

    Functions of `objects` that it reads, which may be classes, are among them.
    """
    seen: set[types.CodeType] = set()
    operators = {name for o in objects for name in dir(_class(o)) if _is_operator(name)}
    waiting = [fun, *objects, *_named(objects, operators)]
    while waiting:
        f = plain_function(waiting.pop())
        if f is None or f.__code__ in seen or is_foreign(f.__module__):
            continue
        seen.add(f.__code__)
        if found := _question(f.__code__):
            return found
        waiting += [f.__globals__.get(name) for name in names_in(f.__code__)]
        waiting += _named(objects, names_in(f.__code__))
        waiting += [cell.cell_contents for cell in f.__closure__ or () if is_filled(cell)]
    return None


def _is_operator(name: str) -> bool:
    """Whether it is called without being named: `__call__`."""
    return name.startswith("__") and name.endswith("__") and name not in vars(object)


def _named(objects: list[Any], names: Collection[str]) -> list[Any]:
    """The functions behind attributes, also those of properties."""
    found = []
    for o in objects:
        own = {} if isinstance(o, type) else getattr(o, "__dict__", {})
        places = [own, *map(vars, _class(o).__mro__)]
        found += [place[name] for place in places for name in names if name in place]
    inner = [getattr(f, name, None) for f in found for name in ("fget", "func", "__func__")]
    return found + [f for f in inner if f is not None]


def _class(o: Any) -> type:
    return o if isinstance(o, type) else type(o)


def _question(code: types.CodeType) -> str | None:
    line, before = code.co_firstlineno, None
    for now in dis.get_instructions(code):
        line = (now.positions and now.positions.lineno) or line
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
    return next(filter(None, map(_question, inner_code(code))), None)


def _is_number(instruction: dis.Instruction) -> bool:
    return instruction.opname == "LOAD_CONST" and type(instruction.argval) in (int, float)
