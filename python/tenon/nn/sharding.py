"""Modules whose parameters are divided among workers."""

from __future__ import annotations

import fnmatch
from collections.abc import Mapping
from typing import Any, TypeVar

import tenon as tn

from .. import _core
from .module import Module

M = TypeVar("M", bound=Module)


def shard(model: M, specs: Mapping[str, Any]) -> M:
    """Divide parameters of a model among the workers of the mesh, by patterns of their names.

    The first pattern that fits a name decides; other parameters stay whole. A layout is what
    `tn.shard` takes, or `tn.stored(axis)`, with which parameters, gradients and the state of the
    optimizer are stored in parts. Returns the model, which is changed.

        >>> with tn.Mesh(model=2):
        ...     layer = tn.nn.shard(tn.nn.Linear(4, 6), {"weight": ("model", None)})
        ...     print(tn.layout(layer.weight))
        f32[6,4] @[model,-]
    """
    if not isinstance(model, Module):
        _core._fail("type", f"nn.shard: a module is needed, not a {type(model).__name__}")
    if not isinstance(specs, Mapping):
        hint = f'layouts by patterns of names: nn.shard(model, {{"*": {specs!r}}})'
        text = f"nn.shard: specs must be a dict, not a {type(specs).__name__}"
        _core._fail("type", text, hint)
    used = set()

    def spec_of(name: str) -> Any:
        for pattern, spec in specs.items():
            if fnmatch.fnmatchcase(name, pattern):
                used.add(pattern)
                return (spec,)  # which may be None
        return None

    names = {id(parameter): name for name, parameter in model.named_parameters()}
    found = {at: spec for at, name in names.items() if (spec := spec_of(name)) is not None}
    if unused := [pattern for pattern in specs if pattern not in used]:
        hint = f"there are {', '.join(names.values())}"
        if any(fnmatch.fnmatchcase(name, unused[0]) for name in names.values()):
            text = f"nn.shard: an earlier pattern fits all parameters that {unused[0]!r} fits"
            _core._fail("value", text, "the first pattern decides: write it in front of the others")
        _core._fail("value", f"nn.shard: no parameter is called {unused[0]!r}", hint)

    def divided(parameter: tn.Tensor, spec: Any) -> tn.Tensor:
        try:
            made: tn.Tensor = tn.shard(parameter, spec, is_parameter=True)
            return made
        except ValueError as error:
            error.args = (f"{names[id(parameter)]}: {error}",)
            raise

    # All of them before any is replaced: an error leaves the model as it was.
    parameters = {id(parameter): parameter for _, parameter in model.named_parameters()}
    with tn.no_grad():
        made = {at: divided(parameters[at], spec[0]) for at, spec in found.items()}
    tn.eval(*made.values())
    model.apply(lambda parameter: made.get(id(parameter), parameter))
    return model
