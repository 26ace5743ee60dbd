"""nn.value_and_grad of functions that get the model as an argument, under transforms as well."""

from __future__ import annotations

import collections
import copy
import dataclasses
import gc
import pickle
import warnings
import weakref
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


@dataclasses.dataclass
class Trainer:
    model: Any
    rate: float = dataclasses.field(default=0.1, metadata={"static": True})


class Holder:
    """A tree whose class has names of its own, and no room for others."""

    __slots__ = ("model",)
    _original = 5

    def __init__(self, model: Any) -> None:
        self.model = model

    def __tree_flatten__(self) -> tuple[list[Any], None]:
        return [self.model], None

    @staticmethod
    def __tree_unflatten__(_: None, tree: list[Any]) -> Holder:
        return Holder(tree[0])


class Watched:
    """A tree with a property."""

    def __init__(self, model: Any) -> None:
        self.model = model

    @property
    def _original(self) -> str:
        return "mine"

    def __tree_flatten__(self) -> tuple[list[Any], None]:
        return [self.model], None

    @staticmethod
    def __tree_unflatten__(_: None, tree: list[Any]) -> Watched:
        return Watched(tree[0])


Named = collections.namedtuple("Named", "model")

CONTAINERS: dict[str, tuple[Callable[[Any], Any], Callable[[Any], Any]]] = {
    "list": (lambda m: [m], lambda c: c[0]),
    "tuple": (lambda m: (1.0, m), lambda c: c[1]),
    "dict": (lambda m: {"m": m}, lambda c: c["m"]),
    "ordered dict": (lambda m: collections.OrderedDict(m=m), lambda c: c["m"]),
    "named tuple": (Named, lambda c: c.model),
    "dataclass": (Trainer, lambda c: c.model),
    "slots": (Holder, lambda c: c.model),
    "property": (Watched, lambda c: c.model),
    "module": (lambda m: nn.Sequential(m), lambda c: c.layers[0]),
    "all": (lambda m: Trainer([Holder({"m": (m,)})]), lambda c: c.model[0].model["m"][0]),
}


@pytest.mark.parametrize("make, take", CONTAINERS.values(), ids=CONTAINERS.keys())
def test_a_model_inside_another_argument(
    make: Callable[[Any], Any], take: Callable[[Any], Any]
) -> None:
    model = made_model()
    h = nn.value_and_grad(model, lambda c, x: loss_of(take(c), x))
    expected = h(make(model), X)
    assert_same(tn.compile(h)(make(model), X), expected)
    assert_same(tn.checkpoint(h)(make(model), X), expected)
    mapped = tn.vmap(lambda c, x, _: h(c, x), in_axes=(None, None, 0), out_axes=None)
    assert_same(mapped(make(model), X, tn.zeros(2)), expected)
    by_grad = tn.value_and_grad(lambda c: (tn.array(0.0), h(c, X)), has_aux=True)(make(model))
    assert_same(by_grad[0][1], expected)


COPIES: dict[str, Callable[[Any], Any]] = {
    "copy": copy.copy,
    "deep copy": copy.deepcopy,
    "another one": lambda m: tn.tree.map(lambda x: x * 0.5, m),
    "a moving average": lambda m: copy.deepcopy(m).apply(lambda x: x * 0.9),
    "one that is stepped": lambda m: copy.deepcopy(m).update(
        tn.tree.map(lambda x: x - 0.1, m.parameters())
    ),
}


@pytest.mark.parametrize("copied", COPIES.values(), ids=COPIES.keys())
def test_copies_that_are_made_inside_are_models_of_their_own(copied: Callable[[Any], Any]) -> None:
    model = nn.Linear(3, 1)

    def both(student: nn.Module, teacher: nn.Module, x: tn.Tensor) -> tn.Tensor:
        return tn.sum(student(x) * teacher(x))

    def step(model_: nn.Module, x: tn.Tensor) -> Any:
        return nn.value_and_grad(model, both)(model_, copied(model_), x)

    def step_of_the_copy(model_: nn.Module, x: tn.Tensor) -> Any:
        teacher = copied(model_)
        return nn.value_and_grad(teacher, both)(model_, teacher, x)

    for f in step, step_of_the_copy:
        expected = f(model, X)
        assert_same(tn.compile(f)(model, X), expected)
        assert_same(tn.checkpoint(f)(model, X), expected)


def test_a_checkpointed_model_is_the_model() -> None:
    model = nn.Linear(3, 1)
    h = nn.value_and_grad(model, loss_of)
    assert_same(tn.compile(h)(nn.checkpoint(model), X), h(nn.checkpoint(model), X))


def test_a_model_that_is_given_several_times() -> None:
    model = nn.Linear(3, 1)
    h = nn.value_and_grad(model, lambda a, b, x: loss_of(a, x) + tn.sum(a(x) * b(x)))
    assert_same(tn.compile(h)(model, model, X), h(model, model, X))
    block = nn.Linear(3, 3)
    whole = nn.Sequential(block, nn.tanh, block, nn.tanh, block)
    h = nn.value_and_grad(block, loss_of)
    assert_same(tn.compile(h)(whole, X), h(whole, X))


def test_a_copy_keeps_its_own_value_and_tangent() -> None:
    model = nn.Linear(1, 1, bias=False)
    model.weight = tn.array([[3.0]])
    h = nn.value_and_grad(model, lambda a, b: tn.sum(a.weight * 10 + b.weight))
    assert h(model, model)[1]["weight"].item() == 11

    def value(a: nn.Module, b: nn.Module) -> tn.Tensor:
        return h(a, b)[0]

    assert tn.grad(value)(model, model).weight.item() == 10
    assert [d.weight.item() for d in tn.grad(value, argnums=(0, 1))(model, model)] == [10, 1]


