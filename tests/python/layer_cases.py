"""Layers made twice, by PyTorch and by Tenon, that must agree.

tools/record_layers.py runs the first and keeps inputs, parameters, results and gradients in
tests/data/torch_layers.npz; test_torch_layers.py runs the second with them.
"""

import json
import zlib
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import numpy as np

from torch_cases import below, real, tn, torch


@dataclass
class LayerCase:
    name: str
    inputs: list  # functions from a random generator to an array
    theirs: Callable[[], Any]  # a module
    ours: Callable[[], Any]
    call_theirs: Callable[..., Any]  # of the module and the inputs; a tensor or several
    call_ours: Callable[..., Any]
    training: bool = True

    def draw(self):
        rng = np.random.default_rng(zlib.crc32(self.name.encode()))
        return [as_float32(make(rng)) for make in self.inputs]


def as_float32(x):
    return x.astype(np.float32) if x.dtype.kind == "f" else x


def cotangent(shape):
    """What results of this shape are multiplied with before they are summed."""
    return np.cos(np.arange(np.prod(shape, dtype=int))).reshape(shape)


def flat(out):
    """The tensors of nested tuples."""
    return [y for part in out for y in flat(part)] if isinstance(out, tuple) else [out]


def save(path, arrays):
    """Hundreds of small arrays as one: a file of each would be mostly names and headers."""
    layout = {name: [x.dtype.name, list(x.shape)] for name, x in arrays.items()}
    values = np.concatenate([np.ravel(x).astype(np.float32) for x in arrays.values()])
    np.savez_compressed(path, layout=json.dumps(layout), values=values)


def load(path):
    with np.load(path) as file:
        layout, values = json.loads(str(file["layout"])), file["values"]
    arrays = {}
    for name, (dtype, shape) in layout.items():
        size = int(np.prod(shape))
        arrays[name] = values[:size].reshape(shape).astype(dtype)
        values = values[size:]
    return arrays


def called(layer, *inputs):
    return layer(*inputs)


def layer(name, *args, inputs, theirs=None, of="", training=True, **options):
    """A layer with the same arguments on both sides, called with `inputs`.

    `theirs` is its name in PyTorch where that differs, `of` what to add to the name of the case.
    """
    return LayerCase(
        f"{name} {of}".strip(),
        inputs,
        lambda: getattr(torch.nn, theirs or name)(*args, **options),
        lambda: getattr(tn.nn, name)(*args, **options),
        called,
        called,
        training,
    )


def linear_layers():
    yield layer("Linear", 3, 4, inputs=[real(2, 5, 3)])
    yield layer("Linear", 3, 4, bias=False, inputs=[real(5, 3)], of="without bias")
    yield layer("Bilinear", 3, 4, 2, inputs=[real(2, 5, 3), real(2, 5, 4)])
    yield layer("Embedding", 7, 3, inputs=[below(7, 2, 5)])
    yield layer("Flatten", inputs=[real(2, 3, 2, 2)])


def convolutions():
    yield layer("Conv1d", 4, 3, 3, stride=2, padding=1, inputs=[real(2, 4, 8)])
    yield layer("Conv2d", 2, 3, 3, inputs=[real(2, 2, 5, 6)])
    options = dict(stride=(2, 1), padding=(1, 0), dilation=(1, 2), groups=2, bias=False)
    yield layer("Conv2d", 4, 6, (3, 2), **options, inputs=[real(2, 4, 5, 6)], of="with options")
    yield layer("Conv2d", 2, 3, 4, padding="same", inputs=[real(1, 2, 5, 6)], of="same")
    yield layer("Conv3d", 2, 3, 2, inputs=[real(1, 2, 3, 4, 3)])
    options = dict(stride=2, padding=1, output_padding=1)
    yield layer("ConvTranspose1d", 4, 3, 3, **options, inputs=[real(2, 4, 5)])
    options = dict(stride=(2, 1), padding=(1, 0), groups=2, dilation=(1, 2), bias=False)
    yield layer("ConvTranspose2d", 4, 6, (3, 2), **options, inputs=[real(1, 4, 4, 3)])
    yield layer("ConvTranspose3d", 2, 3, 2, stride=2, inputs=[real(1, 2, 2, 3, 2)])


def padded_convolutions():
    for mode in ("reflect", "replicate", "circular"):
        options = dict(padding=2, padding_mode=mode)
        yield layer("Conv1d", 2, 3, 3, **options, inputs=[real(2, 2, 5)], of=mode)
        options = dict(padding=(1, 2), padding_mode=mode, stride=2)
        yield layer("Conv2d", 2, 3, 3, **options, inputs=[real(1, 2, 4, 5)], of=mode)
    options = dict(padding="same", padding_mode="reflect", dilation=2)
    yield layer("Conv2d", 2, 3, (2, 3), **options, inputs=[real(1, 2, 5, 6)], of="same, reflect")


