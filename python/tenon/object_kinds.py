"""The kinds of objects for guards: values, plain objects, and those that cannot be guarded."""

from __future__ import annotations

import contextvars
import enum
import functools
import io
import sys
import types
import weakref
from typing import Any

from . import _core
from .watched_classes import ABSENT, class_of, quiet

HEAP_TYPE = 1 << 9  # Py_TPFLAGS_HEAPTYPE: made by a class statement
VALUES = (
    type(None), bool, int, float, complex, str, bytes, range, slice, type(...), enum.Enum,
    _core.DType,
)  # fmt: skip
CONTAINERS = (list, tuple, dict, set, frozenset)
_NAMED = (type, types.ModuleType, types.FunctionType, types.BuiltinFunctionType)
_VIEWS: tuple[Any, ...] = (
    type({}.keys()), type({}.values()), type({}.items()), memoryview, contextvars.ContextVar,
    types.MappingProxyType,
)  # fmt: skip


class Attributes(enum.Enum):
    """How reads of an object's attributes are detected."""

    NONE = enum.auto()
    NOTED = enum.auto()  # a class statement made its class, which notes reads
    OWN = enum.auto()  # it notes reads itself: a namespace
    WHOLE = enum.auto()  # all of them count, as do others that cannot be seen: by identity


def attributes_of(value: Any) -> Attributes:
    cls = class_of(value)
    if cls is types.SimpleNamespace:
        return Attributes.OWN
    if is_value(value) and cls.__flags__ & HEAP_TYPE:
        return Attributes.NOTED
    if isinstance(value, (_core.Tensor, *VALUES, *_NAMED, functools.partial, types.MethodType)):
        return Attributes.NONE
    if cls.__module__ == "tenon._core" or isinstance(value, _core.CompiledFunction):
        return Attributes.NONE
    if not cls.__flags__ & HEAP_TYPE and not hasattr(value, "__dict__"):
        return Attributes.NONE
    return Attributes.NOTED if is_python(cls) else Attributes.WHOLE


def is_guarded(value: Any) -> bool:
    """Whether all there is to it are attributes, which are compared where they were read."""
    with quiet():
        kind = attributes_of(value)
        return kind is Attributes.OWN or (kind is Attributes.NOTED and not is_value(value))


def is_value(value: Any) -> bool:
    """Whether it is compared as a whole."""
    return isinstance(value, (*VALUES, *CONTAINERS)) or is_array(value)


def is_array(value: Any) -> bool:
    return "numpy" in sys.modules and isinstance(value, sys.modules["numpy"].ndarray)


def is_stateful(value: Any) -> bool:
    """Whether using it changes it, which is not seen from outside, or others change it."""
    if type(value) in weakref.ProxyTypes:  # which answer for another object
        return True
    if not isinstance(value, types.MethodType) and hasattr(type(value), "__self__"):
        value = value.__self__  # `rng.random`
    if _is_for_all(value):  # of whose numbers a warning tells
        return False
    if is_python(type(value)) or isinstance(value, type) or _is_written_to(value):
        return False
    kinds: list[type] = [*_VIEWS]
    if "random" in sys.modules:
        kinds.append(sys.modules["random"].Random)
    if "numpy.random" in sys.modules:
        of_numpy = sys.modules["numpy.random"]
        kinds += [of_numpy.Generator, of_numpy.RandomState, of_numpy.BitGenerator]
    if "_ctypes" in sys.modules:
        of_c = sys.modules["_ctypes"]
        kinds += [of_c.Structure, of_c.Union, of_c.Array, of_c._SimpleCData, of_c._Pointer]
    return hasattr(type(value), "__next__") or isinstance(value, tuple(kinds))


def _is_for_all(value: Any) -> bool:
    """Whether it is the generator that Python or NumPy has for all of a program."""
    known = (("random", "_inst"), ("numpy.random.mtrand", "_rand"))
    return any(value is getattr(sys.modules.get(name), at, ABSENT) for name, at in known)


def _is_written_to(value: Any) -> bool:
    """Whether it is a file that lines are read from only by the way: `sys.stdout`."""
    return isinstance(value, io.IOBase) and not value.closed and value.writable()


def is_python(cls: type) -> bool:
    """Whether class statements made it: nothing is in its objects but attributes."""
    has_dict = False
    for base in reversed(cls.__mro__[:-1]):
        has_dict = has_dict or "__dict__" in vars(base)
        if not has_dict and "__slots__" not in vars(base):
            return False
    return bool(cls.__flags__ & HEAP_TYPE)


def static(cls: type, name: str) -> Any:
    """Return the class attribute of that name without calling descriptors, or ABSENT."""
    for base in cls.__mro__:
        if name in base.__dict__:
            return base.__dict__[name]
    return ABSENT
