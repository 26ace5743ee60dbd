"""Records what a function reads from plain objects at trace time, for guards of the trace.

An object with attributes that is an argument, the `self` of a method, or that a variable holds, is
no tree: the function gets the object itself, and what it reads there becomes a part of the trace.
While it runs, the classes of such objects note what is read (`watched_classes.py`). A call that
finds other values is traced again; `python/src/compiled/object_guards.h` compares them.
"""

from __future__ import annotations

import enum
import functools
import sys
import threading
import types
import weakref
from collections.abc import Iterable, Iterator
from typing import Any

from . import _core
from .attribute_records import is_of_trace, is_of_transform, is_same
from .compiled_modules import is_module
from .function_variables import (
    code_of_class,
    is_foreign,
    is_of_program,
    names_after_super,
    names_in,
    own_variables,
    plain_function,
    variables,
)
from .object_kinds import (
    CONTAINERS,
    HEAP_TYPE,
    VALUES,
    Attributes,
    attributes_of,
    is_array,
    is_guarded,
    is_python,
    is_stateful,
    is_value,
    static,
)
from .object_places import Steps, contents, further, parts, path_text, reached, text_of
from .watched_classes import ABSENT, class_of, on_this_thread, quiet, unwatch, watch

_STATE = ("__reduce__", "__reduce_ex__", "__getstate__")  # reads all there is
_CLASSES = ("__mro__", "__bases__", "__base__")


def check_argument(path: str, value: Any) -> None:
    if is_stateful(value):
        _refuse_unseen(path, value)


def _refuse_unseen(path: str, value: Any) -> None:
    _refuse(path, f"{type(value).__name__}, whose changes cannot be tracked")


def _refuse(path: str, what: str) -> None:
    _core._fail(
        "type",
        f"compile: {path} is a {what}",
        "hold a tensor, a list, a tuple or a dict there, or pass what the function needs",
    )


_VALUES = frozenset(VALUES)
_WITHOUT_ATTRIBUTES = _VALUES | {_core.Tensor}
_DEEPEST = 100  # containers inside each other
_PARTS: dict[type, tuple[str, ...]] = {  # of callables that are made of others
    types.MethodType: ("__func__", "__self__"),
    functools.partial: ("func", "args", "keywords"),
}


def _fixed_roots(fun: Any) -> list[tuple[str, Any]]:
    """The plain objects that a callable is made of, and their names: `self` of a method."""
    found: list[tuple[str, Any]] = []
    while isinstance(fun, functools.partial):
        found += [(f"argument {i}", value) for i, value in enumerate(fun.args)]
        found += fun.keywords.items()
        fun = fun.func
    owner = fun.__self__ if isinstance(fun, types.MethodType) else fun
    if not hasattr(type(owner), "state"):  # a module's own attributes are state
        found.append(("self", owner))
    return [(name, value) for name, value in found if attributes_of(value) is not Attributes.NONE]


