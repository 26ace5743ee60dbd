"""Layers: what they refuse, layouts, state, and how they go through transforms and compile.

Their values are compared with PyTorch's in test_torch_layers.py; those of layers that PyTorch does
not have with NumPy here.
"""

import numpy as np
import pytest

import tenon as tn
from tenon import nn


def close(got, want, tolerance=1e-6):
    np.testing.assert_allclose(got.numpy(), want, tolerance, tolerance)


def draw(*shape, seed=0):
    return np.random.default_rng(seed).uniform(-2, 2, shape).astype(np.float32)


# What layers refuse -------------------------------------------------------------------------

GIVEN_WRONG = [
    (nn.Linear(64, 3), [tn.ones((2, 32))], "Linear: expected [..., 64], given f32[2,32]"),
    (nn.Linear(64, 3), [tn.array(1.0)], "Linear: expected [..., 64], given f32[]"),
    (
        nn.Bilinear(3, 4, 2),
        [tn.ones((2, 3)), tn.ones((2, 3))],
        "Bilinear: expected [..., 4], given f32[2,3]",
    ),
    (
        nn.Conv2d(3, 8, 3),
        [tn.ones((2, 4, 8, 8))],
        "Conv2d: expected [batch, 3, height, width], given f32[2,4,8,8]",
    ),
    (
        nn.Conv1d(3, 8, 3, channels_last=True),
        [tn.ones((3, 8))],
        "Conv1d: expected [batch, length, 3], given f32[3,8]",
    ),
    (
        nn.ConvTranspose3d(3, 8, 3),
        [tn.ones((2, 8, 8, 8, 3))],
        "ConvTranspose3d: expected [batch, 3, depth, height, width], given f32[2,8,8,8,3]",
    ),
    (
        nn.MaxPool2d(2),
        [tn.ones((4, 8, 8))],
        "MaxPool2d: expected [batch, channels, height, width], given f32[4,8,8]",
    ),
    (
        nn.Dropout2d(),
        [tn.ones((4, 8))],
        "Dropout2d: expected [batch, channels, height, width], given f32[4,8]",
    ),
    (
        nn.Upsample(scale_factor=2),
        [tn.ones((4, 8))],
        "Upsample: expected [batch, channels, length, ...], given float32[4, 8]",
    ),
    (
        nn.Upsample(scale_factor=(2, 2)),
        [tn.ones((4, 8, 8))],
        "Upsample: scale_factor has 2 numbers, x 1 spatial axes",
    ),
    (
        nn.BatchNorm(8),
        [tn.ones((4, 2, 8))],
        "BatchNorm: expected [batch, 8, ...], given f32[4,2,8]",
    ),
    (
        nn.BatchNorm1d(8),
        [tn.ones((4, 8, 2, 2))],
        "BatchNorm1d: expected [batch, 8, length], given f32[4,8,2,2]",
    ),
    (
        nn.BatchNorm1d(8),
        [tn.ones((1, 8))],
        "BatchNorm1d: training needs more than one value a channel: f32[1,8]",
    ),
    (
        nn.GroupNorm(2, 8, channels_last=True),
        [tn.ones((4, 8, 2))],
        "GroupNorm: expected [batch, ..., 8], given f32[4,8,2]",
    ),
    (
        nn.LayerNorm((3, 4)),
        [tn.ones((2, 4, 3))],
        "LayerNorm: expected [..., 3, 4], given f32[2,4,3]",
    ),
    (nn.RMSNorm(4), [tn.ones((2, 3))], "RMSNorm: expected [..., 4], given f32[2,3]"),
    (
        nn.PReLU(3),
        [tn.ones((2, 4))],
        "PReLU: expected [batch, 3, ...], given f32[2,4]",
    ),
    (
        nn.GRU(3, 4),
        [tn.ones((2, 5, 4))],
        "GRU: expected [..., length, 3], given float32[2, 5, 4]",
    ),
    (
        nn.GRU(3, 4, num_layers=2),
        [tn.ones((2, 5, 3)), tn.ones((2, 4))],
        "GRU: expected [2, 2, 4], given float32[2, 4]",
    ),
    (
        nn.LSTM(3, 4),
        [tn.ones((5, 3)), tn.ones((1, 4))],
        "LSTM: a state is 2 tensors, given a Tensor",
    ),
    (
        nn.MultiHeadAttention(8, 2),
        [tn.ones((2, 8))],
        "MultiHeadAttention: expected [batch, positions, 8], given f32[2,8]",
    ),
    (
        nn.RoPE(8),
        [tn.ones((2, 3, 4))],
        "RoPE: expected [..., positions, 8], given f32[2,3,4]",
    ),
    (
        nn.ALiBi(),
        [tn.ones((2, 3, 4))],
        "ALiBi: expected [batch, heads, queries, keys], given f32[2,3,4]",
    ),
    (nn.Linear(2, 3), [[1.0, 2.0]], "Linear: expected a tensor, given a list"),
]


