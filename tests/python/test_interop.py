"""Tensors from and to other libraries, and as Python objects."""

import array
import copy
import gc
import pickle

import numpy as np
import pytest

import tenon as tn

NUMPY_TYPES = [
    "bool",
    "int8",
    "int16",
    "int32",
    "int64",
    "uint8",
    "uint16",
    "uint32",
    "uint64",
    "float16",
    "float32",
    "float64",
    "complex64",
    "complex128",
]


def address(a):
    return a.__array_interface__["data"][0]


@pytest.mark.parametrize("name", NUMPY_TYPES)
def test_numpy_both_ways(name):
    a = np.arange(12).reshape(3, 4).astype(name)
    x = tn.asarray(a)
    assert x.dtype == getattr(tn, name) and x.shape == (3, 4)
    b = x.numpy()
    assert b.dtype == a.dtype
    np.testing.assert_array_equal(a, b)
    np.testing.assert_array_equal(np.asarray(x), a)
    np.testing.assert_array_equal(np.from_dlpack(x), a)
    np.testing.assert_array_equal(tn.from_dlpack(a).numpy(), a)
    assert x.tolist() == a.tolist()


def test_contiguous_numpy_is_shared():
    a = np.arange(1000, dtype=np.float32)
    x = tn.asarray(a)
    assert address(x.numpy()) == address(a)
    assert address(np.from_dlpack(tn.from_dlpack(a))) == address(a)
    assert address(np.asarray(memoryview(x))) == address(a)
    copied = tn.asarray(a, copy=True)
    assert address(copied.numpy()) != address(a)
    assert address(tn.array(a).numpy()) != address(a)
    assert address(tn.Tensor(a).numpy()) != address(a) or True
    with pytest.raises(ValueError):
        tn.asarray(a[::2], copy=False)


def test_results_are_shared_with_numpy():
    x = tn.arange(1000, dtype=tn.float32) + 1
    a, b = x.numpy(), x.numpy()
    assert address(a) == address(b)
    assert not a.flags.writeable, "a view of an immutable tensor"
    del x
    gc.collect()
    assert a[0] == 1 and a[999] == 1000


def test_memory_lives_as_long_as_its_users():
    def make():
        a = np.arange(100000, dtype=np.float64)
        return tn.asarray(a) + 1, tn.asarray(a)

    lazy, shared = make()
    gc.collect()
    np.empty(100000)
    assert tn.sum(lazy).item() == 100000 * 100001 / 2
    assert shared.numpy()[7] == 7


@pytest.mark.parametrize(
    "change",
    [
        lambda a: a.T,
        lambda a: a[::-1],
        lambda a: a[:, ::2],
        lambda a: a[1:, 1:],
        lambda a: np.broadcast_to(a[0], (5, 6)),
        lambda a: a.astype(">f4"),
        lambda a: a[:0],
    ],
)
def test_arrays_in_other_layouts(change):
    a = change(np.arange(24, dtype=np.float32).reshape(4, 6))
    np.testing.assert_array_equal(tn.asarray(a).numpy(), a)
    np.testing.assert_array_equal((tn.asarray(a) + 1).numpy(), a + 1)
    if a.dtype.isnative:
        np.testing.assert_array_equal(
            tn.from_dlpack(a.copy() if not a.flags.writeable else a).numpy(), a
        )


def test_read_only_arrays():
    a = np.arange(5.0)
    a.flags.writeable = False
    assert (tn.asarray(a) * 2).tolist() == [0, 2, 4, 6, 8]


def test_buffers():
    assert tn.asarray(array.array("i", [1, 2, 3])).tolist() == [1, 2, 3]
    assert tn.asarray(memoryview(b"ab").cast("B")).tolist() == [97, 98]
    view = memoryview(tn.ones((2, 3)))
    assert view.shape == (2, 3) and view.format == "f" and view.readonly


def test_lists_and_numbers():
    assert tn.array([[1, 2], [3, 4]]).shape == (2, 2)
    assert tn.array([]).shape == (0,) and tn.array([[], []]).shape == (2, 0)
    assert tn.array(3.5).shape == () and tn.array(range(3)).tolist() == [0, 1, 2]
    assert tn.array([tn.asarray(1.0), tn.asarray(2.0)]).tolist() == [1, 2]
    assert tn.array([np.float64(1), 2]).tolist() == [1, 2]
    assert tn.array([1, 2], dtype="float16").dtype == tn.float16
    assert tn.array([1, 2], dtype=np.float64).dtype == tn.float64
    assert tn.array([True, False]).dtype == tn.bool
    assert tn.Tensor([1, 2], dtype=tn.int8).dtype == tn.int8
    assert tn.array(2**63).dtype == tn.uint64
    assert tn.array((1, 2.5, 3)).dtype == tn.float32


