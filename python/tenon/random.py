"""Random numbers: functions of a key, or of the thread's state if no key is given.

The same key gives the same numbers on any machine, at any thread count, however the computation is
split. Keys, bits, `uniform` in [0, 1), `randint`, `bernoulli` and `permutation` equal those of
`jax.random` for the same key; `normal` and others that use functions like a logarithm start from
the same bits and differ in the last digits. Use a key only once: `split` it for more.

A traced function (`vmap`, `scan`, `while_loop`, `cond`) runs once, so a draw from the state inside
it is the same for every example and every step. Pass it keys that were split beforehand. A compiled
function draws new numbers in every call if it captures the state, with
`compile(f, inputs=tn.random.state, outputs=tn.random.state)`.

    >>> key = tn.random.key(0)
    >>> first, second = tn.random.split(key)
    >>> tn.random.randint(0, 10, (5,), key=first).tolist()
    [6, 2, 0, 2, 7]
"""

from __future__ import annotations

import contextlib
import operator
from collections.abc import Iterator, Sequence
from typing import TYPE_CHECKING, SupportsIndex, TypeAlias

from . import _core
from ._core import Device, DType, Tensor

Shape: TypeAlias = "int | Sequence[int]"
Number: TypeAlias = "Tensor | float"


class State:
    """A list with one element: the key of the calling thread. Draws without a key replace it.

        >>> tn.random.seed(7)
        >>> before = tn.random.state[0]
        >>> a = tn.random.uniform()
        >>> tn.random.state[0] = before
        >>> tn.random.uniform().item() == a.item()
        True
    """

    __slots__ = ()

    def __len__(self) -> int:
        return 1

    def __iter__(self) -> Iterator[Tensor]:
        return iter([_core._random_state()])

    def __getitem__(self, index: int) -> Tensor:
        return [_core._random_state()][index]

    def __setitem__(self, index: int, key: Tensor) -> None:
        [None][index]  # as a list of one refuses other places
        _core._set_random_state(key)

    def __tree_flatten__(self) -> tuple[list[Tensor], None]:
        return list(self), None

    @staticmethod
    def __tree_unflatten__(_: None, keys: list[Tensor]) -> list[Tensor]:
        return keys

    def __repr__(self) -> str:
        return repr(list(self))


state = State()


def seed(number: int) -> None:
    """Sets the state of the current thread to `key(number)`."""
    if not isinstance(number, SupportsIndex):
        _core._fail("type", f"seed: an integer is needed, not {number!r}")
    _core._random_seed(operator.index(number) % 2**64)


def key(seed: int | Tensor, *, device: Device | str | None = None) -> Tensor:
    """The key of an integer, uint32[2]; for a tensor of integers, a tensor of keys."""
    made = _core.random_key(seed)
    return made if device is None else made.to_device(device)


def split(key: Tensor, num: Shape = 2) -> Tensor:
    """`num` new keys from one, stacked: [num, 2]. Do not reuse `key` itself.

    Each example of a vmap needs its own key:

        >>> keys = tn.random.split(tn.random.key(0), 3)
        >>> keys.shape
        (3, 2)
    """
    return _core.random_split(key, num)


def fold_in(key: Tensor, data: int | Tensor) -> Tensor:
    """A new key from a key and an integer, such as the index of a step or a layer."""
    return _core.random_fold_in(key, data)


def _or_next(
    key: Tensor | None,
    first: object = None,
    *beside: object,
    device: Device | str | None = None,
) -> Tensor:
    """`key` or the next one of the state, on `device`, or else where the operands are.

    `first` is the first argument, where other libraries have keys."""
    if isinstance(first, Tensor) and first.dtype == _core.uint32 and first.shape[-1:] == (2,):
        _core._fail("type", "random: a key is given by name: key=key")
    if key is None:
        with _core._elsewhere((first, *beside), {}) or contextlib.nullcontext():
            key = _core._next_key()
    return key if device is None else key.to_device(device)


def _check_type(op: str, shape: object, dtype: object) -> None:
    """Numbers in a row are a shape in some libraries, parameters of the distribution in others."""
    if isinstance(dtype, (int, float, Tensor)):
        other = f", or loc={shape}, scale={dtype}" if op in ("normal", "laplace") else ""
        text = f"{op}: the second argument is an element type, not {dtype!r}"
        _core._fail("type", text, f"write shape=({shape}, {dtype}){other}")


def bits(
    shape: Shape = (),
    dtype: DType | str = "uint32",
    key: Tensor | None = None,
    *,
    device: Device | str | None = None,
) -> Tensor:
    """Random bits, as an unsigned integer type."""
    _check_type("bits", shape, dtype)
    return _core.random_bits(_or_next(key, shape, device=device), shape, dtype)


