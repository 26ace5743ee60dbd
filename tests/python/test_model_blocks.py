"""Blocks compute what the ops and layers they stand for compute."""

import doctest
from importlib import import_module
from pkgutil import iter_modules

import numpy as np
import pytest

import tenon as tn
import tenon.model as M
from op_harness import Call, bits_of, varying
from tenon import nn
from tenon.model import blocks
from tenon.nn.module import named_tensors


def functions(model, tensors=(), training=False):
    """What the model computes, for the types of what it is given by name."""
    tensors = dict(tensors)
    shapes = {name: x.shape for name, x in tensors.items()}
    types = {name: x.dtype for name, x in tensors.items()}
    backend = tn.InterpreterBackend()
    said = {"shapes": shapes, "types": types, "inference": not training}
    return tn.compile(model, backend, **said)._functions


def run(model, tensors, values=(), training=False, key=None):
    """Outputs and new states by name, op by op. `values` are parameters and states."""
    tensors = dict(tensors)
    f = functions(model, tensors, training)
    given = {**tensors, **dict(values), "random.key": key}
    made = f.forward([given[name] for name, *_ in f.given])
    return dict(zip([*f.outputs, *f.states], made))


def first_values(f):
    """Of parameters and states, by name."""
    firsts = zip(f.given, f.first_values(tn.random.key(0)))
    return {g[0]: value for g, value in firsts if g[1] != "input" and g[0] != "random.key"}


def draws(f):
    return "random.key" in [name for name, *_ in f.given]


def model_of(block, inputs, output=True):
    """A model of one block whose inputs are connections of their own names."""
    model = tn.Model()
    outputs = {name: name for name in block.outputs} if output else {}
    model |= block(name="it", **{name: name for name in inputs}, **outputs)
    return model


# Ops -----------------------------------------------------------------------------------------

SAMPLES = {}
for _sample in tn.testing.samples():
    SAMPLES.setdefault(_sample.op, []).append(_sample)


# Their shapes depend on values, so that no model can have them.
OF_VALUES = {"argwhere", "nonzero", "repeat", "unique_all", "unique_counts", "unique_inverse"}
OF_VALUES |= {"unique_values", "delete_elements"}


def as_list(result):
    return list(result) if isinstance(result, (list, tuple)) else [result]


@pytest.mark.parametrize("op", SAMPLES)
def test_ops_are_blocks(op):
    for sample in SAMPLES[op]:
        call = Call(sample, varying(sample) or tn.float32)
        operands = call.operands()
        want = as_list(call.run(operands))
        listed = len(operands) - len(sample.arg_names) + 1 if sample.has_list else len(want)
        name = blocks.capitals(op)
        make = blocks._op_maker(name)  # layers have some of the names
        takes_count = sample.has_list or sample.results == 1
        count = {"count": listed} if takes_count else {}
        block = make(**count, **sample.keywords)
        names = block.inputs[: len(operands)]
        if op in OF_VALUES:
            with pytest.raises(ValueError, match="its shape depends on values"):
                run(model_of(block, names), zip(names, operands))
            continue
        got = run(model_of(block, names), zip(names, operands))
        assert bits_of([got[name] for name in block.outputs]) == bits_of(want), sample


def test_aliases_are_blocks():
    for samples in SAMPLES.values():
        for alias in samples[0].aliases:
            assert callable(getattr(M, blocks.capitals(alias)))


def test_dir_lists_all_blocks():
    listed = set(dir(M))
    assert {blocks.capitals(op) for op in SAMPLES} <= listed
    assert {"Linear", "Conv2d", "LSTM", "Cast", "MatMul", "Model", "IOKey", "block"} <= listed
    assert "Linear" in M.__all__ and len(M.__all__) == len(set(M.__all__))


def test_attributes_are_checked_when_a_block_is_made():
    with pytest.raises(TypeError, match="(?s)softmax: unknown keyword: axs.*did you mean axis"):
        M.Softmax(axs=1)
    with pytest.raises(TypeError, match="reshape: argument shape is missing"):
        M.Reshape()
    with pytest.raises(TypeError, match="softmax: axis must be an integer"):
        M.Softmax(axis="last")
    with pytest.raises(TypeError, match="softmax: 3 attributes given"):
        M.Softmax(1, 2, 3)
    with pytest.raises(ValueError, match="Concat: say how many tensors it takes"):
        M.Concat()
    with pytest.raises(AttributeError, match="no attribute 'Sofmax'.*Softmax"):
        M.Sofmax