def pads():
    shapes = {1: (2, 2, 5), 2: (2, 2, 4, 5), 3: (1, 2, 3, 4, 5)}
    for axes, shape in shapes.items():
        sides = (1, 2, 0, 1, 2, 1)[: 2 * axes]
        yield layer(f"ConstantPad{axes}d", sides, 0.5, inputs=[real(*shape)])
        for kind in ("Reflection", "Replication"):
            yield layer(f"{kind}Pad{axes}d", sides, inputs=[real(*shape)])
    yield layer("ZeroPad2d", (1, 2, 0, 1), inputs=[real(2, 2, 3, 4)])
    yield layer("ReflectionPad2d", 2, inputs=[real(2, 3, 4)], of="without a batch")


def adaptive_pools():
    cases = [(1, (2, 2, 7), 3), (1, (2, 2, 4), 7), (2, (2, 2, 7, 5), (3, 2)), (2, (2, 2, 6, 4), 2)]
    cases += [(2, (2, 2, 4, 5), (None, 1)), (3, (1, 2, 3, 5, 4), (2, 3, 4))]
    for axes, shape, size in cases:
        for kind in ("Avg", "Max"):
            name = f"Adaptive{kind}Pool{axes}d"
            yield layer(name, size, inputs=[real(*shape)], of=f"{shape} to {size}")


def shuffles():
    yield layer("PixelShuffle", 2, inputs=[real(2, 8, 3, 2)])
    yield layer("PixelShuffle", 3, inputs=[real(9, 2, 3)], of="without a batch")
    yield layer("PixelUnshuffle", 2, inputs=[real(2, 3, 4, 6)])


def pools():
    for axes in (1, 2, 3):
        shape = (2, 2, 8, 5, 4)[: 2 + axes]
        yield layer(f"MaxPool{axes}d", 3, stride=2, padding=1, inputs=[real(*shape)])
        options = dict(stride=2, padding=1, count_include_pad=False)
        yield layer(f"AvgPool{axes}d", 3, **options, inputs=[real(*shape)])
    yield layer("MaxPool2d", 2, dilation=(2, 1), inputs=[real(1, 2, 6, 6)], of="dilated")
    yield layer("AvgPool2d", (2, 3), inputs=[real(1, 2, 6, 6)], of="plain")
    yield LayerCase(
        "GlobalAvgPool2d",
        [real(2, 3, 4, 5)],
        lambda: torch.nn.Sequential(torch.nn.AdaptiveAvgPool2d(1), torch.nn.Flatten()),
        lambda: tn.nn.GlobalAvgPool2d(),
        called,
        called,
    )


def upsamples():
    cases = [
        ("nearest", "nearest", (2, 3, 3), dict(scale_factor=2)),
        ("linear", "linear", (2, 3, 3), dict(scale_factor=2)),
        ("linear", "bilinear", (1, 2, 3, 4), dict(size=(5, 7))),
        ("linear", "bilinear", (1, 2, 3, 4), dict(size=(5, 7), align_corners=True)),
        ("linear", "trilinear", (1, 2, 2, 3, 2), dict(scale_factor=2)),
        ("cubic", "bicubic", (1, 2, 3, 4), dict(scale_factor=2)),
        ("nearest", "nearest", (1, 2, 3, 4), dict(scale_factor=(2, 3))),
    ]
    for ours, theirs, shape, options in cases:
        yield LayerCase(
            f"Upsample {theirs} {options}",
            [real(*shape)],
            lambda theirs=theirs, options=options: torch.nn.Upsample(mode=theirs, **options),
            lambda ours=ours, options=options: tn.nn.Upsample(mode=ours, **options),
            called,
            called,
        )


