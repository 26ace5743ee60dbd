"""Checkpoints: everything a training run needs to resume with the same bits.

    >>> import tempfile
    >>> folder = tempfile.mkdtemp()
    >>> model, optimizer = tn.nn.Linear(2, 1), tn.optim.Adam(1e-3)
    >>> tn.save_checkpoint(folder + "/run", model=model, optimizer=optimizer, epoch=3)
    >>> tn.load_checkpoint(folder + "/run", model=model, optimizer=optimizer)
    {'epoch': 3}

A checkpoint is one safetensors file. Its tensors are named by their path, such as `model.weight` or
`optimizer.moments.weight.m`; numbers and strings are in its metadata. It is written atomically, and
loading verifies its checksum. Several workers write a folder together, which any number of them can
load; `worker_checkpoints` describes it.
"""

from __future__ import annotations

import contextlib
import fcntl
import json
import os
import re
from collections.abc import Iterator
from typing import Any, overload

import tenon as tn

from . import _core, distributed, files, worker_checkpoints
from .creation import asarray
from .random import state as random_state

_KEY = "tenon.checkpoint"  # of the metadata
_RANDOM = "random.state"


def save_checkpoint(path: files.Path, /, *, random: bool = True, **parts: Any) -> None:
    """Writes the named parts of a training run to a file.

    A part is a module, an optimizer or another object with `state_dict` and `load_state_dict`; or a
    tensor, number, string or None, or lists, tuples and dicts of these. `random` adds the state of
    `tn.random`.
    """
    tensors, about = _packed_parts(parts, random)
    name = files.path_of("save_checkpoint", path)
    files.save_safetensors(name, tensors, {_KEY: json.dumps({"version": 1, "parts": about})})


def _packed_parts(
    parts: dict[str, Any], random: bool
) -> tuple[files.Tensors, dict[str, Any]]:
    tensors: files.Tensors = {}
    about = {name: _packed(part, name, tensors) for name, part in parts.items()}
    if random:
        tensors[_RANDOM] = random_state[0]
    return tensors, about


def load_checkpoint(
    path: files.Path, /, *, random: bool = True, verify: bool | None = None, **parts: Any
) -> dict[str, Any]:
    """Loads the given parts of a checkpoint in place, and returns the other parts.

    Parts with a state may be omitted; their state dict is returned then. The checksum of the file
    is verified unless `verify` is False.
    """
    name = files.path_of("load_checkpoint", path)
    return _put(name, _read(name, verify), random, parts)


def _read(
    name: str, verify: bool | None, group: distributed.Group | None = None
) -> tuple[files.Tensors, dict[str, Any], dict[str, Any]]:
    """The tensors of a file or folder, what it says of its parts, and the values of those."""
    metadata: dict[str, str] = {}
    saved: dict[str, Any] = {}
    if os.path.isdir(name):
        tensors, saved = worker_checkpoints.read(name, verify, group)
    else:
        with files.opening(name):
            tensors, metadata = _core._load_safetensors(name, verify)
    try:
        saved = saved or _parts(name, metadata)
        return tensors, saved, {part: _unpacked(value, tensors) for part, value in saved.items()}
    except (ArithmeticError, AttributeError, LookupError, RecursionError, TypeError) as error:
        _core._fail("value", f"load_checkpoint: {name} is damaged: its metadata: {error!r}")


def _put(
    name: str,
    read: tuple[files.Tensors, dict[str, Any], dict[str, Any]],
    random: bool,
    parts: dict[str, Any],
) -> dict[str, Any]:
    """Puts what was read into the parts that are given, and returns the others."""
    tensors, saved, values = read
    for part, into in parts.items():
        _check_part(name, saved, part, into)
    for part, into in parts.items():
        into.load_state_dict(values.pop(part))
    if random and _RANDOM in tensors:
        random_state[0] = tensors[_RANDOM]
    return values


def _parts(name: str, metadata: dict[str, str]) -> dict[str, Any]:
    if _KEY not in metadata:
        hint = "model.load_weights loads weights"
        _core._fail("value", f"load_checkpoint: {name} holds tensors, not a checkpoint", hint)
    try:
        about = json.loads(metadata[_KEY])
    except ValueError as error:
        _core._fail("value", f"load_checkpoint: {name} is damaged: its metadata: {error}")
    if about["version"] != 1:
        hint = "load it with a newer tenon"
        _core._fail("value", f"load_checkpoint: {name} has version {about['version']}", hint)
    parts: dict[str, Any] = about["parts"]
    return parts


def _check_part(name: str, saved: dict[str, Any], part: str, into: Any) -> None:
    """Before anything is changed."""
    kind = type(into).__name__
    if not hasattr(into, "load_state_dict"):
        hint = "values are returned, by name"
        _core._fail("type", f"load_checkpoint: {part} is a {kind}, which has no state", hint)
    if part not in saved:
        known = ", ".join(saved) or "nothing"
        _core._fail("value", f"load_checkpoint: {name} has no {part!r}; it has {known}")
    was = saved[part].get("kind") if isinstance(saved[part], dict) else None
    if was is None:
        text = f"load_checkpoint: {name}: {part!r} was saved as a value, not as a {kind}"
        _core._fail("value", text)
    if was != kind and not isinstance(into, tn.nn.Module):  # whose weights say what fits
        text = f"load_checkpoint: {name}: {part!r} was saved as a {was}, not as a {kind}"
        _core._fail("value", text)