def test_operands_may_be_constants_of_the_block():
    model = tn.Model()
    model |= M.Multiply(x2=2.5)(x1="x", output="y")
    x = tn.array([1.0, 2.0], dtype=tn.float16)
    got = run(model, {"x": x})["y"]
    assert got.dtype == tn.float16 and got.tolist() == [2.5, 5.0]


def test_reductions_keep_sizes_that_are_not_known():
    model = tn.Model()
    model |= M.Sum(axis=1)(input=M.IOKey("x", shape=["b", "c", 7]), output="y")
    model |= M.Linear(3)(input="y", output="z")
    shapes = tn.compile(model, shapes={"y": ["b", 7]}).get_shapes()
    assert shapes["linear.weight"] == (3, 7) and shapes["z"][1] == 3
    backwards = tn.Model(M.Relu(), M.Mean(axis=-1, keepdims=True))
    assert tn.compile(backwards, shapes={"output": [4, 1], "input": [None, 9]}).get_shapes()[
        "relu.output"
    ] == (4, 9)


def test_types_go_backwards():
    model = tn.Model(M.Linear(4), M.Relu())
    model |= M.Exp()(input="output", output="y")
    types = tn.compile(model, shapes={"input": [2, 3]}, types={"y": tn.float16}).get_types()
    assert {types[name] for name in types} == {tn.float16}


def test_random_ops_draw_from_the_models_key():
    model = tn.Model()
    model |= M.RandomNormal(loc=0.0, scale=1.0, shape=(3,))(output="y")
    a, b = (run(model, {}, key=tn.random.key(seed))["y"] for seed in (0, 1))
    assert a.tolist() != b.tolist()
    given = tn.Model()
    given |= M.RandomNormal(loc=0.0, scale=1.0, shape=(3,))(key="k", output="y")
    want = tn.random.normal((3,), key=tn.random.key(5))
    assert run(given, {"k": tn.random.key(5)})["y"].tolist() == want.tolist()


# Layers --------------------------------------------------------------------------------------

rng = np.random.default_rng(0)


def real(*shape):
    return tn.array(rng.standard_normal(shape), dtype=tn.float32)


def below(limit, *shape):
    return tn.array(rng.integers(0, limit, shape))


