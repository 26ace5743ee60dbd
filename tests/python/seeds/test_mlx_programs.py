"""Programs in the manner of MLX's document on compilation that it does not show."""

import copy
import math
from functools import partial

import numpy as np
import pytest
from test_mlx_document import (
    classification_loss,
    compiled_step,
    counted,
    deep,
    features,
    pair,
    plain_losses,
    printed,
)

import tenon as tn
import tenon.nn as nn
import tenon.optim as optim


def test_counters_and_histories_in_nested_containers():
    log = {"count": tn.array(0), "history": [], "last": {"value": tn.array(0.0)}}

    @partial(tn.compile, inputs=log, outputs=log)
    def record(x):
        log["count"] = log["count"] + 1
        log["last"]["value"] = tn.sum(x)
        return log["count"]

    last, history = log["last"], log["history"]
    for n in range(1, 4):
        assert record(tn.full((2,), float(n))).item() == n
    assert log["count"].item() == 3 and log["last"]["value"].item() == 6
    assert log["last"] is last and log["history"] is history == []


def test_a_history_that_grows():
    history = []

    @partial(tn.compile, inputs=history, outputs=history)
    def push(x):
        history.append(x * len(history))
        return sum(history)

    for n in range(4):
        assert push(tn.array(1.0)).item() == n * (n + 1) / 2
    assert printed(history[3]) == "tensor(3., dtype=float32)"


def test_an_output_that_is_set_anew_by_every_call():
    cache = {}

    @partial(tn.compile, outputs=cache)
    def forward(x):
        cache["hidden"] = tn.tanh(x)
        return cache["hidden"] * 2

    for value in (0.0, 1.0, 2.0):
        out = forward(tn.array(value))
        assert cache["hidden"].item() * 2 == out.item()


def test_a_failing_step_leaves_the_state_as_it_was():
    x, y = features()
    model, optimizer = nn.Linear(10, 1), optim.SGD(0.1, momentum=0.8)
    state = [model.state, optimizer.state]
    before = [np.asarray(leaf) for leaf in tn.tree.leaves(state)]

    @partial(tn.compile, inputs=state, outputs=state)
    def step(x, y):
        loss, grads = nn.value_and_grad(model, classification_loss)(model, x, y)
        optimizer.update(model, grads)
        raise RuntimeError("in the middle")

    with pytest.raises(RuntimeError, match="in the middle"):
        step(x, y)
    after = [np.asarray(leaf) for leaf in tn.tree.leaves(state)]
    assert len(before) == len(after)
    assert all(np.array_equal(a, b) for a, b in zip(before, after))


def test_whole_objects_as_state():
    x, y = features()
    plain, model = pair(lambda: deep(0.25))
    optimizers = [optim.Adam(0.01) for _ in range(2)]
    tn.random.seed(2)
    want = plain_losses(plain, optimizers[0], x, y, 5)
    state = {"model": model, "optimizer": optimizers[1], "random": tn.random.state}

    @partial(tn.compile, inputs=state, outputs=state)
    def step(x, y):
        loss, grads = nn.value_and_grad(model, classification_loss)(model, x, y)
        optimizers[1].update(model, grads)
        return loss

    tn.random.seed(2)
    assert [step(x, y).item() for _ in range(5)] == want


def test_the_learning_rate_is_a_part_of_the_state():
    x, y = features()
    model, optimizer = nn.Linear(10, 1), optim.SGD(learning_rate=0.1)
    step, runs, state = compiled_step(model, optimizer)
    step(x, y)
    traced = len(runs)
    optimizer.learning_rate = 0.0
    before = model.weight.tolist()
    step(x, y)
    assert model.weight.tolist() == before and len(runs) == traced


def test_evaluation_between_steps_of_training():
    x, y = features()
    model, optimizer = deep(0.5), optim.SGD(learning_rate=0.1)
    step, runs, state = compiled_step(model, optimizer, tn.random.state)
    evaluate = tn.compile(lambda x: model(x), inputs=model.state)
    for _ in range(3):
        model.train()
        step(x, y)
        model.eval()
        np.testing.assert_array_equal(evaluate(x).numpy(), model(x).numpy())
    assert len(runs) == 1


def test_freezing_changes_what_is_trained():
    x, y = features()
    model, optimizer = deep(0.0), optim.SGD(learning_rate=0.1)
    step, runs, _ = compiled_step(model, optimizer)
    step(x, y)
    model.layers[0].freeze()
    frozen, trained = model.layers[0].weight.tolist(), model.layers[3].weight.tolist()
    step(x, y)
    assert model.layers[0].weight.tolist() == frozen
    assert model.layers[3].weight.tolist() != trained
    assert len(runs) == 2


def test_shapeless():
    fun, runs = counted(lambda x: tn.sum(tn.exp(x), axis=-1))
    compiled = tn.compile(fun, shapeless=True)
    for shape in ((2, 3), (5, 7), (1, 1), (4, 3)):
        x = tn.ones(shape)
        np.testing.assert_array_equal(compiled(x).numpy(), fun(x).numpy())
    assert len(runs) == 1 + 4


def test_draws_of_a_compiled_function():
    @partial(tn.compile, inputs=tn.random.state, outputs=tn.random.state)
    def noise():
        return tn.random.normal((3,))

    tn.random.seed(1)
    got = [noise().tolist() for _ in range(3)]
    tn.random.seed(1)
    assert got == [tn.random.normal((3,)).tolist() for _ in range(3)]
    assert got[0] != got[1]


