"""Checkpoints that several workers write together: a folder with a file of each, and an index.

Replicas deal the tensors out: each is in the file of one worker. A tensor that differs between the
workers is in the files of all. `index.json` says where everything is; it appears by a rename when
all files are on the disk, and that is the commit: what has no index does not count.

    {"version": 2, "workers": 4, "files": [...], "parts": ..., "tensors": {
        "model.weight": {"shape": [8, 4], "dtype": "float32", "boxes": [[0, [0, 0], [8, 4]]]},
        "model.mask": {"each": true}}}

A box is the number of a file, the place of the box in the tensor, and its extents.
"""

from __future__ import annotations

import contextlib
import fcntl
import json
import os
import shutil
import zlib
from collections.abc import Callable, Iterator
from typing import Any, TypeVar

import tenon as tn

from . import _core, distributed, files

INDEX = "index.json"

R = TypeVar("R")


def save(
    folder: str, tensors: files.Tensors, about: dict[str, Any], group: distributed.Group
) -> None:
    """Writes a checkpoint with all workers of the group, which all call it."""
    rank, size = group.rank(), group.size()
    tensors = {name: _whole(name, x, group) for name, x in tensors.items()}
    replicated = _compared(tensors, group)
    token = _token(group)
    names = [f"worker-{k}-of-{size}.{token}.safetensors" for k in range(size)]
    dealt = _dealt({name: tensors[name] for name in replicated}, size)
    own = {
        name: x for name, x in tensors.items() if name not in replicated or dealt[name] == rank
    }

    def write() -> None:
        os.makedirs(folder, exist_ok=True)
        files.save_safetensors(os.path.join(folder, names[rank]), own)

    def commit() -> None:
        listed: dict[str, Any] = {}
        for name, x in tensors.items():
            box = [dealt.get(name, 0), [0] * x.ndim, list(x.shape)]
            whole = {"shape": list(x.shape), "dtype": str(x.dtype), "boxes": [box]}
            listed[name] = whole if name in replicated else {"each": True}
        index = {"version": 2, "workers": size, "files": names, "parts": about, "tensors": listed}
        _write_index(folder, json.dumps(index), token)
        _remove_others(folder, names)

    together("write its part", write, group)
    together("commit", commit if rank == 0 else lambda: None, group)


def together(what: str, work: Callable[[], R], group: distributed.Group) -> R:
    """Does the work and returns what it returns; fails on all workers if it fails on one."""
    error: Exception | None = None
    try:
        result = work()
    except Exception as failed:
        error = failed
    flags = distributed.all_gather(_on_host([0 if error else 1]), group).tolist()
    if error:
        raise error
    if 0 in flags:
        _core._fail("value", f"save_checkpoint: worker {flags.index(0)} could not {what}")
    return result


@contextlib.contextmanager
def locked(path: str, wait: bool = True) -> Iterator[bool]:
    """Holds the lock of a save, which is a file; yields False if another holds it and `wait` is
    False. The system releases the locks of a process that ends.
    """
    how = fcntl.LOCK_EX if wait else fcntl.LOCK_EX | fcntl.LOCK_NB
    while True:
        file = os.open(path, os.O_RDWR | os.O_CREAT | os.O_CLOEXEC, 0o644)
        try:
            fcntl.flock(file, how)
            if os.path.samestat(os.fstat(file), os.stat(path)):
                break
            os.close(file)
        except FileNotFoundError:  # the last holder removed it
            os.close(file)
        except BlockingIOError:
            os.close(file)
            yield False
            return
    try:
        yield True
    finally:
        with contextlib.suppress(OSError):
            os.remove(path)
        os.close(file)


def read(
    folder: str, verify: bool | None, group: distributed.Group | None = None
) -> tuple[files.Tensors, dict[str, Any]]:
    """The tensors and parts of a checkpoint, as this worker of the group needs them."""
    name = os.path.join(folder, INDEX)
    with files.opening(name), open(name, encoding="utf-8") as opened:
        text = opened.read()
    try:
        index = json.loads(text)
        version, workers, parts = index["version"], index["workers"], index["parts"]
        listed, names = index["tensors"], [str(file) for file in index["files"]]
    except (ValueError, LookupError, TypeError) as error:
        _core._fail("value", f"load_checkpoint: {name} is damaged: {error!r}")
    if version != 2:
        hint = "load it with a newer tenon"
        _core._fail("value", f"load_checkpoint: {name} has version {version}", hint)
    held: list[files.Tensors] = []
    for file in names:
        path = os.path.join(folder, os.path.basename(file))
        with files.opening(path):
            held.append(_core._load_safetensors(path, verify)[0])
    tensors: files.Tensors = {}
    try:
        for tensor, where in listed.items():
            if where.get("each"):
                own = _own_file(folder, tensor, workers, group or distributed.init())
                tensors[tensor] = held[own][tensor]
            else:
                tensors[tensor] = _joined(tensor, where, held)
    except (LookupError, TypeError, AttributeError) as error:
        _core._fail("value", f"load_checkpoint: {name} is damaged: {error!r}")
    return tensors, parts


