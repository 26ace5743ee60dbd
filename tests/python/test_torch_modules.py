"""Modules by PyTorch's names: parameters, buffers, element types, children, state dicts, layers."""

import numpy as np
import pytest

import tenon as tn
from tenon import nn


def network():
    return nn.Sequential(nn.Linear(2, 3), nn.BatchNorm1d(3), nn.relu, nn.Linear(3, 1))


def test_parameters_are_a_loop_over_tensors_and_a_tree_by_name():
    model = network()
    parameters = list(model.parameters())
    assert [p.shape for p in parameters] == [(3, 2), (3,), (3,), (3,), (1, 3), (1,)]
    assert parameters[0] is model[0].weight and all(p.requires_grad for p in parameters)
    assert sum(p.numel() for p in model.parameters()) == 6 + 3 + 3 + 3 + 3 + 1
    tree = model.parameters()
    assert tree["layers"][0]["weight"] is model[0].weight and set(tree.keys()) == {"layers"}
    assert dict(tree).keys() == {"layers"} and "layers" in tree
    shapes = tn.tree.map(lambda p: p.shape, tree)
    assert shapes["layers"][0] == {"weight": (3, 2), "bias": (3,)}
    assert len(tn.tree.leaves(tree)) == 8  # with the running statistics
    model.update(tn.tree.map(tn.zeros_like, tree))
    assert all(not p.numpy().any() for p in model.parameters())


def test_frozen_and_tied_parameters_in_the_loop():
    model = network()
    model[0].freeze()
    model[3].tied = model[3].weight
    assert [p.requires_grad for p in model.parameters()] == [False, False, True, True, True, True]
    assert list(nn.ReLU().parameters()) == []


def test_buffers_are_registered():
    layer = nn.Linear(2, 2)
    layer.register_buffer("mean", tn.array([1.0, 2.0]))
    layer.register_buffer("scratch", tn.zeros(3), persistent=False)
    assert layer.mean.tolist() == [1, 2]
    assert list(layer.trainable_parameters()) == ["weight", "bias"]
    assert list(layer.state_dict()) == ["weight", "bias", "mean"]
    assert [name for name, _ in layer.named_buffers()] == ["mean", "scratch"]
    assert len(list(layer.parameters())) == 2 and repr(layer) == "Linear(2 -> 2)"
    other = nn.Linear(2, 2)
    other.register_buffer("mean", tn.zeros(2))
    other.load_state_dict(layer.state_dict())
    assert other.mean.tolist() == [1, 2]
    outer = nn.Sequential(other, nn.BatchNorm(2))
    names = [name for name, _ in outer.named_buffers()]
    assert names == ["layers.0.mean", "layers.1.running_mean", "layers.1.running_var"]
    layer.register_buffer("later", None)
    layer.later = tn.ones(1)
    assert "later" in layer.state_dict() and "later" not in layer.trainable_parameters()
    for call, text in [
        (lambda: layer.register_buffer("a.b", tn.zeros(1)), "no dot"),
        (lambda: layer.register_buffer("weight", tn.zeros(1)), "has 'weight' already"),
        (lambda: layer.register_buffer("x", 1.0), "x is a float, no tensor"),
    ]:
        with pytest.raises((ValueError, TypeError), match=text):
            call()


def test_a_registered_buffer_is_state_of_a_compiled_step():
    class Counter(nn.Module):
        def __init__(self):
            self.register_buffer("count", tn.array(0))

        def forward(self, x):
            self.count = self.count + 1
            return x * 2

    model = Counter()
    step = tn.compile(model.forward, inputs=model.state, outputs=model.state)
    step(tn.ones(2)), step(tn.ones(2))
    assert model.count.item() == 2


def test_modules_are_converted():
    model = network()
    model.register_buffer("steps", tn.array(3))
    assert model.half() is model and model[1].running_mean.dtype == tn.float16
    assert model.steps.dtype == tn.int64
    for call, dtype in [
        (lambda: model.to(tn.float64), tn.float64),
        (lambda: model.to("bfloat16"), tn.bfloat16),
        (lambda: model.to(dtype=tn.float16), tn.float16),
        (lambda: model.to(tn.zeros(1)), tn.float32),
        (lambda: model.double(), tn.float64),
        (lambda: model.float(), tn.float32),
        (lambda: model.bfloat16(), tn.bfloat16),
        (lambda: model.to("cpu", dtype=tn.float32), tn.float32),
    ]:
        assert {p.dtype for p in call().parameters()} == {dtype}
    assert model.to("cpu") is model.cpu() is model.to(tn.ones(1).device) is model
    for call, text in [
        (lambda: model.to("cuda"), "device: cuda: no NVIDIA driver"),
        (lambda: model.to(device="cuda:0"), "device: cuda:0: no NVIDIA driver"),
        (lambda: model.cuda(), r"device: cuda: no NVIDIA driver(.|\n)*the devices are cpu"),
        (lambda: model.cuda(1), "device: cuda:1: no NVIDIA driver"),
        (lambda: model.to(tn.int32), "parameters are floating-point, not int32"),
    ]:
        with pytest.raises((ValueError, TypeError), match=text):
            call()