class Accumulator:
    """A class of the user's with methods that are compiled."""

    def __init__(self):
        self.total = [tn.array(0.0)]
        self.add = tn.compile(self._add, inputs=self.total, outputs=self.total)

    def _add(self, x):
        self.total[0] = self.total[0] + tn.sum(x)
        return self.total[0]


def test_state_of_an_object():
    first, second = Accumulator(), Accumulator()
    first.add(tn.ones(3))
    assert first.add(tn.ones(3)).item() == 6 and second.add(tn.ones(2)).item() == 2


class Attention(nn.Module):
    def __init__(self, dims, heads):
        self.heads = heads
        self.project = {name: nn.Linear(dims, dims, bias=False) for name in "qkvo"}

    def __call__(self, x):
        def split(name):
            y = self.project[name](x)
            return y.reshape(*y.shape[:-1], self.heads, -1).swapaxes(-2, -3)

        q, k, v = (split(name) for name in "qkv")
        weights = tn.softmax(q @ k.swapaxes(-1, -2) / math.sqrt(q.shape[-1]), axis=-1)
        y = (weights @ v).swapaxes(-2, -3)
        return self.project["o"](y.reshape(*x.shape))


def test_training_a_module_of_the_users():
    x = tn.random.normal((2, 5, 8), key=tn.random.key(1))
    y = tn.random.normal((2, 5, 8), key=tn.random.key(2))
    losses = []
    for use in (lambda f, **_: f, tn.compile):
        tn.random.seed(3)
        model, optimizer = Attention(8, 2), optim.AdamW(0.01)
        state = [model.state, optimizer.state]

        def step(x, y, model=model, optimizer=optimizer):
            loss_fn = lambda: nn.losses.mse_loss(model(x), y)
            loss, grads = nn.value_and_grad(model, loss_fn)()
            optimizer.update(model, grads)
            return loss

        step = use(step, inputs=state, outputs=state)
        losses.append([step(x, y).item() for _ in range(5)])
    np.testing.assert_allclose(losses[1], losses[0], 1e-5)
    assert losses[0][-1] < losses[0][0]


def test_an_average_of_the_model_beside_it():
    x, y = features()
    averages = []
    for use in (lambda f, **_: f, tn.compile):
        tn.random.seed(5)
        model, optimizer = deep(0.0), optim.Adam(0.01)
        average = copy.deepcopy(model)
        state = [model, average, optimizer]

        def step(x, y, model=model, average=average, optimizer=optimizer):
            loss, grads = nn.value_and_grad(model, classification_loss)(model, x, y)
            optimizer.update(model, grads)
            mix = lambda a, b: 0.9 * a + 0.1 * b
            average.update(tn.tree.map(mix, average.parameters(), model.parameters()))
            return loss

        step = use(step, inputs=state, outputs=state)
        for _ in range(4):
            step(x, y)
        averages.append(average)
    for a, b in zip(*map(tn.tree.leaves, averages)):
        np.testing.assert_array_equal(a.numpy(), b.numpy())


def test_a_layer_that_is_used_twice():
    x, y = features()
    losses = []
    for use in (lambda f, **_: f, tn.compile):
        tn.random.seed(6)
        shared, last = nn.Linear(10, 10), nn.Linear(10, 1)
        model, optimizer = nn.Sequential(shared, nn.relu, shared, last), optim.SGD(0.1, 0.9)
        state = [model.state, optimizer.state]

        def step(x, y, model=model, optimizer=optimizer):
            loss, grads = nn.value_and_grad(model, classification_loss)(model, x, y)
            optimizer.update(model, grads)
            return loss

        step = use(step, inputs=state, outputs=state)
        losses.append([step(x, y).item() for _ in range(5)])
        assert model.layers[0] is model.layers[2]
    assert losses[0] == losses[1]


def test_a_step_inside_a_compiled_loop():
    model = nn.Linear(2, 1)

    @tn.compile(inputs=model, outputs=model)
    def grow():
        model.weight = model.weight * 2

    @tn.compile(inputs=model, outputs=model)
    def grow_three_times():
        for _ in range(3):
            grow()

    before = model.weight.numpy()
    grow_three_times()
    grow_three_times()
    np.testing.assert_array_equal(model.weight.numpy(), before * 64)


def test_a_check_that_fails_leaves_the_state_as_it_was():
    total = [tn.array(1.0)]

    @tn.compile(inputs=total, outputs=total)
    def add(x):
        tn.check(x > 0, "x is positive")
        total[0] = total[0] + x

    add(tn.array(2.0))
    with pytest.raises(tn.Error, match="x is positive"):
        add(tn.array(-1.0))
    add(tn.array(1.0))
    assert total[0].item() == 4


def test_numbers_and_flags_in_the_state():
    state = {"scale": 1.0, "odd": False, "sum": tn.array(0.0)}

    @tn.compile(inputs=state, outputs=state)
    def step(x):
        state["scale"] *= 2
        state["odd"] = not state["odd"]
        state["sum"] = state["sum"] + (x if state["odd"] else -x) * state["scale"]

    for _ in range(6):
        step(tn.array(1.0))
    assert (state["scale"], state["odd"], state["sum"].item()) == (64, False, -42)
    assert step.stats().traces <= 4


def test_constants_beside_a_state_that_is_updated_in_place():
    state = {"total": tn.zeros(1000), "steps": tn.array(0)}
    first, second = tn.ones(1000), tn.array([2.0])

    @tn.compile(inputs=state, outputs=state)
    def step():
        state["total"] = state["total"] + first * second
        state["steps"] = state["steps"] + 1

    for _ in range(3):
        step()
    assert step.memory().donated == 4000 + 8
    assert state["total"][0].item() == 6 and first[0].item() == 1 and second.item() == 2
