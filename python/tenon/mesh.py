"""Meshes: workers over which tensors are divided.

A mesh is a device. Its tensors hold a block for every worker, ops on them run on all workers, and
exchange data where they must. Workers are threads of this process, or the processes that `tenon
launch` started.
"""

from __future__ import annotations

import contextlib
import dataclasses
import functools
import operator
from collections.abc import Callable
from typing import Any, ParamSpec, SupportsIndex, TypeVar

from . import _core, tree
from .creation import asarray as _asarray
from .flat_function import FlatFunction, check_callable
from .module_changes import StateOnWorkers

__all__ = ["Mesh", "layout", "place", "shard", "shard_map", "stored", "worker_stats", "workers"]

P = ParamSpec("P")
R = TypeVar("R")
T = TypeVar("T")

Axes = str | tuple[str, ...] | None


@dataclasses.dataclass(frozen=True)
class Stored:
    """A layout of memory: see `stored`."""

    axes: Any


Spec = Axes | tuple[Axes, ...] | list[Axes] | Stored


def workers(count: int | None = None, *, parts: int | None = None) -> int:
    """Make `count` workers, threads of this process, and let new tensors lie on them.

    They are a mesh with one axis, `"workers"`, of so many `parts` (see `Mesh`).
    `TENON_NUM_WORKERS=4` does the same at the start. Without an argument, return how many there
    are.

    >>> tn.workers()
    1
    """
    if count is not None:
        dealt = _integer("workers", "parts", parts or 0)
        _core._set_workers(_integer("workers", "count", count), dealt)
    return _core._workers()


class Mesh(contextlib.ContextDecorator):
    """Workers in a grid with named axes.

    `Mesh(data=2, model=4)` has eight workers. One size may be -1: all workers that are left. In a
    `with` statement new tensors lie on the mesh.

    Sums along a divided dimension are dealt into `parts` for each axis, and are added in an order
    that depends on these alone. Meshes with equal parts compute equal bits with any number of
    workers. By default there are as many parts as workers. A dict gives them by axis.

    >>> with tn.Mesh(data=2) as mesh:
    ...     x = tn.shard(tn.ones((4, 3)), "data")
    >>> print(tn.layout(x + 1))
    f32[4,3] @[data,-]
    """

    def __init__(
        self, *names: Any, parts: int | dict[str, int] | None = None, **sizes: int
    ) -> None:
        if names:
            hint = "name the axes: tn.Mesh(data=4)"
            text = f"mesh: axes are given by name, not by position: {names[0]!r}"
            _core._fail("type", text, hint)
        by_axis = parts if isinstance(parts, dict) else dict.fromkeys(sizes, parts or 0)
        if unknown := set(by_axis) - set(sizes):
            text = f"mesh: parts= names an axis that the mesh does not have: {min(unknown)!r}"
            _core._fail("value", text)
        given = [
            (name, _integer("mesh", name, size), _integer("mesh", "parts", by_axis.get(name, 0)))
            for name, size in sizes.items()
        ]
        self._set(_core._mesh_device(given))

    def _set(self, name: str) -> None:
        self._name = name
        self._contexts: list[_core._DeviceContext] = []

    @classmethod
    def _named(cls, name: str) -> Mesh:
        made = cls.__new__(cls)
        made._set(name)
        return made

    def at(self, **coordinates: int) -> Mesh:
        """Return the workers with these coordinates, as a mesh of the other axes.

        `Mesh(stage=2, data=4).at(stage=0)` has four workers along `data`. It is a device as any
        mesh: `tn.place` puts a stage of a pipeline there. Without other axes it is one worker.

        >>> mesh = tn.Mesh(stage=2, data=2)
        >>> mesh.at(stage=1)
        Mesh(stage=2, data=2).at(stage=1)
        >>> mesh.at(stage=1).shape
        {'data': 2}
        """
        given = [(axis, _integer("mesh", axis, at)) for axis, at in coordinates.items()]
        return Mesh._named(_core._mesh_at(self._name, given))

    @property
    def whole(self) -> Mesh:
        """The mesh that this is a part of, or else this mesh."""
        return Mesh._named(_core._mesh_whole(self._name))

    @property
    def device(self) -> _core.Device:
        """The mesh as a device."""
        return _core.Device(self._name)

    @property
    def __tenon_device__(self) -> str:
        """The name of the device, so that a mesh can be used as one: `x.to(mesh)`."""
        return self._name

    @property
    def shape(self) -> dict[str, int]:
        """The number of workers along each axis."""
        return {name: size for name, size, _ in _core._mesh_axes(self._name)}

    @property
    def parts(self) -> dict[str, int]:
        """The number of parts of sums along each axis."""
        return {name: parts for name, _, parts in _core._mesh_axes(self._name)}

    @property
    def size(self) -> int:
        """The number of workers."""
        product = 1
        for size in self.shape.values():
            product *= size
        return product

    def __enter__(self) -> Mesh:
        self._contexts.append(_core._DeviceContext(self.device))
        self._contexts[-1].__enter__()
        return self

    def __exit__(self, *error: object) -> None:
        self._contexts.pop().__exit__(*error)

    def __eq__(self, other: object) -> bool:
        return isinstance(other, Mesh) and self._name == other._name

    def __hash__(self) -> int:
        return hash(self._name)

    def __reduce__(self) -> tuple[Any, ...]:
        whole = self.whole
        return _mesh_of, (whole.shape, whole.parts, _core._mesh_fixed(self._name))

    def __repr__(self) -> str:
        if fixed := _core._mesh_fixed(self._name):
            named = ", ".join(f"{axis}={at}" for axis, at in fixed.items())
            return f"{self.whole!r}.at({named})"
        axes = [f"{name}={size}" for name, size in self.shape.items()]
        if self.parts != self.shape:
            axes.append(f"parts={self.parts}")
        return f"Mesh({', '.join(axes)})"


