"""Linear algebra, as in the Python array API standard. Matrices are the last two axes."""

from typing import TYPE_CHECKING

from . import _core
from ._core import (
    Tensor,
    cholesky,
    cross,
    det,
    eig,
    eigh,
    eigvals,
    eigvalsh,
    inv,
    lu_factor,
    matmul,
    matrix_power,
    matrix_rank,
    matrix_solve,
    matrix_transpose,
    outer,
    pinv,
    qr,
    slogdet,
    solve,
    svd,
    svdvals,
    tensordot,
    triangular_solve,
    vecdot,
    vector_norm,
)

__all__ = [
    "cholesky",
    "cross",
    "det",
    "diagonal",
    "eig",
    "eigh",
    "eigvals",
    "eigvalsh",
    "inv",
    "lu_factor",
    "matmul",
    "matrix_norm",
    "matrix_power",
    "matrix_rank",
    "matrix_solve",
    "matrix_transpose",
    "outer",
    "pinv",
    "qr",
    "slogdet",
    "solve",
    "svd",
    "svdvals",
    "tensordot",
    "trace",
    "triangular_solve",
    "vecdot",
    "vector_norm",
]


def diagonal(x: object, /, *, offset: int = 0) -> Tensor:
    """The diagonals of the matrices in the last two axes, as the last axis."""
    return _core.diagonal(x, offset, -2, -1)


def trace(x: object, /, *, offset: int = 0, dtype: object = None) -> Tensor:
    """Sums of the diagonals of the matrices in the last two axes."""
    return _core.trace(x, offset, -2, -1, dtype)


def matrix_norm(x: object, /, *, keepdims: bool = False, ord: float | str = "fro") -> Tensor:
    """Norms of the matrices in the last two axes: `ord` is `fro`, `nuc`, ±1, ±2 or ±inf."""
    return _core.matrix_norm(x, keepdims, ord if isinstance(ord, str) else f"{ord:g}")


if not TYPE_CHECKING:  # to type checkers it would say that every name exists

    def __getattr__(name: str) -> object:
        from ._advice import missing_name

        raise AttributeError(missing_name(name, globals(), __name__), name=name)
