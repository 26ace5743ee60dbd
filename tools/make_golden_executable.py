#!/usr/bin/env python3
"""Makes the golden file of the format that this build writes, with what it computes.

    .venv/bin/python tools/make_golden_executable.py    # tests/data/executable-1.0.{tnx,json}

Run it once for each version of the format, when it is released. A golden file is never made again:
every later version of the library must load it and give these values.
"""
import json
import os
import pathlib
import struct
import sys
import tempfile

import tenon as tn

DATA = pathlib.Path(__file__).resolve().parent.parent / "tests/data"
SIZES = (1, 2, 5, 16)
# Made here, not while the function is traced: then they are constants in the file. The large one is
# there only as products read it, in an order that must stay readable.
FIRST = (tn.arange(4 * 1024, dtype=tn.float32).reshape(4, 1024) % 61 - 30) / 64
SECOND = (tn.arange(512 * 33, dtype=tn.float32).reshape(512, 33) % 53 - 26) / 64
BIAS = tn.arange(33, dtype=tn.float32) / 16


def gated(x):
    """GEGLU with fixed weights, and a sum over the size that varies."""
    left, right = tn.split(x @ FIRST, 2, axis=-1)
    return left * tn.gelu(right) @ SECOND + BIAS, tn.sum(x, axis=0)



def argument(rows):
    return (tn.arange(rows * 4, dtype=tn.float32).reshape(rows, 4) % 7 - 3) / 4


def main():
    os.environ["XDG_DATA_HOME"] = "/proc"  # no key can be there, so the file has no seal
    batch = tn.NamedDimension("batch", 1, 2, 16)
    executable = tn.compile(gated, args=[tn.InputInfo((batch, 4), tn.float32)])
    with tempfile.TemporaryDirectory() as folder:
        path = pathlib.Path(folder) / "f.tnx"
        executable.save(path, targets=["x86-64-v3", "x86-64-v4"], debug=False)
        content = path.read_bytes()
    name = "executable-{}.{}".format(*struct.unpack_from("<HH", content, 8))
    if (DATA / f"{name}.tnx").exists():
        sys.exit(f"make_golden_executable: {name}.tnx is there already, and stays as it is")
    cases = [
        {"x": argument(rows).tolist(), "results": [y.tolist() for y in executable(argument(rows))]}
        for rows in SIZES
    ]
    (DATA / f"{name}.tnx").write_bytes(content)
    (DATA / f"{name}.json").write_text(json.dumps(cases) + "\n")
    print(f"{name}.tnx: {len(content)} bytes")


if __name__ == "__main__":
    main()
