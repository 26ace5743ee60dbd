"""checkpoint, custom_function, cond, while_loop and scan on trees."""

import numpy as np
import pytest

import tenon as tn

W, X = tn.array([1.0, 2.0]), tn.array([3.0, 5.0])


def close(a, b):
    np.testing.assert_allclose(np.asarray(a), np.asarray(b), rtol=1e-5, atol=1e-6)


class TestCheckpoint:
    def test_trees_keywords_and_other_leaves(self):
        @tn.checkpoint
        def block(p, x, mode, *, scale):
            """its doc"""
            return {"y": tn.tanh(p["w"] * x) * scale, "n": 2.0} if mode == "tanh" else None

        def loss(p):
            made = block(p, X, "tanh", scale=W)
            return tn.sum(made["y"]) * made["n"]

        assert block.__doc__ == "its doc"
        close(tn.grad(loss)({"w": W})["w"], 2 * np.array(X) * W / np.cosh(np.array(W * X)) ** 2)

    def test_gradients_nest(self):
        f = tn.checkpoint(lambda x: tn.sum(tn.sin(x) * x))
        plain = lambda x: tn.sum(tn.sin(x) * x)
        close(tn.hessian(f)(W), tn.hessian(plain)(W))
        close(tn.vmap(tn.grad(f))(tn.stack([W, X])), tn.vmap(tn.grad(plain))(tn.stack([W, X])))

    def test_text_results_are_refused(self):
        with pytest.raises(tn.Error, match=r"checkpoint: result\[1\] is a str, not a tensor"):
            tn.checkpoint(lambda x: (x, "text"))(W)


class TestCustomFunction:
    def test_one_argument_is_passed_as_it_is(self):
        my_exp = tn.custom_function(tn.exp)
        close(tn.grad(my_exp)(1.0), np.e)

        @my_exp.vjp
        def my_exp_vjp(x, ct, y):
            return tn.ones_like(x) * 42

        @my_exp.jvp
        def my_exp_jvp(x, dx):
            return tn.ones_like(x) * 7

        @my_exp.vmap
        def my_exp_vmap(x, axis):
            return tn.ones_like(x) * 3, axis

        x = tn.array(1.0)
        close(my_exp(x), np.e)
        assert tn.grad(my_exp)(x).item() == 42
        assert tn.jvp(my_exp, [x], [x])[1].item() == 7
        close(tn.vmap(my_exp)(tn.ones(4)), [3] * 4)

    def test_several_arguments_are_a_tuple_of_trees(self):
        @tn.custom_function
        def f(p, x, name):
            return {"y": p["w"] * x}

        @f.vjp
        def f_vjp(primals, cts, outputs):
            p, x, name = primals
            assert name == "name"
            close(outputs["y"], p["w"] * x)
            return {"w": cts["y"] * 10}, None, None

        dw, dx = tn.grad(lambda p, x: tn.sum(f(p, x, "name")["y"]), argnums=(0, 1))({"w": W}, X)
        close(dw["w"], [10, 10]), close(dx, [0, 0])

    def test_keywords_are_constants(self):
        @tn.custom_function
        def f(x, *, scale):
            return x * scale

        @f.vjp
        def f_vjp(x, ct, y):
            return ct * 5

        close(tn.grad(lambda x: tn.sum(f(x, scale=X)))(W), [5, 5])
        assert f.__name__ == "f"

    def test_other_structures_are_refused(self):
        @tn.custom_function
        def f(x, y):
            return x * y

        @f.vjp
        def f_vjp(primals, ct, y):
            return {"x": ct}

        with pytest.raises(tn.Error, match="cotangents and arguments differ in structure"):
            tn.grad(lambda x: tn.sum(f(x, X)))(W)


