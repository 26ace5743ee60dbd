"""Tensors in files: safetensors, and NumPy's npy and npz.

    >>> import tempfile
    >>> path = tempfile.mkdtemp() + "/weights.safetensors"
    >>> tn.save_safetensors(path, {"w": tn.ones(3)}, metadata={"made": "by hand"})
    >>> tn.load(path)
    {'w': tensor([1., 1., 1.], dtype=float32)}

Files are written atomically: a program that is stopped while saving leaves the old file. Loading
never runs code from a file. Safetensors and npz files that this library writes have a checksum of
all their bytes, which other libraries ignore and loading verifies.
"""

from __future__ import annotations

import contextlib
import io
import json
import math
import os
import re
import zipfile
import zlib
from collections.abc import Callable, Iterator, Mapping
from typing import IO, TYPE_CHECKING, Any, NamedTuple, TypeAlias

from . import _core
from .creation import asarray

if TYPE_CHECKING:
    import numpy as np

Path: TypeAlias = "str | bytes | os.PathLike[str] | os.PathLike[bytes]"
File: TypeAlias = "Path | IO[bytes]"
Tensors: TypeAlias = "dict[str, _core.Tensor]"


class MissingFile(_core.InvalidValue, FileNotFoundError):
    """No file has the name that was given."""


def path_of(what: str, path: Any) -> str:
    """`path` as the system names it; `what` is the function that was given it."""
    if not isinstance(path, (str, bytes, os.PathLike)):
        _core._fail("type", f"{what}: not a path: {path!r} ({type(path).__name__})")
    name = os.fsdecode(path)
    if not name:
        _core._fail("value", f"{what}: the path is empty")
    if "\0" in name:
        _core._fail("value", f"{what}: a path cannot contain zero bytes: {name!r}")
    try:
        os.fsencode(name)
    except UnicodeEncodeError:
        _core._fail("value", f"{what}: invalid file name: {name!r}")
    return name


@contextlib.contextmanager
def opening(name: str) -> Iterator[None]:
    """Says that a file is missing as Python does, if that is why it cannot be opened."""
    try:
        yield
    except _core.InvalidValue as error:
        if os.path.lexists(name):
            raise
        raise MissingFile(str(error)) from None


@contextlib.contextmanager
def writing(name: str) -> Iterator[None]:
    """Says that the folder of a file is missing as Python does."""
    try:
        yield
    except _core.InvalidValue as error:
        if os.path.isdir(os.path.dirname(name) or "."):
            raise
        raise MissingFile(str(error)) from None


# safetensors ----------------------------------------------------------------------------------


def save_safetensors(
    file: File, tensors: Mapping[str, Any], metadata: Mapping[str, str] | None = None
) -> None:
    """Writes named tensors and text metadata as a safetensors file, the format of the model hubs.

    `file` is a path or a binary file object. Some programs read from the metadata which library a
    file is for: `{"format": "pt"}` is PyTorch's.
    """
    named = tensors_by_name("save_safetensors", tensors)
    texts = dict(metadata or {})
    for text in [*texts.keys(), *texts.values()]:
        _check_text("save_safetensors: metadata", text)
    if hasattr(file, "write"):
        file.write(_core._safetensors_bytes(named, texts))
    else:
        name = path_of("save_safetensors", file)
        with writing(name):
            _core._save_safetensors(name, named, texts)


def load_safetensors(
    file: File,
    return_metadata: bool = False,
    verify: bool | None = None,
    *,
    device: _core.Device | str | None = None,
) -> Any:
    """The tensors of a file by name; with `return_metadata`, a pair with the metadata.

    The tensors are mapped from the file. Do not overwrite the file in place; saving under its name
    is safe, because it creates a new file. Files that this library wrote are read once, to verify
    their checksum. With `verify=False`, and for files of other libraries, a tensor is read when it
    is used. `verify=True` rejects files without a checksum.

    Tensors are on `device`, or on the default device. Only the CPU can share the file.
    """
    if hasattr(file, "read"):
        data = _content(file)
        with _core._DeviceContext(device):
            loaded = _core._parse_safetensors(data, _name_of(file), verify)
    else:
        name = path_of("load_safetensors", file)
        with opening(name), _core._DeviceContext(device):
            loaded = _core._load_safetensors(name, verify)
    tensors, metadata = loaded
    return (tensors, metadata) if return_metadata else tensors


