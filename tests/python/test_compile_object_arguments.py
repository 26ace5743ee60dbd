"""Where compiled functions find plain objects: in trees, behind callables, without a hash."""

import argparse
import array
import collections
import functools
import itertools
import random
import types
from dataclasses import dataclass, field

import numpy as np
import pytest

import tenon as tn
from test_compile_objects import Scaled, X, made


def values_after(f, change, *args):
    """What a compiled function returns, and what it returns after a change."""
    before = f(*args).tolist()
    change()
    return before, f(*args).tolist()


def test_objects_inside_modules_and_other_trees():
    class Configured(tn.nn.Module):
        def __init__(self):
            self.a, self.b, self.held = made(2.0), made(1.0), [made(1.0)]
            self.w = tn.ones(2)

        def __call__(self, x):
            return x * self.w * self.a.value + self.b.value - self.held[0].value

    @dataclass
    class Static:
        scale: float
        config: object = field(metadata={"static": True})

    m, f = Configured(), tn.compile(lambda m, x: m(x))
    assert values_after(f, lambda: setattr(m.a, "value", 5.0), m, X) == ([2, 4], [5, 10])
    assert values_after(f, lambda: setattr(m.b, "value", 3.0), m, X) == ([5, 10], [7, 12])
    m.a.value, m.held[0].value = 6.0, 3.0
    assert f(m, X).tolist() == [6, 12]
    assert f([{"m": m}][0]["m"], X).tolist() == [6, 12]
    deep = tn.compile(lambda tree, x: tree[0]["m"](x))
    assert values_after(deep, lambda: setattr(m.a, "value", 7.0), [{"m": m}], X)[1] == [7, 14]
    s, g = Static(1.0, made(2.0)), tn.compile(lambda s, x: x * s.scale * s.config.value)
    assert values_after(g, lambda: setattr(s.config, "value", 5.0), s, X) == ([2, 4], [5, 10])
    m.a = types.SimpleNamespace(value=1.0)
    assert values_after(f, lambda: setattr(m.a, "value", 2.0), m, X) == ([1, 2], [2, 4])
    assert f.why_recompiled()[-1].startswith("m.a.value was 1.0, now 2.0")
    assert deep.why_recompiled()[1].startswith("tree[0]['m'].a.value was 6.0")
    assert g.why_recompiled()[1].startswith("s.config.value was 2.0")


def test_dead_functions_are_not_none():
    o = made(lambda v: v * 2)
    f = tn.compile(lambda o, x: x if o.value is None else o.value(x))
    assert values_after(f, lambda: setattr(o, "value", None), o, X) == ([2, 4], [1, 2])
    g = tn.compile(lambda o, x: x if o is None else x * o.value, static_argnums=0)
    assert g(made(2.0), X).tolist() == [2, 4]
    assert g(None, X).tolist() == [1, 2]


def test_methods_and_partial_functions_among_the_arguments():
    s, call = Scaled(), tn.compile(lambda fn, x: fn(x))
    assert values_after(call, lambda: setattr(s, "scale", 5.0), s.plain, X) == ([2, 4], [5, 10])
    layer = tn.nn.Linear(2, 1, bias=False)
    layer.weight = tn.ones((1, 2))
    for method in (layer.forward, layer.__call__):
        change = functools.partial(setattr, layer, "weight", layer.weight * 2)
        before, after = values_after(call, change, method, X)
        assert after == [2 * before[0]]
    for partial in (
        functools.partial(Scaled.plain, s),
        functools.partial(lambda x, held: held[0].plain(x), held=[s]),
        functools.partial(functools.partial(s.plain)),
        functools.partial(lambda fn, x: fn(x), s.plain),
    ):
        s.scale = 2.0
        assert values_after(call, lambda: setattr(s, "scale", 5.0), partial, X)[1] == [5, 10]
        o = made(partial)
        held = tn.compile(lambda o, x: o.value(x))
        assert values_after(held, lambda: setattr(s, "scale", 6.0), o, X)[1] == [6, 12]
    partial = functools.partial(lambda x, k: x * k, k=2.0)
    assert values_after(call, lambda: partial.keywords.update(k=3.0), partial, X)[1] == [3, 6]
    count = len(call.why_recompiled())
    call(s.plain, X)  # another object of the same method
    call(s.plain, X)
    assert len(call.why_recompiled()) <= count + 1


def test_attributes_that_come_before_methods():
    class Methods:
        def run(self, x):
            return x * 2

        @staticmethod
        def fixed(x):
            return x * 2

        @classmethod
        def made(cls, x):
            return x * 2

    for name in ("run", "fixed", "made"):
        o, f = Methods(), tn.compile(lambda o, x, name=name: getattr(o, name)(x))
        change = functools.partial(setattr, o, name, lambda x: x * 5)
        assert values_after(f, change, o, X) == ([2, 4], [5, 10])
        delattr(o, name)
        assert f(o, X).tolist() == [2, 4] and len(f.why_recompiled()) == 2
        setattr(Methods, name, lambda *args: args[-1] * 7)
        assert f(o, X).tolist() == [7, 14]


