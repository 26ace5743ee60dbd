"""The options of compile, what it can be applied to, and where traces live."""

import functools
import gc
import inspect
import os
import subprocess
import sys
import threading
import weakref

import numpy as np
import pytest

import tenon as tn


def test_names_docs_and_signatures_are_kept():
    def f(x, *, scale: float = 2.0):
        """Scales."""
        return x * scale

    g = tn.compile(f)
    assert (g.__name__, g.__doc__) == ("f", "Scales.")
    assert inspect.signature(g) == inspect.signature(f)
    assert "__tenon_traces__" not in vars(g)


def test_ways_to_write_it():
    @functools.partial(tn.compile, shapeless=True)
    def a(x):
        return x + 1

    @tn.compile(optimization_level=1)
    def b(x):
        return x + 1

    c = tn.compile(functools.partial(lambda x, y: x + y, y=1))
    for f in (a, b, c, tn.compile(tn.negative)):
        assert f(tn.array(-1.0)).item() in (0, 1)


class Scale:
    def __init__(self, by):
        self.by = by

    @tn.compile
    def apply(self, x):
        return x * self.by

    def plain(self, x):
        return x * self.by

    def __call__(self, x):
        return x * self.by


def test_methods_belong_to_their_instance_and_keep_none_alive():
    two, three = Scale(2), Scale(3)
    assert [s.apply(tn.array(1.0)).item() for s in (two, three, two)] == [2, 3, 2]
    assert tn.compile(two.plain)(tn.array(1.0)).item() == 2
    assert tn.compile(three)(tn.array(1.0)).item() == 3
    gone = weakref.ref(two)
    del two
    gc.collect()
    assert gone() is None
    assert three.apply(tn.array(2.0)).item() == 6


def test_modules_are_compiled_with_their_parameters():
    model = tn.nn.Linear(2, 2)
    x = tn.ones((1, 2))
    for f in (tn.compile(model), tn.compile(model.forward)):
        assert np.allclose(f(x), model(x))
        model.weight = model.weight * 2
        assert np.allclose(f(x), model(x))
        assert f.stats().traces == 1


def test_compiling_again_finds_the_traces():
    calls = []

    def f(x):
        calls.append(None)
        return x + 1

    for _ in range(3):
        assert tn.compile(f)(tn.array(1)).item() == 2
    assert len(calls) == 1
    tn.compile(f, shapeless=True)(tn.array(1))
    assert len(calls) == 2

    @functools.wraps(f)
    def g(x):
        return x + 2

    assert tn.compile(g)(tn.array(1)).item() == 3


def test_traces_die_with_the_function():
    kept = tn.ones(1000) + 0
    tn.eval(kept)
    before = tn.memory.active_memory()

    def f(x):
        return x + (kept * 1)

    tn.compile(f)(tn.ones(1000))
    gone = weakref.ref(f)
    del f
    assert gone() is None  # without a collection
    assert tn.memory.active_memory() <= before


def test_many_lambdas_stay_within_bounds():
    x = tn.ones(16)
    tn.compile(lambda x: tn.exp(x) + 1)(x)
    for _ in range(300):
        f = tn.compile(lambda x: tn.exp(x) + 1)
        f(x)
        assert f.stats().kernel_compiles == 0


def test_stats_count_what_calls_did():
    f = tn.compile(lambda x: tn.exp(x) * 3.25 - 0.125)
    for n in [2, 3, 4, 5, 4]:
        f(tn.ones(n))
    stats = f.stats()
    assert (stats.traces, stats.hits) == (2, 3)
    assert stats.traces_by_reason == {"first": 1, "size": 1}
    assert stats.graph_compiles == 2
    assert stats.replans == 2
    assert stats.kernel_compiles <= 2


