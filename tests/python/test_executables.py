"""Executables beyond the document: ranges, trees, modules, calls, threads, random programs."""

import doctest
import gc
import inspect
import re
import sys
import threading
import weakref

import numpy as np
import pytest

import tenon as tn
import tenon.executables
import tenon.input_infos
from executable_programs import (
    F32,
    Pair,
    Point,
    Wrapped,
    attention,
    doubled,
    normal,
    random_program,
    rearranged,
    same,
    tree_arguments,
    tree_program,
)
from tenon import nn

# Ranges -------------------------------------------------------------------------------------


PROGRAMS = {
    "pointwise": lambda x: tn.tanh(x) * 2 + 1,
    "rows": lambda x: tn.softmax(x, axis=1) - x.mean(axis=0),
    "product": lambda x: x @ x.T,
    "reshaped": lambda x: (x.reshape(-1, 4) + 1).sum(axis=1),
    "joined": lambda x: tn.concat([x, tn.flip(x, axis=0), x[:1]]),
    "sorted": lambda x: tn.sort(x, axis=0),
    "scan": lambda x: tn.scan(lambda h, row: (h + row, tn.tanh(h)), tn.zeros(8), x)[1],
    "size": lambda x: x / x.shape[0],
    "gradient": lambda x: tn.grad(lambda x: tn.sum(tn.exp(x) * x))(x),
}


@pytest.mark.parametrize("name", PROGRAMS)
def test_every_size_of_a_range(name):
    fun = PROGRAMS[name]
    executable = tn.compile(fun, args=[tn.InputInfo(((1, 6, 20), 8), F32)])
    for rows in range(1, 21):
        x = normal(rows, 8, seed=rows)
        same(executable(x), fun(x))


@pytest.mark.parametrize("shape", [lambda n: (64, n, 64), lambda n: (64, 64, n)])
def test_transposes_of_open_sizes(shape):
    """Around whole tiles, and where results are written past the caches."""
    fun = lambda x: x.swapaxes(1, 2) + 1
    executable = tn.compile(fun, args=[tn.InputInfo(shape((1, 16, 512)), F32)])
    for n in (1, 15, 16, 17, 100, 512):
        x = normal(*shape(n), seed=n)
        same(executable(x), fun(x))


def test_several_open_sizes():
    length, depth = (1, 16, 33), tn.NamedDimension("depth", 4, 8, 12)
    keys = tn.NamedDimension("keys", 1, 16, 40)
    shapes = [(length, depth), (keys, depth), (keys, 3)]
    executable = tn.compile(attention, args=[tn.InputInfo(shape, F32) for shape in shapes])
    for n, k, d in [(1, 1, 4), (16, 16, 8), (33, 40, 12), (7, 19, 5)]:
        args = normal(n, d), normal(k, d, seed=1), normal(k, 3, seed=2)
        same(executable(*args), attention(*args))
    with pytest.raises(ValueError, match="dimension `keys` is 5 in k.shape.0. and 6 in v.shape.0."):
        executable(normal(2, 8), normal(5, 8), normal(6, 3))


def test_a_name_shared_with_a_size():
    rows = tn.NamedDimension("rows", 1, 4, 9)

    def fun(x, n):
        return x + tn.arange(n, dtype=F32)

    executable = tn.compile(fun, args=[tn.InputInfo((rows,), F32), tn.DimensionInputInfo(rows)])
    for n in (1, 4, 9):
        same(executable(normal(n), n), fun(normal(n), n))
    with pytest.raises(ValueError, match="dimension `rows` is 3 in x.shape.0. and 4 in n"):
        executable(normal(3), 4)


def test_one_name_with_two_ranges():
    infos = [tn.InputInfo((tn.NamedDimension("n", 1, 2, top),), F32) for top in (3, 4)]
    text = r"dimension `n` is \(1, 2, 3\) in a.shape\[0\] and \(1, 2, 4\) in b"
    with pytest.raises(ValueError, match=text):
        tn.compile(lambda a, b: (a.sum(), b.sum()), args=infos)