@pytest.mark.parametrize("layer, args, text", GIVEN_WRONG, ids=[w[2] for w in GIVEN_WRONG])
def test_layers_say_what_they_expect_and_what_they_are_given(layer, args, text):
    with pytest.raises((ValueError, TypeError)) as error:
        layer(*args)
    assert str(error.value).splitlines()[0] == f"layer: {text}"


def test_the_other_layout_is_hinted_at():
    layer = nn.Conv2d(3, 8, 3)
    with pytest.raises(ValueError) as error:
        layer(tn.ones((2, 16, 16, 3)))
    hint = "hint: [batch, height, width, 3] is for channels_last=True"
    assert str(error.value).splitlines()[-1].strip() == hint


def test_errors_name_the_path_of_the_layer():
    model = nn.TransformerEncoder(2, 8, 2)
    model.layers[1].linear1 = nn.Linear(16, 32)
    with pytest.raises(ValueError) as error:
        model(tn.ones((1, 3, 8)))
    text = "model.layers[1].linear1: Linear: expected [..., 16], given f32[1,3,8]"
    assert str(error.value).splitlines()[0] == text


MADE_WRONG = [
    (lambda: nn.Linear(0, 3), "Linear: input_dims must be a positive integer, not 0"),
    (lambda: nn.Linear(2, 3.0), "Linear: output_dims must be an integer: 3.0"),
    (lambda: nn.Embedding(5, -1), "Embedding: dims must be a positive integer, not -1"),
    (lambda: nn.GRU(3, 5, 2**31), "GRU: num_layers must be at most 10000, not 2147483648"),
    (lambda: nn.TransformerEncoder(2**31, 8, 2),
     "TransformerEncoder: num_layers must be at most 10000, not 2147483648"),
    (lambda: nn.Conv2d(3, 4, 3, groups=2), "Conv2d: groups must divide in_channels: 2 and 3"),
    (
        lambda: nn.Conv2d(3, 4, (3, 3, 3)),
        "Conv2d: kernel_size must be an integer from 1 on, or 2 of them, not [3, 3, 3]",
    ),
    (
        lambda: nn.Conv1d(3, 4, 3, padding=-1),
        "Conv1d: padding must be an integer from 0 on, not -1",
    ),
    (
        lambda: nn.Conv1d(3, 4, 3, padding="full"),
        "Conv1d: padding must be numbers, 'same' or 'valid', not 'full'",
    ),
    (lambda: nn.Sequential([nn.relu]), "Sequential: layer 0 is a list, not a module or function"),
    (lambda: nn.BatchNorm(3, momentum=None), "BatchNorm: momentum must be a number: None"),
    (
        lambda: nn.LayerNorm(2.5),
        "LayerNorm: normalized_shape must be an integer or several: 2.5",
    ),
    (lambda: nn.LayerNorm([]), "LayerNorm: normalized_shape has no sizes"),
    (
        lambda: nn.LayerNorm((3, 0)),
        "LayerNorm: normalized_shape must be a positive integer, not 0",
    ),
    (lambda: nn.Dropout("0.5"), "Dropout: p must be a number: '0.5'"),
    (lambda: nn.Conv(3, 4, (3,) * 4), "Conv: kernel_size must be 1 to 3 integers, not 4 of"),
    (
        lambda: nn.MaxPool2d(2, stride=0),
        "MaxPool2d: stride must be an integer from 1 on, or 2 of them, not 0",
    ),
    (
        lambda: nn.AvgPool2d("2"),
        "AvgPool2d: kernel_size must be an integer or several: '2'",
    ),
    (lambda: nn.Upsample(), "Upsample: give either size or scale_factor"),
    (
        lambda: nn.Upsample(2, mode="bilinear"),
        "Upsample: mode must be 'nearest', 'linear' or 'cubic', not 'bilinear'",
    ),
    (lambda: nn.GroupNorm(3, 8), "GroupNorm: num_groups must divide num_channels: 3 and 8"),
    (lambda: nn.Dropout(1), "Dropout: p must be at least 0 and less than 1, not 1"),
    (lambda: nn.GRU(3, 4, dropout=-1), "GRU: dropout must be at least 0 and less than 1, not -1"),
    (
        lambda: nn.RNN(3, 4, nonlinearity="gelu"),
        "RNN: nonlinearity must be a function, such as tn.nn.gelu, not 'gelu'",
    ),
    (
        lambda: nn.MultiHeadAttention(10, 4),
        "MultiHeadAttention: num_heads must divide dims: 4 and 10",
    ),
    (lambda: nn.RoPE(5), "RoPE: dims must be even, not 5"),
    (lambda: nn.GELU("erf"), "GELU: approximate must be one of none, tanh, fast: 'erf'"),
    (lambda: nn.init.identity()(tn.ones((2, 3))), "init.identity: expected a square matrix"),
    (lambda: nn.init.he_normal("both"), "init.he_normal: mode must be 'fan_in' or 'fan_out'"),
    (lambda: nn.init.glorot_normal()(tn.ones(3)), "init.glorot_normal: expected at least 2 axes"),
    (lambda: nn.init.sparse(2), "init.sparse: sparsity must be between 0 and 1, not 2"),
]