def test_disabling():
    calls = []
    f = tn.compile(lambda x: calls.append(1) or x + 1)
    f(tn.array(1)), f(tn.array(1))
    assert len(calls) == 1
    with tn.disable_compile():
        f(tn.array(1)), f(tn.array(1))
        assert len(calls) == 3
        with tn.enable_compile():
            f(tn.array(1))
        assert len(calls) == 3
        f(tn.array(1))
    f(tn.array(1))
    assert len(calls) == 4


@pytest.mark.parametrize(("value", "calls"), [("1", 2), ("0", 1), ("", 1)])
def test_disabling_by_the_environment(value, calls):
    code = "import tenon as tn; f = tn.compile(lambda x: print('c') or x); f(1); f(1)"
    run = subprocess.run(
        [sys.executable, "-c", code],
        capture_output=True,
        text=True,
        check=True,
        env={**os.environ, "TENON_DISABLE_COMPILE": value},
    )
    assert run.stdout.split() == ["c"] * calls


def test_memory_limits():
    def f(x):
        return tn.sort(x) + 1

    x = tn.ones(1 << 18)
    for limit in (1 << 30, "1GB", "1.5 gib", None):
        tn.compile(f, memory_limit=limit)(x)
    with pytest.raises(MemoryError, match=r"is 500000 bytes, the smallest peak is \d+"):
        tn.compile(f, memory_limit="500KB")(x)


@pytest.mark.parametrize(
    ("options", "error", "text"),
    [
        ({"mode": "fast"}, ValueError, "mode is one of 'default', 'reduce-overhead'"),
        ({"backend": "gpu"}, ValueError, "backend is one of 'cpu', 'interpreter', not 'gpu'"),
        ({"memory_limit": "much"}, ValueError, "memory_limit is bytes or text like '512MB'"),
        ({"timeout": -1}, ValueError, "timeout is a number of seconds"),
        ({"timeout": (1, "x")}, ValueError, "one of 'interpret', 'error'"),
        ({"donate_argnums": "x"}, TypeError, "donate_argnums are integers"),
        ({"donate_argnums": -3}, IndexError, "no argument -3 of 1 in donate_argnums"),
        ({"donate_argnums": 1}, IndexError, "no argument 1 of 1 in donate_argnums"),
        ({"static_argnums": (0, 4)}, IndexError, "no argument 4 of 1 in static_argnums"),
        ({"optimization_level": 9}, ValueError, "optimization_level is 0 to 5"),
    ],
)
def test_wrong_options(options, error, text):
    with pytest.raises(error, match=text):
        tn.compile(lambda x: x, **options)


def test_options_that_are_taken():
    for options in (
        {"mode": "max-autotune"},
        {"backend": "interpreter"},
        {"backend": "cpu", "mode": "default"},
    ):
        assert tn.compile(lambda x: tn.exp(x), **options)(tn.array(0.0)).item() == 1


def test_one_trace_for_many_threads():
    traces, barrier = [], threading.Barrier(8)

    def f(x):
        traces.append(1)
        return tn.exp(x) + 1

    f = tn.compile(f)
    results = []

    def work():
        barrier.wait()
        results.append(f(tn.zeros(3)).tolist())

    threads = [threading.Thread(target=work) for _ in range(8)]
    for t in threads:
        t.start()
    for t in threads:
        t.join()
    assert results == [[2, 2, 2]] * 8
    assert len(traces) == 1


def test_transforms_do_not_trace_again():
    calls = []

    def f(x, w):
        calls.append(1)
        return tn.sum(tn.tanh(x @ w) ** 2)

    f = tn.compile(f)
    w = tn.ones((3, 2)) / 2
    for n in [2, 3, 4, 5, 4, 3]:
        x = tn.ones((n, 3)) / 4
        tn.grad(f, argnums=1)(x, w)
        tn.vmap(f, in_axes=(0, None))(tn.ones((7, n, 3)), w)
        tn.jvp(f, (x, w), (x, w))
        f(x, w)
    assert len(calls) <= 2


class Holder:
    def __init__(self, x):
        self.x = x


