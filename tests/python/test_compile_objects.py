"""Plain objects that compiled functions read: arguments with attributes, and `self` of methods."""

import enum
import functools
import gc
import threading
import types
import warnings
import weakref
from dataclasses import dataclass, field

import numpy as np
import pytest

import tenon as tn

X = tn.array([1.0, 2.0])


class Scaled:
    """A method of a plain class, compiled."""

    bias = 0.0

    def __init__(self, scale=2.0):
        self.scale = scale
        self.traced = []

    @tn.compile
    def run(self, x):
        return x * self.scale + self.bias

    def plain(self, x):
        return x * self.scale + self.bias


def test_attributes_of_self_are_read_anew():
    s = Scaled()
    assert s.run(X).tolist() == [2, 4]
    s.scale = 3.0
    assert s.run(X).tolist() == [3, 6]
    s.scale = tn.array(10.0)
    assert s.run(X).tolist() == [10, 20]
    s.scale = 2.0
    assert s.run(X).tolist() == [2, 4]
    s.bias = 1.0  # of the object, before it was the class's
    assert s.run(X).tolist() == [3, 5]
    del s.bias
    assert s.run(X).tolist() == [2, 4]
    Scaled.bias = 7.0
    try:
        assert s.run(X).tolist() == [9, 11]
    finally:
        Scaled.bias = 0.0
    assert Scaled(5.0).run(X).tolist() == [5, 10]
    assert s.run(X).tolist() == [2, 4]


def made(value):
    class Holder:
        def __init__(self):
            self.value = value

    return Holder()


CHANGES = {  # what the attribute is first, how it is changed, what is computed with it
    "number": (1.0, lambda o: setattr(o, "value", 2.0), lambda v, x: x * v),
    "integer": (1, lambda o: setattr(o, "value", 2), lambda v, x: x * v),
    "type of number": (1, lambda o: setattr(o, "value", 1.0), lambda v, x: x.astype(tn.int32) * v),
    "zero": (0.0, lambda o: setattr(o, "value", -0.0), lambda v, x: 1 / (x * v)),
    "string": ("sum", lambda o: setattr(o, "value", "max"), lambda v, x: getattr(tn, v)(x)),
    "flag": (True, lambda o: setattr(o, "value", False), lambda v, x: x if v else -x),
    "none": (None, lambda o: setattr(o, "value", 1), lambda v, x: x if v is None else -x),
    "tensor": (tn.array(1.0), lambda o: setattr(o, "value", tn.array(2.0)), lambda v, x: x * v),
    "part of a tensor": (tn.array([1.0, 1.0]), lambda o: o.value.__setitem__(0, 5.0),
                         lambda v, x: x * v),
    "tensor of another shape": (tn.array(1.0), lambda o: setattr(o, "value", tn.ones((3, 1))),
                                lambda v, x: x * v),
    "list": ([1.0, 2.0], lambda o: o.value.append(3.0), lambda v, x: x * sum(v)),
    "element of a list": ([1.0, [2.0]], lambda o: o.value[1].__setitem__(0, 4.0),
                          lambda v, x: x * v[1][0]),
    "dict": ({"a": 1.0}, lambda o: o.value.update(a=4.0), lambda v, x: x * v["a"]),
    "keys of a dict": ({"a": 1.0}, lambda o: o.value.update(b=4.0), lambda v, x: x * len(v)),
    "order of a dict": ({"a": 1, "b": 2}, lambda o: o.value.update(a=o.value.pop("a")),
                        lambda v, x: x * int("".join(map(str, v.values())))),
    "tensor in a dict": ({"a": tn.array(1.0)}, lambda o: o.value.update(a=tn.array(4.0)),
                         lambda v, x: x * v["a"]),
    "tuple": ((1.0, 2.0), lambda o: setattr(o, "value", (1.0, 3.0)), lambda v, x: x * v[1]),
    "set": ({1}, lambda o: o.value.add(5), lambda v, x: x * max(v)),
    "array": (np.array([1.0, 1.0], np.float32), lambda o: o.value.__setitem__(0, 5.0),
              lambda v, x: x * tn.array(v)),
    "function": (tn.exp, lambda o: setattr(o, "value", tn.sin), lambda v, x: v(x)),
    "lambda": (lambda x: x, lambda o: setattr(o, "value", lambda x: -x), lambda v, x: v(x)),
    "object": (made(1.0), lambda o: setattr(o.value, "value", 2.0), lambda v, x: x * v.value),
    "another object": (made(1.0), lambda o: setattr(o, "value", made(2.0)),
                       lambda v, x: x * v.value),
    "object in a list": ([made(1.0)], lambda o: setattr(o.value[0], "value", 2.0),
                         lambda v, x: x * v[0].value),
    "object in a dict": ({"k": (made(1.0),)}, lambda o: setattr(o.value["k"][0], "value", 2.0),
                         lambda v, x: x * v["k"][0].value),
    "bound method": (Scaled(2.0).plain, lambda o: setattr(o.value.__self__, "scale", 5.0),
                     lambda v, x: v(x)),
    "namespace": (types.SimpleNamespace(a=1.0), lambda o: setattr(o.value, "a", 2.0),
                  lambda v, x: x * v.a),
    "object in a namespace": (types.SimpleNamespace(a=made(1.0)),
                              lambda o: setattr(o.value.a, "value", 2.0),
                              lambda v, x: x * v.a.value),
    "module": (tn.nn.Linear(2, 1), lambda o: setattr(o.value, "bias", tn.array([9.0])),
               lambda v, x: v(x)),
    "enum": (enum.Enum("E", "a b").a, lambda o: setattr(o, "value", type(o.value).b),
             lambda v, x: x * v.value),
}  # fmt: skip


