"""Modules that assign to themselves inside traces: what is not carried out is told, and undone."""

import random

import numpy as np
import pytest

import tenon as tn
from tenon import nn

X = tn.array(np.arange(8.0, dtype=np.float32).reshape(4, 2))
LOST = "running_mean of a BatchNorm, and the change is lost"


class Model(nn.Module):
    def __init__(self):
        self.norm = nn.BatchNorm(2)

    @tn.compile
    def forward(self, x):
        return self.norm(x)


def fails(norm):
    def f(x):
        norm(x)
        raise ValueError("stop")

    return f


USES = {
    "compile": lambda norm: tn.compile(lambda x: norm(x))(X),
    "show": lambda norm: tn.show(lambda x: norm(x), X),
    "memory": lambda norm: tn.compile(lambda x: norm(x)).memory(X),
    "explain": lambda norm: tn.explain(tn.compile(lambda x: norm(x)))(X),
    "argument": lambda norm: tn.compile(lambda m, x: m(x))(norm, X),
    "vmap": lambda norm: tn.vmap(lambda x: norm(x))(X[None]),
    "vmap of a module": lambda norm: tn.vmap(norm)(X[None]),
    "scan": lambda norm: tn.scan(lambda c, x: (c, norm(x)), 0, X[None]),
    "map": lambda norm: tn.map(lambda x: norm(x), X[None]),
    "cond": lambda norm: tn.cond(tn.array(True), norm, lambda x: x, X),
    "while": lambda norm: tn.while_loop(lambda x: tn.sum(x) > 0.0, norm, X),
    "fori": lambda norm: tn.fori_loop(0, 2, lambda i, x: norm(x), X),
    "shape": lambda norm: tn.eval_shape(lambda x: norm(x), X),
}


@pytest.mark.parametrize("use", USES.values(), ids=USES)
def test_a_change_that_is_lost_is_told_and_undone(use):
    norm = nn.BatchNorm(2)
    before = dict(vars(norm))
    with pytest.warns(UserWarning, match=LOST) as caught:
        use(norm)
    assert caught[0].filename == __file__
    assert all(vars(norm)[name] is value for name, value in before.items())


def test_a_compiled_method_tells_that_changes_are_lost():
    model = Model()
    with pytest.warns(UserWarning, match=rf"forward \(.*\) assigns to {LOST}: compile the module"):
        model(X)
    assert model.norm.running_mean.tolist() == [0, 0]


@pytest.mark.parametrize("trace", [tn.compile, tn.vmap, lambda f: lambda x: tn.map(f, x)])
def test_a_trace_that_fails_leaves_modules_as_they_were(trace):
    norm = nn.BatchNorm(2)
    before = dict(vars(norm))
    with pytest.raises(ValueError, match="stop"):
        trace(fails(norm))(X if trace is tn.compile else X[None])
    assert all(vars(norm)[name] is value for name, value in before.items())


def test_what_is_carried_out_is_no_loss(recwarn):
    want = nn.BatchNorm(2)
    want(X)
    norm = nn.BatchNorm(2)
    tn.compile(norm)(X)
    step = tn.compile(lambda x: norm(x), inputs=norm, outputs=norm)
    assert norm.running_mean.tolist() == want.running_mean.tolist()
    step(X)
    _, other = tn.compile(lambda m, x: (m(x), m))(nn.BatchNorm(2), X)
    assert other.running_mean.tolist() == want.running_mean.tolist()
    tn.compile(lambda x: nn.BatchNorm(2)(x))(X)  # a module of the trace
    nn.value_and_grad(norm, lambda x: tn.sum(norm(x)))(X)
    assert norm.running_mean.tolist() != want.running_mean.tolist()
    assert not [str(w.message) for w in recwarn.list]


def test_weights_that_a_trace_makes_stay(recwarn):
    class Late(nn.Module):
        def __init__(self):
            self.weight = None

        def forward(self, x):
            if self.weight is None:
                self.weight = tn.ones(x.shape[-1])
            return x * self.weight

    late = Late()
    tn.compile(lambda x: late(x))(X)
    assert late.weight.tolist() == [1, 1] and not recwarn.list


def test_a_tensor_that_a_plain_object_counts_with_is_told():
    class Counter:
        def __init__(self):
            self.n = tn.array(1.0)

        @tn.compile
        def __call__(self, x):
            self.n = self.n + 1
            return x * self.n

    with pytest.warns(UserWarning, match=r"modifies self\.n, which it also reads"):
        Counter()(X)


def test_a_module_in_a_variable_is_read_in_every_call():
    model = nn.Sequential(nn.Linear(2, 3), nn.BatchNorm(3)).eval()
    f = tn.compile(lambda x: model(x))
    for step in range(4):
        assert np.array_equal(f(X), model(X))
        model.layers[0].weight = model.layers[0].weight + step
    assert f.stats().traces == 2
    model.train()
    with pytest.warns(UserWarning, match=LOST):
        made = f(X)
    assert np.array_equal(made, model(X))


def test_a_module_that_is_trained_outside_is_read_in_every_call():
    model = nn.Linear(2, 1)
    optimizer = tn.optim.SGD(model.parameters(), lr=0.1)
    f = tn.compile(lambda x: model(x))
    for _ in range(3):
        assert np.array_equal(f(X), model(X))
        model(X).sum().backward()
        optimizer.step()


@pytest.mark.parametrize(
    "draw, name",
    [(random.random, "random"), (np.random.rand, "np.random"), (np.random.randn, "np.random")],
)
def test_draws_of_others_are_told(draw, name):
    with pytest.warns(UserWarning, match=rf"<lambda> \(.*\) draws from {name} at trace time"):
        tn.compile(lambda x: x * draw())(X)