def tensors_by_name(what: str, tensors: Mapping[str, Any]) -> Tensors:
    """Check that a mapping holds tensors by name, and convert them; `what` begins messages."""
    if not isinstance(tensors, Mapping):
        kind = type(tensors).__name__
        _core._fail("type", f"{what}: tensors by name are a dict, not {kind}")
    for name, tensor in tensors.items():
        _check_text(f"{what}: names", name)
        if isinstance(tensor, (Mapping, str, bytes)) or tensor is None:
            _core._fail("type", f"{what}: {name!r} is not a tensor but a {type(tensor).__name__}")
    return {name: asarray(tensor) for name, tensor in tensors.items()}


def _check_text(what: str, text: Any) -> None:
    if not isinstance(text, str):
        _core._fail("type", f"{what}: a string is needed, not {text!r} ({type(text).__name__})")
    try:
        text.encode()
    except UnicodeEncodeError:
        _core._fail("value", f"{what}: not valid UTF-8: {text!r}")


def _content(file: Any) -> bytes:
    data = file.read()
    if isinstance(data, str):
        _core._fail("type", f"load: {_name_of(file)} was opened as text", "open(path, 'rb')")
    return bytes(data)


def _name_of(file: Any) -> str:
    name = getattr(file, "name", None)
    return name if isinstance(name, str) else f"a {type(file).__name__}"


def load_shards(path: Path, verify: bool | None = None) -> Tensors:
    """The tensors of a checkpoint in several files, by its `model.safetensors.index.json`."""
    name = path_of("load", path)
    try:
        with open(name, encoding="utf-8") as file:
            weight_map = json.load(file)["weight_map"]
        shards: dict[str, list[str]] = {}
        for tensor, shard in weight_map.items():
            shards.setdefault(shard, []).append(tensor)
    except (ValueError, KeyError, TypeError, AttributeError, RecursionError):
        _core._fail("value", f"load: {name} is not a safetensors index: it has no weight_map")
    merged: Tensors = {}
    for shard, names in shards.items():
        if os.path.basename(str(shard)) != shard:  # it may not lead to other folders
            _core._fail("value", f"load: {name}: not the name of a file beside it: {shard!r}")
        tensors = load_safetensors(os.path.join(os.path.dirname(name), shard), verify=verify)
        for tensor in names:
            if tensor not in tensors:
                _core._fail("value", f"load: {shard} has no {tensor!r}, which {name} lists")
            merged[tensor] = tensors[tensor]
    return merged


_MOST_HEADER = 100_000_000  # bytes, as the format says

# npy and npz ----------------------------------------------------------------------------------

# Element types that NumPy has not, as it writes those of ml_dtypes: bytes without a meaning.
_RAW = {_core.bfloat16: ("V2", _core.uint16), _core.float8_e4m3: ("V1", _core.uint8)}


def save(file: File, tensor: Any) -> None:
    """Writes one tensor as a `.npy` file; the suffix is added to the path if it is missing.

    NumPy does not have bfloat16 and float8_e4m3 and reads them as raw bytes, `V2` and `V1`; `load`
    restores them.
    """
    if isinstance(file, dict) or isinstance(tensor, dict):
        hint = "several: save_safetensors(path, tensors), model.save_weights(path), or all of a"
        hint += " training run: save_checkpoint(path, model=model, optimizer=optimizer)"
        _core._fail("type", "save: takes a path and one tensor, not a dict", hint)
    array = _array_of("save", asarray(tensor))
    _write("save", file, ".npy", lambda out: _write_array(out, array))


def savez(file: File, /, *tensors: Any, **named: Any) -> None:
    """Writes tensors as an `.npz` file; positional ones are named `arr_0`, `arr_1` and so on.

        >>> import io
        >>> file = io.BytesIO()
        >>> tn.savez(file, tn.ones(2), bias=tn.zeros(1))
        >>> tn.load(io.BytesIO(file.getvalue()))
        {'arr_0': tensor([1., 1.], dtype=float32), 'bias': tensor([0.], dtype=float32)}
    """
    _save_zip("savez", file, tensors, named, zipfile.ZIP_STORED)


def savez_compressed(file: File, /, *tensors: Any, **named: Any) -> None:
    """`savez`, compressed."""
    _save_zip("savez_compressed", file, tensors, named, zipfile.ZIP_DEFLATED)


