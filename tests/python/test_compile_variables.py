"""Objects that compiled functions find in variables, and how messages name them."""

import contextlib
import functools
import sys
import types

import pytest

import tenon as tn
from test_compile_stale import Held, X, assigned, check, derived

PROGRAMS = []

GLOBAL, LISTED, NAMESPACE = Held(), [Held()], types.SimpleNamespace(v=1.0)
HERE = sys.modules[__name__]


class Config:
    rate = 1.0


def helper(x):
    return x * GLOBAL.v


VARIABLES = {
    "object": (lambda x: x * GLOBAL.v, lambda v: setattr(GLOBAL, "v", v)),
    "method": (lambda x: x * GLOBAL.get(), lambda v: setattr(GLOBAL, "v", v)),
    "rebound": (lambda x: x * GLOBAL.v, lambda v: setattr(HERE, "GLOBAL", Held(v))),
    "another kind": (
        lambda x: x * (GLOBAL.v + 0),
        lambda v: setattr(HERE, "GLOBAL", types.SimpleNamespace(v=v)),
    ),
    "in a list": (lambda x: x * LISTED[0].v, lambda v: setattr(LISTED[0], "v", v)),
    "namespace": (lambda x: x * NAMESPACE.v, lambda v: setattr(NAMESPACE, "v", v)),
    "class": (lambda x: x * Config.rate, lambda v: setattr(Config, "rate", v)),
    "made of a class": (lambda x: x * Config().rate, lambda v: setattr(Config, "rate", v)),
    "helper": (lambda x: helper(x), lambda v: setattr(GLOBAL, "v", v)),
    "of a module": (lambda x: x * HERE.GLOBAL.v, lambda v: setattr(GLOBAL, "v", v)),
}


@pytest.mark.parametrize("name", VARIABLES)
def test_objects_in_global_variables(name):
    f, change = VARIABLES[name]
    check(f, (), [functools.partial(change, v) for v in (3.0, 4.0, 1.0)])


@PROGRAMS.append
def closure():
    o = Held()
    return lambda x: x * o.v, (), assigned(o, "v", 3.0, 4.0, 5.0)


@PROGRAMS.append
def closure_that_is_rebound():
    o = Held()

    def rebind():
        nonlocal o
        o = Held(7.0)

    return lambda x: x * o.v, (), [rebind]


@PROGRAMS.append
def closure_of_a_helper():
    o = Held()

    def inner(x):
        return x * o.v

    return lambda x: inner(x), (), assigned(o, "v", 3.0)


@PROGRAMS.append
def closure_of_an_argument():
    c = Held()
    return lambda h, x: h(x), (lambda x: x * c.v,), assigned(c, "v", 2.0)


@PROGRAMS.append
def closure_of_an_attribute():
    c = Held()
    return lambda o, x: o.v(x), (Held(lambda x: x * c.v),), assigned(c, "v", 2.0)


@PROGRAMS.append
def bound_method_in_a_closure():
    o = Held()
    method = o.get
    return lambda x: x * method(), (), assigned(o, "v", 2.0)


@PROGRAMS.append
def partial_function_in_a_closure():
    o = Held()
    partial = functools.partial(lambda o, x: x * o.v, o)
    return lambda x: partial(x), (), assigned(o, "v", 2.0)


@PROGRAMS.append
def global_of_a_method():
    class Method:
        def run(self, x):
            return x * GLOBAL.v

    return lambda o, x: o.run(x), (Method(),), [lambda: setattr(GLOBAL, "v", 14.0)]


@PROGRAMS.append
def defaults():
    o, p = Held(), Held()

    def f(x, o=o, *, p=p):
        return x * o.v + p.v

    return f, (), assigned(o, "v", 2.0) + assigned(p, "v", 3.0)


@PROGRAMS.append
def default_of_a_method():
    o = Held()

    class Method:
        def run(self, x, o=o):
            return x * o.v

    return lambda m, x: m.run(x), (Method(),), assigned(o, "v", 2.0)


@PROGRAMS.append
def decorators():
    o = Held()

    @contextlib.contextmanager
    def scale():
        yield o.v

    @functools.wraps(scale)
    def wrapped(x):
        with scale() as by:
            return x * by

    return wrapped, (), assigned(o, "v", 2.0)