def test_a_range_on_which_the_function_is_not_one_program():
    def fun(x):
        return x * 2 if x.shape[0] > 4 else x

    with pytest.raises(ValueError, match=r"fun\(\): .*holds at opt .*and not at min") as error:
        tn.compile(fun, args=[tn.InputInfo(((1, 8, 16),), F32)])
    assert "narrow the range" in str(error.value)
    assert f"{__file__}:" in str(error.value)
    executable = tn.compile(fun, args=[tn.InputInfo(((5, 8, 16),), F32)])
    same(executable(normal(5)), normal(5) * 2)


@pytest.mark.parametrize("number", [lambda x: len(x), lambda x: int(x.shape[0])])
def test_a_size_that_became_a_number(number):
    info = tn.InputInfo(((1, 4, 8),), F32)
    with pytest.raises(ValueError, match=r"hint: use the size itself, x.shape\[i\]"):
        tn.compile(lambda x: x * number(x), args=[info])
    same(tn.compile(lambda x: x * x.shape[0], args=[info])(tn.ones(3)), tn.ones(3) * 3)


def test_ranges_that_begin_with_nothing():
    info = tn.InputInfo(((0, 2, 4), 3), F32)
    executable = tn.compile(lambda x: tn.exp(x).sum(axis=0), args=[info])
    for rows in range(5):
        same(executable(normal(rows, 3)), tn.exp(normal(rows, 3)).sum(axis=0))


@pytest.mark.parametrize("part", range(4))
def test_random_programs(part):
    """At opt, and at other sizes where the program is one on the whole range."""
    ran = 0
    for seed in range(10 * part, 10 * part + 10):
        run, shapes = random_program(seed)
        sizes = {2: (1, 2, 3), 3: (2, 3, 5), 4: (3, 4, 6), 5: (4, 5, 7), 1: (1, 1, 1)}
        named = {n: tn.NamedDimension(f"d{n}", *bounds) for n, bounds in sizes.items()}
        infos = [tn.InputInfo([named[n] for n in shape], F32) for shape in shapes]
        try:
            executable = tn.compile(run, args=infos)
            ran += 1
        except tn.Error as error:
            assert "narrow the range" in str(error), seed
            executable = tn.compile(run, args=[tn.InputInfo(shape, F32) for shape in shapes])
            named = {n: tn.NamedDimension(f"d{n}", n, n, n) for n in sizes}
        for end in ("opt", "min", "max"):
            at = [[getattr(named[n], end) for n in shape] for shape in shapes]
            values = [normal(*shape, seed=i) for i, shape in enumerate(at)]
            same(executable(*values), run(*values))
    assert ran >= 3


# Trees --------------------------------------------------------------------------------------


def test_trees_of_arguments_and_results():
    names = ["pair.left", "pair.right", "point.x", "point.y", "rest[1]"]
    assert list(tree_program().input_infos) == names
    for n in (1, 4):
        made = tree_program()(*tree_arguments(n))
        same(made, rearranged(*tree_arguments(n)))
        assert type(made["pair"]) is Pair and type(made["point"]) is Point
        assert made["pair"].label == "made"


def test_registered_trees():
    info = tn.InputInfo((2,), F32)
    executable = tn.compile(lambda w: Wrapped(w.inside * 2), args=[Wrapped(info)])
    made = executable(Wrapped(tn.ones(2)))
    assert type(made) is Wrapped and made.inside.tolist() == [2, 2]


def test_constants_inside_trees():
    pair, point, rest = tree_arguments(2)
    same(tree_program()(pair, point, [{"scale": None}, rest[1]]), rearranged(pair, point, rest))
    with pytest.raises(ValueError, match=r"`rest\[0\].scale` is a constant .*: 3.0, not 4.0"):
        tree_program()(pair, point, [{"scale": 4.0}, rest[1]])