def _mesh_of(
    sizes: dict[str, int], parts: dict[str, int], fixed: dict[str, int] | None = None
) -> Mesh:
    return Mesh(parts=parts, **sizes).at(**(fixed or {}))


def place(x: T, where: Any) -> T:
    """Move a tensor, those of a tree, or those of a module to a device: a mesh, a part of one.

    A module is changed and returned, as by its method `to`. Between a mesh and its parts the blocks
    of workers go directly: from `Mesh(stage=2, data=2)` to its `at(stage=0)` a tensor that is
    divided along `data` stays so, and nothing is sent.

    >>> mesh = tn.Mesh(stage=2, data=2)
    >>> layer = tn.place(tn.nn.Linear(3, 2), mesh.at(stage=0))
    >>> print(tn.layout(layer.weight))
    f32[2,3] @[-,-]
    """
    from .nn import Module

    device = where.device if isinstance(where, Mesh) else _core.Device(where)
    if isinstance(x, Module):
        return x.to(device)
    return tree.map(lambda leaf: _asarray(leaf).to_device(device), x)  # type: ignore[no-any-return]


def stored(axes: Axes | tuple[Axes, ...]) -> Stored:
    """A layout for parameters that are divided in memory only.

    Ops gather such a tensor where they use it; its gradient and the state of its optimizer are
    divided as well. A name divides the first dimension that it can, and a tensor without such a
    dimension stays whole: a bias of 3 elements on 2 workers. A tuple names an axis or None for each
    dimension, and fails where it does not fit.
    """
    _names(axes)
    return Stored(axes)


