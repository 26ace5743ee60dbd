"""What MLX's document on compilation promises, shown by programs of our own in its order."""

import functools
import gc
import math
import os
import subprocess
import sys
import warnings
import weakref
from functools import partial

import numpy as np
import pytest

import tenon as tn
import tenon.nn as nn
import tenon.optim as optim


def printed(*values):
    """What print shows of them."""
    return " ".join(str(value) for value in values)


def counted(fun):
    """`fun`, and a list that grows by every run of it."""
    runs = []

    @functools.wraps(fun)
    def wrapper(*args, **kwargs):
        runs.append(1)
        return fun(*args, **kwargs)

    return wrapper, runs


def decay(t, floor):
    return tn.exp(-t) + floor


# Basics -------------------------------------------------------------------------------------


def test_compiled_and_plain_print_the_same():
    t, floor = tn.array(1.0), tn.array(2.0)
    assert printed(decay(t, floor)) == "tensor(2.3678794, dtype=float32)"
    assert printed(tn.compile(decay)(t, floor)) == "tensor(2.3678794, dtype=float32)"


def test_compiled_once_however_often_it_is_called_and_compiled():
    fun, runs = counted(decay)
    t, floor = tn.array(1.0), tn.array(2.0)
    compiled = tn.compile(fun)
    compiled(t, floor)
    compiled(t, floor)
    tn.compile(fun)(t, floor)
    assert len(runs) == 1
    assert compiled.stats().traces == 1


def test_what_compiles_again():
    fun, runs = counted(lambda *xs: sum(tn.sum(x) for x in xs))
    compiled = tn.compile(fun)
    compiled(tn.ones(3))
    compiled(tn.ones((3, 1)))  # another number of dimensions
    compiled(tn.ones(3, dtype=tn.int32))  # another type
    compiled(tn.ones(3), tn.ones(3))  # another number of arguments
    assert len(runs) == 4
    compiled(tn.ones(4))  # another size: from now on, any
    assert len(runs) == 5
    compiled(tn.ones(5))
    compiled(tn.ones(3))
    assert len(runs) == 5
    assert compiled(tn.ones(100)).item() == 100
    reasons = compiled.stats().traces_by_reason
    assert {r: n for r, n in reasons.items() if n} == {
        "first": 1,
        "rank": 1,
        "dtype": 1,
        "structure": 1,
        "size": 1,
    }


def test_functions_made_in_a_loop():
    x = tn.array([-1.0, 2.0])
    made = []
    for _ in range(5):
        fun = lambda x: tn.exp(tn.abs(x))
        assert tn.compile(fun)(x).tolist() == tn.exp(tn.abs(x)).tolist()
        made.append(weakref.ref(fun))
    del fun
    gc.collect()
    assert all(ref() is None for ref in made)


# The example that is timed ------------------------------------------------------------------


def own_gelu(x):
    return x * (1 + tn.erf(x / math.sqrt(2))) / 2


def test_gelu_is_one_kernel():
    x = tn.random.uniform(shape=(8, 100, 512), key=tn.random.key(0))
    compiled = tn.compile(own_gelu)
    np.testing.assert_array_equal(compiled(x).numpy(), own_gelu(x).numpy())
    np.testing.assert_allclose(tn.compile(nn.gelu)(x).numpy(), own_gelu(x).numpy(), 1e-6)
    assert compiled.show("plan").count("\nstep ") == 1  # how much faster: make bench


# Debugging ----------------------------------------------------------------------------------


def test_printing_a_placeholder_is_an_error_with_the_line():
    @tn.compile
    def fun(x):
        z = -x
        str(z)
        return tn.exp(z)

    with pytest.raises(tn.Error) as error:
        fun(tn.array(5.0))
    assert "test_mlx_document.py" in str(error.value) and "in fun" in str(error.value)


def test_printing_with_compilation_disabled():
    seen = []

    @tn.compile
    def fun(x):
        z = -x
        seen.append(printed(z))
        return tn.exp(z)

    tn.disable_compile()
    try:
        assert printed(fun(tn.array(5.0))) == "tensor(0.006737947, dtype=float32)"
    finally:
        tn.enable_compile()
    assert seen == ["tensor(-5., dtype=float32)"]
    with pytest.raises(tn.Error):
        fun(tn.array(5.0))


