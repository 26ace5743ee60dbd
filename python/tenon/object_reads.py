"""What a function reads of plain objects while it is traced, for guards of the trace.

An object with attributes that is an argument, or the `self` of a method, is no tree: the function
gets the object itself, and what it reads there becomes a part of the trace. While it runs,
`__getattribute__` of the classes of such objects is replaced by one that notes what is read. A call
that finds other values is traced again; `python/src/object_guards.h` compares them.
"""

from __future__ import annotations

import enum
import functools
import sys
import threading
import types
from collections.abc import Callable, Iterable
from typing import Any

from . import _core

_HEAP_TYPE = 1 << 9  # Py_TPFLAGS_HEAPTYPE: made by a class statement
_ABSENT = object()
_VALUES = (
    type(None), bool, int, float, complex, str, bytes, range, slice, type(...), enum.Enum,
    _core.DType,
)  # fmt: skip
_NAMED = (type, types.ModuleType, types.FunctionType, types.BuiltinFunctionType)
_CACHED = functools.cached_property.__get__.__code__
_lock = threading.RLock()
_watched: dict[type, tuple[int, Any, Any]] = {}  # users; what the class had, what it inherited


class _Stack(threading.local):
    def __init__(self) -> None:
        self.reads: list[Reads] = []
        self.quiet = False


_on_this_thread = _Stack()


def is_plain(value: Any) -> bool:
    """Whether it is an object with attributes that nothing else is known of."""
    if isinstance(value, (_core.Tensor, *_VALUES, *_NAMED, functools.partial, types.MethodType)):
        return False
    cls = type(value)
    if cls.__module__ == "tenon._core" or isinstance(value, _core.CompiledFunction):
        return False
    return bool(cls.__flags__ & _HEAP_TYPE) or hasattr(value, "__dict__")


def is_guarded(value: Any) -> bool:
    """Whether all there is to it are attributes, which are compared where they were read."""
    known = type(value) is types.SimpleNamespace or _is_python(type(value))
    return is_plain(value) and known


def _is_stateful(value: Any) -> bool:
    """Whether using it changes it, in a way that nobody sees from outside."""
    if not isinstance(value, types.MethodType):  # `rng.random`
        value = getattr(value, "__self__", value)
    if _is_python(type(value)):
        return False
    kinds = []
    if "random" in sys.modules:
        kinds.append(sys.modules["random"].Random)
    if "numpy.random" in sys.modules:
        of_numpy = sys.modules["numpy.random"]
        kinds += [of_numpy.Generator, of_numpy.RandomState, of_numpy.BitGenerator]
    return hasattr(type(value), "__next__") or isinstance(value, tuple(kinds))


def check_argument(path: str, value: Any) -> None:
    if _is_stateful(value):
        _refuse(path, f"{type(value).__name__}, whose changes cannot be seen")


def _refuse(path: str, what: str) -> None:
    _core._fail(
        "type",
        f"compile: {path} is a {what}",
        "hold a tensor, a list, a tuple or a dict there, or pass what the function needs",
    )


_DEEPEST = 100  # containers inside each other
_PARTS: dict[type, tuple[str, ...]] = {  # of callables that are made of others
    types.MethodType: ("__func__", "__self__"),
    functools.partial: ("func", "args", "keywords"),
}


def fixed_roots(fun: Any) -> list[tuple[str, Any]]:
    """The plain objects that a callable is made of, and their names: `self` of a method."""
    found: list[tuple[str, Any]] = []
    while isinstance(fun, functools.partial):
        found += [(f"argument {i}", value) for i, value in enumerate(fun.args)]
        found += fun.keywords.items()
        fun = fun.func
    owner = fun.__self__ if isinstance(fun, types.MethodType) else fun
    if not hasattr(type(owner), "state"):  # a module's own attributes are state
        found.append(("self", owner))
    return [(name, value) for name, value in found if is_plain(value)]


