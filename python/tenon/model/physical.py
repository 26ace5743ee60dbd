"""Physical models: what logical ones are compiled to, with one interface on every backend."""

from __future__ import annotations

import os
from collections.abc import Callable, Iterable, Mapping
from typing import Any

import tenon as tn

from .. import _core
from .backends import CpuBackend
from .evaluation import Evaluation, StaticValues, Tensors, first_state
from .logical import Model
from .options import (
    Options,
    compiler_options,
    one_name,
    read_backend,
    read_constants,
    read_jit,
    read_names,
    read_optimizations,
    read_precision,
    read_segments,
    read_shapes,
    read_types,
)
from .saving import Saving
from .stages import Stages
from .views import Views


class PhysicalModel(Views, Stages, Saving):
    """A model with shapes and types, on a backend. `tn.compile(model, backend)` makes it.

        >>> from tenon.model import Linear
        >>> model = tn.Model()
        >>> model += Linear(2, 3)
        >>> physical = tn.compile(model, tn.CpuBackend(), shapes={"input": [4, 2]})
        >>> params = physical.randomize_params(seed=0)
        >>> physical.evaluate(params, {"input": tn.ones((4, 2))})["output"].shape
        (4, 3)
    """

    def __init__(self, name: str, functions: _core.ModelFunctions, options: Options) -> None:
        self.name = name
        self.backend = options.backend
        self._functions = functions
        self._resolved = functions.model
        self._options = options
        static = _static_names(functions, options)
        if static:
            self._static = StaticValues(static, options.params, self._compiled)
            self.evaluate = self._static  # type: ignore[method-assign]
        else:
            # The call is the compiled function itself: nothing lies between.
            self.evaluate = self._compiled({})  # type: ignore[method-assign]

    def randomize_params(self, seed: int = 0) -> dict[str, tn.Tensor]:
        """The first values of parameters, drawn from `seed`."""
        values = self._functions.first_values(tn.random.key(seed))
        rows = zip(self._functions.given, values)
        return {name: value for (name, role, *_), value in rows if role == "parameter"}

    def initial_state(self, seed: int = 0) -> dict[str, tn.Tensor]:
        """What evaluations read and give anew: running statistics, a key for random numbers."""
        return first_state(self._functions, seed)

    def evaluate(
        self,
        params: Tensors,
        data: Tensors,
        output_gradients: Tensors | None = None,
        state: Tensors | None = None,
    ) -> Any:
        """The outputs by name.

        With `output_gradients`, by output (zero where one is left out): a pair of the outputs and
        the gradients of what is trainable. With `state`, of `initial_state` or a former call, the
        new state comes last: `(outputs, state)`, `(outputs, gradients, state)`.

        Without a state the first one is read, and what becomes of it is not told: in training batch
        norm uses the statistics of the batch, and a model that draws random numbers is refused.
        Data may be NumPy arrays.
        """
        raise NotImplementedError  # __init__ puts the compiled function in its place

    def get_shapes(self) -> dict[str, tuple[Any, ...]]:
        """The shape of every connection, by name. A size that is open has a name."""
        return {name: shape for name, _, shape, _ in self._resolved.wires}

    def get_types(self) -> dict[str, tn.DType]:
        """The element type of every connection, by name."""
        return {name: dtype for name, _, _, dtype in self._resolved.wires}

    def __repr__(self) -> str:
        inputs = ", ".join(n for n, role, *_ in self._functions.given if role == "input")
        outputs = ", ".join(self._functions.outputs)
        return f"<{self.name} on {self.backend}: {inputs} -> {outputs}>"

    def _evaluation(self, static: Tensors) -> Evaluation:
        options = self._options
        return Evaluation(self.name, self._functions, options.ranges, static, options.inference)

    def _compiled(self, static: Tensors) -> Callable[..., Any]:
        return tn.compile(self._evaluation(static).run, **self._options.compiler)


def _static_names(
    functions: _core.ModelFunctions, options: Options
) -> dict[str, tuple[str, ...]] | None:
    """By argument of `evaluate`, the names of what is constant there."""
    by_role: dict[str, list[str]] = {"parameter": [], "input": [], "state": []}
    for name, role, *_ in functions.given:
        by_role[role].append(name)
    arguments = options.jit_options["static"]
    for name in options.static:
        one_name("input or parameter", name, [*by_role["parameter"], *by_role["input"]])

    def chosen(role: str, whole: bool) -> tuple[str, ...]:
        return tuple(name for name in by_role[role] if whole or name in options.static)

    names = {
        "params": chosen("parameter", options.static_inference or "params" in arguments),
        "data": chosen("input", "data" in arguments),
        "state": chosen("state", options.static_inference),
    }
    return names if any(names.values()) else None


def compile_model(
    model: Model,
    backend: Any = None,
    shapes: Mapping[str, Any] | None = None,
    types: Mapping[str, Any] | None = None,
    static_shapes: bool = False,
    *,
    jit: bool | None = None,
    jit_options: Mapping[str, Any] | None = None,
    gradient_checkpointing: bool | None = None,
    checkpoint_segments: int | None = None,
    memory_planning: str | None = None,
    mixed_precision: Any = None,
    inference: bool = False,
    static_inference: bool = False,
    file_path: str | os.PathLike[str] | None = None,
    optimizations: Mapping[str, bool] | None = None,
    target_hardware: Any = None,
    optimize_for: str | None = None,
    timeout: Any = None,
    memory_limit: int | str | None = None,
    constant_keys: Mapping[str, Any] | Iterable[str] = (),
    data_keys: Iterable[str] = (),
    discard_keys: Iterable[str] = (),
    trainable_keys: Iterable[str] | None = None,
    params: Tensors | None = None,
) -> PhysicalModel:
    """See `tn.compile`, which this is for a model."""
    backend = read_backend(backend)
    inference = inference or static_inference
    texts, ranges = read_shapes(shapes)
    precision, narrow = read_precision(backend, mixed_precision)
    constants, static = read_constants(constant_keys)
    jit_read, static_arguments = read_jit(backend, jit, jit_options)
    off, on = read_optimizations(optimizations)
    options = Options(
        backend=backend,
        shapes=texts,
        ranges=ranges,
        types=read_types(types),
        precision=precision,
        static_shapes=bool(static_shapes),
        mixed_precision=narrow,
        inference=bool(inference),
        static_inference=bool(static_inference),
        checkpoint_segments=read_segments(gradient_checkpointing, checkpoint_segments, inference),
        constants=constants,
        static=static,
        data_keys=read_names("data_keys", data_keys),
        discard_keys=read_names("discard_keys", discard_keys),
        trainable_keys=None
        if trainable_keys is None
        else read_names("trainable_keys", trainable_keys),
        params=dict(params or {}),
        jit=jit,
        jit_options=jit_read | {"static": static_arguments},
        file_path=file_path,
        compiler=compiler_options(
            backend, jit, jit_read, off=off, timeout=timeout, memory_limit=memory_limit
        ),
    )
    if isinstance(backend, CpuBackend) and backend.threads not in (None, 1):
        tn.set_num_threads(backend.threads)
    functions = model._completed()._core._resolve(options.said_to_core())
    return model._physical(functions, options)
