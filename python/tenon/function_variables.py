"""The variables of functions: what they close over, globals that they name, defaults."""

from __future__ import annotations

import dis
import functools
import sys
import types
from collections.abc import Iterator
from typing import Any

from . import _core

_FOREIGN = ("tenon", "logging")  # objects of theirs hold nothing that a function computes with

# Instructions that read names, and how many low bits of their arguments say something else.
# Decoding them here takes a tenth of the time of `dis`.
_CACHE, _EXTENDED_ARG = (dis.opmap.get(name, -1) for name in ("CACHE", "EXTENDED_ARG"))
_GLOBAL_READS = {dis.opmap["LOAD_GLOBAL"]: 1, dis.opmap["LOAD_NAME"]: 0}
_ATTRIBUTE_READS = {
    dis.opmap[name]: int(sys.version_info >= (3, 12))
    for name in ("LOAD_ATTR", "LOAD_METHOD")
    if name in dis.opmap
}
Variable = tuple[Any, str, tuple[Any, ...], str, Any]


class Variables:
    """The variables of a module as attributes of an object."""

    __slots__ = ("__dict__",)

    def __init__(self, variables: dict[str, Any]) -> None:
        self.__dict__ = variables


def is_of_program(cls: type) -> bool:
    """Whether a class is neither of the language nor of an installed package."""
    module = sys.modules.get(cls.__module__)
    return not is_foreign(cls.__module__) and not _is_installed(getattr(module, "__file__", ""))


def is_foreign(module: Any) -> bool:
    return isinstance(module, str) and module.split(".")[0] in _FOREIGN


def variables(function: Any, seen: set[types.FunctionType]) -> Iterator[Variable]:
    """(holder, attribute, indices, path, value) for the variables of a function of a program; none
    where it is in `seen`. Of one in an installed package, what it closes over."""
    function = plain_function(function)
    if function is None or is_foreign(function.__module__):
        return
    if function in seen:
        return
    seen.add(function)
    code = function.__code__
    for name, cell in zip(code.co_freevars, function.__closure__ or (), strict=False):
        if is_filled(cell):
            yield cell, "cell_contents", (), name, cell.cell_contents
    if _is_installed(code.co_filename):  # such as a decorator
        return
    names = names_in(code)
    holder = Variables(function.__globals__)
    for name in sorted(names & function.__globals__.keys()):
        value = function.__globals__[name]
        yield holder, name, (), name, value
        if isinstance(value, types.ModuleType) and not is_foreign(value.__name__):
            for inner in sorted(names & vars(value).keys()):
                yield value, inner, (), f"{name}.{inner}", vars(value)[inner]
    defaults = function.__defaults__ or ()
    first = code.co_argcount - len(defaults)
    for i, value in enumerate(defaults):
        yield function, "__defaults__", (i,), code.co_varnames[first + i], value
    for name, value in (function.__kwdefaults__ or {}).items():
        yield function, "__kwdefaults__", (name,), name, value


def own_variables(function: Any, seen: set[types.FunctionType]) -> Iterator[Variable]:
    """The same without what the function only has an attribute of that name of, and of no other
    functions than those of the program."""
    function = plain_function(function)
    if function is None or _is_installed(function.__code__.co_filename):
        return
    read = None
    for variable in variables(function, seen):
        holder, _, _, path, _ = variable
        if isinstance(holder, (Variables, types.ModuleType)):
            read = read or _read_in(function.__code__)
            if path not in read:
                continue
        yield variable


@functools.lru_cache(maxsize=4096)
def _read_in(code: types.CodeType) -> frozenset[str]:
    """The global variables that are read, and what is read of them: "m", "m.rate"."""
    found: set[str] = set()
    before = ""
    extended = 0
    for opcode, arg in zip(*[iter(code.co_code)] * 2, strict=True):
        if opcode == _EXTENDED_ARG:
            extended = (extended | arg) << 8
            continue
        if opcode in _GLOBAL_READS:
            before = code.co_names[(extended | arg) >> _GLOBAL_READS[opcode]]
        elif opcode in _ATTRIBUTE_READS and before:
            before += "." + code.co_names[(extended | arg) >> _ATTRIBUTE_READS[opcode]]
        elif opcode != _CACHE:
            before = ""
        found.add(before)
        extended = 0
    return frozenset(found.union(*map(_read_in, inner_code(code))))


def plain_function(f: Any) -> types.FunctionType | None:
    """The function of Python behind a callable, if it is one of these."""
    while isinstance(f, (functools.partial, _core.CompiledFunction)):
        f = f.func if isinstance(f, functools.partial) else f.__wrapped__
    if not isinstance(f, (types.FunctionType, types.MethodType, type)):
        f = getattr(type(f), "__call__", None)  # noqa: B004  the method is wanted, not whether
    f = getattr(f, "__func__", f)
    return f if isinstance(f, types.FunctionType) else None


def code_of_class(cls: type) -> Iterator[types.FunctionType]:
    """The functions of methods and properties."""
    for base in cls.__mro__:
        for entry in list(vars(base).values()):
            for name in ("__func__", "fget", "func", "__wrapped__"):
                entry = getattr(entry, name, entry)
            if isinstance(entry, types.FunctionType):
                yield entry


def _is_installed(file: str | None) -> bool:
    return (file or "").startswith((f"{sys.prefix}/", f"{sys.base_prefix}/", "<frozen "))


def is_filled(cell: types.CellType) -> bool:
    try:
        cell.cell_contents  # noqa: B018
    except ValueError:
        return False
    return True


def inner_code(code: types.CodeType) -> list[types.CodeType]:
    return [c for c in code.co_consts if isinstance(c, types.CodeType)]


@functools.lru_cache(maxsize=4096)
def names_in(code: types.CodeType) -> frozenset[str]:
    """The names that may be globals or attributes, in functions inside too."""
    return frozenset(code.co_names).union(*(names_in(c) for c in inner_code(code)))


def names_after_super(function: Any) -> set[str]:
    """The attributes that a method may read by `super()`."""
    code = getattr(function, "__code__", None)
    if code is None or "super" not in code.co_names:
        return set()
    loads = [i for i in dis.get_instructions(code) if i.opname.startswith("LOAD_")]
    return {i.argval for i in loads if i.argval in code.co_names and i.opname != "LOAD_GLOBAL"}