def _save_zip(
    what: str, file: File, tensors: tuple[Any, ...], named: dict[str, Any], method: int
) -> None:
    everything = {f"arr_{i}": tensor for i, tensor in enumerate(tensors)}
    for name in everything.keys() & named.keys():
        _core._fail("value", f"{what}: {name!r} is the name of a positional tensor")
    arrays = {n: _array_of(what, x) for n, x in tensors_by_name(what, everything | named).items()}
    _write(what, file, ".npz", lambda out: _write_zip(out, arrays, method))


# The comment at the end of our archives: a checksum of all bytes before its digits. Members have
# their own, which do not cover what stands around them. It is marked at both ends: a flipped bit
# in one mark is found.
_COMMENT = re.compile(rb"tenon\.crc32=([0-9a-f]{8})\.tenon")
_NO_SUM = b"tenon.crc32=00000000.tenon"
_BEFORE_DIGITS, _AFTER_DIGITS = b"tenon.crc32=", b".tenon"


class _Summed:
    """The output of an archive. Puts the checksum into the comment, which comes last."""

    def __init__(self, out: Any) -> None:
        self.out = out
        self.sum = 0
        self.has_members = False  # all of them: what follows is about them

    def write(self, data: Any) -> int:
        if self.has_members and data == _NO_SUM:
            self.sum = zlib.crc32(_BEFORE_DIGITS, self.sum)
            data = _BEFORE_DIGITS + b"%08x" % self.sum + _AFTER_DIGITS
        self.sum = zlib.crc32(data, self.sum)
        self.out.write(data)
        return len(data)

    def flush(self) -> None:
        pass


def _write_zip(out: Any, arrays: dict[str, np.ndarray], method: int) -> None:
    summed = _Summed(out)
    target: Any = summed  # it has what an archive needs of a file
    with zipfile.ZipFile(target, "w", method) as archive:
        archive.comment = _NO_SUM
        for name, array in arrays.items():
            info = zipfile.ZipInfo(f"{name}.npy")  # without the time: the same file every time
            info.compress_type = method
            with archive.open(info, "w", force_zip64=True) as member:
                _write_array(member, array)
        summed.has_members = True


def _write(what: str, file: Any, ending: str, write: Callable[[Any], None]) -> None:
    """Calls `write` with the file that was given, or a new one that appears when it is done."""
    if hasattr(file, "write"):
        write(file)
        return
    name = path_of(what, file)
    with writing(name):
        part = _core._AtomicFile(name if name.endswith(ending) else name + ending)
    try:
        write(part)
        part.commit()
    finally:
        part.close()


def _array_of(what: str, tensor: _core.Tensor) -> np.ndarray:
    if tensor.dtype in _RAW:
        name, bits = _RAW[tensor.dtype]
        raw: np.ndarray = _core.bitcast(tensor, bits).numpy()
        return raw.view(name)
    if tensor.dtype == _core.float8_e5m2:
        _core._fail("value", f"{what}: NumPy has no float8_e5m2", "save_safetensors has")
    array: np.ndarray = tensor.numpy()
    return array


def _write_array(out: Any, array: np.ndarray) -> None:
    import numpy as np

    np.lib.format.write_array(out, array, allow_pickle=False)


def _check_elements(dtype: np.dtype) -> None:
    if dtype.hasobject:
        raise ValueError("Object arrays cannot be loaded: they are pickles, which can run code")
    if dtype.kind not in "biufcV":
        raise ValueError(f"elements of type {dtype} have no tensors")


def _tensor_of(array: np.ndarray) -> _core.Tensor:
    """Shares the memory of an array without other holders, if elements stand where they should."""
    _check_elements(array.dtype)
    array.setflags(write=False)
    raw = {name: (dtype, bits) for dtype, (name, bits) in _RAW.items()}
    found = raw.get(array.dtype.str.lstrip("|"))
    if found:
        dtype, bits = found
        return _core.bitcast(asarray(array.view(bits.name)), dtype)
    if not array.dtype.isnative:
        array = array.astype(array.dtype.newbyteorder("="))
    if array.dtype == bool and array.size and array.view("u1").max() > 1:
        raise ValueError("boolean elements other than 0 and 1")
    return asarray(array)


def _read_array(name: str, file: Any, size: int = 0, called: str = "") -> _core.Tensor:
    """Read an array from an open file of at most `size` bytes, or map it from the path `name`."""
    import numpy as np

    with _Reading(name, called):
        if file is not None:
            return _tensor_of(_read_elements(file, size))
        return _tensor_of(np.load(name, mmap_mode="r", allow_pickle=False))


