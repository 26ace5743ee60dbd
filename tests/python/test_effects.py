"""print, check, and the flat bindings of control flow."""

import numpy as np
import pytest

import flat
import tenon as tn
from tenon import _core


def test_print_goes_to_the_current_stdout(capsys):
    tn.print("x is {} and {}", tn.array([1.0, 2.0]), 3)
    tn.print("plain")
    assert capsys.readouterr().out == "x is [1., 2.] and 3\nplain\n"


def test_print_inside_vmap_prints_every_example(capsys):
    def f(args):
        tn.print("{}", args[0])
        return [args[0] * 2]

    out = flat.vmap(f, [tn.array([1.0, 2.0, 3.0])], [0])
    np.testing.assert_array_equal(np.asarray(out[0]), [2, 4, 6])
    assert capsys.readouterr().out == "1.\n2.\n3.\n"


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

    values, grads = flat.vjp(f, [tn.array(3.0)], [tn.array(1.0)])
    assert (values[0].item(), grads[0].item()) == (9, 18)
    with pytest.raises(tn.Error, match="only vjp is given"):
        flat.jvp(f, [tn.array(3.0)], [tn.array(1.0)])


def test_checkpoint_of_a_list():
    f = lambda a: [tn.sin(a[0]) * a[0]]
    x, one = tn.array([0.5, 1.5]), tn.ones(2)
    plain = flat.vjp(f, [x], [one])[1][0]
    saved = flat.vjp(lambda a: _core._checkpoint(f, a), [x], [one])[1][0]
    np.testing.assert_array_equal(np.asarray(plain), np.asarray(saved))


ONE, TWO = tn.array(1.0), tn.array(2.0)


def printed(capsys, f):
    """The lines printed by what `f` returns, once that is computed."""
    tn.eval(*tn.tree.leaves(f()))
    return capsys.readouterr().out.split()


def loud(c):
    tn.print("then {}", c)
    return c * c


def looped(a):
    def body(c, y):
        tn.print("step")
        return loud(c) * y, None

    return tn.scan(body, a, tn.ones(2))[0]


def chosen(a):
    return tn.cond(a > 0, loud, lambda c: c, a)


def doubled(a):
    return tn.while_loop(lambda c: c < 3, loud, a)


