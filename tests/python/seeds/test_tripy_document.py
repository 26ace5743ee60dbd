"""What Tripy's guide and the description of its compiler promise, shown by programs of our own in
their order."""

import functools
import inspect
import os
import pathlib
import re
import subprocess
import sys

import numpy as np
import pytest

import tenon as tn

HERE = f"{__file__}:"


class Gated(tn.Module):
    """A projection whose one half is gated by the other."""

    def __init__(self, dim_in, dim_out):
        self.proj = tn.Linear(dim_in, 2 * dim_out)
        self.dim_out = dim_out

    def __call__(self, x):
        proj = self.proj(x)
        value, gate = tn.split(proj, 2, proj.rank - 1)
        return value * tn.gelu(gate)


@pytest.fixture
def layer():
    return Gated(2, 8)


def same(a, b):
    np.testing.assert_array_equal(np.asarray(a), np.asarray(b))


def refused(message, error=tn.Error):
    """The text is the whole first line; the lines after it have the place of the user's call."""
    return pytest.raises(error, match=f"^{re.escape(message)}")


def line_of(text):
    """The line of this file that ends with `# text`."""
    lines = pathlib.Path(__file__).read_text().splitlines()
    return next(n for n, line in enumerate(lines, 1) if line.endswith(f"  # {text}"))


# The guide: compiling -----------------------------------------------------------------------


def test_a_module_runs_as_it_is(layer):
    assert layer(tn.ones((1, 2))).shape == (1, 8)


def test_a_module_is_compiled_for_described_inputs(layer):
    info = tn.InputInfo(shape=(1, 2), dtype=tn.float32)
    fast = tn.compile(layer, args=[info])
    assert isinstance(fast, tn.Executable)
    x = tn.ones((1, 2))
    same(fast(x), layer(x))


def test_parameters_are_folded_in(layer):
    fast = tn.compile(layer, args=[tn.InputInfo((1, 2), tn.float32)])
    x = tn.array([[0.5, -2.0]])
    before = layer(x).numpy()
    layer.proj.weight = tn.zeros(layer.proj.weight.shape)
    same(fast(x), before)


# The guide: dynamic shapes ------------------------------------------------------------------


def test_a_size_may_be_anything_in_its_range(layer):
    fast = tn.compile(layer, args=[tn.InputInfo(shape=((1, 8, 16), 2), dtype=tn.float32)])
    for rows in range(1, 17):
        x = tn.random.normal((rows, 2), key=tn.random.key(rows))
        same(fast(x), layer(x))
    given = tn.Tensor([[1.0, 2.0], [2.0, 3.0]], dtype=tn.float32)
    same(fast(given), layer(given))


def test_a_size_outside_its_range_is_named(layer):
    info = tn.InputInfo(shape=((1, 8, 16), 2), dtype=tn.float32)  # declared
    fast = tn.compile(layer, args=[info])
    with pytest.raises(ValueError) as error:
        fast(tn.ones((32, 2), dtype=tn.float32))  # called
    text = str(error.value)
    assert text.startswith(
        "Gated(): argument `x` has shape [32,2]; dimension 0 = 32 is outside [1, 16]"
    )
    assert f"{HERE}{line_of('declared')}" in text
    assert f"{HERE}{line_of('called')}" in text


# The guide: saving --------------------------------------------------------------------------


@pytest.mark.parametrize("name", ["executable.json", "model.tnx", "no extension", "ünïcode.bin"])
def test_saved_and_loaded_under_any_name(layer, tmp_path, name):
    fast = tn.compile(layer, args=[tn.InputInfo(((1, 8, 16), 2), tn.float32)])
    path = os.path.join(tmp_path, name)
    fast.save(path)
    loaded = tn.Executable.load(path)
    os.remove(path)  # what is mapped stays
    x = tn.array([[1.0, 2.0], [2.0, 3.0]])
    same(loaded(x), layer(x))
    with pytest.raises(ValueError, match=r"dimension 0 = 17 is outside \[1, 16\]"):
        loaded(tn.ones((17, 2)))


