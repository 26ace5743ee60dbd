"""The surface of an executable: its parameters and the trees of arguments and results, also as text
in its file.

The text is JSON. Trees are nodes in preorder: "*" for a leaf, null for None, and lists such as
["dict", keys] or ["dataclass", class, fields, constants]. Reading it runs no code: a class is
looked up among the imported modules, and where it is not found, or has other fields, a plain tuple
or dict takes its place.
"""

from __future__ import annotations

import keyword
import re
import sys
from collections.abc import Iterator
from inspect import Parameter as Python
from typing import Any

from . import _core, tree
from .input_infos import DimensionInputInfo, Info, InputInfo

Given = dict[type, Iterator[Any]]


class Constant:
    """Replaces an object that a file cannot hold. Nothing is equal to it."""

    def __init__(self, kind: str) -> None:
        self.kind = kind

    def __repr__(self) -> str:
        return f"a {self.kind} that was constant when it was compiled"


class Parameter:
    """An argument of a function that was compiled: with inputs among its leaves, or a constant."""

    def __init__(self, name: str, kind: Any, value: Any) -> None:
        self.name, self.kind, self.value = name, kind, value
        self.leaves, self.structure = tree.flatten(value)

    @property
    def is_input(self) -> bool:
        return any(isinstance(leaf, Info) for leaf in self.leaves)

    @property
    def names(self) -> list[str]:
        """Return the names of the leaves: `data.b.list[1]`."""
        return [self.name + plain(path) for path in self.structure.paths()]

    def inputs(self) -> list[tuple[str, Info]]:
        return [(n, leaf) for n, leaf in zip(self.names, self.leaves) if isinstance(leaf, Info)]

    def with_inputs(self, given: Given) -> Any:
        """The value with what is given next for every input."""
        if not self.is_input:
            return self.value
        leaves = [next(given[type(x)]) if isinstance(x, Info) else x for x in self.leaves]
        return tree.unflatten(self.structure, leaves)


def plain(path: str) -> str:
    """`['b'][1]` as `.b[1]`."""
    return re.sub(r"\['([^\W\d]\w*)'\]", r".\1", path)


def parameter_name(name: str, taken: list[Parameter]) -> str:
    """A name like this one that a parameter can have and no other has."""
    name = re.sub(r"^(?=\d)|\W", "_", name)
    while keyword.iskeyword(name) or any(p.name == name for p in taken):
        name += "_"
    return name


# Writing ------------------------------------------------------------------------------------


def write(parameters: list[Parameter], results: _core.TreeStructure | None) -> str:
    import json

    rows = [
        [p.name, int(p.kind), _nodes(p.structure), [_leaf(leaf) for leaf in p.leaves]]
        for p in parameters
        if p.is_input
    ]
    fixed = [p.name for p in parameters if not p.is_input]
    made = {"parameters": rows, "fixed": fixed, "results": results and _nodes(results)}
    return json.dumps(made, separators=(",", ":"))


def _leaf(leaf: Any) -> Any:
    if isinstance(leaf, Info):
        return "size" if isinstance(leaf, DimensionInputInfo) else "tensor"
    if _is_plain(leaf):
        return {"constant": leaf}
    return {"kind": leaf.kind if isinstance(leaf, Constant) else type(leaf).__name__}


def _is_plain(value: Any) -> bool:
    return value is None or type(value) in (bool, int, float, str)


def _nodes(structure: _core.TreeStructure) -> list[Any]:
    made: list[Any] = []
    for kind, cls, children, data, fields in structure._nodes():
        if kind in ("leaf", "none"):
            made.append("*" if kind == "leaf" else None)
        elif kind == "dict":
            made.append([kind, [key if _is_plain(key) else str(key) for key in data]])
        elif kind in ("named_tuple", "dataclass"):
            name = f"{cls.__module__}:{cls.__qualname__}"
            constants = list(data or ())
            if not all(_is_plain(value) for value in constants):
                name = ""  # it cannot be made again
            made.append([kind, name, list(fields), constants if name else []])
        elif kind != "object":  # of an object its own tree stays
            made.append([kind, children])
    return made


