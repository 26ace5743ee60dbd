"""Functions that JAX does not have. Those of NumPy's prelude say `jnp` for `np`."""
import itertools
import math

import jax.numpy as jnp
from jax import lax


def _complex(real, imag):
    return lax.complex(*jnp.broadcast_arrays(real, imag))


def _to_integer(x, dtype):
    """Without the fraction, limited to what the type holds; NaN is 0."""
    ends = jnp.iinfo(dtype)
    inside = (x < ends.max) & (x > ends.min)
    made = jnp.where(inside, jnp.trunc(x), 0).astype(dtype)
    made = jnp.where(x >= ends.max, jnp.array(ends.max, dtype), made)
    return jnp.where(x <= ends.min, jnp.array(ends.min, dtype), made)


def _integer_quotient(x, y):
    """Rounded towards zero; 0 where y is 0."""
    return jnp.where(y == 0, 0, lax.div(*jnp.broadcast_arrays(x, jnp.where(y == 0, 1, y))))


def _integer_remainder(x, y):
    """With the sign of x; 0 where y is 0."""
    return jnp.where(y == 0, 0, lax.rem(*jnp.broadcast_arrays(x, jnp.where(y == 0, 1, y))))


def _gelu_slope(x):
    density = jnp.exp(x * x * -0.5) * 0.3989422804014327
    return lax.erfc(x * -0.7071067811865476) * 0.5 + x * density


def _shift_left(x, count):
    inside = (count >= 0) & (count < 8 * x.dtype.itemsize)
    return jnp.where(inside, x << jnp.where(inside, count, 0), 0)


def _shift_right(x, count):
    bits = 8 * x.dtype.itemsize
    inside = (count >= 0) & (count < bits)
    beyond = x >> (bits - 1) if jnp.issubdtype(x.dtype, jnp.signedinteger) else jnp.zeros_like(x)
    return jnp.where(inside, x >> jnp.where(inside, count, 0), beyond)


def _windows(x, size, step, dilation):
    """The windows over the last axes: all places, then all elements."""
    first = x.ndim - len(size)
    for k, (n, s, d) in enumerate(zip(size, step, dilation)):
        places = (x.shape[first + k] - (n - 1) * d - 1) // s + 1
        at = s * jnp.arange(places)[:, None] + d * jnp.arange(n)
        x = jnp.moveaxis(jnp.take(x, at, axis=first + k), first + k + 1, -1)
    return x


from numpy_prelude import _layer_norm, _rms_norm, _attention, _argsort, _sort


def _top_k(x, k, axis):
    order = lax.slice_in_dim(_argsort(x, axis, True), 0, k, axis=axis)
    return jnp.take_along_axis(x, order, axis), order


def _cumulative(x, axis, mode, reverse, exclusive):
    """Running sums, products or extremes, from the end if asked, without the element itself."""
    x = jnp.flip(x, axis) if reverse else x
    if exclusive and x.shape[axis]:
        low, high = -jnp.inf, jnp.inf
        if not jnp.issubdtype(x.dtype, jnp.inexact):
            low, high = jnp.iinfo(x.dtype).min, jnp.iinfo(x.dtype).max
        start = {"sum": 0, "prod": 1, "max": low, "min": high}[mode]
        first = jnp.full_like(lax.slice_in_dim(x, 0, 1, axis=axis), start)
        x = jnp.concatenate([first, lax.slice_in_dim(x, 0, -1, axis=axis)], axis)
    fold = {"sum": lax.cumsum, "prod": lax.cumprod, "max": lax.cummax, "min": lax.cummin}[mode]
    made = fold(x, axis)
    return jnp.flip(made, axis) if reverse else made


def _lu_factor(x):
    """L below and U on and above the diagonal; pivots, and the order of rows that they make."""
    lu, pivots, order = lax.linalg.lu(x)
    return lu, pivots.astype(jnp.int64), order.astype(jnp.int64)


def _solve_triangular(a, b, upper, transpose, unit_diagonal):
    return lax.linalg.triangular_solve(
        a, b, left_side=True, lower=not upper, transpose_a=transpose, unit_diagonal=unit_diagonal
    )


def _searchsorted(x, values, side, batch_dims, sorter=None):
    x = x if sorter is None else jnp.take_along_axis(x, sorter, -1)
    search = lambda x, values: jnp.searchsorted(x, values, side=side).astype(jnp.int64)
    for _ in range(batch_dims):
        search = jax.vmap(search)
    return search(x, values)


def _places(x, indices, axes, batch_dims):
    """x with the indexed axes after those of the batch, and an index for each of both."""
    at = [i.astype(jnp.int64) for i in jnp.broadcast_arrays(*indices)]
    shape = at[0].shape
    at = [lax.broadcasted_iota(jnp.int64, shape, k) for k in range(batch_dims)] + at
    places = range(batch_dims, batch_dims + len(axes))
    return jnp.moveaxis(x, axes, places), at, len(shape) - batch_dims


