"""Ahead-of-time compilation: a function is traced once, for described inputs."""

from __future__ import annotations

import inspect
import re
import types
import warnings
from collections.abc import Callable, Mapping, Sequence
from functools import partial
from typing import TYPE_CHECKING, Any

from . import _core, surface, tree
from .compile_options import bytes_of, check_level, plan_settings
from .executables import Executable
from .input_infos import DimensionInputInfo, InputInfo, to_core
from .module_changes import frames_of_package
from .surface import Parameter

if TYPE_CHECKING:
    from .mesh import Mesh

Function = Callable[..., Any]


def compile_ahead(
    fun: Function,
    args: Sequence[Any] | None,
    kwargs: Mapping[str, Any] | None,
    mesh: Mesh | None,
    options: dict[str, Any],
    changed: dict[str, Any],
) -> Executable:
    """Implements `tn.compile` with `args` or `kwargs`."""
    there = _device_of(mesh)
    level = options["optimization_level"]
    if type(changed.get("inputs")) is int:  # a level may come second: `compile(f, 5, args=[...])`
        level = changed.pop("inputs")
    check_level(level)
    plan_options = inspect.signature(plan_settings).parameters
    for name, value in changed.items():
        if name not in ("optimization_level", "memory_limit", *plan_options):
            _core._fail("value", f"compile: {name} does not apply to executables: {value!r}")
    plan = plan_settings(**{name: options[name] for name in plan_options})
    args, kwargs = [] if args is None else args, {} if kwargs is None else kwargs
    if isinstance(args, (str, Mapping)) or not isinstance(args, Sequence):
        _core._fail("type", f"compile: args is a list of arguments, not {args!r}", "args=[info]")
    if not isinstance(kwargs, Mapping) or not all(isinstance(name, str) for name in kwargs):
        _core._fail("type", f"compile: kwargs is a dict of arguments by name, not {kwargs!r}")
    trace = _Trace(fun, args, kwargs)
    _check_has_inputs(trace.parameters, args, kwargs)
    held = _held_objects(fun, trace.parameters)
    constants = [pair for prefix, value in held for pair in _tensors_in(prefix, value)]
    _core.eval([tensor for _, tensor in constants])  # computed now, not in every call
    place = _core.Device(there) if there else _place_of(constants)
    with _core._DeviceContext(place), _Unchanged(_name_of(fun), held):
        program = _core._compile_ahead(
            trace,
            [to_core(name, info) for p in trace.parameters for name, info in p.inputs()],
            _name_of(fun),
            level,
            bytes_of(options["memory_limit"]),
            plan,
            constants,
            there,
            lambda: (surface.write(trace.parameters, trace.results), trace.result_names),
        )
    return Executable(program, trace.parameters, trace.results)


def _device_of(mesh: Mesh | None) -> str:
    """The device that a mesh is; "": there is none."""
    if mesh is None:
        return ""
    from .mesh import Mesh

    if not isinstance(mesh, Mesh):
        _core._fail("type", f"compile: not a mesh: {mesh!r}", "make one: tn.Mesh(model=2)")
    return mesh.__tenon_device__


def _check_has_inputs(
    parameters: list[Parameter], args: Sequence[Any], kwargs: Mapping[str, Any]
) -> None:
    """Warns where all tensors are constants, so that the executable has no input."""
    given = [x for x in tree.leaves([list(args), dict(kwargs)]) if isinstance(x, _core.Tensor)]
    if not given or any(True for p in parameters for _ in p.inputs()):
        return
    info = f"tn.InputInfo(shape={tuple(given[0].shape)}, dtype=tn.{given[0].dtype.name})"
    text = "compile: tensors in args= are constants, and the executable has no inputs"
    warnings.warn(f"{text}; describe an input by {info}", stacklevel=frames_of_package() + 1)


# The function -------------------------------------------------------------------------------


def _name_of(fun: Function) -> str:
    if isinstance(fun, partial):
        return _name_of(fun.func)
    name = getattr(fun, "__name__", type(fun).__name__)
    return "function" if name == "<lambda>" else name


def _where(fun: Function) -> str:
    """Advice that says where the function is written, if it is in Python."""
    while isinstance(fun, partial):
        fun = fun.func
    inner = inspect.unwrap(fun) if hasattr(fun, "__name__") else type(fun).__call__
    code = getattr(inner, "__code__", None)
    return f"{_name_of(fun)} is at {code.co_filename}:{code.co_firstlineno}" if code else ""


