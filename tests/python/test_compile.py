"""tn.compile: what it computes, when it traces, and how it composes."""

import dataclasses
import doctest
import functools
import gc
import subprocess
import threading
import weakref
from collections import namedtuple

import numpy as np
import pytest

import tenon as tn
from cpp_programs import built_library
from op_harness import Call, bits_of, varying
from tenon import compilation
from test_fuzz import Expression

X = tn.array(np.random.default_rng(0).normal(size=(4, 6)).astype(np.float32))
Y = tn.array(np.random.default_rng(1).normal(size=(6,)).astype(np.float32))


def counted(f):
    """`f`, and a list that grows by every run of it."""
    runs = []

    @functools.wraps(f)
    def wrapper(*args, **kwargs):
        runs.append(1)
        return f(*args, **kwargs)

    return wrapper, runs


def same(f, *args, level=3, **kwargs):
    """Checks that two compiled calls give the bits of the plain one."""
    want = tn.tree.flatten(f(*args, **kwargs))
    compiled = tn.compile(f, optimization_level=level)
    for _ in range(2):
        got = tn.tree.flatten(compiled(*args, **kwargs))
        assert got[1] == want[1]
        for a, b in zip(got[0], want[0]):
            assert type(a) is type(b)
            assert bits_of(a) == bits_of(b) if isinstance(a, tn.Tensor) else a == b


SAMPLES = {}
for _sample in tn.testing.samples():
    SAMPLES.setdefault(_sample.op, []).append(_sample)
# The order of sums in these is the compiler's own.
DECLARED = {"scaled_dot_product_attention"}


def calls_of(op):
    """Every sample in float32, and the first in types of other kinds."""
    for number, sample in enumerate(SAMPLES[op]):
        others = [tn.bfloat16, tn.int32, tn.complex64] if varying(sample) and number == 0 else []
        for dtype in [tn.float32, *others]:
            yield Call(sample, dtype)


@pytest.mark.parametrize("op", sorted(SAMPLES))
def test_every_op_has_the_bits_of_the_interpreter(op):
    for call in calls_of(op):
        operands = call.operands()
        try:
            want = call.run(operands)
            tn.eval(want)
        except (TypeError, ValueError):
            continue
        try:
            got = tn.compile(call.sample.call)(*operands)
        except ValueError as error:
            assert "depends on values" in str(error), f"{call.sample}: {error}"
            continue
        if op in DECLARED:
            flat = zip(tn.tree.leaves(got), tn.tree.leaves(want))
            for a, b in flat:
                np.testing.assert_allclose(
                    a.astype(tn.float32).numpy(), b.astype(tn.float32).numpy(), 1e-2, 1e-5
                )
        else:
            assert bits_of(got) == bits_of(want), f"{call.sample} {call.dtype.name}"


@pytest.mark.parametrize("level", range(6))
def test_levels_give_the_same_bits(level):
    def layer(x, w):
        h = tn.tanh(x @ w + 1)
        return h / tn.sum(tn.exp(h), axis=-1, keepdims=True), tn.mean(h)

    same(layer, X, tn.reshape(tn.arange(18, dtype=tn.float32), (6, 3)) / 18, level=level)


def test_transposed_products_of_complex_numbers():
    numbers = np.random.default_rng(2).normal(size=(2, 33, 33))
    z = tn.array((numbers[0] + 1j * numbers[1]).astype(np.complex64))
    same(lambda x, y: (x @ y).T, z, z[::-1])


def test_trees_of_slices_stay_small_kernels():
    def pairs(x):
        while x.shape[0] > 1:
            x = x[::2] + x[1::2]
        return x

    numbers = tn.arange(2**13, dtype=tn.float32)
    same(pairs, numbers)
    assert tn.show(pairs, numbers, what="loops").count(" load ") < 2000


def test_many_doublings():
    def doubled(x):
        for _ in range(70):
            x = x + x
        return x, x * tn.exp(x[:, ::-1])

    same(doubled, X)