IMAGE, SEQUENCE, VOLUME = real(2, 4, 9, 8), real(2, 4, 9), real(2, 4, 5, 6, 7)
# The arguments of each layer of tenon.nn, and what it is called with.
LAYERS = {
    "ALiBi": [((), [real(2, 4, 6, 6)])],
    "AvgPool1d": [((3,), [SEQUENCE])],
    "AvgPool2d": [((2,), [IMAGE])],
    "AvgPool3d": [((2,), [VOLUME])],
    "BCELoss": [((), [tn.sigmoid(real(3)), tn.array([0.0, 1.0, 1.0])])],
    "BCEWithLogitsLoss": [((), [real(3), tn.array([0.0, 1.0, 1.0])])],
    "BatchNorm": [((4,), [IMAGE])],
    "BatchNorm1d": [((4,), [SEQUENCE])],
    "BatchNorm2d": [((4,), [IMAGE])],
    "BatchNorm3d": [((4,), [VOLUME])],
    "Bilinear": [((3, 4, 2), [real(5, 3), real(5, 4)])],
    "Conv": [((4, 6, (3, 3)), [IMAGE])],
    "Conv1d": [((4, 6, 3), [SEQUENCE])],
    "Conv2d": [((4, 6, 3), [IMAGE])],
    "Conv3d": [((4, 6, 3), [VOLUME])],
    "ConvTranspose": [((4, 6, (3, 3)), [IMAGE])],
    "ConvTranspose1d": [((4, 6, 3), [SEQUENCE])],
    "ConvTranspose2d": [((4, 6, 3), [IMAGE])],
    "ConvTranspose3d": [((4, 6, 3), [VOLUME])],
    "CrossEntropyLoss": [((), [real(3, 5), below(5, 3)])],
    "Dropout": [((0.5,), [SEQUENCE])],
    "Dropout2d": [((0.5,), [IMAGE])],
    "Dropout3d": [((0.5,), [VOLUME])],
    "Embedding": [((10, 4), [below(10, 2, 3)])],
    "Flatten": [((), [IMAGE])],
    "GRU": [((4, 5), [real(2, 3, 4)])],
    "GaussianNLLLoss": [((), [real(3), real(3), tn.exp(real(3))])],
    "GroupNorm": [((2, 4), [IMAGE])],
    "HuberLoss": [((), [real(3), real(3)])],
    "InstanceNorm": [((4,), [IMAGE])],
    "KLDivLoss": [((), [tn.log_softmax(real(3, 4)), tn.softmax(real(3, 4))])],
    "L1Loss": [((), [real(3), real(3)])],
    "GRUCell": [((4, 5), [real(2, 4)])],
    "LSTM": [((4, 5), [real(2, 3, 4)])],
    "LSTMCell": [((4, 5), [real(2, 4)])],
    "LayerNorm": [((8,), [IMAGE])],
    "Linear": [((8, 3), [IMAGE])],
    "MSELoss": [((), [real(3), real(3)])],
    "MarginRankingLoss": [((), [real(3), real(3), tn.array([1.0, -1.0, 1.0])])],
    "MaxPool1d": [((3,), [SEQUENCE])],
    "MaxPool2d": [((2,), [IMAGE])],
    "MaxPool3d": [((2,), [VOLUME])],
    "MultiHeadAttention": [((8, 2), [real(2, 3, 8)])],
    "NLLLoss": [((), [tn.log_softmax(real(3, 5)), below(5, 3)])],
    "Pipeline": [(([nn.Linear(8, 3), nn.relu], 2), [real(4, 8)])],
    "PixelShuffle": [((2,), [IMAGE])],
    "PixelUnshuffle": [((3,), [IMAGE[..., :6]])],
    "RMSNorm": [((8,), [IMAGE])],
    "RNNCell": [((4, 5), [real(2, 4)])],
    "RNN": [((4, 5), [real(2, 3, 4)])],
    "RoPE": [((8,), [real(2, 3, 8)])],
    "Sequential": [((nn.Linear(8, 3), nn.BatchNorm(4), nn.Dropout(0.5)), [SEQUENCE[..., :8]])],
    "SinusoidalPositionalEncoding": [((8,), [below(5, 2, 3)])],
    "SmoothL1Loss": [((), [real(3), real(3)])],
    "Transformer": [((8, 2, 1, 1, 16), [real(2, 3, 8), real(2, 4, 8)])],
    "TransformerDecoder": [((1, 8, 2, 16), [real(2, 3, 8), real(2, 4, 8)])],
    "TransformerDecoderLayer": [((8, 2, 16), [real(2, 3, 8), real(2, 4, 8)])],
    "TransformerEncoder": [((1, 8, 2, 16), [real(2, 3, 8)])],
    "TransformerEncoderLayer": [((8, 2, 16), [real(2, 3, 8)])],
    "TripletMarginLoss": [((), [real(3, 4), real(3, 4), real(3, 4)])],
    "Upsample": [((None, 2), [IMAGE])],
}
SPATIAL = {1: SEQUENCE, 2: IMAGE, 3: VOLUME}
for _axes, _x in SPATIAL.items():
    for _kind in ("Circular", "Reflection", "Replication", "Zero"):
        LAYERS[f"{_kind}Pad{_axes}d"] = [((1,), [_x])]
    LAYERS[f"ConstantPad{_axes}d"] = [((1, 0.5), [_x])]
    for _kind in ("Avg", "Max"):
        LAYERS[f"Adaptive{_kind}Pool{_axes}d"] = [((2,), [_x]), ((3,), [_x])]
        LAYERS[f"Global{_kind}Pool{_axes}d"] = [((), [_x])]
