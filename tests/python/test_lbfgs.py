"""LBFGS: the steps of PyTorch, and what it refuses."""

import doctest
import pathlib

import numpy as np
import pytest

import tenon as tn
from tenon import nn, optim
from training_cases import MINIMIZED

DATA = pathlib.Path(__file__).parents[1] / "data/torch_training.npz"


def closure_of(optimizer, loss):
    def closure():
        optimizer.zero_grad()
        value = loss()
        value.backward()
        return value

    return closure


@pytest.mark.parametrize("case", MINIMIZED, ids=lambda case: case.name.replace(" ", "_"))
def test_steps_are_those_of_pytorch(case):
    with np.load(DATA) as recorded:
        rows = recorded[f"{case.name}/minimum"]
    parameters = [tn.array(start) for start in case.start]
    assert parameters[0].dtype == tn.float64
    optimizer = optim.LBFGS(parameters, **case.options)
    closure = closure_of(optimizer, lambda: case.loss(*parameters))
    for row in rows:
        optimizer.step(closure)
        got = np.concatenate([p.numpy() for p in parameters])
        np.testing.assert_allclose(got, row, rtol=1e-6, atol=1e-7)


def test_a_model_is_fitted_and_goes_on_from_a_checkpoint():
    x = tn.linspace(-1, 1, 20)[:, None]
    y = tn.sin(3 * x)
    start = nn.Sequential(nn.Linear(1, 8), nn.tanh, nn.Linear(8, 1)).state_dict()

    def made():
        model = nn.Sequential(nn.Linear(1, 8), nn.tanh, nn.Linear(8, 1)).load_weights(start)
        optimizer = optim.LBFGS(model.parameters(), line_search_fn="strong_wolfe")
        loss = tn.compile(lambda: tn.mean((model(x) - y) ** 2), inputs=model.state)
        return model, optimizer, closure_of(optimizer, loss)

    model, optimizer, closure = made()
    first = optimizer.step(closure).item()
    kept = [model.state_dict(), optimizer.state_dict()]
    second = optimizer.step(closure).item()
    assert closure().item() < second < first
    model, optimizer, closure = made()
    model.load_state_dict(kept[0])
    optimizer.load_state_dict(kept[1])
    assert optimizer.step(closure).item() == second


def test_errors():
    w = tn.ones(2)
    optimizer = optim.LBFGS([w])
    with pytest.raises(TypeError, match="LBFGS: step: a closure that evaluates the loss is needed"):
        optimizer.step()
    with pytest.raises(TypeError, match="it cannot be traced, because it branches on"):
        tn.compile(lambda: optimizer.step(lambda: tn.sum(w)), inputs=optimizer.state)()
    with pytest.raises(ValueError, match="line_search_fn must be None or 'strong_wolfe', not 'w'"):
        optim.LBFGS([w], line_search_fn="w")
    with pytest.raises(ValueError, match="history_size must be at least 1, not 0"):
        optim.LBFGS([w], history_size=0)
    with pytest.raises(ValueError, match="it takes one group of parameters"):
        optimizer.add_param_group({"params": [tn.ones(1)]})
    with pytest.raises(TypeError, match="it needs a closure"):
        optimizer.apply_gradients({"w": tn.ones(1)}, {"w": tn.ones(1)})


def test_examples_in_the_documentation():
    assert doctest.testmod(optim.lbfgs, extraglobs={"tn": tn}).failed == 0
