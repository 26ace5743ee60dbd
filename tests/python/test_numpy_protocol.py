"""Tensors in NumPy's functions, and in the libraries that call those."""

import math

import numpy as np
import pytest

import tenon as tn

X = np.array([[0.5, -1.5], [2.0, 0.25]], np.float32)


def tensor(x=X):
    return tn.array(x)


def same(got, want):
    """A tensor with the values of NumPy's result, up to rounding."""
    assert isinstance(got, tn.Tensor)
    np.testing.assert_allclose(got.numpy(), want, rtol=1e-6)


UNARY = (
    "absolute arctan cbrt ceil conjugate cos deg2rad exp exp2 expm1 fabs floor isfinite isinf"
    " isnan logical_not negative positive rad2deg reciprocal rint sign signbit sin sinh spacing"
    " square tan tanh trunc"
).split()
BINARY = (
    "add arctan2 copysign divide equal float_power floor_divide fmax fmin fmod greater"
    " greater_equal heaviside hypot less less_equal logaddexp logical_and logical_or logical_xor"
    " maximum minimum multiply nextafter not_equal remainder subtract true_divide"
).split()


@pytest.mark.parametrize("name", UNARY)
def test_ufuncs_of_one_operand(name):
    same(getattr(np, name)(tensor()), getattr(np, name)(X))


@pytest.mark.parametrize("name", BINARY)
def test_ufuncs_of_two_operands(name):
    f = getattr(np, name)
    for a, b in ((tensor(), tensor(X + 1)), (tensor(), X + 1), (X, tensor(X + 1)), (tensor(), 2)):
        arrays = [v.numpy() if isinstance(v, tn.Tensor) else v for v in (a, b)]
        same(f(a, b), f(*arrays))


@pytest.mark.parametrize("name", ["bitwise_and", "left_shift", "right_shift", "gcd", "lcm"])
def test_ufuncs_of_integers(name):
    a, b = np.array([12, 18]), np.array([2, 3])
    same(getattr(np, name)(tn.array(a), b), getattr(np, name)(a, b))
    same(np.invert(tn.array(a)), ~a)


def test_ufuncs_with_two_results():
    for got, want in zip(np.divmod(tensor(), 0.4), np.divmod(X, np.float32(0.4))):
        same(got, want)
    for got, want in zip(np.modf(tensor()), np.modf(X)):
        same(got, want)


def test_arrays_on_the_left_of_operators():
    for got in (X + tensor(), np.float32(2) * tensor(), X @ tensor()):
        assert isinstance(got, tn.Tensor)
    assert (X < tensor(X + 1)).all().item()


def test_methods_of_ufuncs():
    same(np.add.reduce(tensor()), X.sum(0))
    same(np.maximum.reduce(tensor(), axis=1, keepdims=True), X.max(1, keepdims=True))
    same(np.add.reduce(tensor(), axis=None), X.sum())
    same(np.add.accumulate(tensor(), axis=1), X.cumsum(1))
    same(np.multiply.outer(tensor(), X), np.multiply.outer(X, X))
    same(np.add(tensor(), 1, dtype=np.float64), X + 1)


def test_arrays_may_be_the_result():
    out = np.zeros_like(X)
    assert np.sin(tensor(), out=out) is out
    np.testing.assert_array_equal(out, np.sin(X))
    out += tensor()
    np.testing.assert_array_equal(out, np.sin(X) + X)
    with pytest.raises(TypeError, match="sin: out= is not supported: tensors are immutable"):
        np.sin(X, out=tensor())


FUNCTIONS = {
    "sum": {"axis": 1},
    "mean": {"axis": 0, "keepdims": True},
    "max": {},
    "amin": {"axis": -1},
    "prod": {},
    "std": {"ddof": 1},
    "var": {},
    "argmax": {"axis": 1},
    "cumsum": {"axis": 1},
    "sort": {"axis": 0},
    "ravel": {},
    "transpose": {},
    "squeeze": {},
    "flip": {"axis": 1},
    "round": {"decimals": 1},
    "clip": {"a_min": 0, "a_max": 1},
    "trace": {},
    "triu": {"k": 1},
    "median": {},
    "ptp": {"axis": 0},
    "nan_to_num": {},
    "expand_dims": {"axis": 1},
    "repeat": {"repeats": 2, "axis": 0},
    "tile": {"reps": 2},
    "roll": {"shift": 1},
}


@pytest.mark.parametrize("name", FUNCTIONS)
def test_functions(name):
    f, options = getattr(np, name), FUNCTIONS[name]
    np.testing.assert_allclose(np.asarray(f(tensor(), **options)), f(X, **options), rtol=1e-6)


