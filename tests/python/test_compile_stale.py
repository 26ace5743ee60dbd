"""What a compiled function reads by side roads: another value there is never an old result."""

import collections
import contextvars
import copy
import ctypes
import dataclasses
import enum
import functools
import operator
import types
import weakref

import numpy as np
import pytest

import tenon as tn

X = tn.array([1.0, 2.0])


class Held:
    rate = 2.0

    def __init__(self, v=1.0):
        self.v = v

    def get(self):
        return self.v


def assigned(owner, name, *values):
    """Changes, one by one."""
    return [functools.partial(setattr, owner, name, value) for value in values]


def same(a, b):
    return a.dtype == b.dtype and a.numpy().tobytes() == b.numpy().tobytes()


def check(f, args, changes):
    compiled = tn.compile(f)
    for change in [lambda: None, *changes]:
        change()
        for _ in range(2):
            assert same(compiled(*args, X), f(*args, X))


PROGRAMS = {}


def program(make):
    """`make` returns a function, its arguments, and changes after which it is called again."""
    PROGRAMS[make.__name__] = make
    return make


# Classes ------------------------------------------------------------------------------------


class Base:
    rate = 1.0

    def scale(self, x):
        return x

    @property
    def twice(self):
        return self.rate * 2


def derived():
    """A class with another in between, so that tests change their own."""

    class Middle(Base):
        rate = 1.0
        table = {"a": 1.0}

        def scale(self, x):
            return x * 3

        @property
        def twice(self):
            return self.rate * 4

    class Derived(Middle):
        @classmethod
        def made(cls):
            return cls.rate

        def by_super(self):
            return super().rate

        def scale(self, x):
            return super().scale(x) * 2

        @property
        def twice(self):
            return super().twice + 1

        def by_class(self):
            return self.__class__.rate

        def __getitem__(self, _):
            return 1.0

    return Middle, Derived


CLASS_READS = {
    "type": lambda o, x: x * type(o).rate,
    "getattr of type": lambda o, x: x * getattr(type(o), "rate"),  # noqa: B009
    "__class__": lambda o, x: x * o.by_class(),
    "classmethod": lambda o, x: x * o.made(),
    "super": lambda o, x: x * o.by_super(),
    "bases": lambda o, x: x * type(o).__bases__[0].rate,
    "mro": lambda o, x: x * type(o).__mro__[1].rate,
    "vars": lambda o, x: x * vars(type(o).__mro__[1])["rate"],
    "made inside": lambda o, x: x * type(o)().rate,
    "the object": lambda o, x: x * o.rate,
}


@pytest.mark.parametrize("read", CLASS_READS)
def test_attributes_of_classes(read):
    middle, cls = derived()
    check(CLASS_READS[read], (cls(),), assigned(middle, "rate", 3.0, 4.0))


@program
def table_of_a_class():
    _, cls = derived()
    return lambda o, x: x * type(o).table["a"], (cls(),), [lambda: cls.table.update(a=5.0)]


@program
def methods_of_a_class():
    middle, cls = derived()
    changes = assigned(middle, "scale", lambda s, x: x * 7)
    return lambda o, x: o.scale(x) + type(o).scale(o, x), (cls(),), changes


@program
def properties_of_a_class():
    middle, cls = derived()
    changes = [*assigned(middle, "rate", 2.0), *assigned(middle, "twice", property(lambda s: 9.0))]
    return lambda o, x: x * o.twice, (cls(),), changes


@program
def operators_of_a_class():
    _, cls = derived()
    return lambda o, x: x * o[0], (cls(),), assigned(cls, "__getitem__", lambda s, i: 4.0)


@program
def class_of_an_object():
    o, cls = Held(), derived()[1]
    return lambda o, x: x if isinstance(o, Held) else -x, (o,), assigned(o, "__class__", cls)


@program
def attribute_of_a_metaclass():
    class Meta(type):
        rate = 1.0

    class Made(metaclass=Meta):
        pass

    changes = assigned(Meta, "rate", 2.0) + assigned(Made, "rate", 3.0)
    return lambda o, x: x * type(o).rate, (Made(),), changes


@program
def class_as_an_argument():
    cls = derived()[1]
    return lambda c, x: x * c.rate, (cls,), assigned(cls, "rate", 2.0, 3.0)


