"""NumPy's names beyond the samples of the op table: forms of arguments, NaN, refusals, compiling.

The op harness compares the values of every sample with NumPy's."""

import warnings

import numpy as np
import pytest

import tenon as tn

RNG = np.random.default_rng(3)
NAN, INF = np.nan, np.inf


def same(got, want, close=False):
    if isinstance(want, (list, tuple)):
        assert len(got) == len(want)
        for g, w in zip(got, want):
            same(g, w, close)
        return
    got, want = got.numpy(), np.asarray(want)
    assert got.shape == want.shape, f"{got.shape}, NumPy {want.shape}"
    if close:
        np.testing.assert_allclose(got, want, 2e-5, 1e-6)
    else:
        np.testing.assert_array_equal(got, want.astype(got.dtype))


NAMES = """vstack hstack dstack column_stack append delete insert unique percentile histogram
    bincount digitize cov corrcoef average nanmean nansum nanmax nanmin nanstd interp gradient
    trapezoid rot90 fliplr flipud logspace geomspace tril_indices triu_indices unravel_index vdot
    angle sinc polyfit polyval select gcd lcm""".split()
MODULES = {"linalg": "norm lstsq cond multi_dot expm", "fft": "fft2 ifft2 rfft2 irfft2"}


def test_every_name_is_there_and_documented():
    for name in NAMES:
        assert callable(getattr(tn, name)) and getattr(tn, name).__doc__, name
        assert name in dir(tn)
    for module, names in MODULES.items():
        for name in names.split():
            assert callable(getattr(getattr(tn, module), name)), name


