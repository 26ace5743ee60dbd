"""Linear algebra: factors, conditions, empty and singular matrices, derivatives, batches."""

import numpy as np
import pytest

import flat
import tenon as tn
from derivatives import differences, inner
from op_harness import numpy_of

RNG = np.random.default_rng(11)
la = tn.linalg
TYPES = ["float32", "float64", "complex64", "complex128"]
EPS = {name: np.finfo(name).eps for name in TYPES}


def numbers(*shape, dtype="float64"):
    x = RNG.standard_normal(shape)
    if dtype.startswith("complex"):
        x = x + 1j * RNG.standard_normal(shape)
    return x.astype(dtype)


def regular(*shape, dtype="float64"):
    """Matrices with a moderate condition."""
    return numbers(*shape, dtype=dtype) + (2 * shape[-1] * np.eye(shape[-1])).astype(dtype)


def adjoint(x):
    return np.conj(np.swapaxes(x, -1, -2))


def check(got, want, bound):
    got = got.numpy() if isinstance(got, tn.Tensor) else got
    assert got.shape == np.shape(want)
    assert np.linalg.norm(got - want) <= bound * max(np.linalg.norm(want), 1)


@pytest.mark.parametrize("dtype", TYPES)
@pytest.mark.parametrize(
    "shape", [(1, 1), (3, 3), (2, 4, 4), (2, 0, 3, 3), (0, 0), (2, 0, 0), (33, 33)]
)
def test_square_matrices(dtype, shape):
    bound, n = 100 * EPS[dtype] * max(shape[-1], 1), shape[-1]
    x = regular(*shape, dtype=dtype)
    one = np.broadcast_to(np.eye(n), shape)
    b = numbers(*shape[:-1], 2, dtype=dtype)
    check(la.inv(x).numpy() @ x, one, bound)
    check(x @ la.solve(x, b).numpy(), b, bound)
    check(la.matrix_power(x, -2).numpy() @ x @ x, one, 10 * bound)
    check(la.matrix_power(x, 5), np.linalg.matrix_power(x, 5), bound)
    check(la.det(x / (2 * max(n, 1))), np.linalg.det(x / (2 * max(n, 1))), bound)
    for got, want in zip(la.slogdet(x), np.linalg.slogdet(x)):
        check(got, want, bound)
    definite = x @ adjoint(x)
    lower, upper = la.cholesky(definite).numpy(), la.cholesky(definite, upper=True).numpy()
    check(lower @ adjoint(lower), definite, bound)
    check(upper, adjoint(lower), bound)
    values, vectors = map(numpy_of, la.eigh(definite))
    check(vectors * values[..., None, :] @ adjoint(vectors), definite, bound)
    check(la.eigvalsh(definite), np.linalg.eigvalsh(definite), bound)
    values, vectors = map(numpy_of, la.eig(x))
    check(x @ vectors, vectors * values[..., None, :], bound)
    check(np.linalg.norm(vectors, axis=-2), np.ones(shape[:-1]), bound)
    order = np.lexsort((values.imag.round(3), values.real.round(3)), axis=-1)
    others = la.eigvals(x).numpy()
    again = np.lexsort((others.imag.round(3), others.real.round(3)), axis=-1)
    check(
        np.take_along_axis(others, again, -1), np.take_along_axis(values, order, -1), 10 * bound
    )
    lu, pivots, permutation = map(numpy_of, la.lu_factor(x))
    check(
        (np.tril(lu, -1) + np.eye(n)) @ np.triu(lu),
        np.take_along_axis(x, permutation[..., None], -2),
        bound,
    )
    assert pivots.shape == shape[:-1]


@pytest.mark.parametrize("dtype", TYPES)
@pytest.mark.parametrize("shape", [(3, 3), (5, 2), (2, 5), (2, 4, 3), (0, 3), (3, 0), (0, 2, 2)])
def test_matrices_of_any_shape(dtype, shape):
    bound = 100 * EPS[dtype] * max(*shape, 1)
    x = numbers(*shape, dtype=dtype)
    k = min(shape[-2:])
    for full in (False, True):
        u, s, vh = map(numpy_of, la.svd(x, full_matrices=full))
        check(u[..., :k] * s[..., None, :] @ vh[..., :k, :], x, bound)
        for product in (adjoint(u) @ u, vh @ adjoint(vh)):
            check(product, np.broadcast_to(np.eye(product.shape[-1]), product.shape), bound)
        mode = "complete" if full else "reduced"
        for got, want in zip(la.qr(x, mode=mode), np.linalg.qr(x, mode=mode)):
            check(got, want, bound)
    check(la.svdvals(x), np.linalg.svdvals(x), bound)
    check(la.pinv(x), np.linalg.pinv(x), 10 * bound)
    assert la.matrix_rank(x).tolist() == np.linalg.matrix_rank(x).tolist()
    for ord in ("fro", "nuc", 1, -1, 2, -2, np.inf, -np.inf):
        if x.size == 0 and ord not in ("fro", "nuc"):
            continue
        for keepdims in (False, True):
            want = np.linalg.matrix_norm(x, ord=ord, keepdims=keepdims)
            check(la.matrix_norm(x, ord=ord, keepdims=keepdims), want, bound)