class TestDerivatives:
    """What a function does besides computing happens once, whatever is derived from it."""

    LINES = {chosen: ["then", "2."], looped: ["step", "then", "2.", "step", "then", "4."]}

    @pytest.mark.parametrize("f", LINES)
    @pytest.mark.parametrize(
        "transformed",
        [
            lambda f: f(TWO),
            lambda f: tn.grad(f)(TWO),
            lambda f: tn.value_and_grad(f)(TWO),
            lambda f: tn.jvp(f, [TWO], [ONE]),
            lambda f: tn.vjp(f, [TWO], ONE),
            lambda f: tn.jacrev(f)(TWO),
            lambda f: tn.jacfwd(f)(TWO),
            lambda f: tn.hessian(f)(TWO),
            lambda f: tn.grad(tn.grad(f))(TWO),
            lambda f: tn.grad(tn.checkpoint(f))(TWO),
            lambda f: tn.grad(tn.custom_function(f))(TWO),
            lambda f: tn.vmap(f)(TWO[None]),
            lambda f: tn.vmap(tn.grad(f))(TWO[None]),
            lambda f: tn.vmap(tn.grad(tn.checkpoint(f)))(TWO[None]),
            lambda f: tn.grad(lambda a: tn.sum(tn.vmap(f)(a[None])))(TWO),
            lambda f: tn.scan(lambda c, y: (tn.grad(f)(c), None), TWO, length=1)[0],
            lambda f: tn.grad(lambda a: tn.scan(lambda c, y: (f(c), None), a, length=1)[0])(TWO),
        ],
    )
    def test_once(self, capsys, f, transformed):
        assert printed(capsys, lambda: transformed(f)) == self.LINES[f]

    def test_while_loop(self, capsys):
        assert printed(capsys, lambda: tn.jvp(doubled, [TWO], [ONE])) == ["then", "2."]

        def going(c):
            tn.print("asked")
            return c < 3

        loop = lambda a: tn.while_loop(going, lambda c: c * c, a)
        assert printed(capsys, lambda: tn.jvp(loop, [TWO], [ONE])) == ["asked"] * 2
        assert printed(capsys, lambda: tn.vmap(loop)(TWO[None])) == ["asked"] * 2

    def test_results_are_as_without(self):
        quiet = lambda c: c * c
        for f, plain in [(chosen, quiet), (looped, lambda c: quiet(quiet(c)))]:
            for transform in tn.grad, tn.hessian:
                assert transform(f)(TWO).item() == transform(plain)(TWO).item()

    def test_a_check_fires(self):
        def branch(c):
            tn.check(c < 0, "bad: {}", c)
            return c * 2

        f = lambda a: tn.cond(a > 0, branch, lambda c: c, a)
        for call in (
            lambda: tn.grad(f)(ONE).item(),
            lambda: tn.jvp(f, [ONE], [ONE])[1].item(),
            lambda: tn.vmap(tn.grad(f))(ONE[None]).tolist(),
        ):
            with pytest.raises(tn.Error, match=r"(?s)check: bad: 1.*effects\.py:\d+, in branch"):
                call()

    def test_rules_of_custom_functions(self, capsys):
        @tn.custom_function
        def f(x):
            return x * x

        @f.vjp
        def f_vjp(x, ct, y):
            tn.print("rule {}", x)
            return 2 * x * ct

        def steps(a):
            return tn.scan(lambda c, y: (f(c), None), a, length=2)[0]

        lines = ["rule", "4.", "rule", "2."]
        assert printed(capsys, lambda: tn.grad(steps)(TWO)) == lines
        assert printed(capsys, lambda: tn.vmap(tn.grad(steps))(TWO[None])) == lines
        cond = lambda a: tn.cond(a > 0, f, lambda c: c, a)
        assert printed(capsys, lambda: tn.grad(cond)(TWO)) == lines[2:]


def twice(f):
    return tn.scan(lambda c, y: (c, f()), ONE, length=2)[1]


class TestWithoutResults:
    @staticmethod
    def say(*args):
        tn.print("said")

    @pytest.mark.parametrize(
        "call, times",
        [
            (lambda say: tn.cond(True, say, lambda c: None, ONE), 1),
            (lambda say: tn.cond(False, say, lambda c: None, ONE), 0),
            (lambda say: tn.scan(lambda c, y: ((), say(y)), (), tn.ones(3)), 3),
            (lambda say: tn.scan(lambda c, y: ((), say(y)), (), length=3), 3),
            (lambda say: tn.scan(lambda c, y: ((), tn.cond(True, say, say)), (), tn.ones(3)), 3),
            (lambda say: tn.scan(lambda c, y: (c, twice(say)), ONE, length=3), 6),
            (lambda say: tn.vmap(say)(tn.ones(3)), 1),
            (lambda say: tn.vmap(lambda x: tn.print("said {}", x))(tn.ones(3)), 3),
            (lambda say: tn.grad(lambda a: (tn.cond(True, say, lambda c: None, a), a)[1])(ONE), 1),
            (lambda say: tn.grad(lambda a: (tn.vmap(say)(a[None]), a)[1])(ONE), 1),
            (lambda say: tn.vmap(lambda a: tn.cond(True, say, lambda c: None, a))(tn.ones(3)), 1),
        ],
    )
    def test_they_happen(self, capsys, call, times):
        assert printed(capsys, lambda: call(self.say)).count("said") == times

    def test_a_check_fires(self):
        with pytest.raises(tn.Error, match="check: bad"):
            tn.cond(True, lambda c: tn.check(c < 0, "bad"), lambda c: None, ONE)
        with pytest.raises(tn.Error, match="check: bad"):
            tn.vmap(lambda c: tn.check(c < 0, "bad"))(tn.ones(2))