def uniform(
    low: Number = 0,
    high: Number = 1,
    shape: Shape = (),
    dtype: DType | str = "float32",
    key: Tensor | None = None,
    *,
    device: Device | str | None = None,
) -> Tensor:
    """Uniform numbers in [low, high); the bounds broadcast to `shape`.

        >>> tn.random.uniform(shape=(2,), key=tn.random.key(0)).tolist()
        [0.9476670026779175, 0.9785798788070679]
    """
    return _core.random_uniform(_or_next(key, low, high, device=device), low, high, shape, dtype)


def normal(
    shape: Shape = (),
    dtype: DType | str = "float32",
    loc: Number = 0.0,
    scale: Number = 1.0,
    key: Tensor | None = None,
    *,
    device: Device | str | None = None,
) -> Tensor:
    """Normal numbers with mean `loc` and standard deviation `scale`, which broadcast to `shape`."""
    _check_type("normal", shape, dtype)
    key = _or_next(key, shape, loc, scale, device=device)
    return _core.random_normal(key, loc, scale, shape, dtype)


def truncated_normal(
    lower: Number,
    upper: Number,
    shape: Shape | None = None,
    dtype: DType | str = "float32",
    key: Tensor | None = None,
    *,
    device: Device | str | None = None,
) -> Tensor:
    """Standard normal numbers truncated to the interval from `lower` to `upper`."""
    key = _or_next(key, lower, upper, device=device)
    return _core.random_truncated_normal(key, lower, upper, shape, dtype)


def multivariate_normal(
    mean: Tensor,
    cov: Tensor,
    shape: Shape | None = None,
    dtype: DType | str = "float32",
    key: Tensor | None = None,
) -> Tensor:
    """Normal vectors with mean `mean` [..., n] and covariance `cov` [..., n, n].

    `shape` is the shape of the leading axes, by default those of `mean` and `cov`.
    """
    return _core.random_multivariate_normal(_or_next(key, None, mean, cov), mean, cov, shape, dtype)


def gumbel(
    shape: Shape = (),
    dtype: DType | str = "float32",
    key: Tensor | None = None,
    *,
    device: Device | str | None = None,
) -> Tensor:
    """Numbers of the standard Gumbel distribution."""
    _check_type("gumbel", shape, dtype)
    return _core.random_gumbel(_or_next(key, shape, device=device), shape, dtype)


def laplace(
    shape: Shape = (),
    dtype: DType | str = "float32",
    loc: Number = 0.0,
    scale: Number = 1.0,
    key: Tensor | None = None,
    *,
    device: Device | str | None = None,
) -> Tensor:
    """Numbers of the Laplace distribution with location `loc` and scale `scale`."""
    _check_type("laplace", shape, dtype)
    key = _or_next(key, shape, loc, scale, device=device)
    return _core.random_laplace(key, loc, scale, shape, dtype)


def exponential(
    shape: Shape = (),
    dtype: DType | str = "float32",
    scale: Number = 1.0,
    key: Tensor | None = None,
    *,
    device: Device | str | None = None,
) -> Tensor:
    """Numbers of the exponential distribution with mean `scale`."""
    _check_type("exponential", shape, dtype)
    return _core.random_exponential(_or_next(key, shape, scale, device=device), scale, shape, dtype)


def gamma(
    a: Number,
    shape: Shape | None = None,
    dtype: DType | str = "float32",
    key: Tensor | None = None,
    *,
    device: Device | str | None = None,
) -> Tensor:
    """Numbers of the gamma distribution with shape `a` and scale 1. Not differentiable."""
    return _core.random_gamma(_or_next(key, None, a, device=device), a, shape, dtype)


def poisson(
    lam: Number = 1.0,
    shape: Shape | None = None,
    dtype: DType | str = "int64",
    key: Tensor | None = None,
    *,
    device: Device | str | None = None,
) -> Tensor:
    """Counts of the Poisson distribution with rate `lam`."""
    return _core.random_poisson(_or_next(key, None, lam, device=device), lam, shape, dtype)


def bernoulli(
    p: Number = 0.5,
    shape: Shape | None = None,
    key: Tensor | None = None,
    *,
    device: Device | str | None = None,
) -> Tensor:
    """True with probability `p`; the result has the shape of `p` unless `shape` is given."""
    return _core.random_bernoulli(_or_next(key, p, device=device), p, shape)