@pytest.mark.parametrize("part", range(4))
def test_random_expressions(part):
    for seed in range(25 * part, 25 * part + 25):
        expression = Expression(seed)
        inputs = [tn.asarray(v.astype(np.float32)) for v in expression.inputs]

        def program(*values, steps=expression.steps):
            values = list(values)
            for step in steps:
                values.append(step(tn, values))
            return values[len(expression.inputs) :][seed % 3 :]  # some results are not returned

        want = bits_of(program(*inputs))
        for level in (1, 3):
            got = tn.compile(program, optimization_level=level)
            assert bits_of(got(*inputs)) == want, f"seed {seed}\n{got.show('graph')}"


# Trees and keys -------------------------------------------------------------------------------

Point = namedtuple("Point", "x y")


@dataclasses.dataclass
class Params:
    w: tn.Tensor
    name: str = dataclasses.field(default="a", metadata={"static": True})


def test_arguments_and_results_are_trees():
    def f(p, q, *, r):
        return {"a": [p["w"] + 1, None], "b": Point(q.x * 2, q.y), "c": r}, (), "text", 3

    same(f, {"w": X}, Point(Y, Y + 1), r=Params(X, "b"))


def test_outputs_may_repeat_be_arguments_or_constants():
    k = tn.ones(3) * 2
    same(lambda x: (x, x, k, x + 1, k, tn.array(1.5), tn.zeros((0, 2))), X)
    same(lambda x: None, X)
    same(lambda: (tn.arange(3), tn.ones(2)))


def test_a_trace_serves_calls_of_one_kind():
    f, runs = counted(lambda x, **kw: x * 2 if kw.get("k") is None else x * 3)
    g = tn.compile(f)
    g(X), g(X + 1), g(tn.zeros((4, 6)))
    assert len(runs) == 1
    g(Y), g(X.astype(tn.float64)), g(X, k=None), g(X, k="a"), g(X, k="a")
    assert len(runs) == 5


@pytest.mark.parametrize(
    "values",
    [
        [1, True, 1.0],
        [[5], (5,)],
        ["a", "b"],
        [0.0, -0.0],
        [float("nan"), float("inf")],
        [{"a": 1, "b": 2}, {"b": 2, "a": 1}],
        [Params(1.0, "a"), Params(1.0, "b")],
    ],
)
def test_values_that_are_told_apart(values):
    made = [tn.compile(lambda x, v: (x, repr(v)))(X, v)[1] for v in values]
    f = tn.compile(lambda x, v: (x, repr(v)))
    for _ in range(2):
        assert [f(X, v)[1] for v in values] == made


def test_static_values_that_are_told_apart():
    values = [(1,), (True,), (1.0,), (0.0,), (-0.0,), ((1, "a"),), ((1, "b"),), 1, True]
    f, runs = counted(lambda x, v: (x, repr(v)))
    g = tn.compile(f, static_argnums=1)
    for _ in range(2):
        assert [g(X, v)[1] for v in values] == [repr(v) for v in values]
    assert len(runs) == len(values)
    with pytest.raises(TypeError, match="a static argument cannot be hashed: numpy.ndarray"):
        g(X, np.ones(2)), g(X, np.ones(2))


def test_arrays_of_numpy_are_tensors():
    f, runs = counted(lambda x: x + 1)
    g = tn.compile(f)
    a = np.ones(3, np.float32)
    assert g(a).tolist() == [2, 2, 2]
    a[:] = 5
    assert g(a).tolist() == [6, 6, 6]
    assert len(runs) == 1


def test_lazy_arguments_are_computed_first():
    f = tn.compile(lambda a, b: a + b)
    assert bits_of(f(X * 2, tn.exp(Y))) == bits_of(X * 2 + tn.exp(Y))


def test_closures_are_constants():
    scale = tn.ones(6) * 3
    f = tn.compile(lambda x: x * scale)
    assert bits_of(f(X)) == bits_of(X * 3)
    scale = scale * 2
    assert bits_of(f(X)) == bits_of(X * 3)


