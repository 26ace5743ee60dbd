"""Indices out of bounds: errors where values are computed at once, and with tn.debug_indices in
compiled functions too."""

import os
import subprocess
import sys

import numpy as np
import pytest

import tenon as tn

X = tn.array(np.arange(12, dtype=np.float32).reshape(4, 3))
V = tn.array([1.0, 2.0, 3.0, 4.0, 5.0])
LOGITS = tn.array([[0.5, 1.0], [2.0, -1.0]])


@pytest.fixture(autouse=True)
def switched_off_afterwards():
    yield
    tn.debug_indices(False)


# What reads or writes by index, the name in its error, the extent, and whether -1 is the last one.
CALLS = {
    "x[i]": (lambda i: X[i], "index", 4, True),
    "x[:, i]": (lambda i: X[:, i], "index", 3, True),
    "at.set": (lambda i: X.at[i].set(0), "index", 4, True),
    "at.add": (lambda i: X.at[i, i].add(1), "index", 3, True),
    "take": (lambda i: tn.take(X, i, axis=1), "take", 3, True),
    "flat take": (lambda i: tn.take(X, i), "take", 12, True),
    "take_along_axis": (lambda i: tn.take_along_axis(V, i), "take_along_axis", 5, True),
    "put_along_axis": (lambda i: tn.put_along_axis(V, i, tn.array(1.0)), "put_along_axis", 5, True),
    "gather": (lambda i: tn.gather(X, [i], axes=[0]), "gather", 4, False),
    "scatter": (lambda i: tn.scatter(X, tn.array(1.0), [i], axes=[0]), "scatter", 4, False),
    "scatter_add": (lambda i: tn.scatter_add(X, tn.array(1.0), [i], axes=[1]), "scatter_add", 3,
                    True),
    "segment_sum": (lambda i: tn.segment_sum(LOGITS, i, num_segments=5), "segment_sum", 5, False),
    "embedding": (lambda i: tn.embedding(X, i), "embedding", 4, True),
    "nn.Embedding": (lambda i: tn.nn.Embedding(6, 2)(i), "embedding", 6, True),
    "cross_entropy": (lambda i: tn.cross_entropy(LOGITS, i), "cross_entropy", 2, False),
}  # fmt: skip


@pytest.mark.parametrize("name", CALLS)
@pytest.mark.parametrize("dtype", ["int8", "int32", "int64", "uint8"])
def test_known_indices_are_checked_by_the_call(name, dtype):
    call, op, extent, wraps = CALLS[name]
    tn.eval(call(tn.asarray(np.array([0, 1], dtype))))
    beyond = [extent] if dtype == "uint8" else [extent, -extent - 1, -1]
    for index in beyond[: 2 if wraps else 3]:
        with pytest.raises(tn.InvalidIndex, match=f"{op}: {index} is out of bounds .* {extent} "):
            call(tn.asarray(np.array([0, index], dtype)))


@pytest.mark.parametrize("name", CALLS)
def test_computed_indices_are_checked_when_the_op_runs(name):
    call, op, extent, wraps = CALLS[name]
    zero = tn.array(0)
    tn.eval(call(tn.array([0, 1]) + zero))
    tn.eval(tn.vmap(lambda i: call(tn.stack([i, i])))(tn.array([0, 1])))
    for index in [extent, -extent - 1, -1][: 2 if wraps else 3]:
        made = call(tn.array([0, index]) + zero)  # nothing is computed yet
        with pytest.raises(tn.InvalidIndex, match=f"{op}: .* of .* {extent} .*\n.*{__file__}"):
            tn.eval(made)


def test_the_error_names_op_index_and_line():
    made = tn.take(X * 2, tn.array([1, -9]) + 0, axis=0)
    with pytest.raises(tn.InvalidIndex) as raised:
        (made + 1).sum().item()
    first, place = str(raised.value).splitlines()
    assert first == "take: -9 is out of bounds for axis 0 of extent 4 (f32[4,3])"
    assert f"{__file__}:{line_of('made = tn.take')}" in place
    inside = tn.cond(tn.array(True), lambda i: X[i + 4], lambda i: X[i], tn.array(0))
    with pytest.raises(tn.InvalidIndex, match="4 is out of bounds"):
        tn.eval(inside)


def line_of(text):
    with open(__file__) as file:
        return next(i for i, line in enumerate(file, 1) if text in line)


def test_the_same_plan_names_the_line_of_each_call():
    first, second = [tn.array([5]) + k for k in (0, 1)]
    a = X[first]
    b = X[second]
    for made, text in [(a, "a = X[first]"), (b, "b = X[second]")]:
        with pytest.raises(tn.InvalidIndex, match=f":{line_of(text)}"):
            tn.eval(made)


def test_outside_says_what_becomes_of_an_index():
    i = tn.array([-1, 9])
    assert tn.gather(X, [i], axes=[0], outside="clamp")[:, 0].tolist() == [0.0, 9.0]
    assert tn.gather(X, [i], axes=[0], outside="drop")[:, 0].tolist() == [0.0, 0.0]
    assert tn.scatter(X, tn.array(7.0), [i], axes=[0], outside="drop").tolist() == X.tolist()
    clamped = tn.scatter(X, tn.array(7.0), [i], axes=[0], outside="clamp")
    assert clamped[:, 0].tolist() == [7.0, 3.0, 6.0, 7.0]
    assert tn.one_hot(i, 3).sum().item() == 0