def test_functions_of_several_tensors():
    same(np.concatenate([tensor(), X], axis=1), np.concatenate([X, X], axis=1))
    same(np.stack([tensor(), tensor()]), np.stack([X, X]))
    same(np.where(tensor() > 0, tensor(), 0), np.where(X > 0, X, 0))
    same(np.matmul(tensor(), X), X @ X)
    same(np.einsum("ij,jk->ik", tensor(), tensor()), X @ X)
    same(np.linalg.inv(tensor()), np.linalg.inv(X))
    assert np.allclose(tensor(), X) and np.array_equal(tensor(), X)
    counts, _ = np.histogram(tensor(), bins=2)
    assert counts.sum() == 4


def test_functions_without_a_counterpart_give_what_numpy_gives():
    assert isinstance(np.unwrap(tn.array([1.0, 3.0])), np.ndarray)
    np.testing.assert_allclose(np.kaiser(3, tn.array(1.0)), np.kaiser(3, 1.0))


def test_questions_about_a_type_need_no_value():
    y = tensor() * 2
    assert np.shape(y) == (2, 2) and np.ndim(y) == 2 and not np.iscomplexobj(y) and np.isrealobj(y)
    assert np.iscomplexobj(y + 1j) and not np.isrealobj(y + 1j)
    assert "multiply" in y.graph()


def test_traced_functions_record_what_numpy_is_asked_for():
    def f(x):
        return np.sum(np.sin(x) * np.float32(2), axis=0)

    compiled = tn.compile(f)
    same(compiled(tensor()), f(X))
    assert "sin" in compiled.show("graph", tensor())
    np.testing.assert_allclose(
        tn.grad(lambda x: np.sum(np.tanh(x)))(tensor()).numpy(), 1 - np.tanh(X) ** 2, rtol=1e-5
    )
    same(tn.vmap(np.exp)(tensor()), np.exp(X))
    with pytest.raises(tn.Error):
        tn.compile(lambda x: np.spacing(x))(tensor())


def test_numbers_for_limits_of_axes():
    """What matplotlib asks of `ax.set_xlim(0, t.max())`."""
    low, high = 0, tensor().max()
    assert np.isfinite(low) and np.isfinite(high) and not high == low
    points = np.zeros((2, 2))
    points[:, 0] = [low, high]
    assert points[1, 0] == 2.0
    assert math.isfinite(high) and max(abs(low), abs(high)) == 2.0


def test_matplotlib():
    matplotlib = pytest.importorskip("matplotlib")
    matplotlib.use("Agg")
    import matplotlib.pyplot as plt

    x, y = tn.linspace(0, 1, 20), tn.linspace(0, 1, 20) ** 2
    figure, axes = plt.subplots(2, 3)
    (line,) = axes[0, 0].plot(x, y)
    np.testing.assert_array_equal(line.get_ydata(), y.numpy())
    axes[0, 0].set_xlim(0, x.max())
    axes[0, 0].set_ylim(y.min(), y.max())
    assert axes[0, 0].get_xlim() == (0, 1)
    axes[0, 1].scatter(x, y, c=y, s=y * 10)
    axes[0, 2].hist(y, bins=5)
    axes[1, 0].imshow(tn.reshape(tn.arange(12.0), (3, 4)))
    axes[1, 1].bar(tn.arange(3), tn.arange(3.0), yerr=tn.ones(3))
    axes[1, 2].fill_between(x, y - 0.1, y + 0.1)
    axes[1, 2].axhline(y.mean())
    figure.canvas.draw()
    plt.close(figure)


def test_einops():
    einops = pytest.importorskip("einops")
    x = np.arange(24, dtype=np.float32).reshape(2, 3, 4)
    t = tn.array(x)
    same(einops.rearrange(t, "b h w -> w (b h)"), einops.rearrange(x, "b h w -> w (b h)"))
    same(einops.rearrange([t, t], "n b h w -> b n h w"), np.stack([x, x], 1))
    for how in ("sum", "mean", "max", "min", "prod"):
        same(einops.reduce(t, "b h w -> b w", how), einops.reduce(x, "b h w -> b w", how))
    same(einops.repeat(t, "b h w -> b h w c", c=2), einops.repeat(x, "b h w -> b h w c", c=2))
    same(einops.einsum(t, t, "b h w, b k w -> b h k"), np.einsum("bhw,bkw->bhk", x, x))
    packed, shapes = einops.pack([t, t], "b * w")
    same(packed, einops.pack([x, x], "b * w")[0])
    same(einops.unpack(packed, shapes, "b * w")[1], x)
    flat = tn.compile(lambda x: einops.rearrange(x, "b h w -> b (h w)"))
    same(flat(t), x.reshape(2, 12))
    slope = tn.grad(lambda x: tn.sum(einops.reduce(x, "b h w -> b", "mean")))(t)
    same(slope, np.full(x.shape, 1 / 12))


