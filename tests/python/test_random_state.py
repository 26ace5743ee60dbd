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


def test_every_step_of_a_loop_draws_other_numbers():
    random.seed(0)
    zero = tn.array(0.0)
    drawn = [
        tn.scan(lambda c, x: (c, tn.rand()), zero, length=5)[1].tolist(),
        tn.map(lambda x: x + tn.rand(), tn.zeros(5)).tolist(),
        tn.scan(lambda c, x: (c, nn.Dropout(0.5)(x).sum()), zero, tn.ones((5, 1000)))[1].tolist(),
    ]
    assert [len(set(numbers)) for numbers in drawn] == [5, 5, 5]
    walk = tn.fori_loop(0, 100, lambda i, x: x + tn.randn(1000), tn.zeros(1000))
    assert 70 < walk.var().item() < 130


def test_a_loop_whose_condition_draws_ends():
    random.seed(0)
    count = tn.while_loop(lambda s: tn.rand() < 0.5, lambda s: s + 1, tn.array(0))
    assert 0 <= count.item() < 100


def test_loops_draw_the_same_compiled_and_not(recwarn):
    def f():
        return tn.scan(lambda c, x: (c, tn.rand()), tn.array(0.0), length=3)[1], tn.rand()

    random.seed(3)
    plain = [x.tolist() for x in f()]
    random.seed(3)
    compiled = tn.compile(f, inputs=random.state, outputs=random.state)
    assert [x.tolist() for x in compiled()] == plain
    assert not recwarn.list
