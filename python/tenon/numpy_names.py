"""NumPy functions whose arguments or results do not fit an op: lists, slices, choices."""

from __future__ import annotations

import math

from . import _core

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable, Sequence
    from typing import Any

    from ._core import Tensor


def unique(
    x: Any,
    return_index: bool = False,
    return_inverse: bool = False,
    return_counts: bool = False,
    axis: int | None = None,
    *,
    equal_nan: bool = True,
    size: int | None = None,
    fill_value: complex | None = None,
) -> Any:
    """The distinct elements in ascending order, or the distinct slices along `axis`.

    `return_index` also returns the first position of each value, `return_inverse` the index of the
    value of every element, `return_counts` the number of occurrences. The size depends on the
    values, so `x` is evaluated immediately. In a compiled function, pass the `size` of the result:
    a longer result is truncated, a shorter one is padded with `fill_value`, by default the first
    value.

        >>> tn.unique(tn.array([3, 1, 3]), return_counts=True)
        (tensor([1, 3], dtype=int64), tensor([1, 2], dtype=int64))
        >>> tn.compile(lambda x: tn.unique(x, size=4, fill_value=-1))(tn.array([3, 1, 3]))
        tensor([ 1,  3, -1, -1], dtype=int64)
    """
    made = _core.distinct(x, axis, size, fill_value, equal_nan)
    asked = [True, return_index, return_inverse, return_counts]
    chosen = tuple(part for part, wanted in zip(made, asked) if wanted)
    return chosen if len(chosen) > 1 else chosen[0]


def dot(
    x1: Any,
    x2: Any,
    lhs_contract: int | Sequence[int] | None = None,
    rhs_contract: int | Sequence[int] | None = None,
    lhs_batch: int | Sequence[int] = (),
    rhs_batch: int | Sequence[int] = (),
) -> Tensor:
    """NumPy's product: the inner product of vectors, `x1 @ x2` of matrices; for more axes the sum
    over the last axis of `x1` and the second-to-last axis of `x2`.

    `lhs_contract` and `rhs_contract` select the summed axes, `lhs_batch` and `rhs_batch` the batch
    axes, as in XLA's `dot_general`.

        >>> tn.dot([1, 2, 3], [4, 5, 6]).item()
        32
        >>> tn.dot(tn.ones((2, 5, 3)), tn.ones((2, 4, 3)), 2, 2, lhs_batch=0, rhs_batch=0).shape
        (2, 5, 4)
    """
    if lhs_contract is not None or rhs_contract is not None or lhs_batch != () or rhs_batch != ():
        axes = lhs_contract, rhs_contract, lhs_batch, rhs_batch
        return _core.dot(x1, x2, *axes)  # type: ignore[arg-type]
    x1, x2 = _core.asarray(x1), _core.asarray(x2)
    if x1.ndim == 0 or x2.ndim == 0:
        return _core.multiply(x1, x2)
    if x2.ndim <= 2:
        return _core.matmul(x1, x2)
    return _core.tensordot(x1, x2, [x1.ndim - 1], [x2.ndim - 2])


def tril_indices(n: int, *place: Any, **named: Any) -> Any:
    """The indices on and below diagonal `k` of an n × m matrix: `tril_indices(n, k=0, m=n)`.

    >>> rows, columns = tn.tril_indices(2)
    >>> rows.tolist(), columns.tolist()
    ([0, 1, 1], [0, 0, 1])
    """
    _refuse_sizes("tril_indices", n, *place)
    return _core.tril_indices(n, *place, **named)


def triu_indices(n: int, *place: Any, **named: Any) -> Any:
    """The indices on and above diagonal `k` of an n × m matrix: `triu_indices(n, k=0, m=n)`.

    >>> rows, columns = tn.triu_indices(2)
    >>> rows.tolist(), columns.tolist()
    ([0, 0, 1], [0, 1, 1])
    """
    _refuse_sizes("triu_indices", n, *place)
    return _core.triu_indices(n, *place, **named)


# What `k` comes by, its place or its name, says more than a signature.
for _ours in (tril_indices, triu_indices):
    _ours.__wrapped__ = getattr(_core, _ours.__name__)  # type: ignore[attr-defined]