def test_scikit_learn():
    pytest.importorskip("sklearn")
    from sklearn.cluster import KMeans
    from sklearn.linear_model import LinearRegression, LogisticRegression
    from sklearn.metrics import accuracy_score, mean_squared_error
    from sklearn.model_selection import train_test_split
    from sklearn.preprocessing import StandardScaler

    x = np.random.default_rng(0).standard_normal((40, 3)).astype(np.float32)
    y = x @ np.array([1, -2, 3], np.float32)
    labels = (y > 0).astype(np.int64)
    fitted = LinearRegression().fit(tn.array(x), tn.array(y))
    np.testing.assert_allclose(fitted.coef_, [1, -2, 3], rtol=1e-4)
    assert mean_squared_error(tn.array(y), fitted.predict(tn.array(x))) < 1e-6
    classes = LogisticRegression().fit(tn.array(x), tn.array(labels))
    assert accuracy_score(tn.array(labels), classes.predict(tn.array(x))) > 0.9
    assert StandardScaler().fit_transform(tn.array(x)).shape == (40, 3)
    assert KMeans(2, n_init=1).fit_predict(tn.array(x)).shape == (40,)
    first, second = train_test_split(tn.array(x), test_size=0.25)[:2]
    assert len(first) == 30 and len(second) == 10


def test_jax():
    jax = pytest.importorskip("jax")
    made = jax.numpy.asarray(tensor())
    assert isinstance(made, jax.Array)
    np.testing.assert_array_equal(np.asarray(made), X)


V = np.array([3.0, 1.0, 2.0], np.float32)


@pytest.mark.parametrize(
    "call",
    [
        lambda x, v: np.sort(x, axis=None),
        lambda x, v: np.argsort(x, axis=None),
        lambda x, v: np.concatenate([x, x], axis=None),
        lambda x, v: np.sort(v, kind="stable"),
        lambda x, v: np.dot(v, v),
        lambda x, v: np.dot(x, x),
        lambda x, v: np.dot(v, np.float32(2)),
        lambda x, v: np.dot(v.reshape(1, 1, 3), np.ones((2, 3, 2), np.float32)),
        lambda x, v: np.where(v > 1)[0],
        lambda x, v: np.where(v > 1, v, 0),
        lambda x, v: np.clip(v, 1, 2),
        lambda x, v: np.clip(v, None, 2),
        lambda x, v: np.std(v, ddof=1),
        lambda x, v: np.mean(v, dtype=np.float64),
        lambda x, v: np.split(v, 3)[2],
        lambda x, v: np.split(v, [1])[1],
        lambda x, v: np.abs(v > 1),
    ],
)
def test_arguments_of_numpy_run_ops(call):
    got, want = call(tensor(), tensor(V)), call(X, V)
    same(got, want)
    assert got.shape == want.shape and got.dtype.name == want.dtype.name


def test_types_that_ops_refuse_run_on_arrays():
    v = tensor(V)
    assert np.max(v * 1j) == np.max((v * 1j).numpy())
    with pytest.raises(tn.Error, match="max: element type c"):
        tn.compile(lambda x: np.max(x * 1j))(v)


@pytest.mark.parametrize("code", ["i8", "u8", "f4", "f2", "i1", "c8"])
def test_names_of_types_mean_what_they_mean_in_numpy(code):
    x = tn.array([1.0, 2.0, 4.0])
    want = np.dtype(code).name
    for made in (np.sum(x, dtype=code), np.zeros_like(x, dtype=code), np.add.reduce(x, dtype=code)):
        assert isinstance(made, tn.Tensor) and made.dtype.name == want
    with pytest.raises(tn.InvalidType, match=f"(?s)not an element type.*in NumPy it is {want}"):
        tn.zeros(2, dtype=code)


@pytest.mark.parametrize(
    "call",
    [
        lambda x: np.pad(x, 1, mode="minimum"),
        lambda x: np.pad(x, 1, "maximum"),
        lambda x: np.linalg.qr(x, mode="r"),
        lambda x: np.mean(x, dtype="f2"),
        lambda x: np.mean(x, dtype=int),
        lambda x: np.std(x, dtype="i8"),
    ],
)
def test_choices_that_ours_has_not_run_on_arrays(call):
    x = np.array([[1.0, 2.0], [3.0, 5.0]], np.float32)
    made, want = np.asarray(call(tn.asarray(x))), np.asarray(call(x))
    assert made.dtype == want.dtype and np.allclose(made, want)


def test_a_choice_that_numpy_has_not_either_is_its_error():
    with pytest.raises(ValueError, match="nonsense"):
        np.pad(tn.ones(2), 1, mode="nonsense")