# Calls as in NumPy's own documentation; `xp` is either library.
CALLS = {
    "append to flat": lambda xp, a: xp.append(xp.asarray([1, 2]), xp.asarray([[4, 5], [6, 7]])),
    "append along": lambda xp, a: xp.append(a, a[:1], axis=0),
    "delete one": lambda xp, a: xp.delete(a, 1, axis=1),
    "delete several": lambda xp, a: xp.delete(a, [0, -1, 0], axis=1),
    "delete slice": lambda xp, a: xp.delete(a, slice(None, None, 2), axis=1),
    "delete slice of flat": lambda xp, a: xp.delete(a, slice(1, 5)),
    "delete an empty list": lambda xp, a: xp.delete(a, []),
    "delete nothing": lambda xp, a: xp.delete(a, slice(0, 0), axis=0),
    "delete all": lambda xp, a: xp.delete(a, [0, 1, 2], axis=0),
    "delete by mask": lambda xp, a: xp.delete(a, xp.asarray([True, False, True]), axis=0),
    "insert a number": lambda xp, a: xp.insert(a, 1, 5, axis=1),
    "insert of flat": lambda xp, a: xp.insert(a, [1, 4], 9),
    "insert a row": lambda xp, a: xp.insert(a, 3, a[0], axis=0),
    "insert a column": lambda xp, a: xp.insert(a, 1, xp.asarray([7.0, 8.0, 9.0]), axis=1),
    "insert at one place": lambda xp, a: xp.insert(a, [1], a[:, :2], axis=1),
    "insert in order": lambda xp, a: xp.insert(a[0], [3, 1, 1], xp.asarray([1.0, 2.0, 3.0])),
    "insert at the end": lambda xp, a: xp.insert(a[0], -1, 9.0),
    "insert nothing": lambda xp, a: [xp.insert(a, [], []), xp.insert(a, [], a[:0], axis=0)],
    "insert at a slice": lambda xp, a: xp.insert(a, slice(1, 4, 2), 9.0, axis=1),
    "insert at a slice of flat": lambda xp, a: xp.insert(a, slice(None, None, -3), 9.0),
    "insert by mask": lambda xp, a: xp.insert(a, xp.asarray([True, False, True]), 9.0, axis=0),
    "insert by a mask of one": lambda xp, a: xp.insert(a[0], xp.asarray([False, True]), a[1]),
    "histogram by edges and a range": lambda xp, a: xp.histogram(
        a, xp.asarray([-1.0, 0.0, 2.0]), (3, 2)
    ),
    "histogram": lambda xp, a: xp.histogram(a),
    "histogram of integers": lambda xp, a: xp.histogram(xp.asarray([1, 2, 2, 7]), 3),
    "histogram by edges": lambda xp, a: xp.histogram(a, xp.asarray([-1.0, 0.0, 0.5, 2.0])),
    "histogram in a range": lambda xp, a: xp.histogram(a, 4, (-1.0, 1.0)),
    "histogram of one value": lambda xp, a: xp.histogram(xp.asarray([2.0, 2.0]), 2),
    "histogram of nothing": lambda xp, a: xp.histogram(a[:0], 3),
    "histogram with weights": lambda xp, a: xp.histogram(a[0], 3, weights=a[1]),
    "histogram as density": lambda xp, a: xp.histogram(a, 5, density=True),
    "bincount": lambda xp, a: xp.bincount(xp.asarray([0, 3, 1, 3])),
    "bincount of at least": lambda xp, a: xp.bincount(xp.asarray([0, 3]), minlength=6),
    "bincount of nothing": lambda xp, a: xp.bincount(xp.asarray([], dtype=xp.int64), minlength=2),
    "digitize": lambda xp, a: xp.digitize(a, xp.asarray([-1.0, 0.0, 1.0])),
    "digitize descending": lambda xp, a: xp.digitize(a, xp.asarray([1.0, 0.0, -1.0]), True),
    "cov of two": lambda xp, a: xp.cov(a[0], a[1]),
    "cov of columns": lambda xp, a: xp.cov(a, rowvar=False, bias=True),
    "cov with weights": lambda xp, a: xp.cov(
        a, fweights=xp.asarray([1, 2, 1, 3, 1]), aweights=xp.asarray([1.0, 0.5, 2.0, 1.0, 1.0])
    ),
    "corrcoef": lambda xp, a: xp.corrcoef(a, a[0]),
    "average": lambda xp, a: xp.average(a, 0),
    "average with weights": lambda xp, a: xp.average(
        a, axis=1, weights=xp.asarray([1.0, 2.0, 3.0, 4.0, 5.0]), returned=True
    ),
    "average with axes out of order": lambda xp, a: xp.average(
        xp.reshape(xp.arange(24.0), (2, 3, 4)), (2, -3), xp.reshape(xp.arange(8), (4, 2))
    ),
    "average of a square": lambda xp, a: xp.average(
        xp.reshape(xp.arange(18.0), (3, 3, 2)), (1, 0), xp.reshape(xp.arange(9), (3, 3))
    ),
    "percentile": lambda xp, a: xp.percentile(a, [10, 50, 90], axis=0),
    "percentile beside infinity": lambda xp, a: [
        xp.percentile(xp.asarray([1.0, 2.0, INF]), 60, method=method)
        for method in ("lower", "higher", "nearest")
    ],
    "percentile at elements beside infinity": lambda xp, a: [
        xp.percentile(xp.asarray([-INF, 1.0, 2.0, INF]), [0, 33, 67, 100], method=method)
        for method in ("lower", "higher", "nearest")
    ],
    "percentile nearest": lambda xp, a: xp.percentile(a, 33, method="nearest"),
    "percentile midpoint": lambda xp, a: xp.quantile(a, 0.3, method="midpoint"),
    "interp": lambda xp, a: xp.interp(
        a, xp.asarray([-1.0, 0.0, 0.5, 1.0]), xp.asarray([3.0, 1.0, 4.0, 1.0])
    ),
    "interp beyond": lambda xp, a: xp.interp(
        a, xp.asarray([-0.5, 0.5]), xp.asarray([1.0, 2.0]), left=-9.0, right=9.0
    ),
    "interp with a period": lambda xp, a: xp.interp(
        a, xp.asarray([2.5, 0.2, 1.1]), xp.asarray([1.0, 2.0, 5.0]), period=3.0
    ),
    "interp at a point beside infinity": lambda xp, a: xp.interp(
        xp.asarray([0.0, 0.5, 1.0, 1.5, 2.0]), xp.asarray([0.0, 1.0, 2.0]), xp.asarray([0, 1, INF])
    ),
    "interp between infinities": lambda xp, a: xp.interp(
        xp.asarray([0.0, 0.5, 1.0]), xp.asarray([0.0, 1.0]), xp.asarray([INF, INF])
    ),
    "interp from minus infinity": lambda xp, a: xp.interp(
        xp.asarray([0.0, 0.5, 1.0]), xp.asarray([0.0, 1.0]), xp.asarray([-INF, 1.0])
    ),
    "interp beside NaN": lambda xp, a: xp.interp(
        xp.asarray([0.0, 0.5, 1.0, 2.0]), xp.asarray([0.0, 1.0, 2.0]), xp.asarray([NAN, 1.0, NAN])
    ),
    "interp between huge values": lambda xp, a: xp.interp(
        xp.asarray([0.0, 0.25, 0.5, 1.0]), xp.asarray([0.0, 1.0]), xp.asarray([3e38, -3e38])
    ),
    "interp between points far apart": lambda xp, a: xp.interp(
        xp.asarray([-3e38, -1e38, 0.0, 3e38]), xp.asarray([-3e38, 3e38]), xp.asarray([1.0, 2.0])
    ),
    "interp between infinite points": lambda xp, a: xp.interp(
        xp.asarray([-INF, -1.0, 0.0, 1.0, INF]), xp.asarray([-INF, 0.0, INF]), xp.asarray([1, 2, 3])
    ),
    "interp at points that meet": lambda xp, a: xp.interp(
        xp.asarray([0.0, 1.0, 2.0, NAN]), xp.asarray([0, 0, 1, 1]), xp.asarray([1, 2, 3, 4])
    ),
    "gradient": lambda xp, a: xp.gradient(a),
    "gradient with distances": lambda xp, a: xp.gradient(a, 2.0, 0.5),
    "gradient at points": lambda xp, a: xp.gradient(
        a, xp.asarray([0.0, 1.0, 1.5, 3.5, 4.0]), axis=1, edge_order=2
    ),
    "gradient of integers": lambda xp, a: xp.gradient(xp.asarray([1, 4, 9, 16])),
    "trapezoid": lambda xp, a: xp.trapezoid(a, dx=0.5),
    "trapezoid at points": lambda xp, a: xp.trapezoid(a, xp.asarray([0.0, 1.0, 4.0]), axis=0),
    "rot90": lambda xp, a: xp.rot90(a, -3),
    "no numbers": lambda xp, a: [
        f(1, 10, 0, endpoint=end)
        for f in (xp.linspace, xp.logspace, xp.geomspace)
        for end in (True, False)
    ],
    "one number": lambda xp, a: [f(1, 10, 1) for f in (xp.linspace, xp.logspace, xp.geomspace)],
    "geomspace": lambda xp, a: xp.geomspace(1, 256, 9),
    "logspace": lambda xp, a: xp.logspace(2.0, 3.0, num=4, base=2.0),
    "elements below": lambda xp, a: a[xp.tril_indices(3, -1, 5)],
    "elements above": lambda xp, a: a[xp.triu_indices(3, 1, 5)],
    "unravel_index": lambda xp, a: xp.unravel_index(xp.asarray([22, 41, 37]), (7, 6)),
    "unravel one": lambda xp, a: xp.unravel_index(1621, (6, 7, 8, 9)),
    "vdot": lambda xp, a: xp.vdot(a + 1j * a, a * 2j),
    "angle": lambda xp, a: xp.angle(a + 1j * a[::-1], deg=True),
    "angle of reals": lambda xp, a: xp.angle(a),
    "polyval": lambda xp, a: xp.polyval(xp.asarray([3, 0, 1]), 5),
    "polyfit": lambda xp, a: xp.polyfit(
        xp.asarray([0.0, 1, 2, 3, 4, 5]), xp.asarray([0.0, 0.8, 0.9, 0.1, -0.8, -1.0]), 3
    ),
    "select": lambda xp, a: xp.select([a < -0.5, a > 0.5], [a, a**2], 42.0),
    "gcd": lambda xp, a: xp.gcd(xp.asarray([12, -20, 0, 2**40]), 20),
    "lcm": lambda xp, a: xp.lcm(xp.asarray([4, -6, 0]), xp.asarray([6, 4, 5])),
    "norm": lambda xp, a: xp.linalg.norm(a),
    "norm of order": lambda xp, a: xp.linalg.norm(a, np.inf),
    "norm of columns": lambda xp, a: xp.linalg.norm(a, 3, axis=0, keepdims=True),
    "norm of matrices": lambda xp, a: xp.linalg.norm(
        xp.reshape(a, (3, 5, 1)), "nuc", axis=(0, 1), keepdims=True
    ),
    "norm of a vector": lambda xp, a: xp.linalg.norm(a[0], 1),
    "cond": lambda xp, a: xp.linalg.cond(a),
    "cond by another norm": lambda xp, a: xp.linalg.cond(a[:, :3], 1),
    "multi_dot": lambda xp, a: xp.linalg.multi_dot([a[0], a.T, a, a[1]]),
    "lstsq": lambda xp, a: xp.linalg.lstsq(a.T, a[0] * 2, rcond=None),
    "lstsq with columns": lambda xp, a: xp.linalg.lstsq(a.T, a.T[:, :2], rcond=None)[0],
    "lstsq of few": lambda xp, a: xp.linalg.lstsq(a, a[:, 0], rcond=None),
    "unique": lambda xp, a: xp.unique(xp.asarray([2, 1, 2, 5]), True, True, True),
    "unique of a matrix": lambda xp, a: xp.unique(
        xp.asarray([[2, 1], [2, 5]]), return_inverse=True
    ),
    "unique rows": lambda xp, a: xp.unique(
        xp.asarray([[1, 0], [0, 2], [1, 0], [0, 1]]), True, True, True, axis=0
    ),
    "unique columns": lambda xp, a: xp.unique(xp.asarray([[1, 1, 0], [2, 2, 3]]), axis=1),
    "unique with NaN": lambda xp, a: xp.unique(xp.asarray([NAN, 1.0, NAN]), return_counts=True),
    "unique, NaN apart": lambda xp, a: xp.unique(xp.asarray([NAN, 1.0, NAN]), equal_nan=False),
    "unique of nothing": lambda xp, a: xp.unique(a[:0]),
    "unique of booleans": lambda xp, a: xp.unique(a > 0),
    "unique of many": lambda xp, a: xp.unique(
        xp.asarray([5, 3, 5, 1, 3, 5, 8]), return_index=True, return_counts=True
    ),
    "split at indices": lambda xp, a: [
        *xp.split(a, [1, 3], axis=1), *xp.split(a, [2]), *xp.split(a, 5, axis=1)
    ],
    "delete many runs": lambda xp, a: xp.delete(xp.arange(40), xp.arange(0, 40, 2)),
    "delete many of a mask": lambda xp, a: xp.delete(xp.arange(40), xp.arange(40) % 3 == 1),
    "insert several at one place": lambda xp, a: xp.insert(a[0], [2, 2], xp.asarray([7.0, 8.0])),
    "insert behind the last": lambda xp, a: xp.insert(a[0], 5, 9.0),
    "extremes of booleans": lambda xp, a: [
        f(a > 0, axis=1) for f in (xp.max, xp.min, xp.nanmax, xp.nanmin, xp.amax)
    ],
    "bincount of booleans": lambda xp, a: xp.bincount((a > 0)[0]),
    "tril of a vector": lambda xp, a: [xp.tril(a[0]), xp.triu(a[0], 1)],
    "sum over no axes": lambda xp, a: xp.sum(a, axis=()),
    "median of nothing": lambda xp, a: [xp.median(a[:, :0]), xp.median(a[:, :0], axis=1)],
    "norms of nothing": lambda xp, a: [
        xp.linalg.norm(a[0, :0], xp.inf),
        xp.linalg.norm(a[:0], xp.inf),
        xp.linalg.norm(a[:, :0], 1),
    ],
    "cond of zeros": lambda xp, a: [xp.linalg.cond(xp.zeros((2, 2)), p) for p in (None, -2)],
    "lstsq without full rank": lambda xp, a: xp.linalg.lstsq(xp.ones((3, 2)), a[:, :2])[1],
    "lstsq with full rank": lambda xp, a: xp.linalg.lstsq(a[:, :2], a[:, 2])[1],
    "uint64 with int64": lambda xp, a: xp.asarray([2**63], dtype=xp.uint64)
    + xp.asarray([-1], dtype=xp.int64),
}


