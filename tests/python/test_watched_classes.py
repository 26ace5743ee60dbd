"""Classes that note reads while a function is traced: what is made of them meanwhile, and fork."""

import abc
import copy
import os
import pickle
import signal
import sys
import threading
import time
import types

import pytest

import tenon as tn
from tenon import watched_classes

X = tn.array([1.0, 2.0])


class Rated:
    rate = 2.0

    def __init__(self):
        self.v = 1.0


class Meta(type):
    def __init__(cls, *args):
        super().__init__(*args)
        cls.is_made = True


class WithMeta(metaclass=Meta):
    rate = 3.0


class NoSubclasses(type):
    def __init_subclass__(cls):
        raise RuntimeError("no subclasses")


class Alone(metaclass=NoSubclasses):
    rate = 4.0


def traced(f, *args):
    """What `f` returns besides tensors, called inside a trace that reads the arguments."""
    kept = []

    def g(x):
        kept.append(f())
        return x * sum(a.rate for a in args)

    tn.compile(g)(X)
    return kept[0]


def test_copies_and_pickles_of_namespaces_are_plain():
    ns = types.SimpleNamespace(rate=2.0, more=[1])
    made = traced(
        lambda: [copy.copy(ns), copy.deepcopy(ns), pickle.loads(pickle.dumps(ns)),
                 type(ns)(rate=2.0, more=[1]), pickle.loads(pickle.dumps(ns, 0))], ns,
    )  # fmt: skip
    assert made == [ns] * 5 and {type(m) for m in made} == {types.SimpleNamespace}
    assert made[0].more is ns.more and made[1].more is not ns.more


def test_copies_of_namespaces_are_guarded():
    ns = types.SimpleNamespace(rate=2.0)
    f = tn.compile(lambda x: x * copy.copy(ns).rate)
    assert f(X).tolist() == [2, 4]
    ns.rate = 3.0
    assert f(X).tolist() == [3, 6]


def test_classes_made_meanwhile_are_plain():
    first, second = traced(
        lambda: (type("First", (Rated,), {}), Meta("Second", (WithMeta,), {})), Rated, WithMeta
    )
    assert type(first) is type and type(second) is Meta and vars(second)["is_made"]
    assert type(Rated) is type and type(WithMeta) is Meta


def test_what_classes_made_meanwhile_inherit_is_guarded():
    class Base(abc.ABC):  # noqa: B024  what counts is its metaclass
        rate = 2.0

    def f(x):
        class Made(Base):
            pass

        return x * Made.rate

    compiled = tn.compile(f)
    assert compiled(X).tolist() == [2, 4]
    Base.rate = 3.0
    assert compiled(X).tolist() == [3, 6]


def test_classes_that_cannot_be_watched():
    assert tn.compile(lambda x: x * Alone.rate)(X).tolist() == [4, 8]


@pytest.mark.skipif(not hasattr(os, "fork"), reason="no fork")
@pytest.mark.parametrize("own", [False, True])
def test_a_child_of_fork_has_its_own_traces_only(own):
    """`own`: the thread that forks traces as well, and goes on in the child."""
    ns, mine = types.SimpleNamespace(rate=2.0), types.SimpleNamespace(rate=3.0)
    reached = []

    def wait_for(what):
        while what not in reached:
            time.sleep(0.01)

    def slow(x, o):
        reached.append("inside")
        wait_for("over")
        return x * o.v * Rated.rate * ns.rate

    thread = threading.Thread(target=tn.compile(slow), args=(X, Rated()))
    thread.start()
    wait_for("inside")
    child = []

    def fork(x):
        child.append(os.fork())
        return x * mine.rate * Rated.rate

    result = tn.compile(fork)(X) if own else fork(X)
    if child[0] == 0:
        signal.alarm(60)
        plain = type(Rated) is type and "__getattribute__" not in vars(Rated)
        plain = plain and type(ns) is type(mine) is types.SimpleNamespace
        os._exit(0 if plain and not watched_classes._users else 1)
    reached.append("over")
    thread.join()
    assert os.waitstatus_to_exitcode(os.waitpid(child[0], 0)[1]) == 0
    assert result.tolist() == [6, 12] and type(Rated) is type


@pytest.mark.skipif(not hasattr(os, "fork"), reason="no fork")
@pytest.mark.forks
def test_children_of_fork_do_not_wait_for_threads_of_the_parent():
    stop, before = threading.Event(), sys.getswitchinterval()

    def work():
        while not stop.is_set():
            ns = types.SimpleNamespace(a=1.0)
            watched_classes.unwatch(watched_classes.watch(ns, "itself"))

    threads = [threading.Thread(target=work) for _ in range(2)]
    try:
        sys.setswitchinterval(1e-6)
        for t in threads:
            t.start()
        for _ in range(100):
            child = os.fork()
            if child == 0:
                os._exit(0 if watched_classes._lock.acquire(timeout=10) else 1)
            assert os.waitstatus_to_exitcode(os.waitpid(child, 0)[1]) == 0
    finally:
        sys.setswitchinterval(before)
        stop.set()
        for t in threads:
            t.join()
