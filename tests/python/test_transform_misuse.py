"""The flat bindings of the transforms with what is no tensor: errors, not crashes."""

import sys

import numpy as np
import pytest

import tenon as tn
from tenon import _core

X = tn.asarray([1.0, 2.0])


@pytest.mark.parametrize(
    "call",
    [
        lambda: tn.vjp(lambda a: _core._checkpoint(lambda b: [None], [a])[0], [X], X),
        lambda: _core._checkpoint(lambda a: a, [None]),
        lambda: _core._custom(lambda a: a, [None], None, None, None),
    ],
)
def test_missing_tensors_are_errors(call):
    with pytest.raises(tn.Error, match="is missing"):
        call()
    assert tn.grad(lambda v: tn.sum(v * v))(X).tolist() == [2.0, 4.0]


def test_evaluating_while_a_line_is_shown_is_an_error(monkeypatch, capfd):
    class Curious:
        def write(self, text):
            seen.append(text)
            float(tn.asarray(1.0) + 1)

        def flush(self):
            pass

    seen = []
    with monkeypatch.context() as patched:
        patched.setattr(sys, "stdout", Curious())
        patched.setattr(sys, "unraisablehook", lambda info: seen.append(info.exc_value))
        tn.print("x = {}", X)
    assert any("while a plan was running" in str(s) for s in seen), seen


def test_many_numbers_in_a_checkpoint():
    def chain(a):
        for i in range(4000):
            a = a * (1 + 1e-6 * i) + 0.1
        return a

    assert tn.grad(tn.checkpoint(chain))(1.0).item() == tn.grad(chain)(1.0).item()


def test_an_int_inside_a_tree_is_no_parameter():
    with pytest.raises(tn.Error, match=r"\['n'\] is an int"):
        tn.grad(lambda p: tn.sum(p["w"]) * p["n"])({"w": X, "n": 3})
    assert tn.grad(lambda x: x * x)(3).item() == 6.0


def test_a_number_as_result_of_a_differentiated_function_is_an_error():
    with pytest.raises(tn.Error, match=r"returned a Python number, 5.0, .*\n.*\n.*item\(\)"):
        tn.grad(lambda x: tn.sum(x * x).item())(X)


def test_rows_of_a_traced_tensor():
    def draw(key):
        first, second = tn.random.split(key)
        return tn.random.uniform(key=first) - tn.random.uniform(key=second)

    keys = tn.random.split(tn.random.key(0), 3)
    mapped = tn.vmap(draw)(keys).tolist()
    assert mapped == [draw(key).item() for key in keys]


def test_numbers_beyond_any_axis_or_argument():
    with pytest.raises(tn.Error, match="no argument 1180591620717411303424"):
        tn.grad(lambda x: x, argnums=2**70)(1.0)
    with pytest.raises(tn.Error, match="no axis 1099511627776"):
        tn.vmap(lambda x: x, in_axes=2**40)(X)


EXPORTS = {
    "asarray": np.asarray,
    "array": lambda x: np.array(x, copy=True),
    "numpy": lambda x: x.numpy(),
    "memoryview": memoryview,
    "dlpack": np.from_dlpack,
    "narrow": lambda x: x.astype(tn.bfloat16).numpy(),
    "list of them": lambda x: np.array([x, x]),
}


@pytest.mark.parametrize("export", EXPORTS.values(), ids=EXPORTS)
def test_what_is_differentiated_does_not_leave_as_an_array(export):
    """It would be a constant to the derivative, in silence."""

    def loss(x, leave):
        leave(x * 2)
        return (x * x).sum()

    refused = pytest.raises(tn.InvalidType, match=r"being differentiated[^\0]*x\.detach\(\)")
    for g in (
        tn.grad(loss),
        lambda x, f: tn.jvp(lambda t: loss(t, f), [x], [x]),
        lambda x, f: tn.grad(lambda t: tn.grad(loss)(t, f).sum())(x),
        lambda x, f: tn.grad(lambda t: tn.checkpoint(lambda s: s * 1)(t).sum() + loss(t, f))(x),
    ):
        with refused:
            g(X, export)
    # What is no part of the derivative may: constants, whole numbers, comparisons.
    for harmless in (tn.stop_gradient, lambda x: x.detach(), lambda x: x > 1, lambda _: X + 1,
                     lambda x: x.astype(tn.int32)):
        assert tn.grad(loss)(X, lambda x: export(harmless(x))).tolist() == [2.0, 4.0]
    inner = tn.grad(lambda x: loss(x, lambda _: export(tn.grad(tn.sum)(X))))
    assert inner(X).tolist() == [2.0, 4.0]
    tn.grad(loss)(X, lambda _: None)
    export(X)
    with refused:
        model = _Scaled(X)
        tn.nn.value_and_grad(model, lambda: loss(model.w, export))()


