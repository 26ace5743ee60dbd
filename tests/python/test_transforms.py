"""The transforms of Python functions: trees, keywords, axes, nesting, memory, threads."""

import collections
import dataclasses
import doctest
import functools
import gc
import inspect
import threading
import weakref

import numpy as np
import pytest

import tenon as tn
from tenon import control_flow, transforms


def close(a, b, tolerance=1e-5):
    np.testing.assert_allclose(np.asarray(a), np.asarray(b), rtol=tolerance, atol=tolerance)


Point = collections.namedtuple("Point", "x y")


@dataclasses.dataclass(frozen=True)
class Layer:
    w: object
    b: object
    activation: str = dataclasses.field(default="tanh", metadata={"static": True})


class Registered:
    def __init__(self, scale, name):
        self.scale, self.name = scale, name


tn.tree.register(
    Registered, lambda r: ({"scale": r.scale}, r.name), lambda name, t: Registered(t["scale"], name)
)


class Protocol:
    def __init__(self, weight):
        self.weight = weight

    def __tree_flatten__(self):
        return {"weight": self.weight}, None

    @staticmethod
    def __tree_unflatten__(rest, parts):
        return Protocol(parts["weight"])


TREES = {
    "tensor": lambda x: x,
    "list": lambda x: [x, x],
    "tuple": lambda x: (x, [x]),
    "dict": lambda x: {"b": x, "a": {1: x}},
    "ordered dict": lambda x: collections.OrderedDict(b=x, a=x),
    "default dict": lambda x: collections.defaultdict(list, a=x),
    "named tuple": lambda x: Point(x, (x, x)),
    "dataclass": lambda x: Layer(x, [x]),
    "registered": lambda x: Registered([x], "name"),
    "protocol": lambda x: [Protocol(x)],
    "with None": lambda x: {"x": x, "none": None},
    "empty parts": lambda x: ([], {}, x),
}


@pytest.mark.parametrize("name", TREES)
def test_trees_of_every_kind_go_in_and_come_out(name):
    x = tn.array([1.0, 2.0])
    tree = TREES[name](x)

    def total(tree):
        return sum(tn.sum(leaf * leaf) for leaf in tn.tree.leaves(tree))

    value, grads = tn.value_and_grad(total)(tree)
    count = len(tn.tree.leaves(tree))
    assert value.item() == 5 * count
    assert tn.tree.structure(grads) == tn.tree.structure(tree)
    for g in tn.tree.leaves(grads):
        close(g, [2, 4])

    doubled = tn.vmap(lambda t: tn.tree.map(lambda leaf: leaf * 2, t))(tree)
    assert tn.tree.structure(doubled) == tn.tree.structure(tree)
    outputs, tangents = tn.jvp(lambda t: tn.tree.map(tn.sin, t), [tree], [tree])
    assert tn.tree.structure(tangents) == tn.tree.structure(tree)
    close(tn.tree.leaves(tangents)[0], np.cos([1, 2]) * [1, 2])