@pytest.mark.parametrize("name", CALLS)
def test_calls_are_as_in_numpy(name):
    a = RNG.normal(size=(3, 5)).astype(np.float32)
    if name.startswith(("elements", "unique of nothing")):
        a = a[:3]
    same(CALLS[name](tn, tn.asarray(a)), CALLS[name](np, a), close=True)


@pytest.mark.parametrize("name", "nanmean nansum nanprod nanmax nanmin nanstd nanvar".split())
def test_nan_is_left_out(name):
    x = RNG.normal(size=(3, 4)).astype(np.float32)
    x[0, 1] = x[1, :] = NAN
    f, g = getattr(tn, name), getattr(np, name)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")  # NumPy warns of rows of NaN alone
        for axis in (0, 1):
            same(f(tn.asarray(x), axis=axis), g(x, axis=axis), close=True)
    same(f(tn.asarray(x)), g(x), close=True)
    slopes = tn.grad(lambda x: f(x))(tn.asarray(x)).numpy()
    assert np.isfinite(slopes).all() and not slopes[np.isnan(x)].any()


@pytest.mark.parametrize("name", "nanmean nansum nanprod nanmax nanmin nanstd nanvar".split())
@pytest.mark.parametrize("x", [[INF, INF], [1, INF], [INF, -INF], [NAN, INF], [NAN, NAN], [INF]])
def test_infinities_are_not_left_out(name, x):
    x = np.asarray(x, np.float32)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        want = getattr(np, name)(x)
    same(getattr(tn, name)(tn.asarray(x)), want)


