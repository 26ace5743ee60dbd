"""tn.nn: modules as objects and as trees, layers."""

import doctest
from importlib import import_module
from pkgutil import iter_modules

import numpy as np
import pytest

import tenon as tn
from tenon import nn


class Mixed(nn.Module):
    """Parameters in every kind of place."""

    def __init__(self):
        self.scale = tn.array([2.0])
        self.parts = [nn.Linear(2, 2), tn.relu, {"shift": tn.array([1.0])}]
        self.pair = (tn.array([3.0]), nn.Dropout(0.5))
        self.name = "mixed"
        self.factor = 0.5
        self.missing = None
        self._table = tn.array([4.0])

    def forward(self, x):
        linear, activation, rest = self.parts
        return activation(linear(x)) * self.scale * self.factor + rest["shift"] + self.pair[0]


def names(parameters):
    return tn.tree.structure(parameters).paths()


def values(tree):
    return [leaf.tolist() for leaf in tn.tree.leaves(tree)]


def test_parameters_are_found_by_name_and_place():
    model = Mixed()
    parameters = model.parameters()
    assert parameters["parts"][1] == {}
    assert parameters["parts"][0]["weight"] is model.parts[0].weight
    assert names(parameters) == [
        "['scale']",
        "['parts'][0]['weight']",
        "['parts'][0]['bias']",
        "['parts'][2]['shift']",
        "['pair'][0]",
    ]
    assert nn.Linear(2, 3, bias=False).parameters().keys() == {"weight"}
    assert nn.Sequential(tn.relu).parameters() == {}


def test_update_puts_tensors_in_place():
    model = Mixed()
    linear, parts = model.parts[0], model.parts
    model.update(tn.tree.map(lambda p: p * 0 + 7, model.parameters()))
    assert all(set(np.ravel(v)) == {7.0} for v in values(model.parameters()))
    assert model.parts is parts and parts[0] is linear and model._table.item() == 4
    assert isinstance(model.pair, tuple) and model.pair[1].p == 0.5
    other = nn.Linear(2, 2)
    assert linear.update(other) is linear and linear.weight is other.weight


@pytest.mark.parametrize(
    "wrong, text",
    [
        ({"scales": tn.ones(1)}, "update: Mixed has no 'scales'"),
        ({"parts": [{"w": tn.ones(1)}, {}, {}]}, "update: Mixed.parts[0] has no 'w'"),
        ({"parts": [{}]}, "update: 1 values for 3 in Mixed.parts"),
        ({"scale": [1.0]}, "update: Mixed.scale is a Tensor, not list"),
        ({"parts": tn.ones(1)}, "update: Mixed.parts is a list, not Tensor"),
    ],
)
def test_update_names_what_does_not_fit(wrong, text):
    with pytest.raises((ValueError, TypeError)) as error:
        Mixed().update(wrong)
    assert str(error.value).splitlines()[0] == text


def test_state_is_live():
    model = Mixed()
    model.state["scale"] = tn.array([5.0])
    assert model.scale.item() == 5
    model.scale = tn.array([6.0])
    assert model.state["scale"].item() == 6
    tn.eval(model.state)


def test_freezing():
    model = Mixed()
    model.freeze()
    assert model.trainable_parameters() == {}
    assert len(names(model.parameters())) == 5
    model.parts[0].unfreeze(keys="bias")
    assert names(model.trainable_parameters()) == ["['parts'][0]['bias']"]
    model.unfreeze()
    before = dict(vars(model))
    model.freeze(recurse=False)
    assert names(model.trainable_parameters()) == [
        "['parts'][0]['weight']",
        "['parts'][0]['bias']",
    ]
    model.unfreeze(keys=["scale", "parts", "pair", "_table"])
    assert vars(model) == before


def test_a_name_that_is_not_there_is_not_frozen():
    model = nn.Sequential(nn.Linear(2, 2))
    with pytest.raises(ValueError, match="freeze: no attribute 'wieght' holds a tensor") as error:
        model.freeze(keys="wieght")
    assert "did you mean 'weight'?" in str(error.value)
    with pytest.raises(ValueError, match="unfreeze: no attribute 'zzz' holds a tensor"):
        model.unfreeze(keys=["weight", "zzz"])