def _refuse_sizes(name: str, n: Any, k: Any = 0, m: Any = None, *_: Any) -> None:
    """PyTorch has the number of columns second, where a diagonal beyond the matrix says nothing."""
    columns = n if m is None else m
    if all(type(number) is int for number in (n, k, columns)) and k and k >= columns:
        text = f"{name}: diagonal {k} of {n} rows and {columns} columns is outside"
        hint = f"write k={k}; PyTorch's {name}(rows, columns, offset) has the columns as m="
        _core._fail("value", text, hint)


def average(
    x: Any,
    axis: int | Sequence[int] | None = None,
    weights: Any = None,
    returned: bool = False,
    *,
    keepdims: bool = False,
) -> Any:
    """The weighted mean over `axis`; `weights` have the shape of `x` or of the axes.

    `returned` also returns the sum of the weights, or the number of elements without weights.

        >>> tn.average(tn.array([1.0, 2.0, 4.0]), weights=[1, 1, 2])
        tensor(2.75, dtype=float32)
    """
    made = _core.weighted_mean(x, weights=weights, axis=axis, keepdims=keepdims)
    return tuple(made) if returned else made[0]


def delete(x: Any, obj: Any, axis: int | None = None) -> Tensor:
    """`x` without the elements at `obj` along `axis`; without `axis`, `x` is flattened first.

    `obj` is an integer, integers, a slice, or a mask that is true for deleted elements. The size
    depends on the values of `obj`, so it is evaluated immediately.

        >>> tn.delete(tn.array([5, 6, 7, 8]), [1, -1]).tolist()
        [5, 7]
    """
    return _core.delete_elements(x, _places(x, obj, axis), axis)


def insert(x: Any, obj: Any, values: Any, axis: int | None = None) -> Tensor:
    """`x` with `values` inserted before the elements at `obj` along `axis`.

    Without `axis`, `x` is flattened first. `obj` is an integer, integers, a slice, or a mask that
    is true at insertion points. Indices refer to the original `x`, negative ones to its end;
    `values` broadcast and take the type of `x`.

        >>> tn.insert(tn.array([5, 6, 7]), [0, -1], [1, 2]).tolist()
        [1, 5, 6, 2, 7]
    """
    return _core.insert_elements(x, _places(x, obj, axis), values, axis)


def _places(x: Any, obj: Any, axis: int | None) -> Any:
    """`obj`, or the places a slice names along `axis` of `x`."""
    if not isinstance(obj, slice):
        return obj
    x = _core.asarray(x)
    extent = x.size if axis is None else x.shape[axis]
    return _core.arange(*obj.indices(extent), device=x.device)


def gradient(
    f: Any, *varargs: Any, axis: int | Sequence[int] | None = None, edge_order: int = 1
) -> Any:
    """The finite-difference gradient of `f` along its axes: one tensor for one axis, else a tuple.

    `varargs` is empty, one spacing for all axes, or a spacing or coordinates for each. Interior
    differences are central; those at the ends are one-sided, of `edge_order` 1 or 2.

        >>> tn.gradient(tn.array([1.0, 2.0, 4.0, 8.0])).tolist()
        [1.0, 1.5, 3.0, 4.0]
    """
    f = _core.asarray(f)
    axes = range(f.ndim) if axis is None else (axis,) if isinstance(axis, int) else tuple(axis)
    if len({a + f.ndim if a < 0 else a for a in axes}) < len(axes):
        _core._fail("value", f"gradient: an axis is given twice: {axes}")
    if len(varargs) not in (0, 1, len(axes)):
        _core._fail("value", f"gradient: {len(varargs)} spacings for {len(axes)} axes")
    spacings = varargs or (None,)
    if len(spacings) == 1 and len(axes) > 1 and _core.asarray(varargs[0] if varargs else 1).ndim:
        _core._fail("value", f"gradient: coordinates are needed for each of {len(axes)} axes")
    spacings = spacings * len(axes) if len(spacings) == 1 else spacings
    made = tuple(
        _core.slopes(f, spacing=s, axis=a, edge_order=edge_order) for s, a in zip(spacings, axes)
    )
    return made[0] if len(made) == 1 else made


def polyfit(x: Any, y: Any, deg: int, rcond: float | None = None, *, w: Any = None) -> Tensor:
    """The least-squares polynomial of degree `deg` through `y`: coefficients, highest power first.

    `w` weights the residuals before squaring; `y` may have several columns. Singular values not
    above `rcond` times the largest are treated as 0.

        >>> tn.polyfit([0.0, 1.0, 2.0], [1.0, 3.0, 5.0], 1).round(4).tolist()
        [2.0, 1.0]
    """
    return _core.fit_polynomial(x, y, w=w, deg=deg, rcond=rcond)