def test_points_between_samples_have_slopes():
    """Also at a sample and between equal ones: those of the line to the right."""
    at, points = tn.array([0.0, 1.0, 1.5]), tn.array([0.0, 1.0, 2.0])
    values = tn.array([0.0, 2.0, 2.0])
    by_x, by_values = tn.grad(
        lambda x, fp: tn.sum(tn.interp(x, points, fp)), argnums=(0, 1)
    )(at, values)
    assert by_x.tolist() == [2.0, 0.0, 0.0] and by_values.tolist() == [1.0, 1.5, 0.5]
    slopes = tn.grad(lambda fp: tn.sum(tn.interp(at, points, fp)))(tn.array([0.0, 1.0, INF]))
    assert slopes.tolist() == [1.0, 1.5, 0.5]
    assert tn.grad(lambda q: tn.quantile(values * points, q))(tn.array(0.5)).item() == 4.0


def test_between_two_elements_infinity_is_near():
    """NumPy has NaN here, also at the elements themselves."""
    x = tn.array([-INF, 1.0, 2.0, INF, INF])
    assert tn.quantile(x, [0, 0.125, 0.25, 0.375, 0.5]).tolist() == [-INF, -INF, 1.0, 1.5, 2.0]
    assert tn.quantile(x, [0.625, 0.75, 0.875, 1]).tolist() == [INF] * 4
    assert tn.percentile(x[1:4], 75, method="midpoint").item() == INF