@pytest.mark.parametrize("make, text", MADE_WRONG, ids=[w[1] for w in MADE_WRONG])
def test_arguments_are_checked(make, text):
    with pytest.raises((ValueError, TypeError)) as error:
        make()
    assert str(error.value).startswith(text)


def test_common_layers_are_at_the_top_level():
    names = "Conv ConvTranspose Embedding GroupNorm LayerNorm Linear Module RMSNorm Sequential"
    assert all(getattr(tn, name) is getattr(nn, name) for name in names.split())


def test_layers_take_arrays():
    assert nn.Linear(2, 3)(np.ones((4, 2), np.float32)).shape == (4, 3)


@pytest.mark.parametrize(
    "layer, text",
    [
        (nn.Linear(3, 4, bias=False), "Linear(3 -> 4, bias=False)"),
        (nn.Conv2d(3, 8, (3, 3), stride=2), "Conv2d(3 -> 8, kernel_size=3, stride=2)"),
        (nn.Conv1d(3, 8, 3, padding="same"), "Conv1d(3 -> 8, kernel_size=3, padding='same')"),
        (
            nn.ConvTranspose1d(2, 4, 3, output_padding=1),
            "ConvTranspose1d(2 -> 4, kernel_size=3, output_padding=1)",
        ),
        (nn.MaxPool2d(2), "MaxPool2d(2)"),
        (nn.AvgPool2d(3, 2, (1, 0)), "AvgPool2d(3, stride=2, padding=(1, 0))"),
        (nn.Upsample(scale_factor=2), "Upsample(scale_factor=2)"),
        (nn.GlobalAvgPool2d(), "GlobalAvgPool2d()"),
        (nn.BatchNorm2d(8, channels_last=True), "BatchNorm2d(8, channels_last=True)"),
        (nn.GroupNorm(2, 8), "GroupNorm(8 in 2 groups)"),
        (nn.LayerNorm((3, 4), eps=1e-3), "LayerNorm(3, 4, eps=0.001)"),
        (nn.PReLU(3), "PReLU(3)"),
        (nn.LSTM(3, 4, num_layers=2), "LSTM(3 -> 4, num_layers=2)"),
        (
            nn.MultiHeadAttention(8, 2),
            "MultiHeadAttention(8 in 2 heads, out_proj=Linear(8 -> 8))",
        ),
    ],
    ids=lambda x: type(x).__name__,
)
def test_text(layer, text):
    assert repr(layer) == text