@pytest.mark.parametrize("value, disabled", [("1", True), ("0", False)])
def test_disabling_by_the_environment(value, disabled):
    program = "import tenon as tn; print(tn.compile(lambda x: [str(x)] and x)(tn.array(5.0)))"
    done = subprocess.run(
        [sys.executable, "-c", program],
        env={**os.environ, "TENON_DISABLE_COMPILE": value},
        capture_output=True,
        text=True,
    )
    assert (done.stdout == "tensor(5., dtype=float32)\n") == disabled, done.stderr


# Pure functions -----------------------------------------------------------------------------


def test_a_placeholder_that_escaped():
    kept = []

    @tn.compile
    def fun(x, y):
        z = x + y
        kept.append(z)
        return tn.exp(z)

    fun(tn.array(1.0), tn.array(2.0))
    with pytest.raises(tn.Error, match="outputs="):
        printed(kept)


def test_state_as_a_result():
    kept = []

    @tn.compile
    def fun(x, y):
        z = x + y
        kept.append(z)
        return tn.exp(z), kept

    _, got = fun(tn.array(1.0), tn.array(2.0))
    assert printed(got) == "[tensor(3., dtype=float32)]"


def test_state_captured_as_an_output():
    kept = []

    @partial(tn.compile, outputs=kept)
    def fun(x, y):
        z = x + y
        kept.append(z)
        return tn.exp(z), kept

    value, got = fun(tn.array(1.0), tn.array(2.0))
    assert printed(kept) == "[tensor(3., dtype=float32)]" == printed(got)
    assert printed(value) == "tensor(20.085537, dtype=float32)"


def test_what_is_not_an_argument_is_constant():
    held = [tn.array(1.0)]

    @tn.compile
    def fun(x):
        return x + held[0]

    assert printed(fun(tn.array(1.0))) == "tensor(2., dtype=float32)"
    held[0] = tn.array(5.0)
    assert printed(fun(tn.array(1.0))) == "tensor(2., dtype=float32)"


def test_state_captured_as_an_input():
    held = [tn.array(1.0)]

    @partial(tn.compile, inputs=held)
    def fun(x):
        return x + held[0]

    assert printed(fun(tn.array(1.0))) == "tensor(2., dtype=float32)"
    held[0] = tn.array(5.0)
    assert printed(fun(tn.array(1.0))) == "tensor(6., dtype=float32)"
    assert printed(held) == "[tensor(5., dtype=float32)]"


# Training -----------------------------------------------------------------------------------

STEPS = 10


def features(width=10):
    """Four examples and their classes."""
    key = tn.random.key(11)
    return tn.random.uniform(shape=(4, width), key=key), tn.array([0, 1, 0, 1])


def classification_loss(model, x, y):
    return nn.losses.binary_cross_entropy(model(x).squeeze(), y)


def plain_losses(model, optimizer, x, y, steps=STEPS):
    loss_and_grad = nn.value_and_grad(model, classification_loss)
    losses = []
    for _ in range(steps):
        loss, grads = loss_and_grad(model, x, y)
        optimizer.update(model, grads)
        tn.eval(model.parameters(), optimizer.state)
        losses.append(loss.item())
    return losses


def compiled_step(model, optimizer, *more):
    """The step of training as a compiled function, and how often it was traced."""
    state, runs = [model.state, optimizer.state, *more], []

    @partial(tn.compile, inputs=state, outputs=state)
    def step(x, y):
        runs.append(1)
        loss, grads = nn.value_and_grad(model, classification_loss)(model, x, y)
        optimizer.update(model, grads)
        return loss

    return step, runs, state


def compiled_losses(step, state, x, y, steps=STEPS):
    losses = []
    for _ in range(steps):
        loss = step(x, y)
        tn.eval(state)
        losses.append(loss.item())
    return losses


def pair(make):
    """The same model twice."""
    tn.random.seed(4)
    first = make()
    tn.random.seed(4)
    return first, make()


def assert_same_state(a, b):
    """Bit for bit."""
    a, b = tn.tree.leaves(a), tn.tree.leaves(b)
    assert len(a) == len(b)
    for left, right in zip(a, b):
        np.testing.assert_array_equal(np.asarray(left), np.asarray(right))


OPTIMIZERS = {
    "sgd": lambda: optim.SGD(learning_rate=0.1),
    "momentum": lambda: optim.SGD(learning_rate=0.1, momentum=0.8),
    "nesterov": lambda: optim.SGD(0.1, momentum=0.8, weight_decay=0.01, nesterov=True),
    "adam": lambda: optim.Adam(learning_rate=0.05),
    "adamw": lambda: optim.AdamW(learning_rate=0.05),
    "schedule": lambda: optim.SGD(lambda step: 0.1 * 0.9**step, momentum=0.8),
}