@pytest.mark.parametrize("name", CHANGES)
@pytest.mark.parametrize("way", ["argument", "inside a list", "self", "static", "callable"])
def test_what_was_read_is_compared(name, way):
    first, change, compute = CHANGES[name]
    first = __import__("copy").deepcopy(first) if not isinstance(
        first, (tn.Tensor, tn.nn.Module, types.MethodType, dict, list)) else first
    traces = []

    class Plain:
        def __init__(self, value):
            self.value = value

        def run(self, x):
            traces.append(1)
            return compute(self.value, x)

        __call__ = run

    f = {
        "argument": tn.compile(lambda o, x: o.run(x)),
        "inside a list": (lambda g: lambda o, x: g([{"o": o}], x))(
            tn.compile(lambda held, x: held[0]["o"].run(x))),
        "self": (lambda g: lambda o, x: g(o, x))(tn.compile(Plain.run)),
        "static": tn.compile(lambda o, x: o.run(x), static_argnums=0),
        "callable": functools.cache(lambda o, _: tn.compile(o)),
    }[way]  # fmt: skip
    o = Plain(first)
    call = (lambda: f(o, None)(X)) if way == "callable" else (lambda: f(o, X))
    for _ in range(2):
        assert same(call(), compute(o.value, X))
        assert same(call(), compute(o.value, X))
        change(o)
    assert same(call(), compute(o.value, X))
    count = len(traces)
    assert same(call(), compute(o.value, X)) and len(traces) == count


def same(a, b):
    return a.dtype == b.dtype and a.numpy().tobytes() == b.numpy().tobytes()


def test_what_is_not_read_does_not_count():
    s = Scaled()
    for i in range(5):
        s.other, s.traced = i, [i]
        s.run(X)
    before = len(Scaled.run.why_recompiled())
    s.other = "again"
    s.run(X)
    assert len(Scaled.run.why_recompiled()) == before


def test_numbers_and_tensors_that_vary_become_arguments():
    class Model:
        rate = 1.0

        def __init__(self):
            self.w = tn.ones(2)
            self.inner = types.SimpleNamespace()

        @tn.compile
        def __call__(self, x):
            return x * self.w * self.rate

    m = Model()
    for step in range(20):
        m.w, m.rate = m.w + 1, 0.5 * step
        assert same(m(X), X * m.w * m.rate)
    assert len(Model.__call__.why_recompiled()) == 2, Model.__call__.why_recompiled()
    m.rate = 3  # an integer
    assert same(m(X), X * m.w * 3)
    m.w = tn.ones((4, 2))
    assert same(m(X), X * m.w * 3)