def _gather(x, indices, axes, batch_dims, outside):
    """Elements at indices, whose axes stand in the place of the first indexed axis."""
    first = axes[0]
    x, at, own = _places(x, indices, axes, batch_dims)
    held = tuple(jnp.clip(i, 0, n - 1) for i, n in zip(at, x.shape))
    made = x[held]
    if outside.endswith("drop"):
        inside = jnp.stack([i == j for i, j in zip(at, held)]).all(0)
        inside = inside.reshape(inside.shape + (1,) * (made.ndim - inside.ndim))
        made = jnp.where(inside, made, jnp.zeros_like(made))
    return jnp.moveaxis(made, range(batch_dims, batch_dims + own), range(first, first + own))


def _scatter(x, updates, indices, axes, mode, batch_dims, outside):
    """x with updates put or combined at indices; those out of range are dropped or clamped."""
    first = axes[0]
    x, at, own = _places(x, indices, axes, batch_dims)
    updates = jnp.moveaxis(updates, range(first, first + own), range(batch_dims, batch_dims + own))
    held = tuple(jnp.clip(i, 0, n - 1) for i, n in zip(at, x.shape))
    if not outside.endswith("clamp"):  # beyond the end, where JAX drops them
        inside = jnp.stack([i == j for i, j in zip(at, held)]).all(0)
        held = tuple(jnp.where(inside, i, n) for i, n in zip(held, x.shape))
    place = x.at[held]
    put = {"set": place.set, "add": place.add, "mul": place.mul, "max": place.max, "min": place.min}
    made = put[mode](updates, mode="drop")
    return jnp.moveaxis(made, range(batch_dims, batch_dims + len(axes)), axes)


def _updated(x, index, value):
    return x.at[index].set(value)


def _conv_weights(
    x, ct, kernel, stride, padding, input_dilation, kernel_dilation, groups, channels_last
):
    """The derivative of a convolution in its weights, times ct."""
    if channels_last:
        x, ct = jnp.moveaxis(x, -1, 1), jnp.moveaxis(ct, -1, 1)
    sides = [padding[2 * k : 2 * k + 2] for k in range(len(stride))]
    conv = lambda w: lax.conv_general_dilated(
        x, w, stride, sides, input_dilation, kernel_dilation, feature_group_count=groups
    )
    w = jax.ShapeDtypeStruct((ct.shape[1], x.shape[1] // groups) + tuple(kernel), x.dtype)
    made = jax.linear_transpose(conv, w)(ct)[0]
    return jnp.moveaxis(made, 1, -1) if channels_last else made


def _fold_windows(x, extents, step, dilation):
    """The sum of windows in the places that they came from."""
    axes = len(extents)
    front, places, size = x.shape[: -2 * axes], x.shape[-2 * axes : -axes], x.shape[-axes:]
    made = jnp.zeros(front + tuple(extents), x.dtype)
    for at in itertools.product(*map(range, size)):
        first = [i * d for i, d in zip(at, dilation)]
        to = tuple(slice(i, i + (n - 1) * s + 1, s) for i, n, s in zip(first, places, step))
        made = made.at[(...,) + to].add(x[(...,) + at])
    return made


def _threefry(key, high, low):
    """Two random words for each counter of two words, by Threefry-2x32 with 20 rounds."""
    k0, k1 = key
    schedule = (k0, k1, k0 ^ k1 ^ jnp.uint32(0x1BD11BDA))
    a, b = high + k0, low + k1
    for i in range(5):
        for turn in ((13, 15, 26, 6), (17, 29, 16, 24))[i % 2]:
            a = a + b
            b = ((b << turn) | (b >> (32 - turn))) ^ a
        a, b = a + schedule[(i + 1) % 3], b + (schedule[(i + 2) % 3] + jnp.uint32(i + 1))
    return a, b


def _random_words(key, shape):
    place = jnp.arange(math.prod(shape), dtype=jnp.uint32).reshape(shape)
    words = (key[(..., k) + (None,) * len(shape)] for k in (0, 1))
    return _threefry(words, jnp.zeros_like(place), place)


def _random_bits(key, shape, bits):
    a, b = _random_words(key, shape)
    if bits == 64:
        return a.astype(jnp.uint64) << 32 | b.astype(jnp.uint64)
    return (a ^ b).astype(f"uint{bits}")


from numpy_prelude import _random_split, _random_fold_in


def _while(go_on, body, operands, carries):
    carry, fixed = tuple(operands[:carries]), operands[carries:]
    return lax.while_loop(lambda c: go_on(*c, *fixed)[0], lambda c: body(*c, *fixed), carry)


def _scan(body, operands, carries, xs, length, reverse):
    """What body makes of the carry and of slices, one after the other."""
    carry, fixed = operands[:carries], operands[carries + xs :]
    rows = operands[carries : carries + xs]

    def step(carry, row):
        results = body(*carry, *row, *fixed)
        return results[:carries], results[carries:]

    carry, made = lax.scan(step, tuple(carry), tuple(rows), length, reverse=reverse)
    return (*carry, *made)
