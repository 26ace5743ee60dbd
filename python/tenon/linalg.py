"""Linear algebra, as in the Python array API standard. Matrices are the last two axes."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

from . import _core
from ._core import (
    Tensor,
    cholesky,
    condition_number,
    cross,
    det,
    eig,
    eigh,
    eigvals,
    eigvalsh,
    expm,
    inv,
    lstsq,
    lu_factor,
    matmul,
    matrix_power,
    matrix_rank,
    matrix_solve,
    matrix_transpose,
    multi_dot,
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
    "cond",
    "condition_number",
    "cross",
    "det",
    "diagonal",
    "eig",
    "eigh",
    "eigvals",
    "eigvalsh",
    "expm",
    "inv",
    "lstsq",
    "lu_factor",
    "matmul",
    "matrix_norm",
    "matrix_power",
    "matrix_rank",
    "matrix_solve",
    "matrix_transpose",
    "multi_dot",
    "norm",
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
    return _core.matrix_norm(x, keepdims, _norm_name(ord))


def _norm_name(ord: float | str) -> Any:
    """A norm of matrices as the ops name it, who check it."""
    return ord if isinstance(ord, str) else f"{ord:g}"


def norm(
    x: object,
    ord: float | str | None = None,
    axis: int | Sequence[int] | None = None,
    keepdims: bool = False,
) -> Tensor:
    """The norm of vectors or matrices, as `numpy.linalg.norm`.

    Without `axis`, `x` is one vector or matrix; one axis selects vectors, two select matrices.
    `ord` defaults to the root of the sum of squares; `vector_norm` and `matrix_norm` describe the
    other values.

        >>> tn.linalg.norm(tn.array([3.0, 4.0]))
        tensor(5., dtype=float32)
    """
    x = _core.asarray(x)
    if ord is None:
        return vector_norm(x, axis, keepdims)
    axes = axis
    if axes is None:
        if x.ndim not in (1, 2):
            _core._fail("value", f"norm: ord={ord!r} needs one axis or two: {x.ndim}")
        axes = tuple(range(x.ndim))
    axes = (axes,) if isinstance(axes, int) else tuple(axes)
    if len(axes) == 1:
        if isinstance(ord, str):
            _core._fail("value", f"norm: ord={ord!r} is a norm of matrices, not of vectors")
        return vector_norm(x, axes, keepdims, ord)
    if len(axes) != 2:
        _core._fail("value", f"norm: axis is one axis or two, not {len(axes)}")
    made = _core.matrix_norm(_core.moveaxis(x, axes, (-2, -1)), keepdims, _norm_name(ord))
    return _core.moveaxis(made, (-2, -1), axes) if keepdims else made


def cond(x: object, p: float | str | None = None) -> Tensor:
    """The condition number of matrices in the norm `p`, as `numpy.linalg.cond`.

    By default (and for 2) it is the ratio of the largest to the smallest singular value; for the
    other norms of `matrix_norm`, the matrices must be square.

        >>> tn.linalg.cond(tn.array([[2.0, 0.0], [0.0, 0.5]]))
        tensor(4., dtype=float32)
    """
    return condition_number(x, "2" if p is None else _norm_name(p))


if not TYPE_CHECKING:  # to type checkers it would say that every name exists

    def __getattr__(name: str) -> object:
        from ._advice import missing_name

        raise AttributeError(missing_name(name, globals(), __name__), name=name)
