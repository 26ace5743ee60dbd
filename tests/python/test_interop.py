"""Tensors from and to other libraries, and as Python objects."""

import array
import copy
import gc
import threading
import weakref

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


@pytest.mark.parametrize("n", [4, 1000])
def test_what_is_shared_and_what_is_copied(n):
    def is_shared(x, a):
        return address(x.numpy()) == address(a)

    a = np.arange(n, dtype=np.float32)
    for copied in (
        tn.asarray(a),
        tn.asarray(a, copy=True),
        tn.asarray(memoryview(a)),
        tn.array(a),
        tn.Tensor(a),
        tn.from_dlpack(a, copy=True),
    ):
        assert not is_shared(copied, a)
    shared = tn.asarray(a, copy=False)
    assert is_shared(shared, a) and is_shared(tn.from_dlpack(a), a)
    assert address(np.from_dlpack(tn.from_dlpack(a))) == address(a)
    assert address(np.asarray(memoryview(shared))) == address(a)
    frozen = a.copy()
    frozen.flags.writeable = False
    assert is_shared(tn.asarray(frozen), frozen)
    assert not is_shared(tn.asarray(frozen, copy=True), frozen)
    assert not is_shared(tn.array(frozen), frozen)
    with pytest.raises(ValueError):
        tn.asarray(a[::2], copy=False)
    with pytest.raises(ValueError):
        tn.asarray([1.0, 2.0], copy=False)


class OnlyDLPack:
    """An array of another library, without the buffer protocol."""

    def __init__(self, a):
        self.a = a

    def __dlpack__(self, **options):
        return self.a.__dlpack__(**options)

    def __dlpack_device__(self):
        return self.a.__dlpack_device__()


@pytest.mark.parametrize("n", [128, 4096])
@pytest.mark.parametrize("wrap", [lambda a: a, OnlyDLPack])
def test_arrays_written_to_before_the_op_runs(n, wrap):
    x, v = tn.zeros(n), np.ones(n, np.float32)
    x[:] = wrap(v)
    v[:] = 7
    assert x.tolist() == [1.0] * n

    buffer = np.empty(n, np.float32)
    sums, scaled, stacked, called, updated = [], [], [], [], []
    for i in range(4):
        buffer[:] = i
        sums.append(tn.zeros(n) + wrap(buffer))
        scaled.append(tn.asarray(wrap(buffer)) * 10)
        called.append(tn.negative(wrap(buffer)))
        updated.append(tn.zeros(n).at[:].add(wrap(buffer)))
        if wrap is not OnlyDLPack:
            stacked.append(tn.array([buffer, buffer]))
    for i in range(4):
        assert sums[i].tolist() == [i] * n
        assert scaled[i].tolist() == [10 * i] * n
        assert called[i].tolist() == [-i] * n
        assert updated[i].tolist() == [i] * n
    assert [t[1, -1].item() for t in stacked] in ([], [0, 1, 2, 3])


@pytest.mark.parametrize("share", [tn.from_dlpack, lambda a: tn.asarray(a, copy=False)])
def test_foreign_memory_is_released_while_the_main_thread_waits(share):
    alive, most = set(), []

    class Big(np.ndarray):
        pass

    def work():
        for i in range(50):
            big = np.ones(1 << 20, np.float32).view(Big)
            alive.add(i)
            weakref.finalize(big, alive.discard, i)
            assert float((share(big) + 1)[0]) == 2
            del big
            most.append(len(alive))

    thread = threading.Thread(target=work)
    thread.start()
    thread.join()
    assert len(most) == 50 and max(most) <= 5


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