def categorical(
    logits: Tensor,
    axis: int = -1,
    shape: Shape | None = None,
    num_samples: int | None = None,
    key: Tensor | None = None,
) -> Tensor:
    """Classes sampled with the probabilities softmax(logits) along `axis`, as int64.

    `shape` is the shape of the result: the other axes of `logits`, preceded by any further axes.
    `num_samples` adds a last axis with that many samples instead.
    """
    return _core.random_categorical(_or_next(key, None, logits), logits, axis, shape, num_samples)


def multinomial(
    input: Tensor, num_samples: int, replacement: bool = False, key: Tensor | None = None
) -> Tensor:
    """Classes sampled in proportion to the weights in `input`, along its last axis, as int64.

    Without `replacement`, each class is drawn at most once. Weights must be nonnegative; without
    replacement at least `num_samples` of them must be positive.

        >>> tn.random.multinomial(tn.array([0.0, 3.0, 0.0]), 2, replacement=True).tolist()
        [1, 1]
    """
    return _core.random_multinomial(_or_next(key, None, input), input, num_samples, replacement)


def randint(
    low: int | Tensor,
    high: int | Tensor | Sequence[int] | None = None,
    shape: Shape = (),
    dtype: DType | str = "int64",
    key: Tensor | None = None,
    *,
    device: Device | str | None = None,
) -> Tensor:
    """Integers in [low, high); the bounds broadcast to `shape`.

    With one bound they are in [0, low), and a tuple behind it is the shape, as in PyTorch.

        >>> tn.random.randint(10, (3,), key=tn.random.key(0)).shape
        (3,)
    """
    if isinstance(high, tuple) and isinstance(shape, tuple) and not shape:
        shape, high = high, None
    if high is None:
        low, high = 0, low
    return _core.random_randint(_or_next(key, low, high, device=device), low, high, shape, dtype)


def permutation(
    x: int | Tensor,
    axis: int = 0,
    independent: bool = False,
    key: Tensor | None = None,
    *,
    device: Device | str | None = None,
) -> Tensor:
    """`x` in random order along `axis`; for an integer, a permutation of range(x).

    `independent` permutes every line along the axis differently.
    """
    return _core.random_permutation(_or_next(key, None, x, device=device), x, axis, independent)


def choice(
    x: int | Tensor,
    shape: Shape = (),
    replace: bool = True,
    p: Tensor | None = None,
    axis: int = 0,
    key: Tensor | None = None,
    *,
    device: Device | str | None = None,
) -> Tensor:
    """Elements sampled from `x` along `axis`, or from range(x), with probabilities `p`.

    `shape` replaces the axis. Without `replace` no element is drawn twice.
    """
    return _core.random_choice(_or_next(key, None, x, p, device=device), x, p, shape, replace, axis)


def rand(
    *shape: int,
    dtype: DType | str = "float32",
    key: Tensor | None = None,
    requires_grad: bool = False,
    device: Device | str | None = None,
) -> Tensor:
    """Uniform numbers in [0, 1): `tn.rand(2, 3)`."""
    made = uniform(0, 1, shape, dtype, key, device=device)
    return made.requires_grad_() if requires_grad else made


def randn(
    *shape: int,
    dtype: DType | str = "float32",
    key: Tensor | None = None,
    requires_grad: bool = False,
    device: Device | str | None = None,
) -> Tensor:
    """Standard normal numbers: `tn.randn(2, 3)`."""
    made = normal(shape, dtype, key=key, device=device)
    return made.requires_grad_() if requires_grad else made


def rand_like(
    x: Tensor,
    dtype: DType | str | None = None,
    key: Tensor | None = None,
    requires_grad: bool = False,
    *,
    device: Device | str | None = None,
) -> Tensor:
    """Uniform numbers in [0, 1) with the shape and, unless `dtype` is given, the type of `x`."""
    kind = x.dtype if dtype is None else dtype
    place = x.device if device is None else device
    return rand(*x.shape, dtype=kind, key=key, requires_grad=requires_grad, device=place)


def randn_like(
    x: Tensor,
    dtype: DType | str | None = None,
    key: Tensor | None = None,
    requires_grad: bool = False,
    *,
    device: Device | str | None = None,
) -> Tensor:
    """Standard normal numbers with the shape and, unless `dtype` is given, the type of `x`."""
    kind = x.dtype if dtype is None else dtype
    place = x.device if device is None else device
    return randn(*x.shape, dtype=kind, key=key, requires_grad=requires_grad, device=place)


if not TYPE_CHECKING:  # to type checkers it would say that every name exists

    def __getattr__(name: str) -> object:
        from ._advice import missing_name

        raise AttributeError(missing_name(name, globals(), __name__), name=name)
