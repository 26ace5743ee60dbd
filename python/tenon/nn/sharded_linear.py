"""Linear layers whose weights are divided between workers."""

from __future__ import annotations

import tenon as tn

from .. import _core
from ..distributed import Group, init, sum_gradients, sum_replicated
from .linear import Linear
from .module import Module

__all__ = ["AllToShardedLinear", "ShardedToAllLinear", "shard_linear"]


class _Divided(Module):
    """This worker's part of a linear layer."""

    weight: tn.Tensor
    bias: tn.Tensor | None

    def __init__(self, weight: tn.Tensor, bias: tn.Tensor | None, group: Group) -> None:
        self.weight = weight
        self.bias = bias
        self._group = group


class AllToShardedLinear(_Divided):
    """A linear layer of which each worker computes a part of the outputs.

    Its input is the same on all workers, and the gradient of the input is summed over them.
    """

    def forward(self, x: tn.Tensor) -> tn.Tensor:
        y = sum_gradients(x, self._group) @ self.weight.T
        return y if self.bias is None else y + self.bias

    def describe(self) -> str:
        outputs, inputs = self.weight.shape
        return f"{inputs} -> {outputs} of {outputs * self._group.size()}"


class ShardedToAllLinear(_Divided):
    """A linear layer of which each worker has a part of the inputs.

    The workers sum their products, so the result is the same on all of them.
    """

    def forward(self, x: tn.Tensor) -> tn.Tensor:
        y = sum_replicated(x @ self.weight.T, self._group)
        return y if self.bias is None else y + self.bias

    def describe(self) -> str:
        outputs, inputs = self.weight.shape
        return f"{inputs} of {inputs * self._group.size()} -> {outputs}"


def shard_linear(
    module: Linear, sharding: str, *, segments: int = 1, group: Group | None = None
) -> Module:
    """Return this worker's part of a linear layer that is the same on all workers.

    "all-to-sharded" divides the outputs, "sharded-to-all" the inputs. `segments` is the number of
    equal parts of that axis that are divided each for themselves: 3 for a fused projection of
    queries, keys and values.

        >>> tn.nn.shard_linear(tn.nn.Linear(4, 8), "all-to-sharded")
        AllToShardedLinear(4 -> 8 of 8)
    """
    if not isinstance(module, Linear):
        kind = type(module).__name__
        _core._fail("type", f"nn.shard_linear: expected a Linear, not {kind}")
    if sharding not in ("all-to-sharded", "sharded-to-all"):
        text = f"nn.shard_linear: {sharding!r} is not 'all-to-sharded' or 'sharded-to-all'"
        _core._fail("value", text)
    workers = group or init()
    if sharding == "all-to-sharded":
        bias = module.bias if module.bias is None else _part(module.bias, 0, segments, workers)
        return AllToShardedLinear(_part(module.weight, 0, segments, workers), bias, workers)
    return ShardedToAllLinear(_part(module.weight, 1, segments, workers), module.bias, workers)


def _part(x: tn.Tensor, axis: int, segments: int, workers: Group) -> tn.Tensor:
    """This worker's part of every segment along an axis."""
    extent, size, rank = x.shape[axis], workers.size(), workers.rank()
    if segments < 1 or extent % (segments * size):
        text = f"nn.shard_linear: {size} workers do not divide axis {axis} of {x.shape}"
        _core._fail("value", f"{text} in {segments} segments")
    shape = (*x.shape[:axis], segments, size, extent // segments // size, *x.shape[axis + 1 :])
    at = (slice(None),) * (axis + 1) + (rank,)
    part = x.reshape(shape)[at]
    return part.reshape((*x.shape[:axis], extent // size, *x.shape[axis + 1 :]))