@pytest.mark.parametrize("make", [tn.array, tn.asarray, tn.from_dlpack])
@pytest.mark.parametrize("step", [1, 2])
def test_bytes_of_bools_that_are_neither_0_nor_1_are_true(make, step):
    odd = np.array([0, 1, 2, 255, 128, 3] * 8, np.uint8).view(bool)[::step]
    t = make(odd)
    true = np.count_nonzero(odd)
    for count in (tn.sum, tn.compile(tn.sum), tn.count_nonzero):
        assert count(t).item() == true
    assert (~t).numpy().tolist() == (~odd).tolist()
    if step == 1:
        with pytest.raises(tn.Error, match="copy=False"):
            tn.asarray(odd, copy=False)


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
    for bad in ("x", 1, (), (1,), ("1", "0"), (1.0, 0)):
        with pytest.raises(TypeError, match="max_version is a tuple of two integers"):
            x.__dlpack__(max_version=bad)
        with pytest.raises(TypeError, match="dl_device is a tuple of two integers"):
            x.__dlpack__(dl_device=bad)


class Unready(tn.Tensor):
    def __init__(self):
        pass


@pytest.mark.parametrize("make", [Unready, lambda: tn.Tensor.__new__(tn.Tensor)])
def test_tensors_never_initialised(make):
    x = make()
    for use in (
        lambda: x + 1,
        lambda: 1 + x,
        lambda: x.shape,
        lambda: x[0],
        lambda: len(x),
        lambda: repr(x),
        lambda: tn.sum(x),
        lambda: tn.eval(x),
        lambda: tn.array([x]),
        lambda: memoryview(x),
        lambda: x.__dlpack__(),
        lambda: list(x),
        lambda: x.item(),
    ):
        with pytest.raises(tn.InvalidType, match="__init__"):
            use()


def test_methods_on_something_else():
    for use in (tn.Tensor.item, tn.Tensor.numpy, tn.Tensor.__dlpack__, tn.Tensor.shape.fget):
        with pytest.raises(TypeError):
            use(3)


def test_lists_that_hold_themselves():
    cycle = []
    cycle.append(cycle)
    table = {}
    table["self"] = table
    deep = [tn.ones(2)]
    for _ in range(100_000):
        deep = [deep]
    for nested in (cycle, table, deep):
        with pytest.raises(tn.Error, match="nested deeper|holds itself"):
            tn.eval(nested)
    with pytest.raises(tn.Error):
        tn.array(cycle)
    arrays = [np.ones(2)]
    arrays.append(arrays)
    with pytest.raises(tn.Error):
        tn.array(arrays)


def test_iteration_is_lazy():
    rows = iter(tn.zeros((1 << 20, 2)) + 1)
    assert next(rows).tolist() == [1, 1] and next(rows).shape == (2,)
    assert [int(v) for v in tn.arange(4)] == [0, 1, 2, 3]
    assert list(tn.zeros((0, 3))) == []
    with pytest.raises(TypeError):
        iter(tn.asarray(1.0))


def test_integers_beyond_64_bits():
    assert (tn.ones(2) + 2**70).tolist() == [2.0**70] * 2
    assert (2**70 * tn.ones(2)).dtype == tn.float32
    assert tn.add(tn.ones(1, dtype=tn.float64), -(2**70)).tolist() == [1 - 2.0**70]
    for use in (
        lambda: tn.arange(3) + 2**70,
        lambda: tn.ones(2) + 10**400,
        lambda: tn.array([2**70]),
        lambda: tn.array([300], dtype=tn.uint8),
    ):
        with pytest.raises(tn.OutOfRange) as caught:
            use()
        assert isinstance(caught.value, (tn.Error, OverflowError))
        assert "test_interop.py" in str(caught.value)


def test_float64_of_numpy_is_a_number_like_those_of_python():
    x = tn.ones(2)
    assert (x / np.sqrt(4)).dtype == (np.float64(2) * x).dtype == tn.float32
    assert (tn.ones(2, dtype=tn.bfloat16) * np.float64(1)).dtype == tn.bfloat16
    assert (x * np.array(0.5)).dtype == tn.float64
    assert (tn.ones(2, dtype=tn.float16) * np.float32(1)).dtype == tn.float32
    assert tn.array(np.float64(0.1)).dtype == tn.array([np.float64(0.1)]).dtype == tn.float64