def test_vector_norms():
    x = numbers(3, 4, 2)
    for ord in (0, 1, 2, 3, 0.5, -1, np.inf, -np.inf):
        for axis in (None, 0, -1, (0, 2)):
            want = np.linalg.vector_norm(x, axis=axis, ord=ord, keepdims=True)
            check(la.vector_norm(x, axis=axis, ord=ord, keepdims=True), want, 1e-14)
    zero = [tn.zeros(3, dtype=tn.float64)]
    for ord in (1, 2, 3, np.inf):
        _, back = flat.vjp(
            lambda g: [la.vector_norm(g[0], ord=ord)], zero, [tn.ones((), dtype=tn.float64)]
        )
        assert back[0].tolist() == [0, 0, 0], ord


def test_solve_takes_vectors_and_broadcasts():
    a, b = regular(4, 3, 3), numbers(2, 1, 3, 2)
    check(la.solve(a, b), np.linalg.solve(a, b), 1e-13)
    check(la.solve(a[0], b), np.linalg.solve(a[0], b), 1e-13)
    check(la.solve(a, b[0, 0, :, 0]), np.linalg.solve(a, b[0, 0, :, 0]), 1e-13)
    with pytest.raises(ValueError, match="solve: rows differ"):
        la.solve(a, numbers(2, 2))
    with pytest.raises(ValueError, match="square"):
        la.solve(numbers(2, 3), numbers(2))


def test_failures_are_nan_and_disturb_nobody():
    x = np.stack([np.eye(2), -np.eye(2), 4 * np.eye(2)])
    got = la.cholesky(x).numpy()
    assert np.isnan(got[1]).all()
    np.testing.assert_array_equal(got[[0, 2]], [np.eye(2), 2 * np.eye(2)])
    x[1, 0, 0] = np.nan
    for f in (la.svdvals, la.eigvalsh, la.eigvals):
        got = f(x).numpy()
        assert np.isnan(got[1]).all() and np.isfinite(got[[0, 2]]).all()
    assert not np.isfinite(la.inv(np.ones((2, 2))).numpy()).any()
    assert la.det(np.ones((3, 3))).item() == 0
    assert la.slogdet(np.zeros((2, 2))).logabsdet.item() == -np.inf
    assert la.slogdet(np.zeros((2, 2))).sign.item() == 0


def test_types():
    assert la.inv(tn.asarray([[2, 0], [0, 4]])).tolist() == [[0.5, 0], [0, 0.25]]
    with pytest.raises(TypeError, match="inv: matrices of f16"):
        la.inv(tn.ones((2, 2), dtype=tn.float16))
    with pytest.raises(ValueError, match="det: the last two axes must be equal"):
        la.det(tn.ones((2, 3)))
    with pytest.raises(ValueError, match="qr: at least two axes"):
        la.qr(tn.ones(3))
    assert la.diagonal(tn.ones((2, 3, 4)), offset=1).shape == (2, 3)
    assert la.trace(tn.ones((2, 3, 3))).tolist() == [3, 3]
    assert type(la.svd(tn.ones((2, 2))).Vh) is tn.Tensor


def function_of(values, vectors):
    """A function of a Hermitian matrix: it does not depend on how vectors are scaled."""
    return (vectors * tn.exp(values / 8)[..., None, :].astype(vectors.dtype)) @ tn.conj(vectors.mT)


SQUARE = {
    "inv": la.inv,
    "det": lambda x: la.det(x / 4),
    "slogdet": lambda x: list(la.slogdet(x)),
    "solve": lambda x: la.solve(x, x[..., :2] * 3),
    "cholesky": lambda x: la.cholesky(x @ tn.conj(x.mT)),
    "cholesky upper": lambda x: la.cholesky(x @ tn.conj(x.mT), upper=True),
    "lu_factor": lambda x: la.lu_factor(x)[0],
    "triangular_solve": lambda x: la.triangular_solve(x, x[..., :2], transpose=True),
    "triangular_solve upper": lambda x: la.triangular_solve(
        x, x[..., :2], upper=True, unit_diagonal=True
    ),
    "matrix_power": lambda x: la.matrix_power(x / 8, 3),
    "matrix_power negative": lambda x: la.matrix_power(x, -2),
    "eigvalsh": la.eigvalsh,
    "eigh": lambda x: function_of(*la.eigh(x)),
    "eigvals": lambda x: la.eigvals(x),
    "eig": lambda x: tn.abs(la.eig(x)[1]),
    "pinv": la.pinv,
    "qr": lambda x: list(la.qr(x)),
    "svdvals": la.svdvals,
    "svd": lambda x: [la.svd(x)[0] @ la.svd(x)[2], la.svd(x)[1]],
    "norm 2": lambda x: la.matrix_norm(x, ord=2),
    "norm nuc": lambda x: la.matrix_norm(x, ord="nuc"),
    "norm fro": la.matrix_norm,
    "norm 1": lambda x: la.matrix_norm(x, ord=1),
    "vector_norm": lambda x: la.vector_norm(x, axis=-1),
    "vector_norm 3": lambda x: la.vector_norm(x, axis=-1, ord=3),
    "cross": lambda x: la.cross(x, x[..., :1, :]),
}
RECTANGULAR = {
    "pinv": la.pinv,
    "qr": lambda x: list(la.qr(x)),
    "svdvals": la.svdvals,
    "svd": lambda x: [
        la.svd(x, full_matrices=False)[0] @ la.svd(x, full_matrices=False)[2],
        la.svd(x, full_matrices=False)[1],
    ],
    "norm nuc": lambda x: la.matrix_norm(x, ord="nuc"),
}