def is_committed(folder: str) -> bool:
    return os.path.exists(os.path.join(folder, INDEX))


def remove(folder: str) -> None:
    """Removes a checkpoint; it does not count any more from the first moment on."""
    with contextlib.suppress(FileNotFoundError, NotADirectoryError):
        os.remove(os.path.join(folder, INDEX))
    shutil.rmtree(folder, ignore_errors=True)


def _joined(name: str, where: dict[str, Any], held: list[files.Tensors]) -> tn.Tensor:
    """A tensor from the boxes that hold its parts."""
    shape, boxes = tuple(where["shape"]), where["boxes"]
    if len(boxes) == 1 and tuple(boxes[0][2]) == shape:
        only: int = boxes[0][0]
        return held[only][name]
    whole: tn.Tensor = _core.zeros(shape, dtype=where["dtype"], device="cpu")
    for file, start, extent in boxes:
        at = tuple(slice(a, a + n) for a, n in zip(start, extent, strict=True))
        whole[at] = held[file][name]
    return whole


def _own_file(folder: str, name: str, workers: int, group: distributed.Group) -> int:
    if group.size() != workers:
        text = f"load_checkpoint: {folder}: {name} differs between the {workers} workers that"
        _core._fail("value", f"{text} saved it; it cannot be loaded by {group.size()}")
    return group.rank()


def _whole(name: str, x: tn.Tensor, group: distributed.Group) -> tn.Tensor:
    """A tensor of a mesh over processes, gathered."""
    if x.device.kind != "mesh":
        return x
    if group.size() != distributed.init().size():
        text = f"save_checkpoint: {name} lies on a mesh, whose workers must all save it"
        _core._fail("value", text, "leave out group=")
    return distributed.gather(x)


def _on_host(numbers: Any) -> tn.Tensor:
    """Collectives by hand are not for tensors of a mesh, on which new ones may lie."""
    return tn.array(numbers, dtype=tn.int64, device="cpu")


def _compared(tensors: files.Tensors, group: distributed.Group) -> set[str]:
    """The names of tensors that are equal on all workers."""
    about = [(name, list(x.shape), str(x.dtype)) for name, x in tensors.items()]
    described = zlib.crc32(json.dumps(about).encode())
    all_described = distributed.all_gather(_on_host([described]), group).tolist()
    if len(set(all_described)) > 1:
        other = next(k for k, d in enumerate(all_described) if d != all_described[0])
        text = f"save_checkpoint: workers 0 and {other} save tensors of different names or shapes"
        _core._fail("value", text)
    sums = [zlib.crc32(_bytes_of(x)) for x in tensors.values()]
    table = distributed.all_gather(_on_host([sums]), group).tolist()
    return {name for k, name in enumerate(tensors) if len({row[k] for row in table}) == 1}


def _bytes_of(x: tn.Tensor) -> memoryview:
    bits = {1: tn.uint8, 2: tn.uint16, 4: tn.uint32, 8: tn.uint64}.get(x.itemsize)
    plain = tn.bitcast(x, bits) if bits is not None and x.dtype != tn.bool else x
    return memoryview(plain.numpy().reshape(-1)).cast("B") if x.size else memoryview(b"")


def _dealt(tensors: files.Tensors, size: int) -> dict[str, int]:
    """The worker that writes each tensor: the largest first, to the one with the least to write."""
    load, to = [0] * size, {}
    for name in sorted(tensors, key=lambda name: (-tensors[name].nbytes, name)):
        to[name] = min(range(size), key=lambda k: (load[k], k))
        load[to[name]] += tensors[name].nbytes
    return to


def _token(group: distributed.Group) -> str:
    """Equal on all workers, so that files of another attempt are not overwritten."""
    own = int.from_bytes(os.urandom(4), "little")
    return f"{int(distributed.broadcast(_on_host(own), 0, group).item()):08x}"


def _write_index(folder: str, text: str, token: str) -> None:
    part = os.path.join(folder, f".{INDEX}.{token}.tnx-part")
    with open(part, "w", encoding="utf-8") as file:
        file.write(text)
        file.flush()
        os.fsync(file.fileno())
    os.replace(part, os.path.join(folder, INDEX))
    for path in (folder, os.path.dirname(os.path.abspath(folder))):
        opened = os.open(path, os.O_RDONLY)
        try:
            os.fsync(opened)
        finally:
            os.close(opened)


def _remove_others(folder: str, names: list[str]) -> None:
    """Remove files that earlier attempts left."""
    for name in os.listdir(folder):
        if name != INDEX and name not in names:
            with contextlib.suppress(OSError):
                os.remove(os.path.join(folder, name))