def test_trees_that_differ():
    pair, point, rest = tree_arguments(2)
    text = r"rearranged\(\): argument `rest` and what it was compiled for differ"
    with pytest.raises(ValueError, match=text):
        tree_program()(pair, point, rest[:1])
    with pytest.raises(ValueError, match=text):
        tree_program()(pair, point, [{"other": 3.0}, rest[1]])
    with pytest.raises(TypeError, match="argument `rest.1.` is not a tensor: NoneType"):
        tree_program()(pair, point, [{"scale": 3.0}, None])
    with pytest.raises(ValueError, match="argument `point` and what it was compiled for differ"):
        tree_program()(pair, tuple(point), rest)


def test_results_that_are_inputs_or_constants():
    fixed = tn.array([1.0, 2.0])

    def fun(x):
        y = x + 1
        return x, fixed, y, y, tn.zeros(3), tn.arange(4)

    executable = tn.compile(fun, args=[tn.InputInfo((2,), F32)])
    x = normal(2)
    same(executable(x), fun(x))


def test_a_function_without_inputs():
    executable = tn.compile(lambda: tn.arange(3) * 2, args=[])
    assert executable().tolist() == [0, 2, 4]
    with pytest.raises(TypeError, match="1 arguments given, 0 can have a position"):
        executable(3)


def test_names_that_clash_or_are_no_identifiers():
    def fun(rest0, *rest, **named):
        return rest0 + 2 * rest[0] + 3 * named["class"] + 4 * named["a b"]

    info = tn.InputInfo((), F32)
    executable = tn.compile(fun, args=[info, info], kwargs={"class": info, "a b": info})
    assert str(inspect.signature(executable)) == "(rest0, rest0_, *, class_, a_b)"
    one = tn.array(1.0)
    assert executable(one, one, class_=one, a_b=one).item() == 10


def test_none_among_results():
    info = tn.InputInfo((2,), F32)
    for result, where in (
        (lambda x: {"a": x, "b": None}, r"return value\['b'\]"),
        (lambda x: (x, [x, None]), "return value"),
        (lambda x: [None, x], "return value 0"),
    ):
        with pytest.raises(TypeError, match=where + " is not a tensor: None"):
            tn.compile(result, args=[info])


# Modules ------------------------------------------------------------------------------------


def test_a_model():
    model = nn.Sequential(nn.Linear(8, 32), nn.gelu, nn.Linear(32, 4))
    executable = tn.compile(model, args=[tn.InputInfo(((1, 4, 64), 8), F32)])
    for rows in (1, 4, 13, 64):
        same(executable(normal(rows, 8)), model(normal(rows, 8)))


def test_constants_are_computed_once():
    weight = tn.exp(normal(64, 64))  # pending
    executable = tn.compile(lambda x: x @ weight, args=[tn.InputInfo((2, 64), F32)])
    assert "exp" not in executable.show("graph")
    same(executable(normal(2, 64)), normal(2, 64) @ weight)


def test_a_module_that_changes_itself_is_refused():
    class Counting(nn.Module):
        def __init__(self):
            self.seen = tn.zeros(3)

        def forward(self, x):
            self.seen = self.seen + x
            return self.seen

    model = Counting()
    before = model.seen
    with pytest.raises(ValueError, match=r"Counting\(\) assigns to Counting.seen"):
        tn.compile(model, args=[tn.InputInfo((3,), F32)])
    assert model.seen is before


# Calls --------------------------------------------------------------------------------------


def test_arrays_of_other_libraries():
    a = np.arange(3, dtype=np.float32)
    made = doubled()(a)
    a[:] = 0
    assert made.tolist() == [0, 2, 4]
    torch = pytest.importorskip("torch")
    assert doubled()(torch.ones(3)).tolist() == [2, 2, 2]


def test_pending_arguments():
    x = tn.ones(3) + 1
    assert doubled()(x).tolist() == [4, 4, 4]


def test_inside_transforms_and_compiled_functions():
    with pytest.raises(tn.Error, match="an executable cannot run inside"):
        tn.compile(lambda x: doubled()(x) + 1)(tn.ones(3))
    with pytest.raises(tn.Error, match="an executable cannot run inside"):
        tn.grad(lambda x: doubled()(x).sum())(tn.ones(3))


