"""Gradients against those PyTorch gave once, of ops, layers, losses and decompositions."""

import pathlib

import numpy as np
import pytest

import tenon as tn
from op_harness import is_float
from torch_cases import CASES

DATA = pathlib.Path(__file__).parents[1] / "data/torch_gradients.npz"


@pytest.fixture(scope="module")
def recorded():
    with np.load(DATA) as file:
        return dict(file)


def listed(recorded, case, kind):
    found = []
    while (key := f"{case.name}/{kind}{len(found)}") in recorded:
        found.append(recorded[key])
    return found


def test_every_case_is_recorded(recorded):
    names = [case.name for case in CASES]
    assert len(names) == len(set(names))
    assert sorted(names) == sorted({key.split("/in")[0] for key in recorded if "/in" in key})


@pytest.mark.parametrize("case", CASES, ids=lambda case: case.name.replace(" ", "_"))
def test_gradient(case, recorded):
    inputs = [tn.asarray(x) for x in listed(recorded, case, "in")]
    cts = [tn.asarray(c) for c in listed(recorded, case, "ct")]
    floating = [i for i, x in enumerate(inputs) if is_float(x.dtype)]

    def f(given):
        args = list(inputs)
        for i, x in zip(floating, given):
            args[i] = x
        out = case.ours(*args)
        return list(out) if isinstance(out, (list, tuple)) else [out]

    values, gradients = tn._core._vjp(f, [inputs[i] for i in floating], cts)
    for kind, got in (("out", values), ("grad", gradients)):
        want = listed(recorded, case, kind)
        assert len(got) == len(want)
        for g, w in zip(got, want):
            scale = max(1, np.max(np.abs(w), initial=0))
            np.testing.assert_allclose(g.numpy(), w, rtol=1e-10, atol=1e-10 * scale, err_msg=kind)
