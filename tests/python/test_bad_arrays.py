"""Damaged files of arrays: an error of the library, whatever was damaged, or a tensor.

TENON_FUZZ=100000 tries that many of each kind.
"""

import io
import os
import random
import zipfile

import numpy as np
import pytest

import tenon as tn

COUNT = int(os.environ.get("TENON_FUZZ", "400"))


def written(save, *args, **named):
    file = io.BytesIO()
    save(file, *args, **named)
    return file.getvalue()


X = tn.array(np.arange(6, dtype=np.float32).reshape(2, 3))
KINDS = {
    "npy": [
        written(tn.save, X),
        written(tn.save, X.astype(tn.bfloat16)),
        written(np.save, np.asfortranarray(X.numpy().astype(">f8"))),
        written(np.save, np.zeros((0, 4), np.int8)),
    ],
    "npz": [
        written(tn.savez, X, bias=tn.zeros(1)),
        written(tn.savez_compressed, X, bias=tn.zeros((50, 50))),
        written(np.savez),
    ],
    "safetensors": [written(tn.save_safetensors, {"w": X, "b": tn.zeros(0)}, {"made": "here"})],
}
#: What stands in such files, and what means something else in its place.
WORDS = [b"'shape'", b"'descr'", b"(2, 3)", b"(1,)*9", b"(-1,)", b"True", b"<f4", b"|O", b"|V9999",
         b"4294967296", b"9" * 30, b"[" * 300, b"{", b"PK\1\2", b"PK\5\6", b"\0\0\0\0", b"\xff" * 8]


def damaged(data, source):
    """Changed in one to four places, or cut."""
    data = bytearray(data)
    for _ in range(source.choice((1, 1, 1, 2, 4))):
        at = source.randrange(len(data) + 1)
        what = source.randrange(6)
        if what == 0:
            del data[at:]
        elif what == 1:
            del data[at : at + source.randrange(1, 20)]
        elif what == 2:
            data[at:at] = source.choice(WORDS)
        elif what == 3:
            word = source.choice(WORDS)
            data[at : at + len(word)] = word
        elif what == 4:
            data[at : at + 1] = bytes([source.randrange(256)])
        elif at < len(data):
            data[at] ^= 1 << source.randrange(8)
        data = data or bytearray(b"\0")
    return bytes(data)


def test_bytes_after_the_elements():
    file = io.BytesIO()
    with zipfile.ZipFile(file, "w") as archive:
        archive.writestr("x.npy", written(tn.save, X) + b"more")
    file.seek(0)
    with pytest.raises(ValueError, match="cannot read .*'x': there are bytes after its elements"):
        tn.load(file)


def test_a_header_that_is_too_long():
    with pytest.raises(ValueError, match="header has 1000.* bytes, the maximum is 100000000"):
        tn.save_safetensors(io.BytesIO(), {"x": X}, {"key": "x" * 100_000_001})


@pytest.mark.filterwarnings("error")
@pytest.mark.parametrize("kind", KINDS)
def test_damaged_files_are_errors(kind):
    read = 0
    for seed in range(COUNT):
        source = random.Random(f"{kind} {seed}")
        data = damaged(source.choice(KINDS[kind]), source)
        try:
            loaded = tn.load(io.BytesIO(data))
            for tensor in loaded.values() if isinstance(loaded, dict) else [loaded]:
                tensor.numpy().tobytes()
            read += 1
        except (tn.Error, MemoryError):
            pass
        except BaseException as error:
            pytest.fail(f"seed {seed}: {type(error).__name__}: {error}: {data[:400]!r}")
    assert read < COUNT  # most were damaged where it shows