# Reading ------------------------------------------------------------------------------------


def read(
    text: str, names: list[str], infos: list[Info], outputs: int
) -> tuple[list[Parameter], _core.TreeStructure | None]:
    """Read what `write` wrote, for an executable with these inputs and number of results."""
    if not text or text.startswith("c++ "):  # it was not made by Python
        parameters: list[Parameter] = []
        for name, info in zip(names, infos):
            name = parameter_name(name, parameters)
            parameters.append(Parameter(name, Python.POSITIONAL_OR_KEYWORD, info))
        return parameters, tree.structure((0,) * outputs) if outputs != 1 else None
    import json

    try:
        return _read(json.loads(text), infos, outputs)
    except (AttributeError, LookupError, TypeError, ValueError, RecursionError, StopIteration):
        _core._fail("value", "load: the trees of arguments and results in the file are damaged")


def _read(
    surface: Any, infos: list[Info], outputs: int
) -> tuple[list[Parameter], _core.TreeStructure | None]:
    tensors = (info for info in infos if isinstance(info, InputInfo))
    sizes = (info for info in infos if isinstance(info, DimensionInputInfo))
    of_leaf = {"tensor": tensors, "size": sizes}
    parameters = []
    for name, kind, nodes, written in surface["parameters"]:
        leaves = [
            next(of_leaf[leaf])
            if isinstance(leaf, str)
            else (leaf["constant"] if "constant" in leaf else Constant(leaf["kind"]))
            for leaf in written
        ]
        parameters.append(Parameter(name, list(_KINDS)[kind], _whole(nodes, leaves)))
    _check_used(tensors, sizes)
    parameters += [Parameter(name, Python.POSITIONAL_OR_KEYWORD, None) for name in surface["fixed"]]
    nodes = surface["results"]
    results = _whole(["*"] if nodes is None else nodes, [0] * outputs)
    return parameters, None if nodes is None else tree.structure(results)


_KINDS: Any = type(Python.POSITIONAL_ONLY)


def _check_used(*several: Iterator[Any]) -> None:
    if any(True for rest in several for _ in rest):
        raise ValueError("more than the tree has room for")


def _whole(nodes: list[Any], leaves: list[Any]) -> Any:
    rest = iter(nodes), iter(leaves)
    made = _tree(*rest)
    _check_used(*rest)
    return made


def _tree(nodes: Iterator[Any], leaves: Iterator[Any]) -> Any:
    node = next(nodes)
    if node is None or node == "*":
        return next(leaves) if node else None
    kind, what, *more = node
    if kind == "list":
        return [_tree(nodes, leaves) for _ in range(what)]
    if kind == "tuple":
        return tuple([_tree(nodes, leaves) for _ in range(what)])
    if kind == "dict":
        return {key: _tree(nodes, leaves) for key in what}
    fields, constants = more
    values = [_tree(nodes, leaves) for _ in fields]
    return _object(kind, _imported(what), fields, values, constants)


def _object(kind: str, cls: Any, fields: list[str], values: list[Any], constants: list[Any]) -> Any:
    """A named tuple or dataclass, where its class is as it was."""
    if kind == "named_tuple":
        same = issubclass(cls, tuple) and getattr(cls, "_fields", None) == tuple(fields)
        return cls._make(values) if same else tuple(values)
    known = vars(cls).get("__dataclass_fields__", {})
    static = [name for name, field in known.items() if field.metadata.get("static")]
    if [n for n in known if n not in static] != fields or len(static) != len(constants):
        return dict(zip(fields, values))
    made = cls.__new__(cls)
    for name, value in zip(fields + static, values + constants):
        object.__setattr__(made, name, value)
    return made


def _imported(name: str) -> type:
    """The class, if its module is imported."""
    module, _, path = name.partition(":")
    found: Any = sys.modules.get(module)
    for part in path.split("."):
        found = vars(found).get(part) if hasattr(found, "__dict__") else None
    return found if isinstance(found, type) else object