def shard(x: Any, spec: Spec, *, is_parameter: bool = False) -> Any:
    """Divide a tensor, or those of a tree, among the workers of a mesh.

    `spec` is the name of an axis of the mesh, which divides dimension 0, or a tuple or list with a
    name or None for each dimension; None alone makes the tensor whole on every worker. A dict has a
    layout for each key of a dict. Values do not change, and ops on the result are divided where
    that is possible. Tensors of the host go to the mesh of the `with` statement. In a traced
    function, this says how a value is to be divided.

    >>> with tn.Mesh(data=2, model=2):
    ...     print(tn.layout(tn.shard(tn.ones((8, 6)), (None, "model"))))
    f32[8,6] @[-,model]
    """
    if isinstance(spec, dict):
        return _shard_by_key(x, spec, is_parameter)
    is_stored = isinstance(spec, Stored)
    inner = spec.axes if isinstance(spec, Stored) else spec
    anywhere = is_stored and isinstance(inner, str)
    names = _names(inner)

    def divide(leaf: Any) -> Any:
        is_number = isinstance(leaf, (int, float, complex)) and leaf is not x
        if is_number and any(names) and not anywhere:
            text = f"shard: a {type(x).__name__} is a tree of tensors, and a number in it cannot be"
            hint = f"make one tensor of the numbers: tn.shard(tn.array(...), {spec!r})"
            _core._fail("value", f"{text} divided: {leaf!r}", hint)
        return _core._shard(_asarray(leaf), names, is_stored, is_parameter, anywhere)

    return tree.map(divide, x)


def _shard_by_key(x: Any, specs: dict[Any, Any], is_parameter: bool) -> dict[Any, Any]:
    if not isinstance(x, dict) or set(x) != set(specs):
        keys = sorted(map(str, specs))
        _core._fail("value", f"shard: layouts for the keys {keys} are for a dict with these keys")
    return {key: shard(x[key], specs[key], is_parameter=is_parameter) for key in x}


def shard_map(
    f: Callable[P, R], mesh: Mesh | None = None, *, in_specs: Any, out_specs: Any
) -> Callable[P, R]:
    """Run a function that is written for one worker's part of its arguments on every worker.

    `in_specs` has a layout for each argument, as in `shard`: an axis of the mesh, a tuple with an
    axis or None for each dimension, or None for an argument that every worker gets whole. A layout
    holds for all tensors of an argument; a dict has one for each key of a dict. `out_specs` is the
    layout of the result, or a tuple with one for each element where `f` returns a tuple. A result
    that an axis does not divide must be equal on all workers along it. Without `mesh`, it is that
    of the `with` statement.

    In `f` workers exchange data with `tn.distributed.all_sum(x, axis="data")` and the other
    collectives. Tensors that `f` closes over are whole. Values cannot be read there, as they differ
    by worker. Derivatives, `vmap`, `compile` and control flow work outside and inside. What `f`
    assigns to modules, such as the statistics of a norm, must be equal on all workers.

    >>> def normalized(x):  # by the mean of all rows, of which x has some
    ...     total = tn.distributed.all_sum(x.sum(axis=0), axis="data")
    ...     return x - total / 8
    >>> mesh = tn.Mesh(data=4)
    >>> f = tn.shard_map(normalized, mesh, in_specs=("data",), out_specs="data")
    >>> f(tn.arange(8.0)).numpy()
    array([-3.5, -2.5, -1.5, -0.5,  0.5,  1.5,  2.5,  3.5], dtype=float32)
    """
    check_callable("shard_map", f)
    if mesh is not None and not isinstance(mesh, Mesh):
        _core._fail("type", f"shard_map: not a mesh: {mesh!r}", "make one: tn.Mesh(data=4)")

    @functools.wraps(f)
    def wrapper(*args: P.args, **kwargs: P.kwargs) -> R:
        if kwargs:
            _core._fail("type", "shard_map: arguments are positional, as each has a layout: "
                                f"{min(kwargs)}=")
        arguments = tree.map(_as_tensor, list(args))
        given = _core._TensorTree(arguments)
        state = StateOnWorkers(f)
        flat = FlatFunction("shard_map", state, given)
        device = mesh._name if mesh is not None else ""
        specs = _specs_of("arguments", in_specs, arguments)

        def layouts_of_all() -> list[list[str]]:  # those of state are behind those of results
            made, _ = flat.results.with_tensors(list(flat.results.tensors))
            return _specs_of_results(out_specs, made) + [[]] * state.count

        def name_of_state(result: int) -> str:
            first = len(flat.results.tensors) - state.count
            return state.name(result - first) if result >= first else ""

        made = _core._shard_map(flat, given.tensors, device, specs, layouts_of_all, name_of_state)
        results, values = flat.results.with_tensors(made)
        state.assign(values)
        return results  # type: ignore[no-any-return]

    return wrapper


