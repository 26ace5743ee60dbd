"""Trees: lists, tuples, dicts, named tuples, dataclasses and registered classes around leaves.

Everything else is a leaf; None is a tree without leaves. The transforms take and return trees.

    >>> import tenon as tn
    >>> params = {"w": [1.0, 2.0], "b": 3.0}
    >>> tn.tree.map(lambda x: 10 * x, params)
    {'w': [10.0, 20.0], 'b': 30.0}
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Callable, Iterable
from typing import Any

from . import _core
from ._core import TreeStructure

__all__ = [
    "TreeStructure",
    "flatten",
    "leaves",
    "map",
    "map_with_path",
    "reduce",
    "register",
    "structure",
    "unflatten",
]


def flatten(tree: Any) -> tuple[list[Any], TreeStructure]:
    """The leaves of a tree, in order, and its structure.

    The entries of a dict are in the dict's order, which is part of the structure.

        >>> tn.tree.flatten({"w": [1, 2], "b": (3, None)})
        ([1, 2, 3], {'w': [*, *], 'b': (*, None)})
    """
    return _core._tree_flatten(tree)


def unflatten(structure: TreeStructure, leaves: Iterable[Any]) -> Any:
    """The tree with this structure and these leaves.

    >>> leaves, structure = tn.tree.flatten({"w": [1, 2], "b": 3})
    >>> tn.tree.unflatten(structure, "xyz")
    {'w': ['x', 'y'], 'b': 'z'}
    """
    return _core._tree_unflatten(structure, leaves)


def leaves(tree: Any) -> list[Any]:
    """The leaves of a tree, in order.

    >>> tn.tree.leaves([1, {"a": (2, 3)}, None])
    [1, 2, 3]
    """
    return _core._tree_flatten(tree)[0]


def structure(tree: Any) -> TreeStructure:
    """The structure of a tree without its leaves; it can be compared, hashed and printed.

    >>> tn.tree.structure([1, (2, 3)]) == tn.tree.structure([0, ("a", "b")])
    True
    """
    return _core._tree_flatten(tree)[1]


def map(f: Callable[..., Any], tree: Any, *rest: Any) -> Any:
    """Applies `f` to every leaf, with the matching leaves of further trees; a tree of results.

    Further trees must have the same structure, with the entries of dicts in any order.

        >>> tn.tree.map(lambda x, dx: x - dx, {"a": 3, "b": [4]}, {"b": [1], "a": 2})
        {'a': 1, 'b': [3]}
    """
    return _core._tree_map(f, tree, *rest)


def map_with_path(f: Callable[..., Any], tree: Any, *rest: Any) -> Any:
    """Like `map`, but passes the path of the leaf as first argument.

    A path is a tuple with the key, index or field name of every step from the root.

        >>> tn.tree.map_with_path(lambda path, x: f"{path} {x}", {"w": [1, 2]})
        {'w': ["('w', 0) 1", "('w', 1) 2"]}
    """
    paths = unflatten(structure(tree), _paths(structure(tree)))
    return _core._tree_map(lambda leaf, path, *more: f(path.keys, leaf, *more), tree, paths, *rest)


class _Path:
    """The keys from the root to a leaf; a leaf itself, as a tuple would not be."""

    def __init__(self, keys: tuple[Any, ...]) -> None:
        self.keys = keys


def _paths(of: TreeStructure) -> list[_Path]:
    """The paths of the leaves, from the nodes in preorder."""
    nodes = iter(of._nodes())

    def walk(keys: tuple[Any, ...]) -> list[_Path]:
        kind, _, children, data, fields = next(nodes)
        if kind == "leaf":
            return [_Path(keys)]
        if kind == "object":  # its own tree stands for it
            return [path for _ in range(children) for path in walk(keys)]
        names = data if kind == "dict" else fields or range(children)
        return [path for name in (list(names) if children else []) for path in walk((*keys, name))]

    return walk(())


_START = object()


def reduce(f: Callable[[Any, Any], Any], tree: Any, initializer: Any = _START) -> Any:
    """`f(f(f(a, b), c), ...)` over the leaves in order, starting from `initializer` if given.

    >>> tn.tree.reduce(lambda a, b: a + b, {"w": [1, 2], "b": 3}, 0)
    6
    """
    rest = iter(leaves(tree))
    total = next(rest, _START) if initializer is _START else initializer
    if total is _START:
        _core._fail("value", "tree.reduce: no leaves, and no initializer")
    for leaf in rest:
        total = f(total, leaf)
    return total


def register(
    cls: type, flatten: Callable[[Any], tuple[Any, Any]], unflatten: Callable[[Any, Any], Any]
) -> type:
    """Registers a class as a tree.

    `flatten(x)` returns a tree with the children of `x` (a dict names them in errors) and static
    data that is comparable with `==`; `unflatten(rest, tree)` rebuilds `x`. Classes with the
    methods `__tree_flatten__(self)` and `__tree_unflatten__(rest, tree)` (static) need no
    registration. Neither do dataclasses; their fields with `metadata={"static": True}` are static.

        >>> class Line:
        ...     def __init__(self, slope, name):
        ...         self.slope, self.name = slope, name
        >>> tn.tree.register(Line, lambda x: ({"slope": x.slope}, x.name),
        ...                  lambda name, parts: Line(parts["slope"], name))
        <class '...Line'>
        >>> tn.tree.map(lambda x: x + 1, Line(2, "first")).slope
        3
    """
    _core._tree_register(cls, flatten, unflatten)
    return cls


register(defaultdict, lambda d: (dict(d), d.default_factory), lambda f, d: defaultdict(f, d))