class TestTree:
    def test_structures_are_values(self):
        a, b = tn.tree.structure([1, {"x": 2}]), tn.tree.structure(["p", {"x": None or 3}])
        assert a == b and hash(a) == hash(b) and len({a, b}) == 1
        assert a != tn.tree.structure([1, {"y": 2}]) and a != "structure"
        assert repr(a) == "[*, {'x': *}]"
        assert tn.tree.structure((1, 2)) != tn.tree.structure([1, 2])
        assert repr(tn.tree.structure((Point(1, None), Layer(1, 2)))) == (
            "(Point(x=*, y=None), Layer(w=*, b=*))"
        )

    def test_paths(self):
        tree = {"w": [1, Point(2, 3)], 5: Layer(4, 5), "r": Registered([6], "n")}
        assert tn.tree.structure(tree).paths() == [
            "['w'][0]",
            "['w'][1].x",
            "['w'][1].y",
            "[5].w",
            "[5].b",
            "['r'].scale[0]",
        ]

    def test_static_fields_are_part_of_the_structure(self):
        assert tn.tree.structure(Layer(1, 2)) != tn.tree.structure(Layer(1, 2, "relu"))
        assert tn.tree.map(lambda x: x + 1, Layer(1, 2, "relu")) == Layer(2, 3, "relu")

    def test_dicts_match_by_key_and_keep_their_order(self):
        made = tn.tree.map(lambda a, b: a - b, {"b": 5, "a": 7}, {"a": 1, "b": 2})
        assert list(made.items()) == [("b", 3), ("a", 6)]
        assert tn.tree.structure({"a": 1, "b": 2}) != tn.tree.structure({"b": 1, "a": 2})

    def test_trees_that_hold_themselves_are_refused(self):
        loop = {}
        loop["again"] = [loop]
        with pytest.raises(tn.Error, match="holds itself"):
            tn.tree.flatten(loop)
        deep = []
        for _ in range(600):
            deep = [deep]
        with pytest.raises(tn.Error, match="nested deeper than 500"):
            tn.tree.flatten(deep)
        with pytest.raises(tn.Error, match="holds itself"):
            tn.grad(lambda t: tn.sum(t))(loop)

    def test_wrong_numbers_of_leaves(self):
        _, structure = tn.tree.flatten([1, 2])
        with pytest.raises(tn.Error, match=r"3 leaves for a structure of 2: \[\*, \*\]"):
            tn.tree.unflatten(structure, [1, 2, 3])

    def test_exceptions_of_the_user_pass_through(self):
        with pytest.raises(ZeroDivisionError):
            tn.tree.map(lambda x: 1 / x, [1, 0])


# grad -------------------------------------------------------------------------------------------


def loss(w, x, *, scale=1.0, shift=None):
    y = tn.sum(w * x) * scale
    return y if shift is None else y + tn.sum(shift * shift)


W, X = tn.array([1.0, 2.0]), tn.array([3.0, 5.0])


