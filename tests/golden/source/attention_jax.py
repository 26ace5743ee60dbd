# Written by Tenon from the graph of the computation. It needs JAX and nothing else.
# Comments behind statements are the types of their values.
import jax
import jax.numpy as jnp


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


def attention(
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
    attention_1 = _attention(
        permute_dims, permute_dims_1, permute_dims_2, scale=0.5, is_causal=True
    )  # f32[2, 2, 6, 4]
    reshape = jnp.transpose(attention_1, (0, 2, 1, 3)).reshape((2, 6, 8))  # f32[2, 6, 8]
    return reshape @ wo                                   # f32[2, 6, 8]
