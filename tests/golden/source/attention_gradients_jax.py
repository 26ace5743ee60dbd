# Written by Tenon from the graph of the computation. It needs JAX and nothing else.
# Comments behind statements are the types of their values.
import jax
import jax.numpy as jnp
from jax import lax

jax.config.update("jax_enable_x64", True)  # it has types of 64 bits


def _attention(q, k, v, mask=None, scale=None, is_causal=False):
    """softmax(scale * q @ k.mT + mask) @ v; a query that sees no key gives 0."""
    k, v = (jnp.repeat(x, q.shape[1] // x.shape[1], axis=1) for x in (k, v))
    queries, keys = q.shape[2], k.shape[2]
    scores = q * (q.shape[3] ** -0.5 if scale is None else scale) @ k.mT
    if mask is not None:
        scores = jnp.where(mask, scores, -jnp.inf) if mask.dtype == bool else scores + mask
    if is_causal:
        scores = jnp.where(jnp.tri(queries, keys, keys - queries, dtype=bool), scores, -jnp.inf)
    largest = jnp.max(scores, axis=-1, keepdims=True)
    weights = jnp.exp(scores - jnp.where(jnp.isfinite(largest), largest, 0.0))
    total = jnp.sum(weights, axis=-1, keepdims=True)
    return weights @ v / jnp.where(total == 0.0, 1.0, total)


def attention_gradients(
    x,  # f32[2, 6, 8]
    wq,  # f32[8, 8]
    wk,  # f32[8, 8]
    wv,  # f32[8, 8]
    wo,  # f32[8, 8]
):
    # heads
    permute_dims = jnp.transpose((x @ wq).reshape((2, 6, 2, 4)), (0, 2, 1, 3))  # f32[2, 2, 6, 4]
    permute_dims_1 = jnp.transpose((x @ wk).reshape((2, 6, 2, 4)), (0, 2, 1, 3))  # f32[2, 2, 6, 4]
    permute_dims_2 = jnp.transpose((x @ wv).reshape((2, 6, 2, 4)), (0, 2, 1, 3))  # f32[2, 2, 6, 4]

    # attention
    attention = _attention(
        permute_dims, permute_dims_1, permute_dims_2, scale=0.5, is_causal=True
    )  # f32[2, 2, 6, 4]
    reshape = jnp.transpose(attention, (0, 2, 1, 3)).reshape((2, 6, 8))  # f32[2, 6, 8]
    dot = reshape @ wo                                    # f32[2, 6, 8]

    # loss
    divide = jnp.sum(dot * dot) / 96.0                    # f32[]

    # attention
    iota = lax.broadcasted_iota(jnp.int64, (6, 6), 1)     # i64[6, 6]
    iota_1 = lax.broadcasted_iota(jnp.int64, (6, 6), 0)   # i64[6, 6]
    less_equal = iota <= iota_1 + 0                       # bool[6, 6]
    reshape_1 = (permute_dims * 0.5).reshape((2, 2, 1, 6, 4))  # f32[2, 2, 1, 6, 4]
    dot_1 = jnp.einsum("abcde,abhe->abcdh", reshape_1, permute_dims_1)  # f32[2, 2, 1, 6, 6]
    where = jnp.where(less_equal, dot_1.reshape((2, 2, 6, 6)), -jnp.inf)  # f32[2, 2, 6, 6]
    stop_gradient = jnp.max(where, axis=3, keepdims=True)  # f32[2, 2, 6, 1]
    where_1 = jnp.where(jnp.abs(stop_gradient) < jnp.inf, stop_gradient, 0.0)  # f32[2, 2, 6, 1]
    exp = jnp.exp(where - where_1)                        # f32[2, 2, 6, 6]
    reshape_2 = exp.reshape((2, 2, 1, 6, 6))              # f32[2, 2, 1, 6, 6]

    # loss
    reshape_3 = (jnp.float32(1.0) / 96.0).reshape((1, 1, 1))  # f32[1, 1, 1]
    multiply = reshape_3 * dot * 2.0                      # f32[2, 6, 8]

    # attention
    permute_dims_3 = jnp.transpose(
        (multiply @ wo.T).reshape((2, 6, 2, 4)), (0, 2, 1, 3)
    )  # f32[2, 2, 6, 4]
    sum_1 = jnp.sum(exp, axis=3, keepdims=True)           # f32[2, 2, 6, 1]
    equal = sum_1 == 0.0                                  # bool[2, 2, 6, 1]
    where_2 = jnp.where(equal, 1.0, sum_1)                # f32[2, 2, 6, 1]
    reshape_4 = (permute_dims_3 / where_2).reshape((2, 2, 1, 6, 4))  # f32[2, 2, 1, 6, 4]
    dot_2 = jnp.einsum("abcde,abcdj->abej", reshape_2, reshape_4)  # f32[2, 2, 6, 4]

    # heads
    reshape_5 = jnp.transpose(dot_2, (0, 2, 1, 3)).reshape((2, 6, 8))  # f32[2, 6, 8]

    # attention
    dot_3 = jnp.einsum("abcde,abei->abcdi", reshape_2, permute_dims_2)  # f32[2, 2, 1, 6, 4]
    multiply_1 = -permute_dims_3 * (dot_3.reshape((2, 2, 6, 4)) / where_2)  # f32[2, 2, 6, 4]
    reshape_6 = jnp.sum(multiply_1 / where_2, axis=3).reshape((2, 2, 6, 1))  # f32[2, 2, 6, 1]
    dot_4 = jnp.einsum("abcde,abhe->abcdh", reshape_4, permute_dims_2)  # f32[2, 2, 1, 6, 6]
    reshape_7 = jnp.where(equal, 0.0, reshape_6)          # f32[2, 2, 6, 1]
    reshape_8 = dot_4.reshape((2, 2, 6, 6))               # f32[2, 2, 6, 6]
    where_3 = jnp.where(less_equal, (reshape_7 + reshape_8) * exp, 0.0)  # f32[2, 2, 6, 6]
    reshape_9 = where_3.reshape((2, 2, 1, 6, 6))          # f32[2, 2, 1, 6, 6]
    dot_5 = jnp.einsum("abcde,abcdj->abej", reshape_1, reshape_9)  # f32[2, 2, 4, 6]

    # heads
    reshape_10 = jnp.transpose(dot_5.mT, (0, 2, 1, 3)).reshape((2, 6, 8))  # f32[2, 6, 8]

    # attention
    dot_6 = jnp.einsum("abcde,abei->abcdi", reshape_9, permute_dims_1)  # f32[2, 2, 1, 6, 4]

    # heads
    permute_dims_4 = jnp.transpose(
        dot_6.reshape((2, 2, 6, 4)) * 0.5, (0, 2, 1, 3)
    )  # f32[2, 6, 2, 4]
    reshape_11 = permute_dims_4.reshape((2, 6, 8))        # f32[2, 6, 8]

    # attention
    add = reshape_5 @ wv.T + reshape_10 @ wk.T + reshape_11 @ wq.T  # f32[2, 6, 8]
    dot_7 = jnp.einsum("abc,abf->cf", x, reshape_11)      # f32[8, 8]
    dot_8 = jnp.einsum("abc,abf->cf", x, reshape_10)      # f32[8, 8]
    dot_9 = jnp.einsum("abc,abf->cf", x, reshape_5)       # f32[8, 8]
    dot_10 = jnp.einsum("abc,abf->cf", reshape, multiply)  # f32[8, 8]
    return divide, add, dot_7, dot_8, dot_9, dot_10