class Reads:
    """What is read inside a `with` statement. Objects are known by how they are reached: a root,
    or an attribute of one that is known before, and indices into the containers there."""

    def __init__(self, roots: list[tuple[str, int, Any]], given: dict[str, Any]) -> None:
        """`given` are parameters of the trace that stand for attributes, by path."""
        # By object: (the one before it, attribute, indices), and for roots (-1, which constant of
        # the call it is in, or -1, and then the object itself, indices).
        self.owners: list[tuple[Any, ...]] = []
        self.names: list[str] = []
        self.guards: dict[tuple[int, str], tuple[Any, ...]] = {}
        self._given = given
        self._opened: dict[tuple[int, str], Any] = {}
        self._objects: list[Any] = []
        self._known: dict[int, int] = {}  # by id
        self._classes: list[type] = []
        self._around: list[int] = []  # ids of the containers that are being looked into
        for name, constant, value in roots:
            self.add_root(name, constant, value)

    def add_root(self, name: str, constant: int, value: Any, steps: tuple[Any, ...] = ()) -> None:
        if isinstance(value, (list, tuple, dict)):  # what trees hold besides leaves
            inside = value.items() if isinstance(value, dict) else enumerate(value)
            if id(value) not in self._around:
                self._around.append(id(value))
                for step, part in inside:
                    self.add_root(name, constant, part, (*steps, step))
                self._around.pop()
        elif (is_plain(value) or type(value) in _PARTS) and id(value) not in self._known:
            fixed = None if constant >= 0 else value
            path, count = name, 1
            while path in self.names:  # open attributes are found by their paths
                path, count = f"{name} ({count + 1})", count + 1
            self._add((-1, constant, fixed, steps), path, value)

    def _add(self, owner: tuple[Any, ...], name: str, value: Any) -> int:
        number = len(self.owners)
        self.owners.append(owner)
        self.names.append(name)
        self._objects.append(value)
        self._known[id(value)] = number
        if type(value) in _PARTS:
            for part in _PARTS[type(value)]:
                self.guards[number, part] = self._seen(getattr(value, part), number, part, ())
        elif _is_python(type(value)) and _watch(type(value)):
            self._classes.append(type(value))
        elif hasattr(value, "__dict__"):  # of a class that cannot be watched: all it has
            self.guards[number, "__dict__"] = self._seen(value.__dict__, number, "__dict__", ())
        return number

    def __enter__(self) -> Reads:
        _on_this_thread.reads.append(self)
        return self

    def __exit__(self, *_: object) -> None:
        _on_this_thread.reads.remove(self)
        for cls in self._classes:
            _unwatch(cls)

    def note(self, owner: Any, name: str, value: Any) -> Any:
        """Returns what the function gets: a parameter, where an attribute has varied."""
        number = self._known.get(id(owner))
        if number is None:
            return value
        place = number, name
        if place not in self.guards:
            path = self._path(number, name, ())
            if path in self._given and _is_data(owner, name, value):
                self._opened[place] = self._given[path]
                self.guards[place] = "open", list(self._given).index(path)
            elif seen := self._seen_at(number, name, value):
                self.guards[place] = seen
        return self._opened.get(place, value)

    def _seen_at(self, owner: int, name: str, value: Any) -> tuple[Any, ...] | None:
        """The same for an attribute; None where it is computed, of what is noted itself."""
        if type(self._objects[owner]) in _PARTS or _is_data(self._objects[owner], name, value):
            return self._seen(value, owner, name, ())
        if name.startswith("__") and name.endswith("__"):
            return None
        if isinstance(value, types.MethodType):  # an attribute of the object may come before it
            return "method", value.__func__
        return ("same", value) if isinstance(value, types.FunctionType) else None

    def _seen(self, value: Any, owner: int, name: str, steps: tuple[Any, ...]) -> tuple[Any, ...]:
        """What is compared later: a value, or the parts of a container."""
        if value is _ABSENT:
            return ("absent",)
        if isinstance(value, _core.Tensor):  # those of the trace are state, or made inside it
            return ("any",) if _core._is_traced(value) else ("tensor", value)
        if isinstance(value, _VALUES):
            return "equal", value
        if isinstance(value, (list, tuple)):
            parts = self._seen_inside(value, enumerate(value), owner, name, steps)
            return "sequence", type(value), parts
        if isinstance(value, dict):
            parts = self._seen_inside(value, value.items(), owner, name, steps)
            return "dict", type(value), tuple(value), parts
        if isinstance(value, (set, frozenset)):
            return "set", type(value), frozenset(value)
        if "numpy" in sys.modules and isinstance(value, sys.modules["numpy"].ndarray):
            return "array", value.copy()
        unseen = type(value).__hash__ is None and not is_guarded(value)
        if unseen or _is_stateful(value):
            kind = type(value).__name__
            _refuse(self._path(owner, name, steps), f"{kind}, whose changes cannot be seen")
        if is_plain(value) or type(value) in _PARTS:
            number = self._known.get(id(value))
            if number is None:
                number = self._add((owner, name, steps), self._path(owner, name, steps), value)
            known = type(value) in _PARTS or _is_python(type(value))  # by its attributes
            return ("object", number, type(value)) if known else ("same", value)
        return "same", value

    def _seen_inside(
        self, value: Any, inside: Iterable[Any], owner: int, name: str, steps: tuple[Any, ...]
    ) -> tuple[Any, ...]:
        if id(value) in self._around or len(self._around) > _DEEPEST:
            kind = type(value).__name__
            _refuse(self._path(owner, name, ()), f"{kind} that holds itself, or is nested too deep")
        self._around.append(id(value))
        try:
            return tuple(self._seen(v, owner, name, (*steps, at)) for at, v in inside)
        finally:
            self._around.pop()

    def _path(self, owner: int, name: str, steps: tuple[Any, ...]) -> str:
        return path_text(self.names[owner], name, steps)

    def changed(self) -> list[str]:
        """Ends the record with the values that there are now. Returns the paths of those that the
        function itself changed, other than from nothing."""
        paths = []
        for (owner, name), seen in list(self.guards.items()):
            if seen[0] == "open":
                continue
            fresh = self._seen_at(owner, name, _plainly(self._objects[owner], name))
            if fresh is None or _same(seen, fresh):
                continue
            self.guards[owner, name] = fresh
            from_nothing = seen[0] == "absent" or seen == ("equal", None)
            if not from_nothing and not _has_tensors(fresh):  # of those others warn
                paths.append(self._path(owner, name, ()))
        return paths