def test_a_number_whose_value_is_asked_for_stays_constant():
    class Loop:
        def __init__(self, count):
            self.count = count

        @tn.compile
        def __call__(self, x):
            for _ in range(self.count):
                x = x + 1
            return x

    loop = Loop(1)
    for count in (1, 3, 2, 1, 3):
        loop.count = count
        assert loop(X).tolist() == [1 + count, 2 + count]
    assert len(Loop.__call__.why_recompiled()) == 3


def test_why_it_was_traced_again_names_the_attribute():
    class Named:
        def __init__(self):
            self.config = made("sum")

        @tn.compile
        def __call__(self, x):
            return getattr(tn, self.config.value)(x)

    f = Named()
    f(X)
    f.config.value = "max"
    f(X)
    assert "self.config.value was 'sum', now 'max'" in Named.__call__.why_recompiled()[1]


def test_ways_to_hold_attributes():
    class Slotted:
        __slots__ = ("a", "b")

    class Computed:
        def __init__(self):
            self._a, self.data = 1.0, {"b": 2.0}

        @property
        def a(self):
            return self._a

        def __getattr__(self, name):
            try:
                return self.data[name]
            except KeyError:
                raise AttributeError(name) from None

    class Strange:
        def __init__(self):
            self.data = {"a": 1.0, "b": 2.0}

        def __getattribute__(self, name):
            data = object.__getattribute__(self, "data")
            return data[name] if name in data else object.__getattribute__(self, name)

    class Cached:
        def __init__(self):
            self.given, self.b = 1.0, 2.0

        @functools.cached_property
        def a(self):
            return self.given

    f = tn.compile(lambda o, x: x * o.a + o.b + getattr(o, "c", 0))
    slotted = Slotted()
    slotted.a, slotted.b = 1.0, 2.0
    for o, set_a in [
        (slotted, lambda v: setattr(slotted, "a", v)),
        ((computed := Computed()), lambda v: setattr(computed, "_a", v)),
        ((strange := Strange()), lambda v: strange.data.update(a=v)),
        ((cached := Cached()), lambda v: cached.__dict__.update(a=v)),
    ]:
        assert f(o, X).tolist() == [3, 4]
        set_a(5.0)
        assert f(o, X).tolist() == [7, 12]
        assert "__getattribute__" not in type(o).__dict__ or type(o) is Strange
    computed.data["b"] = 0.0
    assert f(computed, X).tolist() == [5, 10]
    computed.data["c"] = 1.0
    assert f(computed, X).tolist() == [6, 11]
    computed.c = 2.0
    assert f(computed, X).tolist() == [7, 12]
    whole = tn.compile(lambda o, x: x * sum(vars(o).values()))
    o = made(1.0)
    assert whole(o, X).tolist() == [1, 2]
    o.more = 2.0
    assert whole(o, X).tolist() == [3, 6]


def test_equal_objects_are_told_apart_by_what_was_read():
    class Equal:
        def __init__(self, name, scale):
            self.name, self.scale = name, scale

        def __eq__(self, other):
            return self.name == other.name

        def __hash__(self):
            return hash(self.name)

    f = tn.compile(lambda o, x: x * o.scale, static_argnums=0)
    assert f(Equal("a", 2.0), X).tolist() == [2, 4]
    assert f(Equal("a", 2.0), X).tolist() == [2, 4]
    assert len(f.why_recompiled()) == 1
    assert f(Equal("a", 3.0), X).tolist() == [3, 6]


def test_dataclasses_and_functions_of_parts():
    @dataclass
    class Config:
        scale: float
        names: list = field(default_factory=list, metadata={"static": True})

    f = tn.compile(lambda o, c, x: x * c.scale * o.value.scale)
    o, c = made(Config(2.0)), Config(1.0)
    assert f(o, c, X).tolist() == [2, 4]
    o.value.scale = 3.0
    assert f(o, c, X).tolist() == [3, 6]
    partial = tn.compile(functools.partial(lambda o, x: x * o.value, made(2.0)))
    assert partial(X).tolist() == [2, 4]
    s = Scaled()
    bound = tn.compile(s.plain)
    assert bound(X).tolist() == [2, 4]
    s.scale = 3.0
    assert bound(X).tolist() == [3, 6]


