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
    "barrier",
    "broadcast",
    "init",
    "is_available",
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


def barrier(group: Group | None = None) -> None:
    """Return when every worker of the group has called it."""
    _core._barrier(group or init())


def all_sum(x: _core.Tensor, group: Group | None = None) -> _core.Tensor:
    """Return the sum of `x` over the workers, on all of them.

    Terms are added in a fixed order, so every worker gets the same bits in every run. Gradients are
    those of the sum of all workers' losses.

    >>> tn.distributed.all_sum(tn.array([1.0, 2.0]))
    tensor([1., 2.], dtype=float32)
    """
    return _core._all_sum(_asarray(x), group or init())


def all_max(x: _core.Tensor, group: Group | None = None) -> _core.Tensor:
    """Return the elementwise maximum of `x` over the workers, on all of them."""
    return _core._all_max(_asarray(x), group or init())


def all_min(x: _core.Tensor, group: Group | None = None) -> _core.Tensor:
    """Return the elementwise minimum of `x` over the workers, on all of them."""
    return _core._all_min(_asarray(x), group or init())


def all_gather(x: _core.Tensor, group: Group | None = None) -> _core.Tensor:
    """Return the `x` of all workers, joined along axis 0 in the order of ranks."""
    return _core._all_gather(_asarray(x), group or init())


def sum_scatter(x: _core.Tensor, group: Group | None = None) -> _core.Tensor:
    """Sum `x` over the workers; each gets an equal part along axis 0."""
    return _core._sum_scatter(_asarray(x), group or init())


def all_to_all(x: _core.Tensor, group: Group | None = None) -> _core.Tensor:
    """Send part r of `x` along axis 0 to worker r, and join the parts that arrive."""
    return _core._all_to_all(_asarray(x), group or init())


def broadcast(x: _core.Tensor, root: int = 0, group: Group | None = None) -> _core.Tensor:
    """Return the `x` of worker `root`, on all workers."""
    return _core._broadcast(_asarray(x), root, group or init())


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
