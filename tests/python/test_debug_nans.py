"""tn.debug_nans: which op made the first NaN, and where it was called."""

from __future__ import annotations

import doctest
import os
import re
import subprocess
import sys

import numpy as np
import pytest

import tenon as tn
from tenon import debugging

HERE = re.escape(__file__)


@pytest.fixture(autouse=True)
def switched_off_afterwards():
    yield
    tn.debug_nans(False)


def error_of(f, *args, inf=False):
    with tn.debug_nans(inf=inf), pytest.raises(tn.InvalidValue) as raised:
        tn.eval(f(*args))
    return str(raised.value)


def line_of(text):
    """The number of the line of this file that ends with the comment `# text`."""
    with open(__file__) as file:
        return next(i for i, line in enumerate(file, 1) if line.endswith(f"# {text}\n"))


def test_off_is_the_default_and_what_a_statement_restores():
    def compute():
        return tn.log(tn.array([-1.0])).numpy()

    assert np.isnan(compute()).all()
    with tn.debug_nans():
        with tn.debug_nans(False):
            compute()
        with pytest.raises(tn.Error):
            compute()
    compute()
    tn.debug_nans(True)
    with pytest.raises(tn.Error):
        compute()
    tn.debug_nans(False)
    compute()


def test_the_op_its_operands_and_the_line_are_named():
    x = tn.array([[1.0, 2.0], [4.0, -1.0]])

    def f(x):
        y = tn.sqrt(x) * 2  # the line
        return tn.sum(y + 1)

    text = error_of(f, x)
    assert text.startswith(
        "debug_nans: sqrt(f32[2,2]) made NaN: 1 of 4 elements of f32[2,2], first at [1, 1]: "
        "sqrt(-1)"
    )
    assert re.search(rf"called at {HERE}:{line_of('the line')}, in f\)", text)


@pytest.mark.parametrize("level", [0, 3])
def test_compiled_functions(level):
    @tn.compile(optimization_level=level)
    def f(x, y):
        z = x - y
        return tn.exp(z) / tn.sum(tn.abs(z))

    x = tn.array([1.0, 2.0])
    assert "divide(f32[2], f32[]) made NaN" not in error_of(lambda: f(x, tn.array([np.nan, 0.0])))
    tn.eval(f(x, x + 1))
    text = error_of(lambda: f(x - tn.array([200.0, 200.0]), x - tn.array([200.0, 200.0])), inf=True)
    assert "divide(f32[2], f32[]) made NaN or infinity: 2 of 2" in text and "divide(1, 0)" in text


def test_state_of_a_failed_step_is_as_before():
    state = {"w": tn.array([1.0, 4.0]), "step": tn.array(0)}

    @tn.compile(inputs=state, outputs=state)
    def step(x):
        state["w"] = tn.sqrt(state["w"] - x)
        state["step"] = state["step"] + 1

    with tn.debug_nans():
        step(tn.array(1.0))
        before = state["w"].tolist()
        with pytest.raises(tn.Error, match=r"sqrt\(f32\[2\]\) made NaN"):
            step(tn.array(1.0))
        assert state["w"].tolist() == before
        assert state["step"].item() == 1
        step(tn.array(0.0))
    assert state["step"].item() == 2


@pytest.mark.parametrize("compiled", [False, True])
def test_derivatives_name_the_op_they_belong_to(compiled):
    def loss(x):
        safe = tn.where(x > 0, tn.sqrt(x), 0)  # its derivative at 0
        return tn.sum(safe)

    gradient = tn.grad(loss)
    text = error_of(tn.compile(gradient) if compiled else gradient, tn.array([4.0, 0.0]))
    assert "made NaN: 1 of 2" in text and "first at [1]" in text
    assert f"{__file__}:{line_of('its derivative at 0')}, in loss" in text
    assert ", for sqrt," in text or ", for where," in text or ", for greater," in text


def test_backward_names_the_op_it_belongs_to():
    w = tn.array([4.0, 0.0])
    w.requires_grad = True

    def loss(x):
        return tn.sum(tn.where(x > 0, tn.sqrt(x), 0))  # its gradient at 0

    def gradient():
        loss(w).backward()
        return w.grad

    text = error_of(gradient)
    assert "made NaN: 1 of 2" in text and f":{line_of('its gradient at 0')}, in loss" in text