class _Scaled(tn.nn.Module):
    def __init__(self, w):
        self.w = w


def test_numbers_may_be_looked_at_while_they_are_differentiated(capsys):
    """Python decides by them, and prints them; they are constants."""

    def loss(x):
        total = x.sum()
        if total > 0 and float(total) > 0 and total.item() > 0 and int(total) and bool(total):
            total = total * x.tolist()[1]
        print(f"{total} {total:.1f}", repr(x))
        return total

    assert tn.grad(loss)(X).tolist() == [2.0, 2.0]
    assert "6.0" in capsys.readouterr().out


# Arguments and results without tensors ---------------------------------------------------------

EMPTY = [(), {}, [], None, ((), {"a": None})]


@pytest.mark.parametrize("jacobian", [tn.jacfwd, tn.jacrev])
@pytest.mark.parametrize("empty", EMPTY, ids=repr)
def test_jacobians_without_tensors(jacobian, empty):
    x = tn.array([1.0, 2.0])
    assert jacobian(lambda p: p)(empty) == empty
    assert jacobian(lambda p: tn.ones(3))(empty) == empty
    assert jacobian(lambda p: {"a": tn.ones(3), "b": p})(empty) == {"a": empty, "b": empty}
    assert jacobian(lambda x: empty)(x) == empty
    both = jacobian(lambda p, x: x * x, argnums=(0, 1))(empty, x)
    assert both[0] == empty and both[1].tolist() == [[2.0, 0.0], [0.0, 4.0]]
    assert tn.compile(jacobian(lambda p: {"a": tn.ones(3)}))(empty) == {"a": empty}


@pytest.mark.parametrize("empty", EMPTY, ids=repr)
def test_derivatives_without_tensors(empty):
    value, gradient = tn.value_and_grad(lambda p: tn.sum(tn.ones(3)))(empty)
    assert value.item() == 3.0 and gradient == empty
    assert tn.grad(lambda p: tn.sum(tn.ones(3)))(empty) == empty
    assert tn.hessian(lambda p: tn.sum(tn.ones(3)))(empty) == empty
    out, pull = tn.vjp(lambda p: p, [empty])
    assert out == empty and pull(empty) == [empty]
    out, pushed = tn.jvp(lambda p: p, [empty], [empty])
    assert out == empty and pushed == empty
    for transform in (tn.grad, tn.hessian, tn.value_and_grad):
        with pytest.raises(tn.Error, match="must return a scalar"):
            transform(lambda p: p)(empty)
    with pytest.raises(tn.Error, match="must return a scalar"):
        tn.grad(lambda x: empty)(tn.ones(2))


@pytest.mark.parametrize("empty", EMPTY, ids=repr)
def test_functions_of_nothing(empty):
    assert tn.compile(lambda p: p)(empty) == empty
    assert tn.checkpoint(lambda p: p)(empty) == empty
    with pytest.raises(tn.Error, match="no argument is mapped over"):
        tn.vmap(lambda p: tn.ones(3))(empty)
    with pytest.raises(tn.Error, match="no argument is mapped over"):
        tn.vmap(lambda p: p)(empty)
    x = tn.ones((2, 3))
    mapped = tn.vmap(lambda p, x: (p, x))(empty, x)
    assert mapped[0] == empty and mapped[1].shape == (2, 3)
    assert tn.vmap(lambda x: empty)(x) == empty


def test_assigning_to_a_tensor_from_outside_is_told():
    outer = tn.zeros(3)

    def f(x):
        outer[0] = x
        return x

    with pytest.warns(UserWarning, match="vmap: the function assigns to parts of"):
        tn.vmap(f)(tn.arange(3.0))
