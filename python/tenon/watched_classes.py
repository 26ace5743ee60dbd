"""Classes whose objects report what is read of them, while functions are traced.

`__getattribute__` of a class made by a class statement is replaced by one that notes reads. A class
itself, and a namespace, gets a subclass of its own class for the time: `type(o).rate`.
"""

from __future__ import annotations

import functools
import os
import sys
import threading
import types
from collections import Counter
from collections.abc import Callable
from typing import Any

from . import _core

ABSENT = object()
_CACHED = functools.cached_property.__get__.__code__
_lock = threading.RLock()
_users: dict[tuple[str, int], tuple[Any, int, Any]] = {}  # what, how many, how to end it
_plain: dict[type, type] = {}  # of those that note, what they stand for


class _Stack(threading.local):
    def __init__(self) -> None:
        self.reads: list[Any] = []
        self.quiet = False


on_this_thread = _Stack()


class quiet:
    """Nothing that is read inside is noted."""

    __slots__ = ("_before",)

    def __enter__(self) -> None:
        self._before, on_this_thread.quiet = on_this_thread.quiet, True

    def __exit__(self, *_: object) -> None:
        on_this_thread.quiet = self._before


def class_of(value: Any) -> type:
    """The class as it is when nothing is watched."""
    return _plain.get(type(value), type(value))


def watch(target: Any, what: str) -> tuple[str, int] | None:
    """Notes reads of the "objects" of a class, or of an object "itself"; None: cannot be."""
    key = what, id(target)
    with _lock:
        kept, count, end = _users.get(key, (target, 0, None))
        try:
            end = end or (_watch_objects if what == "objects" else _change_class)(target)
        except Exception:  # whatever a metaclass has against it
            return None
        _users[key] = kept, count + 1, end
        return key


def unwatch(key: tuple[str, int]) -> None:
    with _lock:
        kept, count, end = _users.pop(key)
        if count > 1:
            _users[key] = kept, count - 1, end
        else:
            end()


def _keep_own() -> None:
    """Drop the traces of other threads, which do not exist in a child of fork."""
    try:
        own = Counter(key for reads in on_this_thread.reads for key in reads.watched)
        for key, (kept, _, end) in list(_users.items()):
            if key in own:
                _users[key] = kept, own[key], end
            else:
                del _users[key]
                end()
    finally:
        _lock.release()


if hasattr(os, "register_at_fork"):  # no other thread is inside `watch` then
    os.register_at_fork(
        before=_lock.acquire, after_in_parent=_lock.release, after_in_child=_keep_own
    )


def _watch_objects(cls: type) -> Callable[[], None]:
    own = type.__getattribute__(cls, "__dict__").get("__getattribute__", ABSENT)
    inherited = type.__getattribute__(cls, "__getattribute__")
    inherited = getattr(inherited, "_tenon_original", inherited)
    type.__setattr__(cls, "__getattribute__", _noting(inherited))
    if own is ABSENT:
        return lambda: type.__delattr__(cls, "__getattribute__")
    return lambda: type.__setattr__(cls, "__getattribute__", own)


def _change_class(target: Any) -> Callable[[], None]:
    before = type(target)
    _core._set_class(target, _noting_class(before))  # type: ignore[arg-type]
    return lambda: _core._set_class(target, before)


@functools.cache
def _noting_class(cls: type) -> type:
    contents: dict[str, Any] = {
        "__slots__": (),
        "__module__": cls.__module__,
        "__qualname__": cls.__qualname__,
        "__getattribute__": _noting(cls.__getattribute__),  # type: ignore[arg-type]
    }
    # What is made of them is plain: copies, pickles, subclasses.
    if cls is types.SimpleNamespace:  # which compare and print what they hold
        contents["__eq__"] = lambda self, other: vars(self) is not None and cls.__eq__(self, other)
        contents["__repr__"] = lambda self: cls.__repr__(self) if vars(self) else "namespace()"
        contents["__new__"] = lambda _, *values, **named: cls(*values, **named)
        contents["__reduce_ex__"] = lambda self, _: (cls, (), vars(self))
    else:

        def __init__(self: type, *of: Any, **named: Any) -> None:
            cls.__init__(self, *of, **named)  # type: ignore[misc]
            _core._set_class(self, cls)
            for reads in on_this_thread.reads[:1]:  # until the trace that makes it is over
                reads.watch(self, "itself")

        contents["__init__"] = __init__
    made = type(cls)(cls.__name__, (cls,), contents)
    _plain[made] = cls
    return made


def _noting(original: Callable[[Any, str], Any]) -> Callable[[Any, str], Any]:
    def __getattribute__(self: Any, name: str) -> Any:
        here = on_this_thread
        if not here.reads or here.quiet:
            return original(self, name)
        if name == "__dict__" and sys._getframe(1).f_code is _CACHED:
            return original(self, name)  # where it keeps the value, which is noted itself
        try:
            value = original(self, name)
        except AttributeError:
            note(self, name, ABSENT)
            raise
        return note(self, name, value)

    __getattribute__._tenon_original = original  # type: ignore[attr-defined]
    return __getattribute__


def note(owner: Any, name: str, value: Any) -> Any:
    """Notes a read for all traces under way; returns what the function gets."""
    here = on_this_thread
    here.quiet = True
    try:
        for reads in here.reads:
            value = reads.note(owner, name, value)
    finally:
        here.quiet = False
    return value