class TestGrad:
    def test_argnums_choose_arguments(self):
        close(tn.grad(loss)(W, X), X)
        close(tn.grad(loss, argnums=1)(W, X), W)
        close(tn.grad(loss, argnums=-1)(W, X), W)
        both = tn.grad(loss, argnums=(0, 1))(W, X)
        assert isinstance(both, tuple)
        close(both[0], X), close(both[1], W)
        (one,) = tn.grad(loss, argnums=[1])(W, X)
        close(one, W)

    def test_argnames_choose_keywords(self):
        grads = tn.grad(loss, argnames="shift")(W, X, shift=X)
        assert list(grads) == ["shift"]
        close(grads["shift"], 2 * X)
        first, named = tn.grad(loss, argnums=0, argnames=["shift", "scale"])(
            W, X, scale=2.0, shift=X
        )
        close(first, 2 * X), close(named["scale"], 13)
        value, (firsts, named) = tn.value_and_grad(loss, argnums=(0, 1), argnames="shift")(
            W, X, shift=X
        )
        assert value.item() == 47 and len(firsts) == 2
        close(firsts[1], W)

    def test_keywords_pass_through(self):
        close(tn.grad(loss)(W, X, scale=3.0), 3 * X)
        close(tn.grad(loss)(W, x=X), X)

    def test_the_value_is_all_that_the_function_returns(self):
        def with_extras(w):
            return tn.sum(w), {"w": w * 2, "name": "run 1"}, [3, None]

        (total, extras, rest), grads = tn.value_and_grad(with_extras)(W)
        assert total.item() == 3 and extras["name"] == "run 1" and rest == [3, None]
        close(extras["w"], 2 * W), close(grads, [1, 1])

    def test_has_aux(self):
        def f(w):
            return tn.sum(w * w), "extra"

        grads, aux = tn.grad(f, has_aux=True)(W)
        close(grads, 2 * W)
        assert aux == "extra"
        (value, aux), grads = tn.value_and_grad(f, has_aux=True)(W)
        assert value.item() == 5 and aux == "extra"

    def test_numbers_are_floats_where_they_are_differentiated(self):
        assert tn.grad(lambda x: x * x)(3).item() == 6
        assert tn.grad(lambda x, n: x * n, argnums=0)(2.0, 3).item() == 3
        grads = tn.grad(lambda t: t["a"] * t["b"])({"a": 2.0, "b": 5.0})
        assert (grads["a"].item(), grads["b"].item()) == (5, 2)

    def test_arrays_become_tensors(self):
        g = tn.grad(lambda x: tn.sum(x * x))(np.array([1.0, 2.0], dtype=np.float32))
        assert isinstance(g, tn.Tensor)
        close(g, [2, 4])

    def test_a_constant_result_has_zero_gradient(self):
        close(tn.grad(lambda w: tn.sum(X))(W), [0, 0])

    def test_any_callable(self):
        class Model:
            def __init__(self):
                self.scale = 3.0

            def loss(self, w):
                return self.scale * tn.sum(w)

            def __call__(self, w):
                return self.loss(w)

        model = Model()
        close(tn.grad(model.loss)(W), [3, 3])
        close(tn.grad(model)(W), [3, 3])
        close(tn.grad(functools.partial(loss, x=X))(W), X)
        close(tn.grad(tn.sum)(W), [1, 1])

    def test_wrappers_keep_name_doc_and_signature(self):
        def named(w, x=1):
            "its doc"

        for wrapped in (tn.grad(named), tn.vmap(named), tn.value_and_grad(named, argnums=(0, 1))):
            assert wrapped.__name__ == "named" and wrapped.__doc__ == "its doc"
            assert list(inspect.signature(wrapped).parameters) == ["w", "x"]

    def test_closures_over_outer_tensors(self):
        def outer(x):
            inner = tn.grad(lambda y: tn.sum(x * y * y))(tn.array([2.0, 3.0]))
            return tn.sum(inner * x)

        close(tn.grad(outer)(tn.array([5.0, 7.0])), [2 * 2 * 2 * 5, 2 * 2 * 3 * 7])

    def test_perturbations_are_not_confused(self):
        # d/dx (x * d/dy (x + y)) = 1, and not 2
        f = tn.grad(lambda x: x * tn.grad(lambda y: x + y)(1.0))
        assert f(1.0).item() == 1
        _, tangent = tn.jvp(
            lambda x: x * tn.jvp(lambda y: x + y, [1.0], [1.0])[1], [tn.array(1.0)], [1.0]
        )
        assert tangent.item() == 1

    def test_python_decides_on_values(self):
        def f(x):
            while x < 100:
                x = x * x if x > 3 else x * 3
            return x

        assert tn.grad(f)(2.0).item() == 3 * (2 * 6) * (2 * 36)
        close(tn.grad(lambda x: x * float(x))(3.0), 3)  # a number taken out is a constant

    def test_second_derivatives_of_trees(self):
        def f(p):
            return p["a"] * p["a"] * p["b"]

        mixed = tn.grad(lambda p: tn.grad(f)(p)["a"])({"a": tn.array(3.0), "b": tn.array(5.0)})
        assert (mixed["a"].item(), mixed["b"].item()) == (10, 6)

    def test_stop_gradient(self):
        close(tn.grad(lambda x: tn.sum(x * tn.stop_gradient(x)))(W), W)


# vjp and jvp ------------------------------------------------------------------------------------


