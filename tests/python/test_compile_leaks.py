"""Traces of functions that are gone leave nothing behind."""

import gc
import os
import weakref

import pytest

import tenon as tn

TRACES = 2000


def resident():
    with open("/proc/self/statm") as file:
        return int(file.read().split()[1]) * os.sysconf("SC_PAGE_SIZE")


def grown_by(trace, warm=1000):
    """Bytes that TRACES more leave behind, and live tensors."""
    for i in range(warm):
        trace(i)
    gc.collect()
    tensors, before = tn.memory.active_memory(), resident()
    for i in range(warm, warm + TRACES):
        trace(i)
    gc.collect()
    return resident() - before, tn.memory.active_memory() - tensors


def trace_function(i):
    f = tn.compile(lambda x: tn.exp(x * (i % 7)) + 1)
    f(tn.ones(4))


def trace_interpreted(i):
    f = tn.compile(lambda x: tn.exp(x * i) + 1, optimization_level=0)
    f(tn.ones(4))


def trace_gradient(i):
    f = tn.compile(tn.grad(lambda x: tn.sum(tn.exp(x) * (i % 7))))
    f(tn.ones(4))


def trace_sizes(i):
    f = tn.compile(lambda x: tn.sum(x * 2))
    f(tn.ones(2 + i % 5))
    f(tn.ones(8 + i % 5))


def trace_state(i):
    state = {"n": tn.ones(4)}

    @tn.compile(inputs=state, outputs=state)
    def f(x):
        state["n"] = state["n"] + x

    f(tn.ones(4))


def trace_failing(i):
    def f(x):
        raise KeyError(i)

    with pytest.raises(KeyError):
        tn.compile(f)(tn.ones(4))


@pytest.mark.resident
@pytest.mark.parametrize("trace", [trace_function, trace_interpreted, trace_gradient, trace_sizes,
                                   trace_state, trace_failing])
def test_memory_stays_flat(trace):
    grown, tensors = grown_by(trace)
    assert tensors == 0
    assert grown < 2 << 20  # a leak of a kilobyte a trace would show


def test_classes_of_arguments_do_not_live_for_ever():
    def call():
        class Option:
            pass

        tn.compile(lambda x, o: x + 1)(tn.ones(2), Option())
        return weakref.ref(Option)

    option = call()
    gc.collect()
    assert option() is None
