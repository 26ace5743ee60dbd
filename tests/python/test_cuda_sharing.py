"""GPUs beside other libraries, and files for GPUs, by a mock of the driver."""

import ctypes

import pytest

from processes import run_on_mock as run

pytestmark = pytest.mark.host  # each program chooses its device


class Lender:
    """Another library, whose memory is that of a tensor."""

    def __init__(self, x):
        self.x, self.asked = x, []

    def __dlpack__(self, **options):
        self.asked.append(options)
        return self.x.__dlpack__(**options)

    def __dlpack_device__(self):
        return self.x.__dlpack_device__()


class _Tensor(ctypes.Structure):
    _fields_ = [
        ("data", ctypes.c_void_p),
        ("device_type", ctypes.c_int32),
        ("device_id", ctypes.c_int32),
        ("ndim", ctypes.c_int32),
        ("code", ctypes.c_uint8),
        ("bits", ctypes.c_uint8),
        ("lanes", ctypes.c_uint16),
        ("shape", ctypes.POINTER(ctypes.c_int64)),
        ("strides", ctypes.POINTER(ctypes.c_int64)),
        ("byte_offset", ctypes.c_uint64),
        ("manager", ctypes.c_void_p),
        ("deleter", ctypes.CFUNCTYPE(None, ctypes.c_void_p)),
    ]


class Described:
    """A producer of memory of a GPU, of which only the description is there."""

    def __init__(self, shape, strides, gpu=0):
        self.released = 0
        numbers = ctypes.c_int64 * len(shape)
        self.shape, self.strides = numbers(*shape), numbers(*strides)
        self.deleter = ctypes.CFUNCTYPE(None, ctypes.c_void_p)(self._release)
        pointer = ctypes.POINTER(ctypes.c_int64)
        self.managed = _Tensor(
            1 << 62, 2, gpu, len(shape), 2, 32, 1, ctypes.cast(self.shape, pointer),
            ctypes.cast(self.strides, pointer), 0, None, self.deleter,
        )  # fmt: skip

    def _release(self, _):
        self.released += 1

    def __dlpack_device__(self):
        return (2, 0)

    def __dlpack__(self, stream=None):  # of an old library: no versions
        make = ctypes.pythonapi.PyCapsule_New
        make.restype, make.argtypes = ctypes.py_object, [ctypes.c_void_p] * 3
        self.name = ctypes.create_string_buffer(b"dltensor")
        return make(ctypes.addressof(self.managed), ctypes.addressof(self.name), None)


def test_memory_is_shared_both_ways():
    assert run("""
from test_cuda_sharing import Lender
x = tn.arange(6, dtype=tn.float32, device="cuda").reshape(2, 3)
other = Lender(x)
y = tn.from_dlpack(other)
print(x.__dlpack_device__(), y.device, (y * 2 + x).tolist())
print(other.asked[0]["stream"] > 2, other.asked[0]["max_version"])
copied = tn.from_dlpack(Lender(x), copy=True)
print(copied.tolist() == x.tolist(), tn.from_dlpack(Lender(x), device="cpu").device)
print(tn.asarray(Lender(x)).tolist())
print(tn.from_dlpack(Lender(tn.zeros((0, 3), device="cuda"))).device)
print(x.__dlpack__(dl_device=(1, 0)) is not None)
""") == [
        "(2, 0) cuda:0 [[0.0, 3.0, 6.0], [9.0, 12.0, 15.0]]",
        "True (1, 0)",
        "True cpu",
        "[[0.0, 1.0, 2.0], [3.0, 4.0, 5.0]]",
        "cuda:0",
        "True",
    ]


def test_what_cannot_be_shared_is_refused_and_given_back():
    assert run("""
from test_cuda_sharing import Described
x = tn.ones(2, device="cuda")
def error(f):
    try:
        f()
    except Exception as e:
        return type(e).__name__ + ": " + str(e).splitlines()[0]
print(error(lambda: x.__dlpack__(stream=0)))
print(error(lambda: x.__dlpack__(dl_device=(2, 1))))
print(error(lambda: x.__dlpack__(dl_device=(1, 0), copy=False)))
turned = Described((2, 3), (1, 2))
print(error(lambda: tn.from_dlpack(turned)), turned.released)
far = Described((2,), (1,), gpu=7)
print(error(lambda: tn.from_dlpack(far)), far.released)
taken = Described((2,), (1,))
y = tn.from_dlpack(taken)
print(y.device, y.shape, taken.released)
del y
tn.synchronize()
print(taken.released)
""") == [
        "InvalidValue: __dlpack__: there is no stream 0",
        "BufferError: __dlpack__: the tensor is on cuda:0, device (2, 0)",
        "InvalidValue: asarray: the data cannot be shared, and copy=False forbids a copy",
        "InvalidValue: from_dlpack: memory of a GPU must be in row-major order 1",
        "InvalidValue: from_dlpack: device: no such device: 'cuda:7' 1",
        "cuda:0 (2,) 0",
        "1",
    ]


def test_a_model_for_gpus_is_saved_where_there_is_none(tmp_path):
    path = tmp_path / "net.tnx"
    done = run(f"""
from tenon.model import Linear
model = tn.Model()
model |= Linear(8)(input="x")
targets = ["native", "sm_90"]
made = tn.compile(model, tn.CudaBackend(), shapes={{"x": [3, 4]}}, target_hardware=targets)
made.save({str(path)!r})
print(tn.Executable.load({str(path)!r}).stats().origin)
try:
    made.evaluate(made.randomize_params(), {{}})
except tn.Error as e:
    print(str(e).splitlines()[0])
""", TENON_CUDA_MOCK="0")
    assert done[0] == "loaded"
    assert "no NVIDIA driver was found" in done[1] or "evaluate" in done[1]
