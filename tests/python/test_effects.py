"""print, check, and the flat bindings of control flow."""

import numpy as np
import pytest

import tenon as tn
from tenon import _core


def test_print_goes_to_the_current_stdout(capsys):
    tn.print("x is {} and {}", tn.array([1.0, 2.0]), 3)
    tn.print("plain")
    assert capsys.readouterr().out == "x is [1, 2] and 3\nplain\n"


def test_print_inside_vmap_prints_every_example(capsys):
    def f(args):
        tn.print("{}", args[0])
        return [args[0] * 2]

    out = _core._vmap(f, [tn.array([1.0, 2.0, 3.0])], [0])
    np.testing.assert_array_equal(np.asarray(out[0]), [2, 4, 6])
    assert capsys.readouterr().out == "1\n2\n3\n"


def test_check_names_the_line():
    place = r"test_effects\.py:\d+, in test_check"
    with pytest.raises(tn.Error, match=rf"(?s)x is negative: -1.*{place}"):
        tn.check(tn.array(-1.0) > 0, "x is negative: {}", -1)


def test_check_inside_scan_fails_when_it_runs():
    def step(args):
        tn.check(args[0] < 3, "too far: {}", args[0])
        return [args[0] + 1]

    carry, _ = _core._scan(step, [tn.array(0.0)], [], length=5)
    with pytest.raises(tn.Error, match="too far: 3"):
        carry[0].item()


def test_scan_cond_while_on_lists():
    carry, ys = _core._scan(
        lambda a: [a[0] + a[1], a[0] * 2], [tn.array(0.0)], [tn.array([1.0, 2.0, 3.0])]
    )
    assert carry[0].item() == 6
    np.testing.assert_array_equal(np.asarray(ys[0]), [0, 2, 6])
    (y,) = _core._cond(tn.array(True), lambda a: [a[0] + 1], lambda a: [a[0] - 1], [tn.array(1.0)])
    assert y.item() == 2
    (n,) = _core._while_loop(lambda a: [a[0] < 100], lambda a: [a[0] * 2], [tn.array(3)])
    assert n.item() == 192


def test_custom_function_rules_from_python():
    def vjp(primals, cotangents, outputs):
        return [cotangents[0] * primals[0] * 6]

    def f(args):
        return _core._custom(lambda a: [a[0] * a[0]], args, vjp)

    values, grads = _core._vjp(f, [tn.array(3.0)], [tn.array(1.0)])
    assert (values[0].item(), grads[0].item()) == (9, 18)
    with pytest.raises(tn.Error, match="only vjp is given"):
        _core._jvp(f, [tn.array(3.0)], [tn.array(1.0)])


def test_checkpoint_of_a_list():
    f = lambda a: [tn.sin(a[0]) * a[0]]  # noqa: E731
    x, one = tn.array([0.5, 1.5]), tn.ones(2)
    plain = _core._vjp(f, [x], [one])[1][0]
    saved = _core._vjp(lambda a: _core._checkpoint(f, a), [x], [one])[1][0]
    np.testing.assert_array_equal(np.asarray(plain), np.asarray(saved))