def _read_elements(file: Any, size: int) -> np.ndarray:
    """Read an array as NumPy does, but allocate nothing that `size` bytes cannot fill."""
    import numpy as np
    from numpy.lib import format as npy

    version = npy.read_magic(file)
    if version not in ((1, 0), (2, 0), (3, 0)):
        raise ValueError(f"version {version[0]}.{version[1]} of the format")
    read = npy.read_array_header_1_0 if version == (1, 0) else npy.read_array_header_2_0
    shape, columns_first, dtype = read(file)
    _check_elements(dtype)
    count = math.prod(shape)
    if count * dtype.itemsize > size:
        raise ValueError(f"{count} elements of {dtype.itemsize} bytes in {size} bytes")
    array = np.empty(count, dtype)
    rest = memoryview(array.view(np.uint8).data) if array.nbytes else memoryview(b"")
    while len(rest):
        got = file.readinto(rest[:_STEP])
        if not got:
            raise ValueError(f"it is cut off: {len(rest)} bytes are missing")
        rest = rest[got:]
    return array.reshape(shape, order="F" if columns_first else "C")


class _Reading:
    """NumPy and zipfile raise errors of many kinds for what is in a damaged file.

    A class, so that no frame of contextlib stands for the user's place.
    """

    def __init__(self, name: str, called: str = "") -> None:
        self.inside = f"{name}: {called!r}" if called else name

    def __enter__(self) -> None:
        pass

    def __exit__(self, kind: object, error: BaseException | None, trace: object) -> None:
        if isinstance(error, Exception) and not isinstance(error, (_core.Error, MemoryError)):
            is_cut = str(error).startswith(("EOF: ", "mmap length is greater"))
            why = "it is cut off" if is_cut else error
            _core._fail("value", f"load: cannot read {self.inside}: {why}")


_STEP = 1 << 20  # bytes that are read at a time
_MOST_INFLATED = 1 << 30  # bytes, of a small file
_MOST_RATIO = 100


def _read_zip(name: str, data: bytes | None, options: _Options) -> Tensors:
    tensors: Tensors = {}
    with _Reading(name), open(name, "rb") if data is None else io.BytesIO(data) as opened:
        archive = zipfile.ZipFile(opened)
        if options.verify is not False:
            _verify_zip(name, opened, archive.comment)
        members = archive.infolist()
        _check_count(name, opened, len(members))
        if any(os.path.basename(member.filename) == "data.pkl" for member in members):
            _fail_pickled(name)
        _check_inflated(name, members, opened.seek(0, os.SEEK_END), options.max_bytes)
        for member in members:
            called = member.filename.removesuffix(".npy")
            if called in tensors:
                _core._fail("value", f"load: {name} is damaged: it has {called!r} twice")
            with _Reading(name, called), archive.open(member) as elements:
                tensors[called] = _read_array(name, elements, member.file_size, called)
                if elements.read(1):
                    raise ValueError("there are bytes after its elements")
    return tensors


def _verify_zip(name: str, opened: Any, comment: bytes) -> None:
    """Compares the checksum of our archives. Members of all archives have one each."""
    if not comment.startswith(b"tenon.") and not comment.endswith(b".tenon"):
        return
    found = _COMMENT.fullmatch(comment)
    end = opened.seek(0, os.SEEK_END) - len(_NO_SUM) + len(_BEFORE_DIGITS)
    opened.seek(0)
    summed = 0
    while end > 0 and (part := opened.read(min(end, _STEP))):
        summed = zlib.crc32(part, summed)
        end -= len(part)
    if found is None or int(found[1], 16) != summed:
        message = f"load: {name} is damaged: its checksum does not match"
        _core._fail("value", message, _core._checksum_hint)


def _check_count(name: str, opened: Any, members: int) -> None:
    """A flipped bit in the length of an entry of the directory hides the entry behind it."""
    opened.seek(max(0, opened.seek(0, os.SEEK_END) - 22 - 0xFFFF))  # with the longest comment
    tail = opened.read()
    end = tail.rfind(b"PK\5\6")
    count = int.from_bytes(tail[end + 10 : end + 12], "little")
    if count != min(members, 0xFFFF):  # where there are more, another record counts them
        _core._fail("value", f"load: {name} is damaged: it has {members} members, not {count}")