def signature_of(fun: Function) -> inspect.Signature:
    """Return the signature of `fun`; of `forward`, if a module's call only passes arguments on."""
    signature = inspect.signature(fun)
    variadic = (inspect.Parameter.VAR_POSITIONAL, inspect.Parameter.VAR_KEYWORD)
    passes_on = all(p.kind in variadic for p in signature.parameters.values())
    return inspect.signature(fun.forward) if passes_on and hasattr(fun, "forward") else signature


def _bind(fun: Function, args: Sequence[Any], kwargs: Mapping[str, Any]) -> inspect.BoundArguments:
    try:
        signature = signature_of(fun)
    except (TypeError, ValueError):  # a builtin that does not say
        signature = inspect.signature(lambda *args, **kwargs: None)
    try:
        return signature.bind(*args, **kwargs)
    except TypeError as error:
        _core._fail("type", f"compile: {_name_of(fun)}{signature}: {error}", _where(fun))


def _parameters(bound: inspect.BoundArguments) -> list[Parameter]:
    """List the parameters of the executable. Variadic ones are expanded to what is given now."""
    made: list[Parameter] = []

    def add(name: str, kind: Any, value: Any) -> None:
        made.append(Parameter(surface.parameter_name(name, made), kind, value))

    for name, value in bound.arguments.items():
        kind = bound.signature.parameters[name].kind
        if kind is inspect.Parameter.VAR_POSITIONAL:
            for i, part in enumerate(value):
                add(f"{name}{i}", inspect.Parameter.POSITIONAL_OR_KEYWORD, part)
        elif kind is inspect.Parameter.VAR_KEYWORD:
            for key, part in value.items():
                add(key, inspect.Parameter.KEYWORD_ONLY, part)
        else:
            add(name, kind, value)
    for name, parameter in bound.signature.parameters.items():
        if name not in bound.arguments and parameter.default is not parameter.empty:
            add(name, parameter.kind, parameter.default)  # as constant as what was given
    return made


class _Trace:
    """The call of the function that is traced, with tensors that stand for the inputs."""

    def __init__(self, fun: Function, args: Sequence[Any], kwargs: Mapping[str, Any]) -> None:
        self._fun, self._bound = fun, _bind(fun, args, kwargs)
        self.parameters = _parameters(self._bound)
        self.results: _core.TreeStructure | None = None  # of one tensor by itself: None
        self.result_names: list[str] = []

    def __call__(self, tensors: list[_core.Tensor], sizes: list[Any]) -> list[_core.Tensor]:
        given = {InputInfo: iter(tensors), DimensionInputInfo: iter(sizes)}
        values = iter([p.with_inputs(given) for p in self.parameters])
        arguments: dict[str, Any] = {}
        for name, value in self._bound.arguments.items():
            kind = self._bound.signature.parameters[name].kind
            if kind is inspect.Parameter.VAR_POSITIONAL:
                arguments[name] = tuple([next(values) for _ in value])
            elif kind is inspect.Parameter.VAR_KEYWORD:
                arguments[name] = {key: next(values) for key in value}
            else:
                arguments[name] = next(values)
        call = inspect.BoundArguments(self._bound.signature, arguments)
        return self._read(self._fun(*call.args, **call.kwargs))

    def _read(self, made: Any) -> list[_core.Tensor]:
        """The tensors of a result that has nothing else."""
        if isinstance(made, _core.Tensor):
            return [made]
        leaves, self.results = tree.flatten(made)
        paths = self.results.paths()
        if not leaves or not paths[0]:
            self._refuse("one or more tensors must be returned, not", made)
        for leaf, path in zip(leaves, paths):
            if not isinstance(leaf, _core.Tensor):
                self._refuse(f"return value{_spoken(path)} is not a tensor:", leaf)
        if any(kind == "none" for kind, *_ in self.results._nodes()):
            self._refuse(f"return value{_place_of_none(made)} is not a tensor:", None)
        self.result_names = [surface.plain(path).lstrip(".") for path in paths]
        return leaves

    def _refuse(self, what: str, value: Any) -> None:
        text = f"compile: {_name_of(self._fun)}(): {what} {_shown(value)}"
        is_size = isinstance(value, _core.Dim)
        advice = "tn.full((), size) is it as a tensor" if is_size else _where(self._fun)
        _core._fail("type", text, advice)


