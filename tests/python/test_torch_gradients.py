"""Gradients against those PyTorch gave once, of ops, layers, losses and decompositions."""

import pathlib

import numpy as np
import pytest

from torch_cases import CASES, compare

DATA = pathlib.Path(__file__).parents[1] / "data/torch_gradients.npz"


@pytest.fixture(scope="module")
def recorded():
    with np.load(DATA) as file:
        return dict(file)


def test_every_case_is_recorded(recorded):
    names = [case.name for case in CASES]
    assert len(names) == len(set(names))
    assert sorted(names) == sorted({key.split("/in")[0] for key in recorded if "/in" in key})


@pytest.mark.parametrize("case", CASES, ids=lambda case: case.name.replace(" ", "_"))
def test_gradient(case, recorded):
    compare(case, recorded, tolerance=1e-10)
