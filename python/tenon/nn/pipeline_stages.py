"""Pipelines: stages of a model on parts of a mesh."""

from __future__ import annotations

import operator
from collections.abc import Callable, Sequence
from typing import Any

import tenon as tn

from .. import _core, tree
from .module import Module


class Pipeline(Module):
    """Stages, through which a batch goes in microbatches: see `tn.pipeline`.

    `pipe[k]` is a stage. Names of parameters begin with `stages.k`.
    """

    def __init__(
        self,
        stages: Sequence[Callable[[Any], Any]],
        microbatches: int,
        schedule: str = "1f1b",
    ) -> None:
        if not stages:
            _core._fail("value", "pipeline: there are no stages")
        for i, stage in enumerate(stages):
            if not callable(stage):
                text = f"stage {i} is a {type(stage).__name__}, not a module or function"
                _core._fail("type", f"pipeline: {text}", "pipeline([stage, stage], microbatches=8)")
            places = sorted({str(x.device) for x in _core._TensorTree(stage).tensors})
            if len(places) > 1:
                text = f"pipeline: stage {i} has tensors on {places[0]} and {places[1]}"
                _core._fail("value", text, f"tn.place(stage, mesh.at(stage={i}))")
        if not isinstance(microbatches, int) or microbatches < 1:
            text = f"pipeline: microbatches must be a positive integer: {microbatches!r}"
            _core._fail("value", text)
        if schedule != "1f1b":
            _core._fail("value", f"pipeline: there is no schedule {schedule!r}", "it is '1f1b'")
        self.stages = list(stages)
        self.microbatches = microbatches

    def forward(self, x: Any) -> Any:
        results = [self._through(part) for part in self._split(x)]
        return tree.map(self._joined, *results)

    def loss(self, f: Callable[..., tn.Tensor], x: Any, *targets: Any) -> tn.Tensor:
        """Return the mean of `f(result, *targets)` over the microbatches, computed on the last
        stage.

        The backward pass of a microbatch needs no other one, so it begins while others are still on
        their way forward. `f` must itself be a mean over its rows for the result to be one.

            >>> pipe = tn.pipeline([tn.nn.Linear(3, 2)], microbatches=2)
            >>> f = lambda y, target: ((y - target) ** 2).mean()
            >>> pipe.loss(f, tn.ones((4, 3)), tn.zeros((4, 2))).shape
            ()
        """
        leaves = [tn.asarray(leaf) for leaf in tree.leaves((x, targets))]
        rows = sorted({leaf.shape[0] for leaf in leaves if leaf.ndim})
        if len(rows) > 1:
            text = f"pipeline: arguments have {' and '.join(map(str, rows))} rows"
            _core._fail("value", text, "targets have a row for each row of the batch")
        parts = zip(self._split(x), *map(self._split, targets))
        terms = []
        for part, *own in parts:
            y = self._through(part)
            device = _device_of(y)
            term = f(y, *[_moved(one, device) for one in own])
            if term.ndim:
                text = f"pipeline: a loss is a scalar, not a tensor of shape {term.shape}"
                _core._fail("value", text, "take its mean or sum")
            terms.append(term)
        mean = tn.stack(terms).mean()
        return mean.to_device(whole_mesh(mean.device))

    def __len__(self) -> int:
        return len(self.stages)

    def __getitem__(self, index: int) -> Callable[[Any], Any]:
        return self.stages[index]

    def _through(self, x: Any) -> Any:
        for stage in self.stages:
            if held := _core._TensorTree(stage).tensors:
                x = _moved(x, held[0].device)
            x = stage(x)
        return x

    def _split(self, x: Any) -> list[Any]:
        """Microbatch i has the rows i, i + n, i + 2 n, ... So each has a part of every block of a
        batch that is divided among workers, and no row goes from one to another."""
        leaves = tree.map(self._rows, x)
        pick = operator.itemgetter
        return [tree.map(pick((slice(None), i)), leaves) for i in range(self.microbatches)]

    def _rows(self, x: Any) -> tn.Tensor:
        x = tn.asarray(x)
        if x.ndim == 0 or x.shape[0] % self.microbatches:
            rows = f"a batch of {x.shape[0]} rows" if x.ndim else "a tensor without axes"
            text = f"pipeline: {rows} cannot be split into {self.microbatches} microbatches"
            _core._fail("value", text, "pad the batch, or choose microbatches that divide it")
        grid = (x.shape[0] // self.microbatches, self.microbatches, *x.shape[1:])
        return tn.reshape(x, grid)

    def _joined(self, *parts: tn.Tensor) -> tn.Tensor:
        rows = tn.stack(list(parts), axis=1)
        x = rows.reshape(rows.shape[0] * self.microbatches, *rows.shape[2:])
        return x.to_device(whole_mesh(x.device))


def pipeline(
    stages: Sequence[Callable[[Any], Any]], *, microbatches: int, schedule: str = "1f1b"
) -> Pipeline:
    """Return a module that sends a batch through `stages` in microbatches.

    Each stage is a module or function of one argument, and lies where `tn.place` has put it: on
    part of a mesh, `mesh.at(stage=0)`. Axis 0 of the argument is split into `microbatches`, of
    which the stages work on different ones at the same time. The result is joined, on the whole
    mesh. For training, `pipe.loss(f, x, y)` computes the loss of each microbatch on the last stage.

    A stage works on a forward and a backward pass in turn (`schedule="1f1b"`), and so keeps what
    the backward passes of few microbatches need. Under `tenon launch` stages are processes that
    work at the same time. Worker threads share the cores, and work one after the other.

    >>> mesh = tn.Mesh(stage=2)
    >>> stages = [tn.place(tn.nn.Linear(3, 3), mesh.at(stage=k)) for k in range(2)]
    >>> pipe = tn.pipeline(stages, microbatches=4)
    >>> pipe(tn.ones((8, 3))).shape
    (8, 3)
    """
    return Pipeline(stages, microbatches, schedule)


def _moved(x: Any, device: tn.Device) -> Any:
    return tree.map(lambda leaf: tn.asarray(leaf).to_device(device), x)


def _device_of(x: Any) -> tn.Device:
    return _core._TensorTree(x).tensors[0].device


def whole_mesh(device: tn.Device) -> tn.Device:
    """The mesh that a device is a part of, or else the device."""
    return tn.Device(_core._mesh_whole(str(device))) if device.kind == "mesh" else device
