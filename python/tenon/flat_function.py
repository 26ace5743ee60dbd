"""Functions on trees as functions on lists of tensors, which is all the core knows."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from . import _core, tree


def check_callable(name: str, f: Any) -> None:
    if not callable(f):
        _core._fail("type", f"{name}: not a function: {type(f).__name__}")


def as_tensors(value: Any, number: Callable[[Any], _core.Tensor] = _core.asarray) -> Any:
    """The tree with tensors, made by `number`, in place of numbers."""
    if type(value) is _core.Tensor:
        return value
    return tree.map(lambda x: number(x) if isinstance(x, (bool, int, float, complex)) else x, value)


def check_alike(name: str, made: _core._TensorTree, like: _core._TensorTree) -> None:
    """Fails unless both trees have one structure."""
    if made.structure != like.structure:
        _core._fail(
            "value", f"{name}: results differ in structure: {made.structure} and {like.structure}"
        )


class FlatFunction:
    """`f` of the arguments in `given`, on lists of tensors."""

    def __init__(
        self,
        name: str,
        f: Callable[..., Any],
        given: _core._TensorTree,
        like: FlatFunction | _core._TensorTree | None = None,
        keywords: bool = False,
        number: Callable[[Any], _core.Tensor] = _core.asarray,
    ) -> None:
        check_callable(name, f)
        self._name, self._f, self._given, self._like = name, f, given, like
        self._keywords, self._number = keywords, number
        self.made: _core._TensorTree | None = None  # by the last call

    def __call__(self, tensors: list[_core.Tensor]) -> list[_core.Tensor]:
        made = self._given.call(self._f, tensors, self._keywords)
        self.made = results = _core._TensorTree(as_tensors(made, self._number))
        results.check_whole(self._name)
        like = self._like.made if isinstance(self._like, FlatFunction) else self._like
        if like is not None:
            check_alike(self._name, results, like)
        return results.tensors

    @property
    def results(self) -> _core._TensorTree:
        """Return the results of the last call."""
        assert self.made is not None
        return self.made