def select(condlist: Sequence[Any], choicelist: Sequence[Any], default: Any = 0) -> Tensor:
    """Elements of the first choice whose condition holds, else `default`.

    >>> x = tn.arange(5)
    >>> tn.select([x < 2, x > 3], [x, x * 10], -1).tolist()
    [0, 1, -1, -1, 40]
    """
    if len(condlist) != len(choicelist) or not condlist:
        _core._fail(
            "value", f"select: {len(condlist)} conditions and {len(choicelist)} choices do not fit"
        )
    made: Tensor = default
    for condition, choice in zip(reversed(condlist), reversed(choicelist)):
        condition = _core.asarray(condition)
        if condition.dtype != _core.bool:
            _core._fail("type", f"select: a condition is bool, not {condition.dtype.name}")
        made = _core.where(condition, choice, made)
    return made


def histogram(
    x: Any, bins: Any = 10, range: Any = None, density: bool = False, weights: Any = None
) -> tuple[Tensor, Tensor]:
    """The number of elements of `x` in each bin, and the edges of the bins.

    `bins` is their number, between the ends of `range` or the extremes of `x`; or their edges in
    ascending order; or a rule that derives the number from the values, which are evaluated
    immediately: "auto", "fd", "scott", "rice", "sturges" or "sqrt". A bin includes its left edge,
    the last bin includes both. `weights` are summed instead of counting; with `density` the
    integral is 1. Edges exclude `range`, and a rule excludes `weights`.

        >>> counts, edges = tn.histogram(tn.array([1.0, 2.0, 2.0, 5.0]), bins=2)
        >>> counts.tolist(), edges.tolist()
        ([3, 1], [1.0, 3.0, 5.0])
    """
    if isinstance(bins, str):
        if weights is not None:
            _core._fail("type", f"histogram: bins={bins!r} takes no weights; give a number of bins")
        bins = _bin_count(_core.asarray(x), bins, range)
    made = _core.count_in_bins(x, bins=bins, range=range, weights=weights, density=density)
    return made[0], made[1]


def install(tensor: type) -> None:
    """Methods of tensors under the names above."""
    for function in (average, delete, dot, gradient, histogram, insert, unique):
        setattr(tensor, function.__name__, function)


# The width of bins by the number of values, their spread or the distance of their extremes.
_WIDTHS: dict[str, Callable[[Tensor], float]] = {
    "auto": lambda x: min(max(_WIDTHS["fd"](x), _WIDTHS["sqrt"](x) / 2), _WIDTHS["sturges"](x)),
    "sqrt": lambda x: _span(x) / math.sqrt(x.size),
    "sturges": lambda x: _span(x) / (math.log2(x.size) + 1),
    "rice": lambda x: _span(x) / (2 * x.size ** (1 / 3)),
    "scott": lambda x: (24 * math.sqrt(math.pi) / x.size) ** (1 / 3) * _core.std(x).item(),
    "fd": lambda x: 2 * _span(_core.percentile(x, [25, 75])) / x.size ** (1 / 3),
}


def _span(x: Tensor) -> float:
    return float(_core.max(x).item() - _core.min(x).item())


def _bin_count(x: Tensor, rule: str, range: Any) -> int:
    """Return the number of bins of a rule: the range of the bins over the width it chooses."""
    if rule not in _WIDTHS:
        known = ", ".join(_WIDTHS)
        _core._fail("value", f"histogram: no rule {rule!r} for bins; there are {known}")
    x = _core.flatten(x)
    whole = "floating" not in x.dtype.kind
    if whole:
        x = _core.astype(x, _core.float64)
    if range is None and x.size:
        range = _core.min(x).item(), _core.max(x).item()
    low, high = map(float, (0, 1) if range is None else range)
    if low == high:
        low, high = low - 0.5, high + 0.5
    x = x[(x >= low) & (x <= high)]
    width = _WIDTHS[rule](x) if x.size and math.isfinite(high - low) else 0
    if whole and width:
        width = max(width, 1)  # narrower ones would hold no integer
    return math.ceil((high - low) / width) if width else 1
