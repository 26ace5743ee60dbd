"""Containers that compiled functions read of objects, and in variables: sets, keys, arrays."""

import collections
import contextvars
import functools
import io
import random
import sys
import threading
import weakref

import numpy as np
import pytest

import tenon as tn

X = tn.array([1.0, 2.0])


class Held:
    def __init__(self, v):
        self.v = v


class Equal(Held):
    """Equal to all others."""

    def __eq__(self, other):
        return isinstance(other, Equal)

    def __hash__(self):
        return 1


def check(f, args, *changes):
    compiled = tn.compile(f)
    for change in [lambda: None, *changes]:
        change()
        for _ in range(2):
            a, b = compiled(*args, X), f(*args, X)
            assert a.dtype == b.dtype and a.numpy().tobytes() == b.numpy().tobytes()


# What classes of the program make of containers ------------------------------------------------


class Hidden(dict):
    def __iter__(self):
        return (k for k in dict.keys(self) if not k.startswith("_"))

    keys = __iter__


class Longer(dict):
    def __iter__(self):
        return iter([*dict.keys(self), "more"])


class Nonzero(list):
    def __iter__(self):
        return iter([v for v in list.__iter__(self) if v])


class Nothing(set):
    def __iter__(self):
        return iter(())


@pytest.mark.parametrize(
    "value, key",
    [(Hidden(rate=2.0, **{f"_{i}": float(i) for i in range(200)}), "rate"),
     (Longer(rate=2.0), "rate"), (Nonzero([0.0, 2.0]), 1)],
    ids=lambda v: type(v).__name__,
)  # fmt: skip
def test_what_is_inside_counts_and_not_what_iter_gives(value, key):
    f = tn.compile(lambda o, x: x * o.v[key])
    o = Held(value)
    assert [f(o, X).tolist() for _ in range(4)] == [[2, 4]] * 4
    assert f.stats().traces == 1
    value[key] = 3.0
    assert f(o, X).tolist() == [3, 6]
    if isinstance(value, Hidden):
        value["_0"] = 7.0
        assert f(o, X).tolist() == [3, 6] and f.stats().traces == 3


def test_sets_with_an_iter_of_their_own():
    o = Held(Nothing({1.0}))
    f = tn.compile(lambda o, x: x * len(o.v))
    assert f(o, X).tolist() == [1, 2]
    o.v.add(2.0)
    assert f(o, X).tolist() == [2, 4]


def test_dicts_that_make_entries_are_left_alone():
    d = collections.defaultdict(lambda: Held(5.0), a=Held(1.0))
    f = tn.compile(lambda o, x: x * (o.v["a"].v if "a" in o.v else 7.0))
    o = Held(d)
    assert f(o, X).tolist() == [1, 2]
    del d["a"]
    assert f(o, X).tolist() == [7, 14] and not d


def test_order_of_ordered_dicts():
    d = collections.OrderedDict(a=1.0, b=2.0)
    check(lambda o, x: x * next(iter(o.v.values())), (Held(d),), lambda: d.move_to_end("a"))


class Angry:
    """Is compared with others of its hash, which fails."""

    def __hash__(self):
        return hash("a")

    def __eq__(self, other):
        raise ValueError("not comparable")


def test_keys_that_cannot_be_compared_fail_where_the_program_does():
    d = {"a": Held(1.0)}
    f = tn.compile(lambda o, x: x * o.v["a"].v)
    o = Held(d)
    assert f(o, X).tolist() == [1, 2]
    d.clear()
    d[Angry()] = Held(1.0)
    with pytest.raises(ValueError, match="not comparable"):
        f(o, X)
    o.v = {"a": Held(3.0)}
    assert f(o, X).tolist() == [3, 6]


# What has no index ----------------------------------------------------------------------------


def product(objects, x):
    return functools.reduce(lambda x, o: x * o.v, objects, x)


def of_keys(o):
    return {o: 1.0}


def of_pairs(o):
    return {(1, o)}


def of_array(o):
    return np.array([[o, None]], dtype=object)


def of_fields(o):
    return np.array([(o, 1)], dtype=[("a", object), ("b", int)])


def objects_in(container):
    if isinstance(container, np.ndarray):
        return [o for o in container.ravel().tolist() if o] if container.dtype == object else [
            fields[0] for fields in container.tolist()]  # fmt: skip
    return [o[1] if isinstance(o, tuple) else o for o in container]


NO_INDEX = [lambda o: {o}, lambda o: frozenset([o]), of_keys, of_pairs, of_array, of_fields]


@pytest.mark.parametrize("cls", [Held, Equal])
@pytest.mark.parametrize("make", NO_INDEX)
def test_objects_that_no_index_leads_to(make, cls):
    first, second = cls(2.0), cls(3.0)
    o = Held(make(first))
    check(
        lambda o, x: product(objects_in(o.v), x), (o,),
        lambda: setattr(first, "v", 4.0), lambda: setattr(first, "v", 5.0),
        lambda: setattr(o, "v", make(second)), lambda: setattr(second, "v", 6.0),
    )  # fmt: skip