@program
def class_as_an_attribute():
    cls = derived()[1]
    return lambda o, x: x * o.v.rate, (Held(cls),), assigned(cls, "rate", 2.0)


@program
def class_of_a_module_argument():
    class Model(tn.nn.Module):
        rate = 1.0

        def __call__(self, x):
            return x * self.rate * type(self).rate

    m = Model()
    return lambda m, x: m(x), (m,), assigned(Model, "rate", 2.0) + assigned(m, "rate", 4.0)


@program
def class_of_a_compiled_module():
    class Model(tn.nn.Module):
        rate = 1.0

        def __call__(self, x):
            return x * self.rate

    return Model(), (), assigned(Model, "rate", 2.0, 3.0)


@program
def class_of_a_dataclass():
    @dataclasses.dataclass
    class Point:
        a: float

    Point.rate = 1.0
    return lambda p, x: x * p.a * p.rate, (Point(1.0),), assigned(Point, "rate", 2.0)


@program
def class_made_inside():
    middle, cls = derived()

    def f(o, x):
        made = type("Inside", (type(o),), {})
        return x * made.rate * made().rate

    return f, (cls(),), assigned(middle, "rate", 2.0, 3.0)


@program
def objects_made_inside_and_kept():
    class Single:
        one = None

        @classmethod
        def get(cls):
            if cls.one is None:
                cls.one = Held()
            return cls.one

    return lambda x: x * Single.get().v, (), [lambda: setattr(Single.get(), "v", 2.0)]


# Descriptors and classes of values --------------------------------------------------------------


class Stored:
    """Keeps values beside the objects."""

    def __init__(self):
        self.values = weakref.WeakKeyDictionary()

    def __get__(self, o, cls):
        return self if o is None else self.values.get(o, 1.0)

    def __set__(self, o, value):
        self.values[o] = value


@pytest.mark.parametrize("values", [(2.0, 3.0), ([2.0], [3.0]), (Held(2.0), Held(3.0))])
def test_descriptors_that_store_elsewhere(values):
    class Owner:
        held = Stored()

    o = Owner()
    o.held = values[0]
    changes = [lambda: setattr(o, "held", values[1])]
    if isinstance(values[0], list):
        changes.append(lambda: values[1].append(5.0))
    if isinstance(values[0], Held):
        changes.append(lambda: setattr(values[1], "v", 5.0))

    def total(v):
        return v.v if isinstance(v, Held) else sum(v) if isinstance(v, list) else v

    check(lambda o, x: x * total(o.held), (o,), changes)


@program
def descriptor_that_computes():
    class Doubled:
        def __get__(self, o, cls):
            return o.w * 2

    class Owner:
        doubled = Doubled()
        w = tn.ones(2)

    o = Owner()
    return lambda o, x: x * o.doubled, (o,), assigned(o, "w", tn.zeros(2), tn.array([1.0, 5.0]))


@pytest.mark.parametrize(
    "base, content",
    [(list, [1.0]), (dict, {"a": 1}), (tuple, (1,)), (set, {1}), (str, "a"), (int, 3), (float, 2)],
)
def test_attributes_of_subclasses_of_values(base, content):
    cls = type("Derived", (base,), {"rate": 1.0})
    value = cls(content)
    changes = assigned(value, "rate", 2.0, 3.0) + [lambda: delattr(value, "rate")]
    changes += assigned(cls, "rate", 4.0)
    check(lambda o, x: x * o.v.rate, (Held(value),), changes)


@pytest.mark.parametrize("base", [list, dict, tuple])
def test_arguments_that_are_trees_have_no_attributes(base):
    value = type("Derived", (base,), {"rate": 1.0})()
    f = tn.compile(lambda v, x: x * v.rate)
    assert f(value, X).tolist() == [1, 2]
    value.rate = 2.0
    with pytest.raises(tn.InvalidType, match="is a Derived with the attribute rate, which is no"):
        f(value, X)


@program
def attribute_of_an_array():
    class Marked(np.ndarray):
        pass

    a = np.ones(2, np.float32).view(Marked)
    a.k = 1.0
    return lambda o, x: x * o.v.k, (Held(a),), assigned(a, "k", 3.0)


