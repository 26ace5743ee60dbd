"""Models as their user describes them."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from .. import _core

#: A shape as users write it: numbers, names of sizes, None for any size and ... for any axes.
ShapeLike = Sequence[Any]


def shape_text(shape: ShapeLike | str) -> str:
    """A shape in the words of terminals: "32 _ 10"."""
    if isinstance(shape, str):
        return shape
    words = {None: "_", ...: "..."}
    return " ".join(words[d] if d is None or d is ... else str(d) for d in shape)


@dataclass(frozen=True)
class Terminal:
    """What a block is connected by.

    `role` is "input", "parameter", "state" or "output". `shape` has the words of `shape_text`:
    names stand for one size in all terminals of the block, "..." for the same axes; "*" is any
    shape. `initial(shape, dtype, key)` draws the first value of a parameter or a state.
    """

    name: str
    role: str = "input"
    shape: str = "*"
    type: Any = None
    initial: Callable[..., Any] | None = None
    optional: bool = False


@dataclass(frozen=True)
class IOKey:
    """A connection with what is known about it."""

    name: str = ""
    shape: ShapeLike | str | None = None
    type: Any = None
    value: Any = None
    expose: bool | None = None

    @property
    def shape_text(self) -> str | None:
        return None if self.shape is None else shape_text(self.shape)


@dataclass(frozen=True)
class Connected:
    """A block and what its terminals are connected to."""

    block: Block | Model
    connections: Mapping[str, str | IOKey]
    name: str = ""


class Block:
    """A part of models. Calling it says what its terminals are connected to."""

    def __init__(self, core: _core.ModelBlock) -> None:
        self._core = core

    @staticmethod
    def of(kind: str, terminals: Sequence[Terminal], compute: Callable[..., Any]) -> Block:
        """A block that `compute(given, training, key)` computes: outputs, then new states."""
        return Block(_core._make_block(kind, list(terminals), {}, "", False, compute))

    def __call__(self, *, name: str = "", **connections: str | IOKey) -> Connected:
        return Connected(self, connections, name)

    @property
    def kind(self) -> str:
        return self._core.kind

    def __repr__(self) -> str:
        return f"{self.kind}({', '.join(t[0] for t in self._core.terminals)})"


class Model:
    """Blocks, names and connections; sizes, types and a backend come with `tn.compile`.

    `model |= block(input="x", output="h")` connects by name, `model += block` reads the last
    output. A model is a block of others when it is called or added.
    """

    def __init__(self, name: str = "model") -> None:
        self._core = _core.LogicalModel(name)

    def __ior__(self, block: Block | Model | Connected) -> Model:
        return self._add(block, chained=False)

    def __iadd__(self, block: Block | Model | Connected) -> Model:
        return self._add(block, chained=True)

    def __call__(self, *, name: str = "", **connections: str | IOKey) -> Connected:
        return Connected(self, connections, name)

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
        """What is compiled: the model, with what follows from what was said about it."""
        return self

    def _physical(self, *made: Any) -> Any:
        """What it is compiled to."""
        from .physical import PhysicalModel

        return PhysicalModel(self.name, *made)

    def _add(self, block: Block | Model | Connected, chained: bool) -> Model:
        given = block if isinstance(block, Connected) else Connected(block, {})
        part = given.block._core
        if isinstance(part, _core.LogicalModel):
            part = part._block()
        self._core._add(part, dict(given.connections), given.name, chained)
        return self