ACTIVATIONS = [name for name in blocks._modules() if name not in LAYERS]
LAYERS |= {name: [((), [IMAGE])] for name in ACTIVATIONS}
LAYERS["PReLU"].append(((4, 0.5), [IMAGE]))
CASES = [(n, *case) for n in LAYERS for case in LAYERS[n]]


def flat(result):
    return tn.tree.leaves(result)


@pytest.mark.parametrize("training", [False, True], ids=["inference", "training"])
@pytest.mark.parametrize("name, args, inputs", CASES, ids=[case[0] for case in CASES])
def test_modules_are_blocks(name, args, inputs, training):
    module = getattr(nn, name)(*args).train(training)
    block = M.block(module)
    model = model_of(block, block.inputs[: len(inputs)])
    f = functions(model, zip(block.inputs, inputs), training)
    state, values = module.state_dict(), first_values(f)
    assert {n.removeprefix("it."): v.tolist() for n, v in values.items()} == {
        n: v.tolist() for n, v in state.items()
    }
    got = run(model, zip(block.inputs, inputs), values, training, tn.random.key(1))
    if draws(f):
        # What a model draws with is made of its key and the place of the block.
        tn.random.state[0] = tn.random.fold_in(tn.random.split(tn.random.key(1))[0], 0)
    want = flat(module(*inputs))
    assert bits_of([got[n] for n in block.outputs]) == bits_of(want)
    for name, value in module.state_dict().items():
        if f"it.{name}" in got:
            assert bits_of(got[f"it.{name}"]) == bits_of(value)


def test_all_layers_are_tried():
    assert set(LAYERS) == set(blocks._modules())


LEFT_OUT = {  # layers whose sizes are found: how they are made
    "BatchNorm1d": lambda: M.BatchNorm1d(),
    "BatchNorm2d": lambda: M.BatchNorm2d(),
    "BatchNorm3d": lambda: M.BatchNorm3d(),
    "Conv1d": lambda: M.Conv1d(6, kernel_size=3),
    "Conv2d": lambda: M.Conv2d(6, kernel_size=3),
    "Conv3d": lambda: M.Conv3d(6, kernel_size=3),
    "ConvTranspose1d": lambda: M.ConvTranspose1d(6, kernel_size=3),
    "ConvTranspose2d": lambda: M.ConvTranspose2d(6, kernel_size=3),
    "ConvTranspose3d": lambda: M.ConvTranspose3d(6, kernel_size=3),
    "GroupNorm": lambda: M.GroupNorm(2),
    "InstanceNorm": lambda: M.InstanceNorm(),
    "LayerNorm": lambda: M.LayerNorm(),
    "Linear": lambda: M.Linear(3),
    "RMSNorm": lambda: M.RMSNorm(),
}
WRITTEN = [name for name in blocks._layers() if name in LAYERS]


@pytest.mark.parametrize("training", [False, True], ids=["inference", "training"])
@pytest.mark.parametrize("name", WRITTEN)
def test_layers_agree_with_modules(name, training):
    (args, inputs), *_ = LAYERS[name]
    module = getattr(nn, name)(*args).train(training)
    made = [getattr(M, name)(*args), *([LEFT_OUT[name]()] if name in LEFT_OUT else [])]
    for block in made:
        names = [n for n, role, *_ in block._core.terminals if role == "input"][: len(inputs)]
        model = model_of(block, names)
        f = functions(model, zip(names, inputs), training)
        state = {n.replace(".", "_"): v for n, v in module.state_dict().items()}
        shapes = {name.removeprefix("it."): shape for name, _, shape, *_ in f.given}
        assert {n: shapes[n] for n in state} == {n: v.shape for n, v in state.items()}
        values = {f"it.{n}": v for n, v in state.items()}
        got = run(model, zip(names, inputs), values, training, tn.random.key(1))
        if draws(f):
            here = tn.random.fold_in(tn.random.split(tn.random.key(1))[0], 0)
            x = inputs[0]
            channels = tn.ones((*x.shape[:2], *[1] * (x.ndim - 2)))
            want = tn.dropout(x, here, *args)
            if name != "Dropout":
                want = x * tn.dropout(channels, here, *args)
            assert bits_of(got["output"]) == bits_of(want)
            continue
        fresh = getattr(nn, name)(*args).train(training)
        fresh.load_state_dict(module.state_dict())
        want = flat(fresh(*inputs))
        assert bits_of([got[n] for n in block.outputs]) == bits_of(want)
        for n, value in fresh.state_dict().items():
            if f"it.{n}" in got:
                np.testing.assert_array_equal(got[f"it.{n}"].numpy(), value.numpy())