def test_what_cannot_be_guarded_is_refused():
    f = tn.compile(lambda o, x: x * o.value[0])
    with pytest.raises(tn.InvalidType, match=r"o\.value is a bytearray.*cannot be tracked"):
        f(made(bytearray(b"ab")), X)
    assert f(made([2.0]), X).tolist() == [2, 4]
    o = made(bytearray(b"ab"))
    o.other = 1.0
    assert tn.compile(lambda o, x: x * o.other)(o, X).tolist() == [1, 2]  # which is not read


def test_functions_that_change_what_they_read_warn():
    class Counting:
        def __init__(self):
            self.calls, self.table = 0, None

        @tn.compile
        def count(self, x):
            self.calls += 1
            return x

        @tn.compile
        def cached(self, x):
            if self.table is None:
                self.table = [1.0, 2.0]
            return x * self.table[1]

    c = Counting()
    with pytest.warns(UserWarning, match=r"modifies self\.calls, which it also reads"):
        c.count(X)
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        c.count(X)
        assert c.calls == 1
        assert c.cached(X).tolist() == c.cached(X).tolist() == [2, 4]
        c.table[1] = 3.0
        assert c.cached(X).tolist() == [3, 6]


def test_state_that_is_named_is_no_constant():
    class Holder:
        def __init__(self):
            self.total = tn.array(0.0)

    h = Holder()

    def add(h, x):
        h.total = h.total + x.sum()
        return h.total

    f = tn.compile(add, inputs=vars(h), outputs=vars(h))
    assert [f(h, X).item() for _ in range(4)] == [3, 6, 9, 12]
    assert len(f.why_recompiled()) == 1 and h.total.item() == 12


def test_functions_inside_functions():
    class Inner:
        def __init__(self):
            self.scale = 2.0

        @tn.compile
        def __call__(self, x):
            return x * self.scale

    class Outer:
        def __init__(self):
            self.inner = Inner()

        @tn.compile
        def __call__(self, x):
            return self.inner(x) + 1

    outer = Outer()
    outer.inner(X)
    assert outer(X).tolist() == [3, 5]
    outer.inner.scale = 3.0
    assert outer(X).tolist() == [4, 7]
    kept = Inner()
    f = tn.compile(lambda x: kept(x))
    assert f(X).tolist() == [2, 4]
    kept.scale = 5.0  # what a function closes over is constant, but for what its functions guard
    assert f(X).tolist() == [5, 10]
    g = tn.grad(lambda x: outer(x).sum())
    assert g(X).tolist() == [3, 3]
    outer.inner.scale = 4.0
    assert g(X).tolist() == [4, 4]
    assert tn.vmap(outer)(tn.stack([X])).tolist() == [[5, 9]]


def test_classes_are_themselves_again_and_objects_die():
    seen = []

    class Plain:
        def __init__(self):
            self.value = 1.0
            self.me = self

        @tn.compile
        def run(self, x):
            seen.append((type(self) is Plain, self.__class__ is Plain))
            return x * self.value * self.me.value

        @tn.compile
        def fail(self, x):
            raise KeyError(self.value)

    o = Plain()
    o.run(X)
    with pytest.raises(KeyError):
        o.fail(X)
    assert seen == [(True, True)] and "__getattribute__" not in Plain.__dict__
    reference = weakref.ref(o)
    del o
    gc.collect()
    assert reference() is None


def test_threads():
    scales = [Scaled(float(i)) for i in range(4)]
    wrong = []

    def work(s, i):
        for k in range(20):
            s.scale = float(i + k % 3)
            if s.run(X).tolist() != [s.scale, 2 * s.scale]:
                wrong.append((i, k))

    threads = [threading.Thread(target=work, args=(s, i)) for i, s in enumerate(scales)]
    for t in threads:
        t.start()
    for t in threads:
        t.join()
    assert not wrong


def test_state_of_an_argument_that_is_named_draws_no_warning():
    optimizer = tn.optim.Adam(0.1)

    def step(optimizer, params):
        return optimizer.apply_gradients({"w": tn.ones(2)}, params)

    f = tn.compile(
        functools.partial(step, optimizer), inputs=optimizer.state, outputs=optimizer.state
    )
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        params = f({"w": tn.zeros(2)})
        assert f(params)["w"].tolist() != params["w"].tolist()
