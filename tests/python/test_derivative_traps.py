"""Derivatives where formulas break: ties, kinks, zeros, infinities, constants, complex numbers.

Values are exact: what the rule should give is known at these points.
"""

import numpy as np
import pytest

import flat
import tenon as tn
from op_harness import numpy_of

INF = float("inf")


def gradients(f, *primals, ct=1.0):
    """For the cotangent `ct` everywhere. The tangent `ct` must give the same, in each operand."""
    primals = [x if isinstance(x, tn.Tensor) else tn.array(x, tn.float32) for x in primals]
    got = flat.vjp(lambda x: [f(*x)], primals, [tn.full_like(f(*primals), ct)])[1]
    for k, g in enumerate(got):
        alone = lambda x, k=k: [f(*primals[:k], *x, *primals[k + 1 :])]
        forward = flat.jvp(alone, [primals[k]], [tn.full_like(primals[k], ct)])[1][0]
        np.testing.assert_array_equal(numpy_of(forward), numpy_of(g))
    return [numpy_of(g).tolist() for g in got]


def gradient(f, x):
    return gradients(f, x)[0]


def second(f, x):
    x = tn.array(x, tn.float32)
    ones = tn.ones_like(x)
    first = lambda v: flat.vjp(lambda u: [f(u[0])], v, [ones])[1]
    return numpy_of(flat.vjp(first, [x], [ones])[1][0]).tolist()


# --- symbolic zeros


