"""docs/tenon_in_500_lines.py stays short, runs, and is what docs/tenon-in-500-lines.md quotes."""

import os
import pathlib
import re
import subprocess
import sys

import pytest

DOCS = pathlib.Path(__file__).resolve().parents[2] / "docs"
PROGRAM = DOCS / "tenon_in_500_lines.py"
QUOTE = re.compile(r"^```py\n(.*?)^```$", re.M | re.S)


def test_it_has_500_lines():
    assert len(PROGRAM.read_text().splitlines()) <= 500


def test_quotes_are_lines_of_the_program():
    quotes = QUOTE.findall((DOCS / "tenon-in-500-lines.md").read_text())
    assert len(quotes) > 15
    for quote in quotes:
        assert "\n" + quote in PROGRAM.read_text(), quote


@pytest.mark.parametrize("path", [os.environ["PATH"], ""], ids=["native", "interpreted"])
def test_it_checks_itself(path):
    environment = os.environ | {"PATH": path}
    command = [sys.executable, PROGRAM]
    run = subprocess.run(command, env=environment, capture_output=True, text=True)
    assert run.returncode == 0, run.stderr
    shown = (DOCS / "tenon-in-500-lines.md").read_text()
    assert run.stdout in shown


@pytest.fixture
def small(monkeypatch):
    monkeypatch.syspath_prepend(DOCS)
    import tenon_in_500_lines

    return tenon_in_500_lines


SPECIAL = [0.0, -0.0, 1.0, -2.5, 1e-320, 800.0, -800.0, float("inf"), float("-inf"), float("nan")]


@pytest.mark.parametrize("op", "neg exp tanh add sub mul div".split())
def test_machine_code_has_the_bits_of_the_interpreter(small, op):
    pairs = [(a, b) for a in SPECIAL for b in SPECIAL]
    arity = 2 if "{1}" in small.OPS[op].c else 1
    operands = [small.tensor([pair[k] for pair in pairs]) for k in range(arity)]
    native = small.Compiled(lambda *args: small.call(op, *args))(*operands)
    interpreted = small.call(op, *operands)
    assert repr(native) == repr(interpreted)


@pytest.mark.parametrize("op", "copy neg exp tanh add sub mul div".split())
def test_derivatives_match_differences(small, op):
    arity = 2 if "{1}" in small.OPS[op].c else 1
    at, h = [0.7, -1.3][:arity], 1e-6
    slopes = small.grad(lambda *args: small.call(op, *args))(*at)
    for k, slope in enumerate(slopes):
        more, less = ([x + d * (i == k) for i, x in enumerate(at)] for d in (h, -h))
        scalar = small.OPS[op].scalar
        assert slope.tolist() == pytest.approx((scalar(*more) - scalar(*less)) / (2 * h), abs=1e-8)


def test_broadcast_and_sum_are_adjoint(small):
    x = small.tensor([[1, 2, 3], [4, 5, 6]])
    y = small.tensor([[[i + 2 * j + 3 * k for k in range(3)] for j in range(4)] for i in (0, 1)])
    repeated = small.grad(lambda x: small.total(small.broadcast(x, (2, 4, 3), (0, 2)) * y))
    assert repeated(x)[0].tolist() == small.total(y, [1]).tolist()
    z = small.tensor([[1, 2], [3, 4], [5, 6]])
    transposed = small.grad(lambda x: small.total(small.broadcast(x, (3, 2), (1, 0)) * z))
    assert transposed(x)[0].tolist() == [[1, 3, 5], [2, 4, 6]]


WRONG = [
    ("tensor([[1, 2], [3]])", "tensor: the rows have different lengths: [[1, 2], [3]]"),
    ("tensor([1, 2]) + tensor([1, 2, 3])", "add: operand (3,) does not fit axes (0,) of (2,)"),
    ("grad(lambda x: x)([1, 2])", "grad: the result must be a scalar, not (2,)"),
    ("Compiled(lambda x: tensor(x.tolist()))(1.0)",
     "evaluate: a tensor has no values while its function is traced"),
    ("Compiled(lambda x: x).plan(1.0)([1, 2])", "plan: [(2,)] are not the shapes of its inputs"),
]


@pytest.mark.parametrize("wrong, message", WRONG)
def test_errors(small, wrong, message):
    with pytest.raises(small.Error) as error:
        eval(wrong, vars(small))
    assert str(error.value) == message
