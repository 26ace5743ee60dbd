"""Programs of several workers: `tenon launch -n 4 train.py`.

Every worker runs the program, computes its share and exchanges tensors with the others. All workers
of a group must make the same calls in the same order. With one worker nothing is exchanged, so a
program also runs without the launcher.
"""

from __future__ import annotations

from typing import Any

from . import _core, tree
from .creation import asarray as _asarray

Group = _core._WorkerGroup

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


def axis_index(axis: str) -> _core.Tensor:
    """Return the number of each worker along an axis of the mesh, in a function of `tn.shard_map`.

    It is an int32 that differs by worker.

    >>> f = tn.shard_map(lambda: tn.distributed.axis_index("data")[None], tn.Mesh(data=4),
    ...                  in_specs=(), out_specs="data")
    >>> f().tolist()
    [0, 1, 2, 3]
    """
    return _core._axis_index(axis)


def _group(group: Group | None, axis: str | None) -> Group:
    """The workers of a group, or along an axis of the mesh in a function of `shard_map`."""
    if axis is None:
        return group or init()
    if group is not None:
        _core._fail("value", "workers: a group or an axis of the mesh, not both")
    return _core._mesh_axis(axis)


def barrier(group: Group | None = None) -> None:
    """Return when every worker of the group has called it."""
    _core._barrier(group or init())


def all_sum(
    x: _core.Tensor, group: Group | None = None, *, axis: str | None = None
) -> _core.Tensor:
    """Return the sum of `x` over the workers, on all of them.

    Terms are added in a fixed order, so every worker gets the same bits in every run. Gradients are
    those of the sum of all workers' losses. In a function of `tn.shard_map`, `axis` names an axis
    of the mesh.

    >>> tn.distributed.all_sum(tn.array([1.0, 2.0]))
    tensor([1., 2.], dtype=float32)
    """
    return _core._all_sum(_asarray(x), _group(group, axis))


def all_max(
    x: _core.Tensor, group: Group | None = None, *, axis: str | None = None
) -> _core.Tensor:
    """Return the elementwise maximum of `x` over the workers, on all of them."""
    return _core._all_max(_asarray(x), _group(group, axis))


def all_min(
    x: _core.Tensor, group: Group | None = None, *, axis: str | None = None
) -> _core.Tensor:
    """Return the elementwise minimum of `x` over the workers, on all of them."""
    return _core._all_min(_asarray(x), _group(group, axis))


def all_gather(
    x: _core.Tensor, group: Group | None = None, *, axis: str | None = None
) -> _core.Tensor:
    """Return the `x` of all workers, joined along axis 0 in the order of ranks."""
    return _core._all_gather(_asarray(x), _group(group, axis))


def sum_scatter(
    x: _core.Tensor, group: Group | None = None, *, axis: str | None = None
) -> _core.Tensor:
    """Sum `x` over the workers; each gets an equal part along axis 0."""
    return _core._sum_scatter(_asarray(x), _group(group, axis))


reduce_scatter = sum_scatter


def all_to_all(
    x: _core.Tensor, group: Group | None = None, *, axis: str | None = None
) -> _core.Tensor:
    """Send part r of `x` along axis 0 to worker r, and join the parts that arrive."""
    return _core._all_to_all(_asarray(x), _group(group, axis))


def broadcast(
    x: _core.Tensor, root: int = 0, group: Group | None = None, *, axis: str | None = None
) -> _core.Tensor:
    """Return the `x` of worker `root`, on all workers."""
    return _core._broadcast(_asarray(x), root, _group(group, axis))


def send(x: _core.Tensor, dst: int, group: Group | None = None) -> _core.Tensor:
    """Send `x` to worker `dst`, which receives it with `recv`, and return `x`.

    Messages are exchanged in the order of the calls. A message is exchanged when it is called; in a
    compiled function, when the function runs. Evaluate a pending collective first if the other
    worker takes part in it before it comes to the message.
    """
    return _core._send(_asarray(x), dst, group or init())


def recv(
    shape: tuple[int, ...], dtype: Any, src: int, group: Group | None = None
) -> _core.Tensor:
    """Return the tensor that worker `src` sends, which must have this shape and element type."""
    return _core._recv_like(_core.zeros(shape, dtype=dtype), src, group or init())


def recv_like(x: _core.Tensor, src: int, group: Group | None = None) -> _core.Tensor:
    """Return the tensor that worker `src` sends: one with the shape and element type of `x`."""
    return _core._recv_like(_asarray(x), src, group or init())


def sum_gradients(x: _core.Tensor, group: Group | None = None) -> _core.Tensor:
    """Return `x`, whose gradient is the sum of the gradients of all workers.

    For a value that is the same on all workers, where each goes on with its own part of the work:
    the input of a layer that is divided between them.
    """
    return _core._sum_gradients(_asarray(x), group or init())


def sum_replicated(x: _core.Tensor, group: Group | None = None) -> _core.Tensor:
    """Return the sum of `x` over the workers, which all go on with the same work.

    As `all_sum`, but every worker computes the same loss from it. The gradient of `x` is that of
    one loss, not of the sum of all.
    """
    return _core._sum_replicated(_asarray(x), group or init())


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
    workers = group or init()
    size = workers.size()
    if size == 1:
        return gradients
    return tree.map(lambda g: _core._all_sum(g, workers) / size, gradients)
