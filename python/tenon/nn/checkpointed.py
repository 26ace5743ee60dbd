"""Modules whose calls are recomputed in the backward pass."""

from __future__ import annotations

import functools
from typing import Any, TypeVar

import tenon as tn

from .. import _core
from .module import Module

M = TypeVar("M", bound=Module)
_CLASS = "_checkpointed"  # the attribute of a class with that of its checkpointed modules


def checkpoint(module: M) -> M:
    """Rematerialises the calls of `module`: derivatives keep the arguments and recompute the rest.

    The result is a module of the same kind that shares the parameters and their names.
    `tn.checkpoint` does the same for a function.

        >>> block = tn.nn.checkpoint(tn.nn.Linear(2, 3))
        >>> block, list(block.state_dict())
        (Linear(2 -> 3), ['weight', 'bias'])
        >>> block(tn.ones((1, 2))).shape
        (1, 3)
    """
    if not isinstance(module, Module):
        hint = "tn.checkpoint takes functions"
        _core._fail("type", f"nn.checkpoint: expected a module, not {type(module).__name__}", hint)
    made = object.__new__(_class_for(type(module)))
    made.__dict__ = module.__dict__
    return made


def _class_for(kind: type[M]) -> type[M]:
    known = vars(kind).get(_CLASS)
    if known is None:

        def call(self: M, *args: Any, **kwargs: Any) -> Any:
            return tn.checkpoint(functools.partial(kind.__call__, self))(*args, **kwargs)

        facts = {"__call__": call, "__doc__": kind.__doc__, "__module__": kind.__module__}
        known = type(kind.__name__, (kind,), facts)
        setattr(known, _CLASS, known)  # once is enough
        setattr(kind, _CLASS, known)
    return known