class TestVjpAndJvp:
    def test_vjp_with_cotangents(self):
        outputs, cts = tn.vjp(lambda a, b: {"p": a * b}, [W, X], {"p": tn.ones(2)})
        close(outputs["p"], W * X)
        assert isinstance(cts, list)
        close(cts[0], X), close(cts[1], W)

    def test_a_pullback_is_called_any_number_of_times(self):
        outputs, pullback = tn.vjp(lambda a: (a * a, a), (W,))
        (first,) = pullback((tn.ones(2), None))
        (second,) = pullback([None, tn.ones(2)])
        close(first, 2 * W), close(second, [1, 1])
        close(tn.vmap(lambda ct: pullback((ct, None))[0])(tn.eye(2)), [[2, 0], [0, 4]])

    def test_a_pullback_keeps_nothing_of_the_users(self):
        class Owner:
            pass

        def kept_by_its_pullback():
            owner = Owner()
            y, owner.pull = tn.vjp(lambda a, *rest: (owner, a * 2)[1], [tn.ones(3), owner])
            close(owner.pull(y)[0], [4] * 3)
            return weakref.ref(owner)

        owner = kept_by_its_pullback()
        gc.collect()
        assert owner() is None

    def test_single_results_take_a_list_of_one_cotangent(self):
        close(tn.vjp(tn.sin, [W], [tn.ones(2)])[1][0], np.cos([1, 2]))

    def test_integers_have_no_cotangent(self):
        i = tn.array([1, 0])
        _, (dx, di) = tn.vjp(lambda x, i: tn.sum(x * i), (X, i), 1.0)
        close(dx, [1, 0])
        assert di is None

    def test_none_is_a_zero_tangent(self):
        value, tangent = tn.jvp(lambda p, x: p["a"] * x, [{"a": W}, X], [None, tn.ones(2)])
        close(tangent, W)
        _, zero = tn.jvp(lambda x, i: i, [W, tn.array(3.0)], [W, None])
        assert zero.item() == 0

    def test_they_agree(self):
        def f(p):
            return {"y": tn.tanh(p["w"] @ p["x"]), "z": [tn.exp(p["x"])]}

        rng = np.random.default_rng(0)
        p = {"w": tn.array(rng.normal(size=(3, 2))), "x": tn.array(rng.normal(size=2))}
        t = tn.tree.map(lambda a: tn.array(rng.normal(size=a.shape)), p)
        outputs, tangents = tn.jvp(f, [p], [t])
        ct = tn.tree.map(lambda a: tn.array(rng.normal(size=a.shape)), outputs)
        _, (back,) = tn.vjp(f, [p], ct)

        def dot(a, b):
            return sum(
                (x * y).sum().item() for x, y in zip(tn.tree.leaves(a), tn.tree.leaves(b))
            )

        assert dot(ct, tangents) == pytest.approx(dot(back, t), rel=1e-6)


# vmap -------------------------------------------------------------------------------------------


class TestVmap:
    def test_axes_per_argument(self):
        a, b = tn.reshape(tn.arange(6.0), (2, 3)), tn.array([1.0, 2.0, 3.0])
        close(tn.vmap(tn.multiply, in_axes=(0, None))(a, b), a * b)
        close(tn.vmap(lambda x, y: x * y, in_axes=(1, 0))(a, b), (a * b).T)
        close(tn.vmap(lambda x, y: x * y, in_axes=[-1, 0], out_axes=-1)(a, b), a * b)

    def test_axes_of_trees(self):
        params = {"w": tn.ones((3, 2)), "layers": [tn.ones((2, 4)), tn.ones(3)]}
        axes = {"w": 0, "layers": [None, 0]}
        made = tn.vmap(
            lambda p, x: {"y": p["w"] @ p["layers"][0] + p["layers"][1] + x, "p": p["layers"]},
            in_axes=(axes, None),
            out_axes={"y": 1, "p": [None, 0]},
        )(params, 1.0)
        assert made["y"].shape == (4, 3) and made["p"][0].shape == (2, 4)
        close(made["y"], np.full((4, 3), 4))

    def test_one_axis_stands_for_a_subtree(self):
        tree = {"a": tn.ones((2, 5)), "b": {"c": tn.ones((3, 5))}}

        def f(t, s):
            return t["a"].sum() + t["b"]["c"].sum() * s

        made = tn.vmap(f, in_axes=({"a": 1, "b": 1}, 0))(tree, tn.arange(5.0))
        close(made, 2 + 3 * np.arange(5))

    def test_keywords_and_other_leaves_are_the_same_for_all(self):
        def f(x, mode, *, scale):
            return x.sum() * scale.sum() if mode == "sum" else x

        close(tn.vmap(f)(tn.ones((2, 3)), "sum", scale=tn.ones(4)), [12, 12])

    def test_results_that_depend_on_nothing(self):
        made = tn.vmap(lambda x: (tn.ones(2), 3.0, x), out_axes=(1, 0, 0))(tn.zeros(4))
        assert made[0].shape == (2, 4)
        close(made[1], [3, 3, 3, 3])
        same = tn.vmap(lambda x: (X, x), out_axes=(None, 0))(tn.zeros(4))
        assert same[0].shape == (2,)

    @pytest.mark.parametrize("size", [0, 1])
    def test_few_examples(self, size):
        x = tn.ones((size, 3))
        assert tn.vmap(lambda v: tn.sum(v * v))(x).shape == (size,)
        assert tn.vmap(tn.grad(lambda v: tn.sum(v * v)))(x).shape == (size, 3)

    def test_nested_with_different_axes(self):
        x, y = np.random.default_rng(0).normal(size=(2, 3, 4)), np.arange(5.0)
        f = tn.vmap(
            tn.vmap(lambda v, s: tn.sum(v) * s, in_axes=(1, None)), in_axes=(None, 0), out_axes=1
        )
        close(f(tn.array(x), tn.array(y)), np.einsum("ijk,s->js", x, y))
        g = tn.vmap(tn.vmap(tn.vecdot), in_axes=(2, 2))
        close(g(tn.array(x), tn.array(x)), np.einsum("ijk,ijk->ki", x, x))

    def test_per_example_gradients(self):
        w, xs = tn.array([1.0, 2.0]), tn.array([[1.0, 0.0], [3.0, 4.0], [0.0, 2.0]])
        grads = tn.vmap(tn.grad(lambda w, x: tn.sum(w * x) * tn.sum(w * x)), in_axes=(None, 0))
        close(grads(w, xs), 2 * (xs @ w)[:, None] * xs)

    def test_grad_of_vmap(self):
        x = tn.array([[1.0, 2.0], [3.0, 4.0]])
        close(tn.grad(lambda x: tn.vmap(lambda v: tn.sum(v * v))(x).sum())(x), 2 * x)


