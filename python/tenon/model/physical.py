"""Physical models: what logical ones are compiled to, with one interface on every backend."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import tenon as tn

from .. import _core
from .backends import CpuBackend, InterpreterBackend
from .logical import Model, shape_text
from .views import Views

Tensors = Mapping[str, Any]


class PhysicalModel(Views):
    """A model with shapes and types, on a backend."""

    def __init__(self, name: str, resolved: _core.ResolvedModel, backend: Any) -> None:
        self.name = name
        self._resolved = resolved
        self._open = [(name, role) for name, role, _, _ in resolved.open]
        self._outputs = [name for name, *_ in resolved.outputs]
        self.backend = backend
        level = 0 if isinstance(backend, InterpreterBackend) else 3
        self._forward = tn.compile(resolved.record, optimization_level=level)

    def randomize_params(self, seed: int = 0) -> dict[str, tn.Tensor]:
        """The first values of parameters, drawn from `seed`."""
        values = self._resolved.first_values(tn.random.key(seed))
        return {
            name: value
            for (name, role), value in zip(self._open, values)
            if role == "parameter"
        }

    def evaluate(self, params: Tensors, data: Tensors) -> dict[str, tn.Tensor]:
        """The outputs by name."""
        made = self._forward(
            [params[name] if role == "parameter" else data[name] for name, role in self._open]
        )
        return dict(zip(self._outputs, made))

    def get_shapes(self) -> dict[str, tuple[Any, ...]]:
        return {name: shape for name, _, shape, _ in self._resolved.wires}

    def get_types(self) -> dict[str, Any]:
        return {name: dtype for name, _, _, dtype in self._resolved.wires}


def compile_model(
    model: Model,
    backend: Any = None,
    shapes: Mapping[str, Any] | None = None,
    types: Mapping[str, Any] | None = None,
    static_shapes: bool = False,
    inference: bool = False,
) -> PhysicalModel:
    backend = CpuBackend() if backend is None else backend
    texts = {name: shape_text(shape) for name, shape in (shapes or {}).items()}
    resolved = model._core._resolve(
        texts, dict(types or {}), backend.precision, static_shapes, not inference
    )
    return PhysicalModel(model.name, resolved, backend)