def test_another_process_runs_it(layer, tmp_path):
    path = tmp_path / "gated.tnx"
    tn.compile(layer, args=[tn.InputInfo(((1, 8, 16), 2), tn.float32)]).save(path)
    program = (
        "import sys, tenon as tn\n"
        "run = tn.Executable.load(sys.argv[1])\n"
        "print(run(tn.full((3, 2), 0.25)).tolist())\n"
    )
    done = subprocess.run(
        [sys.executable, "-c", program, path], capture_output=True, text=True, check=True
    )
    assert done.stdout.strip() == str(layer(tn.full((3, 2), 0.25)).tolist())


# The description: what is an input and what is constant --------------------------------------


def add(a, b):
    return a + b


def test_one_executable_serves_all_shapes_of_the_ranges():
    info = tn.InputInfo(shape=((1, 2, 3), 2), dtype=tn.float32)
    compiled = tn.compile(add, args=[info, info])
    for rows in (1, 2, 3):
        a, b = tn.ones((rows, 2)), tn.full((rows, 2), 3.0)
        same(compiled(a, b), a + b)
    assert compiled.stats().kernels_compiled == 0  # since it was made


def test_a_tensor_in_place_of_an_info_is_a_constant():
    b = tn.full((1,), 5.0)
    compiled = tn.compile(add, args=[tn.InputInfo((1,), dtype=tn.float32), b])
    same(compiled(tn.ones((1,))), [6.0])
    assert list(compiled.input_infos) == ["a"]
    with refused("add(): 2 arguments given, 1 can have a position", TypeError):
        compiled(tn.ones((1,)), b)
    with refused("add(): argument `b` was given when it was compiled", TypeError):
        compiled(tn.ones((1,)), b=b)


def test_other_types_are_constants():
    def scaled(x, factor, mode, shape):
        y = x * factor if mode == "times" else x + factor
        return tn.broadcast_to(y, shape)

    info = tn.InputInfo((1, 2), tn.float32)
    compiled = tn.compile(scaled, args=[info, 3], kwargs={"mode": "times", "shape": (4, 2)})
    assert list(inspect.signature(compiled).parameters) == ["x"]
    same(compiled(tn.ones((1, 2))), np.full((4, 2), 3, np.float32))


def test_collections_are_inputs_where_they_hold_infos():
    def combine(data, scale):
        first, second = data["b"]["list"]
        return (data["a"] + first * second) * scale

    info = tn.InputInfo(((1, 2, 4),), tn.float32)
    described = {"a": info, "b": {"list": [info, info]}}
    compiled = tn.compile(combine, args=[described, 2.0])
    assert list(compiled.input_infos) == ["data.a", "data.b.list[0]", "data.b.list[1]"]
    given = {"a": tn.ones(3), "b": {"list": [tn.full((3,), 2.0), tn.full((3,), 4.0)]}}
    same(compiled(given), combine(given, 2.0))
    given["b"]["list"][1] = tn.ones(5)
    with refused("combine(): argument `data.b.list[1]` has shape [5]", ValueError):
        compiled(given)


def test_variadic_arguments_are_frozen():
    def total(first, *rest, scale=1.0, **named):
        return scale * sum(rest, first) + sum(named.values())

    info = tn.InputInfo((2,), tn.float32)
    compiled = tn.compile(total, args=[info, info, 10.0, info], kwargs={"z": info, "a": info})
    assert list(compiled.input_infos) == ["first", "rest0", "rest2", "z", "a"]
    one = tn.ones(2)
    same(compiled(one, one, one, z=one, a=one), [15.0, 15.0])
    with refused("total(): 4 arguments given, 3 can have a position", TypeError):
        compiled(one, one, one, one, z=one, a=one)
    with refused("total(): no argument `w`", TypeError):
        compiled(one, one, one, z=one, a=one, w=one)


