"""Calls of modules: which one is the outermost, and where inside it an error came from."""

from __future__ import annotations

import functools
import sys
import threading
from collections.abc import Callable
from typing import TYPE_CHECKING, Any

from .. import _core
from ..watched_classes import quiet

if TYPE_CHECKING:
    from .module import Module


class _Running(threading.local):
    outermost: Module | None = None
    paths: dict[int, str] | None = None  # of the modules in the outermost one that is traced


_running = _Running()


def as_call(call: Callable[..., Any]) -> Callable[..., Any]:
    """`call`, the `__call__` of a class of modules, as what runs when a module is called.

    The parameters of the outermost module become leaves of `backward()`. An error is raised again
    with the path of the module it comes from. In a trace, what is recorded knows that path too.
    What the call makes is on the device of the first tensor it is given.
    """

    @functools.wraps(call)
    def called(self: Module, *args: Any, **kwargs: Any) -> Any:
        run = functools.partial(_traced_call, call) if _core._is_tracing() else call
        there = _core._elsewhere(args, kwargs)
        if there is not None:
            run = functools.partial(_call_there, there, run)
        if _running.outermost is not None:
            try:
                return run(self, *args, **kwargs)
            except _core.Error as error:
                if not hasattr(error, "_module"):
                    error._module = self  # type: ignore[attr-defined]
                raise
        _running.outermost = self
        try:
            if _core.is_grad_enabled():  # else they are not needed, and finding them takes time
                with quiet():  # the call reads what it needs itself
                    _core._watch(self.trainable_parameters())
            return run(self, *args, **kwargs)
        except _core.Error as error:
            _name_module(error, self)
            raise
        finally:
            _running.outermost = None

    return called


def _call_there(
    there: _core._DeviceContext, run: Callable[..., Any], /, *args: Any, **kwargs: Any
) -> Any:
    """Run a module with the device of its arguments as the default device."""
    with there:
        return run(*args, **kwargs)


def _traced_call(call: Callable[..., Any], self: Module, *args: Any, **kwargs: Any) -> Any:
    """Calls a module so that its kernels can be named after it."""
    root = _running.paths is None
    if root:
        _running.paths = {id(module): path for path, module in _by_place(self)}
    path = (_running.paths or {}).get(id(self))
    if path is None:  # one that was made during the call is a part of its caller
        return call(self, *args, **kwargs)
    outer = _core._enter_module(path)
    try:
        return call(self, *args, **kwargs)
    finally:
        _core._leave_module(outer)
        if root:
            _running.paths = None


def _by_place(root: Module) -> list[tuple[str, Module]]:
    from .module import modules_by_place

    with quiet():
        return list(modules_by_place(root))


def _name_module(error: _core.Error, root: Module) -> None:
    """Puts the path of the module that failed in front of the error's text."""
    failed = getattr(error, "_module", root)
    paths = (path for path, module in _by_place(root) if module is failed)
    path = next(paths, type(failed).__name__)  # one that was made during the call has no path
    name = _variable(root) or type(root).__name__
    place = f"{name}.{path}: " if path else f"{name}: "
    text = error.args[0]
    if not text.startswith(place):  # a layer of its own, without a variable: named by its class
        error.args = (place + text, *error.args[1:])


def _variable(module: Module) -> str | None:
    """Return the caller's variable that holds the module, if there is one."""
    frame = sys._getframe(3)
    for names in (frame.f_locals, frame.f_globals):
        for name, value in names.items():
            if value is module and not name.startswith("_"):
                return name
    return None