def test_training_mode_reaches_all_and_leaves_no_trace():
    model = nn.Sequential(nn.Dropout(), nn.Sequential(nn.Dropout()))
    before = dict(vars(model))
    model.eval()
    assert [m.training for m in model.modules()] == [False] * 4
    x = tn.ones(100)
    assert model(x).tolist() == x.tolist()
    model.train()
    assert [m.training for m in model.modules()] == [True] * 4 and vars(model) == before
    assert 0 in model(x).tolist()


def test_a_class_defines_forward_or_call():
    class Called(nn.Module):
        def __call__(self, x):
            return x + 1

    assert Called()(1) == 2
    with pytest.raises(TypeError, match="Neither: the class defines neither forward nor __call__"):
        type("Neither", (nn.Module,), {})()(1)


def test_text():
    assert repr(nn.Linear(3, 2)) == "Linear(3 -> 2)"
    assert repr(nn.Sequential(nn.Linear(3, 2), tn.relu, nn.Dropout(0.1))) == (
        "Sequential(layers=[Linear(3 -> 2), relu, Dropout(p=0.1)])"
    )
    assert repr(nn.Sequential(nn.Linear(3, 2), nn.Dropout(0.1), nn.Linear(2, 100))) == (
        "Sequential(\n"
        "  layers=[Linear(3 -> 2), Dropout(p=0.1), Linear(2 -> 100)],\n"
        ")"
    )


# Trees --------------------------------------------------------------------------------------


def test_a_module_is_a_tree_of_its_tensors():
    model = Mixed()
    leaves, structure = tn.tree.flatten(model)
    assert len(leaves) == 6 and all(isinstance(leaf, tn.Tensor) for leaf in leaves)
    again = tn.tree.unflatten(structure, leaves)
    assert type(again) is Mixed and again is not model
    assert again.name == "mixed" and again.parts[1] is tn.relu
    assert again.parts[0] is not model.parts[0]
    assert structure == tn.tree.structure(again)
    again.factor = 0.25
    assert structure != tn.tree.structure(again)


X = tn.array([[1.0, 2.0], [3.0, -1.0], [0.5, 0.25]])


def test_transforms_of_modules():
    model = Mixed()
    grads = tn.grad(lambda m: tn.sum(m(X)))(model)
    assert isinstance(grads, Mixed) and grads.pair[0].item() == 6 and grads._table.item() == 0
    rows = tn.vmap(lambda m, x: m(x), in_axes=(None, 0))(model, X)
    np.testing.assert_allclose(rows.numpy(), model(X).numpy(), 1e-6)
    scaled = tn.tree.map(lambda p: 2 * p, model)
    _, slope = tn.jvp(lambda m: tn.sum(m(X)), [model], [tn.tree.map(tn.ones_like, scaled)])
    assert slope.shape == ()


def test_compiled_functions_of_modules():
    model, traces = Mixed(), []

    @tn.compile
    def f(m, x):
        traces.append(1)
        return m(x)

    want = model(X)
    for _ in range(2):
        assert f(model, X).tolist() == want.tolist()
    model.update({"scale": tn.array([1.0])})
    assert f(model, X).tolist() == model(X).tolist() and len(traces) == 1
    model.factor = 3.0
    assert f(model, X).tolist() == model(X).tolist() and len(traces) == 2
    model.eval()
    f(model, X)
    assert len(traces) == 3
    model.train()
    f(model, X)
    assert len(traces) == 3


class Counting(nn.Module):
    """Changes what it holds, as a normalisation does in training."""

    def __init__(self):
        self.weight = tn.array([2.0, 3.0])
        self._calls = tn.array(0)

    def forward(self, x):
        self._calls = self._calls + 1
        return x * self.weight


def test_a_compiled_module_is_the_module():
    model = Counting()
    compiled = tn.compile(model)
    for n in range(1, 4):
        model.update({"weight": tn.array([float(n), 0.0])})
        assert compiled(X).tolist() == (X * model.weight).tolist()
    assert model._calls.item() == 3 and compiled.stats().traces == 1
    assert isinstance(compiled, Counting) and compiled.weight is model.weight
    grads = nn.value_and_grad(model, lambda: tn.sum(compiled(X)))()[1]
    assert grads["weight"].tolist() == tn.sum(X, axis=0).tolist()