def test_children():
    class Outer(nn.Module):
        def __init__(self):
            self.first = nn.Sequential(nn.Linear(1, 1))
            self.more = [nn.ReLU(), {"a": nn.Linear(1, 1)}]
            self.again = self.first

    model = Outer()
    assert list(model.children()) == [model.first, model.more[0], model.more[1]["a"]]
    assert [name for name, _ in model.named_children()] == ["first", "more.0", "more.1.a"]
    assert len(model.modules()) == 5


def test_state_dicts_of_sequentials_have_pytorchs_names_if_asked_to(tmp_path):
    class Classifier(nn.Module):
        def __init__(self):
            self.features = nn.Sequential(nn.Sequential(nn.Linear(2, 2)), nn.BatchNorm1d(2))
            self.blocks = [nn.Sequential(nn.Linear(2, 1))]

    model = Classifier()
    names = [
        "features.0.0.weight",
        "features.0.0.bias",
        "features.1.weight",
        "features.1.bias",
        "features.1.running_mean",
        "features.1.running_var",
        "blocks.0.0.weight",
        "blocks.0.0.bias",
    ]
    assert list(model.state_dict(names="torch")) == names
    shapes = [x.shape for x in model.state_dict("torch").values()]
    theirs = {name: tn.full(shapes[i], float(i)) for i, name in enumerate(names)}
    theirs["features.1.num_batches_tracked"] = tn.array(7)  # as a file of PyTorch has it
    assert model.load_state_dict(theirs) == ([], [])
    assert model.features[0][0].bias.tolist() == [1, 1] and model.blocks[0][0].bias.item() == 7
    path = tmp_path / "weights.safetensors"
    model.save_weights(path, names="torch")
    assert sorted(tn.load(path)) == sorted(names)
    other = Classifier().load_weights(path)
    assert np.array_equal(other.features[0][0].weight, model.features[0][0].weight)
    other = Classifier().load_weights(model.state_dict())
    assert np.array_equal(other.features[0][0].weight, model.features[0][0].weight)
    plain = nn.Sequential(nn.Linear(2, 1), nn.ReLU(), nn.Linear(1, 1))
    assert list(plain.state_dict(names="torch")) == ["0.weight", "0.bias", "2.weight", "2.bias"]
    plain.load_state_dict({name: tn.ones(x.shape) for name, x in plain.state_dict("torch").items()})
    assert plain[2].bias.item() == 1
    with pytest.raises(ValueError, match="1 problem.*\n    shape: layers.0.bias is"):
        plain.load_state_dict(plain.state_dict("torch") | {"0.bias": tn.ones(5)})
    with pytest.raises(ValueError, match="names must be 'tenon' or 'torch', not 'jax'"):
        plain.state_dict(names="jax")
    with pytest.raises(ValueError, match="'layers.0.bias' is given twice"):
        plain.load_state_dict(plain.state_dict() | {"0.bias": tn.ones(1)})


@pytest.mark.parametrize("mode", ["reflect", "replicate", "circular"])
def test_padding_with_channels_last_is_the_same(mode):
    first = nn.Conv2d(2, 3, 3, padding=1, padding_mode=mode)
    last = nn.Conv2d(2, 3, 3, padding=1, padding_mode=mode, channels_last=True)
    last.update(first.parameters())
    x = tn.random.normal((1, 2, 4, 5))
    y = last(tn.moveaxis(x, 1, -1))
    np.testing.assert_allclose(tn.moveaxis(y, -1, 1).numpy(), first(x).numpy(), 1e-5, 1e-6)
    assert f"padding_mode='{mode}'" in repr(first)


def test_circular_and_zero_padding():
    x = tn.array([[[1.0, 2.0, 3.0]]])
    assert nn.CircularPad1d((2, 1))(x).tolist() == [[[2, 3, 1, 2, 3, 1]]]
    assert nn.ZeroPad1d((0, 2))(x).tolist() == [[[1, 2, 3, 0, 0]]]
    y = tn.arange(6.0).reshape(1, 1, 2, 3)
    want = np.pad(y.numpy(), [(0, 0), (0, 0), (0, 1), (1, 2)], mode="wrap")
    assert np.array_equal(nn.CircularPad2d((1, 2, 0, 1))(y), want)
    last = nn.CircularPad2d((1, 2, 0, 1), channels_last=True)(tn.moveaxis(y, 1, -1))
    assert np.array_equal(tn.moveaxis(last, -1, 1), want)
    assert nn.ZeroPad3d(1)(y[None]).shape == (1, 1, 3, 4, 5)


