"""Programs of several workers: `tenon launch -n 4 train.py`.

Every worker runs the program, computes its share and exchanges tensors with the others. All workers
of a group must make the same calls in the same order. With one worker nothing is exchanged, so a
program also runs without the launcher.
"""

from __future__ import annotations

import operator
from typing import Any, SupportsIndex

from . import _core, tree
from .creation import asarray as _asarray

Group = _core._WorkerGroup
Axis = str | tuple[str, ...]

__all__ = [
    "Group",
    "all_gather",
    "all_max",
    "all_min",
    "all_sum",
    "all_to_all",
    "average_gradients",
    "axis_index",
    "barrier",
    "broadcast",
    "gather",
    "init",
    "is_available",
    "recv",
    "recv_like",
    "reduce_scatter",
    "send",
    "sum_gradients",
    "sum_replicated",
    "sum_scatter",
]


def init() -> Group:
    """Return the group of all workers; without a launcher there is one.

    >>> world = tn.distributed.init()
    >>> world.rank(), world.size()
    (0, 1)
    """
    return _core._init_workers()


def is_available() -> bool:
    """Whether the program was started as several workers."""
    return init().size() > 1


def axis_index(axis: Axis) -> _core.Tensor:
    """Return the number of each worker along an axis of the mesh, in a function of `tn.shard_map`.

    It is an int32 that differs by worker. Along a tuple of axes the last one changes fastest.

    >>> f = tn.shard_map(lambda: tn.distributed.axis_index("data")[None], tn.Mesh(data=4),
    ...                  in_specs=(), out_specs="data")
    >>> f().tolist()
    [0, 1, 2, 3]
    """
    first, *rest = _axes("axis_index", axis)
    index = _core._axis_index(first)
    for name in rest:
        index = index * _core._mesh_axis(name).size() + _core._axis_index(name)
    return index


def _axes(what: str, axis: Any) -> list[str]:
    """The names in an axis or a tuple of axes."""
    names = list(axis) if isinstance(axis, (tuple, list)) else [axis]
    if not names or not all(isinstance(name, str) for name in names):
        text = f"{what}: axis must be the name of an axis of the mesh, or a tuple of names"
        _core._fail("type", f"{text}: {axis!r}")
    if len(set(names)) < len(names):
        _core._fail("value", f"{what}: an axis is named twice: {axis!r}")
    return names


def _groups(what: str, group: Group | Axis | None, axis: Axis | None) -> list[Group]:
    """A group of workers, or those along axes of the mesh in a function of `shard_map`."""
    if isinstance(group, (str, tuple, list)) and axis is None:
        group, axis = None, group
    if axis is None:
        return [_group(what, group)]
    if group is not None:
        _core._fail("value", "workers: a group or an axis of the mesh, not both")
    return [_core._mesh_axis(name) for name in _axes(what, axis)]


def _group(what: str, group: Any) -> Group:
    """The group of a call that knows no axes."""
    if group is None:
        return init()
    if isinstance(group, Group):
        return group
    text = f"{what}: not a group of workers: {group!r}"
    return _core._fail("type", text, "tn.distributed.init() is the group of all; it can be split")


def _worker(what: str, name: str, value: Any) -> int:
    """The number of a worker."""
    if isinstance(value, bool) or not isinstance(value, SupportsIndex):
        _core._fail("type", f"{what}: {name} must be the number of a worker, not {value!r}")
    number = operator.index(value)
    if abs(number) >= 2**31:
        _core._fail("value", f"{what}: there is no worker {number}")
    return number


def barrier(group: Group | None = None) -> None:
    """Return when every worker of the group has called it."""
    _core._barrier(_group("barrier", group))


def all_sum(
    x: _core.Tensor, group: Group | Axis | None = None, *, axis: Axis | None = None
) -> _core.Tensor:
    """Return the sum of `x` over the workers, on all of them.

    Terms are added in a fixed order, so every worker gets the same bits in every run. Gradients are
    those of the sum of all workers' losses. Bool is summed as int64, as by `tn.sum`. In a function
    of `tn.shard_map`, `axis` names an axis of the mesh, or a tuple of axes; `all_sum(x, "data")` is
    short for it.

    >>> tn.distributed.all_sum(tn.array([1.0, 2.0]))
    tensor([1., 2.], dtype=float32)
    """
    x = _asarray(x)
    for workers in _groups("all_sum", group, axis):
        x = _core._all_sum(x, workers)
    return x


def all_max(
    x: _core.Tensor, group: Group | Axis | None = None, *, axis: Axis | None = None
) -> _core.Tensor:
    """Return the elementwise maximum of `x` over the workers, on all of them.

    Its gradient goes to the workers that hold the maximum, in equal shares.
    """
    x = _asarray(x)
    for workers in _groups("all_max", group, axis):
        x = _core._all_max(x, workers)
    return x