def _as_tensor(leaf: Any) -> Any:
    """Numbers and arrays as tensors; what is neither stays as it is."""
    is_array = isinstance(leaf, (bool, int, float, complex)) or hasattr(leaf, "__array__")
    return _asarray(leaf) if is_array else leaf


def _specs_of(what: str, specs: Any, values: list[Any]) -> list[list[str]]:
    """A layout for each tensor: the names of each dimension."""
    if not isinstance(specs, (tuple, list)):
        specs = [specs] * len(values)
    if len(specs) != len(values):
        _core._fail("value", f"shard_map: {len(specs)} layouts for {len(values)} {what}")
    made: list[list[str]] = []
    for spec, value in zip(specs, values):
        made += _names_by_tensor("shard_map", spec, value)
    return made


def _names_by_tensor(who: str, spec: Any, value: Any) -> list[list[str]]:
    """The layouts of the tensors in a tree. A dict of layouts is for a dict with the same keys."""
    if not isinstance(spec, dict):
        return [_names(spec, who)] * len(_core._TensorTree(value).tensors)
    if not isinstance(value, dict) or set(value) != set(spec):
        given = f"the keys {sorted(map(str, value))}" if isinstance(value, dict) else "no dict"
        _core._fail("value", f"{who}: layouts for the keys {sorted(map(str, spec))}, and the value "
                             f"has {given}: {type(value).__name__}")
    # In the order of the tensors of the tree.
    numbers = {key: [_core.asarray(i)] for i, key in enumerate(value)}
    order = [int(x.item()) for x in _core._TensorTree(numbers).tensors]
    keys = list(value)
    return [names for i in order for names in _names_by_tensor(who, spec[keys[i]], value[keys[i]])]


def _specs_of_results(specs: Any, results: Any) -> list[list[str]]:
    if isinstance(results, (tuple, list)):
        return _specs_of("results", specs, list(results))
    return _specs_of("results", [specs], [results])


def _names(spec: Spec, who: str = "shard") -> list[str]:
    """The axes of each dimension."""
    if isinstance(spec, Stored):
        text = "shard_map: tn.stored describes storage, not the part that a worker computes with"
        _core._fail("value", text, "name the axes that divide it")
    if spec is None:
        return []
    return [_name(axes, who) for axes in (spec if isinstance(spec, (tuple, list)) else (spec,))]


def layout(x: _core.Tensor) -> str:
    """Return how a tensor is divided, as text: `f32[1000,64] @[data,-]`.

    There is a name for each dimension, or `-` where it is whole. The tensor is computed first.
    """
    return _core._layout(_asarray(x))


def worker_stats() -> list[dict[str, Any]]:
    """Return what the workers of this process did since the first call of this function.

    There is a dict for each worker: `worker` (its number), `runs` of plans, `collectives` and the
    `bytes` in them, and the seconds `running`, `communicating` (a part of them) and `waiting` for
    others (a part of those). Programs that are started with `TENON_WATCH=1` count from the start.

    >>> _ = tn.worker_stats()
    >>> with tn.Mesh(data=2):
    ...     total = tn.shard(tn.ones((4, 3)), "data").sum().item()
    >>> [(one["worker"], one["collectives"] > 0) for one in tn.worker_stats()][:2]
    [(0, True), (1, True)]
    """
    return _core._worker_totals()


def _integer(what: str, name: str, value: Any) -> int:
    if isinstance(value, bool) or not isinstance(value, SupportsIndex):
        _core._fail("type", f"{what}: {name} must be an integer, not {value!r}")
    number = operator.index(value)
    if abs(number) >= 2**31:
        _core._fail("value", f"{what}: {name} is too large: {number}")
    return number


def _name(axes: Any, who: str) -> str:
    """The text of one dimension."""
    if axes is None:
        return ""
    if isinstance(axes, str):
        return axes
    if isinstance(axes, (tuple, list)) and all(isinstance(name, str) for name in axes):
        return "+".join(axes)
    hint = "a dict of layouts is for an argument or result that is a dict" * isinstance(axes, dict)
    text = f"{who}: {axes!r} is not the name of an axis, a tuple of names, or None"
    _core._fail("type", text, hint)
