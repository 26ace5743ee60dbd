"""Models with losses and an optimizer."""

from __future__ import annotations

import numpy as np
import pytest

import tenon as tn
from tenon.model import L1, MSE, BatchNorm1d, Dropout, Linear, Relu

X = tn.array(np.random.default_rng(0).standard_normal((8, 6)).astype("float32"))
Y = tn.array(np.random.default_rng(1).standard_normal((8, 3)).astype("float32"))
DATA = {"input": X, "y": Y}


def training_model(*blocks, optimizer=None) -> tn.TrainModel:
    model = tn.TrainModel(tn.Model(*blocks), optimizer or tn.optim.SGD(0.1))
    model.add_loss(MSE(), input="output", target="y")
    model.add_loss(L1(), input="output", target="y", weight=0.5, key="l1")
    return model


def compiled(model: tn.TrainModel, backend=None, **options):
    return tn.compile(model, backend, shapes={"input": [8, 6]}, **options)


def steps(physical, count: int = 4):
    params, state = physical.randomize_params(0), physical.initial_state(1)
    for _ in range(count):
        made = physical.step(params, DATA, state)
        params, state = made.params, made.state
    return made


def test_a_step_is_that_of_the_optimizer_by_hand() -> None:
    physical = compiled(training_model(Linear(3)))
    params = physical.randomize_params(0)

    def loss(weight, bias):
        off = X @ weight.T + bias - Y
        return (off * off).mean() + 0.5 * tn.abs(off).mean()

    given = params["linear.weight"], params["linear.bias"]
    gradients = tn.grad(loss, argnums=(0, 1))(*given)
    made = physical.step(params, DATA)
    np.testing.assert_allclose(made.loss.numpy(), loss(*given).numpy(), 1e-5)
    for name, w, g in zip(("linear.weight", "linear.bias"), given, gradients):
        np.testing.assert_allclose(made.params[name].numpy(), (w - 0.1 * g).numpy(), 1e-4, 1e-6)
    assert sorted(made.outputs) == ["l1", "loss", "loss_0", "output"]


@pytest.mark.parametrize("optimizer", [tn.optim.SGD, tn.optim.Adam])
def test_backends_train_alike(optimizer) -> None:
    # Without a bias: its gradient would be rounding alone, of which Adam makes whole steps.
    blocks = Linear(16, bias=False), BatchNorm1d(), Relu(), Dropout(0.2), Linear(3)
    found = [
        steps(compiled(training_model(*blocks, optimizer=optimizer(0.05)), backend))
        for backend in (tn.CpuBackend(), tn.InterpreterBackend(), tn.NumpyBackend())
    ]
    for made in found[1:]:
        np.testing.assert_allclose(made.loss.numpy(), found[0].loss.numpy(), 1e-5)
        for name, value in found[0].state.items():
            np.testing.assert_allclose(made.state[name].numpy(), value.numpy(), 1e-4, 1e-6)


def test_steps_follow_the_options() -> None:
    with pytest.raises(MemoryError, match="memory_limit is 1 bytes"):
        steps(compiled(training_model(Linear(3)), memory_limit=1))


def test_only_what_is_trained_changes() -> None:
    for keys, changed in ((["linear.bias"], ["linear.bias"]), (["input"], [])):
        physical = compiled(training_model(Linear(3)), trainable_keys=keys)
        params = physical.randomize_params(0)
        made = physical.step(params, DATA)
        assert [n for n, p in params.items() if (p != made.params[n]).any()] == changed


def test_the_copy_is_the_only_one_that_changes() -> None:
    model = tn.Model(Linear(3))
    before = repr(model)
    training = tn.TrainModel(model)
    training.add_loss(MSE(), input="output", target="y")
    assert repr(model) == before
    with pytest.raises(ValueError, match="no optimizer"):
        compiled(training).step({}, DATA)
    with pytest.raises(ValueError, match="the name of the sum of all losses"):
        training.add_loss(MSE(), key="loss", input="output", target="y")


def test_steps_that_draw_need_a_key() -> None:
    physical = compiled(training_model(Dropout(0.5), Linear(3)))
    with pytest.raises(ValueError, match="draws random numbers and has no key"):
        physical.step(physical.randomize_params(), DATA)