def test_backward_refuses_what_an_executable_made():
    x = tn.ones(3, requires_grad=True)
    made = doubled()(x)
    assert made.tolist() == [2, 2, 2]
    with pytest.raises(tn.Error, match="by an executable"):
        (made.sum() + x.sum()).backward()
    assert x.grad is None
    (made.detach().sum() + x.sum()).backward()
    assert x.grad.tolist() == [1, 1, 1]


def test_threads():
    failures = []

    def work(seed):
        try:
            for n in range(1, 60):
                x = normal(n + seed, seed=seed)
                same(doubled()(x), x * 2)
        except BaseException as error:
            failures.append(error)

    threads = [threading.Thread(target=work, args=(seed,)) for seed in range(6)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert not failures


def test_other_threads_run_meanwhile():
    executable = tn.compile(lambda x: x @ x @ x, args=[tn.InputInfo((500, 500), F32)])
    x = normal(500, 500)
    tn.eval(x)
    counted, done = [0], threading.Event()

    def count():
        while not done.wait(0.0001):
            counted[0] += 1

    interval = sys.getswitchinterval()
    sys.setswitchinterval(60)  # nobody gets Python's lock who is not given it
    counter = threading.Thread(target=count)
    counter.start()
    try:
        before = counted[0]
        for _ in range(500):
            executable(x)
            if counted[0] > before:
                break
        assert counted[0] > before
    finally:
        sys.setswitchinterval(interval)
        done.set()
        counter.join()


def test_an_object_that_was_never_made():
    with pytest.raises(TypeError, match="never initialised"):
        tn.Executable.__new__(tn.Executable)(tn.ones(2))


def test_it_dies_with_its_last_reference():
    executable = tn.compile(lambda x: x + 1, args=[tn.InputInfo((2,), F32)])
    gone = weakref.ref(executable)
    del executable
    gc.collect()
    assert gone() is None


# Options ------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    "options, text",
    [
        ({"shapeless": True}, "compile: shapeless does not apply to executables: True"),
        ({"inputs": [{}]}, "compile: inputs does not apply to executables"),
        ({"memory_limit": "1KB"}, "memory_limit is 1000 bytes, the smallest peak is 8000 bytes"),
        ({"memory_limit": "much"}, "memory_limit is bytes or text like"),
        ({"args": 3}, "compile: args is a list of arguments, not 3"),
        ({"args": [], "kwargs": []}, "compile: kwargs is a dict of arguments by name"),
        ({"args": []}, "compile: double(x): missing a required argument: 'x'"),
        ({"args": [1, 2]}, "compile: double(x): too many positional arguments"),
        ({"kwargs": {"y": 1}}, "compile: double(x): missing a required argument: 'x'"),
    ],
)
def test_options_that_do_not_fit(options, text):
    def double(x):
        return x + x

    options.setdefault("args", [tn.InputInfo((2000,), F32)])
    if "y" in options.get("kwargs", {}):
        del options["args"]
    with pytest.raises(tn.Error, match=re.escape(text)) as error:
        tn.compile(double, **options)
    assert f"{__file__}:" in str(error.value)


def test_a_size_is_no_result_and_the_hint_makes_one():
    with pytest.raises(TypeError, match=r"hint: tn.full\(\(\), size\)"):
        tn.compile(lambda x: x.shape[0], args=[tn.InputInfo(((1, 4, 8),), F32)])
    made = tn.compile(lambda x: tn.full((), x.shape[0]), args=[tn.InputInfo(((1, 4, 8),), F32)])
    assert made(tn.ones(3)).item() == 3


def test_defaults_are_constants():
    run = tn.compile(lambda x, by=3: x * by, args=[tn.InputInfo((2,), F32)])
    assert run(tn.ones(2)).tolist() == [3, 3]
    with pytest.raises(TypeError, match="`by` was given when it was compiled"):
        run(tn.ones(2), by=4)