def test_static_arguments():
    def f(x, n, axis=0):
        return [tn.sum(x, axis=axis) for _ in range(n)]

    for g in (
        tn.compile(f, static_argnums=(1, 2)),
        tn.compile(f, static_argnames=["n", "axis"]),
        tn.compile(static_argnums=-2, static_argnames="axis")(f),
    ):
        assert len(g(X, 2)) == 2 and len(g(X, n=3, axis=1)) == 3
        assert g(X, 1, axis=1)[0].shape == (4,)
    with pytest.raises(ValueError, match="no argument 'm' for static_argnames"):
        tn.compile(f, static_argnames="m")
    with pytest.raises(TypeError, match="a static argument is a tensor: f32\\[6\\]"):
        tn.compile(f, static_argnums=1)(X, Y)
    with pytest.raises(TypeError, match="static_argnums are integers"):
        tn.compile(f, static_argnums=["n"])


# Composition ----------------------------------------------------------------------------------


def loss(w, x):
    return tn.mean(tn.tanh(x @ w) ** 2)


W = tn.array(np.random.default_rng(2).normal(size=(6, 3)).astype(np.float32))


def test_derivatives_of_compiled_functions_and_compiled_derivatives():
    want = bits_of(tn.grad(loss)(W, X))
    f, runs = counted(loss)
    compiled = tn.compile(f)
    assert bits_of(tn.compile(tn.grad(loss))(W, X)) == want
    for _ in range(2):
        assert bits_of(tn.grad(compiled)(W, X)) == want
        assert bits_of(tn.compile(tn.grad(compiled))(W, X)) == want
    assert len(runs) == 1
    second = tn.grad(lambda w: tn.sum(tn.grad(loss)(w, X) ** 2))
    of_compiled = tn.grad(lambda w: tn.sum(tn.grad(compiled)(w, X) ** 2))
    np.testing.assert_allclose(of_compiled(W).numpy(), second(W).numpy(), 1e-5, 1e-7)


def test_vmap_of_compiled():
    f = tn.compile(lambda x, y: tn.sum(x * y))
    assert bits_of(tn.vmap(f, (0, None))(X, Y)) == bits_of(tn.vmap(f.__wrapped__, (0, None))(X, Y))
    same(tn.vmap(tn.grad(f)), X, X + 1)


def test_compiled_inside_compiled_is_a_part_of_it():
    inner = tn.compile(lambda x: tn.exp(x) + 1)
    outer = tn.compile(lambda x: inner(x) * inner(x + 1))
    assert bits_of(outer(X)) == bits_of((tn.exp(X) + 1) * (tn.exp(X + 1) + 1))
    assert "call" in outer.show("graph")


def test_a_function_made_inside_a_derivative_closes_over_its_values():
    def f(w):
        return tn.sum(tn.compile(lambda x: x * w)(Y) * w)

    assert bits_of(tn.grad(f)(Y)) == bits_of(tn.grad(lambda w: tn.sum(Y * w * w))(Y))


def test_one_compiled_function_that_closes_over_values_of_traces():
    weight = [Y]
    f = tn.compile(lambda x: x * weight[0])

    def g(w):
        weight[0] = w
        return tn.sum(f(Y))

    assert bits_of(tn.grad(g)(Y)) == bits_of(Y)
    assert bits_of(tn.grad(g)(Y * 2)) == bits_of(Y)
    weight[0] = Y
    assert bits_of(f(Y)) == bits_of(Y * Y)


def test_control_flow_and_custom_functions_inside():
    @tn.custom_function
    def clipped(x):
        return tn.clip(x, -1, 1)

    @clipped.vjp
    def clipped_vjp(x, ct, y):
        return ct * 3

    def f(x):
        y, _ = tn.scan(lambda c, row: (c + tn.tanh(row), c), Y * 0, x)
        y = tn.cond(tn.sum(y) > 0, lambda v: v * 2, lambda v: v - 1, y)
        return tn.sum(clipped(y))

    same(f, X)
    compiled = tn.compile(f)
    want = bits_of(tn.grad(f)(X))
    assert bits_of(tn.compile(tn.grad(f))(X)) == want
    for _ in range(2):
        assert bits_of(tn.grad(compiled)(X)) == want


def test_random_keys_are_arguments():
    same(lambda key: tn.random.normal((3, 2), key=key), tn.random.key(3))