# Values as JSON: tensors are named, and what JSON has not is an object with one field.


def _packed(value: Any, path: str, tensors: files.Tensors) -> Any:
    if value is None or isinstance(value, (bool, int, float, str)):
        return value
    if isinstance(value, list):
        return [_packed(v, f"{path}.{i}", tensors) for i, v in enumerate(value)]
    if isinstance(value, tuple):
        return {"tuple": _packed(list(value), path, tensors)}
    if isinstance(value, dict):
        for key in value:
            if not isinstance(key, str):
                _core._fail("type", f"save_checkpoint: {path}: a key must be a string: {key!r}")
        return {"dict": {k: _packed(v, f"{path}.{k}", tensors) for k, v in value.items()}}
    if isinstance(value, _core.Tensor) or hasattr(value, "__array__"):
        while path in tensors:  # `a.b` may be a key, and a `b` in `a`
            path += "'"
        tensors[path] = asarray(value)
        return {"tensor": path}
    if hasattr(value, "state_dict") and hasattr(value, "load_state_dict"):
        state = _packed(dict(value.state_dict()), path, tensors)
        return {"kind": type(value).__name__, "state": state}
    kind = type(value).__name__
    hint = "it takes tensors, numbers, texts, None, and objects with state_dict and load_state_dict"
    _core._fail("type", f"save_checkpoint: {path} is a {kind}, which cannot be saved", hint)


def _unpacked(value: Any, tensors: files.Tensors) -> Any:
    if isinstance(value, list):
        return [_unpacked(v, tensors) for v in value]
    if not isinstance(value, dict):
        return value
    if "tuple" in value:
        return tuple(_unpacked(value["tuple"], tensors))
    if "dict" in value:
        return {k: _unpacked(v, tensors) for k, v in value["dict"].items()}
    return tensors[value["tensor"]] if "tensor" in value else _unpacked(value["state"], tensors)