def _check_inflated(
    name: str, members: list[zipfile.ZipInfo], size: int, max_bytes: int | None
) -> None:
    """A small file that says that it inflates to much is refused before anything is inflated."""
    inflated = sum(member.file_size for member in members)
    most = max(_MOST_INFLATED, _MOST_RATIO * size) if max_bytes is None else max_bytes
    if inflated > most:
        what = f"load: {name} inflates from {size} to {inflated} bytes, and {most} is the most"
        _core._fail("value", what, f"load(..., max_bytes={inflated}) if you trust it")


# Any of them ----------------------------------------------------------------------------------


class _Options(NamedTuple):
    """Options for reading a file; see `load`."""

    verify: bool | None = None
    max_bytes: int | None = None


def load(
    file: File,
    return_metadata: bool = False,
    verify: bool | None = None,
    max_bytes: int | None = None,
    *,
    device: _core.Device | str | None = None,
) -> Any:
    """Loads a file: the tensor of a `.npy`, the named tensors of an `.npz` or `.safetensors` file,
    or the executable of a `.tnx` file. The format is detected from the content.

    A checkpoint in several files is loaded by its index (`model.safetensors.index.json`) or by its
    folder. With `return_metadata`, the result is a pair with the metadata of a safetensors file,
    which is empty for other formats.

    Checksums are verified in files that have them: those that this library wrote, except `.npy`,
    and all `.npz` files, whose arrays have a CRC-32 each. `verify=False` skips this where it would
    read the file only for its checksum; `verify=True` rejects files without a checksum. A
    compressed `.npz` may expand to at most `max_bytes`; by default to 100 times its size or 1 GiB,
    whichever is larger.

    Tensors are on `device`, or on the default device. Executables have no device.
    """
    options = _Options(verify, max_bytes)
    with _core._DeviceContext(device):
        if hasattr(file, "read"):
            data = _content(file)
            loaded = _load(_name_of(file), data[:8], data, options)
        else:
            name = path_of("load", file)
            if os.path.isdir(name):
                name = _model_in(name)
            loaded = _load(name, _head(name), None, options)
    tensors, metadata = loaded
    return (tensors, metadata) if return_metadata else tensors


def _load(
    name: str, head: bytes, data: bytes | None, options: _Options
) -> tuple[Any, dict[str, str]]:
    """Load from `data`, or from the file `name` without it; `head` holds the first bytes."""
    # A small number begins a safetensors file, also where its bytes read like something else.
    sized = len(head) == 8 and int.from_bytes(head, "little") <= _MOST_HEADER
    if not sized and head.startswith(b"\x93NUMPY"):
        if options.verify:
            hint = "savez and save_safetensors write files with one"
            _core._fail("value", f"load: {name} has no checksum to verify: it is an npy file", hint)
        return _read_array(name, data and io.BytesIO(data), len(data or b"")), {}
    if not sized and head.startswith((b"PK\3\4", b"PK\5\6")):
        return _read_zip(name, data, options), {}
    if not sized and head.startswith((b"\x80\2", b"\x80\3", b"\x80\4", b"\x80\5")):
        _fail_pickled(name)
    if not sized and data is None and head.lstrip().startswith(b"{"):
        return load_shards(name, options.verify), {}
    if data is None and head.startswith(b"TENONX"):
        from .executables import Executable

        return Executable.load(name, verify=options.verify), {}
    if data is not None:
        return _core._parse_safetensors(data, name, options.verify)
    loaded: tuple[Any, dict[str, str]]
    loaded = load_safetensors(name, return_metadata=True, verify=options.verify)
    return loaded


def _head(name: str) -> bytes:
    """The first bytes; none of a file that cannot be read, which is an error when it is opened."""
    try:
        if os.path.isfile(name):  # a FIFO would be waited for
            with open(name, "rb") as file:
                return file.read(8)
    except OSError:
        pass
    return b""


def _model_in(folder: str) -> str:
    names = ("model.safetensors.index.json", "model.safetensors")
    for name in names:
        if os.path.exists(os.path.join(folder, name)):
            return os.path.join(folder, name)
    _core._fail("value", f"load: {folder} is a directory without {' or '.join(names)}")


def _fail_pickled(name: str) -> None:
    convert = "safetensors.torch.save_file(torch.load(file, weights_only=True), new)"
    hint = f"convert it once, where PyTorch is installed: {convert}"
    _core._fail("value", f"load: {name} is a pickle of PyTorch, which can run code", hint)
