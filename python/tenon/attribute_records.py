"""What attributes were when a traced function read them: the records that `object_reads` makes."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

from . import _core
from .object_kinds import is_array

Record = tuple[Any, ...]


def is_of_trace(seen: Record) -> bool:
    """Whether a record has tensors of the trace: state, or what it leaks."""
    return any(part[0] == "any" for part in _leaves(seen))


def is_of_transform(seen: Record) -> bool:
    """Whether a record has tensors that only a derivative has, such as parameters while
    `nn.value_and_grad` runs."""
    return any(part[0] == "tensor" and _core._is_taped(part[1]) for part in _leaves(seen))


def _leaves(seen: Record) -> Iterator[Record]:
    if seen[0] in ("sequence", "dict", "set", "array"):
        for part in seen[-1]:
            yield from _leaves(part)
    else:
        yield seen


def is_same(a: Any, b: Any) -> bool:
    """Compare two records of one attribute."""
    if type(a) is not type(b):
        return False
    if isinstance(a, tuple):
        return len(a) == len(b) and all(map(is_same, a, b))
    if isinstance(a, _core.Tensor):
        return _core._is_same_value(a, b)
    if is_array(a):
        return bool(a.dtype == b.dtype and a.shape == b.shape and a.tobytes() == b.tobytes())
    return a is b or bool(a == b)
