"""One vocabulary for models, so that a model is written once and means the same everywhere."""

from __future__ import annotations

from types import SimpleNamespace


def layers_of(lib) -> SimpleNamespace:
    """The layers as people call them in `lib`."""
    return {"tenon": tenon, "torch": torch_layers, "jax": jax_layers}[lib.__name__](lib)


def tenon(tn) -> SimpleNamespace:
    return SimpleNamespace(
        relu=tn.relu,
        gelu=tn.gelu_tanh,
        layer_norm=tn.layer_norm,
        embedding=tn.embedding,
        attention=lambda q, k, v: tn.scaled_dot_product_attention(q, k, v, is_causal=True),
        cross_entropy=tn.cross_entropy,
        conv2d=lambda x, w, b, stride, padding: tn.conv2d(x, w, b, stride=stride, padding=padding),
        max_pool=lambda x: tn.max_pool(x, 3, stride=2, padding=1),
        sqrt=tn.sqrt,
        map=tn.tree.map,
        value_and_grad=tn.value_and_grad,
    )


def torch_layers(torch) -> SimpleNamespace:
    f = torch.nn.functional

    def value_and_grad(loss):
        def both(*args):
            gradient, value = torch.func.grad_and_value(loss)(*args)
            return value, gradient

        return both

    return SimpleNamespace(
        relu=torch.relu,
        gelu=lambda x: f.gelu(x, approximate="tanh"),
        layer_norm=lambda x, weight, bias: f.layer_norm(x, weight.shape, weight, bias),
        embedding=lambda weight, indices: f.embedding(indices, weight),
        attention=lambda q, k, v: f.scaled_dot_product_attention(q, k, v, is_causal=True),
        cross_entropy=lambda logits, targets: f.cross_entropy(
            logits.reshape(-1, logits.shape[-1]), targets.reshape(-1)),
        conv2d=f.conv2d,
        max_pool=lambda x: f.max_pool2d(x, 3, 2, 1),
        value_and_grad=value_and_grad,
    )


def jax_layers(jax) -> SimpleNamespace:
    jnp, lax = jax.numpy, jax.lax

    def layer_norm(x, weight, bias):
        centred = x - x.mean(axis=-1, keepdims=True)
        variance = (centred * centred).mean(axis=-1, keepdims=True)
        return centred * lax.rsqrt(variance + 1e-5) * weight + bias

    def attention(q, k, v):
        scores = q @ k.swapaxes(-1, -2) / q.shape[-1] ** 0.5
        seen = jnp.tril(jnp.ones(scores.shape[-2:], bool))
        return jax.nn.softmax(jnp.where(seen, scores, -jnp.inf)) @ v

    def cross_entropy(logits, targets):
        found = jnp.take_along_axis(jax.nn.log_softmax(logits), targets[..., None], axis=-1)
        return -found.mean()

    def conv2d(x, w, b, stride, padding):
        y = lax.conv_general_dilated(x, w, (stride, stride), [(padding, padding)] * 2)
        return y + b[:, None, None]

    def max_pool(x):
        pads = [(0, 0), (0, 0), (1, 1), (1, 1)]
        return lax.reduce_window(x, -jnp.inf, lax.max, (1, 1, 3, 3), (1, 1, 2, 2), pads)

    return SimpleNamespace(
        relu=jax.nn.relu,
        gelu=lambda x: jax.nn.gelu(x, approximate=True),
        layer_norm=layer_norm,
        embedding=lambda weight, indices: weight[indices],
        attention=attention,
        cross_entropy=cross_entropy,
        conv2d=conv2d,
        max_pool=max_pool,
        sqrt=jnp.sqrt,
        map=jax.tree.map,
        value_and_grad=jax.value_and_grad,
    )