def normalizations():
    yield layer("BatchNorm1d", 3, inputs=[real(5, 3)])
    yield layer("BatchNorm1d", 3, inputs=[real(4, 3, 2)], of="with length")
    yield layer("BatchNorm2d", 3, 1e-3, 0.3, inputs=[real(2, 3, 2, 3)])
    yield layer("BatchNorm2d", 3, inputs=[real(2, 3, 2, 3)], training=False, of="evaluated")
    for training in (True, False):
        options = dict(affine=False, track_running_stats=False, training=training)
        of = f"bare, training={training}"
        yield layer("BatchNorm2d", 3, **options, inputs=[real(2, 3, 2, 3)], of=of)
    yield layer("BatchNorm3d", 2, inputs=[real(2, 2, 2, 3, 2)])
    yield layer("BatchNorm", 3, theirs="BatchNorm2d", inputs=[real(2, 3, 2, 3)])
    yield layer("InstanceNorm", 3, theirs="InstanceNorm2d", inputs=[real(2, 3, 2, 3)])
    options = dict(affine=True, theirs="InstanceNorm1d", of="affine")
    yield layer("InstanceNorm", 3, **options, inputs=[real(2, 3, 4)])
    yield layer("GroupNorm", 2, 4, inputs=[real(2, 4, 2, 3)])
    yield layer("LayerNorm", 6, inputs=[real(2, 3, 6)])
    yield layer("LayerNorm", (3, 4), inputs=[real(2, 3, 4)], of="over two axes")
    yield layer("RMSNorm", 6, eps=1e-5, inputs=[real(2, 3, 6)])


def activations():
    names = {"HardShrink": "Hardshrink", "HardTanh": "Hardtanh"}
    plain = (
        "CELU ELU GELU GLU HardShrink HardTanh Hardswish LeakyReLU LogSigmoid Mish PReLU ReLU"
        " ReLU6 SELU SiLU Sigmoid Softplus Softshrink Softsign Tanh"
    )
    for name in plain.split():
        yield layer(name, theirs=names.get(name), inputs=[real(2, 12, lo=-5, hi=5)])
    for name in ("LogSoftmax", "Softmax", "Softmin"):
        yield layer(name, 1, inputs=[real(2, 3, 4)])
    for name in ("CELU", "ELU"):
        yield layer(name, 0.5, inputs=[real(12, lo=-3)], of="with alpha")
    yield layer("GELU", "tanh", inputs=[real(24, lo=-5, hi=5)], of="tanh")
    yield layer("GLU", 1, inputs=[real(2, 4, 3)], of="along an axis")
    for name in ("HardShrink", "Softshrink"):
        yield layer(name, 1.25, theirs=names.get(name), inputs=[real(12)], of="with lambd")
    yield layer("HardTanh", -0.5, 1.5, theirs="Hardtanh", inputs=[real(12)], of="with bounds")
    yield layer("LeakyReLU", 0.3, inputs=[real(12)], of="with slope")
    yield layer("PReLU", 3, inputs=[real(2, 3, 4)], of="of channels")


def recurrent(name, inputs, of="", our_options=None, **options):
    def call_theirs(layer, x, *state):
        return layer(x, *([tuple(state) if len(state) > 1 else state[0]] if state else []))

    return LayerCase(
        f"{name} {of}".strip(),
        inputs,
        lambda: getattr(torch.nn, name)(3, 4, batch_first=True, **options),
        lambda: getattr(tn.nn, name)(3, 4, **(options if our_options is None else our_options())),
        call_theirs,
        call_theirs,
    )


def recurrent_layers():
    relu = dict(nonlinearity="relu", our_options=lambda: dict(nonlinearity=tn.relu))
    yield recurrent("RNN", [real(2, 5, 3)], **relu, of="relu")
    for name in ("RNN", "GRU", "LSTM"):
        yield recurrent(name, [real(2, 5, 3)])
        yield recurrent(name, [real(2, 5, 3)], bias=False, of="without bias")
        state = [real(4, 2, 4)] * (2 if name == "LSTM" else 1)
        options = dict(num_layers=2, bidirectional=True, of="two layers, both ways, with a state")
        yield recurrent(name, [real(2, 3, 3), *state], **options)


def cell(name, states, of="", **options):
    def call(layer, x, *state):
        return layer(x, *([tuple(state) if len(state) > 1 else state[0]] if state else []))

    return LayerCase(
        f"{name} {of}".strip(),
        [real(2, 3), *[real(2, 4)] * states],
        lambda: getattr(torch.nn, name)(3, 4, **options),
        lambda: getattr(tn.nn, name)(3, 4, **options),
        call,
        call,
    )


def cells():
    for name, states in (("RNNCell", 1), ("GRUCell", 1), ("LSTMCell", 2)):
        yield cell(name, states)
        yield cell(name, 0, of="from zeros")
        yield cell(name, states, bias=False, of="without bias")
    yield cell("RNNCell", 1, nonlinearity="relu", of="relu")


