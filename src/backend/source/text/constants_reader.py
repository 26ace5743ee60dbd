"""Reads the constants of a written file. What is in braces is filled in by python_source.cpp."""
import json
from pathlib import Path

import numpy as np

convert = file = NotImplemented


def _read_constants(path):
    """The tensors of a safetensors file, by name."""
    types = {
        "BOOL": "?", "I8": "i1", "I16": "<i2", "I32": "<i4", "I64": "<i8", "U8": "u1",
        "U16": "<u2", "U32": "<u4", "U64": "<u8", "F16": "<f2", "F32": "<f4", "F64": "<f8",
    }
    data = path.read_bytes()
    start = 8 + int.from_bytes(data[:8], "little")
    header = json.loads(data[8:start])
    header.pop("__metadata__", None)
    tensors = {}
    for name, entry in header.items():
        first, end = entry["data_offsets"]
        values = np.frombuffer(data[start + first : start + end], types[entry["dtype"]])
        tensors[name] = {convert}(values.reshape(entry["shape"]))
    return tensors


_constants = _read_constants(Path(__file__).with_name({file}))
