"""Building logical models: names, connections, operators, nesting."""

import copy

import numpy as np
import pytest

import tenon as tn
import tenon.model as M
from tenon.model import IOKey, Linear, Relu


def evaluate(model, data, shapes=None):
    """(outputs, parameters) of the model as it is compiled."""
    physical = tn.compile(model, shapes=shapes or {n: x.shape for n, x in data.items()})
    params = physical.randomize_params(0)
    return physical.evaluate(params, data), params


X = tn.array([[1.0, -2.0, 3.0], [0.5, 4.0, -1.0]])


def test_ends_of_a_chain_have_names():
    model = tn.Model(Linear(4), Relu())
    assert model.input_keys == ("input",) and model.output_keys == ("output",)
    assert model.parameter_keys == ("linear.weight", "linear.bias")
    model |= M.Add()(x1="input", x2=IOKey(value=1.0), output="more")
    assert model.input_keys == ("input",) and model.output_keys == ("relu.output", "more")


def test_ends_may_be_read_by_their_names():
    model = tn.Model(Linear(3), Relu())
    model |= M.Add()(x1="input", x2="output", output="y")
    got, params = evaluate(model, {"input": X})
    want = X + tn.relu(X @ params["linear.weight"].T + params["linear.bias"])
    assert list(got) == ["y"]
    np.testing.assert_allclose(got["y"].numpy(), want.numpy(), 1e-6)


def test_the_same_block_twice_has_two_sets_of_parameters():
    layer = Linear(3)
    model = tn.Model(layer, layer)
    assert len(model.parameter_keys) == 4


def test_parameters_are_shared_by_name():
    layer = Linear(3)
    model = tn.Model()
    model |= layer(input="x", weight="w", bias="b", output="h")
    model |= layer(input="h", weight="w", bias="b", output="y")
    assert model.parameter_keys == ("w", "b") and model.input_keys == ("x",)
    got, p = evaluate(model, {"x": X})
    want = tn.linear(tn.linear(X, p["w"], p["b"]), p["w"], p["b"])
    np.testing.assert_allclose(got["y"].numpy(), want.numpy(), 1e-5)


def test_paths_connect_too():
    model = tn.Model()
    model |= Linear(3)(input="x", name="first")
    model |= M.Exp()(input="first.output", output="y")
    model |= M.Linear(3)(input="x", weight="first.weight", output="z")
    assert model.parameter_keys == ("first.weight", "first.bias", "linear.bias")


def test_operators_add_blocks():
    model = tn.Model()
    model |= Linear(3)(input="x", output="h")
    y = 2 * model.h + model.x / 4 - 1
    y = -(y @ model.x.transpose()) ** 2
    y = abs(y)[:, 0] + tn.array([1.0, 2.0])
    z = (model.x > 0).any(axis=1).astype(tn.float32)
    assert isinstance(y, M.Connection) and y.model is model
    model |= M.Add()(x1=y, x2=z.sum(), output="y")
    got, p = evaluate(model, {"x": X})
    x, h = X.numpy(), X.numpy() @ p["linear.weight"].numpy().T + p["linear.bias"].numpy()
    want = abs(-(((2 * h + x / 4 - 1) @ x.T) ** 2))[:, 0] + [1, 2] + (x > 0).any(1).sum()
    np.testing.assert_allclose(got["y"].numpy(), want, 1e-5)


def test_numbers_do_not_widen():
    model = tn.Model()
    model |= Relu()(input=IOKey("x", type=tn.float16, shape=[3]), output="h")
    y = 1 - model.h * 2.5
    assert tn.compile(model).get_types()[y.name] == tn.float16


def test_methods_with_several_results_and_lists():
    model = tn.Model()
    model |= Relu()(input="x", output="h")
    values, indices = model.h.topk(2)
    parts = model.h.split(3, axis=1)
    assert len(parts) == 3 and values.name != indices.name
    got, _ = evaluate(model, {"x": X})
    assert got[parts[1].name].tolist() == [[0.0], [4.0]]
    assert got[values.name].tolist() == tn.topk(tn.relu(X), 2)[0].tolist()