def all_min(
    x: _core.Tensor, group: Group | Axis | None = None, *, axis: Axis | None = None
) -> _core.Tensor:
    """Return the elementwise minimum of `x` over the workers, on all of them.

    Its gradient goes to the workers that hold the minimum, in equal shares.
    """
    x = _asarray(x)
    for workers in _groups("all_min", group, axis):
        x = _core._all_min(x, workers)
    return x


def all_gather(
    x: _core.Tensor, group: Group | Axis | None = None, *, axis: Axis | None = None
) -> _core.Tensor:
    """Return the `x` of all workers, joined along axis 0 in the order of ranks."""
    x = _asarray(x)
    for workers in reversed(_groups("all_gather", group, axis)):
        x = _core._all_gather(x, workers)
    return x


def sum_scatter(
    x: _core.Tensor, group: Group | Axis | None = None, *, axis: Axis | None = None
) -> _core.Tensor:
    """Sum `x` over the workers; each gets an equal part along axis 0."""
    x = _asarray(x)
    for workers in _groups("sum_scatter", group, axis):
        x = _core._sum_scatter(x, workers)
    return x


reduce_scatter = sum_scatter


def all_to_all(
    x: _core.Tensor, group: Group | str | None = None, *, axis: str | None = None
) -> _core.Tensor:
    """Send part r of `x` along axis 0 to worker r, and join the parts that arrive."""
    first, *more = _groups("all_to_all", group, axis)
    if more:
        hint = "make a mesh with one axis for these workers"
        _core._fail("value", "all_to_all: it goes along one axis of the mesh, not several", hint)
    return _core._all_to_all(_asarray(x), first)


def broadcast(
    x: _core.Tensor, root: int = 0, group: Group | Axis | None = None, *, axis: Axis | None = None
) -> _core.Tensor:
    """Return the `x` of worker `root`, on all workers.

    The gradient of the root's `x` is the sum of all workers' gradients.
    """
    x, root = _asarray(x), _worker("broadcast", "root", root)
    groups = _groups("broadcast", group, axis)
    for workers in reversed(groups[1:]):  # the root's number along each axis
        x, root = _core._broadcast(x, root % workers.size(), workers), root // workers.size()
    return _core._broadcast(x, root, groups[0])


def send(x: _core.Tensor, dst: int, group: Group | None = None) -> _core.Tensor:
    """Send `x` to worker `dst`, which receives it with `recv`, and return `x`.

    Messages are exchanged in the order of the calls. A message is exchanged when it is called; in a
    compiled function, when the function runs. Evaluate a pending collective first if the other
    worker takes part in it before it comes to the message.
    """
    return _core._send(_asarray(x), _worker("send", "dst", dst), _group("send", group))


def recv(
    shape: tuple[int, ...], dtype: Any, src: int, group: Group | None = None
) -> _core.Tensor:
    """Return the tensor that worker `src` sends, which must have this shape and element type."""
    like = _core.zeros(shape, dtype=dtype)
    return _core._recv_like(like, _worker("recv", "src", src), _group("recv", group))


def recv_like(x: _core.Tensor, src: int, group: Group | None = None) -> _core.Tensor:
    """Return the tensor that worker `src` sends: one with the shape and element type of `x`."""
    source = _worker("recv_like", "src", src)
    return _core._recv_like(_asarray(x), source, _group("recv_like", group))


def sum_gradients(x: _core.Tensor, group: Group | None = None) -> _core.Tensor:
    """Return `x`, whose gradient is the sum of the gradients of all workers.

    For a value that is the same on all workers, where each goes on with its own part of the work:
    the input of a layer that is divided between them.
    """
    return _core._sum_gradients(_asarray(x), _group("sum_gradients", group))


def sum_replicated(x: _core.Tensor, group: Group | None = None) -> _core.Tensor:
    """Return the sum of `x` over the workers, which all go on with the same work.

    As `all_sum`, but every worker computes the same loss from it. The gradient of `x` is that of
    one loss, not of the sum of all.
    """
    return _core._sum_replicated(_asarray(x), _group("sum_replicated", group))


def gather(x: _core.Tensor) -> _core.Tensor:
    """Return a tensor that is divided over a mesh as a whole one, on the host of every worker.

    All workers of the mesh must call it. `x.local` is the block of this worker alone.
    """
    return _core._gather_blocks(_asarray(x))


def average_gradients(gradients: Any, group: Group | None = None) -> Any:
    """Return a tree of gradients, each the mean over the workers.

    >>> tn.nn.average_gradients({"w": tn.array([2.0])})
    {'w': tensor([2.], dtype=float32)}
    """
    workers = _group("average_gradients", group)
    size = workers.size()
    if size == 1:
        return gradients
    return tree.map(lambda g: _core._all_sum(g, workers) / size, gradients)