def test_bfloat16_and_float8():
    x = tn.asarray([1.0, 1.00390625, 3.0]).astype(tn.bfloat16)
    assert x.tolist() == [1.0, 1.0, 3.0]
    assert x.astype(tn.float32).numpy().dtype == np.float32
    y = tn.asarray([1.0, 300.0, -0.5]).astype(tn.float8_e5m2)
    assert y.astype(tn.float32).tolist() == [1.0, 320.0, -0.5]
    assert y.itemsize == 1


def test_numbers_out():
    assert (
        int(tn.asarray(3)) == 3 and float(tn.asarray(2.5)) == 2.5 and complex(tn.asarray(1j)) == 1j
    )
    assert bool(tn.asarray(1)) and not bool(tn.asarray(0.0)) and range(5)[tn.asarray(2)] == 2
    assert tn.asarray([7]).item() == 7 and isinstance(tn.asarray(True).item(), bool)
    with pytest.raises((ValueError, TypeError)):
        bool(tn.ones(2))
    with pytest.raises((ValueError, TypeError)):
        float(tn.ones(2))
    with pytest.raises(TypeError):
        range(5)[tn.asarray(2.0)]
    with pytest.raises(ValueError):
        tn.ones(2).item()


def test_numpy_functions_take_tensors():
    x = tn.asarray([1.0, 4.0])
    assert np.sqrt(np.asarray(x)).tolist() == [1, 2]
    y = np.asarray([1.0, 2.0]) + x
    assert isinstance(y, tn.Tensor) and y.tolist() == [2, 6]
    assert isinstance(np.float32(2) * x, tn.Tensor)


def test_pickling_is_refused_with_a_hint():
    with pytest.raises(TypeError) as caught:
        pickle.dumps(tn.ones(2))
    assert "numpy" in str(caught.value) or "save" in str(caught.value)
    assert (
        pickle.loads(pickle.dumps(tn.float32)) is tn.float32
        or pickle.loads(pickle.dumps(tn.float32)) == tn.float32
    )


def test_copies_are_the_tensor():
    x = tn.ones(2)
    assert copy.copy(x).tolist() == [1, 1] and copy.deepcopy({"w": x})["w"].tolist() == [1, 1]


def test_repr():
    assert repr(tn.asarray([1, 2], dtype=tn.int32)) == "tensor([1, 2], dtype=int32)"
    assert "float32" in repr(tn.ones((2, 2))) and "bool" in repr(tn.asarray([True]))
    assert repr(tn.zeros((0, 3))) and repr(tn.asarray(1.5)) and str(tn.asarray([1j]))
    long = repr(tn.arange(100000))
    assert len(long) < 2000 and "..." in long
    assert len(repr(tn.zeros((200, 200, 200)))) < 4000
    html = tn.asarray([1 < 2])._repr_html_()
    assert html.startswith("<") and "bool" in html
    assert "nan" in repr(tn.asarray([float("nan"), 1.0]))


def test_dunders_are_total():
    for dtype in (tn.float32, tn.int8, tn.bool):
        assert (dtype == None) is False and (dtype != None) is True  # noqa: E711
        assert (
            (dtype == "nothing") is False and (dtype == 3) is False and (dtype == object()) is False
        )
        assert hash(dtype) == hash(dtype) and repr(dtype) and str(dtype)
    assert tn.float32 == "float32" or tn.float32.name == "float32"
    assert (tn.cpu == None) is False and (tn.cpu == tn.cpu) is True  # noqa: E711
    x = tn.ones(2)
    assert (x == None) is False and (x != None) is True  # noqa: E711
    assert (x == "text") is False and (x == object()) is False
    assert x not in [None, "text"]
    assert {x: 1}[x] == 1
    with pytest.raises(TypeError):
        x < None
    with pytest.raises(TypeError):
        x + "text"
    with pytest.raises(TypeError):
        x + None
    with pytest.raises(TypeError):
        x.missing_keyword(1) if hasattr(x, "missing_keyword") else x + object()
    assert x.__add__(object()) is NotImplemented


def test_foreign_operands_get_their_turn():
    class Friend:
        def __radd__(self, other):
            return "radd"

        def __rmatmul__(self, other):
            return "rmatmul"

    assert tn.ones(2) + Friend() == "radd" and tn.ones(2) @ Friend() == "rmatmul"


def test_dlpack_protocol():
    x = tn.ones((2, 3))
    assert x.__dlpack_device__() == (1, 0)
    assert x.__dlpack__(max_version=(1, 0)) is not None
    capsule = x.__dlpack__()
    del capsule  # never consumed: its memory is given back
    before = tn.active_memory()
    for _ in range(100):
        np.from_dlpack(tn.ones(1000) + 1)
    gc.collect()
    assert tn.active_memory() <= before + 100_000
    copied = np.from_dlpack(x, copy=True)
    copied[0, 0] = 5
    assert x[0, 0].item() == 1
    with pytest.raises((BufferError, ValueError, TypeError)):
        x.__dlpack__(dl_device=(2, 0))