class Reads:
    """The reads inside a `with` statement.

    An object is identified by its path: a root, or an attribute of a known object, and indices
    into the containers there.
    """

    def __init__(
        self,
        fun: Any,
        roots: list[Any],
        classes: Iterable[type],
        state: Any,
        given: dict[str, tuple[Any, Any]],
    ) -> None:
        """`state`: containers that are read and written, whatever they hold. `given` are parameters
        of the trace that stand for attributes, by path, and the values of these: what no index
        leads to may be another object."""
        # By object: (the one before it, attribute, indices, class), and for roots (-1, which
        # constant of the call it is in, or -1, and then the object itself, indices, class).
        self.owners: list[tuple[Any, ...]] = []
        self.names: list[str] = []
        self.guards: dict[tuple[int, str], tuple[Any, ...]] = {}
        self._given = given
        self._state: set[int] = set()  # by id
        _add_dicts(state, self._state)
        self._opened: dict[tuple[int, str], Any] = {}
        self._objects: list[Any] = []
        self._known: dict[int, int] = {}  # by id
        self._waiting: dict[int, tuple[Any, ...]] = {}  # by id: what may be read
        self.watched: list[Any] = []
        self._is_over = False
        self._is_passed_by = False  # some function calls object.__getattribute__
        self._passed: set[tuple[type, str]] = set()  # of classes: what is not compared
        self._pending: list[Any] = []
        self._functions: set[types.FunctionType] = set()  # that were looked into
        self._called: set[types.FunctionType] = set()  # or may be, as they were read
        self._around: list[int] = []  # ids of the containers that are being looked into
        try:
            with quiet():
                for name, value in _fixed_roots(fun):
                    self._add_root(name, -1, value, None)
                for cls in classes:
                    self._await_variable((None, -1, cls, ()), cls.__name__, cls)
                self._look_into(fun)
                self._check_called(fun)
                for name, constant, value, fields in roots:
                    self._add_root(name, constant, value, fields)
        except BaseException:
            self._end()
            raise

    def add_root(self, name: str, value: Any) -> None:
        self._await((None, -1, value, ()), name, value)

    def _add_root(
        self, name: str, constant: int, value: Any, fields: Any, steps: Steps = ()
    ) -> None:
        """`fields`: the names of what is in the tuple, which are attributes."""
        if type(value) in CONTAINERS:  # what trees hold besides leaves
            for step, part in self._inside(value):
                text = f".{fields[step[0]]}" if fields and step else text_of(step)
                self._add_root(name + text, constant, part, None, further(steps, step))
            return
        check_argument(name, value)
        if isinstance(value, types.FunctionType):
            self._look_into(value)
            self._check_called(value)
        elif self._is_reachable(value) or isinstance(value, type):
            own_equality: Any = type(value).__eq__
            if steps is None and own_equality is not object.__eq__:
                return  # calls compare it by value, and so does the trace
            is_found = constant >= 0 and steps is not None
            owner = (None, constant, None, steps) if is_found else (None, -1, value, ())
            self._await_variable(owner, name, value)
            if not isinstance(value, type):
                self._number(value)

    def _inside(self, value: Any) -> Iterator[tuple[Steps, Any]]:
        """The parts of a container that may lead to objects, unless they are looked at already,
        and the index of each."""
        values = dict.values(value) if isinstance(value, dict) else ()
        if all(map(_hold_no_attributes, (contents(value), values))):
            return
        if id(value) in self._around or len(self._around) > _DEEPEST:
            return
        self._around.append(id(value))
        yield from parts(value)
        self._around.pop()

    # What may be read ---------------------------------------------------------------------

    @staticmethod
    def _is_reachable(value: Any) -> bool:
        return type(value) in _PARTS or attributes_of(value) is not Attributes.NONE

    def _await_variable(self, owner: tuple[Any, ...], path: str, value: Any) -> None:
        """An object, or a class of the program."""
        if isinstance(value, type):
            wanted = value.__flags__ & HEAP_TYPE and is_of_program(value)
            if not wanted or issubclass(value, enum.Enum):  # which has members that stay
                return
        self._await(owner, path, value)

    def _await(self, owner: tuple[Any, ...], path: str, value: Any) -> None:
        """An object that the function may read, and is noted when it does. `owner`: as in `owners`,
        with the object that is before it."""
        cls = class_of(value)
        if cls in _PARTS:
            self._hold(owner, path, value)
            number = self._numbered(value)
            for part in _PARTS[cls]:
                if (number, part) not in self.guards:
                    self.guards[number, part] = self._seen(getattr(value, part), number, part, ())
            return
        if id(value) in self._known or id(value) in self._waiting:
            return
        if self._state and id(getattr(value, "__dict__", None)) in self._state:
            return
        self._waiting[id(value)] = owner, path, value
        kind = attributes_of(value)
        if isinstance(value, type):
            self.watch(value, "itself")
            self.watch(value, "objects")  # those that the function makes
            for function in code_of_class(value):
                self._look_into(function)
        elif kind is Attributes.NOTED and self.watch(cls, "objects"):
            self._await_variable((value, "__class__", ()), f"type({path})", cls)
        elif kind is Attributes.OWN and self.watch(value, "itself"):
            pass
        elif kind is not Attributes.NONE and hasattr(value, "__dict__"):  # cannot be watched
            number = self._numbered(value)
            self.guards[number, "__dict__"] = self._seen(value.__dict__, number, "__dict__", ())

    def watch(self, target: Any, what: str) -> bool:
        key = None if self._is_over else watch(target, what)
        if key is not None:
            self.watched.append(key)
        return key is not None

    def _look_into(self, function: Any) -> None:
        """Finds the objects that the variables of a function hold, and of those it names."""
        self._pending.append(function)
        if len(self._pending) > 1:
            return  # is looked into when those before it have been
        for function in self._pending:
            for variable in variables(function, self._functions):
                self._look_at(*variable)
            code = getattr(plain_function(function), "__code__", None)
            self._is_passed_by |= code is not None and "__getattribute__" in names_in(code)
        self._pending.clear()

    def _check_called(self, function: Any) -> None:
        """Refuses variables that a function reads, or one that it reads, where changes of what they
        hold cannot be seen. Its class may have methods that do, and are not called."""
        waiting: list[Any] = list(own_variables(function, self._called))
        looked_at: dict[int, Any] = {}  # by id
        while waiting:
            holder, name, steps, path, value = waiting.pop()
            if id(value) in looked_at:
                continue
            looked_at[id(value)] = value
            check_argument(path, value)
            if isinstance(value, threading.local):
                self._hold((None, -1, holder, ()), "", holder)
                self._await(reached(holder, name, steps, value), path, value)
            elif type(value) in CONTAINERS:
                waiting += [
                    (holder, name, further(steps, step), path + text_of(step), part)
                    for step, part in self._inside(value)
                ]
            elif type(value) in _PARTS:
                waiting += [(value, p, (), path, getattr(value, p)) for p in _PARTS[type(value)]]
            elif isinstance(value, (types.FunctionType, _core.CompiledFunction)):
                waiting += own_variables(value, self._called)

    def _look_at(self, holder: Any, name: str, steps: Steps, path: str, value: Any) -> None:
        if type(value) in CONTAINERS or is_array(value):
            for step, part in self._inside(value):
                self._look_at(holder, name, further(steps, step), path + text_of(step), part)
            return
        if isinstance(value, (types.FunctionType, _core.CompiledFunction)):
            self._look_into(value)
            return
        if id(value) in self._waiting or id(value) in self._known:
            return
        is_read = isinstance(value, type) or (
            attributes_of(value) in (Attributes.NOTED, Attributes.OWN)
            and (
                is_module(value)
                or not hasattr(type(value), "state")  # which is named in inputs=
                and not is_foreign(type(value).__module__)
            )
        )
        if not is_read and type(value) not in _PARTS:
            return
        owner = reached(holder, name, steps, value)
        if steps is not None:
            self._hold((None, -1, holder, ()), "", holder)
        if is_read:
            self._await_variable(owner, path, value)
            return
        self._hold(owner, path, value)
        for part in _PARTS[type(value)]:
            self._look_at(value, part, (), path, getattr(value, part))

    def _hold(self, owner: tuple[Any, ...], path: str, holder: Any) -> None:
        """Remember an object that leads to others and is not read itself."""
        if id(holder) not in self._known:
            self._waiting.setdefault(id(holder), (owner, path, holder))

    def _number(self, value: Any) -> int | None:
        """Return the number of an object that may be read, or None."""
        known = self._known.get(id(value))
        return self._numbered(value) if known is None and id(value) in self._waiting else known

    def _numbered(self, value: Any) -> int:
        """Give an object a number, by which every call finds it."""
        if id(value) in self._known:
            return self._known[id(value)]
        (holder, *owner), path, _ = self._waiting.pop(id(value))
        before = -1 if holder is None else self._numbered(holder)
        number = len(self.owners)
        cls = None if isinstance(value, type) else class_of(value)
        self.owners.append((before, *owner, cls))
        count, name = 1, path
        while path and name in self.names:  # open attributes are found by their paths
            count += 1
            name = f"{path} ({count})"
        self.names.append(name)
        self._objects.append(value)
        self._known[id(value)] = number
        for operator, function in _operators(cls) if cls else ():
            self._note_method(value, operator, function)
        if self._is_passed_by and cls and is_python(cls) and hasattr(value, "__dict__"):
            self.note(value, "__dict__", value.__dict__)
        return number

    def __enter__(self) -> Reads:
        on_this_thread.reads.append(self)
        return self

    def __exit__(self, *_: object) -> None:
        on_this_thread.reads.remove(self)
        self._end()

    def _end(self) -> None:
        self._is_over = True
        while self.watched:
            unwatch(self.watched.pop())

    # What is read -------------------------------------------------------------------------

    def note(self, owner: Any, name: str, value: Any) -> Any:
        """Returns what the function gets: a parameter, where an attribute has varied."""
        number = self._number(owner)
        if number is None:
            return self._note_of_class(owner, name, value)
        if name in _STATE:
            self.note(owner, "__dict__", getattr(owner, "__dict__", ABSENT))
        elif isinstance(owner, type) and name in _CLASSES:
            for at, base in enumerate(owner.__mro__):
                self._await_variable((owner, "__mro__", (at,)), base.__name__, base)
        elif isinstance(owner, type) and name == "__dict__":
            for key, entry in value.items():
                if _is_data(owner, key, entry):
                    self.note(owner, key, entry)
        place = number, name
        if place not in self.guards:
            path = self._path(number, name, ())
            given = self._given.get(path)
            if given and _is_same_number(value, given[1]) and _is_data(owner, name, value):
                self._opened[place] = given[0]
                self.guards[place] = "open", list(self._given).index(path)
            elif seen := self._seen_at(number, name, value):
                self.guards[place] = seen
            if not isinstance(owner, type):
                found = static(type(owner), name)
                self._check_called(getattr(found, "fget", found))
                self._note_method(owner, name, found)
        return self._opened.get(place, value)

    def _note_of_class(self, owner: Any, name: str, value: Any) -> Any:
        """Note what an object made by the trace takes from a known class."""
        cls = owner if isinstance(owner, type) else type(owner)
        if (cls, name) in self._passed:
            return value
        home = next((base for base in cls.__mro__ if name in base.__dict__), None)
        if home is None:
            return value
        entry = home.__dict__[name]
        if is_foreign(home.__module__) or not _is_data(cls, name, entry):
            self._passed.add((cls, name))
            return value
        on_the_way = cls.__mro__[: cls.__mro__.index(home) + 1]
        known = next((c for c in on_the_way if self._number(c) is not None), None)
        return self.note(known, name, value) if known and entry is value else value

    def _note_method(self, owner: Any, name: str, found: Any) -> None:
        """Guard a property or an operator of an object, and what methods read by `super()`."""
        cls = class_of(owner)
        called = name.startswith("__") and isinstance(found, types.FunctionType)
        if (called or isinstance(found, property)) and self._number(cls) is not None:
            self.guards.setdefault((self._known[id(cls)], name), ("same", found))
        self._note_super(cls, found)

    def is_noted(self, owner: Any, name: str) -> bool:
        return (self._known.get(id(owner), -1), name) in self.guards

    def fix(self, owner: Any, name: str, value: Any) -> None:
        """Notes what is read where nothing can give a parameter in its place."""
        number = self._number(owner)
        if number is not None and self.guards.get((number, name), ("open",))[0] == "open":
            if seen := self._seen_at(number, name, value):
                self.guards[number, name] = seen

    def _note_super(self, cls: type, found: Any) -> None:
        if self._number(cls) is None:
            return
        for name in names_after_super(getattr(found, "fget", found)):
            for at, base in enumerate(cls.__mro__[1:-1], 1):
                if name in vars(base) and not is_foreign(base.__module__):
                    self._await((cls, "__mro__", (at,)), base.__name__, base)
                    self.fix(base, name, getattr(base, name))
                    if vars(base)[name] is not found:
                        self._note_super(cls, vars(base)[name])

    def _seen_at(self, owner: int, name: str, value: Any) -> tuple[Any, ...] | None:
        """The same for an attribute; None where it is computed, of what is noted itself."""
        if type(self._objects[owner]) in _PARTS or _is_data(self._objects[owner], name, value):
            return self._seen(value, owner, name, ())
        if name.startswith("__") and name.endswith("__"):
            return None
        if isinstance(value, types.MethodType):  # an attribute of the object may come before it
            return "method", value.__func__
        return ("same", value) if isinstance(value, (types.FunctionType, property)) else None

    def _seen(self, value: Any, owner: int, name: str, steps: Steps) -> tuple[Any, ...]:
        """Return what later calls compare: a value, or the parts of a container."""
        if value is ABSENT:
            return ("absent",)
        if type(value) in _VALUES:
            return "equal", value
        if is_stateful(value):
            _refuse_unseen(self._path(owner, name, steps), value)
        if isinstance(value, _core.Tensor):  # those of the trace are state, or made inside it
            return ("any",) if _core._is_traced(value) else ("tensor", value)
        path = self._path(owner, name, steps)
        place = reached(self._objects[owner], name, steps, value)
        if isinstance(value, type):
            self._await_variable(place, path, value)
        elif isinstance(value, types.FunctionType):
            self._look_into(value)
            self._check_called(value)
        elif isinstance(value, weakref.ref) and self._is_reachable(target := value()):
            self.add_root(f"{path}()", target)
        elif is_value(value) and attributes_of(value) is Attributes.NOTED:
            self._await(place, path, value)
        if isinstance(value, VALUES):
            return "equal", value
        if type(value) is tuple and _VALUES.issuperset(map(type, value)):
            return "equal", value
        if isinstance(value, CONTAINERS) or is_array(value):
            return self._seen_inside(value, owner, name, steps)
        if type(value).__hash__ is None and not is_guarded(value):
            _refuse_unseen(path, value)
        if not self._is_reachable(value):
            return "same", value
        self._await(place, path, value)
        number = self._number(value)  # None: it is state
        if number is not None and (type(value) in _PARTS or is_guarded(value)):
            return "object", number, class_of(value)  # by its attributes
        return "same", value

    def _seen_inside(self, value: Any, owner: int, name: str, steps: Steps) -> tuple[Any, ...]:
        if id(value) in self._around or len(self._around) > _DEEPEST:
            kind = type(value).__name__
            _refuse(self._path(owner, name, ()), f"{kind} that holds itself, or is nested too deep")
        self._around.append(id(value))
        try:
            inside = list(parts(value))
            seen = tuple(self._seen(v, owner, name, further(steps, at)) for at, v in inside)
        finally:
            self._around.pop()
        if isinstance(value, (set, frozenset)):
            return "set", type(value), {v: at for at, (_, v) in enumerate(inside)}, seen
        if is_array(value):  # which has no parts where it holds no objects
            held = sys.modules["numpy"].empty_like(value) if value.dtype.hasobject else value.copy()
            return "array", held, seen
        return "dict" if isinstance(value, dict) else "sequence", type(value), seen

    def _path(self, owner: int, name: str, steps: Steps) -> str:
        return path_text(self.names[owner], name, steps)

    def changed(self) -> list[str]:
        """Ends the record with the values that there are now. Returns the paths of those that the
        function itself changed, other than from nothing."""
        paths = []
        for (owner, name), seen in list(self.guards.items()):
            if seen[0] == "open":
                continue
            now = _plainly(self._objects[owner], name)  # as traces around this one give it
            with quiet():
                fresh = self._seen_at(owner, name, now)
            if fresh is None or is_same(seen, fresh):
                continue
            self.guards[owner, name] = fresh
            from_nothing = seen[0] == "absent" or seen == ("equal", None)
            is_restored = is_of_transform(seen)  # what was there before came back
            if not from_nothing and not is_restored and not is_of_trace(fresh):  # others warn
                paths.append(self._path(owner, name, ()))
        return paths


