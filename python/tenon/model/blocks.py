"""Blocks: layers with parameters, and every op of the table."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import tenon as tn

from .. import _core
from .logical import Block, Terminal


def Linear(*sizes: int, bias: bool = True) -> Block:
    """`input @ weight.T + bias`, along the last axis: `Linear(out)` or `Linear(in, out)`."""
    *before, out = sizes
    return Block(_core._linear_block(out, before[0] if before else None, bias))


def block_named(name: str) -> Callable[..., Block]:
    """Makes the blocks of an op: `block_named("Softmax")(axis=-1)`."""
    for op in dir(_core):
        if _core._block_name(op) == name and not op.startswith("_"):
            return lambda **attributes: _op_block(op, attributes)
    raise AttributeError(f"module 'tenon.model' has no block {name!r}")


def _op_block(op: str, attributes: dict[str, Any]) -> Block:
    function = getattr(tn, op)
    terminals = [
        Terminal(name, role, shape, type, None, optional)
        for name, role, shape, type, optional in _core._op_terminals(op, attributes.pop("count", 0))
    ]

    def compute(given: list[tn.Tensor], training: bool, key: tn.Tensor | None) -> list[tn.Tensor]:
        made = function(*given, **attributes)
        return list(made) if isinstance(made, tuple) else [made]

    settings = ", ".join(f"{name}={value!r}" for name, value in attributes.items())
    return Block(_core._make_block(_core._block_name(op), terminals, {}, settings, False, compute))