class TestCond:
    def test_trees(self):
        def f(x, p):
            return tn.cond(
                tn.sum(x) > 4, lambda x, p: {"y": x * p["a"]}, lambda x, p: {"y": x}, x, p
            )

        p = {"a": tn.array(3.0), "name": "constant"}
        close(f(X, p)["y"], 3 * X), close(f(W, p)["y"], W)
        close(tn.grad(lambda x: tn.sum(f(x, p)["y"]))(X), [3, 3])
        close(tn.vmap(lambda x: f(x, p)["y"])(tn.stack([W, X])), tn.stack([W, 3 * X]))

    def test_branches_must_agree(self):
        with pytest.raises(tn.Error, match=r"cond: results differ in structure: \[\*\] and \*"):
            tn.cond(tn.array(True), lambda x: x, lambda x: [x], X)

    @pytest.mark.parametrize("number, wide", [(1, 2.0), (True, 2.0), (1, 2j)])
    def test_numbers_take_the_type_of_the_other_branch(self, number, wide):
        for other in wide, tn.asarray(wide):
            for made in (
                tn.cond(True, lambda: number, lambda: other),
                tn.cond(False, lambda: other, lambda: number),
            ):
                assert made.item() == number and made.dtype == tn.asarray(wide).dtype
        with pytest.raises(tn.Error, match="cond: result 0 is f32.* in one branch and i64"):
            tn.cond(True, lambda: 1.5, lambda: tn.array(2))


class TestWhileLoop:
    def test_trees(self):
        made = tn.while_loop(
            lambda c: c["n"] < 5,
            lambda c: {"n": c["n"] + 1, "rest": [c["rest"][0] * 2, None]},
            {"n": 0, "rest": [W, None]},
        )
        assert made["n"].item() == 5 and made["n"].dtype == tn.int64
        close(made["rest"][0], 32 * W)

    def test_numbers_take_the_type_that_the_body_makes(self):
        made = tn.while_loop(lambda c: c < 3, lambda c: c + tn.array(0.5, dtype=tn.float64), 1)
        assert made.item() == 3 and made.dtype == tn.float64

    def test_the_carry_keeps_its_structure(self):
        with pytest.raises(tn.Error, match="while_loop: results differ in structure"):
            tn.while_loop(lambda x: x < 3, lambda x: (x, x), tn.array(1.0))


class TestScan:
    def test_trees(self):
        def body(carry, x):
            total = {"sum": carry["sum"] + x["a"] * x["b"]}
            return total, (total["sum"], 2.0)

        xs = {"a": tn.array([1.0, 2.0, 3.0]), "b": tn.array([1.0, 10.0, 100.0])}
        last, (sums, twos) = tn.scan(body, {"sum": 0.0}, xs)
        assert last["sum"].item() == 321
        close(sums, [1, 21, 321]), close(twos, [2, 2, 2])
        _, (backwards, _) = tn.scan(body, {"sum": 0.0}, xs, reverse=True)
        close(backwards, [321, 320, 300])
        grads = tn.grad(lambda xs: tn.scan(body, {"sum": 0.0}, xs)[0]["sum"])(xs)
        close(grads["a"], xs["b"])

    def test_without_xs(self):
        last, ys = tn.scan(lambda c, x: (c * 2, c), tn.array(1.0), length=4)
        assert last.item() == 16
        close(ys, [1, 2, 4, 8])

    def test_numbers_take_the_type_that_the_body_makes(self):
        last, sums = tn.scan(lambda c, y: ((c[0] + y, c[1] + 1), c[0]), (0, 0), X)
        assert last[0].item() == 8 and last[0].dtype == tn.float32
        assert last[1].item() == 2 and last[1].dtype == tn.int64
        close(sums, [0, 3])
        assert tn.scan(lambda c, y: (0, None), tn.array(1.5), X)[0].dtype == tn.float32
        close(tn.grad(lambda x: tn.scan(lambda c, y: (c + y * y, None), 0, x)[0])(X), 2 * X)
        with pytest.raises(tn.Error, match="scan: carry 0 is f32.* but the body returns i64"):
            tn.scan(lambda c, y: (tn.array(1), None), 0.5, X)

    def test_misuse(self):
        with pytest.raises(tn.Error, match="must return a pair"):
            tn.scan(lambda c, x: c, X, X)
        with pytest.raises(tn.Error, match=r"carry: results differ in structure: \[\*\] and \*"):
            tn.scan(lambda c, x: ([c], x), X, X)