def test_lerp_reaches_its_ends():
    x, y = tn.array([1.0, INF, -INF, INF, 3e38, 1.0]), tn.array([INF, 1.0, INF, INF, -3e38, 2.0])
    for weight, want in [(0, x), (1, y), (0.25, tn.array([INF, INF, NAN, INF, 1.5e38, 1.25]))]:
        np.testing.assert_allclose(tn.lerp(x, y, weight).numpy(), want.numpy(), 1e-6)


def test_types():
    assert tn.histogram(tn.array([1, 2]))[1].dtype == tn.float32
    assert tn.bincount(tn.array([1])).dtype == tn.int64
    assert tn.nanmean(tn.array([1, 2])).dtype == tn.float32
    assert tn.gcd(tn.array([4], dtype="uint8"), 6).dtype == tn.uint8
    assert tn.result_type(tn.uint64, tn.int8) == tn.float64
    assert tn.logspace(0, 1, 3).dtype == tn.float32


# In a compiled function sizes are those of the arguments, or given.
COMPILED = {
    "unique": (
        lambda x: tn.unique(x, True, True, True, size=3),
        lambda x: tn.unique(x, True, True, True),
    ),
    "bincount": (lambda x: tn.bincount(x, length=4), lambda x: tn.bincount(x)),
    "delete": (lambda x: tn.delete(x, [0, 1]), None),
    "insert": (lambda x: tn.insert(x, x[0], 7), None),
    "histogram": (lambda x: tn.histogram(x, 3), None),
    "gcd": (lambda x: tn.gcd(x, 6), None),
    "tril_indices": (lambda x: x[tn.tril_indices(2)[0]], None),
    "expm": (lambda x: tn.linalg.expm(tn.diag(x / 4)), None),
}


@pytest.mark.parametrize("name", COMPILED)
def test_compiled_functions_have_them(name):
    given, plain = COMPILED[name]
    x = tn.array([3, 1, 0, 3])
    want = (plain or given)(x)
    same(tn.compile(given)(x), tn.tree.map(lambda w: w.numpy(), want))


def test_sizes_that_depend_on_values_say_what_to_give():
    for f, hint in [(lambda x: tn.unique(x), "`size`"), (lambda x: tn.bincount(x), "`length`")]:
        with pytest.raises(tn.InvalidValue, match="depends on values") as raised:
            tn.compile(f)(tn.array([1, 2]))
        assert f"give {hint}" in str(raised.value)


def test_a_size_that_is_given_cuts_or_fills():
    x = tn.array([5, 3, 5, 9])
    assert tn.unique(x, size=2).tolist() == [3, 5]
    values, counts = tn.unique(x, return_counts=True, size=5, fill_value=0)
    assert values.tolist() == [3, 5, 9, 0, 0] and counts.tolist() == [1, 2, 1, 0, 0]


BINS = ["auto", "fd", "scott", "rice", "sturges", "sqrt"]


@pytest.mark.parametrize("rule", BINS)
def test_bins_by_a_rule(rule):
    x = np.random.default_rng(5).normal(size=300)
    counts, edges = tn.histogram(tn.asarray(x), rule)
    want = np.histogram(x, rule)
    same(counts, want[0])
    same(edges, want[1], close=True)


@pytest.mark.parametrize("rule", BINS)
@pytest.mark.parametrize("x", [
    np.arange(10), np.arange(40) % 7, np.array([True, False, True]), np.array([5, 5, 5], np.uint8),
    np.float32([0, 1, 1, 2, 0.5]), np.float32([1, 1]), np.float32([]),
])  # fmt: skip
@pytest.mark.parametrize("ends", [None, (0, 1), (1, 1), (-3, 30)])
def test_bins_by_a_rule_are_as_in_numpy(rule, x, ends):
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")  # NumPy counts bool as uint8
        want = np.histogram(x, rule, ends)
    same(tn.histogram(tn.asarray(x), rule, ends), want, close=True)


