"""nn.value_and_grad of functions that get the model as an argument, under transforms as well."""

from __future__ import annotations

import copy
import pickle
import warnings
from collections.abc import Callable, Iterator
from typing import Any

import numpy as np
import pytest

import tenon as tn
from tenon import nn

X = tn.array([[1.0, -2.0, 0.5], [0.0, 1.0, 3.0]])


@pytest.fixture(autouse=True)
def no_warnings() -> Iterator[None]:
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        yield


def made_model() -> nn.Sequential:
    tn.random.seed(5)
    return nn.Sequential(nn.Linear(3, 4), nn.Linear(4, 1))


def loss_of(model: nn.Module, x: tn.Tensor) -> tn.Tensor:
    return tn.sum(model(x) ** 2)


def assert_same(made: Any, expected: Any) -> None:
    made, expected = tn.tree.leaves(made), tn.tree.leaves(expected)
    assert len(made) == len(expected)
    assert any(np.any(x.numpy()) for x in expected[1:])  # gradients that are not all zero
    for x, y in zip(made, expected):
        np.testing.assert_array_equal(x.numpy(), y.numpy())


CALLS: dict[str, Callable[[Any, Any], Any]] = {
    "plain": lambda h, m: h(m, X),
    "by name": lambda h, m: h(model=m, x=X),
    "compile": lambda h, m: tn.compile(h)(m, X),
    "compile by name": lambda h, m: tn.compile(h)(model=m, x=X),
    "compile with state": lambda h, m: tn.compile(h, inputs=m)(m, X),
    "compile around": lambda h, m: tn.compile(lambda x: h(m, x))(X),
    "in a dict": lambda h, m: tn.compile(lambda d, x: h(d["m"], x))({"m": m}, X),
    "twice": lambda h, m: tn.compile(lambda a, x: tn.compile(h)(a, x))(m, X),
    "checkpoint": lambda h, m: tn.checkpoint(h)(m, X),
    "jvp": lambda h, m: tn.jvp(h, [m, X], [tn.tree.map(tn.zeros_like, m), X])[0],
}


@pytest.mark.parametrize("call", CALLS.values(), ids=CALLS.keys())
def test_the_gradient_is_that_of_the_model_that_was_given(call: Callable[[Any, Any], Any]) -> None:
    model = made_model()
    h = nn.value_and_grad(model, loss_of)
    before = model.state_dict()
    assert_same(call(h, model), nn.value_and_grad(model, lambda: loss_of(model, X))())
    for name, value in model.state_dict().items():
        np.testing.assert_array_equal(value.numpy(), before[name].numpy())


def test_under_vmap_every_example_has_its_gradient() -> None:
    model = made_model()
    h = nn.value_and_grad(model, loss_of)
    per_example = tn.vmap(h, in_axes=(None, 0))
    for made in per_example(model, X), tn.compile(per_example)(model, X):
        for k in range(2):
            each = tn.tree.map(lambda x: x[k], made)
            for x, y in zip(tn.tree.leaves(each), tn.tree.leaves(h(model, X[k]))):
                np.testing.assert_allclose(x.numpy(), y.numpy(), rtol=1e-6)


def test_another_model_of_the_same_class_is_no_stand_in() -> None:
    student, teacher = made_model(), nn.Sequential(nn.Linear(3, 4), nn.Linear(4, 1))

    def distance(teacher: nn.Module, x: tn.Tensor) -> tn.Tensor:
        return tn.sum((student(x) - teacher(x)) ** 2)

    def both(student: nn.Module, teacher: nn.Module, x: tn.Tensor) -> tn.Tensor:
        return tn.sum((student(x) - teacher(x)) ** 2)

    h, k = nn.value_and_grad(student, distance), nn.value_and_grad(student, both)
    assert_same(tn.compile(h)(teacher, X), h(teacher, X))
    assert_same(tn.compile(k)(student, teacher, X), h(teacher, X))


def test_a_part_of_the_argument_may_be_the_model() -> None:
    whole = made_model()
    h = nn.value_and_grad(whole.layers[0], loss_of)
    assert_same(tn.compile(h)(whole, X), h(whole, X))


def test_a_model_that_is_used_both_ways() -> None:
    model = made_model()
    h = nn.value_and_grad(model, lambda m, x: loss_of(m, x) + tn.sum(model(x)))
    assert_same(tn.compile(h)(model, X), h(model, X))


def test_results_do_not_remember_what_they_were_made_from() -> None:
    model = tn.compile(lambda m: tn.tree.map(lambda x: x + 1, m))(made_model())
    for same in copy.deepcopy(model), pickle.loads(pickle.dumps(model)):
        assert_same(same, model)


def test_copies_of_a_model_can_be_made_inside() -> None:
    def step(model: nn.Module, x: tn.Tensor) -> tn.Tensor:
        return loss_of(copy.deepcopy(model), x)

    model = made_model()
    np.testing.assert_array_equal(tn.compile(step)(model, X).numpy(), step(model, X).numpy())
