"""Bounds for gradients, as trees and in parameters."""

import numpy as np
import pytest

import tenon as tn
from tenon import nn, optim

GRADS = {"w": tn.array([[3.0, 0.0]]), "b": [tn.array([-4.0])]}


def test_the_norm_of_a_tree_is_clipped():
    clipped, norm = optim.clip_grad_norm(GRADS, max_norm=2.5)
    assert norm.item() == 5
    np.testing.assert_allclose(clipped["w"].numpy(), [[1.5, 0]], 1e-6)
    np.testing.assert_allclose(clipped["b"][0].numpy(), [-2], 1e-6)
    same, norm = optim.clip_grad_norm(GRADS, max_norm=5.1)
    assert norm.item() == 5 and same["b"][0].item() == -4


def test_narrow_gradients_have_a_wide_norm_and_stay_narrow():
    grads = [tn.full((1000,), 100.0, dtype=tn.float16)]
    clipped, norm = optim.clip_grad_norm(grads, max_norm=1.0)
    np.testing.assert_allclose(norm.item(), 100 * np.sqrt(1000), 1e-5)
    assert clipped[0].dtype == tn.float16
    np.testing.assert_allclose(clipped[0].numpy(), 1000**-0.5, 1e-3)


def test_many_gradients_are_clipped_by_few_kernels():
    clip = tn.compile(lambda grads: optim.clip_grad_norm(grads, 1.0))
    clip([tn.ones((8, 8 + i % 3)) for i in range(40)])
    assert clip.show("plan").count("\nstep ") <= 4


def test_values_are_clipped():
    clipped = optim.clip_grad_value(GRADS, 3.5)
    assert clipped["w"].tolist() == [[3, 0]] and clipped["b"][0].item() == -3.5


def test_zero_gradients_stay():
    clipped, norm = optim.clip_grad_norm({"w": tn.zeros(3)}, max_norm=1.0)
    assert norm.item() == 0 and clipped["w"].tolist() == [0, 0, 0]


def with_gradients():
    model = nn.Linear(2, 1, bias=False)
    model.weight = tn.array([[0.0, 0.0]])
    model.weight.requires_grad = True
    (model(tn.array([[3.0, -4.0]]))).sum().backward()
    return model


def test_gradients_in_parameters_are_clipped():
    model = with_gradients()
    assert nn.utils.clip_grad_norm_(model.parameters(), 2.5).item() == 5
    np.testing.assert_allclose(model.weight.grad.numpy(), [[1.5, -2]], 1e-6)
    nn.utils.clip_grad_value_([model.weight], 1.75)
    np.testing.assert_allclose(model.weight.grad.numpy(), [[1.5, -1.75]], 1e-6)
    with pytest.raises(ValueError, match="clip_grad_norm_: there are no gradients"):
        nn.utils.clip_grad_norm_([tn.ones(1)], 1.0)


@pytest.mark.parametrize(
    "call, text",
    [
        (
            lambda: optim.clip_grad_norm(GRADS, -1),
            "clip_grad_norm: max_norm must be at least 0, not -1",
        ),
        (lambda: optim.clip_grad_norm({}, 1), "clip_grad_norm: there are no gradients"),
        (
            lambda: optim.clip_grad_value(GRADS, -1),
            "clip_grad_value: clip_value must be at least 0, not -1",
        ),
    ],
)
def test_errors(call, text):
    with pytest.raises(ValueError, match=text):
        call()


def test_frozen_parameters_are_not_counted_after_a_call():
    norms = []
    for called in (False, True):
        tn.random.seed(0)
        model = tn.nn.Sequential(tn.nn.Linear(4, 8), tn.nn.Linear(8, 2))
        if called:
            model(tn.ones((1, 4)))
        model.layers[0].freeze()
        model(tn.ones((3, 4))).sum().backward()
        assert model.layers[0].weight.grad is None
        norms.append(tn.optim.clip_grad_norm_(model.parameters(), 1.0).item())
    assert norms[0] == norms[1]