REFUSED = [
    (lambda: tn.percentile([1.0], [0, -1, 101]), r"percentile: q .* \[0, 100\]: -1", ValueError),
    (lambda: tn.quantile([1.0], tn.array([0.5, NAN])), r"q must lie in \[0, 1\]: nan", ValueError),
    (lambda: tn.quantile([1.0], tn.array(0.75) * 2), r"q must lie in \[0, 1\]: 1.5", ValueError),
    (lambda: tn.cov([[1.0, 2.0]], fweights=[1, -2]), "fweights must be whole .*: -2", ValueError),
    (lambda: tn.cov([[1.0, 2.0]], fweights=[1.5, 1]), "fweights must be whole .*: 1.5", ValueError),
    (lambda: tn.cov([[1.0, 2.0]], aweights=[1.0, -0.5]), "aweights .* negative: -0.5", ValueError),
    (lambda: tn.gradient(tn.ones((3, 3)), axis=(0, -2)), "an axis is given twice", ValueError),
    (lambda: tn.rot90(tn.ones((2, 2)), axes=(2**32, 1)), "axis 4294967296 is out", IndexError),
    (lambda: tn.rot90(tn.ones((2, 2)), axes=(0, 1 - 2**32)), "is out of range", IndexError),
    (lambda: tn.fft.fftn(tn.ones((2, 2)), axes=[2**32]), "axis 4294967296 is out", IndexError),
    (lambda: tn.fft.rfft2(tn.ones((2, 2)), axes=(0, 2**32 + 1)), "is out of range", IndexError),
    (lambda: tn.tensordot(tn.ones(2), tn.ones(2), ([2**32], [0])), "is out of range", IndexError),
    (lambda: tn.tensordot(tn.ones(2), tn.ones(2), ([0], [-(2**32)])), "out of range", IndexError),
    (lambda: tn.histogram([1.0], "auto", weights=[1.0]), "takes no weights", TypeError),
    (lambda: tn.histogram([1.0, INF], "auto"), "the range is not finite: 1 to inf", ValueError),
    (lambda: tn.histogram([1.0, NAN], "fd"), "the range is not finite", ValueError),
    (lambda: tn.insert([1, 2], [1.0], 3), "insert: element type f32", TypeError),
    (lambda: tn.vstack([]), "vstack: no tensors to join", ValueError),
    (lambda: tn.delete([1, 2], 2), "delete: index 2 is out of bounds", IndexError),
    (lambda: tn.delete([1, 2], [True]), "the mask does not fit", ValueError),
    (lambda: tn.insert([1, 2], [[0]], 1), "indices have at most one axis", ValueError),
    (lambda: tn.bincount([-1, 2]), "bincount: a negative number: -1", ValueError),
    (lambda: tn.bincount([1.5]), "bincount", TypeError),
    (lambda: tn.histogram([1.0], 0), "at least one bin is needed: 0", ValueError),
    (lambda: tn.histogram([1.0], "best"), "no rule 'best' for bins; there are auto", ValueError),
    (lambda: tn.percentile([1.0], 101), "percentile: q must lie in \\[0, 100\\]: 101", ValueError),
    (lambda: tn.gradient([1.0]), "gradient: 2 elements are needed along axis 0", ValueError),
    (lambda: tn.gradient([1.0, 2.0], 1.0, 2.0), "2 spacings for 1 axes", ValueError),
    (lambda: tn.interp([1.0], [], []), "there are no sample points", ValueError),
    (lambda: tn.geomspace(-1, 1), "the ends must have one sign", ValueError),
    (lambda: tn.tril_indices(2**62), "tril_indices: too many elements", ValueError),
    (lambda: tn.polyfit([1.0], [1.0], 2**40), "deg must lie in", ValueError),
    (lambda: tn.rot90(tn.ones((2, 2)), axes=(0, 0)), "two different axes are needed", ValueError),
    (lambda: tn.select([], []), "0 conditions and 0 choices", ValueError),
    (lambda: tn.select([tn.array([1])], [1]), "a condition is bool", TypeError),
    (lambda: tn.gcd(1.5, 2), "gcd", TypeError),
    (lambda: tn.vdot([1, 2], [1]), "numbers of elements differ", ValueError),
    (lambda: tn.linalg.multi_dot([tn.ones((2, 3))] * 2), "inner dimensions differ", ValueError),
    (lambda: tn.linalg.norm(tn.ones((2, 2, 2)), 2), "needs one axis or two", ValueError),
    (lambda: tn.linalg.lstsq(tn.ones((2, 2)), tn.ones(3)), "as many rows", ValueError),
    (lambda: tn.linalg.expm(tn.ones((2, 3))), "the last two axes must be equal", ValueError),
    (lambda: tn.unravel_index([5, 6], (2, 3)), "unravel_index: 6 is out of bounds", IndexError),
    (lambda: tn.unravel_index(tn.array([-1]) * 2, (2, 3)), "-2 is out of bounds", IndexError),
    (lambda: tn.insert([1, 2], 3, 1), "insert: index 3 is out of bounds", IndexError),
    (lambda: tn.insert([1, 2], [0, -3], 1), "insert: index -3 is out of bounds", IndexError),
    (lambda: tn.histogram([1.0], 2, (NAN, 1.0)), "the range is not finite: nan to 1", ValueError),
    (lambda: tn.histogram([1.0], 2, (2, 1)), "ends before it begins: 2 to 1", ValueError),
    (lambda: tn.histogram([NAN, 1.0]), "histogram: the range is not finite", ValueError),
    (lambda: tn.histogram([1.0], [0, 2, 1]), "histogram: .* not monotonic", ValueError),
    (lambda: tn.digitize([1.0], [0, 2, 1]), "digitize: .* not monotonic", ValueError),
    (lambda: tn.average([1.0, 2.0], weights=[1, -1]), "the weights add up to 0", ValueError),
    (lambda: tn.tril(1.0), "tril: needs an axis", ValueError),
    (lambda: tn.linalg.norm(tn.ones(0), -np.inf), "norm: no elements", ValueError),
    (lambda: tn.random.normal(2, 3), r"shape=\(2, 3\), or loc=2, scale=3", TypeError),
    (lambda: tn.random.exponential(2, 3.0), "exponential: the second argument", TypeError),
]