# Layouts ------------------------------------------------------------------------------------

BOTH_LAYOUTS = [
    (lambda **o: nn.Conv1d(4, 6, 3, padding=1, groups=2, **o), (2, 4, 7)),
    (lambda **o: nn.Conv2d(4, 6, (3, 2), stride=2, padding="valid", **o), (2, 4, 7, 6)),
    (lambda **o: nn.Conv3d(2, 3, 2, padding="same", **o), (2, 2, 4, 3, 5)),
    (lambda **o: nn.ConvTranspose1d(4, 6, 3, stride=2, **o), (2, 4, 7)),
    (lambda **o: nn.ConvTranspose2d(4, 6, (3, 2), groups=2, **o), (2, 4, 5, 6)),
    (lambda **o: nn.ConvTranspose3d(2, 3, 2, bias=False, **o), (2, 2, 4, 3, 5)),
    (lambda **o: nn.MaxPool2d((2, 3), padding=1, **o), (2, 4, 6, 8)),
    (lambda **o: nn.AvgPool3d(2, **o), (2, 4, 6, 8, 2)),
    (lambda **o: nn.Upsample(scale_factor=(2, 3), mode="linear", **o), (2, 4, 3, 2)),
    (lambda **o: nn.BatchNorm(4, **o), (2, 4, 3)),
    (lambda **o: nn.BatchNorm1d(4, **o), (2, 4, 3)),
    (lambda **o: nn.BatchNorm2d(4, **o), (2, 4, 3, 2)),
    (lambda **o: nn.BatchNorm3d(4, **o), (2, 4, 3, 2, 2)),
    (lambda **o: nn.GroupNorm(2, 4, **o), (2, 4, 3, 2)),
    (lambda **o: nn.InstanceNorm(4, **o), (2, 4, 3, 2)),
    (lambda **o: nn.PReLU(4, **o), (2, 4, 3, 2)),
]


@pytest.mark.parametrize("make, shape", BOTH_LAYOUTS, ids=[repr(m()) for m, _ in BOTH_LAYOUTS])
def test_channels_last_is_the_same_with_axes_moved(make, shape):
    first = make()
    last = make(channels_last=True).update(first.parameters())
    x = tn.array(draw(*shape))
    got = tn.moveaxis(last(tn.moveaxis(x, 1, -1)), -1, 1)
    close(got, first(x).numpy(), 1e-5)


def test_global_pool_with_channels_last():
    x = draw(2, 3, 4, 5)
    close(nn.GlobalAvgPool2d(channels_last=True)(tn.array(x)), x.mean(axis=(1, 2)))


@pytest.mark.parametrize("last", [False, True])
@pytest.mark.parametrize("layer, extents", [(nn.Dropout2d, (2, 3)), (nn.Dropout3d, (2, 3, 2))])
def test_dropout_of_channels(layer, extents, last):
    tn.random.seed(1)
    x = tn.ones((8, *extents, 30) if last else (8, 30, *extents))
    out = layer(0.25, channels_last=last)(x).numpy()
    channels = np.moveaxis(out, -1, 1).reshape(8, 30, -1) if last else out.reshape(8, 30, -1)
    assert (channels == channels[..., :1]).all()
    assert set(np.unique(channels)) == {0, np.float32(1 / 0.75)}
    assert 0.15 < (channels[..., 0] == 0).mean() < 0.35
    assert (layer(0.25, channels_last=last).eval()(x).numpy() == 1).all()


# Values of layers that PyTorch does not have ------------------------------------------------


def test_activations_against_numpy():
    x = draw(20)
    relu2, step = np.maximum(x, 0) ** 2, (x > 0.5).astype(np.float32)
    for got, want in [
        (nn.ReLU2()(tn.array(x)), relu2),
        (nn.Step(0.5)(tn.array(x)), step),
        (nn.GELU("fast")(tn.array(x)), x / (1 + np.exp(-1.702 * x))),
        (tn.grad(lambda x: tn.sum(nn.relu2(x)))(tn.array(x)), 2 * np.maximum(x, 0)),
        (tn.grad(lambda x: tn.sum(nn.step(x)))(tn.array(x)), 0 * x),
    ]:
        close(got, want)


