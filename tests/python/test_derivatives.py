"""Derivatives and batching of every op: each check over all samples of an op."""

import pytest

import flat
import tenon as tn
from derivatives import CHECKS, SHAPED_BY_VALUES, Problem, problems
from op_harness import numpy_of

SAMPLES = {}
for _sample in tn.testing.samples():
    SAMPLES.setdefault(_sample.op, []).append(_sample)

# What a check cannot ask of an op, and why. An entry that is not needed fails a test below.
PHASE = dict.fromkeys(
    ["eig", "eigh", "svd"], "the phase of complex vectors is free: test_linalg.py"
)
ORDER = dict.fromkeys(["eig", "eigvals"], "the order of values depends on the precision")
SHAPE = "the shapes of its results depend on values"
UNIQUE = {op: SHAPE for op in SHAPED_BY_VALUES if op.startswith("unique")}  # the smooth ones
EXEMPT = {
    "first order": PHASE,
    "second order": PHASE,
    "vmap": dict.fromkeys(SHAPED_BY_VALUES, SHAPE),
    "vmap of gradient": UNIQUE,
    "float32": {"random_choice": "probabilities of another type draw other elements"} | ORDER,
    "bfloat16": {"random_choice": "probabilities of another type draw other elements"} | ORDER,
    "float16": ORDER,
    "checkpoint": UNIQUE,
}


def ops_for(check):
    """Ops to check, and those exempt."""
    asked = [
        op
        for op, samples in SAMPLES.items()
        if check == "vmap" or samples[0].gradient == "by_rule"
    ]
    return [op for op in asked if op not in EXEMPT.get(check, {})]


CASES = [
    pytest.param(check, op, id=f"{check.replace(' ', '_')}-{op}")
    for check in CHECKS
    for op in ops_for(check)
]
EXEMPTIONS = [(check, op) for check, ops in EXEMPT.items() for op in ops]


@pytest.mark.parametrize("check, op", CASES)
def test_op(check, op):
    for sample in SAMPLES[op]:
        CHECKS[check](sample)


@pytest.mark.parametrize("check, op", EXEMPTIONS)
def test_exemption_is_needed(check, op):
    with pytest.raises((tn.Error, AssertionError)):
        for sample in SAMPLES[op]:
            CHECKS[check](sample)


# Bits do not widen to 64; test_derivative_traps.py has their gradient.
ZEROS = [op for op, s in SAMPLES.items() if s[0].gradient == "zero" and op != "bitcast"]


@pytest.mark.parametrize("op", ZEROS)
def test_gradient_is_zero(op):
    for sample in SAMPLES[op]:
        for p in problems(sample):
            tangents = flat.jvp(p.function, p.primals, p.tangents)[1]
            for g in p.gradient(p.primals) + tangents:
                assert not numpy_of(g).any(), p


@pytest.mark.parametrize("op", [op for op, s in SAMPLES.items() if s[0].gradient == "none"])
def test_asking_for_a_gradient_is_an_error(op):
    asked = 0
    for sample in SAMPLES[op]:
        p = Problem(sample)
        if not p:
            continue
        asked += 1
        with pytest.raises(tn.Unsupported, match="differentiable"):
            p.gradient(p.primals)
        with pytest.raises(tn.Unsupported, match="differentiable"):
            flat.jvp(p.function, p.primals, p.tangents)
    assert asked, f"{op}: it has nothing to differentiate anyway"