def test_arguments_come_in_the_order_of_the_signature():
    def fun(a, b, c, *, d):
        return a - 2 * b + 3 * c - 5 * d

    info = tn.InputInfo((1,), tn.float32)
    compiled = tn.compile(fun, args=[info], kwargs={"d": info, "c": info, "b": info})
    assert str(inspect.signature(compiled)) == "(a, b, c, *, d)"
    assert list(compiled.input_infos) == ["a", "b", "c", "d"]
    a, b, c, d = (tn.full((1,), value) for value in (1.0, 10.0, 100.0, 1000.0))
    same(compiled(a, b, c, d=d), fun(a, b, c, d=d))
    same(compiled(c=c, a=a, d=d, b=b), fun(a, b, c, d=d))


def test_levels_give_the_same_bits():
    def fun(x):
        return tn.softmax(tn.tanh(x) @ x.T)

    info = tn.InputInfo(((1, 3, 9), 4), tn.float32)
    x = tn.random.normal((5, 4), key=tn.random.key(1))
    for level in range(6):
        same(tn.compile(fun, optimization_level=level, args=[info])(x), fun(x))
        same(tn.compile(fun, level, args=[info])(x), fun(x))


@pytest.mark.parametrize("level", [-1, 6, 2.0, "3", None, True])
def test_other_levels_are_refused(level):
    with refused(f"compile: optimization_level is 0 to 5, not {level!r}"):
        tn.compile(add, optimization_level=level, args=[])


# The description: results -------------------------------------------------------------------


def test_one_tensor_stays_one_and_a_sequence_a_sequence():
    info = tn.InputInfo((2,), tn.float32)
    x = tn.ones(2)
    assert isinstance(tn.compile(lambda x: x + 1, args=[info])(x), tn.Tensor)
    for wrap in (list, tuple):
        one = tn.compile(lambda x, wrap=wrap: wrap([x + 1]), args=[info])(x)
        assert type(one) is wrap
        same(one[0], [2, 2])
        two = tn.compile(lambda x, wrap=wrap: wrap([x + 1, x * 3]), args=[info])(x)
        assert type(two) is wrap
        same(two[1], [3, 3])


@pytest.mark.parametrize("nothing", [None, (), [], {}, 3, "text", 2.5])
def test_nothing_returned(nothing):
    def fun(x):
        return nothing

    with refused("compile: fun(): one or more tensors must be returned, not ") as error:
        tn.compile(fun, args=[tn.InputInfo((2,), tn.float32)])  # nothing
    assert repr(nothing) in str(error.value)
    assert f"{HERE}{line_of('nothing')}" in str(error.value)


@pytest.mark.parametrize("other", [None, 3, "text"])
def test_a_return_value_that_is_no_tensor(other):
    def fun(x):
        return x + 1, other

    with refused(f"compile: fun(): return value 1 is not a tensor: {other!r}", TypeError) as error:
        tn.compile(fun, args=[tn.InputInfo((2,), tn.float32)])
    assert f"fun is at {HERE}" in str(error.value)


# The description: pure functions ------------------------------------------------------------


def evaluates(x):
    y = x + 1
    if y.sum() > 0:  # evaluated
        return y
    return x


def test_evaluating_while_compiling():
    with refused("compile: cannot evaluate a tensor") as error:
        tn.compile(evaluates, args=[tn.InputInfo((2,), tn.float32)])
    assert f"{HERE}{line_of('evaluated')}" in str(error.value)


@pytest.mark.parametrize("look", [str, float, lambda x: x.numpy(), lambda x: x.tolist()])
def test_looking_at_a_value_while_compiling(look):
    def fun(x):
        look(x.sum())
        return x

    with refused("compile: cannot evaluate a tensor"):
        tn.compile(fun, args=[tn.InputInfo((2,), tn.float32)])


