"""tn.optim: the steps of optimizers, and their state."""

import numpy as np
import pytest

import tenon as tn
from tenon import nn, optim

RNG = np.random.default_rng(0)
START = {"w": RNG.normal(size=(3, 2)), "layers": [{"b": RNG.normal(size=4)}, {}]}
GRADIENTS = [tn.tree.map(lambda p: RNG.normal(size=p.shape), START) for _ in range(4)]


def tensors(tree, dtype=tn.float32):
    return tn.tree.map(lambda x: tn.array(x).astype(dtype), tree)


def sgd(w, gradients, rate, momentum=0.0, decay=0.0, dampening=0.0, nesterov=False):
    v = 0
    for g in gradients:
        g = g + decay * w
        v = momentum * v + (1 - dampening) * g
        w = w - rate * (g + momentum * v if nesterov else v)
    return w


def adam(w, gradients, rate, betas=(0.9, 0.999), eps=1e-8, correct=True, decay=0.0):
    m = v = 0
    for t, g in enumerate(gradients, 1):
        w = w * (1 - rate * decay)
        m = betas[0] * m + (1 - betas[0]) * g
        v = betas[1] * v + (1 - betas[1]) * g * g
        a, b = (1 - betas[0] ** t, 1 - betas[1] ** t) if correct else (1, 1)
        w = w - rate * (m / a) / (np.sqrt(v / b) + eps)
    return w


CASES = {
    "sgd": (lambda: optim.SGD(0.1), lambda w, g: sgd(w, g, 0.1)),
    "momentum": (lambda: optim.SGD(0.1, momentum=0.8), lambda w, g: sgd(w, g, 0.1, 0.8)),
    "all of sgd": (
        lambda: optim.SGD(0.1, 0.8, weight_decay=0.2, dampening=0.3),
        lambda w, g: sgd(w, g, 0.1, 0.8, 0.2, 0.3),
    ),
    "nesterov": (
        lambda: optim.SGD(0.1, 0.8, nesterov=True),
        lambda w, g: sgd(w, g, 0.1, 0.8, nesterov=True),
    ),
    "adam": (lambda: optim.Adam(0.1), lambda w, g: adam(w, g, 0.1)),
    "adam as it comes": (
        lambda: optim.Adam(0.1, betas=(0.5, 0.75), eps=0.1, bias_correction=False),
        lambda w, g: adam(w, g, 0.1, (0.5, 0.75), 0.1, False),
    ),
    "adamw": (
        lambda: optim.AdamW(0.1, weight_decay=0.3),
        lambda w, g: adam(w, g, 0.1, decay=0.3),
    ),
}


@pytest.mark.parametrize("case", CASES)
def test_steps(case):
    make, reference = CASES[case]
    optimizer, parameters = make(), tensors(START)
    for g in GRADIENTS:
        parameters = optimizer.apply_gradients(tensors(g), parameters)
    want = tn.tree.map(lambda w, *g: reference(w, g), START, *GRADIENTS)
    for a, b in zip(tn.tree.leaves(parameters), tn.tree.leaves(want)):
        np.testing.assert_allclose(a.numpy(), b, 1e-5, 1e-6)
    assert optimizer.state["step"].item() == len(GRADIENTS)


def test_state():
    optimizer = optim.SGD(0.5, momentum=0.9)
    state = optimizer.state
    optimizer.apply_gradients(tensors(START), tensors(START))
    assert optimizer.state is state
    assert list(state["moments"]) == ["w", "layers.0.b"]
    assert optim.SGD(0.5).state.keys() == state.keys()
    optimizer.learning_rate = 0.25
    assert state["learning_rate"].item() == 0.25 == optimizer.learning_rate.item()


def test_learning_rate_as_a_function_of_the_step():
    optimizer = optim.SGD(lambda step: 1.0 / (step + 1))
    w, rates = tn.array([0.0]), []
    for _ in range(3):
        w = optimizer.apply_gradients(tn.array([1.0]), w)
        rates.append(optimizer.learning_rate.item())
    np.testing.assert_allclose(rates, [1, 1 / 2, 1 / 3])
    np.testing.assert_allclose(w.item(), -(1 + 1 / 2 + 1 / 3), 1e-6)


@pytest.mark.parametrize("make", [lambda: optim.SGD(0.1, 0.9), lambda: optim.AdamW(0.1)])
def test_element_types_stay(make):
    optimizer, parameters = make(), tensors(START, tn.bfloat16)
    for _ in range(2):
        parameters = optimizer.apply_gradients(tensors(START, tn.bfloat16), parameters)
    assert {p.dtype for p in tn.tree.leaves(parameters)} == {tn.bfloat16}


def test_models_are_updated_in_place():
    model = nn.Sequential(nn.Linear(2, 2), tn.relu, nn.Linear(2, 1))
    first = model.layers[0].freeze()
    weight, last = first.weight, model.layers[2].weight.numpy()
    optimizer = optim.SGD(0.5)

    def loss(m):
        return tn.sum(m(tn.ones((1, 2))))

    for grads in (nn.value_and_grad(model, loss)(model)[1], tn.grad(loss)(model)):
        optimizer.update(model, grads)
    assert first.weight is weight and not np.array_equal(model.layers[2].weight.numpy(), last)
    assert optimizer.state["step"].item() == 2


def test_nesterov_needs_momentum():
    with pytest.raises(ValueError, match="SGD: nesterov needs a momentum above 0"):
        optim.SGD(0.1, nesterov=True)


def test_names():
    assert nn.SGD is optim.SGD and tn.Module is nn.Module and tn.Linear is nn.Linear
    assert tn.nn.gelu is tn.gelu
