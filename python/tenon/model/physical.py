"""Physical models: compiled logical models, with one interface for every backend."""

from __future__ import annotations

import inspect
import os
import pathlib
from collections.abc import Callable, Iterable, Mapping
from typing import Any

import tenon as tn

from .. import _core
from ..files import path_of
from .backends import CpuBackend, CudaBackend, SourceBackend
from .evaluation import RANDOM_KEY, StaticValues, Tensors, first_state
from .logical import Model
from .on_device import put
from .options import (
    Options,
    check_targets,
    compiler_options,
    one_name,
    read_backend,
    read_constants,
    read_jit,
    read_names,
    read_optimizations,
    read_params,
    read_precision,
    read_segments,
    read_shapes,
    read_types,
)
from .saving import Saving
from .stages import Stages
from .views import Views


class PhysicalModel(Views, Stages, Saving):
    """A model with shapes and types on a backend: the result of `tn.compile(model, backend)`.

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
        known = [RANDOM_KEY, *(n for n, role, *_ in functions.given if role != "input")]
        for param in options.params:
            one_name("parameter or state", param, known)
        static = _static_names(functions, options)
        # Without static values the call is the compiled function itself: nothing lies between.
        made = StaticValues(static, options.params, self._made) if static else self._made({})
        self.evaluate = made  # type: ignore[method-assign]

    def randomize_params(self, seed: int = 0) -> dict[str, tn.Tensor]:
        """Initial values of the parameters, drawn from `seed`."""
        values = self._functions.first_values(tn.random.key(seed))
        rows = zip(self._functions.given, values)
        wanted = ((name, value) for (name, role, *_), value in rows if role == "parameter")
        return self._placed({name: value for name, value in wanted if value is not None})

    def initial_state(self, seed: int = 0) -> dict[str, tn.Tensor]:
        """Return the state that evaluations read and update: running statistics, a random key."""
        return self._placed(first_state(self._functions, seed))

    def _placed(self, values: dict[str, tn.Tensor]) -> dict[str, tn.Tensor]:
        """Move tensors to the device on which the backend evaluates."""
        backend = self.backend
        return put(backend.device, values) if isinstance(backend, CudaBackend) else values

    def evaluate(
        self,
        params: Tensors | None = None,
        data: Tensors | None = None,
        output_gradients: Tensors | None = None,
        state: Tensors | None = None,
    ) -> Any:
        """The outputs by name.

        With `output_gradients` (by output, zero if omitted), the result is a pair of the outputs
        and the gradients of the trainable parameters. With `state`, from `initial_state` or an
        earlier call, the new state is returned last: `(outputs, state)`,
        `(outputs, gradients, state)`.

        Without a state the initial one is used, and the new one is not returned. In training, batch
        norm then uses the statistics of the batch, and a model that draws random numbers is an
        error. Data may be NumPy arrays.
        """
        raise NotImplementedError  # __init__ puts the compiled function in its place

    def get_shapes(self) -> dict[str, tuple[Any, ...]]:
        """The shape of every connection, by name. Open sizes are names."""
        return {name: shape for name, _, shape, _ in self._resolved.wires}

    def get_types(self) -> dict[str, tn.DType]:
        """The element type of every connection, by name."""
        return {name: dtype for name, _, _, dtype in self._resolved.wires}

    def __repr__(self) -> str:
        inputs = ", ".join(n for n, role, *_ in self._functions.given if role == "input")
        outputs = ", ".join(self._functions.outputs)
        return f"<{self.name} on {self.backend}: {inputs} -> {outputs}>"

    def _made(self, static: Tensors) -> Callable[..., Any]:
        """Return a function that evaluates with these constants; write the file, if requested."""
        static = self._with_state(static)
        if isinstance(self.backend, SourceBackend):
            source = self._source(self.backend.language, static)
            if self._options.file_path is not None:
                source.write(self._options.file_path, self._options.params)
            return self._evaluation(static, source).evaluate
        if self._options.file_path is not None:
            self._write(self._options.file_path, static)
        compiled: Callable[..., Any] = self._compiled(static)
        return compiled


def _static_names(
    functions: _core.ModelFunctions, options: Options
) -> dict[str, tuple[str, ...]] | None:
    """Return the names of constants for each argument of `evaluate`."""
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
    """Compiles a logical model for a backend; `tn.compile(model, …)` calls this.

        >>> from tenon.model import Linear, Relu
        >>> model = tn.Model()
        >>> model |= Linear(8)(input="x")
        >>> model += Relu()
        >>> physical = tn.compile(model, tn.CpuBackend(), shapes={"x": [None, 4]})
        >>> physical.evaluate(physical.randomize_params(), {"x": tn.ones((2, 4))})["output"].shape
        (2, 8)

    `backend` is `CpuBackend` (the default), `CudaBackend` for GPUs, `InterpreterBackend`, or one
    that writes a file and evaluates with it: `CBackend`, `NumpyBackend`, `TorchBackend`,
    `JaxBackend`.

    - `shapes`, `types`: known shapes and types by connection. A size is a number, None (open), a
      name (the same size everywhere), `(min, opt, max)` or a `tn.NamedDimension`
    - `static_shapes`: no size may be open
    - `constant_keys`: a dict of constant values, or names of values that the first evaluation sets
    - `data_keys`: parameters that are passed with the data and not trained
    - `trainable_keys`: exactly the connections that get gradients
    - `discard_keys`: outputs to omit
    - `inference`: no gradients; running statistics are used, and batch norm is folded into
      convolutions
    - `static_inference`: parameters and states become constants as well: those of `params`
      (`params | state` after training), or of the first evaluation; others cause a recompilation
    - `mixed_precision`: True, "bfloat16" or "float16". Products compute in a narrow type (that of
      the backend's `precision` if it is narrow), while parameters stay float32
    - `gradient_checkpointing`: gradients keep only the values between `checkpoint_segments` parts
      (4) and recompute the rest
    - `jit`: False interprets, and does not use the compilers of PyTorch and JAX; PyTorch's is used
      only with True
    - `jit_options`: `static_argnums` and `donate_argnums` count the arguments of `evaluate`; `mode`
      is that of `tn.compile`, or together with `backend` those of `torch.compile`
    - `optimizations`: enables or disables passes by name (`tenon opt --list`), or
      "constant_folding", "operator_fusion", "dead_code_elimination", "common_subexpression"
    - `memory_planning`, `target_hardware`, `optimize_for`, `memory_limit`: as for functions
    - `timeout`: seconds after which compilation fails
    - `file_path`: where to write the model: a source backend writes its file, the CPU an executable
      (.tnx), C (.c) or Python for NumPy (.py). `params`, which may include states, are written
      beside it as safetensors
    """
    backend = read_backend(backend)
    check_targets(backend, target_hardware)
    inference = inference or static_inference
    texts, ranges = read_shapes(shapes)
    precision, narrow = read_precision(backend, mixed_precision)
    constants, static = read_constants(constant_keys)
    if isinstance(backend, CudaBackend) and constants:
        constants = put(backend.device, constants)
    jit_read, static_arguments = read_jit(backend, jit, jit_options)
    off, on = read_optimizations(optimizations, inference)
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
        params=read_params(params),
        jit=jit,
        jit_options=jit_read | {"static": static_arguments},
        file_path=None if file_path is None else pathlib.Path(path_of("compile", file_path)),
        compiler=compiler_options(
            backend,
            jit,
            jit_read,
            off=off,
            on=on,
            timeout=timeout,
            memory_limit=memory_limit,
            memory_planning=memory_planning,
            optimize_for=optimize_for,
            target_hardware=target_hardware,
        ),
    )
    if isinstance(backend, CpuBackend) and backend.threads not in (None, 1):
        tn.set_num_threads(backend.threads)
    functions = model._completed()._core._resolve(options.said_to_core())
    physical: PhysicalModel = model._physical(functions, options)
    return physical


def compile_given(model: Model, options: dict[str, Any], given: dict[str, Any]) -> PhysicalModel:
    """`compile_model` with what was said to `tn.compile`, of which `options` are parameters."""
    places = {"inputs": "backend", "outputs": "shapes"}  # the second and third argument
    said = given | {places.get(name, name): value for name, value in options.items()}
    for name in said:
        one_name("option", name, inspect.signature(compile_model).parameters)
    return compile_model(model, **said)
