"""optim.accumulate: what micro-batches give is what the whole batch gives."""

from __future__ import annotations

import doctest

import numpy as np
import pytest

import tenon as tn
from tenon import nn, optim
from tenon.optim import accumulation


def problem():
    tn.random.seed(0)
    model = nn.Sequential(nn.Linear(6, 16), nn.gelu, nn.Linear(16, 3))
    rng = np.random.default_rng(0)
    x, y = rng.normal(size=(24, 6)).astype(np.float32), rng.integers(0, 3, 24)

    def loss(x, y):
        return nn.losses.cross_entropy(model(x), y, reduction="mean")

    return model, nn.value_and_grad(model, loss), tn.array(x), tn.array(y)


@pytest.mark.parametrize("compiled", [False, True])
@pytest.mark.parametrize("parts", [1, 2, 8])
def test_it_gives_what_the_whole_batch_gives(compiled, parts):
    model, loss_and_grad, x, y = problem()

    def micro(x, y):
        return optim.accumulate(loss_and_grad, tn.data.split((x, y), parts))

    if compiled:
        micro = tn.compile(micro, inputs=model.state)
    loss, grads = micro(x, y)
    whole_loss, whole = loss_and_grad(x, y)
    np.testing.assert_allclose(loss.item(), whole_loss.item(), rtol=1e-6)
    for g, w in zip(tn.tree.leaves(grads), tn.tree.leaves(whole), strict=True):
        np.testing.assert_allclose(g.numpy(), w.numpy(), rtol=1e-4, atol=1e-7)


def test_it_takes_batches_from_a_loader():
    model, loss_and_grad, x, y = problem()
    loss, _ = optim.accumulate(loss_and_grad, tn.data.batches((x, y), 6))
    np.testing.assert_allclose(loss.item(), loss_and_grad(x, y)[0].item(), rtol=1e-6)


def test_a_compiled_step_needs_less_memory():
    def peak(parts):
        def f(w, x):
            def loss(x):
                return tn.mean(tn.tanh(tn.tanh(x @ w) @ w) ** 2)

            return optim.accumulate(loss, tn.data.split(x, parts))

        return tn.compile(f).memory(tn.ones((64, 64)), tn.ones((4096, 64))).peak

    assert peak(8) < peak(1) / 4


def test_without_batches_it_fails():
    with pytest.raises(ValueError, match="accumulate: there are no batches"):
        optim.accumulate(lambda x: x, [])


def test_examples_in_the_documentation():
    assert doctest.testmod(accumulation, extraglobs={"tn": tn}).failed == 0