# What an op inside refuses has the name of the function that was called.
NAMED = {
    "cond": lambda: tn.linalg.cond(tn.ones(3)),
    "norm": lambda: tn.linalg.norm(tn.ones((2, 2)), 7),
    "nanmax": lambda: tn.nanmax(tn.ones((2, 0)), axis=1),
    "polyfit": lambda: tn.polyfit(tn.ones((2, 2)), tn.ones(2), 1),
    "max": lambda: tn.ones((2, 0)).max(dim=1),
    "column_stack": lambda: tn.column_stack([tn.ones((2, 2)), tn.ones((3, 2))]),
    "multinomial": lambda: tn.multinomial(tn.ones((), dtype="complex64"), 1),
    "uniform": lambda: tn.random.uniform(dtype="int32"),
}


@pytest.mark.parametrize("name", NAMED)
def test_errors_name_the_function_that_was_called(name):
    with pytest.raises(tn.Error) as raised:
        NAMED[name]()
    assert str(raised.value).startswith(f"{name}: "), raised.value
    assert "test_numpy_names.py" in str(raised.value)


def test_an_error_of_another_call_keeps_its_name():
    wrong = tn.take(tn.ones(3), tn.array([3]) + 0)
    with pytest.raises(tn.InvalidIndex, match="take: 3 is out of bounds"):
        tn.nonzero(wrong)


def test_values_are_not_checked_while_tracing():
    x = tn.array([1.0, -1.0])
    assert tn.compile(lambda w: tn.average(x, weights=w))(x).item() == np.inf
    assert tn.vmap(lambda i: tn.unravel_index(i, (2, 3))[1])(tn.array([7])).tolist() == [1]
    assert tn.grad(lambda w: tn.average(x, weights=w))(x + 1).tolist() == [0.0, -1.0]


@pytest.mark.parametrize("call, message, error", REFUSED)
def test_what_is_refused(call, message, error):
    with pytest.raises(error, match=message):
        call()


def exponential(x):
    """By the series of a small part of it, which is squared, in extended precision."""
    wide = np.clongdouble if x.dtype.kind == "c" else np.longdouble
    part, made = x.astype(wide) / 2**10, np.eye(x.shape[-1])
    for k in range(20, 0, -1):
        made = np.eye(x.shape[-1]) + part @ made / k
    for _ in range(10):
        made = made @ made
    return made.astype(complex if x.dtype.kind == "c" else float)


