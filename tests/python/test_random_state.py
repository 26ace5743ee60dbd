"""Draws without a key, inside functions that are traced and compiled."""

import warnings

import pytest

import tenon as tn
from tenon import nn, random

X = tn.array([0.5, -1.0, 2.0])


def noisy(x):
    return x + random.uniform(shape=x.shape)


PROGRAMS = {
    "twice": lambda x: noisy(noisy(x)),
    "vmap": tn.vmap(noisy),
    "scan": lambda x: tn.scan(lambda c, x: (noisy(c), noisy(x)), tn.array(0.0), x),
    "while": lambda x: tn.while_loop(lambda x: tn.sum(x) < 100, lambda x: noisy(abs(x)), x),
    "cond": lambda x: tn.cond(tn.sum(x) > 100, noisy, lambda x: x, x),
    "grad": tn.grad(lambda x: tn.sum(x * noisy(x))),
    "hessian": tn.hessian(lambda x: tn.sum(x * x * noisy(x))),
    "checkpoint": tn.grad(lambda x: tn.sum(x * tn.checkpoint(noisy)(x))),
    "dropout": nn.Dropout(0.5),
    "permutation": random.permutation,
    "compiled, traced inside": lambda x: tn.compile(lambda y: noisy(y))(x),
}


@pytest.mark.parametrize("name", PROGRAMS)
def test_a_state_that_is_an_argument_is_advanced_as_outside(name):
    f = PROGRAMS[name]

    @tn.compile
    def compiled(state, x):
        random.state[0] = state[0]
        return tn.tree.leaves(f(x)), random.state

    for seed in (5, 6):
        random.seed(seed)
        made, state = compiled(random.state, X)
        random.seed(seed)
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")  # of the compiled function outside of any other
            want = tn.tree.leaves(f(X))
        assert [x.tolist() for x in made] == [x.tolist() for x in want]
        assert state[0].tolist() == random.state[0].tolist()


def test_the_state_is_a_tree():
    random.seed(1)
    assert [key.tolist() for key in tn.tree.leaves(random.state)] == [[0, 1]]
    tn.eval(random.state)


def warnings_of(f, *args):
    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("default")
        f(*args)
    return caught


def test_a_frozen_draw_warns_at_the_line_of_the_user():
    f = lambda x: random.uniform() + nn.Dropout(0.5)(x)
    (warning,) = warnings_of(tn.compile(f), X)
    assert warning.filename == __file__ and warning.lineno == f.__code__.co_firstlineno
    assert "capture the state with compile(f, inputs=tn.random.state" in str(warning.message)


def test_a_frozen_draw_warns_inside_a_loop():
    f = tn.compile(lambda x: tn.scan(lambda c, x: (c, noisy(x)), 0.0, x)[1])
    assert len(warnings_of(f, X)) == 1


def test_a_draw_from_a_given_state_does_not_warn():
    def f(key, x):
        random.state[0] = key
        return noisy(x)

    try:
        (leak,) = warnings_of(tn.compile(f), random.key(0), X)  # the state holds a traced key now
    finally:
        random.seed(0)
    assert "stores traced tensors in an object" in str(leak.message)