def test_second_derivatives() -> None:
    model = nn.Linear(1, 1, bias=False)
    model.weight = tn.array([[3.0]])
    h = nn.value_and_grad(model, lambda m, x: tn.sum(m(x) ** 3))

    def squared(m: nn.Module, x: tn.Tensor) -> tn.Tensor:
        return tn.sum(h(m, x)[1]["weight"] ** 2)

    for f in tn.grad(squared), tn.compile(tn.grad(squared)), tn.grad(tn.compile(squared)):
        assert f(model, tn.ones((1, 1))).weight.item() == 2 * 27 * 18


def test_vmap_of_a_stack_of_models() -> None:
    stack = nn.Linear(3, 1)
    stack.weight, stack.bias = tn.random.normal((4, 1, 3)), tn.random.normal((4, 1))
    h = nn.value_and_grad(stack, loss_of)
    made = tn.vmap(h, in_axes=(0, None))(stack, X)
    for k in range(4):
        each = tn.tree.map(lambda x: x[k], stack)
        expected = nn.value_and_grad(each, loss_of)(each, X)
        for x, y in zip(tn.tree.leaves(made), tn.tree.leaves(expected)):
            np.testing.assert_allclose(x[k].numpy(), y.numpy(), rtol=1e-5)


def test_frozen_parameters_have_no_gradient_inside_a_transform() -> None:
    model = made_model()
    model.layers[0].freeze()
    model.layers[1].bias.requires_grad = False
    h = nn.value_and_grad(model, loss_of)
    for f in tn.compile(h), tn.checkpoint(h):
        assert_same(f(model, X), h(model, X))
    mapped = tn.vmap(lambda m, _: h(m, X), in_axes=(None, 0), out_axes=None)
    assert_same(mapped(model, tn.zeros(2)), h(model, X))


def test_a_copy_without_the_parameters_of_the_model_is_an_error() -> None:
    model = made_model()
    h = nn.value_and_grad(model, loss_of)

    def step(m: nn.Module, x: tn.Tensor) -> Any:
        m.layers = m.layers[:1]
        return h(m, x)

    text = "nn.value_and_grad: the Sequential that is an argument has other parameters"
    with pytest.raises(tn.Error, match=text):
        tn.grad(lambda m: tn.sum(step(m, X)[0]))(model)


def test_running_statistics_of_the_argument_are_kept() -> None:
    tn.random.seed(0)
    model = nn.Sequential(nn.Linear(3, 4), nn.BatchNorm(4), nn.Linear(4, 1))
    h = nn.value_and_grad(model, loss_of)
    before = model.state_dict()

    def step(m: nn.Module, x: tn.Tensor) -> Any:
        return h(m, x), m

    compiled = tn.compile(step)(model, X)
    assert_same(model.state_dict(), before)
    assert_same(compiled, step(model, X))


def test_eager_calls_do_not_look_into_arguments() -> None:
    class Counted(list[int]):
        visited = 0

        def __iter__(self) -> Iterator[int]:
            Counted.visited += 1
            return super().__iter__()

    model = made_model()
    h = nn.value_and_grad(model, lambda m, x, numbers: loss_of(m, x))
    assert_same(h(model, X, Counted(range(9))), nn.value_and_grad(model, loss_of)(model, X))
    assert Counted.visited == 0


class Slots:
    __slots__ = ("x",)


@pytest.mark.parametrize("beside", [Slots, dict, Exception])
def test_modules_have_other_base_classes(beside: type) -> None:
    made = type("Made", (nn.Linear, beside), {})(3, 1)
    h = nn.value_and_grad(made, loss_of)
    assert_same(tn.compile(h)(made, X), h(made, X))


class Wrapper(nn.Module):
    def __init__(self, inner: nn.Module) -> None:
        self._original = inner
        self.scale = tn.ones(1)

    def forward(self, x: tn.Tensor) -> tn.Tensor:
        return self._original(x) * self.scale


def test_names_of_attributes_are_those_of_users() -> None:
    model = Wrapper(made_model())
    assert list(vars(model)) == ["_original", "scale"]
    assert tn.compile(loss_of)(model, X).item() == loss_of(model, X).item()
    assert tn.grad(loss_of)(model, X).scale.shape == (1,)
    h = nn.value_and_grad(model, loss_of)
    assert_same(tn.compile(h)(model, X), h(model, X))


@pytest.mark.parametrize("protocol", range(pickle.HIGHEST_PROTOCOL + 1))
def test_modules_are_pickled(protocol: int) -> None:
    for model in made_model(), Wrapper(made_model()):
        same = pickle.loads(pickle.dumps(model, protocol))
        assert loss_of(same, X).item() == loss_of(model, X).item()


def test_a_trace_keeps_no_model() -> None:
    model = made_model()
    compiled = tn.compile(nn.value_and_grad(model, loss_of))
    other = made_model()
    step = tn.compile(lambda m, x: (loss_of(m, x), m))
    step(other, X)
    compiled(other, X)
    alive = weakref.ref(other)
    del other
    gc.collect()
    assert alive() is None


def test_results_do_not_remember_what_they_were_made_from() -> None:
    model = tn.compile(lambda m: tn.tree.map(lambda x: x + 1, m))(made_model())
    for same in copy.deepcopy(model), pickle.loads(pickle.dumps(model)):
        assert_same(same, model)


def test_copies_of_a_model_can_be_made_inside() -> None:
    def step(model: nn.Module, x: tn.Tensor) -> tn.Tensor:
        return loss_of(copy.deepcopy(model), x)

    model = made_model()
    np.testing.assert_array_equal(tn.compile(step)(model, X).numpy(), step(model, X).numpy())