@pytest.mark.parametrize("make", NO_INDEX)
def test_objects_in_variables_that_no_index_leads_to(make):
    first = Held(2.0)
    held = make(first)
    check(
        lambda x: product(objects_in(held), x), (),
        lambda: setattr(first, "v", 4.0), lambda: setattr(first, "v", 5.0),
    )  # fmt: skip


def test_objects_in_a_set_that_is_an_argument():
    first = Held(2.0)
    check(product, (frozenset([first]),), lambda: setattr(first, "v", 4.0))


def test_lists_in_arrays():
    inside = [1.0]
    a = np.empty(1, object)
    a[0] = inside
    check(lambda o, x: x * sum(o.v[0]), (Held(a),), lambda: inside.append(2.0))


@pytest.mark.parametrize(
    "values", [({2}, {2.0}, {True, 3}), ({0.0}, {-0.0}), ({(1,)}, {(1.0,)}), ({1, 2}, {1})]
)
def test_elements_of_sets_are_told_apart_by_type(values):
    def f(o, x):
        first = min(o.v, key=str)
        first = first[0] if isinstance(first, tuple) else first
        return x.astype(tn.int32) * first

    o = Held(values[0])
    check(f, (o,), *[functools.partial(setattr, o, "v", v) for v in values[1:]])


def test_arrays_of_any_layout():
    o = Held(np.arange(6.0).reshape(2, 3))
    check(
        lambda o, x: x * float(o.v[0, 1].astype("f8")), (o,),
        lambda: o.v.__setitem__((0, 1), 5.0),
        lambda: setattr(o, "v", o.v.copy("F")),
        lambda: o.v.__setitem__((0, 1), 7.0),
        lambda: setattr(o, "v", o.v[:, ::2]),
        lambda: o.v.__setitem__((0, 1), 9.0),
        lambda: setattr(o, "v", np.array([[1, 2]], "M8[s]")),  # gives no memory
        lambda: o.v.__setitem__((0, 1), np.datetime64(3, "s")),
    )  # fmt: skip


def test_masks_of_arrays():
    o = Held(np.ma.array([1.0, 2.0], mask=[False, False]))
    check(lambda o, x: x * float(o.v.sum()), (o,), lambda: o.v.__setitem__(0, np.ma.masked))


# What cannot be seen, in variables --------------------------------------------------------------

LIVING = Held(1.0)
STATEFUL = {
    "ProxyType": weakref.proxy(LIVING),
    "ContextVar": contextvars.ContextVar("c"),
    "list_iterator": iter([1.0]),
    "Random": random.Random(0),
    "builtin_function_or_method": random.Random(0).random,
}


@pytest.mark.parametrize("name", STATEFUL)
def test_variables_whose_changes_cannot_be_seen_are_refused(name):
    stateful = STATEFUL[name]

    def helper(x):
        return x if stateful else x

    with pytest.raises(tn.InvalidType, match=rf"stateful is a {name}, whose changes cannot be"):
        tn.compile(lambda x: helper(x))(X)
    o = Held(stateful)
    with pytest.raises(tn.InvalidType, match=rf"o\.v is a {name}, whose changes cannot be"):
        tn.compile(lambda o, x: x if o.v else x)(o, X)
    held = [{"a": (stateful, 1)}]
    held.append(held)
    with pytest.raises(tn.InvalidType, match=rf"held\[0\]\['a'\]\[0\] is a {name}"):
        tn.compile(lambda x: x if held else x)(X)


def test_what_a_module_holds_is_refused_where_it_is_read(monkeypatch):
    monkeypatch.setattr(random, "split", iter([1.0]), raising=False)
    with pytest.raises(tn.InvalidType, match=r"random\.split is a list_iterator"):
        tn.compile(lambda x: x if random.split else x)(X)
    f = tn.compile(lambda x: x * tn.random.split(tn.random.key(0)).shape[0] if random else x)
    assert f(X).tolist() == [2, 4]  # another `split`, beside that of the module


numbers = iter(range(100))


class Counted:
    def __init__(self, v):
        self.v, self.at = v, next(numbers)

    def next(self):
        return next(numbers)


def test_methods_that_are_not_called_are_not_refused():
    o = Counted(2.0)
    assert tn.compile(lambda o, x: x * o.v)(o, X).tolist() == [2, 4]
    with pytest.raises(tn.InvalidType, match="numbers is a range_iterator"):
        tn.compile(lambda o, x: x * o.next())(o, X)


def test_files_that_are_written_to():
    log = io.StringIO()

    def f(x):
        sys.stderr.write("")
        log.write("traced")
        return x + 1

    assert tn.compile(f)(X).tolist() == [2, 3] and log.getvalue() == "traced"


@pytest.mark.parametrize("cls", [threading.local, type("Local", (threading.local,), {})])
def test_what_a_thread_has_of_its_own(cls):
    local = cls()
    local.v, seen = 2.0, []
    f = tn.compile(lambda x: x * getattr(local, "v", 7.0))
    assert f(X).tolist() == [2, 4]
    local.v = 3.0
    assert f(X).tolist() == [3, 6]
    thread = threading.Thread(target=lambda: seen.append(f(X).tolist()))
    thread.start()
    thread.join()
    assert seen == [[7, 14]] and f(X).tolist() == [3, 6]
