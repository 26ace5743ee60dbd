"""Layers against what PyTorch gave once: results, gradients, running statistics, names.

Differences are relative to the largest magnitude in the array they are in.
"""

import pathlib

import numpy as np
import pytest

import tenon as tn
from layer_cases import CASES, cotangent, flat, load
from tenon.nn.module import named_tensors

DATA = pathlib.Path(__file__).parents[1] / "data/torch_layers.npz"
TOLERANCE = 1e-5
BUFFERS = tn.nn.BatchNorm.buffers


@pytest.fixture(scope="module")
def recorded():
    return load(DATA)


def named(recorded, case, kind):
    prefix = f"{case.name}/{kind}/"
    return {key[len(prefix) :]: x for key, x in recorded.items() if key.startswith(prefix)}


def assert_alike(got, want, what):
    assert sorted(got) == sorted(want), what
    for name, w in want.items():
        assert got[name].shape == w.shape, f"{what} {name}"
        scale = np.max(np.abs(w), initial=0)
        difference = np.max(np.abs(got[name].numpy() - w), initial=0)
        assert difference <= TOLERANCE * scale, f"{what} {name}: {difference} of {scale}"


def numbered(tensors):
    return {str(i): x for i, x in enumerate(tensors)}


def test_every_case_is_recorded(recorded):
    names = [case.name for case in CASES]
    assert len(names) == len(set(names))
    assert set(names) == {key.split("/")[0] for key in recorded}


@pytest.mark.parametrize("compiled", [False, True], ids=["eager", "compiled"])
@pytest.mark.parametrize("case", CASES, ids=lambda case: case.name.replace(" ", "_"))
def test_layer(case, compiled, recorded):
    layer = case.ours().load_weights(named(recorded, case, "state")).train(case.training)
    inputs = [tn.array(x) for x in named(recorded, case, "in").values()]
    floating = [i for i, x in enumerate(inputs) if x.dtype == tn.float32]

    def loss(parameters, given):
        layer.update(parameters)
        args = list(inputs)
        for i, x in zip(floating, given):
            args[i] = x
        out = flat(case.call_ours(layer, *args))
        return sum(tn.sum(y * tn.array(cotangent(y.shape), tn.float32)) for y in out), out

    def run(given):
        before = layer.trainable_parameters()
        made = tn.value_and_grad(loss, (0, 1))(before, given)
        layer.update(before)
        return made

    if compiled:
        run = tn.compile(run, inputs=layer.state, outputs=layer.state)
    (_, out), (gradients, given_gradients) = run([inputs[i] for i in floating])
    after = {k: x for k, x in layer.state_dict().items() if k.split(".")[-1] in BUFFERS}
    for kind, got in {
        "out": numbered(out),
        "input gradient": numbered(given_gradients),
        "gradient": dict(named_tensors(gradients)),
        "after": after,
    }.items():
        assert_alike(got, named(recorded, case, kind), kind)