@pytest.mark.parametrize("name", ["float32", "float64", "complex64", "complex128"])
def test_expm(name):
    for size in (0.5, 3.0, 12.0):
        x = size * RNG.normal(size=(4, 3, 3))
        x = (x + 1j * x[::-1] if name.startswith("c") else x).astype(name)
        got, want = tn.linalg.expm(tn.asarray(x)).numpy(), exponential(x)
        norms = np.linalg.norm(x, 1, axis=(-2, -1)), np.linalg.norm(want, axis=(-2, -1))
        error = np.linalg.norm(got - want, axis=(-2, -1))
        assert (error <= 64 * np.finfo(name).eps * (1 + norms[0]) * norms[1]).all()


def test_expm_of_large_matrices():
    """Of a rotation by any angle; NaN where it would take more squarings than allowed."""
    for angle in (0.1, 3.0, 100.0):
        turn = tn.linalg.expm(tn.array([[0.0, -angle], [angle, 0.0]], dtype="float64"))
        want = [[np.cos(angle), -np.sin(angle)], [np.sin(angle), np.cos(angle)]]
        np.testing.assert_allclose(turn.numpy(), want, atol=1e-12)
    assert np.isnan(tn.linalg.expm(tn.eye(2) * 1e9).numpy()).all()


def test_sinc_has_derivatives_at_zero():
    curve = tn.grad(tn.grad(tn.sinc))(tn.array(0.0, dtype="float64")).item()
    assert abs(curve + np.pi**2 / 3) < 1e-12
    assert tn.sinc(tn.arange(1.0, 100.0)).tolist() == [0.0] * 99


def test_random_integers_are_int64():
    assert tn.random.randint(0, 9, (2,)).dtype == tn.int64
    assert tn.random.poisson(2.0, (2,)).dtype == tn.int64
    assert tn.random.categorical(tn.ones(3)).dtype == tn.int64
    assert tn.random.permutation(3).dtype == tn.random.choice(5, (2,)).dtype == tn.int64


def test_interpolate_has_the_layout_of_convolutions():
    x = tn.asarray(RNG.normal(size=(2, 3, 4, 5)).astype(np.float32))
    y = tn.interpolate(x, scale_factor=2, mode="linear")
    assert y.shape == (2, 3, 8, 10)
    last = tn.interpolate(tn.moveaxis(x, 1, -1), scale_factor=2, mode="linear", channels_last=True)
    same(tn.moveaxis(last, -1, 1), y.numpy())
    assert tn.nn.Upsample(scale_factor=2)(x).shape == y.shape


def test_examples_in_the_documentation_run():
    import doctest

    from tenon import linalg, numpy_names

    for module in (linalg, numpy_names):
        assert doctest.testmod(module, extraglobs={"tn": tn}).failed == 0


@pytest.mark.parametrize(
    "shapes",
    [
        ((3,), (3,)),
        ((2, 3), (3,)),
        ((2, 3), (3, 4)),
        ((), (2,)),
        ((2, 3), (4, 3, 5)),
        ((2, 1, 3), (3, 2)),
    ],
)
def test_dot(shapes):
    a, b = (RNG.normal(size=shape).astype(np.float32) for shape in shapes)
    want = np.dot(a, b)
    for made in (tn.dot(a, b), tn.asarray(a).dot(b), np.dot(tn.asarray(a), b)):
        assert isinstance(made, tn.Tensor)
        same(made, want, close=True)
    with pytest.raises(tn.Error, match="matmul"):
        tn.dot(tn.ones((2, 3)), tn.ones((2, 3)))


def test_a_diagonal_by_name_may_be_outside():
    same(tn.triu_indices(3, k=3)[0], np.triu_indices(3, k=3)[0])
    same(tn.tril_indices(3, 1, 4), np.tril_indices(3, 1, 4))
    same(tn.triu_indices(3, 1), np.triu_indices(3, 1))


def test_what_python_asks_of_sequences_and_numbers():
    x = np.array([[1.25, 2.75], [3.5, 4.5]], np.float32)
    t = tn.asarray(x)
    same(list(reversed(t)), list(reversed(x)))
    same(round(t), np.round(x))
    same(round(t, 1), np.round(x, 1))
    same(t[range(1, 2)], x[range(1, 2)])
    same(t[:, range(0)], x[:, range(0)])
    same(t.norm(), np.linalg.norm(x), close=True)
    assert t.to(dtype=tn.float64).dtype == t.to("cpu", tn.float64).dtype == tn.float64


@pytest.mark.parametrize("dtype", [np.int8, np.int16, np.int32, np.int64])
@pytest.mark.parametrize("name", ["gcd", "lcm"])
def test_divisors_of_the_lowest_number(name, dtype):
    low = np.iinfo(dtype).min
    a, b = np.array([low, low, 6, low, 0, low], dtype), np.array([0, 6, low, low, low, 3], dtype)
    same(getattr(tn, name)(a, b), getattr(np, name)(a, b))