def test_a_nan_that_came_in_is_said_to():
    x = tn.array([1.0, np.nan])
    text = error_of(lambda: tn.sum(x * 2))
    assert "multiply(f32[2], f32[]) is given NaN: operand 0, 1 of 2 elements of f32[2]" in text
    text = error_of(lambda: tn.array([1.0]) + float("nan"))
    assert "add(f32[1], f32[]) is given NaN: operand 1, f32[]" in text
    with tn.debug_nans():
        x.numpy()  # nothing is computed
    text = error_of(tn.compile(lambda x: x), x)
    assert "an argument has NaN: 1 of 2 elements of f32[2], first at [1]" in text


def test_a_nan_that_is_masked_is_no_error():
    x = tn.array([1.0, -1.0])
    with tn.debug_nans():
        assert tn.compile(lambda x: tn.where(x > 0, tn.log(x), 0.0))(x).tolist() == [0, 0]


def test_masked_nans_are_not_blamed():
    def f(x, y):
        logs = tn.where(x > 0, tn.log(x), 0.0)
        return tn.where(x > 0, logs, tn.where(x < 0, tn.log(x) * 0 + y, tn.sqrt(x - 1)))

    x = tn.array([1.0, 0.0])
    text = error_of(tn.compile(f), x, tn.array([1.0, 1.0]))
    assert "sqrt(f32[2]) made NaN: 1 of 2 elements" in text and "sqrt(-1)" in text


@pytest.mark.parametrize("dtype", ["float16", "bfloat16", "float32", "float64", "complex64"])
def test_every_type(dtype):
    x = tn.array([1.0, 0.0, 0.0]).astype(dtype)
    text = error_of(lambda: x / x)
    assert "2 of 3 elements" in text and "first at [1]" in text
    ones = tn.ones(3).astype(dtype)
    assert "made NaN or infinity: 2 of 3" in error_of(lambda: ones / x, inf=True)
    with tn.debug_nans():
        tn.eval(ones / tn.array([1.0, 2.0, 3.0]).astype(dtype))


def test_infinities_count_only_when_asked():
    def f(x):
        return 1 / x

    with tn.debug_nans():
        assert f(tn.array([0.0])).tolist() == [float("inf")]
    assert "divide(f32[], f32[1]) made NaN or infinity" in error_of(f, tn.array([0.0]), inf=True)


def test_inside_of_called_functions_and_loops():
    @tn.compile
    def inner(x):
        return tn.log(x)  # inner line

    @tn.compile
    def outer(x):
        return inner(x - 2) * 2

    text = error_of(outer, tn.array([1.0]))
    assert "log(f32[1]) made NaN" in text and f":{line_of('inner line')}, in inner" in text
    text = error_of(lambda x: tn.checkpoint(lambda v: tn.log(v))(x), tn.array([-1.0]))
    assert "log(f32[1]) made NaN" in text
    text = error_of(lambda x: tn.scan(lambda c, _: (tn.log(c), c), x, length=3)[0], tn.array(2.0))
    assert "scan(" in text and "made NaN" in text


def test_many_sizes():
    f = tn.compile(lambda x: tn.sqrt(x), shapeless=True)
    with tn.debug_nans():
        for n in (1, 5, 7):
            tn.eval(f(tn.ones(n)))
    assert "sqrt(f32[6]) made NaN: 6 of 6 elements" in error_of(f, -tn.ones(6))


def test_executables(tmp_path):
    def f(x):
        return tn.sum(tn.log(x))  # in the executable

    made = tn.compile(f, args=[tn.InputInfo(((1, 4, 8),), tn.float32)])
    text = error_of(made, -tn.ones(3))
    assert "log(f32[3]) made NaN: 3 of 3" in text and f":{line_of('in the executable')}," in text
    path = str(tmp_path / "f.tnx")
    made.save(path)
    assert "log(f32[2]) made NaN: 2 of 2" in error_of(tn.Executable.load(path), -tn.ones(2))


@pytest.mark.parametrize(
    "value, found", [("1", b"log(f32[1])"), ("inf", b"log(f32[1])"), ("0", b"nan"), ("", b"nan")]
)
def test_the_environment(value, found):
    program = (
        "import tenon as tn\n"
        "try: print(tn.log(tn.array([-1.0])))\n"
        "except tn.Error as e: print(e)\n"
    )
    made = subprocess.run(
        [sys.executable, "-c", program],
        env={**os.environ, "TENON_DEBUG_NANS": value},
        capture_output=True,
        timeout=30,
    )
    assert found in made.stdout and made.stderr == b""


def test_examples_in_the_documentation():
    flags = doctest.ELLIPSIS | doctest.IGNORE_EXCEPTION_DETAIL
    assert doctest.testmod(debugging, extraglobs={"tn": tn}, optionflags=flags).failed == 0