@pytest.mark.parametrize(
    "op", [tn.floor, tn.ceil, tn.trunc, tn.round, tn.sign, tn.stop_gradient, lambda x: x // 2]
)
def test_steps_have_gradient_zero_even_beside_infinities(op):
    assert gradient(lambda x: op(x) * INF, [-1.5, 0.0, 2.0]) == [0, 0, 0]


def test_through_an_integer_the_gradient_is_zero():
    assert gradient(lambda x: x.astype(tn.int32).astype(tn.float32) * x, [2.5]) == [2]


def test_bits_have_gradient_zero():
    assert gradient(lambda x: tn.bitcast(tn.bitcast(x, tn.int32), tn.float32), [2.5]) == [0]


# --- selection


def test_the_branch_not_taken_gets_zero():
    got = gradients(lambda a, b: tn.where(tn.array([True, False]), a, b), [1, 2], [3, 4], ct=INF)
    assert got == [[INF, 0], [0, INF]]


def test_where_with_a_safe_operand():
    def safe_sqrt(x):
        positive = x > 0
        return tn.where(positive, tn.sqrt(tn.where(positive, x, 1)), 0)

    assert gradient(safe_sqrt, [0.0, 4.0]) == [0, 0.25]
    assert second(safe_sqrt, [0.0, 4.0]) == [0, -1 / 32]


@pytest.mark.parametrize("op, low", [(tn.maximum, [0, 0.5, 1]), (tn.minimum, [1, 0.5, 0])])
def test_ties_are_split(op, low):
    assert gradients(op, [1, 2, 3], [2, 2, 2]) == [low, [1 - v for v in low]]
    assert gradients(op, [INF, -INF], [INF, -INF]) == [[0.5, 0.5], [0.5, 0.5]]


def test_the_loser_of_a_maximum_gets_zero_times_nothing():
    assert gradients(tn.maximum, [1], [2], ct=INF) == [[0], [INF]]


def test_clip_splits_at_its_bounds():
    assert gradient(lambda x: tn.clip(x, -1, 1), [-2, -1, 0, 1, 2]) == [0, 0.5, 1, 0.5, 0]


# --- kinks


KINKS = {
    "abs": (tn.abs, [-1, 0, 1]),
    "relu": (tn.relu, [0, 0, 1]),
    "leaky_relu": (lambda x: tn.leaky_relu(x, 0.25), [0.25, 0.25, 1]),
    "elu": (lambda x: tn.elu(x, 2.0), [None, 2, 1]),
    "softsign": (tn.softsign, [0.25, 1, 0.25]),
    "copysign": (lambda x: tn.copysign(x, -3.0), [1, 0, -1]),
    "square of abs": (lambda x: tn.abs(x) ** 2, [-2, 0, 2]),
}


@pytest.mark.parametrize("name", KINKS)
def test_slopes_at_a_kink(name):
    f, want = KINKS[name]
    got = gradient(f, [-1.0, 0.0, 1.0])
    assert [g for g, w in zip(got, want) if w is not None] == [w for w in want if w is not None]


def test_slopes_at_the_bounds_of_activations():
    assert gradient(tn.relu6, [-1, 0, 3, 6, 7]) == [0, 0, 1, 0, 0]
    assert gradient(tn.hard_tanh, [-2, -1, 0, 1, 2]) == [0, 0, 1, 0, 0]
    assert gradient(tn.hardswish, [-4, -3, 0, 3, 4]) == [0, 0, 0.5, 1, 1]


# --- powers and roots


def test_powers_known_while_recording():
    x = [-2.0, 0.0, 3.0]
    assert gradient(lambda v: v**0, x) == [0, 0, 0]
    assert gradient(lambda v: v**1, x) == [1, 1, 1]
    assert gradient(lambda v: v**2, x) == [-4, 0, 6]
    assert gradient(lambda v: v**3, x) == [12, 0, 27]
    assert gradient(lambda v: v**-1, [-2.0, 4.0]) == [-0.25, -0.0625]
    assert second(lambda v: v**2, x) == [2, 2, 2]
    assert second(lambda v: v**3, x) == [-12, 0, 18]


def test_powers_in_a_tensor():
    x, y = [0.0, 0.0, 0.0, -2.0, -2.0, 5.0], [0.0, 1.0, 2.0, 3.0, 2.0, 0.0]
    in_base = gradients(lambda v: v ** tn.array(y, tn.float32), x)[0]
    assert in_base == [0, 1, 0, 12, -4, 0]
    base = tn.array([0.0, 0.0, 0.0, 1.0], tn.float32)
    assert gradient(lambda v: base**v, [-1, 0, 2, 3]) == [0, 0, 0, 0]


def test_roots_at_zero_are_infinitely_steep():
    assert gradient(tn.sqrt, [0.0, 4.0]) == [INF, 0.25]
    assert gradient(tn.cbrt, [0.0]) == [INF]


def test_lengths_and_angles_at_the_origin_are_flat():
    assert gradients(tn.hypot, [0.0, 3.0], [0.0, 4.0]) == [
        pytest.approx([0, 0.6]),
        pytest.approx([0, 0.8]),
    ]
    assert gradients(tn.atan2, [0.0, 0.0], [0.0, 2.0]) == [[0, 0.5], [0, 0]]
    assert np.isfinite(second(lambda x: tn.hypot(x, x), [0.0])).all()
    tiny, huge = gradients(tn.atan2, [0.0, 0.0], [2.0**-90, 2.0**90])[0]
    assert (tiny, huge) == (2.0**90, 2.0**-90)


# --- quotients


def test_remainders():
    assert gradients(lambda x, y: x % y, [7, -7], [2, 2]) == [[1, 1], [-3, 4]]
    assert gradients(tn.fmod, [7, -7], [2, 2]) == [[1, 1], [-3, 3]]
    assert gradients(lambda x, y: tn.divmod(x, y)[0], [7.0], [2.0]) == [[0], [0]]


def test_division_by_zero_leaves_the_other_operand_alone():
    assert gradients(lambda x, y: x / y, [6.0], [3.0])[1] == pytest.approx([-2 / 3])
    assert gradients(lambda x, y: x / y, [1.0], [0.0])[0] == [INF]


# --- infinities


def test_logaddexp_of_infinities():
    both = gradients(tn.logaddexp, [-INF, -INF, 0.0, INF], [-INF, 0.0, -INF, 0.0])
    assert both == [[0, 0, 1, 1], [0, 1, 0, 0]]
    assert second(lambda x: tn.logaddexp(x, x), [-INF]) == [0]


def test_nan_to_num_stops_what_it_replaces():
    assert gradient(tn.nan_to_num, [float("nan"), INF, -INF, 2.0]) == [0, 0, 0, 1]


LARGE = [-1e4, 1e4]
SATURATED = {
    "sigmoid": (0, 0),
    "log_sigmoid": (1, 0),
    "softplus": (0, 1),
    "tanh": (0, 0),
    "silu": (0, 1),
    "gelu": (0, 1),
    "gelu_tanh": (0, 1),
    "mish": (0, 1),
    "elu": (0, 1),
    "celu": (0, 1),
    "hardswish": (0, 1),
    "erf": (0, 0),
}


@pytest.mark.parametrize("name", SATURATED)
@pytest.mark.parametrize("dtype", [tn.float32, tn.float16, tn.bfloat16])
def test_activations_far_out(name, dtype):
    op = getattr(tn, name)
    x = tn.array(LARGE, dtype)
    got = flat.vjp(lambda v: [op(v[0])], [x], [tn.ones_like(x)])[1][0]
    assert numpy_of(got).tolist() == list(SATURATED[name])


@pytest.mark.parametrize("name", [*SATURATED, "selu", "softsign", "leaky_relu"])
def test_second_derivatives_far_out_are_zero(name):
    assert second(getattr(tn, name), LARGE) == pytest.approx([0, 0], abs=1e-11)


def test_selu_far_out():
    assert gradient(tn.selu, LARGE) == pytest.approx([0, 1.0507009873554805], abs=2e-7)


# --- special functions


def test_derivatives_of_lgamma():
    euler, x = 0.5772156649015329, tn.array([1.0, 2.0], tn.float64)
    chain = [lambda v: [tn.lgamma(v[0])]]
    for _ in range(3):
        before = chain[-1]
        chain.append(lambda v, f=before: flat.vjp(f, v, [tn.ones_like(x)])[1])
    values = [numpy_of(f([x])[0]) for f in chain[1:]]
    zeta3 = 1.2020569031595942
    np.testing.assert_allclose(values[0], [-euler, 1 - euler], rtol=4e-15)
    np.testing.assert_allclose(values[1], [np.pi**2 / 6, np.pi**2 / 6 - 1], rtol=4e-15)
    np.testing.assert_allclose(values[2], [-2 * zeta3, -2 * zeta3 + 2], rtol=4e-15)


def test_polygamma_by_reflection():
    got = numpy_of(tn.polygamma(tn.array([-0.5, -1.5, -2.5], tn.float64)))
    psi_half = -0.5772156649015329 - 2 * np.log(2)
    np.testing.assert_allclose(got, psi_half + np.array([2, 8 / 3, 46 / 15]), atol=2e-15)
    assert numpy_of(tn.polygamma(tn.array([0.0, -1.0]), 1)).tolist() == [INF, INF]
    assert np.isnan(numpy_of(tn.digamma(tn.array([-1.0])))).all()


# --- complex numbers: <a, b> = Re(sum a*b), so gradients are not conjugated


Z = 3 + 4j


@pytest.mark.parametrize(
    "f, want",
    [
        (tn.abs, np.conj(Z) / abs(Z)),
        (tn.real, 1),
        (tn.imag, -1j),
        (lambda z: tn.real(tn.conj(z) * z), 2 * np.conj(Z)),
        (lambda z: tn.real(z * z), 2 * Z),
        (lambda z: tn.real(tn.sign(z)), 4 * (4 + 3j) / 125),
        (lambda z: tn.real(z**2), 2 * Z),
        (lambda z: tn.real(tn.round(z)), 0),
    ],
)
def test_gradients_of_complex_numbers(f, want):
    z = tn.array([Z], tn.complex128)
    got = flat.vjp(lambda v: [f(v[0])], [z], [tn.ones(1, dtype=tn.float64)])[1][0]
    np.testing.assert_allclose(numpy_of(got), [want], rtol=1e-15)


def test_the_magnitude_of_complex_zero_is_flat():
    z = tn.array([0j], tn.complex64)
    for f in (tn.abs, lambda z: tn.real(tn.sign(z))):
        got = flat.vjp(lambda v: [f(v[0])], [z], [tn.ones(1)])[1][0]
        assert numpy_of(got).tolist() == [0]


def test_a_real_operand_gets_a_real_gradient():
    x = tn.array([2.0])
    got = flat.vjp(lambda v: [tn.real(v[0] * 1j * 1j)], [x], [tn.ones(1)])[1][0]
    assert got.dtype == tn.float32 and numpy_of(got).tolist() == [-1]
    parts = flat.vjp(
        lambda v: [tn.make_complex(v[0], v[1])], [x, x], [tn.array([5 + 7j], tn.complex64)]
    )[1]
    assert [numpy_of(g).tolist() for g in parts] == [[5], [-7]]


# --- types


def test_casts_give_back_the_type():
    for narrow in (tn.float16, tn.bfloat16, tn.float64):
        x = tn.array([1.5], narrow)
        got = flat.vjp(lambda v: [v[0].astype(tn.float32)], [x], [tn.ones(1)])[1][0]
        assert got.dtype == narrow and numpy_of(got).tolist() == [1]


@pytest.mark.parametrize(
    ("name", "point", "direction"),
    [
        (name, complex(*point), direction)
        for name, points, direction in [
            ("asin", [(2, 0.0), (2, -0.0), (-2, 0.0), (-2, -0.0)], 1),
            ("acos", [(2, 0.0), (2, -0.0), (-2, 0.0), (-2, -0.0)], 1),
            ("acosh", [(0.5, 0.0), (0.5, -0.0), (-2, 0.0), (-2, -0.0)], 1),
            ("atanh", [(2, 0.0), (2, -0.0), (-2, 0.0), (-2, -0.0)], 1),
            ("asinh", [(0.0, 2), (-0.0, 2), (0.0, -2), (-0.0, -2)], 1j),
            ("atan", [(0.0, 2), (-0.0, 2), (0.0, -2), (-0.0, -2)], 1j),
            ("log", [(-2, 0.0), (-2, -0.0)], 1),
            ("sqrt", [(-2, 0.0), (-2, -0.0)], 1),
        ]
        for point in points
    ],
)
def test_slopes_on_branch_cuts_are_those_of_the_side_the_value_is_on(name, point, direction):
    f, h = getattr(tn, name), 1e-6

    def at(t):
        along = (point.real + t, point.imag) if direction == 1 else (point.real, point.imag + t)
        return f(tn.asarray(np.array(complex(*along)))).numpy()

    _, slope = tn.jvp(f, [tn.asarray(np.array(point))], [tn.asarray(np.array(complex(direction)))])
    np.testing.assert_allclose(slope.numpy(), (at(h) - at(-h)) / (2 * h), atol=1e-8)