# Jacobians --------------------------------------------------------------------------------------


def differences(f, x, step=1e-6):
    """The Jacobian of `f` (NumPy to NumPy, float64) by central differences."""
    columns = []
    for i in np.ndindex(x.shape):
        d = np.zeros_like(x)
        d[i] = step
        columns.append((f(x + d) - f(x - d)) / (2 * step))
    return np.moveaxis(np.array(columns), 0, -1).reshape(*columns[0].shape, *x.shape)


class TestJacobian:
    @pytest.mark.parametrize("jacobian", [tn.jacrev, tn.jacfwd, tn.jacobian])
    def test_against_differences(self, jacobian):
        a = np.random.default_rng(0).normal(size=(3, 2))

        def f(x):
            return tn.tanh(tn.array(a) @ x) * tn.sum(x)

        x = np.random.default_rng(1).normal(size=(2, 2))
        want = differences(lambda v: f(tn.array(v)).numpy(), x)
        close(jacobian(f)(tn.array(x)), want, 1e-7)

    @pytest.mark.parametrize("jacobian", [tn.jacrev, tn.jacfwd])
    def test_trees(self, jacobian):
        def f(p, s):
            return {"y": p["w"] * s, "z": (tn.sum(p["b"]),)}

        p = {"w": tn.ones(3), "b": tn.ones((2, 2))}
        made = jacobian(f)(p, tn.array(2.0))
        close(made["y"]["w"], 2 * np.eye(3))
        assert made["y"]["b"].shape == (3, 2, 2) and made["z"][0]["b"].shape == (2, 2)
        both = jacobian(f, argnums=(0, 1))(p, tn.array(2.0))
        close(both["y"][1], np.ones(3)), close(both["z"][0][0]["b"], np.ones((2, 2)))

    def test_hessian_against_differences(self):
        def f(x):
            return tn.sum(tn.sin(x) * tn.sum(x * x) * x)

        x = np.random.default_rng(2).normal(size=4)
        gradient = lambda v: tn.grad(f)(tn.array(v)).numpy()
        close(tn.hessian(f)(tn.array(x)), differences(gradient, x), 1e-6)

    def test_hessian_of_trees(self):
        made = tn.hessian(lambda p: p["a"] * p["a"] * tn.sum(p["b"]))({"a": tn.array(2.0), "b": X})
        assert made["a"]["a"].item() == 16
        close(made["a"]["b"], [4, 4]), close(made["b"]["b"], np.zeros((2, 2)))

    def test_hessian_vector_product(self):
        def f(x):
            return tn.sum(x * x * x)

        v = tn.array([1.0, -1.0])
        close(tn.jvp(tn.grad(f), [W], [v])[1], 6 * W * v)

    def test_empty_arguments(self):
        assert tn.jacrev(lambda x: x * 2)(tn.zeros(0)).shape == (0, 0)
        assert tn.jacfwd(lambda x: tn.sum(x))(tn.zeros(0)).shape == (0,)