@pytest.mark.parametrize(
    ("f", "text"),
    [
        (lambda x: {x}, "the result is a set"),
        (lambda x: [x, (y for y in [x])], r"the result at \[1\] is a generator"),
        (lambda x: {"a": Holder(x)}, r"the result at \['a'\] is a Holder"),
    ],
)
def test_results_are_trees(f, text):
    with pytest.raises(TypeError, match=text):
        tn.compile(f)(tn.ones(2))


@pytest.mark.filterwarnings("ignore:coroutine")
def test_functions_without_end_and_coroutines():
    f = tn.compile(lambda x: f(x) + 1)
    with pytest.raises(RecursionError):
        f(tn.ones(1))

    async def g(x):
        return x

    with pytest.raises(TypeError, match="the result is a coroutine"):
        tn.compile(g)(tn.ones(1))


def test_constants_in_results():
    marker = object()
    f = tn.compile(lambda x: (x, None, "text", 3, marker))
    for _ in range(2):
        assert f(tn.ones(1))[1:] == (None, "text", 3, marker)


def test_open_sizes_in_nested_functions():
    inner = tn.compile(lambda x: tn.exp(x) + 1)
    outer = tn.compile(lambda x: inner(x) * 2 + tn.sum(inner(x)))
    for n in (2, 3, 4, 5):
        x = tn.ones(n)
        want = (tn.exp(x) + 1) * 2 + tn.sum(tn.exp(x) + 1)
        assert np.array_equal(outer(x), want)
        assert np.array_equal(inner(x), tn.exp(x) + 1)
    assert outer.stats().traces == 2
    assert inner.stats().traces <= 4


def test_checkpoints_and_batches_inside():
    block = tn.checkpoint(lambda y: tn.sin(y) * y)
    f = tn.compile(tn.value_and_grad(lambda x: tn.sum(tn.vmap(block)(x))))
    for n in (2, 3, 4, 5):
        x = tn.ones((n, 2))
        value, gradient = f(x)
        assert np.allclose(gradient, tn.cos(x) * x + tn.sin(x))
        assert np.allclose(value, tn.sum(tn.sin(x) * x))
    assert f.stats().traces == 2


def test_threads_with_mixed_calls():
    """Sizes, numbers, element types, derivatives and nested functions, all at once."""
    inner = tn.compile(lambda x, c: tn.tanh(x) * c)
    f = tn.compile(lambda x, c: inner(x, 2.0) + c)
    df = tn.grad(lambda x: tn.sum(inner(x, 3.0)))
    wrong = []

    def work(seed):
        for i in range(100):
            n, c = (seed + i) % 5 + 1, float((seed * i) % 3)
            x = tn.ones(n, dtype="float64" if i % 7 == 0 else "float32") / 2
            want = np.tanh(0.5)
            if not np.allclose(f(x, c), want * 2 + c, atol=1e-6):
                wrong.append((n, c))
            if not np.allclose(df(x), 3 * (1 - want**2), atol=1e-5):
                wrong.append(n)

    threads = [threading.Thread(target=work, args=(s,)) for s in range(8)]
    for t in threads:
        t.start()
    for t in threads:
        t.join()
    assert not wrong


def test_static_arguments_must_not_change():
    f = tn.compile(lambda x, s: x * s[0], static_argnums=1)
    assert f(tn.array(1.0), (3,)).item() == 3
    with pytest.raises(TypeError, match="a static argument cannot be hashed: list"):
        f(tn.array(1.0), [3])


def test_complex_numbers_are_told_apart_by_their_bits():
    f = tn.compile(lambda x, c: x)
    for c in [complex(0, 0.0), complex(0, -0.0), complex(float("nan"), 1)] * 3:
        f(tn.ones(2), c)
    assert f.stats().traces == 3


def test_other_code_of_a_function_is_traced():
    def f(x):
        return x + 1

    compiled = tn.compile(f)
    assert compiled(tn.array(1)).item() == 2
    f.__code__ = (lambda x: x + 5).__code__
    assert compiled(tn.array(1)).item() == 6