def _spoken(path: str) -> str:
    """`[1]` as ` 1`, and longer paths as they are."""
    return re.sub(r"^\[(\d+)\]$", r" \1", path)


def _place_of_none(made: Any) -> str:
    """Return the index or key of the value that is None, or "" if it is nested deeper."""
    if isinstance(made, (list, tuple)):
        return next((f" {i}" for i, part in enumerate(made) if part is None), "")
    parts = made.items() if isinstance(made, dict) else ()
    return next((f"[{key!r}]" for key, part in parts if part is None), "")


def _shown(value: Any) -> str:
    """Describe a value; only its class, if it holds tensors of the trace."""
    if value is None:
        return "None"
    try:
        return f"{value!r:.100} ({type(value).__name__})"
    except Exception:
        return f"a {type(value).__name__}"


# What it holds ------------------------------------------------------------------------------


def _held_objects(fun: Function, parameters: list[Parameter]) -> list[tuple[str, Any]]:
    """Objects that the function may take tensors from, besides inputs, with what to call them."""
    held = [(p.name, p.value) for p in parameters if not p.is_input]
    while isinstance(fun, partial):
        held += [(f"args{i}", value) for i, value in enumerate(fun.args)]
        held += fun.keywords.items()
        fun = fun.func
    if isinstance(fun, types.MethodType):
        held.append(("", fun.__self__))
        fun = fun.__func__
    if not isinstance(fun, types.FunctionType):
        return [*held, ("", fun)]
    try:
        names = inspect.getclosurevars(fun)
    except ValueError:  # a variable around it has no value yet
        return held
    return [*held, *names.nonlocals.items(), *names.globals.items()]


def _is_code(value: Any) -> bool:
    return isinstance(value, (type, types.ModuleType, types.FunctionType, _core.Op))


def _leaves(value: Any) -> list[tuple[str, Any]]:
    """The leaves of a tree by path; of another object, those of its attributes."""
    try:
        leaves, structure = tree.flatten(value)
        if len(leaves) == 1 and leaves[0] is value and not isinstance(value, _core.Tensor):
            leaves, structure = tree.flatten(dict(getattr(value, "__dict__", {})))
    except _core.Error:  # a list that holds itself
        return []
    return list(zip(structure.paths(), leaves))


def _tensors_in(prefix: str, value: Any) -> list[tuple[str, _core.Tensor]]:
    """Tensors with values, by name: `proj.weight` in a module."""
    return [
        ((prefix + surface.plain(path)).lstrip("."), leaf)
        for path, leaf in ([] if _is_code(value) else _leaves(value))
        if isinstance(leaf, _core.Tensor) and not _core._is_traced(leaf)
    ]


def _place_of(constants: list[tuple[str, _core.Tensor]]) -> _core.Device:
    """Return the device on which the function is traced: that of the tensors it holds.

    If they are on several devices, it is the default one. Scalars on the host do not count.
    """
    places = {x.device for _, x in constants if x.ndim > 0 or x.device != "cpu"}
    return places.pop() if len(places) == 1 else _core.default_device()


def _holds_traced(value: Any) -> bool:
    return any(isinstance(x, _core.Tensor) and _core._is_traced(x) for _, x in _leaves(value))


class _Unchanged:
    """Fails when a tensor of the trace is left in an object, and takes it out again."""

    def __init__(self, name: str, held: list[tuple[str, Any]]) -> None:
        from .nn import Module

        self._name, self._before = name, []
        for prefix, value in held:
            parts = value.modules() if isinstance(value, Module) else [value]
            self._before += [
                (prefix, part, dict(vars(part)))
                for part in parts
                if hasattr(part, "__dict__") and not _is_code(part)
            ]

    def __enter__(self) -> None:
        pass

    def __exit__(self, kind: Any, *error: object) -> None:
        left = ""
        for prefix, part, before in self._before:
            now = vars(part)
            for name, value in list(now.items()):
                if value is before.get(name, self) or not _holds_traced(value):
                    continue
                left = left or f"{prefix or type(part).__name__}.{name}"
                if name in before:
                    now[name] = before[name]
                else:
                    del now[name]
        if left and kind is None:
            hint = "return it as a result; layers that learn while they run do so in training only"
            _core._fail("value", f"compile: {self._name}() assigns to {left}", hint)
