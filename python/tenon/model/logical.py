"""Logical models: blocks, names and connections."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, TypeAlias

from .. import _core

if TYPE_CHECKING:
    from .. import nn
    from .connections import Connection

#: A shape as users write it: numbers, names of sizes, None for any size and ... for any axes.
ShapeLike: TypeAlias = "Sequence[Any] | str"


def shape_text(shape: ShapeLike) -> str:
    """A shape in the words of terminals: "32 _ 10"."""
    if isinstance(shape, str):
        return shape
    if not isinstance(shape, (list, tuple)):
        _core._fail("type", f"a shape is a list of sizes, not {shape!r}", "[32, None, 10]")
    return " ".join(map(_size_text, shape))


def _size_text(size: Any) -> str:
    if size is None or size is ...:
        return "_" if size is None else "..."
    if isinstance(size, bool) or not (isinstance(size, (int, str)) or hasattr(size, "__index__")):
        text = f"a size is a number, a name, None or ..., not {size!r}"
        _core._fail("type", text)
    return str(size)


@dataclass(frozen=True)
class Terminal:
    """An input or output of a block.

    `role` is "input", "parameter", "state" or "output". `shape` is a pattern as in `shape_text`: a
    name is the same size in all terminals of the block, "..." the same axes; "*" is any shape.
    `initial(shape, dtype, key)` returns the initial value of a parameter or a state.
    """

    name: str
    role: str = "input"
    shape: str = "*"
    type: Any = None
    initial: Callable[..., Any] | None = None
    optional: bool = False


@dataclass(init=False)
class IOKey:
    """A connection with its properties.

    `value` makes it a constant, `expose` makes it an output of the model or not. `connections` are
    merged with it.

        >>> model = tn.Model()
        >>> model |= tn.model.Relu()(input=tn.IOKey("x", shape=[None, 3]), output="y")
        >>> tn.compile(model).get_shapes()["y"][1]
        3
    """

    name: str
    shape: ShapeLike | None
    type: Any
    value: Any
    expose: bool | None
    connections: Sequence[str | Connection]

    def __init__(
        self,
        name: str = "",
        shape: ShapeLike | None = None,
        type: Any = None,
        value: Any = None,
        expose: bool | None = None,
        connections: Sequence[str | Connection] = (),
    ) -> None:
        if not isinstance(name, str):
            _core._fail("type", f"IOKey: a name is a string, not {name!r}")
        if shape is not None:
            shape_text(shape)  # refuses what is none
        self.name, self.shape, self.type = name, shape, type
        self.value, self.expose, self.connections = value, expose, connections

    @property
    def shape_text(self) -> str | None:
        return None if self.shape is None else shape_text(self.shape)


Key: TypeAlias = "str | IOKey | Connection"


@dataclass(frozen=True)
class Connected:
    """A block and the connections of its terminals."""

    block: Block | Model
    connections: Mapping[str, Key]
    name: str = ""


def connected(
    block: Block | Model, args: tuple[Any, ...], name: str, connections: Mapping[str, Key]
) -> Connected:
    kind = block.name if isinstance(block, Model) else block.kind
    if args:
        first = block._core._terminals[0][0] if isinstance(block, Model) else block.inputs[0]
        hint = f"{kind}(...)({first}={args[0]!r})" if isinstance(args[0], str) else ""
        _core._fail("type", f"{kind}: terminals are connected by their names", hint)
    if not isinstance(name, str):
        text = f"{kind}: the name of a block is a string, not {type(name).__name__}"
        _core._fail("type", text)
    return Connected(block, connections, name)


class Block:
    """A part of models. Calling it connects its terminals."""

    def __init__(self, core: _core.ModelBlock) -> None:
        self._core = core

    @staticmethod
    def of(kind: str, terminals: Sequence[Terminal], compute: Callable[..., Any]) -> Block:
        """A block that `compute(given, training, key)` computes: outputs, then new states."""
        return Block(_core._make_block(kind, list(terminals), {}, "", False, compute))

    def __call__(self, *args: Any, name: str = "", **connections: Key) -> Connected:
        return connected(self, args, name, connections)

    @property
    def kind(self) -> str:
        return self._core.kind

    @property
    def inputs(self) -> tuple[str, ...]:
        """The terminals that are not outputs: inputs, parameters and states."""
        return tuple(name for name, role, *_ in self._core.terminals if role != "output")

    @property
    def outputs(self) -> tuple[str, ...]:
        return tuple(name for name, role, *_ in self._core.terminals if role == "output")

    def __repr__(self) -> str:
        return f"{self._core.called}: {', '.join(self.inputs)} -> {', '.join(self.outputs)}"


Part: TypeAlias = "Block | Model | Connected | nn.Module"


class Model:
    """Blocks, names and connections; `tn.compile` adds sizes, types and a backend.

    `model |= block(input="x", output="h")` connects by name, `model += block` reads the latest
    output. A model that is called or added becomes a block of another model. `model.h` is a
    connection; operators and tensor methods on it add blocks.

        >>> from tenon.model import Linear, Relu
        >>> model = tn.Model(name="residual")
        >>> model |= Linear(16)(input="x", output="h")
        >>> model += Relu()
        >>> y = model.x + 2 * model.h.sum(axis=-1, keepdims=True)
        >>> model
        Model 'residual', 5 blocks
          linear    Linear(output_dims=16)       x -> h
          relu      Relu                         h -> relu.output
          sum       Sum(axis=-1, keepdims=True)  h -> sum.output
          multiply  Multiply(x1=2)               sum.output -> multiply.output
          add       Add                          x, multiply.output -> output
    """

    def __init__(self, *blocks: Part | str, name: str = "model") -> None:
        if blocks and isinstance(blocks[0], str):
            name, *blocks = blocks  # type: ignore[assignment]
        if not isinstance(name, str):
            _core._fail("type", f"Model: a name is a string, not {type(name).__name__}")
        self._core = _core.LogicalModel(name)
        for block in blocks:
            self._add(block, chained=True)  # type: ignore[arg-type]

    def __ior__(self, block: Part) -> Model:
        return self._add(block, chained=False)

    def __iadd__(self, block: Part) -> Model:
        return self._add(block, chained=True)

    def add(self, block: Part, **connections: Key) -> Model:
        """`model |= block(**connections)`."""
        if connections and not isinstance(block, Connected):
            given: dict[str, Any] = dict(connections)
            return self._add(_part(block)(**given), chained=False)
        if connections:
            _core._fail("value", "Model.add: the block is connected already")
        return self._add(block, chained=False)

    def __call__(self, *args: Any, name: str = "", **connections: Key) -> Connected:
        return connected(self, args, name, connections)

    @property
    def name(self) -> str:
        return self._core.name

    @property
    def input_keys(self) -> tuple[str, ...]:
        return self._keys("input")

    @property
    def output_keys(self) -> tuple[str, ...]:
        return self._keys("output")

    @property
    def parameter_keys(self) -> tuple[str, ...]:
        return self._keys("parameter")

    @property
    def state_keys(self) -> tuple[str, ...]:
        return self._keys("state")

    def _keys(self, role: str) -> tuple[str, ...]:
        return tuple(t[0] for t in self._core._terminals if t[1] == role)

    def _completed(self) -> Model:
        """Return the model to compile."""
        return self

    def _physical(self, *made: Any) -> Any:
        """Return the physical model."""
        from .physical import PhysicalModel

        return PhysicalModel(self.name, *made)

    # Connections -----------------------------------------------------------------------------

    def connection(self, name: str) -> Connection:
        """The connection of this name or path: `model.connection("linear.output")`."""
        from .connections import Connection

        return Connection(self, self._core._find(name))

    def __getattr__(self, name: str) -> Connection:
        if name.startswith("_"):
            raise AttributeError(name)
        try:
            return self.connection(name)
        except _core.Error as error:
            from .physical import PhysicalModel

            hint = f"\n  hint: tn.compile(model).{name}" if hasattr(PhysicalModel, name) else ""
            raise AttributeError(f"{error}{hint}", name=name) from None

    def merge_connections(self, *connections: str | Connection) -> Model:
        """Merges connections under the first name. At most one of them may have a writer."""
        self._core._merge([self._name_of(c) for c in connections])
        return self

    def set_shapes(
        self, shapes: Mapping[str, ShapeLike] | None = None, **more: ShapeLike
    ) -> Model:
        """Sets the shapes of connections: `model.set_shapes(x=[None, 3])`."""
        return self._describe("shape", {**(shapes or {}), **more})

    def set_types(self, types: Mapping[str, Any] | None = None, **more: Any) -> Model:
        """Sets the element types of connections: `model.set_types(x=tn.float16)`."""
        return self._describe("type", {**(types or {}), **more})

    def set_values(self, values: Mapping[str, Any] | None = None, **more: Any) -> Model:
        """Makes connections constants: `model.set_values(scale=2.0)`."""
        return self._describe("value", {**(values or {}), **more})

    def _describe(self, what: str, said: Mapping[Any, Any]) -> Model:
        core = self._core._copy()  # all of it, or nothing
        for name, value in said.items():
            core._describe(IOKey(self._name_of(name), **{what: value}))
        self._core = core
        return self

    def _name_of(self, connection: Any) -> str:
        from .connections import Connection

        if isinstance(connection, str):
            return connection
        if not isinstance(connection, Connection):
            kind = type(connection).__name__
            _core._fail("type", f"Model: expected a connection or its name, given {kind}")
        if connection.model is not self:
            text = f"Model: '{connection.name}' is a connection of another model"
            _core._fail("value", f"{text}, '{connection.model.name}', not of '{self.name}'")
        return connection._path

    # Adding ----------------------------------------------------------------------------------

    def _add(self, block: Part, chained: bool) -> Model:
        given = block if isinstance(block, Connected) else Connected(_part(block), {})
        part = given.block._core
        if isinstance(part, _core.LogicalModel):
            part = part._block()
        keys = {t: self._key(key) for t, key in given.connections.items()}
        merged = [key for key in keys.values() if isinstance(key, IOKey) and key.connections]
        if not merged:
            self._core._add(part, keys, given.name, chained)
            return self
        core = self._core._copy()  # all of it, or nothing
        core._add(part, keys, given.name, chained)
        for key in merged:
            core._merge([key.name, *map(self._name_of, key.connections)])
        self._core = core
        return self

    def _key(self, key: Any) -> str | IOKey:
        """Return what a terminal is connected to, by name. Numbers and tensors are constants."""
        if isinstance(key, (int, float, complex)) or hasattr(key, "dtype"):
            return IOKey(value=key)
        if isinstance(key, IOKey):
            if key.connections and not key.name:
                from dataclasses import replace

                return replace(key, name=self._name_of(key.connections[0]))
            _check_name(key.name)
            return key
        name = self._name_of(key)
        _check_name(name)
        return name

    def __copy__(self) -> Model:
        made = object.__new__(type(self))
        made.__dict__.update(self.__dict__, _core=self._core._copy())
        return made

    def __deepcopy__(self, memo: dict[int, Any]) -> Model:
        return self.__copy__()  # blocks do not change

    def __reduce_ex__(self, protocol: Any) -> Any:
        hint = "pickle a function that builds it, and the parameters"
        _core._fail("type", "pickle: logical models are not pickled", hint)

    def __repr__(self) -> str:
        return str(self._core._text())

    def _repr_html_(self) -> str:
        from ..notebook import model_html

        return model_html(self)

    __hash__ = object.__hash__


def _check_name(name: str) -> None:
    if hasattr(Model, name):
        text = f"Model: '{name}' is no name for a connection: it is an attribute of models"
        _core._fail("value", text)


def _part(given: Any) -> Block | Model:
    from .. import nn

    if isinstance(given, (Block, Model)):
        return given
    if isinstance(given, nn.Module):
        from .modules import block

        return block(given)
    kind = type(given).__name__
    hint = ""
    if callable(given) and hasattr(given, "__name__"):
        kind = given.__name__
        known = str(given.__module__).startswith("tenon.model")
        hint = f"{kind}(...) makes one" if known else f"tn.model.block({kind}) makes one"
    elif isinstance(given, str):
        hint = "connections are named where a block is called: Linear(10)(input='x')"
    _core._fail("type", f"Model: expected a block or a model, given {kind}", hint)