@pytest.mark.parametrize("name", OPTIMIZERS)
def test_training_a_linear_model(name):
    x, y = features()
    plain, compiled = pair(lambda: nn.Linear(10, 1))
    optimizers = OPTIMIZERS[name](), OPTIMIZERS[name]()
    want = plain_losses(plain, optimizers[0], x, y)
    assert want[-1] < want[0]
    step, runs, state = compiled_step(compiled, optimizers[1])
    assert compiled_losses(step, state, x, y) == want
    assert_same_state([plain.state, optimizers[0].state], state)
    assert len(runs) <= 2  # once more when the optimizer's state is there
    assert len(tn.tree.leaves(optimizers[1].state)) == len(tn.tree.leaves(optimizers[0].state))


def deep(dropout):
    return nn.Sequential(nn.Linear(10, 16), nn.gelu, nn.Dropout(dropout), nn.Linear(16, 1))


def test_training_with_dropout_and_the_random_state():
    x, y = features()
    plain, compiled = pair(lambda: deep(0.25))
    optimizers = [optim.SGD(learning_rate=0.1, momentum=0.8) for _ in range(2)]
    tn.random.seed(9)
    want = plain_losses(plain, optimizers[0], x, y)
    after = tn.random.state[0].tolist()
    step, runs, state = compiled_step(compiled, optimizers[1], tn.random.state)
    tn.random.seed(9)
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        assert compiled_losses(step, state, x, y) == want
    assert tn.random.state[0].tolist() == after
    assert_same_state(plain.state, compiled.state)
    assert len(runs) <= 2


def test_training_with_dropout_and_a_forgotten_random_state():
    x, y = features()
    step, _, state = compiled_step(deep(0.25), optim.SGD(0.0))
    with pytest.warns(UserWarning, match="tn.random.state"):
        losses = compiled_losses(step, state, x, y, 3)
    assert losses[1] == losses[2]  # the same elements are dropped


# Transforms ---------------------------------------------------------------------------------


def test_compiled_gradients():
    slope = tn.grad(tn.exp)
    assert printed(slope(tn.array(1.0))) == "tensor(2.7182817, dtype=float32)"
    assert printed(tn.compile(slope)(tn.array(1.0))) == "tensor(2.7182817, dtype=float32)"


def test_a_compiled_function_of_compiled_functions():
    @tn.compile
    def inner(x):
        return tn.exp(-tn.abs(x))

    def outer(x):
        return inner(inner(x))

    x = tn.array([-1.0, 0.0, 3.0])
    want = tn.exp(-tn.exp(-tn.abs(x)))
    np.testing.assert_allclose(outer(x).numpy(), want.numpy(), 1e-6)
    np.testing.assert_array_equal(tn.compile(outer)(x).numpy(), outer(x).numpy())


TRANSFORMED = {
    "grad of compile": lambda f: tn.grad(tn.compile(f)),
    "compile of grad": lambda f: tn.compile(tn.grad(f)),
    "grad of grad of compile": lambda f: tn.grad(lambda x: tn.sum(tn.grad(tn.compile(f))(x))),
    "vmap of compile": lambda f: tn.vmap(tn.compile(f)),
    "compile of vmap of grad": lambda f: tn.compile(tn.vmap(tn.grad(f))),
    "compile of value_and_grad": lambda f: tn.compile(tn.value_and_grad(f)),
    "checkpoint inside": lambda f: tn.compile(tn.grad(tn.checkpoint(f))),
    "jvp": lambda f: tn.compile(lambda x: tn.jvp(f, [x], [x])),
    "vjp": lambda f: tn.compile(lambda x: tn.vjp(f, [x], tn.array(2.0))),
}


@pytest.mark.parametrize("name", TRANSFORMED)
def test_transforms_compose(name, monkeypatch):
    f, runs = counted(lambda x: tn.sum(tn.sin(x) * x))
    x = tn.array([0.5, -1.0, 2.0])
    transformed = TRANSFORMED[name](f)
    got = transformed(x)
    traced = len(runs)
    transformed(x)
    assert len(runs) == traced  # Python does not run again
    with monkeypatch.context() as plain:
        plain.setattr(tn, "compile", lambda f: f)
        want = TRANSFORMED[name](f)(x)
    for a, b in zip(tn.tree.leaves(got), tn.tree.leaves(want)):
        np.testing.assert_allclose(a.numpy(), b.numpy(), 1e-5, 1e-6)