@PROGRAMS.append
def compiled_functions_inside():
    o, cls = Held(), derived()[1]
    inner = tn.compile(lambda x: x * o.v * cls.rate)
    changes = assigned(o, "v", 2.0, 3.0, 4.0) + assigned(cls, "rate", 2.0, 3.0)
    return lambda x: inner(x) + cls.rate, (), changes


@PROGRAMS.append
def equal_namespaces():
    o = types.SimpleNamespace(v=1.0)
    return lambda x: x if o == types.SimpleNamespace(v=1.0) else -x, (), assigned(o, "v", 2.0)


@pytest.mark.parametrize("make", PROGRAMS, ids=lambda make: make.__name__)
def test_objects_in_variables(make):
    check(*make())


def test_what_cannot_be_read_any_more_fails_where_the_program_does():
    class Failing:
        ready = True

        @property
        def rate(self):
            if not self.ready:
                raise KeyError("rate")
            return 2.0

    o, f = Failing(), tn.compile(lambda x: x * held.rate)  # noqa: F821  set below
    held = o
    assert f(X).tolist() == [2, 4]
    o.ready = False
    with pytest.raises(KeyError, match="rate"):
        f(X)
    del held
    with pytest.raises(NameError, match="held"):
        f(X)


def test_long_chains_of_functions():
    names = {}
    for i in range(2000):
        exec(f"def f{i}(x): return f{i + 1}(x) if x is None else x * o.v", names)
    names["o"] = o = Held()
    check(names["f0"], (), assigned(o, "v", 2.0))


def test_state_of_an_object_in_a_variable_draws_no_warning(recwarn):
    o = Held(0)

    @functools.partial(tn.compile, inputs=vars(o), outputs=vars(o))
    def f(x):
        o.v += 1
        return x * o.v

    assert [f(X).tolist()[0] for _ in range(4)] == [1, 2, 3, 4] and o.v == 4
    outer = Held(o)

    @functools.partial(tn.compile, inputs=vars(o), outputs=vars(o))
    def g(x):
        return outer.v.get() * x + inner(x)

    inner = tn.compile(lambda x: x * outer.v.v)
    for v in (2.0, 3.0, 4.0):
        o.v = v
        assert g(X).tolist() == [2 * v, 4 * v]
    outer.v = Held(10.0)
    assert g(X).tolist() == [20, 40]
    assert not recwarn.list


def test_numbers_of_namespaces_classes_and_variables_become_arguments():
    o, held = types.SimpleNamespace(rate=1.0), Held()
    cls = type("Config", (), {"rate": 1.0})
    for f, owner, name in [
        (tn.compile(lambda x: x * o.rate), o, "rate"),
        (tn.compile(lambda x: x * held.v), held, "v"),
        (tn.compile(lambda x: x * cls.rate), cls, "rate"),
    ]:
        for k in range(6):
            setattr(owner, name, float(k))
            assert f(X).tolist() == [k, 2 * k]
        assert len(f.why_recompiled()) == 2, f.why_recompiled()
    assert type(o) is types.SimpleNamespace and repr(o) == "namespace(rate=5.0)"
    assert type(cls) is type and "__getattribute__" not in vars(cls)


def test_messages_name_variables_as_the_program_does():
    o, cls = Held("sum"), derived()[1]
    f = tn.compile(lambda x: getattr(tn, o.v)(x))
    f(X)
    o.v = "max"
    f(X)
    assert f.why_recompiled()[1].startswith("o.v was 'sum', now 'max'")
    g = tn.compile(lambda o, x: x if type(o).mode == "a" else -x)
    cls.mode = "a"
    g(cls(), X)
    cls.mode, held = "b", cls()
    g(held, X)
    cls.mode = "c"
    g(held, X)
    assert g.why_recompiled()[-1].startswith("type(o).mode was 'b', now 'c'")


def test_what_is_not_read_is_not_compared():
    class Counted:
        count = 0
        rate = 1.0

        def __init__(self):
            type(self).count += 1

    o = Counted()
    f = tn.compile(lambda x: x * o.rate * Counted.rate)
    for _ in range(4):
        Counted()
        f(X)
    assert len(f.why_recompiled()) == 1