def test_methods_partials_and_ops():
    class Model:
        scale = 2

        @tn.compile
        def run(self, x):
            return x * self.scale

    model = Model()
    assert bits_of(model.run(X)) == bits_of(X * 2)
    assert bits_of(tn.compile(functools.partial(tn.add, Y))(X)) == bits_of(X + Y)
    assert bits_of(tn.compile(tn.exp)(X)) == bits_of(tn.exp(X))
    assert tn.compile(tn.compile(tn.exp))(X).shape == (4, 6)
    assert tn.compile(loss).__name__ == "loss"


# Effects, errors, threads, memory --------------------------------------------------------------


def test_prints_and_checks_run_with_every_call(capsys):
    @tn.compile
    def f(x):
        tn.print("sum {}", tn.sum(x))
        tn.check(tn.all(x > 0), "low: {}", tn.min(x))
        tn.print("done")
        return x * 2

    f(tn.ones(2)), f(tn.ones(2) * 2)
    assert capsys.readouterr().out == "sum 2.\ndone\nsum 4.\ndone\n"
    with pytest.raises(ValueError, match="check: low: -1"):
        f(-tn.ones(2))
    quiet = tn.compile(lambda x: tn.print("x {}", x))
    capsys.readouterr()
    assert quiet(tn.ones(1)) is None and quiet(tn.ones(1)) is None
    assert capsys.readouterr().out == "x [1.]\nx [1.]\n"
    tn.compile(lambda x: f(x) + 1)(tn.ones(2))
    assert capsys.readouterr().out == "sum 2.\ndone\n"
    tn.grad(lambda x: tn.sum(f(x)))(tn.ones(2))
    assert capsys.readouterr().out == "sum 2.\ndone\n"