def test_a_failed_compilation_leaves_nothing_behind(layer):
    def fun(x):
        layer.proj.weight = layer.proj.weight + x.sum()
        return layer(x)

    before = layer.proj.weight
    with refused("compile: fun() assigns to layer.weight"):
        tn.compile(fun, args=[tn.InputInfo((1, 2), tn.float32)])
    assert layer.proj.weight is before
    assert layer(tn.ones((1, 2))).tolist()


# The description: calls that do not fit -----------------------------------------------------


@pytest.fixture
def pair():
    batch = tn.NamedDimension("batch", 1, 4, 8)
    return tn.compile(
        lambda a, b: a * b,
        args=[tn.InputInfo((batch, 2), tn.float32), tn.InputInfo((batch, 2), tn.float32)],
    )


def test_missing_extra_and_wrong_arguments(pair):
    x = tn.ones((2, 2))
    with refused("function(): missing argument `b`", TypeError) as error:
        pair(x)  # missing
    assert f"{HERE}{line_of('missing')}" in str(error.value)
    assert "hint: it takes (a, b)" in str(error.value)
    with refused("function(): missing arguments `a`, `b`", TypeError):
        pair()
    with refused("function(): 3 arguments given, 2 can have a position", TypeError):
        pair(x, x, x)
    with refused("function(): no argument `c`", TypeError):
        pair(x, x, c=x)
    with refused("function(): argument `a` is given twice", TypeError):
        pair(x, a=x)
    with refused("function(): argument `b` is not a tensor: list", TypeError):
        pair(x, [[1.0, 2.0]])
    with refused("function(): argument `b` is not a tensor: float", TypeError):
        pair(x, 1.0)


def test_wrong_element_type_and_rank(pair):
    x = tn.ones((2, 2))
    with refused("function(): argument `a` is float64, expected float32") as error:
        pair(np.ones((2, 2)), x)
    assert f"{HERE}" in str(error.value)
    with refused("function(): argument `b` is int32, expected float32"):
        pair(x, x.astype(tn.int32))
    with refused("function(): argument `a` has shape [2] with 1 dimensions, expected 2"):
        pair(tn.ones(2), x)


def test_named_dimensions_that_differ(pair):
    with refused("function(): dimension `batch` is 2 in a.shape[0] and 3 in b.shape[0]"):
        pair(tn.ones((2, 2)), tn.ones((3, 2)))


def test_sizes_that_must_agree_without_a_name():
    info = tn.InputInfo(((1, 2, 3), 2), tn.float32)
    compiled = tn.compile(add, args=[info, info])
    with refused("add(): dimensions a.shape[0] = 2 and b.shape[0] = 3 must be equal") as error:
        compiled(tn.ones((2, 2)), tn.ones((3, 2)))
    assert f"(required by add at {HERE}" in str(error.value)


# Infos --------------------------------------------------------------------------------------


def test_infos_are_values():
    info = tn.InputInfo(shape=((1, 8, 16), 2), dtype=tn.float32)
    assert repr(info) == "InputInfo(shape=((1, 8, 16), 2), dtype=float32)"
    assert info == tn.InputInfo([[1, 8, 16], 2], "float32")
    assert info != tn.InputInfo(((1, 8, 17), 2), tn.float32)
    assert info.shape_bounds.opt == (8, 2)
    batch = tn.NamedDimension("batch", 1, 8, 16)
    assert repr(batch) == "NamedDimension('batch', min=1, opt=8, max=16)"
    assert batch == tn.NamedDimension("batch", 1, 8, 16)
    assert tn.InputInfo((batch, 2), tn.float32) != info
    assert repr(tn.DimensionInputInfo((1, 4, 8))) == "DimensionInputInfo((1, 4, 8))"
    assert len({info, tn.InputInfo(((1, 8, 16), 2), tn.float32)}) == 1