def test_shrinking_keeps_nan():
    x = tn.array([np.nan, 1.0])
    assert np.isnan(nn.hard_shrink(x).numpy()[0]) and np.isnan(nn.softshrink(x).numpy()[0])


def test_shrinking_the_least_integer():
    x = tn.array([-128, -3, 2, 127], dtype=tn.int8)
    assert nn.hard_shrink(x, lambd=3).tolist() == [-128, 0, 0, 127]
    assert nn.softshrink(x, lambd=3).tolist() == [-125, 0, 0, 124]


def test_activations_are_functions_and_modules():
    x = tn.array(draw(4, 6))
    for module, function in [
        (nn.CELU(), nn.celu),
        (nn.GELU("tanh"), nn.gelu_approx),
        (nn.GLU(), nn.glu),
        (nn.HardShrink(), nn.hard_shrink),
        (nn.HardTanh(), nn.hard_tanh),
        (nn.LeakyReLU(), nn.leaky_relu),
        (nn.PReLU(), lambda x: nn.prelu(x, 0.25)),
        (nn.Softmin(), nn.softmin),
        (nn.Softshrink(), nn.softshrink),
        (nn.Step(), nn.step),
    ]:
        assert module(x).tolist() == function(x).tolist()


def rotated(x, dims, base, scale, offset, traditional):
    out = x.astype(np.float64)
    positions = (np.arange(x.shape[-2]) + offset) * scale
    for i in range(dims // 2):
        a, b = (2 * i, 2 * i + 1) if traditional else (i, i + dims // 2)
        angle = positions * base ** (-2 * i / dims)
        out[..., a] = x[..., a] * np.cos(angle) - x[..., b] * np.sin(angle)
        out[..., b] = x[..., a] * np.sin(angle) + x[..., b] * np.cos(angle)
    return out


@pytest.mark.parametrize("traditional", [False, True])
def test_rope(traditional):
    x = draw(2, 3, 5, 8)
    layer = nn.RoPE(6, traditional, base=100.0, scale=0.5)
    close(layer(tn.array(x), offset=3), rotated(x, 6, 100.0, 0.5, 3, traditional), 1e-5)


def test_sinusoidal_positions():
    positions = np.array([[0, 3], [10, 500]])
    frequencies = np.exp(np.linspace(np.log(2.0), np.log(0.01), 4))
    angles = positions[..., None] * frequencies
    want = 0.5 * np.concatenate([np.sin(angles), np.cos(angles)], axis=-1)
    options = dict(min_freq=0.01, max_freq=2.0)
    close(nn.SinusoidalPositionalEncoding(8, **options)(tn.array(positions)), want, 1e-4)
    turns = dict(min_freq=0.01 / 2 / np.pi, max_freq=1 / np.pi, full_turns=True)
    swapped = nn.SinusoidalPositionalEncoding(8, **turns, scale=1.0, cos_first=True)
    close(swapped(tn.array(positions)), 2 * np.roll(want, 4, axis=-1), 1e-4)
    assert swapped.parameters() == {}


def test_alibi():
    slopes = np.array([2.0**-4, 2.0**-8])
    distances = abs(np.arange(3)[:, None] + 4 - np.arange(7))
    scores, mask = draw(1, 2, 3, 7), draw(3, 7, seed=1)
    want = scores - slopes[:, None, None] * distances
    close(nn.ALiBi()(tn.array(scores), offset=4), want)
    close(nn.ALiBi()(tn.array(scores), 4, tn.array(mask)), want + mask)
    q, k = tn.array(draw(1, 2, 3, 4)), tn.array(draw(1, 2, 7, 4, seed=2))
    weights = nn.softmax(nn.ALiBi()(q @ tn.swapaxes(k, -1, -2) / 2, offset=4))
    bias = nn.ALiBi().bias(2, 3, 7, offset=4)
    close(tn.scaled_dot_product_attention(q, k, k, bias), (weights @ k).numpy(), 1e-5)


def test_attention_step_by_step_is_causal_attention():
    attention = nn.MultiHeadAttention(8, 2)
    x = tn.array(draw(2, 6, 8))
    cache, parts = None, []
    for part in (x[:, :3], x[:, 3:4], x[:, 4:]):
        out, cache = attention.step(part, cache)
        parts.append(out)
    close(tn.concat(parts, axis=1), attention(x, causal=True).numpy(), 1e-5)


def test_a_mask_of_floats_is_added():
    attention = nn.MultiHeadAttention(8, 2)
    x, keep = tn.array(draw(2, 4, 8)), tn.tril(tn.ones((4, 4))) > 0
    want = attention(x, causal=True).numpy()
    close(attention(x, mask=keep), want, 1e-5)
    close(attention(x, mask=tn.where(keep, 0.0, -np.inf)), want, 1e-5)


@pytest.mark.parametrize("cell", [nn.RNN, nn.GRU, nn.LSTM])
def test_recurrent_layers_keep_the_type_of_their_state(cell):
    layer, x = cell(3, 4), tn.array(draw(2, 5, 3))
    state = [tn.zeros((1, 2, 4), tn.float16)] * layer.states
    assert layer(x.astype(tn.float16))[0].dtype == tn.float32
    assert layer(x, state if layer.states > 1 else state[0])[0].dtype == tn.float16
    layer.apply(lambda w: w.astype(tn.float16))
    assert layer(x.astype(tn.float16))[0].dtype == tn.float16
    assert layer(x)[0].dtype == tn.float32


# Initialisation -----------------------------------------------------------------------------


def test_initializers_have_the_spread_they_say():
    tn.random.seed(0)
    x = tn.zeros((40, 30, 5, 5))
    fan_in, fan_out = 30 * 25, 40 * 25
    for draw_from, std in [
        (nn.init.glorot_uniform(2.0), 2 * (2 / (fan_in + fan_out)) ** 0.5),
        (nn.init.glorot_normal(), (2 / (fan_in + fan_out)) ** 0.5),
        (nn.init.he_uniform(), (2 / fan_in) ** 0.5),
        (nn.init.he_normal("fan_out", gain=1.0), fan_out**-0.5),
        (nn.init.normal(std=0.3), 0.3),
        (nn.init.uniform(-1, 1), 3**-0.5),
    ]:
        made = draw_from(x).numpy()
        assert made.shape == x.shape
        assert abs(made.mean()) < 0.02 * std and abs(made.std() / std - 1) < 0.02


def test_initializers_keep_the_type():
    x = tn.zeros((4, 4), tn.float16)
    for name in ("uniform", "normal", "identity", "glorot_normal", "he_uniform", "orthogonal"):
        assert getattr(nn.init, name)()(x).dtype == tn.float16
    assert nn.init.constant(3)(x).dtype == nn.init.sparse(0.5)(x).dtype == tn.float16


@pytest.mark.parametrize("shape", [(6, 6), (3, 8), (8, 3), (4, 2, 3)])
def test_orthogonal(shape):
    made = nn.init.orthogonal(2.0)(tn.zeros(shape)).numpy().reshape(shape[0], -1) / 2
    small = made if made.shape[0] <= made.shape[1] else made.T
    np.testing.assert_allclose(small @ small.T, np.eye(len(small)), atol=1e-6)


def test_default_initialisation_has_pytorchs_bounds():
    tn.random.seed(0)
    for layer, bound in [
        (nn.Conv2d(8, 16, 3, groups=2), (4 * 9) ** -0.5),
        (nn.ConvTranspose2d(8, 16, 3), (16 * 9) ** -0.5),
        (nn.LSTM(8, 16), 16**-0.5),
        (nn.Bilinear(8, 9, 10), 8**-0.5),
    ]:
        for parameter in tn.tree.leaves(layer.parameters()):
            assert 0.7 * bound < abs(parameter.numpy()).max() <= bound


def test_padding_of_embeddings():
    layer = nn.Embedding(4, 3, padding_idx=-1)
    assert layer.padding_idx == 3 and layer.weight[3].tolist() == [0, 0, 0]
    indices = tn.array([[0, 3, -1], [1, 3, 0]])
    close(layer(indices), layer.weight.numpy()[indices.numpy()])
    layer(indices).sum().backward()
    assert layer.weight.grad.sum(1).tolist() == [6, 3, 0, 0]
    with pytest.raises(IndexError):
        nn.Embedding(4, 3, padding_idx=4)