@pytest.mark.parametrize(
    "call, text",
    [
        (lambda: nn.ReflectionPad1d(3)(tn.ones((1, 1, 3))), "reflect needs more elements"),
        (lambda: nn.ZeroPad2d((1, 2)), "an integer from 0 on, or 4 of them"),
        (lambda: nn.ZeroPad1d(-1), "an integer from 0 on, or 2 of them, not -1"),
        (lambda: nn.ZeroPad2d(1)(tn.ones((1, 2))), r"expected \[batch, channels, height, width\]"),
        (lambda: nn.Conv1d(1, 1, 3, padding_mode="wrap"), "padding_mode must be one of zeros"),
        (
            lambda: nn.Conv1d(1, 1, 3, 2, "same", padding_mode="reflect")(tn.ones((1, 1, 9))),
            "padding 'same' needs a stride of 1",
        ),
        (lambda: nn.AdaptiveAvgPool2d(0), "output_size must be an integer from 1 on"),
        (lambda: nn.AdaptiveAvgPool1d(2)(tn.ones((1, 2))), "expected .batch, channels, length."),
        (lambda: nn.PixelShuffle(2)(tn.ones((1, 3, 2, 2))), "3 channels are not a multiple of 4"),
        (lambda: nn.PixelUnshuffle(2)(tn.ones((1, 3, 3, 2))), "3 and 2 are not multiples of 2"),
        (lambda: nn.LSTMCell(2, 3)(tn.ones((1, 2)), tn.ones((1, 3))), "a state is 2 tensors"),
        (lambda: nn.GRUCell(2, 3)(tn.ones((1, 2)), tn.ones(3)), r"a state \[1,3\], given f32\[3\]"),
        (lambda: nn.LSTMCell(2, 3)(tn.ones((1, 2)), tn.ones(3)), "a state is 2 tensors, given a T"),
        (lambda: nn.GRUCell(2, 3)(tn.ones((1, 4))), r"expected \[..., 2\], given f32\[1,4\]"),
        (lambda: nn.RNN(2, 3, nonlinearity="relo"), "nonlinearity must be a function"),
        (lambda: nn.RNN(2, 3, batch_first=False)(tn.ones((4, 1, 3))), "expected .length, ..., 2."),
    ],
)
def test_errors_of_layers(call, text):
    with pytest.raises(ValueError, match=text):
        call()


def test_cells_make_the_steps_of_layers():
    x = tn.random.normal((2, 5, 3))
    for layer, cell in [
        (nn.RNN(3, 4), nn.RNNCell(3, 4)),
        (nn.GRU(3, 4), nn.GRUCell(3, 4)),
        (nn.LSTM(3, 4), nn.LSTMCell(3, 4)),
    ]:
        weights = layer.state_dict()
        cell.load_state_dict({name.removesuffix("_l0"): value for name, value in weights.items()})
        outputs, last = layer(x)
        state, seen = None, []
        for k in range(5):
            state = cell(x[:, k], state)
            seen.append(state[0] if isinstance(state, tuple) else state)
        np.testing.assert_allclose(tn.stack(seen, 1).numpy(), outputs.numpy(), 1e-5, 1e-6)
        assert repr(cell) == f"{type(cell).__name__}(3 -> 4)"


def test_sequences_without_a_batch_have_one_layout():
    first, last = nn.GRU(3, 4), nn.GRU(3, 4, batch_first=False)
    last.update(first.parameters())
    x = tn.random.normal((5, 3))
    assert first(x)[0].tolist() == last(x)[0].tolist()
    assert "batch_first=False" in repr(last) and "batch_first" not in repr(first)


def test_arguments_and_methods_have_the_names_of_pytorch():
    x = tn.array([[1.0, 2.0], [3.0, 4.0]])
    for kind in (nn.Softmax, nn.LogSoftmax, nn.Softmin):
        assert kind(dim=0)(x).tolist() == kind(axis=0)(x).tolist() == kind(0)(x).tolist()
    assert repr(nn.Linear(in_features=2, out_features=3)) == "Linear(2 -> 3)"
    assert nn.Bilinear(in1_features=1, in2_features=2, out_features=3).weight.shape == (3, 1, 2)
    assert nn.Embedding(4, embedding_dim=2).weight.shape == (4, 2)
    assert nn.LayerNorm(2, elementwise_affine=False).weight is None
    with pytest.raises(TypeError, match="Softmax: dim and axis are the same argument"):
        nn.Softmax(dim=0, axis=1)
    with pytest.raises(TypeError, match="features"):
        nn.Linear(2, 2, features=3)

    layer = nn.Linear(2, 3)
    parameters = layer.parameters()
    assert next(layer.parameters()).dtype == tn.float32
    assert [next(parameters) is p for p in layer.parameters()] == [True, True]
    with pytest.raises(StopIteration):
        next(parameters)
    assert len(list(parameters)) == 2
    assert x.cpu() is x and x.contiguous() is x and x.detach().cpu().tolist() == x.tolist()


def test_named_parameters_are_those_of_a_loop():
    model = nn.Sequential(nn.Linear(2, 2), nn.BatchNorm(2), nn.Linear(2, 2))
    model.layers[2].weight = model.layers[0].weight  # tied
    names = [f"layers.{n}" for n in ("0.weight", "0.bias", "1.weight", "1.bias", "2.bias")]
    assert [name for name, _ in model.named_parameters()] == names
    assert all(a is b for (_, a), b in zip(model.named_parameters(), model.parameters()))
    assert "layers.1.running_mean" in model.state_dict() and "layers.2.weight" in model.state_dict()
    assert all(name in {n.rpartition(".")[0] for n in names} for name, _ in model.named_children())