def path_text(owner: str, name: str, steps: tuple[Any, ...]) -> str:
    path = owner if name == "__dict__" else f"{owner}.{name}"
    if name == "__dict__" and steps:
        path, steps = f"{path}.{steps[0]}", steps[1:]
    return path + "".join(f"[{s!r}]" for s in steps)


def _has_tensors(seen: tuple[Any, ...]) -> bool:
    """Whether a record is of a tensor, or of a container of some: state, or what a trace leaks."""
    if seen[0] in ("sequence", "dict"):
        return any(map(_has_tensors, seen[-1]))
    return seen[0] in ("tensor", "any")


def _same(a: Any, b: Any) -> bool:
    """Of two records of one attribute."""
    if type(a) is not type(b):
        return False
    if isinstance(a, tuple):
        return len(a) == len(b) and all(map(_same, a, b))
    if isinstance(a, _core.Tensor):
        return _core._is_same_value(a, b)
    if "numpy" in sys.modules and isinstance(a, sys.modules["numpy"].ndarray):
        return a.dtype == b.dtype and a.shape == b.shape and a.tobytes() == b.tobytes()
    return a is b or bool(a == b)


def _is_python(cls: type) -> bool:
    """Whether class statements made it: nothing is in its objects but attributes."""
    has_dict = False
    for base in reversed(cls.__mro__[:-1]):
        has_dict = has_dict or "__dict__" in vars(base)
        if not has_dict and "__slots__" not in vars(base):
            return False
    return bool(cls.__flags__ & _HEAP_TYPE)


def _static(cls: type, name: str) -> Any:
    """What the class has of that name, without calling anything."""
    for base in cls.__mro__:
        if name in base.__dict__:
            return base.__dict__[name]
    return _ABSENT


def _is_data(owner: Any, name: str, value: Any) -> bool:
    """Whether an attribute is what the object or its class holds, and not computed by a property or
    bound like a method: what those read is noted itself."""
    if name.startswith("__") and name.endswith("__"):
        return name == "__dict__"
    found = _static(type(owner), name)
    if isinstance(found, (types.MemberDescriptorType, types.GetSetDescriptorType)):
        return True
    is_data_descriptor = hasattr(type(found), "__set__") and hasattr(type(found), "__get__")
    if is_data_descriptor:
        return False
    held = getattr(owner, "__dict__", {}) if name != "__dict__" else {}
    if name in held or value is _ABSENT:
        return True
    if found is _ABSENT:
        return True  # by a __getattribute__ of the class
    return not hasattr(type(found), "__get__")


def _plainly(owner: Any, name: str) -> Any:
    """The attribute as guards read it: without `__getattr__`."""
    try:
        return type(owner).__getattribute__(owner, name)
    except AttributeError:
        return _ABSENT


def _watch(cls: type) -> bool:
    """Replaces `__getattribute__` of a class; False where that is not possible."""
    with _lock:
        if cls in _watched:
            users, own, inherited = _watched[cls]
            _watched[cls] = users + 1, own, inherited
            return True
        own = cls.__dict__.get("__getattribute__", _ABSENT)
        inherited = cls.__getattribute__
        inherited = getattr(inherited, "_tenon_original", inherited)
        try:
            type.__setattr__(cls, "__getattribute__", _noting(inherited))
        except TypeError:
            return False
        _watched[cls] = 1, own, inherited
        return True


def _unwatch(cls: type) -> None:
    with _lock:
        users, own, inherited = _watched[cls]
        if users > 1:
            _watched[cls] = users - 1, own, inherited
            return
        del _watched[cls]
        if own is _ABSENT:
            type.__delattr__(cls, "__getattribute__")
        else:
            type.__setattr__(cls, "__getattribute__", own)


def _noting(original: Callable[[Any, str], Any]) -> Callable[[Any, str], Any]:
    def __getattribute__(self: Any, name: str) -> Any:
        here = _on_this_thread
        if not here.reads or here.quiet:
            return original(self, name)
        if name == "__dict__" and sys._getframe(1).f_code is _CACHED:
            return original(self, name)  # where it keeps the value, which is noted itself
        try:
            value = original(self, name)
        except AttributeError:
            _note(self, name, _ABSENT)
            raise
        return _note(self, name, value)

    __getattribute__._tenon_original = original  # type: ignore[attr-defined]
    return __getattribute__


def _note(owner: Any, name: str, value: Any) -> Any:
    here = _on_this_thread
    here.quiet = True
    try:
        for reads in here.reads:
            value = reads.note(owner, name, value)
    finally:
        here.quiet = False
    return value


def read_again(reads: list[tuple[Any, str, str]]) -> None:
    """Notes for the traces under way what a trace has read that is used inside them."""
    for owner, name, path in reads:
        for under_way in _on_this_thread.reads:
            under_way.add_root(path, -1, owner)
        _note(owner, name, _plainly(owner, name))
