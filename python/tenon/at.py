"""Functional updates: `x.at[i].add(v)` is `x` with `v` added at `i`."""

from __future__ import annotations

from . import _core

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Iterator
    from typing import Any


class At:
    """`x.at`, waiting for an index."""

    __slots__ = ("_x",)

    def __init__(self, x: _core.Tensor) -> None:
        self._x = x

    def __getitem__(self, index: object) -> AtIndex:
        return AtIndex(self._x, index)


class AtIndex:
    """`x.at[index]`. Every method returns a new tensor; `x` is unchanged."""

    __slots__ = ("_index", "_x")

    def __init__(self, x: _core.Tensor, index: object) -> None:
        self._x = x
        self._index = index

    def get(self) -> _core.Tensor:
        """`x[index]`."""
        return self._x[self._index]

    def set(self, value: object) -> _core.Tensor:
        """`x` with the elements replaced by `value`; for equal indices the last one wins."""
        return _core.index_update(self._x, self._index, value, "set")

    def add(self, value: object) -> _core.Tensor:
        """`x` with `value` added; equal indices accumulate."""
        return _core.index_update(self._x, self._index, value, "add")

    def subtract(self, value: object) -> _core.Tensor:
        """`x` with `value` subtracted; equal indices accumulate."""
        return _core.index_update(self._x, self._index, _core.negative(value), "add")

    def multiply(self, value: object) -> _core.Tensor:
        """`x` with the elements multiplied by `value`."""
        return _core.index_update(self._x, self._index, value, "multiply")

    def max(self, value: object) -> _core.Tensor:
        """`x` with the elements replaced by their maximum with `value`."""
        return _core.index_update(self._x, self._index, value, "max")

    def min(self, value: object) -> _core.Tensor:
        """`x` with the elements replaced by their minimum with `value`."""
        return _core.index_update(self._x, self._index, value, "min")


def _namespace(self: _core.Tensor, *, api_version: str | None = None) -> object:
    """The module with the functions of the Python array API standard."""
    import tenon

    known = ("2021.12", "2022.12", "2023.12", "2024.12", tenon.__array_api_version__)
    if api_version is not None and api_version not in known:
        _core._fail("value", f"__array_namespace__: unknown version: {api_version!r}")
    return tenon


def _rows(self: _core.Tensor) -> Iterator[_core.Tensor]:
    for i in range(len(self)):
        yield self[i]


def _iterate(self: _core.Tensor) -> Iterator[_core.Tensor]:
    """The tensors along the first axis, each made when it is asked for."""
    if self.ndim == 0:
        _core._fail("type", "iter: a tensor of rank 0 has no axis to iterate over")
    return _rows(self if _core._is_traced(self) else self.eval())


def _html(self: _core.Tensor) -> str:
    """Return the HTML that notebooks display."""
    import html

    shape = ", ".join(str(n) for n in self.shape)
    return (
        f"<pre>{html.escape(repr(self))}</pre>"
        f"<small>shape ({shape}), {self.dtype.name}, {self.nbytes} bytes</small>"
    )


def install(tensor: Any) -> None:
    """Gives the compiled class the parts that are written in Python."""
    tensor.at = property(At, doc="Functional updates: `x.at[i].set(v)`.")
    tensor.__array_namespace__ = _namespace
    tensor._repr_html_ = _html
    tensor.__iter__ = _iterate