def lengths_first():
    def call(layer, x, *state):
        return layer(x, *([tuple(state) if len(state) > 1 else state[0]] if state else []))

    for name in ("RNN", "GRU", "LSTM"):
        state = [real(4, 2, 4)] * (2 if name == "LSTM" else 1)
        options = dict(num_layers=2, bidirectional=True, batch_first=False)
        yield LayerCase(
            f"{name} length first",
            [real(5, 2, 3), *state],
            lambda name=name, options=options: getattr(torch.nn, name)(3, 4, **options),
            lambda name=name, options=options: getattr(tn.nn, name)(3, 4, **options),
            call,
            call,
        )
    yield LayerCase(
        "MultiHeadAttention positions first",
        [real(4, 2, 8), real(3, 2, 8)],
        lambda: torch.nn.MultiheadAttention(8, 2),
        lambda: tn.nn.MultiHeadAttention(8, 2, batch_first=False),
        lambda layer, q, k: layer(q, k, k, need_weights=False)[0],
        lambda layer, q, k: layer(q, k),
    )
    yield LayerCase(
        "TransformerEncoderLayer positions first",
        [real(4, 2, 8)],
        lambda: torch.nn.TransformerEncoderLayer(8, 2, 16, dropout=0.0),
        lambda: tn.nn.TransformerEncoderLayer(8, 2, 16, dropout=0.0, batch_first=False),
        called,
        called,
    )


def attention(of, inputs, call_theirs, call_ours, key_dims=None, value_dims=None):
    return LayerCase(
        f"MultiHeadAttention {of}",
        inputs,
        lambda: torch.nn.MultiheadAttention(
            8, 2, kdim=key_dims, vdim=value_dims, batch_first=True
        ),
        lambda: tn.nn.MultiHeadAttention(8, 2, key_dims=key_dims, value_dims=value_dims),
        call_theirs,
        call_ours,
    )


def attentions():
    def theirs(layer, q, k, v, mask=None):
        mask = None if mask is None else ~mask  # theirs is true where nothing is to be seen
        return layer(q, k, v, attn_mask=mask, need_weights=False)[0]

    def causal(n):
        return torch.ones((n, n), dtype=torch.bool).tril()

    def some(q, k):
        return lambda rng: rng.uniform(0, 1, (q, k)) < 0.7

    x, memory = real(2, 4, 8), real(2, 3, 8)
    yield attention("to itself", [x], lambda layer, x: theirs(layer, x, x, x), called)
    yield attention(
        "causal",
        [x],
        lambda layer, x: theirs(layer, x, x, x, causal(4)),
        lambda layer, x: layer(x, causal=True),
    )
    yield attention("to others", [x, memory, memory], theirs, called)
    yield attention("with a mask", [x, memory, memory, some(4, 3)], theirs, called)
    inputs = [x, real(2, 3, 5), real(2, 3, 6)]
    yield attention("of other sizes", inputs, theirs, called, key_dims=5, value_dims=6)


def transformer(name, inputs, call_theirs, call_ours, of="", **options):
    """Options are PyTorch's; the activation is the name of a function."""
    activation = options.get("activation", "relu")
    norm_first = options.get("norm_first", False)

    def theirs():
        return getattr(torch.nn, name)(
            8, 2, dim_feedforward=6, dropout=0, batch_first=True, **options
        )

    def ours():
        return getattr(tn.nn, name)(
            8, 2, mlp_dims=6, dropout=0, activation=getattr(tn, activation), norm_first=norm_first
        )

    return LayerCase(f"{name} {of}".strip(), inputs, theirs, ours, call_theirs, call_ours)


def transformers():
    x, memory = real(2, 4, 8), real(2, 3, 8)
    for of, options in (
        ("", {}),
        ("norm first", {"norm_first": True}),
        ("gelu", {"activation": "gelu"}),
    ):
        yield transformer("TransformerEncoderLayer", [x], called, called, of, **options)
        args = (
            [x, memory],
            lambda layer, x, memory: layer(
                x, memory, tgt_mask=torch.nn.Transformer.generate_square_subsequent_mask(4)
            ),
            lambda layer, x, memory: layer(x, memory, causal=True),
        )
        yield transformer("TransformerDecoderLayer", *args, of, **options)
    yield LayerCase(
        "Transformer",
        [memory, x],
        lambda: torch.nn.Transformer(8, 2, 2, 1, 4, dropout=0, batch_first=True),
        lambda: tn.nn.Transformer(8, 2, 2, 1, 4, dropout=0),
        called,
        called,
    )


CASES = [
    *linear_layers(),
    *convolutions(),
    *padded_convolutions(),
    *pads(),
    *pools(),
    *adaptive_pools(),
    *shuffles(),
    *upsamples(),
    *normalizations(),
    *activations(),
    *recurrent_layers(),
    *cells(),
    *lengths_first(),
    *attentions(),
    *transformers(),
]
