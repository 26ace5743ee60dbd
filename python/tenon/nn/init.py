"""Initializers: functions of a tensor that return a new one of its shape and type.

They draw from `tn.random`. For a weight [outputs, inputs, kernel axes ...], `fan_in` is inputs
times kernel elements, and `fan_out` is outputs times kernel elements.

    >>> draw = tn.nn.init.he_normal()
    >>> draw(tn.zeros((8, 3, 5, 5))).shape
    (8, 3, 5, 5)
    >>> model = tn.nn.Linear(3, 8).apply(tn.nn.init.uniform(-0.1, 0.1))
"""

from __future__ import annotations

from collections.abc import Callable
from math import ceil, prod, sqrt
from typing import TYPE_CHECKING, Literal, TypeAlias

import tenon as tn

from .. import _core

Initializer: TypeAlias = Callable[[tn.Tensor], tn.Tensor]
Fan: TypeAlias = Literal["fan_in", "fan_out"]


def constant(value: float) -> Initializer:
    """`value` everywhere.

        >>> tn.nn.init.constant(0.5)(tn.zeros(3)).tolist()
        [0.5, 0.5, 0.5]
    """
    return lambda x: tn.full_like(x, value)


def uniform(low: float = 0.0, high: float = 1.0) -> Initializer:
    """Uniform numbers in [low, high).

        >>> tn.nn.init.uniform(2, 3)(tn.zeros((4, 5))).min().item() >= 2
        True
    """
    return lambda x: tn.random.uniform(low, high, x.shape, x.dtype, device=x.device)


def normal(mean: float = 0.0, std: float = 1.0) -> Initializer:
    """Normal numbers.

        >>> tn.nn.init.normal(mean=3, std=0)(tn.zeros(2)).tolist()
        [3.0, 3.0]
    """
    return lambda x: tn.random.normal(x.shape, x.dtype, mean, std, device=x.device)


def identity() -> Initializer:
    """The identity matrix.

        >>> tn.nn.init.identity()(tn.zeros((2, 2))).tolist()
        [[1.0, 0.0], [0.0, 1.0]]
    """

    def draw(x: tn.Tensor) -> tn.Tensor:
        if x.ndim != 2 or x.shape[0] != x.shape[1]:
            _core._fail("value", f"init.identity: expected a square matrix, given {list(x.shape)}")
        return tn.eye(x.shape[0], dtype=x.dtype, device=x.device)

    return draw


def glorot_uniform(gain: float = 1.0) -> Initializer:
    """Uniform numbers with standard deviation `gain * sqrt(2 / (fan_in + fan_out))`.

        >>> abs(tn.nn.init.glorot_uniform()(tn.zeros((3, 3)))).max().item() < 1
        True
    """
    return _scaled("glorot_uniform", _uniform, lambda fans: gain * sqrt(2 / sum(fans)))


def glorot_normal(gain: float = 1.0) -> Initializer:
    """Normal numbers with standard deviation `gain * sqrt(2 / (fan_in + fan_out))`.

        >>> tn.nn.init.glorot_normal()(tn.zeros((3, 3))).shape
        (3, 3)
    """
    return _scaled("glorot_normal", _normal, lambda fans: gain * sqrt(2 / sum(fans)))


def he_uniform(mode: Fan = "fan_in", gain: float = sqrt(2)) -> Initializer:
    """Uniform numbers with standard deviation `gain / sqrt(fan)`; the default gain is for `relu`.

        >>> abs(tn.nn.init.he_uniform()(tn.zeros((3, 6)))).max().item() < 1
        True
    """
    at = _fan_index("he_uniform", mode)
    return _scaled("he_uniform", _uniform, lambda fans: gain / sqrt(fans[at]))


def he_normal(mode: Fan = "fan_in", gain: float = sqrt(2)) -> Initializer:
    """Normal numbers with standard deviation `gain / sqrt(fan)`; the default gain is for `relu`.

        >>> tn.nn.init.he_normal("fan_out")(tn.zeros((8, 3, 5))).shape
        (8, 3, 5)
    """
    at = _fan_index("he_normal", mode)
    return _scaled("he_normal", _normal, lambda fans: gain / sqrt(fans[at]))


def orthogonal(gain: float = 1.0) -> Initializer:
    """`gain` times a random matrix with orthonormal rows or columns, whichever are fewer.

    All axes after the first are flattened.

        >>> w = tn.nn.init.orthogonal()(tn.zeros((2, 3)))
        >>> tn.allclose(w @ w.T, tn.eye(2), atol=1e-6).item()
        True
    """

    def draw(x: tn.Tensor) -> tn.Tensor:
        rows, columns = _matrix_shape("orthogonal", x)
        shape = (max(rows, columns), min(rows, columns))
        square = tn.random.normal(shape, device=x.device)
        q, r = tn.linalg.qr(square)
        q = q * tn.sign(tn.diagonal(r))  # else the signs would not be random
        q = q if rows >= columns else q.T
        return tn.reshape(gain * q, x.shape).astype(x.dtype)

    return draw


def sparse(sparsity: float, mean: float = 0.0, std: float = 1.0) -> Initializer:
    """Normal numbers with a fraction `sparsity` of zeros in each column.

        >>> tn.sum(tn.nn.init.sparse(0.5)(tn.zeros((4, 3))) == 0, axis=0).tolist()
        [2, 2, 2]
    """
    if not 0 <= sparsity <= 1:
        _core._fail("value", f"init.sparse: sparsity must be between 0 and 1, not {sparsity}")

    def draw(x: tn.Tensor) -> tn.Tensor:
        if x.ndim != 2:
            _core._fail("value", f"init.sparse: expected a matrix, given {list(x.shape)}")
        zeros = ceil(sparsity * x.shape[0])
        order = tn.argsort(tn.random.uniform(shape=x.shape, device=x.device), axis=0)
        values = tn.random.normal(x.shape, x.dtype, mean, std, device=x.device)
        return tn.where(order < zeros, 0, values)

    return draw


def _uniform(x: tn.Tensor, std: float) -> tn.Tensor:
    bound = sqrt(3) * std
    return tn.random.uniform(-bound, bound, x.shape, x.dtype, device=x.device)


def _normal(x: tn.Tensor, std: float) -> tn.Tensor:
    return tn.random.normal(x.shape, x.dtype, scale=std, device=x.device)


def _scaled(
    name: str,
    draw: Callable[[tn.Tensor, float], tn.Tensor],
    std: Callable[[tuple[int, int]], float],
) -> Initializer:
    """`draw`, with a deviation that depends on (fan_in, fan_out)."""

    def initializer(x: tn.Tensor) -> tn.Tensor:
        _matrix_shape(name, x)
        kernel = prod(x.shape[2:])
        return draw(x, std((x.shape[1] * kernel, x.shape[0] * kernel)))

    return initializer


def _matrix_shape(name: str, x: tn.Tensor) -> tuple[int, int]:
    if x.ndim < 2:
        _core._fail("value", f"init.{name}: expected at least 2 axes, given {list(x.shape)}")
    return x.shape[0], prod(x.shape[1:])


def _fan_index(name: str, mode: Fan) -> int:
    modes = ("fan_in", "fan_out")
    if mode not in modes:
        _core._fail("value", f"init.{name}: mode must be 'fan_in' or 'fan_out', not {mode!r}")
    return modes.index(mode)


if not TYPE_CHECKING:  # to type checkers it would say that every name exists

    def __getattr__(name: str) -> object:
        from .._advice import missing_name

        raise AttributeError(missing_name(name, globals(), __name__), name=name)