def test_errors_name_the_line_and_leave_nothing_behind():
    @tn.compile
    def branches(x):
        if tn.sum(x) > 0:
            return x
        return -x

    for _ in range(2):
        with pytest.raises(ValueError, match="(?s)compile: cannot evaluate.*test_compile"):
            branches(X)
    kept = []
    leak = tn.compile(lambda x: kept.append(x) or x)
    leak(X)
    with pytest.raises(ValueError, match="was used after the trace ended"):
        kept[0].eval()
    with pytest.raises(ZeroDivisionError):
        tn.compile(lambda x: x / (1 // 0))(X)
    assert bits_of(tn.exp(X)) == bits_of(tn.compile(tn.exp)(X))
    with pytest.raises(TypeError, match="compile: not a function: int"):
        tn.compile(3)
    with pytest.raises(ValueError, match="optimization_level is 0 to 5, not 7"):
        tn.compile(tn.exp, optimization_level=7)
    with pytest.raises(TypeError, match="missing"):
        tn.compile(lambda x, y: x)(X)
    with pytest.raises(ValueError, match="pass: no pass named 'cannon'"):
        tn.compile(tn.exp, off=["cannon"])(X)


@pytest.mark.parametrize("off", [[], ["canon", "fold"], ["cse"], ["fuse"], ["epilogue", "bundle"]])
def test_what_is_switched_off_changes_no_bits(off):
    def f(x, w):
        y = tn.gelu(x @ w + 1) * 1
        return tn.softmax(y, axis=-1), tn.layer_norm(y) + y, tn.sum(y * y, axis=0)

    compiled = tn.compile(f, off=off)
    assert bits_of(compiled(X, W)) == bits_of(f(X, W))


def test_stages_by_name():
    f = tn.compile(lambda x: tn.exp(x) + 1)
    with pytest.raises(ValueError, match="show: the function has not been traced yet"):
        f.show("graph")
    assert "exp %x0 : f32[4,6]" in f.show("graph", X)
    assert f.show("graph") == tn.show(f, X) == tn.show(f.__wrapped__, X)
    for stage in ("optimized", "loops", "kernels", "plan", "memory", "decisions"):
        assert isinstance(f.show(stage), str)
    assert "exp" in f.show("loops") and "exp" in f.show("optimized")
    assert "step 0: " in f.show("plan") and "return t0" in f.show("plan")
    assert "test_compile.py" in f.show("plan")
    if tn.default_device().kind != "cuda":
        assert ".text" in f.show("kernels")
    with pytest.raises(ValueError, match='no stage "code": there are graph, optimized, loops'):
        f.show("code")
    with pytest.raises(TypeError, match="the first argument names a stage"):
        f.show(X)


@pytest.mark.host
def test_stages_on_the_command_line(tmp_path):
    library = built_library()
    if library is None or not (library.parent / "tenon").exists():
        pytest.skip("no command: not a build tree")
    file = tmp_path / "graph.tn"
    file.write_text(tn.show(lambda x: tn.exp(x) + 1, X))

    def show(*arguments):
        command = [str(library.parent / "tenon"), "show", *arguments]
        return subprocess.run(command, capture_output=True, text=True)

    assert show(str(file), "--what", "graph").stdout == file.read_text() + "\n"
    assert "exp" in show(str(file), "--what", "loops", "--level", "0").stdout
    for arguments in (["no_file"], [str(file), "--what", "code"], [str(file), "--level", "9"]):
        failed = show(*arguments)
        assert failed.returncode == 1 and failed.stderr.startswith("tenon: ")


def test_memory_of_a_run():
    f = tn.compile(lambda x: (tn.exp(x) @ tn.transpose(x)).sum(axis=0))
    report = f.memory(X)
    assert report.peak >= report.lower_bound > 0
    assert report.outputs >= 16 and report.step_name and report.live[0].bytes > 0
    assert "test_compile.py" in report.live[0].place
    assert repr(report).startswith("peak ")
    assert repr(f.memory()) == repr(report) == f.show("memory")


def test_threads_call_one_function():
    f = tn.compile(lambda x, k: tn.tanh(x @ tn.transpose(x)) * k)
    inputs = [tn.ones((n % 5 + 2, 3)) * n for n in range(40)]
    want = [bits_of(f.__wrapped__(x, 2)) for x in inputs]
    failures = []

    def work(start):
        for i in range(200):
            n = (start + i) % len(inputs)
            if bits_of(f(inputs[n], 2)) != want[n]:
                failures.append(n)

    threads = [threading.Thread(target=work, args=(7 * i,)) for i in range(4)]
    [t.start() for t in threads]
    [t.join() for t in threads]
    assert not failures


def test_functions_and_what_they_hold_are_freed():
    class Owner:
        def __init__(self):
            self.f = tn.compile(lambda x: x * 2 if self else x)
            self.f(X)

    owner = weakref.ref(Owner())
    gc.collect()
    assert owner() is None
    tn.eval(X)

    def grow():
        for i in range(300):
            tn.compile(lambda x, i=i: x + i)(X)
        gc.collect()

    grow()  # which frees what others before it left to the collector
    before = tn.active_memory()
    grow()
    assert tn.active_memory() == before


@pytest.mark.host
def test_examples_of_the_documentation():
    assert doctest.testmod(compilation, extraglobs={"tn": tn}).failed == 0


@pytest.mark.parametrize("sizes", [(2, 3, 4), (20, 30, 40)])
def test_a_product_that_is_wanted_itself_is_not_made_where_another_result_is(sizes):
    def f(x, a, b):
        scaled, product = 0.99 * x, a.T @ b
        return scaled, product, tn.sign(0.9 * scaled + 0.1 * product)

    n, m, k = sizes
    rng = np.random.default_rng(0)
    args = [tn.array(rng.normal(size=s).astype(np.float32)) for s in ((n, m), (k, n), (k, m))]
    for wanted, got in zip(f(*args), tn.compile(f)(*args)):
        assert np.asarray(wanted).tobytes() == np.asarray(got).tobytes()


@pytest.mark.parametrize("reader", [
    lambda y: tn.pad(tn.flip(y), [1, 0]),
    lambda y: tn.gather(tn.flip(y), [tn.array([2, 0])], axes=[0]),
    lambda y: tn.flip(y).reshape(4, 3).mT.reshape(2, 6) @ tn.ones((6, 2)),
])  # fmt: skip
def test_a_view_that_is_wanted_itself_and_read_through_another(reader):
    def f(x):
        y = tn.broadcast_to(tn.exp(x).reshape(3, 1), (3, 4)).reshape(12)
        return y, reader(y)

    x = tn.array([1.0, 2.0, 3.0])
    for wanted, got in zip(f(x), tn.compile(f)(x)):
        assert wanted.tolist() == got.tolist()