def test_indexing():
    model = tn.Model()
    model |= Relu()(input="x", output="h")
    model |= M.Argmax(axis=1)(input="x", output="best")
    a, b, c = model.h[1:, ::2], model.h[..., None], model.h[0, model.best]
    got, _ = evaluate(model, {"x": X})
    h = np.maximum(X.numpy(), 0)
    assert got[a.name].tolist() == h[1:, ::2].tolist()
    assert got[b.name].shape == (2, 3, 1)
    assert got[c.name].tolist() == h[0, X.numpy().argmax(1)].tolist()


def test_connections_are_compared_and_named():
    model = tn.Model()
    model |= Linear(3)(input="x", output="h")
    assert model.h == model.connection("h") and model.h != model.x
    assert len({model.h, model.connection("h")}) == 1
    assert repr(model.h) == "Connection 'h' of 'model'"
    with pytest.raises(AttributeError, match="a connection has no attribute 'sume'"):
        model.h.sume
    with pytest.raises(TypeError, match="how many elements 'h' has is not known yet"):
        list(model.h)
    with pytest.raises(AttributeError):
        model._private


def test_merging_unifies():
    model = tn.Model()
    model |= Relu()(input="a", output="b")
    model |= Linear(7, 2)(input="c", output="d")
    model.merge_connections("c", model.b)
    assert model.input_keys == ("a",)
    assert tn.compile(model, shapes={"a": [5, None]}).get_shapes()["a"] == (5, 7)


def test_io_keys_merge():
    model = tn.Model()
    model |= Linear(3)(input="x", output="a")
    model |= Linear(3)(input="left", output="b")
    model |= Linear(3)(input="right", output="c")
    model |= M.Exp()(input=IOKey("both", connections=["left", model.right]), output="y")
    assert model.input_keys == ("x", "both")
    before = repr(model)
    with pytest.raises(ValueError, match="both have values"):
        model |= M.Exp()(input=IOKey(connections=["a", "b"]), output="z")
    assert repr(model) == before


def test_descriptions():
    model = tn.Model()
    model |= M.Add()(x1="x", x2="y", output="z")
    model.set_shapes(x=[None, 3]).set_types({"x": tn.float16}).set_values(y=2.0)
    assert model.input_keys == ("x",)
    physical = tn.compile(model)
    assert physical.get_shapes()["z"][1] == 3
    with pytest.raises(ValueError, match="no connection 'q'"):
        model.set_shapes({"z": [2, 3], "q": [1]})
    assert tn.compile(model, shapes={"x": [7, 3]}).get_shapes()["z"] == (7, 3)  # not [2, 3]


def nested(depth):
    inner = tn.Model(Linear(3), Relu(), name="level")
    for _ in range(depth - 1):
        outer = tn.Model(name="level")
        outer |= inner(input="input", output="h")
        outer |= Linear(3)(input="h", output="output")
        inner = outer
    return inner


def test_models_nest_with_the_same_names():
    model = tn.Model()
    model |= nested(5)(input="x", output="y")
    paths = ["level." * depth + "linear.weight" for depth in range(1, 6)]
    assert sorted(k for k in model.parameter_keys if k.endswith("weight")) == sorted(paths)
    got, p = evaluate(model, {"x": X})
    h = X
    for depth in range(5, 0, -1):
        path = "level." * depth + "linear"
        h = tn.linear(h, p[f"{path}.weight"], p[f"{path}.bias"])
        h = tn.relu(h) if depth == 5 else h
    np.testing.assert_allclose(got["y"].numpy(), h.numpy(), 1e-5)


def test_a_model_inside_is_as_it_was():
    inner = tn.Model(Linear(3), name="inner")
    model = tn.Model(inner)
    inner += Relu()
    assert "relu" not in repr(model) and len(model.parameter_keys) == 2
    model |= model(input="again", output="copy")
    assert model.parameter_keys[2:] == ("model.inner.linear.weight", "model.inner.linear.bias")