def test_hints_tell_what_has_no_position():
    def f(x, *, y):
        return x + y

    info = tn.InputInfo((2,), F32)
    run = tn.compile(f, args=[info], kwargs={"y": info})
    with pytest.raises(TypeError, match=r"it takes \(x, \*, y\)"):
        run(tn.ones(2), tn.ones(2))


def test_memory_is_known_before_the_run():
    assert doubled().peak_bytes == 4000
    assert doubled().memory().peak == 16  # at the best size


def test_c_source():
    executable = tn.compile(lambda x: x * 2, args=[tn.InputInfo((4,), F32)])
    assert "void" in executable.source("c")
    with pytest.raises(ValueError, match="no language"):
        executable.source("fortran")


def test_sizes_that_vary_have_no_c_source():
    with pytest.raises(ValueError, match="symbolic sizes"):
        doubled().source()


def test_stages_and_counts():
    assert "multiply" in doubled().show("graph")
    with pytest.raises(ValueError, match="stage"):
        doubled().show("nothing")
    before = doubled().stats().calls
    doubled()(tn.ones(3))
    stats = doubled().stats()
    assert stats.calls == before + 1
    assert stats.origin == "compiled" and stats.kernels >= 1
    assert repr(stats).startswith("ExecutableStats(calls=")


def test_surfaces_that_are_broken():
    from tenon import surface

    infos = [tn.InputInfo((2,), F32)]
    good = surface.write([surface.Parameter("x", inspect.Parameter.KEYWORD_ONLY, infos[0])], None)
    parameters, results = surface.read(good, ["x"], infos, 1)
    assert parameters[0].name == "x" and results is None
    for text in (
        "[]",
        "{",
        good[:-2],
        good.replace("tensor", "size"),
        good.replace('"*"', '["list", 2]'),
        good.replace('"*"', '["list", -1]'),
        good.replace('"results":null', '"results":["*","*"]'),
        good.replace("[\"x\",3", "[\"x\",9"),
        '{"parameters":[],"fixed":[],"results":null}',
        "[" * 100000,
    ):
        with pytest.raises(ValueError, match="load: the trees .* are damaged"):
            surface.read(text, ["x"], infos, 1)


@pytest.mark.parametrize("module", [tenon.executables, tenon.input_infos])
def test_docstrings(module):
    assert doctest.testmod(module, extraglobs={"tn": tn}).failed == 0


def test_slices_that_may_leave_nothing_are_right_on_the_whole_range():
    f = tn.compile(lambda x: x[1:] - x[:-1], args=[tn.InputInfo(((1, 8, 16), 3), tn.float32)])
    for rows in (1, 2, 8, 16):
        x = np.arange(rows * 3, dtype=np.float32).reshape(rows, 3) ** 2
        assert np.array_equal(f(tn.array(x)), x[1:] - x[:-1])


@pytest.mark.host
def test_constants_in_memory_of_others_are_taken_when_compiled():
    weights = np.full(64, 1.0, np.float32)
    shared = tn.from_dlpack(weights)
    f = tn.compile(lambda x: x * shared, args=[tn.InputInfo((64,), tn.float32)])
    weights[:] = 7
    assert f(tn.ones(64)).sum().item() == 64


def test_files_that_are_not_there(tmp_path):
    for caught in (FileNotFoundError, tn.InvalidValue):
        with pytest.raises(caught, match="load: .*nothing.tnx"):
            tn.Executable.load(tmp_path / "nothing.tnx")
    with pytest.raises(TypeError, match="Executable.load"):
        tn.Executable("f.tnx")
    f = tn.compile(lambda x: x, args=[tn.InputInfo((2,), tn.float32)])
    with pytest.raises(ValueError, match="save: the path is empty"):
        f.save("")


def test_tensors_in_args_without_a_described_input_are_told():
    text = r"has no inputs; describe an input by tn.InputInfo\(shape=\(2,\), dtype=tn.float32\)"
    with pytest.warns(UserWarning, match=text) as told:
        tn.compile(lambda x: x + 1, args=[tn.ones(2)])
    assert told[0].filename == __file__