def check_derivatives(function, x, tolerance=2e-6):
    """jvp against differences, vjp against jvp, and a batch against a loop."""

    def f(given):
        out = function(given[0])
        return out if isinstance(out, list) else [out]

    t = numbers(*x.shape, dtype=x.dtype.name)
    x, t = [tn.asarray(x)], [tn.asarray(t)]
    forward = flat.jvp(f, x, t)[1]
    change, _ = differences(f, x, t)
    for got, want in zip(forward, change, strict=True):
        np.testing.assert_allclose(numpy_of(got), want, atol=tolerance, rtol=tolerance)
    cts = [tn.asarray(numbers(*y.shape, dtype=y.dtype.name)) for y in forward]
    back = flat.vjp(f, x, cts)[1]
    there, size = inner(cts, forward)
    assert abs(there - inner(back, t)[0]) <= 1e-10 * max(size, 1)
    batch = [tn.stack([x[0], x[0] + t[0] / 8, x[0] - t[0] / 8])]
    for got, *each in zip(
        flat.vmap(f, batch, [0]), *(f([batch[0][i]]) for i in range(3)), strict=True
    ):
        for i in range(3):
            np.testing.assert_allclose(numpy_of(got[i]), numpy_of(each[i]), atol=1e-10)


@pytest.mark.parametrize("dtype", ["float64", "complex128"])
@pytest.mark.parametrize("name", SQUARE)
def test_derivatives_of_square_matrices(name, dtype):
    shift = np.diag([1.0, 3.0, 6.0])  # keeps values apart
    check_derivatives(SQUARE[name], numbers(3, 3, dtype=dtype) / 2 + 2 * shift)
    check_derivatives(SQUARE[name], numbers(2, 3, 3, dtype=dtype) / 2 + 2 * shift)


@pytest.mark.parametrize("dtype", ["float64", "complex128"])
@pytest.mark.parametrize("shape", [(4, 3), (2, 4, 2), (3, 4)])
@pytest.mark.parametrize("name", RECTANGULAR)
def test_derivatives_of_other_matrices(name, shape, dtype):
    x = numbers(*shape, dtype=dtype) + 3 * np.diag(np.arange(1.0, 5))[: shape[-2], : shape[-1]]
    if name == "qr" and shape[-2] < shape[-1]:
        with pytest.raises(NotImplementedError, match="qr: mode .* has no derivative"):
            check_derivatives(RECTANGULAR[name], x)
    else:
        check_derivatives(RECTANGULAR[name], x)


def test_full_matrices_have_no_derivative():
    with pytest.raises(NotImplementedError, match="full_matrices=False"):
        check_derivatives(lambda x: list(la.svd(x)), numbers(4, 3))


def gradient(f, x):
    ct = tn.ones_like(f(tn.asarray(x)))
    return flat.vjp(lambda g: [f(g[0])], [tn.asarray(x)], [ct])[1][0].numpy()


def test_the_determinant_of_a_singular_matrix_has_a_gradient():
    for x in (np.array([[1.0, 2], [2, 4]]), np.zeros((2, 2)), np.diag([1.0, 0, 3])):
        adjugate = np.array(
            [
                [
                    (-1) ** (i + j) * np.linalg.det(np.delete(np.delete(x, i, 0), j, 1))
                    for j in range(len(x))
                ]
                for i in range(len(x))
            ]
        )
        np.testing.assert_allclose(gradient(la.det, x), adjugate, atol=1e-12)
    np.testing.assert_allclose(gradient(la.det, np.zeros((3, 3))), 0, atol=1e-12)


def test_repeated_values_give_finite_gradients():
    one = np.eye(3)
    want = np.exp(1 / 8) / 8 * one
    got = gradient(lambda x: tn.sum(function_of(*la.eigh(x)) * one), one)
    np.testing.assert_allclose(got, want, atol=1e-12)
    np.testing.assert_allclose(gradient(lambda x: tn.sum(la.eigvalsh(x)), one), one, atol=1e-12)
    np.testing.assert_allclose(gradient(lambda x: tn.sum(la.svdvals(x)), one), one, atol=1e-12)
    assert np.isfinite(gradient(lambda x: la.svd(x)[0] @ la.svd(x)[2], one)).all()