DERIVATIVES = {
    "x[i]": (lambda x, i: x[i], 4),
    "take": (lambda x, i: tn.take(x, i), 12),
    "take_along_axis": (lambda x, i: tn.take_along_axis(x, i[:, None], axis=0), 4),
    "gather": (lambda x, i: tn.gather(x, [i], axes=[0]), 4),
    "embedding": (lambda x, i: tn.embedding(x, i), 4),
    "at.set": (lambda x, i: X.at[i].set(x[:2] * 2), 4),
    "at.add": (lambda x, i: X.at[i].add(x[:2] * 2), 4),
    "at.multiply": (lambda x, i: x.at[i].multiply(x[:2]), 4),
    "segment_sum": (lambda x, i: tn.segment_sum(x[:2], i, num_segments=5), 5),
}  # fmt: skip


@pytest.mark.parametrize("name", DERIVATIVES)
def test_derivatives_check_what_is_not_computed_itself(name):
    call, extent = DERIVATIVES[name]
    zero = tn.array(0)
    for index in (extent, -extent - 1):
        i = tn.array([0, index]) + zero  # not computed yet, and neither is the result of the call
        gradient = tn.grad(lambda x: call(x, i).sum())(X)
        with pytest.raises(tn.InvalidIndex, match=f"is out of bounds .* {extent} .*\n.*{__file__}"):
            tn.eval(gradient)


def test_derivatives_in_compiled_code_clamp_as_it_does():
    gradient = tn.compile(tn.grad(lambda x, i: tn.take(x, i, axis=0).sum()))
    assert gradient(X, tn.array([0, 9])).tolist() == gradient(X, tn.array([0, 3])).tolist()
    with tn.debug_indices(), pytest.raises(tn.InvalidIndex, match="9 is out of bounds"):
        gradient(X, tn.array([0, 9]))
    g = tn.grad(lambda x: (x[tn.array([1, 1])] ** 2).sum())(X)
    assert g[1].tolist() == (4 * X[1]).tolist()


@pytest.fixture
def everything_compiled():
    """As with TENON_COMPILE=1."""
    before = tn._core._set_hot_path_policy(2, 1)
    yield
    tn._core._set_hot_path_policy(*before)


@pytest.mark.parametrize("name", CALLS)
def test_hot_paths_check_as_the_interpreter_does(name, everything_compiled):
    call, _, extent, _ = CALLS[name]
    one, zero = tn.array(1), tn.array(0)
    tn.eval(call(tn.array([0, 1]) * one + zero) * 2)
    with pytest.raises(tn.InvalidIndex, match=f"{extent} is out of bounds .* {extent} "):
        tn.eval(call(tn.array([0, extent]) * one + zero) * 2)


def test_hot_paths_check_inside_loops(everything_compiled):
    def pick(i):
        return tn.scan(lambda c, k: (c + X[k].sum(), None), tn.array(0.0), i)[0]

    with pytest.raises(tn.InvalidIndex, match="4 is out of bounds"):
        tn.eval(pick(tn.array([0, 4]) + tn.array(0)))


@pytest.mark.parametrize("name", CALLS)
def test_compiled_code_is_checked_on_demand(name):
    call, _, extent, wraps = CALLS[name]
    f = tn.compile(call)
    good, bad = tn.array([0, 1]), tn.array([0, extent])
    want = f(good)
    loose = f(bad)  # clamped, dropped or NaN
    with tn.debug_indices():
        assert f(good).tolist() == want.tolist()
        with pytest.raises(tn.InvalidIndex, match=f"{extent} is out of bounds .* {extent} "):
            f(bad)
        if not wraps:
            with pytest.raises(tn.InvalidIndex, match="-1 is out of bounds"):
                f(tn.array([0, -1]))
    np.testing.assert_array_equal(f(bad).numpy(), loose.numpy())


def test_a_step_that_fails_so_changes_no_state():
    state = {"w": tn.zeros(3), "steps": tn.array(0)}

    @tn.compile(inputs=state, outputs=state)
    def step(i):
        state["w"] = state["w"].at[i].add(1)
        state["steps"] = state["steps"] + 1

    step(tn.array(1))
    with tn.debug_indices(), pytest.raises(tn.InvalidIndex, match="scatter: 3 is out of bounds"):
        step(tn.array(3))
    assert state["w"].tolist() == [0, 1, 0] and state["steps"].item() == 1
    step(tn.array(3))  # dropped
    assert state["w"].tolist() == [0, 1, 0] and state["steps"].item() == 2


def test_from_the_environment():
    program = (
        "import tenon as tn\n"
        "f = tn.compile(lambda x, i: x[i])\n"
        "try: print(f(tn.array([1.0, 2.0]), tn.array(2)).item())\n"
        "except tn.InvalidIndex as error: print('refused')\n"
    )
    for value, said in [("1", "refused"), ("0", "2.0"), ("", "2.0")]:
        env = os.environ | {"TENON_DEBUG_INDICES": value}
        command = [sys.executable, "-c", program]
        done = subprocess.run(command, env=env, capture_output=True, text=True)
        assert done.stdout.strip() == said, done.stderr
