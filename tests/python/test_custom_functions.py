"""Custom functions inside other transforms: what they cost, what they keep, what they refuse."""

import gc
import weakref

import numpy as np
import pytest

import tenon as tn
from interned_graphs import graphs_added

X = tn.array([1.0, 2.0])


def tripled():
    """sin, with a derivative three times too large."""
    f = tn.custom_function(tn.sin)
    f.vjp(lambda x, ct, y: ct * tn.cos(x) * 3)
    return f


def close(a, b):
    np.testing.assert_allclose(np.asarray(a), np.asarray(b), rtol=1e-6)


def in_scan(f):
    return lambda x: tn.sum(tn.scan(lambda c, y: (f(c) * y, None), x, x)[0])


def in_cond(f):
    return lambda x: tn.sum(tn.cond(x[0] > 0, f, lambda x: x, x))


def in_checkpoint(f):
    return lambda x: tn.sum(tn.checkpoint(lambda x: f(x) * 2)(x))


def in_mapped_scan(f):
    return lambda x: tn.sum(tn.vmap(lambda a: tn.scan(lambda c, y: (f(c) * y, None), a, x)[0])(x))


class TestGraphsAreMadeOnce:
    @pytest.mark.parametrize("inside", [in_scan, in_cond, in_checkpoint, in_mapped_scan])
    def test_of_one_custom_function(self, inside):
        gradient = tn.grad(inside(tripled()))
        assert graphs_added(lambda i: gradient(X), 200) == 0

    @pytest.mark.parametrize("inside", [in_scan, in_cond, in_checkpoint, in_mapped_scan])
    def test_of_one_made_anew_in_every_step(self, inside):
        assert graphs_added(lambda i: tn.grad(inside(tripled()))(X), 20) == 0

    def test_without_a_derivative(self):
        f = tripled()
        assert graphs_added(lambda i: in_mapped_scan(f)(X), 20) == 0


class TestRules:
    @pytest.mark.parametrize("inside", [in_scan, in_cond, in_checkpoint, in_mapped_scan])
    def test_are_run_for_every_derivative(self, inside):
        scale = [1.0]
        f = tn.custom_function(tn.sin)
        f.vjp(lambda x, ct, y: ct * tn.cos(x) * scale[0])
        gradient = tn.grad(inside(f))
        close(gradient(X), tn.grad(inside(tn.sin))(X))
        first = gradient(X)
        scale[0] = 0.0
        assert not np.allclose(gradient(X), first)

    @pytest.mark.parametrize("inside", [in_scan, in_checkpoint, in_mapped_scan])
    def test_of_two_functions_with_one_graph_are_kept_apart(self, inside):
        f, g = tripled(), tn.custom_function(tn.sin)
        g.vjp(lambda x, ct, y: ct * 0)
        _, pull_f = tn.vjp(inside(f), [X])
        _, pull_g = tn.vjp(inside(g), [X])
        expected = tn.grad(inside(f))(X)
        close(pull_f(1.0)[0], expected)
        assert not np.allclose(pull_g(1.0)[0], expected)

    @pytest.mark.parametrize("inside", [in_scan, in_cond, in_checkpoint, in_mapped_scan])
    def test_go_when_the_function_does(self, inside):
        class Owner:
            pass

        owner = Owner()
        f = tn.custom_function(tn.sin)
        f.vjp(lambda x, ct, y, owner=owner: ct)
        tn.eval(tn.grad(inside(f))(X))
        alive = weakref.ref(owner)
        del f, owner
        gc.collect()
        assert alive() is None


def times(z):
    """Multiplication by z, which it closes over."""
    f = tn.custom_function(lambda b: b * z)
    f.vjp(lambda b, ct, y: ct * z)
    return f