@pytest.mark.parametrize(
    "make, text",
    [
        (lambda: tn.InputInfo(3, tn.float32), "InputInfo: a shape is a tuple of sizes: 3 (int)"),
        (lambda: tn.InputInfo((-1,), tn.float32), "InputInfo: dimension 0 is negative: -1"),
        (lambda: tn.InputInfo((2, (1, 2)), tn.float32), "InputInfo: dimension 1 has 2 bounds"),
        (
            lambda: tn.InputInfo(((4, 2, 8),), tn.float32),
            "InputInfo: dimension 0 needs min <= opt <= max: (4, 2, 8)",
        ),
        (
            lambda: tn.InputInfo((2.0,), tn.float32),
            "InputInfo: dimension 0 is neither an integer nor (min, opt, max): 2.0 (float)",
        ),
        (lambda: tn.InputInfo((2,), "float31"), "dtype: not an element type: 'float31'"),
        (lambda: tn.NamedDimension("", 1, 2, 3), "NamedDimension: the name is a text, not ''"),
        (
            lambda: tn.NamedDimension("n", 3, 2, 1),
            "NamedDimension: 'n' needs min <= opt <= max: (3, 2, 1)",
        ),
        (
            lambda: tn.DimensionInputInfo((1, 2)),
            "DimensionInputInfo: the size has 2 bounds in place of (min, opt, max): (1, 2)",
        ),
        (lambda: tn.InputInfo((2**63,), tn.float32), "InputInfo: dimension 0 is above"),
    ],
)
def test_infos_that_make_no_sense(make, text):
    with refused(text) as error:
        make()
    assert HERE in str(error.value)


def test_a_size_is_given_at_run_time():
    def grid(n, x):
        return tn.broadcast_to(x, (n, 3)) / n

    infos = [tn.DimensionInputInfo((1, 4, 8)), tn.InputInfo((3,), tn.float32)]
    compiled = tn.compile(grid, args=infos)
    x = tn.array([1.0, 2.0, 3.0])
    for n in range(1, 9):
        same(compiled(n, x), grid(n, x))
    with refused("grid(): argument `n` = 9 is outside [1, 8]", ValueError):
        compiled(9, x)
    with refused("grid(): argument `n` is a size, not a float", TypeError):
        compiled(2.0, x)
    assert compiled.input_infos["n"] == infos[0]


# What can be compiled -----------------------------------------------------------------------


def test_methods_partials_lambdas_and_callable_objects(layer):
    class Shift:
        def __init__(self, by):
            self.by = tn.array(by)

        def __call__(self, x):
            return x + self.by

        def back(self, x):
            return x - self.by

    info = tn.InputInfo((1, 2), tn.float32)
    x = tn.array([[1.0, 2.0]])
    shift = Shift(2.0)
    for fun in (
        shift,
        shift.back,
        functools.partial(add, b=tn.array(4.0)),
        lambda x: x**2,
        layer.proj,
        tn.tanh,
        tn.compile(lambda x: x * 2),
        tn.vmap(lambda row: row / row.sum()),
        tn.grad(lambda x: (x**3).sum()),
    ):
        same(tn.compile(fun, args=[info])(x), fun(x))


def test_as_a_decorator():
    @tn.compile(args=[tn.InputInfo(((1, 2, 4),), tn.float32)])
    def double(x):
        return 2 * x

    assert isinstance(double, tn.Executable)
    same(double(tn.ones(3)), [2, 2, 2])


def test_what_an_executable_says_of_itself(layer):
    fast = tn.compile(layer, args=[tn.InputInfo(((1, 8, 16), 2), tn.float32)])
    assert fast.input_infos == {"x": tn.InputInfo(((1, 8, 16), 2), tn.float32)}
    assert str(inspect.signature(fast)) == "(x)"
    assert repr(fast) == "<executable Gated(x)>"
    assert "Gated(x: float32[" in str(fast)
    assert "1 to 16, best at 8" in str(fast)


def test_without_infos_functions_are_compiled_when_called():
    compiled = tn.compile(add)
    assert not isinstance(compiled, tn.Executable)
    assert isinstance(tn.compile(lambda: tn.arange(3), args=[]), tn.Executable)
