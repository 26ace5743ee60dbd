"""Values the samples do not reach: NaN, infinities, ends of ranges, rounding, complex numbers."""

import cmath
import math

import numpy as np
import pytest

import tenon as tn

INF, NAN = math.inf, math.nan


def same(got, want, **tolerance):
    want = np.asarray(want)
    if tolerance:
        np.testing.assert_allclose(got.numpy(), want, **tolerance)
    else:
        np.testing.assert_array_equal(got.numpy(), want)


@pytest.mark.parametrize("size", [1, 5, 64, 1000, 4097, 70_001])
@pytest.mark.parametrize("name", ["float16", "float32", "float64"])
def test_nan_anywhere_is_the_largest_and_the_smallest(size, name):
    for place in {0, size // 2, size - 1}:
        a = (np.arange(size) % 7).astype(name)
        a[place] = NAN
        x = tn.asarray(a)
        for f in (tn.max, tn.min, tn.sum, tn.mean):
            assert math.isnan(f(x).item()), (f, place)
        assert tn.argmax(x).item() == place and tn.argmin(x).item() == place
        assert math.isnan(tn.cummax(x)[-1].item()) and math.isnan(tn.sort(x)[-1].item())
        assert math.isnan(tn.sort(x, descending=True)[-1].item())
        assert tn.argsort(x)[-1].item() == place
        assert math.isnan(tn.max(tn.stack([x, x]), axis=0)[place].item())


def test_infinities_in_softmax_and_its_relatives():
    x = tn.asarray([[-INF, 0.0, 0.0], [1.0, 2.0, -INF], [-1e30, 1e30, 0.0]])
    same(tn.softmax(x, axis=1), [[0, 0.5, 0.5], [0.26894143, 0.7310586, 0], [0, 1, 0]], rtol=1e-6)
    same(tn.logsumexp(x, axis=1), [math.log(2), 2.3132617, 1e30], rtol=1e-6)
    assert math.isnan(tn.softmax(tn.asarray([-INF, -INF]))[0].item())
    assert tn.logsumexp(tn.asarray([-INF, -INF])).item() == -INF
    assert tn.logsumexp(tn.asarray([INF, 1.0])).item() == INF
    assert tn.logsumexp(tn.zeros(0)).item() == -INF
    assert tn.log_softmax(tn.asarray([0.0, -1000.0]))[1].item() == -1000.0
    same(tn.logcumsumexp(tn.asarray([-INF, 0.0, 1000.0])), [-INF, 0, 1000], rtol=1e-6)


def test_signed_zeros():
    zeros = tn.asarray([0.0, -0.0])
    assert np.signbit((zeros * 1).numpy()).tolist() == [False, True]
    assert np.signbit((zeros + 0.0).numpy()).tolist() == [False, False]
    assert np.signbit((zeros - 0.0).numpy()).tolist() == [False, True]
    assert np.signbit((zeros + -0.0).numpy()).tolist() == [False, True]
    assert np.signbit((-zeros).numpy()).tolist() == [True, False]
    assert np.signbit(tn.sum(tn.asarray([-0.0, -0.0])).numpy()) in (True, False)
    assert np.signbit((zeros * -0.0).numpy()).tolist() == [True, False]
    assert np.signbit(tn.abs(zeros).numpy()).tolist() == [False, False]


@pytest.mark.parametrize(
    "name", ["int8", "int16", "int32", "int64", "uint8", "uint16", "uint32", "uint64"]
)
def test_ends_of_integer_ranges(name):
    info = np.iinfo(name)
    a = np.array([info.min, info.min + 1, 0, 1, info.max - 1, info.max], dtype=name)
    b = np.array([1, 2, 3, info.max, info.max, info.max], dtype=name)
    x, y = tn.asarray(a), tn.asarray(b)
    for op in (
        "add",
        "subtract",
        "multiply",
        "floor_divide",
        "remainder",
        "maximum",
        "minimum",
        "bitwise_xor",
        "less",
        "equal",
    ):
        same(getattr(tn, op)(x, y), getattr(np, op)(a, b))
    for op in ("negative", "abs", "square", "sign", "bitwise_invert"):
        same(getattr(tn, op)(x), getattr(np, op)(a))
    same(tn.sort(x, descending=True), np.sort(a)[::-1])
    assert tn.max(x).item() == info.max and tn.min(x).item() == info.min
    assert [tn.argmax(x).item(), tn.argmin(x).item()] == [5, 0]
    same(x.astype(tn.float64), a.astype(np.float64))
    same(x.astype(tn.float32), a.astype(np.float32))
    same(tn.unique_values(tn.concat([x, x])), np.unique(a))
    assert (x == info.max).tolist() == [False] * 5 + [True]
    assert int(x[5]) == info.max
    assert tn.full((2,), info.max, dtype=getattr(tn, name)).tolist() == [info.max] * 2


def test_integers_beyond_doubles_are_exact():
    big = 2**53 + 1
    x = tn.asarray([big, big + 1])
    assert (x + 0).tolist() == [big, big + 1] and tn.sum(x).item() == 2 * big + 1
    assert tn.max(x).item() == big + 1 and (x == big).tolist() == [True, False]
    assert (x * 3).tolist() == [big * 3, big * 3 + 3] and (x // 3).tolist() == [
        big // 3,
        (big + 1) // 3,
    ]
    assert tn.cumulative_sum(x).tolist() == [big, 2 * big + 1]
    assert tn.where(tn.asarray([True, False]), x, big).tolist() == [big, big]
    assert tn.sort(-x).tolist() == [-big - 1, -big]
    assert tn.searchsorted(x, x).tolist() == [0, 1]
    assert tn.arange(big, big + 3).tolist() == [big, big + 1, big + 2]
    assert (tn.asarray([3, -3]) ** 39).tolist() == [3**39, -(3**39)]
    assert tn.clip(x, big + 1).tolist() == [big + 1, big + 1]


def test_conversions_round_once_to_even():
    halves = tn.asarray([2049.0, 2051.0, 65519.0, 65520.0, 1e-8, 5.96e-8, 6.1e-5])
    same(halves.astype(tn.float16), halves.numpy().astype(np.float16))
    # A double just above the middle between two halves: through float32 it would round down.
    tricky = np.array([1 + 2.0**-11 + 2.0**-40, 1 + 2.0**-11, 1 + 3 * 2.0**-11])
    same(tn.asarray(tricky).astype(tn.float16), tricky.astype(np.float16))
    bf = tn.asarray([1 + 2.0**-8, 1 + 3 * 2.0**-8, 1 + 2.0**-8 + 2.0**-20, 3.39e38, -0.0])
    assert bf.astype(tn.bfloat16).tolist()[:3] == [1.0, 1 + 2.0**-6, 1 + 2.0**-7]
    assert bf.astype(tn.bfloat16).tolist()[4] == 0 and math.isinf(
        tn.asarray(3.4e38).astype(tn.bfloat16).item()
    )
    assert math.isnan(tn.asarray(NAN).astype(tn.bfloat16).item())
    e4 = (
        tn.asarray([448.0, 500.0, 0.001953125, NAN])
        .astype(tn.float8_e4m3)
        .astype(tn.float32)
        .tolist()
    )
    assert e4[0] == 448.0 and e4[2] == 0.001953125 and math.isnan(e4[3])
    same(tn.asarray([0.1], dtype=tn.float64).astype(tn.float32), np.array([0.1], np.float32))


def test_every_narrow_float_converts_as_numpy_does():
    bits = np.arange(65536, dtype=np.uint16)
    halves = bits.view(np.float16)
    same(tn.asarray(halves).astype(tn.float32), halves.astype(np.float32))
    back = tn.asarray(halves.astype(np.float32)).astype(tn.float16).numpy()
    np.testing.assert_array_equal(np.isnan(back), np.isnan(halves))
    np.testing.assert_array_equal(back[~np.isnan(back)].view(np.uint16), bits[~np.isnan(halves)])
    wide = tn.bitcast(tn.asarray(bits), tn.bfloat16).astype(tn.float32).numpy()
    np.testing.assert_array_equal(
        wide.view(np.uint32)[~np.isnan(wide)] >> 16, bits[~np.isnan(wide)]
    )


@pytest.mark.parametrize(
    "name",
    [
        "exp",
        "log",
        "sqrt",
        "sin",
        "cos",
        "tan",
        "sinh",
        "cosh",
        "tanh",
        "asin",
        "acos",
        "atan",
        "asinh",
        "acosh",
        "atanh",
        "abs",
        "square",
        "reciprocal",
    ],
)
@pytest.mark.parametrize("dtype", ["complex64", "complex128"])
def test_complex_functions(name, dtype):
    rng = np.random.default_rng(2)
    for scale in (1e-3, 1.0, 5.0):
        z = (rng.normal(size=500) * scale + 1j * rng.normal(size=500) * scale).astype(dtype)
        wide = z.astype(np.complex128)
        got = getattr(tn, name)(tn.asarray(z)).numpy()
        want = 1 / wide if name == "reciprocal" else getattr(np, name)(wide)
        eps = 2.0**-23 if dtype == "complex64" else 2.0**-52
        error = np.abs(got - want) / np.maximum(np.abs(want), 1e-30)
        assert error.max() < 16 * eps, (scale, z[error.argmax()], error.max() / eps)


def test_complex_arithmetic():
    a, b = 1e200 + 1e200j, 1e200 - 1e200j
    x, y = tn.asarray([a], dtype=tn.complex128), tn.asarray([b], dtype=tn.complex128)
    assert abs((x / y).item() - 1j) < 1e-12
    assert math.isclose(tn.abs(x).item(), abs(a), rel_tol=1e-14)
    assert abs((tn.asarray(2 + 3j) ** tn.asarray(1 - 1j)).item() - (2 + 3j) ** (1 - 1j)) < 1e-5
    assert tn.sqrt(tn.asarray(-4 + 0j)).item() == 2j
    assert (tn.asarray([1 + 2j]) == tn.asarray([1 + 2j])).tolist() == [True]
    assert tn.sum(tn.asarray([1 + 2j, 3 - 1j])).item() == 4 + 1j
    assert tn.prod(tn.asarray([1 + 2j, 3 - 1j])).item() == (1 + 2j) * (3 - 1j)
    assert abs(tn.mean(tn.asarray([1 + 2j, 3 - 1j])).item() - (2 + 0.5j)) < 1e-6
    assert tn.vecdot(tn.asarray([1j]), tn.asarray([1j])).item() == 1
    assert cmath.isinf(tn.asarray(complex(INF, 0)).item())
    assert tn.angle(tn.asarray(1j)).item() > 1.5 if hasattr(tn, "angle") else True


def test_unique_and_sets_with_nan_and_zeros():
    x = tn.asarray([NAN, 0.0, -0.0, NAN, 1.0])
    values, indices, inverse, counts = tn.unique_all(x)
    assert values.shape == (4,) and counts.tolist() == [2, 1, 1, 1]
    assert indices.tolist()[:2] == [1, 4] and inverse.shape == (5,)
    assert tn.isin(x, tn.asarray([NAN, 0.0])).tolist() == [False, True, True, False, False]
    assert tn.unique_counts(tn.asarray([[1, 2], [2, 2]])).counts.tolist() == [1, 3]


def test_stable_order_of_equal_elements():
    a = np.array([1, 0, 1, 0, 1, 0] * 50)
    x = tn.asarray(a)
    same(tn.argsort(x), np.argsort(a, stable=True))
    assert tn.argsort(x, descending=True).tolist() == [i for i in range(300) if a[i]] + [
        i for i in range(300) if not a[i]
    ]
    assert tn.top_k(x, 3).indices.tolist() == [0, 2, 4]
    same(tn.argsort(tn.asarray([0.0, -0.0, 0.0])), [0, 1, 2])


def test_statistics_keep_their_digits():
    a = (1e4 + np.arange(10_000) % 2).astype(np.float32)
    assert tn.var(tn.asarray(a)).item() == pytest.approx(0.25, rel=1e-4)
    assert tn.std(tn.asarray(a), correction=1).item() == pytest.approx(0.500025, rel=1e-4)
    assert tn.mean(tn.full((100_000,), 0.1)).item() == pytest.approx(0.1, rel=1e-5)
    assert tn.mean(tn.asarray([2**62, 2**62])).item() == 2.0**62
    assert tn.median(tn.asarray([3.0, 1.0, 2.0, 10.0])).item() == 2.5
    assert tn.quantile(tn.asarray([0.0, 1.0, 2.0]), 0.25).item() == 0.5
    assert math.isnan(tn.median(tn.asarray([1.0, NAN])).item())


def test_pow_with_numbers():
    x = tn.asarray([-2.0, 0.0, 3.0])
    assert (
        (x**2).tolist() == [4, 0, 9]
        and (x**0).tolist() == [1, 1, 1]
        and (x**3).tolist() == [-8, 0, 27]
    )
    assert (x**-1).tolist() == [-0.5, INF, pytest.approx(1 / 3)]
    assert (2**x).tolist() == [0.25, 1, 8] and (x**0.5).tolist()[2] == pytest.approx(3**0.5)
    assert math.isnan((x**0.5).tolist()[0])
    assert (tn.asarray([2, -2]) ** tn.asarray([-1, -1])).tolist() == [0, 0]
    assert (tn.asarray([1, -1]) ** tn.asarray([-3, -3])).tolist() == [1, -1]


def test_where_does_not_leak_the_other_side():
    x = tn.asarray([0.0, 1.0])
    assert tn.where(x > 0, 1 / x, 0).tolist() == [0, 1]
    assert (tn.where(x > 0, tn.log(x), -1)).tolist() == [-1, 0]


@pytest.mark.parametrize("level", [0, 3])
def test_compiled_writes_out_of_bounds_are_dropped(level):
    x = tn.zeros((4,))
    at = tn.asarray([1, 4, -5, -1, 2**40])
    ones = tn.ones((5,))
    wanted = [0, 1, 0, 1]

    def compiled(f, *args):
        return tn.compile(f, optimization_level=level)(*args).tolist()

    def update(y, value, *indices):
        return y.at[indices].set(value)

    assert compiled(lambda at: tn.scatter_add(x, ones, at, axes=[0]), at) == wanted
    assert compiled(lambda at: tn.put_along_axis(x, at, ones), at) == wanted
    segments = tn.asarray([0, -1, 2, 1, 0])
    assert compiled(lambda at: tn.segment_sum(ones, at, 2), segments) == [2, 1]
    small = tn.asarray([9, 3], dtype="uint8")
    assert compiled(lambda at: tn.scatter(x, 1.0, at, axes=[0]), small) == [0, 0, 0, 1]
    y = tn.zeros((2, 3))
    got = compiled(update, y, 1.0, tn.asarray([0, 5, 1]), tn.asarray([0, 0, -4]))
    assert got == [[1, 0, 0], [0, 0, 0]]
    columns = tn.compile(lambda y, i: y.at[:, i].set(tn.asarray([7.0, 8.0])))
    assert columns(y, tn.asarray([3, 1])).tolist() == [[0, 8, 0], [0, 8, 0]]
    assert compiled(lambda at: tn.take(tn.arange(4), at), at) == [1, 3, 0, 3, 3]


def test_a_class_that_does_not_exist_is_seen():
    loss = tn.compile(lambda x, t: tn.cross_entropy(x, t, reduction="none"))
    losses = loss(tn.zeros((4, 3)), tn.asarray([0, 3, -1, 2]))
    assert [math.isnan(v) for v in losses.tolist()] == [False, True, True, False]
    assert losses[0].item() == pytest.approx(math.log(3))


def rounded(value, bits):
    """The integer `value` to the nearest with `bits` significant bits, ties to even, exactly."""
    size = abs(value)
    step = 1 << max(size.bit_length() - bits, 0)
    low, rest = size // step, size % step
    low += 2 * rest > step or (2 * rest == step and low % 2 == 1)
    return int(math.copysign(1, value)) * low * step


@pytest.mark.parametrize("name", ["int32", "uint32", "int64", "uint64"])
def test_integers_become_narrow_floats_in_one_rounding(name):
    beside_a_tie = tn.asarray([2**25 + 2**17 + 1], dtype=name)
    assert beside_a_tie.astype(tn.bfloat16).tolist() == [33816576]
    limits = np.iinfo(name)
    rng = np.random.default_rng(7)
    values = [limits.min, limits.max, 0, 1]
    for shift in range(limits.bits - 1):
        top = 1 << shift
        # Ties of bfloat16 and numbers just beside them, with the last bit alone breaking the tie.
        tie = top + (top >> 8)
        values += [top, tie, tie + 1, tie - 1, tie + (top >> 7), tie + (top >> 7) + 1]
        values += [int(v) for v in rng.integers(top, 2 * top, 8, dtype=np.uint64)]
    values += [-v for v in values]
    values = [v for v in values if limits.min <= v <= limits.max]
    x = tn.asarray(np.array(values, dtype=name))
    assert x.astype(tn.bfloat16).tolist() == [rounded(v, 8) for v in values]
    halves = [float(rounded(v, 11)) for v in values]
    assert x.astype(tn.float16).tolist() == [
        v if abs(v) <= 65504 else math.copysign(INF, v) for v in halves
    ]


def test_repeats_for_each_element():
    x = tn.asarray([[1, 2, 3], [4, 5, 6]])
    assert tn.repeat(x, tn.asarray([1, 2]), axis=0).tolist() == [[1, 2, 3], [4, 5, 6], [4, 5, 6]]
    assert tn.repeat(x, tn.asarray([0, 2, 1]), axis=-1).tolist() == [[2, 2, 3], [5, 5, 6]]
    assert tn.repeat(x, tn.asarray([2]), axis=1).tolist() == tn.repeat(x, 2, axis=1).tolist()
    assert x.repeat(repeats=2).tolist() == [1, 1, 2, 2, 3, 3, 4, 4, 5, 5, 6, 6]
    assert tn.repeat(tn.zeros((0,)), tn.asarray([], dtype=tn.int64)).shape == (0,)
    for bad in (tn.asarray([1, 2]), tn.asarray([[1]]), tn.asarray([1, -1, 1]), 1.5, -1):
        with pytest.raises(tn.Error, match="repeat"):
            tn.repeat(x, bad, axis=1)


def test_joining_very_many_tensors():
    count = 70_000
    parts = [tn.asarray([i % 7]) for i in range(count)]
    same(tn.concat(parts), np.arange(count) % 7)
    same(tn.stack(parts, axis=1), (np.arange(count) % 7)[None])


def test_empty_tensors_of_any_extents():
    assert tn.reshape(tn.zeros((0,)), (2**40, 2**40, 0)).shape == (2**40, 2**40, 0)
    with pytest.raises(tn.Error, match="reshape"):
        tn.reshape(tn.zeros((1,)), (2**40, 2**40, 0))


def test_complex_functions_at_infinity():
    def parts(f, re, im):
        value = f(tn.asarray(complex(re, im), dtype=tn.complex128)).item()
        return value.real, value.imag

    re, im = parts(tn.exp, INF, INF)
    assert math.isinf(re) and math.isnan(im)
    re, im = parts(tn.sinh, 0.0, INF)
    assert re == 0 and math.isnan(im)
    re, im = parts(tn.cosh, 0.0, INF)
    assert math.isnan(re) and im == 0
    assert parts(tn.acos, INF, INF) == (pytest.approx(math.pi / 4), -INF)
    assert parts(tn.acos, -INF, INF) == (pytest.approx(3 * math.pi / 4), -INF)
    assert parts(tn.acos, 1.0, INF) == (pytest.approx(math.pi / 2), -INF)
    assert parts(tn.acosh, INF, INF) == (INF, pytest.approx(math.pi / 4))
    assert parts(tn.acosh, -INF, 1.0) == (INF, pytest.approx(math.pi))
    assert parts(tn.atanh, 1.0, 1e-300) == (pytest.approx(345.7343), pytest.approx(math.pi / 4))
    assert parts(tn.atanh, 1.0, 0.0) == (INF, 0)