class TestClosingOver:
    def test_an_example_of_vmap(self):
        close(tn.vmap(lambda z, b: times(z)(b))(X, X), [1, 4])
        close(tn.vmap(lambda z, b: tn.grad(times(z))(b))(X, X), X)

    def test_a_carry(self):
        carry, ys = tn.scan(lambda c, b: (tn.grad(times(c))(b) + 1, times(c)(b)), tn.array(1.0), X)
        close(carry, 3), close(ys, [1, 4])

    def test_what_a_derivative_is_taken_of(self):
        with pytest.raises(
            tn.Error, match=r"a derivative is being taken of f32\[2\], which the function closes"
        ):
            tn.grad(lambda z: tn.sum(times(z)(X)))(X)
        with pytest.raises(tn.Error, match="which the function closes over"):
            tn.grad(lambda z: tn.sum(tn.vmap(lambda z, b: times(z)(b))(z, X)))(X)
        with pytest.raises(tn.Error, match="which the function closes over"):
            tn.grad(lambda z: tn.scan(lambda c, b: (times(c)(b), None), z, X)[0])(1.0)

    def test_what_has_no_derivative(self):
        close(tn.grad(lambda z: tn.sum(times(tn.stop_gradient(z))(z)))(X), X)
        close(tn.grad(lambda z, b: tn.sum(times(z)(b)), argnums=1)(X, X), X)

    def test_without_rules_derivatives_reach_it(self):
        f = lambda z: tn.sum(tn.custom_function(lambda b: b * z)(z))
        close(tn.grad(f)(X), 2 * X)


class TestByName:
    @staticmethod
    def scaled():
        return tn.custom_function(lambda a, *, extra=None, k: a * k["w"])

    @pytest.mark.parametrize("rule", ["vjp", "jvp"])
    def test_there_is_no_derivative(self, rule):
        f = self.scaled()
        getattr(f, rule)(lambda a, *rest: rest[0])
        loss = lambda a, k: tn.sum(f(a, extra=X, k={"w": k}))
        close(tn.grad(loss)(X, X), [1, 1])
        with pytest.raises(tn.Error, match="a derivative is being taken of k, which was passed by"):
            tn.grad(lambda a: loss(a, a))(X)

    def test_without_rules_there_is(self):
        f = self.scaled()
        close(tn.grad(lambda a: tn.sum(f(a, k={"w": a})))(X), 2 * X)

    def test_a_rule_for_vmap_does_not_see_it(self):
        f = self.scaled()
        f.vmap(lambda a, axis: (a * 10, axis))
        close(tn.vmap(lambda a: f(a, k={"w": tn.array(1.0)}))(X), [10, 20])
        with pytest.raises(tn.Error, match="maps over k, which was passed by name"):
            tn.vmap(lambda a: f(a, k={"w": a}))(X)


def scaled_by(k):
    """Twice its argument, with a derivative that closes over `k`."""
    made = tn.custom_function(lambda a: a * 2)
    made.vjp(lambda a, ct, out: ct * k)
    return made


@pytest.mark.parametrize(
    ("inner", "expected"),
    [
        (lambda k, a: tn.scan(lambda c, _: (scaled_by(k)(c), None), a, length=2)[0], 6.0),
        (lambda k, a: tn.checkpoint(scaled_by(k))(a), 1.0),
        (lambda k, a: tn.cond(a > 0, scaled_by(k), lambda c: c, a), 1.0),
    ],
    ids=["scan", "checkpoint", "cond"],
)
def test_a_rule_passes_derivatives_to_what_it_closes_over(inner, expected):
    outer = tn.grad(lambda k: tn.grad(lambda a: inner(k, a))(1.0))
    assert outer(3.0).item() == expected


def test_a_vmap_rule_leaves_the_vjp_rule_in_force():
    f = tn.custom_function(tn.sin)
    f.vjp(lambda a, ct, out: ct * 100)
    f.vmap(lambda a, axis: (tn.sin(a), 0))
    x = tn.asarray([1.0, 2.0])
    assert tn.grad(lambda q: tn.sum(tn.vmap(f)(q)))(x).tolist() == [100.0, 100.0]
    assert tn.vmap(tn.grad(f))(x).tolist() == [100.0, 100.0]
    assert tn.vmap(f)(x).tolist() == tn.sin(x).tolist()


@pytest.mark.parametrize(
    "wrong", [lambda a: tn.ones(5), lambda a: tn.ones((2, 3)), lambda a: a > 0]
)
def test_results_of_a_vmap_rule_are_checked(wrong):
    f = tn.custom_function(tn.sin)
    f.vmap(lambda a, axis: (wrong(a), 0))
    with pytest.raises(tn.Error, match=r"vmap returns .* as result 0, which must be f32\[2\]"):
        tn.vmap(f)(tn.asarray([1.0, 2.0]))


def test_a_method_is_bound():
    class Scaled:
        factor = 3.0

        @tn.custom_function
        def apply(self, x):
            return x * self.factor

        @apply.vjp
        def apply_vjp(primals, ct, out):
            return None, ct * 100

    assert Scaled().apply(tn.asarray(2.0)).item() == 6.0
    assert tn.grad(Scaled().apply)(2.0).item() == 100.0
