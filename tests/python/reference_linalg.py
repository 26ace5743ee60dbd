"""What linear algebra should give, by NumPy."""

import numpy as np


def hermitian(x):
    if x.shape[-1] != x.shape[-2]:
        raise ValueError("not square")
    return (x + np.conj(np.swapaxes(x, -1, -2))) / 2


def cholesky(x, upper=False):
    lower = np.linalg.cholesky(hermitian(x))
    return np.conj(np.swapaxes(lower, -1, -2)) if upper else lower


def triangular_solve(x1, x2, upper=False, transpose=False, unit_diagonal=False):
    a = np.triu(x1) if upper else np.tril(x1)
    if unit_diagonal:
        one = np.eye(a.shape[-1])
        a = a * (1 - one) + one
    x2 = np.broadcast_to(x2, a.shape[:-2] + x2.shape[-2:]) if x2.ndim < a.ndim else x2
    return np.linalg.solve(np.swapaxes(a, -1, -2) if transpose else a, x2)


def vector_norm(x, axis=None, **more):
    axis = tuple(axis) if isinstance(axis, (list, tuple)) else axis
    return np.linalg.vector_norm(x, axis=axis, **more)


def matrix_norm(x, keepdims=False, ord="fro"):
    return np.linalg.matrix_norm(
        x, keepdims=keepdims, ord=ord if ord in ("fro", "nuc") else float(ord)
    )


def matrix_rank(x, rtol=None):
    return np.linalg.matrix_rank(x, rtol=rtol)


LINALG = {
    "cholesky": cholesky,
    "triangular_solve": triangular_solve,
    "det": np.linalg.det,
    "slogdet": np.linalg.slogdet,
    "eigvalsh": lambda x: np.linalg.eigvalsh(hermitian(x)),
    "svdvals": np.linalg.svdvals,
    "vector_norm": vector_norm,
    "matrix_norm": matrix_norm,
    "matrix_rank": matrix_rank,
    "cross": lambda x1, x2, axis=-1: np.cross(x1, x2, axis=axis),
}
# Compared in test_linalg.py: as products of their factors, or relative to the condition.
_FACTORS = "factors are not unique; test_linalg.py multiplies them"
_CONDITION = "the error grows with the condition; test_linalg.py bounds it"
WITHOUT_LINALG = {
    "lu_factor": _FACTORS,
    "qr": _FACTORS,
    "svd": _FACTORS,
    "eigh": _FACTORS,
    "eig": _FACTORS,
    "eigvals": "the order is not defined; test_linalg.py sorts them",
    "solve": _CONDITION,
    "matrix_solve": _CONDITION,
    "inv": _CONDITION,
    "pinv": _CONDITION,
    "matrix_power": _CONDITION,
    "lstsq": _CONDITION,
    "condition_number": _CONDITION,
    "expm": "the error grows with the norm; test_numpy_names.py bounds it",
}