# Resources --------------------------------------------------------------------------------------


def test_memory_is_released_with_the_result():
    x = tn.ones(100_000).eval()
    before = tn.memory.active_memory(x.device)
    value, grads = tn.value_and_grad(lambda x: tn.sum(tn.exp(x) * tn.sin(x)))(x)
    tn.eval(value, grads)
    assert tn.memory.active_memory(x.device) >= before + grads.nbytes
    outputs, pullback = tn.vjp(lambda x: tn.exp(x) * tn.sin(x), [x])
    tn.eval(outputs, pullback(outputs))
    del value, grads, outputs, pullback
    tn.synchronize()
    assert tn.memory.active_memory(x.device) == before


def test_a_long_chain():
    def f(x):
        for _ in range(200_000):
            x = x * 1.00001
        return x

    before = tn.memory.active_memory()
    g = tn.grad(f)(1.0)
    assert g.item() == pytest.approx(1.00001**200_000, rel=1e-2)
    del g
    assert tn.memory.active_memory() <= before + 1024


def test_gradients_in_threads():
    results, start = {}, threading.Barrier(4)

    def work(n):
        start.wait()
        for _ in range(50):
            x = tn.full((3,), float(n))
            hessian = tn.hessian(lambda x: tn.sum(x * x * x) * n)(x)
            mapped = tn.vmap(tn.grad(lambda v: tn.sin(v) * n))(x)
            results[n] = (hessian.numpy(), mapped.numpy())

    threads = [threading.Thread(target=work, args=(n,)) for n in range(4)]
    for t in threads:
        t.start()
    for t in threads:
        t.join()
    for n in range(4):
        close(results[n][0], np.eye(3) * 6 * n * n)
        close(results[n][1], np.full(3, np.cos(n) * n))


@pytest.mark.host
@pytest.mark.parametrize("module", [tn.tree, transforms, control_flow], ids=lambda m: m.__name__)
def test_examples_in_docstrings(module):
    flags = doctest.ELLIPSIS | doctest.NORMALIZE_WHITESPACE
    failed, tried = doctest.testmod(module, extraglobs={"tn": tn}, optionflags=flags)
    assert tried and not failed


@pytest.mark.host
def test_checkpoint_saves_memory_in_one_run():
    w, x = tn.full((64, 64), 0.01), tn.ones((64, 64))

    def block(a, w):
        for _ in range(3):
            a = tn.tanh(a @ w)
        return a

    def peak(f):
        def loss(w):
            a = x
            for _ in range(16):
                a = f(a, w)
            return tn.sum(a)

        tn.eval(w, x)
        tn.memory.reset_peak_memory()
        before = tn.memory.active_memory()
        tn.eval(tn.grad(loss)(w))
        return tn.memory.peak_memory() - before

    assert peak(tn.checkpoint(block)) < 0.6 * peak(block)


@pytest.mark.parametrize("number", [2**24 + 1, 1.5, True, 2j])
def test_numbers_that_functions_return_have_one_type_everywhere(number):
    x = tn.ones((3, 2))
    for made in (tn.vmap(lambda _: number)(x), tn.map(lambda _: number, x)):
        want = tn.asarray(number)
        assert made.dtype == want.dtype and made.tolist() == [want.item()] * 3