def _hold_no_attributes(parts: Iterable[Any]) -> bool:
    return _WITHOUT_ATTRIBUTES.issuperset(map(type, parts))


def _is_same_number(a: Any, b: Any) -> bool:
    """Or the same object."""
    return a is b or (type(a) is type(b) in (int, float) and repr(a) == repr(b))


def _is_data(owner: Any, name: str, value: Any) -> bool:
    """Whether an attribute is what the object or its class holds, and not computed by a property or
    bound like a method: what those read is noted itself."""
    if name.startswith("__") and name.endswith("__"):
        return name == "__dict__" and not isinstance(owner, type)
    if isinstance(owner, type):
        found = static(owner, name)
        return found is ABSENT or not hasattr(type(found), "__get__")
    found = static(type(owner), name)
    if isinstance(found, (types.MemberDescriptorType, types.GetSetDescriptorType)):
        return True
    computes = hasattr(type(found), "__get__")
    is_held = name in getattr(owner, "__dict__", ()) and not hasattr(type(found), "__set__")
    if not computes or is_held or value is ABSENT:
        return True  # where nothing is found: by a __getattribute__ of the class
    if isinstance(found, property) or not is_python(type(found)):
        return False
    again = _plainly(owner, name)  # a descriptor may keep the value anywhere
    return again is value or (isinstance(value, VALUES) and bool(again == value))