@program
def attribute_of_an_enum():
    class Mode(enum.Enum):
        A, B = 1.0, 2.0

    Mode.A.k, o = 1.0, Held(Mode.A)
    changes = assigned(Mode.A, "k", 3.0) + assigned(o, "v", Mode.B)
    return lambda o, x: x * o.v.value * getattr(o.v, "k", 7.0), (o,), changes


@program
def named_tuples():
    class Pair(collections.namedtuple("Pair", "a b")):
        rate = 1.0

    o = Held(Pair(1.0, 2.0))
    changes = assigned(o, "v", Pair(3.0, 2.0)) + assigned(Pair, "rate", 5.0)
    return lambda o, x: x * o.v.a * o.v.rate, (o,), changes


# Ways to read -------------------------------------------------------------------------------

READS = {
    "vars": lambda o, x: x * vars(o)["v"],
    "__dict__": lambda o, x: x * o.__dict__["v"],
    "attrgetter": lambda o, x: x * operator.attrgetter("v")(o),
    "copy": lambda o, x: x * copy.copy(o).v,
    "deepcopy": lambda o, x: x * copy.deepcopy(o).v,
    "default": lambda o, x: x * getattr(o, "v", 1.0),
    "hasattr": lambda o, x: x * (o.v if hasattr(o, "v") else 0.0),
    "past the class": lambda o, x: x * object.__getattribute__(o, "v"),
    "weak": lambda o, x: x * o.me().v,
}


@pytest.mark.parametrize("name", READS)
def test_ways_to_read(name):
    o = Held()
    o.me = weakref.ref(o)
    check(READS[name], (o,), assigned(o, "v", 3.0, 4.0))


@program
def mappings_of_python():
    d, m = collections.UserDict(a=1.0), collections.ChainMap({"a": 1.0})
    changes = [lambda: d.update(a=3.0), lambda: m.update(a=4.0)]
    return lambda d, m, x: x * d["a"] * m["a"], (d, m), changes


@program
def shared_children():
    c = Held()
    a, b = Held(c), Held(c)
    changes = assigned(c, "v", 5.0) + assigned(b, "v", Held(9.0)) + assigned(a, "v", Held(3.0))
    return lambda a, b, x: x * a.v.v + b.v.v, (a, b), changes


@program
def methods_of_a_dataclass_that_ask_for_types():
    @dataclasses.dataclass
    class Asking:
        a: int

        def k(self):
            return 5.0 if type(self.a) is int else 7.0

    d = Asking(1)
    return lambda d, x: x * d.k() * d.a, (d,), assigned(d, "a", 2, 3)


@program
def methods_of_a_module_that_ask_for_types():
    class Asking(tn.nn.Module):
        def __init__(self):
            self.inner = Held(1)

        def k(self):
            return 5.0 if type(self.inner.v) is int else 7.0

        def __call__(self, x):
            return x * self.k() * self.inner.v

    m = Asking()
    return lambda m, x: m(x), (m,), assigned(m.inner, "v", 2, 3)


@pytest.mark.parametrize("name", PROGRAMS)
def test_what_changed_is_computed_with(name):
    check(*PROGRAMS[name]())


# Refused, and open ----------------------------------------------------------------------------


class Structure(ctypes.Structure):
    _fields_ = [("a", ctypes.c_double)]


@pytest.mark.parametrize(
    "value",
    [{}.keys(), {}.values(), {}.items(), memoryview(b"a"), contextvars.ContextVar("c"),
     types.MappingProxyType({}), Structure(1.0)],
    ids=lambda v: type(v).__name__,
)  # fmt: skip
def test_views_and_memory_of_others_are_refused(value):
    f = tn.compile(lambda o, x: x if o.v is None else x)
    with pytest.raises(tn.InvalidType, match=rf"o\.v is a {type(value).__name__}, whose changes"):
        f(Held(value), X)


def test_iterators_in_modules_are_refused():
    class Model(tn.nn.Module):
        def __init__(self, held):
            self.held = held

        def __call__(self, x):
            return x

    f = tn.compile(lambda m, x: m(x))
    with pytest.raises(tn.InvalidType, match=r"m\.held is a list_iterator, whose changes"):
        f(Model(iter([1.0])), X)
    with pytest.raises(tn.InvalidType, match=r"m\.held\[0\] is a generator, whose changes"):
        f(Model([(i for i in range(3))]), X)
