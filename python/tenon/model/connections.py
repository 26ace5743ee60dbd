"""Connections of models; each operator and method adds a block."""

from __future__ import annotations

import inspect
from typing import Any

from .. import _core
from .blocks import op_block
from .logical import Block, Model
from .modules import block as block_of


class Connection:
    """A connection between blocks of a model: `model.h`.

    Operators and tensor methods add blocks to the model and return their outputs. `==` and `!=`
    compare the connections themselves; use `equal` and `not_equal` for their elements.

        >>> model = tn.Model()
        >>> model |= tn.model.Linear(4)(input="x", output="h")
        >>> (model.h @ model.h.transpose()).exp()
        Connection 'output' of 'model'
    """

    __array_priority__ = 1000  # NumPy leaves operators to us
    __array_ufunc__ = None

    def __init__(self, model: Model, number: int) -> None:
        self.model = model
        self._number = number

    @property
    def name(self) -> str:
        """The name in `get_shapes()`, and in results if it is an output."""
        return str(self.model._core._key(self._number))

    @property
    def _path(self) -> str:
        return str(self.model._core._connection(self._number))

    def __repr__(self) -> str:
        return f"Connection '{self.name}' of '{self.model.name}'"

    def __eq__(self, other: object) -> bool:
        if not isinstance(other, Connection):
            return NotImplemented
        return self.model is other.model and self._path == other._path

    def __hash__(self) -> int:
        return hash((id(self.model), self._number))

    def __bool__(self) -> bool:  # noqa: PLE0304  it always raises
        text = f"Connection: '{self.name}' has no value before the model is compiled"
        _core._fail("type", text, "where(condition, a, b) chooses between tensors")

    def __iter__(self) -> Any:
        _core._fail("type", f"Connection: how many elements '{self.name}' has is not known yet")

    def __getattr__(self, name: str) -> Any:
        """Methods of tensors."""
        if name.startswith("_") or not isinstance(getattr(_core, name, None), _core.Op):
            text = f"a connection has no attribute {name!r}"
            if name in ("shape", "dtype", "ndim", "size"):
                text += ": it is known when the model is compiled, by get_shapes() and get_types()"
            raise AttributeError(text, name=name)
        return lambda *args, **kwargs: called(name, (self, *args), kwargs)

    @property
    def T(self) -> Connection:
        made: Connection = self.transpose()
        return made

    def __getitem__(self, index: Any) -> Connection:
        return indexed(self, index)


def _operator(op: str, swapped: bool = False) -> Any:
    def apply(self: Connection, other: Any) -> Any:
        if not _is_operand(other):
            return NotImplemented
        return called(op, (other, self) if swapped else (self, other), {})

    return apply


def _is_operand(value: Any) -> bool:
    if isinstance(value, (Connection, _core.Tensor, bool, int, float, complex)):
        return True
    return hasattr(value, "__array__") or hasattr(value, "__dlpack__")


_BINARY = {
    "add": "add",
    "sub": "subtract",
    "mul": "multiply",
    "truediv": "divide",
    "floordiv": "floor_divide",
    "mod": "remainder",
    "pow": "power",
    "matmul": "matmul",
    "and": "bitwise_and",
    "or": "bitwise_or",
    "xor": "bitwise_xor",
    "lshift": "bitwise_left_shift",
    "rshift": "bitwise_right_shift",
}
_COMPARISONS = {"lt": "less", "le": "less_equal", "gt": "greater", "ge": "greater_equal"}
_UNARY = {"neg": "negative", "abs": "abs", "invert": "bitwise_invert", "pos": "positive"}

for _name, _op in _BINARY.items():
    setattr(Connection, f"__{_name}__", _operator(_op))
    setattr(Connection, f"__r{_name}__", _operator(_op, swapped=True))
for _name, _op in _COMPARISONS.items():
    setattr(Connection, f"__{_name}__", _operator(_op))
for _name, _op in _UNARY.items():
    setattr(Connection, f"__{_name}__", lambda self, op=_op: called(op, (self,), {}))


def called(op: str, args: tuple[Any, ...], kwargs: dict[str, Any]) -> Any:
    """Adds the block of an op that is called like this, and gives what it writes."""
    given = {**_by_name(op, args), **kwargs}
    lists = {name: value for name, value in given.items() if _is_list_of_connections(value)}
    constants = {
        name: value
        for name, value in given.items()
        if name not in lists and not isinstance(value, Connection)
    }
    block = op_block(op, sum(map(len, lists.values())) or None, constants)
    keys: dict[str, Any] = {}
    for name, value in given.items():
        if name not in constants:
            for end, item in enumerate(value) if name in lists else [("", value)]:
                terminal = f"{name}{end}"
                keys[terminal if terminal in block.inputs else f"input{end}"] = item
    return _added(block, keys)


def _by_name(op: str, args: tuple[Any, ...]) -> dict[str, Any]:
    """Arguments by parameter; the last one takes all that are left: `reshape(x, 2, 3)`."""
    names = list(inspect.signature(getattr(_core, op)).parameters)
    if len(args) > len(names):
        args = (*args[: len(names) - 1], args[len(names) - 1 :])
    return {name: value for name, value in zip(names, args) if value is not None}


def _is_list_of_connections(value: Any) -> bool:
    is_list = isinstance(value, (list, tuple)) and len(value) > 0
    return is_list and all(isinstance(item, Connection) for item in value)


def _added(block: Block, keys: dict[str, Any]) -> Any:
    model: Model = next(iter(keys.values())).model
    model |= block(**keys)
    names = [f"{model._core._last_part}.{output}" for output in block.outputs]
    made = tuple(model.connection(name) for name in names)
    return made[0] if len(made) == 1 else made


def indexed(x: Connection, index: Any) -> Connection:
    """`x[index]`; connections may be among the indices."""
    items = list(index) if isinstance(index, tuple) else [index]
    inner = [i for i, item in enumerate(items) if isinstance(item, Connection)]
    names = ["input", *(f"index{n}" for n in range(len(inner)))]

    def select(x: Any, *indices: Any) -> Any:
        all_of_it = list(items)
        for i, given in zip(inner, indices):
            all_of_it[i] = given
        return x[tuple(all_of_it)]

    select.__name__ = "Index"
    given = [x, *(items[i] for i in inner)]
    made: Connection = _added(block_of(select, inputs=names), dict(zip(names, given)))
    return made