def _plainly(owner: Any, name: str) -> Any:
    """The attribute as guards read it: without `__getattr__`."""
    try:
        return type(owner).__getattribute__(owner, name)  # type: ignore[call-arg]
    except Exception:
        return ABSENT


def _add_dicts(state: Any, found: set[int]) -> None:
    """The ids of containers in state: modules and optimizers there keep theirs in dicts."""
    if hasattr(type(state), "state"):
        state = state.state
    if type(state) not in (dict, list, tuple) or id(state) in found:
        return
    found.add(id(state))
    for part in state.values() if type(state) is dict else state:
        _add_dicts(part, found)


def _operators(cls: type) -> list[tuple[str, Any]]:
    """Methods that are called without being read: `__call__`."""
    return [
        (name, entry)
        for base in cls.__mro__[:-1]
        for name, entry in vars(base).items()
        if name.startswith("__") and isinstance(entry, types.FunctionType)
        and name not in vars(object) and not is_foreign(base.__module__)
        and static(cls, name) is entry
    ]  # fmt: skip


def read_again(reads: list[tuple[Any, str, str]]) -> None:
    """Notes for the traces under way what a trace has read that is used inside them."""
    with quiet():
        for owner, name, path in reads:
            for under_way in on_this_thread.reads:
                if under_way.is_noted(owner, name):  # and given to the trace inside
                    continue
                under_way.add_root(path, owner)
                under_way.fix(owner, name, _plainly(owner, name))
