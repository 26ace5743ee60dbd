"""libtenon_rt by its C interface, without the module."""
import ctypes
import pathlib

import numpy as np

DTYPES = {"bool": 0, "int8": 1, "int16": 2, "int32": 3, "int64": 4, "uint8": 5, "uint16": 6}
DTYPES |= {"uint32": 7, "uint64": 8, "float16": 11, "float32": 13, "float64": 14}
DTYPES |= {"complex64": 15, "complex128": 16}
TRUST = 1


class Tensor(ctypes.Structure):
    _fields_ = [
        ("dtype", ctypes.c_int),
        ("rank", ctypes.c_int32),
        ("shape", ctypes.POINTER(ctypes.c_int64)),
        ("data", ctypes.c_void_p),
        ("owner", ctypes.c_void_p),
        ("device", ctypes.c_int32),
    ]


class Size(ctypes.Structure):
    _fields_ = [(n, ctypes.c_int64) for n in ("min", "opt", "max")] + [("name", ctypes.c_char_p)]


class Input(ctypes.Structure):
    _fields_ = [
        ("name", ctypes.c_char_p),
        ("dtype", ctypes.c_int),
        ("rank", ctypes.c_int32),
        ("sizes", ctypes.POINTER(Size)),
        ("is_size", ctypes.c_int32),
    ]


class Failure(Exception):
    pass


def open_library(path):
    lib = ctypes.CDLL(str(path))
    lib.tenon_rt_load.restype = ctypes.c_void_p
    lib.tenon_rt_load.argtypes = [ctypes.c_char_p, ctypes.c_uint32]
    lib.tenon_rt_load_on.restype = ctypes.c_void_p
    lib.tenon_rt_load_on.argtypes = [ctypes.c_char_p, ctypes.c_uint32, ctypes.c_char_p]
    lib.tenon_rt_close.argtypes = [ctypes.c_void_p]
    lib.tenon_rt_inputs.restype = lib.tenon_rt_outputs.restype = ctypes.c_size_t
    lib.tenon_rt_inputs.argtypes = lib.tenon_rt_outputs.argtypes = [ctypes.c_void_p]
    lib.tenon_rt_input_at.restype = ctypes.POINTER(Input)
    lib.tenon_rt_input_at.argtypes = [ctypes.c_void_p, ctypes.c_size_t]
    lib.tenon_rt_target.argtypes = lib.tenon_rt_device.argtypes = [ctypes.c_void_p]
    tensors = ctypes.POINTER(Tensor)
    lib.tenon_rt_run.argtypes = [
        ctypes.c_void_p, tensors, ctypes.c_size_t, tensors, ctypes.c_size_t
    ]  # fmt: skip
    lib.tenon_rt_run_on_device.argtypes = [*lib.tenon_rt_run.argtypes, ctypes.c_void_p]
    lib.tenon_rt_to_device.argtypes = [ctypes.c_void_p, tensors, tensors]
    lib.tenon_rt_read.argtypes = [tensors, ctypes.c_void_p]
    lib.tenon_rt_release.argtypes = [tensors]
    for name in ("target", "device", "error", "version"):
        getattr(lib, f"tenon_rt_{name}").restype = ctypes.c_char_p
    return lib


def tensor(x):
    """A NumPy array as the interface takes it; it must outlive the call."""
    shape = (ctypes.c_int64 * max(x.ndim, 1))(*x.shape)
    return Tensor(DTYPES[x.dtype.name], x.ndim, shape, x.ctypes.data, None, 0)


class Executable:
    def __init__(self, library, path, trust=True, flags=0, device="cpu"):
        self.lib = library
        self.f = None
        flags |= TRUST if trust else 0
        self.f = library.tenon_rt_load_on(str(pathlib.Path(path)).encode(), flags, device.encode())
        if not self.f:
            raise Failure(library.tenon_rt_error().decode())

    def __del__(self):
        if self.f:
            self.lib.tenon_rt_close(self.f)

    @property
    def target(self):
        return self.lib.tenon_rt_target(self.f).decode()

    @property
    def device(self):
        return self.lib.tenon_rt_device(self.f).decode()

    def inputs(self):
        return [self.lib.tenon_rt_input_at(self.f, i)[0] for i in range(self.input_count())]

    def input_count(self):
        return self.lib.tenon_rt_inputs(self.f)

    def __call__(self, *arrays):
        """Results as NumPy arrays. Sizes are given as integers."""
        arrays = [np.ascontiguousarray(a) if np.ndim(a) else np.asarray(a) for a in arrays]
        return self.run([tensor(a) for a in arrays])

    def run(self, given, room=None):
        room = self.lib.tenon_rt_outputs(self.f) if room is None else room
        out = (Tensor * max(room, 1))()
        inputs = (Tensor * max(len(given), 1))(*given)
        self.check(self.lib.tenon_rt_run(self.f, inputs, len(given), out, room))
        names = {number: name for name, number in DTYPES.items()}
        results = []
        for y in out[:room]:
            shape = tuple(y.shape[k] for k in range(y.rank))
            kind = np.dtype(names[y.dtype])
            bytes_ = ctypes.string_at(y.data, int(np.prod(shape, dtype=int)) * kind.itemsize)
            results.append(np.frombuffer(bytes_, kind).reshape(shape))
            self.lib.tenon_rt_release(ctypes.byref(y))
        return results

    def on_device(self, *given, stream=None):
        """Results as tensors of the interface, for tensors of the interface."""
        out = (Tensor * self.lib.tenon_rt_outputs(self.f))()
        inputs = (Tensor * len(given))(*given)
        call = (self.f, inputs, len(given), out, len(out), stream)
        self.check(self.lib.tenon_rt_run_on_device(*call))
        return list(out)

    def to_device(self, given):
        copy = Tensor()
        self.check(self.lib.tenon_rt_to_device(self.f, given, copy))
        return copy

    def read(self, result):
        names = {number: name for name, number in DTYPES.items()}
        made = np.empty([result.shape[k] for k in range(result.rank)], names[result.dtype])
        self.check(self.lib.tenon_rt_read(result, made.ctypes.data))
        return made

    def check(self, code):
        if code:
            raise Failure(self.lib.tenon_rt_error().decode())
