"""The checked options of `tn.compile` for a model."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

import tenon as tn

from .. import _core
from .._advice import nearest
from ..input_infos import NamedDimension, Range, _range
from .backends import Backend, CpuBackend, CudaBackend, InterpreterBackend, SourceBackend
from .logical import shape_text

#: The passes of the compiler by the names that others have for them.
OPTIMIZATIONS = {
    "constant_folding": ("fold",),
    "operator_fusion": ("fuse", "row-kernels", "epilogue", "bundle"),
    "dead_code_elimination": ("dce",),
    "common_subexpression": ("cse",),
}
_JIT_OPTIONS = ("static_argnums", "donate_argnums", "mode", "backend")
#: The arguments of `evaluate`, as `static_argnums` and `donate_argnums` count them.
_ARGUMENTS = ("params", "data", "output_gradients", "state")


def one_name(what: str, name: Any, known: Iterable[str]) -> None:
    """Fails for a name that is not known, with the nearest one."""
    names = list(known)
    if name in names:
        return
    near = nearest(str(name), names)
    hint = f"did you mean {near!r}?" if near else f"there are {', '.join(names)}"
    _core._fail("value", f"compile: no {what} {name!r}", hint)


@dataclass(frozen=True)
class Options:
    """All that was said, in one form."""

    backend: Any
    shapes: dict[str, str]
    ranges: dict[str, Range]
    types: dict[str, Any]
    precision: Any
    static_shapes: bool
    mixed_precision: Any
    inference: bool
    static_inference: bool
    checkpoint_segments: int
    constants: dict[str, Any]
    static: tuple[str, ...]
    data_keys: tuple[str, ...]
    discard_keys: tuple[str, ...]
    trainable_keys: tuple[str, ...] | None
    params: dict[str, Any]
    jit: bool | None
    jit_options: dict[str, Any]
    file_path: Any
    compiler: dict[str, Any] = field(default_factory=dict)

    @property
    def of_executables(self) -> dict[str, Any]:
        return {name: value for name, value in self.compiler.items() if name in OF_EXECUTABLES}

    def said_to_core(self) -> dict[str, Any]:
        return {
            "shapes": self.shapes,
            "types": self.types,
            "precision": self.precision,
            "static_shapes": self.static_shapes,
            "inference": self.inference,
            "constant_keys": self.constants,
            "data_keys": list(self.data_keys),
            "discard_keys": list(self.discard_keys),
            "trainable_keys": None if self.trainable_keys is None else list(self.trainable_keys),
            "mixed_precision": self.mixed_precision,
            "checkpoint_segments": self.checkpoint_segments,
        }


def read_backend(given: Any) -> Backend:
    if given is None:
        return CpuBackend()
    if isinstance(given, type) and issubclass(given, Backend):
        return given()
    if isinstance(given, Backend):
        return given
    hint = "tn.compile(model, tn.CpuBackend())"
    _core._fail("type", f"compile: a backend for models is expected, not {given!r}", hint)


def read_names(option: str, given: Any) -> tuple[str, ...]:
    names = (given,) if isinstance(given, str) else tuple(given)
    for name in names:
        if not isinstance(name, str):
            _core._fail("type", f"compile: {option} are names, not {name!r}")
    return names


# Shapes and types ---------------------------------------------------------------------------


def read_shapes(given: Mapping[str, Any] | None) -> tuple[dict[str, str], dict[str, Range]]:
    """Shapes in the words of terminals, and ranges by the names of sizes."""
    _mapping("shapes", given, 'shapes={"input": [32, 3, 224, 224]}')
    ranges: dict[str, Range] = {}
    texts = {name: _shape(name, shape, ranges) for name, shape in (given or {}).items()}
    return texts, ranges


def _shape(name: str, shape: Any, ranges: dict[str, Range]) -> str:
    if isinstance(shape, str) or not isinstance(shape, Sequence):
        hint = f'shapes={{"{name}": [32, 16]}}'
        _core._fail("type", f"compile: the shape of {name!r} is a list, not {shape!r}", hint)
    return shape_text([_size(name, axis, size, ranges) for axis, size in enumerate(shape)])


def _size(name: str, axis: int, size: Any, ranges: dict[str, Range]) -> Any:
    what = f"compile: size {axis} of {name!r}"
    if size is None or size is ...:
        return size
    if isinstance(size, str):
        if not size.isidentifier():
            _core._fail("value", f"{what}: invalid name: {size!r}")
        return size
    if isinstance(size, NamedDimension):
        known = ranges.setdefault(size.name, size.range)
        if known != size.range:
            _core._fail("value", f"{what}: {size.name!r} is {known} elsewhere, not {size.range}")
        return size.name
    low, best, high = _range(what, size)
    if low == high:
        return low
    symbol = f"{name}_{axis}".replace(".", "_")
    ranges[symbol] = (low, best, high)
    return symbol


def _mapping(option: str, given: Any, hint: str) -> None:
    if given is not None and not isinstance(given, Mapping):
        _core._fail("type", f"compile: {option} is a dict by name, not {given!r}", hint)


def read_types(given: Mapping[str, Any] | None) -> dict[str, Any]:
    _mapping("types", given, 'types={"input": tn.float16}')
    return {name: _core.dtype(dtype) for name, dtype in (given or {}).items()}


def read_constants(given: Any) -> tuple[dict[str, Any], tuple[str, ...]]:
    """Values that are known now, and names of those that the first evaluation gives."""
    if isinstance(given, Mapping):
        return {name: tn.array(value) for name, value in given.items()}, ()
    return {}, read_names("constant_keys", given)


def read_params(given: Any) -> dict[str, tn.Tensor]:
    _mapping("params", given, "params=model.randomize_params()")
    return {n: v if isinstance(v, tn.Tensor) else tn.array(v) for n, v in (given or {}).items()}


# Precision and gradients --------------------------------------------------------------------


def read_precision(backend: Backend, mixed: Any) -> tuple[Any, Any]:
    """Return the type of parameters and data, and the narrow type of mixed precision.

    A narrow precision of the backend is what products compute in where precision is mixed.
    """
    precision = _core.dtype(backend.precision)
    if mixed is None or mixed is False:
        return precision, None
    narrow = (tn.bfloat16, tn.float16)
    if mixed is not True:
        chosen = _core.dtype(mixed)
        if chosen not in narrow:
            _core._fail("value", f"compile: mixed_precision is bfloat16 or float16, not {mixed!r}")
        return tn.float32 if precision in narrow else precision, chosen
    if precision in narrow:
        return tn.float32, precision
    if precision != tn.float32:
        text = f"compile: mixed_precision with a precision of {precision}: nothing is narrowed"
        _core._fail("value", text, "use precision='bfloat16'")
    return precision, tn.bfloat16


def read_segments(checkpointing: bool | None, segments: int | None, inference: bool) -> int:
    if segments is not None and (type(segments) is not int or segments < 1):
        _core._fail("value", f"compile: checkpoint_segments is 1 or more, not {segments!r}")
    if checkpointing is False and segments is not None:
        text = "compile: checkpoint_segments without gradient_checkpointing"
        _core._fail("value", text, "leave out one of them")
    if not checkpointing and segments is None:
        return 0
    if inference:
        _core._fail("value", "compile: gradient_checkpointing: inference has no gradients")
    return 4 if segments is None else segments


# The compiler -------------------------------------------------------------------------------


def read_optimizations(
    given: Mapping[str, Any] | None, inference: bool
) -> tuple[list[str], list[str]]:
    """Names of passes that are off, and of those that are on because they are asked for."""
    _mapping("optimizations", given, 'optimizations={"operator_fusion": False}')
    asked_for = _core._pass_names()
    fusions = OPTIMIZATIONS["operator_fusion"]
    passes = {name: (name,) for name in [*asked_for, *fusions]}
    # Batch norm goes into convolutions: rounded otherwise, so training does without.
    switched = {"absorb": inference}
    for name, wanted in (given or {}).items():
        one_name("optimization", name, [*OPTIMIZATIONS, *passes])
        if not isinstance(wanted, bool):
            _core._fail("type", f"compile: {name!r} in optimizations is a bool, not {wanted!r}")
        switched |= dict.fromkeys((OPTIMIZATIONS | passes)[name], wanted)
    off = [name for name, wanted in switched.items() if not wanted and not asked_for.get(name)]
    on = [name for name, wanted in switched.items() if wanted and asked_for.get(name)]
    return off, on


def read_jit(
    backend: Backend, jit: bool | None, given: Mapping[str, Any] | None
) -> tuple[dict[str, Any], tuple[str, ...]]:
    """The options, and the arguments of `evaluate` that are static."""
    _mapping("jit_options", given, 'jit_options={"mode": "max-autotune"}')
    if jit is not None and not isinstance(jit, bool):
        _core._fail("type", f"compile: jit is True or False, not {jit!r}")
    options = dict(given or {})
    for name in options:
        one_name("jit option", name, _JIT_OPTIONS)
    if options and jit is False:
        _core._fail("value", f"compile: jit_options need jit=True: {given!r}")
    for option in ("static_argnums", "donate_argnums"):
        options[option] = _argument_numbers(option, options.get(option, ()))
    static = tuple(_ARGUMENTS[n] for n in options["static_argnums"])
    if set(static) - {"params", "data"}:
        _core._fail("value", "compile: only params (0) and data (1) can be static")
    # What is constant cannot be overwritten.
    donated = options["donate_argnums"]
    options["donate_argnums"] = tuple(n for n in donated if n not in options["static_argnums"])
    return options, static


def _argument_numbers(option: str, given: Any) -> tuple[int, ...]:
    numbers = (given,) if isinstance(given, int) else tuple(given)
    for n in numbers:
        if type(n) is not int or not 0 <= n < len(_ARGUMENTS):
            counted = ", ".join(f"{i} {name}" for i, name in enumerate(_ARGUMENTS))
            _core._fail("value", f"compile: no argument {n!r} for {option}: evaluate has {counted}")
    return numbers


#: What `tn.compile` may be told about executables.
OF_EXECUTABLES = (
    "optimization_level",
    "memory_limit",
    "memory_planning",
    "optimize_for",
    "off",
    "on",
    "target_hardware",
)


def check_targets(backend: Backend, targets: Any) -> None:
    """Hardware that other compilers make code for: theirs are GPUs too."""
    if not isinstance(backend, SourceBackend) or targets is None:
        return
    for name in read_names("target_hardware", targets):
        if backend.language not in ("torch", "jax") or not name.startswith("nvidia_"):
            tn.compile(lambda x: x, target_hardware=name)  # refuses what it does not know


def compiler_options(
    backend: Backend, jit: bool | None, jit_options: Mapping[str, Any], **said: Any
) -> dict[str, Any]:
    """The options of `tn.compile` for functions of a model."""
    made = {name: value for name, value in said.items() if value not in (None, [], ())}
    if "timeout" in made and not isinstance(made["timeout"], tuple):
        made["timeout"] = (made["timeout"], "error")
    interpreted = jit is False or isinstance(backend, InterpreterBackend)
    made["optimization_level"] = 0 if interpreted else 3
    if isinstance(backend, (CpuBackend, CudaBackend)):
        made |= {name: jit_options[name] for name in ("mode", "backend") if name in jit_options}
        if isinstance(backend, CpuBackend) and backend.threads == 1:
            made["optimize_for"] = "throughput"
    if isinstance(backend, SourceBackend):  # files have other compilers, typing errors are the same
        checked = {name: made[name] for name in said if name in made}
        checked.pop("target_hardware", None)  # see `check_targets`
        tn.compile(lambda x: x, **checked)
    if jit_options["donate_argnums"]:
        made["donate_argnums"] = jit_options["donate_argnums"]
    return made