def test_parameters_of_models_inside_are_shared_by_name():
    inner = tn.Model(name="inner")
    inner |= Linear(3)(input="x", weight="w", output="y")
    model = tn.Model()
    model |= inner(x="a", w="shared", y="b")
    model |= inner(x="b", w="shared", y="c")
    assert model.parameter_keys == ("shared", "inner.linear.bias", "inner_1.linear.bias")


def test_modules_are_taken_as_they_are():
    model = tn.Model(tn.nn.Linear(3, 4), tn.nn.BatchNorm(4))
    model.add(Linear(2), input="output", output="y")
    model.add(M.Exp()(input="y", output="z"))
    assert model.state_keys == ("batch_norm.running_mean", "batch_norm.running_var")
    assert model.output_keys == ("z",)
    with pytest.raises(ValueError, match="the block is connected already"):
        model.add(M.Exp()(input="y"), output="q")


def test_a_failed_addition_changes_nothing():
    model = tn.Model(Linear(3))
    before = repr(model)
    for wrong in (
        lambda: model.add(Linear(3), input="a", inputs="b"),
        lambda: model.add(Relu(), input="x", output="not a name"),
        lambda: model.__ior__(3),
    ):
        with pytest.raises((TypeError, ValueError)):
            wrong()
    assert repr(model) == before


def test_text():
    model = tn.Model(Linear(3), name="encoder")
    text = "Model 'encoder', 1 block\n  linear  Linear(output_dims=3)  input -> output"
    assert repr(model) == text
    assert str(tn.Model(model)).splitlines()[1] == "  encoder  encoder  input -> output"


def test_batch_norm_after_a_linear_layer():
    model = tn.Model(Linear(8, 16), M.BatchNorm1d())
    shapes = tn.compile(model).get_shapes()
    assert shapes["batch_norm1d.weight"] == (16,) and len(shapes["output"]) == 2


def test_states_are_those_of_their_blocks_in_any_order():
    model = tn.Model()
    model |= M.BatchNorm1d()(input="h", output="y", name="second")
    model |= M.BatchNorm1d()(input="x", output="g", name="first")
    model |= M.Exp()(input="g", output="h")
    physical = tn.compile(model, shapes={"x": [2, 3]})
    _, state = physical.evaluate(
        physical.randomize_params(), {"x": X}, state=physical.initial_state()
    )
    want = 0.1 * X.mean(axis=0)
    np.testing.assert_allclose(state["first.running_mean"].numpy(), want.numpy(), 1e-6)


def test_blocks_that_share_a_state_go_on_with_it():
    norm, names = M.BatchNorm1d(affine=False), {"running_mean": "mean", "running_var": "var"}
    model = tn.Model()
    model |= norm(input="a", output="b", **names)
    model |= norm(input="c", output="d", **names)
    physical = tn.compile(model, shapes={"a": [2, 3], "c": [2, 3]})
    _, state = physical.evaluate({}, {"a": X, "c": X + 1}, state=physical.initial_state())
    want = 0.9 * (0.1 * X.mean(axis=0)) + 0.1 * (X + 1).mean(axis=0)
    np.testing.assert_allclose(state["mean"].numpy(), want.numpy(), 1e-5)


@pytest.mark.parametrize("copied", [copy.copy, copy.deepcopy])
def test_copies_are_models_of_their_own(copied):
    model = tn.Model(Linear(3))
    other = copied(model)
    other += Relu()
    assert "relu" not in repr(model) and "relu" in repr(other)


def test_copies_of_models_in_training_have_losses_of_their_own():
    training = tn.TrainModel(tn.Model(Linear(1)))
    other = copy.copy(training)
    other.add_loss(M.MSE(), input="output", target="y")
    with pytest.raises(tn.Error, match="there is no loss"):
        tn.compile(training, shapes={"input": [2, 3]})


def test_connections_are_transposed_as_tensors_are():
    model = tn.Model()
    model |= Relu()(input="x", output="h")
    model.h @ model.h.T
    got, _ = evaluate(model, {"x": X})
    np.testing.assert_allclose(got["output"].numpy(), (tn.relu(X) @ tn.relu(X).T).numpy(), 1e-6)