def test_objects_that_are_equal_by_value_and_have_no_hash():
    @dataclass
    class Point:
        value: float

    class Valued:
        def __init__(self, value):
            self.value = value

        def __eq__(self, other):
            return self.value == other.value

    for kind in (types.SimpleNamespace, argparse.Namespace, Valued):
        for static in ((), (0,)):
            o, f = kind(value=2.0), tn.compile(lambda o, x: x * o.value, static_argnums=static)
            assert values_after(f, lambda o=o: setattr(o, "value", 5.0), o, X) == ([2, 4], [5, 10])
            assert f(kind(value=6.0), X).tolist() == [6, 12] and f(o, X).tolist() == [5, 10]
    o, f = types.SimpleNamespace(w=tn.ones(2)), tn.compile(lambda o, x: x * o.w)
    assert values_after(f, lambda: setattr(o, "w", tn.array([3.0, 3.0])), o, X) == ([1, 2], [3, 6])
    assert f(types.SimpleNamespace(w=tn.zeros(2)), X).tolist() == [0, 0]
    p, f = Point(2.0), tn.compile(lambda p, x: x * p.value, static_argnums=0)
    assert values_after(f, lambda: setattr(p, "value", 5.0), p, X) == ([2, 4], [5, 10])


STATEFUL = {
    "list_iterator": iter([1.0, 2.0]),
    "generator": (i for i in range(3)),
    "count": itertools.count(),
    "array": array.array("d", [1.0]),
    "deque": collections.deque([1.0]),
    "Generator": np.random.default_rng(0),
    "RandomState": np.random.RandomState(0),
    "Random": random.Random(0),
    "builtin_function_or_method": random.Random(0).random,
}


@pytest.mark.parametrize("name", STATEFUL)
def test_what_changes_when_it_is_used_is_refused(name):
    f = tn.compile(lambda o, x: x if o.value else x)
    with pytest.raises(tn.InvalidType, match=rf"o\.value is a {name}, whose changes cannot be"):
        f(made(STATEFUL[name]), X)
    g = tn.compile(lambda it, x: x)
    if name in ("array", "deque"):
        return
    with pytest.raises(tn.InvalidType, match=f"it is a {name}, whose changes cannot be tracked"):
        g(STATEFUL[name], X)


def test_iterators_of_python_are_objects():
    class Counter:
        def __init__(self):
            self.at = 0.0

        def __next__(self):
            return self.at + 1

    c, f = Counter(), tn.compile(lambda c, x: x * next(c))
    assert values_after(f, lambda: setattr(c, "at", 4.0), c, X) == ([1, 2], [5, 10])


def test_lists_that_hold_themselves():
    f = tn.compile(lambda o, x: x * o.value[0])
    held = [1.0]
    held += [held, held]
    with pytest.raises(tn.InvalidType, match=r"o\.value is a list that holds itself"):
        f(made(held), X)
    table = {0: 1.0}
    table[1] = [table]
    with pytest.raises(tn.InvalidType, match=r"o\.value is a dict that holds itself"):
        f(made(table), X)
    shared = [2.0]
    assert f(made([3.0, shared, shared]), X).tolist() == [3, 6]


def asks(k):
    return 5 if type(k) is int else 100


class Asking:
    k = 1

    def scale(self):
        return asks(self.k)

    @property
    def known(self):
        return asks(self.k)

    @functools.cached_property
    def kept(self):
        return asks

    @staticmethod
    def fixed(k):
        return asks(k)

    def __getitem__(self, _):
        return asks(self.k)


@pytest.mark.parametrize(
    "step",
    [
        lambda s, v: v * s.scale() * s.k,
        lambda s, v: v * s.known * s.k,
        lambda s, v: v * s.kept(s.k) * s.k,
        lambda s, v: v * s.fixed(s.k) * s.k,
        lambda s, v: v * s[0] * s.k,
        lambda s, v: v * s.held(s.k) * s.k,
        lambda s, v: v * s.inner.scale() * s.k * s.inner.k,
    ],
    ids=["method", "property", "cached", "static", "operator", "attribute", "inner"],
)
def test_methods_that_ask_for_the_type_of_an_attribute(step):
    s, f = Asking(), tn.compile(step)
    s.held, s.inner = asks, Asking()
    for k in (1, 2, 3, 1, 2):
        s.k = s.inner.k = k
        assert f(s, X).tolist() == step(s, X).tolist()


def test_numbers_stay_open_beside_methods_that_ask_nothing():
    class Quiet:
        rate = 1.0

        def __repr__(self):
            return type(self).__name__

        def scale(self):
            return self.rate * 2

    q, f = Quiet(), tn.compile(lambda q, x: x * q.scale())
    for k in range(6):
        q.rate = float(k)
        assert f(q, X).tolist() == [2 * k, 4 * k]
    assert len(f.why_recompiled()) == 2