class Checkpoints:
    """The latest checkpoints of a training run, in a folder: `step-00000100.safetensors`.

    The oldest are removed when there are more than `keep`; None keeps all. `parts` and `every` are
    for `steps(total)`.

    The workers of a program save together: all call `save`, and the checkpoint is a folder
    `step-00000100`. `group` is the group of workers, by default all.

    Several other processes may save to one folder. Checkpoints appear atomically; if two processes
    save the same step, the last one wins. `keep` counts the checkpoints of all processes.

        >>> import tempfile
        >>> checkpoints = tn.Checkpoints(tempfile.mkdtemp(), keep=2)
        >>> model = tn.nn.Linear(2, 1)
        >>> checkpoints.load(model=model)  # there is none yet
        {}
        >>> for step in (10, 20, 30):
        ...     checkpoints.save(step, model=model)
        >>> checkpoints.steps()
        [20, 30]
        >>> checkpoints.load(model=model)
        {'step': 30}
    """

    _NAME = re.compile(r"step-(\d+)(\.safetensors)?")
    _LOCK = re.compile(r"\.step-(\d+)\.saving")
    _PART = re.compile(r"\.step-\d+\.safetensors\.[0-9a-f]{16}\.tnx-part")

    def __init__(
        self,
        folder: files.Path,
        keep: int | None = 3,
        *,
        every: int | None = None,
        group: distributed.Group | None = None,
        **parts: Any,
    ) -> None:
        self.folder = files.path_of("Checkpoints", folder)
        if keep is not None and (not isinstance(keep, int) or keep < 1):
            _core._fail("value", f"Checkpoints: keep is a number above 0, or None, not {keep!r}")
        self.keep = keep
        if every is not None and (not isinstance(every, int) or every < 1):
            _core._fail("value", f"Checkpoints: every is a number above 0, or None, not {every!r}")
        self.every = every
        self._group = group
        self._parts = parts

    def save(self, step: int, /, *, random: bool = True, **parts: Any) -> None:
        """Saves `parts` and `step` as the checkpoint of that step."""
        group = self._group or distributed.init()
        if group.size() > 1:
            return self._save_together(step, group, {"step": step, **parts}, random)
        file = self._file(step)
        folder = file.removesuffix(".safetensors")
        os.makedirs(self.folder, exist_ok=True)
        self._remove_unfinished()
        save_checkpoint(file, random=random, step=step, **parts)
        if os.path.isdir(folder):
            with worker_checkpoints.locked(self._lock(step)):
                worker_checkpoints.remove(folder)
        self._remove_old(step)

    def _save_together(
        self, step: int, group: distributed.Group, parts: dict[str, Any], random: bool
    ) -> None:
        """Each piece of work ends on all workers before the next: one that failed stops all."""
        file, together = self._file(step), worker_checkpoints.together
        with contextlib.ExitStack() as held:

            def prepare() -> tuple[files.Tensors, dict[str, Any]]:
                packed = _packed_parts(parts, random)
                os.makedirs(self.folder, exist_ok=True)
                if group.rank() == 0:
                    held.enter_context(worker_checkpoints.locked(self._lock(step)))
                    self._remove_unfinished()
                return packed

            def clean() -> None:
                if group.rank() == 0:
                    _remove(file)
                    self._remove_old(step)

            tensors, about = together("prepare the checkpoint", prepare, group)
            worker_checkpoints.save(file.removesuffix(".safetensors"), tensors, about, group)
            together("remove old checkpoints", clean, group)

    def _remove_old(self, step: int) -> None:
        if self.keep is not None:
            others = [other for other in self.steps() if other != step]
            for old in others[: max(0, len(others) + 1 - self.keep)]:
                _remove(self.path(old))

    def load(
        self,
        step: int | None = None,
        /,
        *,
        random: bool = True,
        verify: bool | None = None,
        **parts: Any,
    ) -> dict[str, Any]:
        """Loads the latest checkpoint, or that of `step`; returns {} if there is none."""
        while True:
            path = self.latest() if step is None else self.path(step)
            if path is None:
                return {}
            try:
                read = _read(path, verify, self._group)
            except files.MissingFile:  # another process saved a later one, and removed this one
                if step is not None or path == self.latest():
                    raise
                continue
            except _core.InvalidValue as error:
                earlier = [s for s in self.steps() if self.path(s) < path]
                text, _, rest = str(error).partition("\n")
                if step is not None or not earlier or "hint" in rest:
                    raise
                hint = f"the checkpoint before it: checkpoints.load({earlier[-1]}, ...)"
                _core._fail("value", text, hint)
            return _put(path, read, random, parts)

    @overload
    def steps(self) -> list[int]: ...
    @overload
    def steps(self, total: int) -> Iterator[int]: ...
    def steps(self, total: int | None = None) -> list[int] | Iterator[int]:
        """The steps that have a checkpoint, in order; with `total`, the steps of a training run.

        A run begins by loading the latest checkpoint into the parts of the constructor. It goes on
        with the step after it, and saves every `every` steps and at the end.

            >>> import tempfile
            >>> model = tn.nn.Linear(2, 1)
            >>> run = tn.Checkpoints(tempfile.mkdtemp(), model=model, every=2)
            >>> [step for step in run.steps(3)], run.steps(), [step for step in run.steps(5)]
            ([0, 1, 2], [2, 3], [3, 4])
        """
        if total is not None:
            return self._run(total)
        if not os.path.isdir(self.folder):
            return []
        found = [self._NAME.fullmatch(name) for name in os.listdir(self.folder)]
        return sorted({int(m[1]) for m in found if m and (m[2] or self._is_committed(m[0]))})

    def _run(self, total: int) -> Iterator[int]:
        first = self.load(**self._parts).get("step", 0)
        for step in range(first, total):
            yield step
            done = step + 1
            if done == total or (self.every is not None and done % self.every == 0):
                self.save(done, **self._parts)

    def _is_committed(self, name: str) -> bool:
        return worker_checkpoints.is_committed(os.path.join(self.folder, name))

    def latest(self) -> str | None:
        """The path of the checkpoint of the highest step, or None."""
        steps = self.steps()
        return self.path(steps[-1]) if steps else None

    def path(self, step: int) -> str:
        """Return the path of a step: a folder if several workers wrote it, else a file."""
        file = self._file(step)
        folder = file.removesuffix(".safetensors")
        return folder if worker_checkpoints.is_committed(folder) else file

    def _file(self, step: int) -> str:
        if isinstance(step, bool) or not isinstance(step, int) or step < 0:
            _core._fail("value", f"Checkpoints: a step must be 0 or more, not {step!r}")
        return os.path.join(self.folder, f"step-{step:08d}.safetensors")

    def _lock(self, step: int) -> str:
        """The file that the first of several workers holds a lock on while they save the step."""
        return os.path.join(self.folder, f".step-{step:08d}.saving")

    def _remove_unfinished(self) -> None:
        """Remove files of processes that were killed while saving. Live processes hold a lock."""
        for name in os.listdir(self.folder):
            path, match = os.path.join(self.folder, name), self._NAME.fullmatch(name)
            if (left := self._LOCK.fullmatch(name)) is not None:
                with worker_checkpoints.locked(self._lock(int(left[1])), wait=False):
                    continue  # which removes the file of a process that has ended
            if match is None or match[2] or self._is_committed(name):
                continue
            with worker_checkpoints.locked(self._lock(int(match[1])), wait=False) as is_ours:
                if is_ours and not self._is_committed(name):
                    worker_checkpoints.remove(path)
        for name in filter(self._PART.fullmatch, os.listdir(self.folder)):
            path = os.path.join(self.folder, name)
            try:
                with open(path, "rb") as part:
                    fcntl.flock(part, fcntl.LOCK_EX | fcntl.LOCK_NB)
                    os.remove(path)
            except OSError:
                continue


def _remove(path: str) -> None:
    if os.path.isdir(path):
        return worker_checkpoints.remove(path)
    with contextlib.suppress(FileNotFoundError):  # another process was first
        os.remove(path)