@pytest.mark.parametrize("name", ["Linear", "Conv2d", "ConvTranspose1d"])
def test_first_values_have_the_bounds_of_modules(name):
    args = {"Linear": (400, 300), "Conv2d": (40, 50, 3), "ConvTranspose1d": (50, 40, 9)}[name]
    module, model = getattr(nn, name)(*args), tn.Model(getattr(M, name)(*args))
    drawn = first_values(functions(model))
    for ours, theirs in zip(drawn.values(), [module.weight, module.bias]):
        bound = abs(module.weight.numpy()).max()
        assert abs(ours.numpy()).max() == pytest.approx(bound, rel=0.05)
        assert ours.numpy().std() == pytest.approx(bound / 3**0.5, rel=0.1)
        assert ours.shape == theirs.shape


def test_activations_keep_the_shape():
    model = tn.Model()
    model |= M.LeakyReLU(0.2)(input="x", output="y")
    model |= M.PReLU(3)(input="y", output="z")
    assert tn.compile(model, shapes={"z": [2, 3, 5]}).get_shapes()["x"] == (2, 3, 5)
    assert "LeakyReLU(negative_slope=0.2)" in str(model)
    assert M.Softmax(axis=(0, 1)).outputs == ("output",)
    with pytest.raises(ValueError, match="GELU: approximate must be one of none, tanh, fast: 'x'"):
        M.GELU("x")


def test_groups_find_channels():
    model = tn.Model()
    model |= M.Conv2d(8, kernel_size=3, groups=4, bias=False)(input="x", output="y")
    assert tn.compile(model, shapes={"x": [1, 12, 5, 5]}).get_shapes()["conv2d.weight"] == (
        8,
        3,
        3,
        3,
    )
    with pytest.raises(ValueError, match="Conv2d 'conv2d': 'in_channels' is 10, which is no mult"):
        tn.compile(model, shapes={"x": [1, 10, 5, 5]})


def test_same_padding_goes_backwards():
    model = tn.Model()
    model |= M.Conv1d(4, 8, kernel_size=3, padding="same")(input="x", output="y")
    assert tn.compile(model, shapes={"y": [2, 8, 50]}).get_shapes()["x"] == (2, 4, 50)


