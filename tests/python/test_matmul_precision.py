"""tn.set_matmul_precision: a setting for GPUs, part of the keys of plans."""

import numpy as np
import pytest

import tenon as tn


@pytest.fixture(autouse=True)
def former_setting():
    before = tn.matmul_precision()
    yield
    tn.set_matmul_precision(before)


def test_the_setting_is_returned_and_kept():
    assert tn.matmul_precision() == "highest"
    assert tn.set_matmul_precision("exact") == "highest"
    assert tn.set_matmul_precision("high") == "exact"
    assert tn.matmul_precision() == "high"
    with pytest.raises(ValueError, match="highest"):
        tn.set_matmul_precision("medium")
    assert tn.matmul_precision() == "high"


def test_nothing_changes_on_the_cpu():
    x = tn.random.normal(shape=(70, 90))
    bits = set()
    for name in ("highest", "high", "exact"):
        tn.set_matmul_precision(name)
        bits.add(np.asarray(x @ x.T).tobytes())
    assert len(bits) == 1


def test_a_compiled_function_has_a_trace_for_each_setting():
    traced = []

    @tn.compile
    def f(x):
        traced.append(tn.matmul_precision())
        return x @ x

    x = tn.ones((3, 3))
    for name in ("highest", "exact", "highest", "exact", "high"):
        tn.set_matmul_precision(name)
        assert f(x).tolist() == [[3, 3, 3]] * 3
    assert traced == ["highest", "exact", "high"]
    assert f.why_recompiled()[1].startswith("matmul_precision was highest, now exact")