def test_value_and_grad_of_a_model():
    model = Mixed()
    model.parts[0].freeze()
    before = model.parameters()
    f = nn.value_and_grad(model, lambda m, x: (tn.sum(m(x)), "more"))
    (value, more), grads = f(model, X)
    assert more == "more" and value.item() == tn.sum(model(X)).item()
    assert tn.tree.structure(grads) == tn.tree.structure(model.trainable_parameters())
    assert grads["pair"][0].item() == 6
    after = tn.tree.leaves(model.parameters())
    assert all(a is b for a, b in zip(tn.tree.leaves(before), after))


def test_value_and_grad_restores_the_model_when_the_function_fails():
    model = nn.Linear(2, 1)
    before = model.weight

    def fails():
        raise RuntimeError("no")

    with pytest.raises(RuntimeError, match="no"):
        nn.value_and_grad(model, fails)()
    assert model.weight is before


# Layers --------------------------------------------------------------------------


def test_linear():
    layer = nn.Linear(4, 3)
    x = tn.randn(2, 5, 4)
    want = x.numpy() @ layer.weight.numpy().T + layer.bias.numpy()
    np.testing.assert_allclose(layer(x).numpy(), want, 1e-5, 1e-6)
    assert abs(layer.weight.numpy()).max() <= 0.5 and layer.weight.numpy().std() > 0.1


def test_dropout():
    tn.random.seed(3)
    out = nn.Dropout(0.25)(tn.ones(10000)).numpy()
    assert set(np.unique(out)) == {0, np.float32(1 / 0.75)} and abs((out == 0).mean() - 0.25) < 0.02
    with pytest.raises(ValueError, match="Dropout: p must be at least 0 and less than 1, not 1"):
        nn.Dropout(1)


def modules_of(package):
    inside = (f"{package.__name__}.{found.name}" for found in iter_modules(package.__path__))
    return [package, *map(import_module, inside)]


def test_running_statistics_do_not_hold_the_steps_before():
    model = nn.Sequential(nn.Linear(16, 32), nn.BatchNorm(32), nn.Linear(32, 1))
    optimizer = nn.SGD(learning_rate=0.01)
    x = tn.random.normal((20, 16))

    def memory_after_a_step():
        loss, grads = nn.value_and_grad(model, lambda m, x: tn.mean(m(x) ** 2))(model, x)
        optimizer.update(model, grads)
        tn.eval(loss, model.state)
        del loss, grads
        tn.synchronize()
        return tn.memory.active_memory()

    assert len({memory_after_a_step() for _ in range(6)}) == 1



@pytest.mark.host
@pytest.mark.parametrize("module", modules_of(nn) + modules_of(tn.optim), ids=lambda m: m.__name__)
def test_examples_in_the_documentation(module):
    assert doctest.testmod(module, extraglobs={"tn": tn}).failed == 0


@pytest.mark.parametrize("value", [np.ones((1, 2), np.float32), 3.0, 2])
def test_a_parameter_is_not_replaced_by_something_that_is_none(value):
    layer = nn.Linear(2, 1)
    with pytest.raises(TypeError, match="Linear: weight is a parameter, not a (.|\n)*tn.array"):
        layer.weight = value
    layer.weight = tn.array([[1.0, 2.0]])
    layer.bias = None
    assert list(layer.state_dict()) == ["weight"]


def test_parameters_that_an_underscore_hides_are_told():
    class Hidden(nn.Module):
        def __init__(self):
            self._inner = nn.Linear(2, 1)

        def forward(self, x):
            return self._inner(x)

    model = Hidden()
    text = "no parameters: the name of `_inner` begins with an underscore"
    with pytest.raises(ValueError, match=f"Hidden has {text}"):
        nn.value_and_grad(model, lambda x: model(x).sum())(tn.ones((1, 2)))
    with pytest.raises(ValueError, match=f"the model has {text}"):
        tn.optim.SGD(model.parameters(), lr=0.1).step()


def test_a_class_is_no_layer_of_a_sequential():
    with pytest.raises(TypeError, match=r"layer 1 is the class ReLU, not a module(.|\n)*ReLU\(\)"):
        nn.Sequential(nn.Linear(3, 2), nn.ReLU)