@pytest.mark.parametrize("size, parts", [(8, 4), (7, 3), (5, 8), (6, 1)])
def test_adaptive_pools(size, parts):
    x = rng.standard_normal((2, 3, size)).astype(np.float32)
    ends = [(i * size // parts, -(-(i + 1) * size // parts)) for i in range(parts)]
    want = np.stack([x[..., a:b].mean(-1) for a, b in ends], -1)
    model = tn.Model(M.AdaptiveAvgPool1d(parts))
    got = run(model, {"input": tn.array(x)})["output"]
    np.testing.assert_allclose(got.numpy(), want, 1e-5, 1e-6)


def test_global_pools():
    for kind, want in (("Avg", IMAGE.numpy().mean((2, 3))), ("Max", IMAGE.numpy().max((2, 3)))):
        model = tn.Model(getattr(M, f"Global{kind}Pool2d")())
        got = run(model, {"input": IMAGE})["output"]
        np.testing.assert_allclose(got.numpy(), want, 1e-5, 1e-6)


def test_attention_to_others():
    module = nn.MultiHeadAttention(8, 2)
    model = model_of(M.MultiHeadAttention(8, 2), ["input", "key"])
    q, k = real(2, 3, 8), real(2, 5, 8)
    values = {f"it.{n.replace('.', '_')}": v for n, v in module.state_dict().items()}
    got = run(model, {"input": q, "key": k}, values)["output"]
    np.testing.assert_allclose(got.numpy(), module(q, k).numpy(), 1e-5, 1e-6)


WRONG = {
    "Linear: 4 arguments given, it takes at most 3": lambda: M.Linear(1, 2, True, 3),
    "Linear: output_dims is given twice": lambda: M.Linear(1, 2, out_features=3),
    "Linear: argument output_dims is missing": lambda: M.Linear(),
    "Linear: unknown keyword: output_dim": lambda: M.Linear(output_dim=3),
    "Linear: output_dims must be an integer: 'x'": lambda: M.Linear("x"),
    "Linear: output_dims must be a positive integer, not 0": lambda: M.Linear(0),
    "Linear: input_dims must be a positive integer, not 0": lambda: M.Linear(0, 2),
    "Conv2d: argument kernel_size is missing": lambda: M.Conv2d(64),
    "Conv2d: kernel_size must be an integer from 1 on, or 2 of them, not [1, 2, 3]": (
        lambda: M.Conv2d(64, kernel_size=(1, 2, 3))
    ),
    "Conv2d: groups must divide out_channels: 3 and 64": lambda: M.Conv2d(
        64, kernel_size=3, groups=3
    ),
    "Conv2d: padding must be numbers, 'same' or 'valid', not 'full'": lambda: M.Conv2d(
        64, kernel_size=3, padding="full"
    ),
    "Conv2d: stride must be an integer from 1 on, or 2 of them, not 0": lambda: M.Conv2d(
        6, kernel_size=3, stride=0
    ),
    "Conv2d: kernel_size is given twice": lambda: M.Conv2d(3, 6, 3, kernel_size=3),
    "Conv1d: padding must be an integer from 0 on, not [1, 1, 1, 1, 1]": lambda: M.Conv1d(
        6, kernel_size=3, padding=[1] * 5
    ),
    "AdaptiveAvgPool1d: output_size must be an integer from 1 on, not [1, 1, 1, 1, 1]": (
        lambda: M.AdaptiveAvgPool1d([1] * 5)
    ),
    "MaxPool2d: argument kernel_size is missing": lambda: M.MaxPool2d(),
    "Dropout: p must be at least 0 and less than 1, not 1": lambda: M.Dropout(1),
    "BatchNorm2d: num_features must be an integer: 6.5": lambda: M.BatchNorm2d(6.5),
    "GroupNorm: num_groups must divide num_channels: 3 and 8": lambda: M.GroupNorm(3, 8),
    "MultiHeadAttention: num_heads must divide dims: 3 and 8": lambda: M.MultiHeadAttention(8, 3),
    "MSELoss: reduction must be one of none, mean, sum: 'avg'": lambda: M.MSE("avg"),
    "block: expected a module or a function of tensors, given int": lambda: M.block(3),
    "block: expected a module or a function of tensors, given Linear": lambda: M.block(nn.Linear),
    "takes any number of tensors; name them": lambda: M.block(lambda *x: x[0]),
    "block: the arguments of max are not known; name them": lambda: M.block(max),
    "output_dims does not fit 64 bits": lambda: M.Linear(2**70),
    "concat: count is at most 10000, not 1099511627776": lambda: M.Concat(2**40),
    "concat: count must be an integer, not 'x'": lambda: M.Concat("x"),
    "concat: count does not fit 64 bits: 1180591620717411303424": lambda: M.Concat(2**70),
    "LayerNorm: normalized_shape has no sizes": lambda: M.LayerNorm([]),
    "a shape is a list of sizes, not 3": lambda: M.IOKey("x", shape=3),
    "a size is a number, a name, None or ..., not 3.5": lambda: M.IOKey("x", shape=[3.5]),
    "IOKey: a name is a string, not 3": lambda: M.IOKey(3),
}


@pytest.mark.parametrize("text", WRONG)
def test_wrong_arguments(text):
    with pytest.raises((ValueError, TypeError, OverflowError)) as error:
        WRONG[text]()
    assert text in str(error.value)
    assert "test_model_blocks.py" in str(error.value)  # the place of the call


# Whole networks ------------------------------------------------------------------------------


class Network(nn.Module):
    """The layers of the model below, by the names of its blocks."""

    def __init__(self):
        self.conv2d = nn.Conv2d(3, 8, 3)
        self.batch_norm2d = nn.BatchNorm2d(8)
        self.conv2d_1 = nn.Conv2d(8, 16, 3)
        self.linear = nn.Linear(16, 10)

    def forward(self, x):
        h = tn.relu(self.batch_norm2d(self.conv2d(x)))
        return self.linear(tn.mean(self.conv2d_1(h), (2, 3)))


def test_training_agrees_with_modules():
    model = tn.Model(
        M.Conv2d(3, 8, kernel_size=3),
        M.BatchNorm2d(8),
        M.Relu(),
        M.Conv2d(16, kernel_size=3),
        M.GlobalAvgPool2d(),
        M.Linear(10),
    )
    x, ones = real(4, 3, 8, 8), tn.ones((4, 10))
    physical = tn.compile(model, shapes={"input": x.shape})
    params, state = physical.randomize_params(0), physical.initial_state(0)
    made = physical.evaluate(params, {"input": x}, {"output": ones}, state)
    network = Network()
    network.load_state_dict({**params, **state})
    whole = tn.compile(tn.Model(M.block(network)), shapes={"input": x.shape})
    inside = [{f"network.{n}": v for n, v in values.items()} for values in (params, state)]
    again = whole.evaluate(inside[0], {"input": x}, {"output": ones}, inside[1])
    loss, grads = nn.value_and_grad(network, lambda x: tn.sum(network(x)))(x)
    np.testing.assert_allclose(made[0]["output"].numpy().sum(), loss.item(), 1e-4)
    for name, want in named_tensors(grads):
        scale = abs(want.numpy()).max() + 1
        for got in (made[1][name], again[1][f"network.{name}"]):
            np.testing.assert_allclose(got.numpy(), want.numpy(), 0, 1e-4 * scale)
    for name, new in made[2].items():
        np.testing.assert_allclose(new.numpy(), network.state_dict()[name].numpy(), 1e-5)
        np.testing.assert_allclose(again[2][f"network.{name}"].numpy(), new.numpy(), 1e-5)


# Functions -----------------------------------------------------------------------------------


def test_functions_are_blocks():
    block = M.block(lambda x, scale, shift=None: (x * scale, x), outputs=["a", "b"])
    assert block.inputs == ("input", "scale", "shift") and block.outputs == ("a", "b")
    model = tn.Model()
    model |= block(input="x", scale="s", a="a", b="b")
    got = run(model, {"x": tn.array([1.0, 2.0]), "s": tn.array(3.0)})
    assert got["a"].tolist() == [3.0, 6.0] and got["b"].tolist() == [1.0, 2.0]


def test_options_are_no_inputs():
    assert M.block(lambda x, causal=False, mask=None: x).inputs == ("input",)
    assert M.block(nn.CrossEntropyLoss()).inputs == ("input", "target")


def test_functions_that_draw_say_so():
    def noisy(x):
        return x + tn.random.normal(x.shape)

    x = {"input": tn.zeros(3)}
    said = pytest.raises(ValueError, match="noisy: it draws random numbers, which must be declared")
    with said, pytest.warns(UserWarning, match="drawn without a key"):
        run(tn.Model(M.block(noisy)), x)
    model = tn.Model(M.block(noisy, random=True))
    for training in (True, False):
        a, b = (run(model, x, (), training, tn.random.key(seed))["output"] for seed in (0, 1))
        assert a.tolist() != b.tolist()
    with pytest.raises(ValueError, match="it returns 1 tensors for .*'a', 'b'"):
        run(tn.Model(M.block(tn.exp, inputs=["x"], outputs=["a", "b"])), {"input": tn.zeros(3)})


def test_modules_keep_ties_and_frozen_parameters():
    module = nn.Sequential(nn.Linear(3, 3), nn.Linear(3, 3))
    module.layers[1].weight = module.layers[0].weight
    module.layers[0].freeze(keys="bias")
    block = M.block(module)
    assert block.inputs == ("input", "layers.0.weight", "layers.1.bias")


# Documentation -------------------------------------------------------------------------------

MODULES = [M] + [import_module(f"{M.__name__}.{m.name}") for m in iter_modules(M.__path__)]


@pytest.mark.parametrize("module", MODULES, ids=lambda m: m.__name__)
def test_examples_in_the_documentation(module):
    assert doctest.testmod(module, extraglobs={"tn": tn}).failed == 0
