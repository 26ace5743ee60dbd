"""tn.optim: the steps of optimizers against PyTorch's, and their state."""

import copy
import doctest
import inspect
import pathlib

import numpy as np
import pytest

import tenon as tn
from tenon import nn, optim
from training_cases import OPTIMIZERS, RECORDED

DATA = pathlib.Path(__file__).parents[1] / "data/torch_training.npz"
RNG = np.random.default_rng(0)
START = {"w": RNG.normal(size=(3, 2)), "layers": [{"b": RNG.normal(size=4)}, {}]}
GRADIENTS = [tn.tree.map(lambda p: RNG.normal(size=p.shape), START) for _ in range(4)]


def tensors(tree, dtype=tn.float32):
    return tn.tree.map(lambda x: tn.array(x).astype(dtype), tree)


@pytest.fixture(scope="module")
def recorded():
    with np.load(DATA) as file:
        return dict(file)


def flat(tree):
    return np.concatenate([leaf.numpy().ravel() for leaf in tn.tree.leaves(tree)])


@pytest.mark.parametrize("compiled", [False, True], ids=["eager", "compiled"])
@pytest.mark.parametrize("case", OPTIMIZERS, ids=lambda case: case.name.replace(" ", "_"))
def test_steps_are_those_of_pytorch(case, compiled, recorded):
    start, *gradients = map(tensors, case.drawn())
    optimizer, holder = case.ours(), {"parameters": start}
    optimizer.init(start)

    def step(gradients):
        if case.max_norm:
            gradients, _ = optim.clip_grad_norm(gradients, case.max_norm)
        holder["parameters"] = optimizer.apply_gradients(gradients, holder["parameters"])

    if compiled:
        state = [holder, optimizer.state]
        step = tn.compile(step, inputs=state, outputs=state)
    rows = iter(recorded[f"{case.name}/steps"])
    for number, given in enumerate(gradients, 1):
        step(given)
        if number in RECORDED:
            want = next(rows)
            scale = np.abs(want).max()
            np.testing.assert_allclose(flat(holder["parameters"]), want, 1e-5, 1e-6 * scale)
    if compiled:
        assert step.stats().traces == 1


def adam_as_it_comes(w, gradients):
    m = v = 0
    for g in gradients:
        m, v = 0.5 * m + 0.5 * g, 0.75 * v + 0.25 * g * g
        w = w - 0.1 * m / (np.sqrt(v) + 0.1)
    return w


def lion(w, gradients):
    m = 0
    for g in gradients:
        w = w * (1 - 0.1 * 0.3) - 0.1 * np.sign(0.9 * m + 0.1 * g)
        m = 0.99 * m + 0.01 * g
    return w


def muon_of_vectors(w, gradients):
    m = 0
    for g in gradients:
        m = 0.95 * m + 0.05 * g
        w = w - 0.1 * (0.95 * m + 0.05 * g)
    return w


def adafactor_with_momentum(w, gradients):
    v = m = 0
    for t, g in enumerate(gradients, 1):
        v = v + t**-0.8 * (g * g - v)
        u = g / np.sqrt(v)
        u = u / max(1, np.sqrt(np.mean(u * u)))
        m = 0.9 * m + 0.1 * min(1e-6 * t, t**-0.5) * u
        w = w - m
    return w


# What PyTorch does not have, for vectors.
OTHERS = [
    (
        lambda: optim.Adam(0.1, betas=(0.5, 0.75), eps=0.1, bias_correction=False),
        adam_as_it_comes,
    ),
    (lambda: optim.Lion(0.1, weight_decay=0.3), lion),
    (lambda: optim.Muon(0.1, weight_decay=0), muon_of_vectors),
    (
        lambda: optim.Adafactor(beta_1=0.9, warmup_init=True, scale_parameter=False),
        adafactor_with_momentum,
    ),
]


@pytest.mark.parametrize("make, reference", OTHERS, ids=lambda f: f.__name__)
def test_other_steps(make, reference):
    optimizer, w = make(), START["layers"][0]["b"]
    gradients = [tree["layers"][0]["b"] for tree in GRADIENTS]
    parameters = tensors(w)
    for g in gradients:
        parameters = optimizer.apply_gradients(tensors(g), parameters)
    np.testing.assert_allclose(parameters.numpy(), reference(w, gradients), 1e-5)
    assert optimizer.state["step"].item() == len(GRADIENTS)


def test_muon_takes_the_axes_of_kernels_as_one():
    kernel = RNG.normal(size=(4, 2, 3))
    optimizer, other = optim.Muon(0.1), optim.Muon(0.1)
    made = optimizer.apply_gradients(tensors(kernel), tensors(kernel))
    want = other.apply_gradients(tensors(kernel.reshape(4, 6)), tensors(kernel.reshape(4, 6)))
    np.testing.assert_allclose(made.numpy().reshape(4, 6), want.numpy(), 1e-6)


KINDS = [kind for kind in vars(optim).values() if isinstance(kind, type)]
NO_RULES = {"LBFGS", "MultiOptimizer", "Optimizer"}  # LBFGS evaluates closures
RULES = sorted({kind.__name__ for kind in KINDS} - NO_RULES)


@pytest.mark.parametrize("size", [0.0, 1e-30])
@pytest.mark.parametrize("name", RULES)
def test_steps_are_finite_without_gradients(name, size):
    optimizer = getattr(optim, name)()
    parameters = {"w": tn.ones((2, 3)), "b": tn.zeros(3)}
    for _ in range(2):
        gradients = tn.tree.map(lambda p: tn.full_like(p, size), parameters)
        parameters = optimizer.apply_gradients(gradients, parameters)
    assert np.isfinite(flat(parameters)).all()


def test_state():
    optimizer = optim.SGD(0.5, momentum=0.9)
    state = optimizer.state
    optimizer.apply_gradients(tensors(START), tensors(START))
    assert optimizer.state is state
    assert list(state["moments"]) == ["w", "layers.0.b"]
    assert optim.SGD(0.5).state.keys() == state.keys()
    optimizer.learning_rate = 0.25
    assert state["learning_rate"].item() == 0.25 == optimizer.learning_rate.item()


def test_learning_rate_as_a_function_of_the_step():
    optimizer = optim.SGD(lambda step: 1.0 / (step + 1))
    w, rates = tn.array([0.0]), []
    for _ in range(3):
        w = optimizer.apply_gradients(tn.array([1.0]), w)
        rates.append(optimizer.learning_rate.item())
    np.testing.assert_allclose(rates, [1, 1 / 2, 1 / 3])
    np.testing.assert_allclose(w.item(), -(1 + 1 / 2 + 1 / 3), 1e-6)


def test_equal_gradients_have_no_variance():
    optimizer, w = optim.RMSprop(alpha=0.5, centered=True), tn.ones(64)
    gradient = tensors(RNG.normal(size=64))
    for _ in range(60):
        w = optimizer.apply_gradients(gradient, w)
    assert np.isfinite(w.numpy()).all()


# Narrow types -------------------------------------------------------------------------------


@pytest.mark.parametrize("make", [lambda: optim.SGD(0.1, 0.9), lambda: optim.AdamW(0.1)])
def test_narrow_parameters_are_updated_as_wide_ones_and_rounded_once(make):
    narrow, wide = make(), make()
    parameters = tensors(START, tn.bfloat16)
    for g in GRADIENTS:
        g = tensors(g, tn.bfloat16)
        widened = [tn.tree.map(lambda x: x.astype(tn.float32), tree) for tree in (g, parameters)]
        want = tn.tree.map(lambda x: x.astype(tn.bfloat16), wide.apply_gradients(*widened))
        parameters = narrow.apply_gradients(g, parameters)
        for a, b in zip(tn.tree.leaves(parameters), tn.tree.leaves(want)):
            assert a.dtype == tn.bfloat16 and a.tolist() == b.tolist()
    assert {m.dtype for m in tn.tree.leaves(narrow.state["moments"])} == {tn.float32}


def test_moments_of_doubles_are_doubles():
    optimizer = optim.Adam()
    optimizer.apply_gradients(tensors(START, tn.float64), tensors(START, tn.float64))
    assert {m.dtype for m in tn.tree.leaves(optimizer.state["moments"])} == {tn.float64}


@pytest.mark.parametrize("name", RULES)
def test_both_habits_make_the_same_steps(name):
    functional, taped = nn.Linear(3, 2), nn.Linear(3, 2)
    taped.update(functional)
    x, kind = tn.ones((4, 3)), getattr(optim, name)
    one, other = kind(lr=0.1), kind(taped.parameters(), lr=0.1)
    for _ in range(2):
        f = nn.value_and_grad(functional, lambda: tn.sum(tn.square(functional(x))))
        one.update(functional, f()[1])
        tn.sum(tn.square(taped(x))).backward()
        other.step()
        other.zero_grad()
    assert flat(functional.parameters()).tolist() == flat(taped.parameters()).tolist()


def test_a_parameter_with_two_names_makes_one_step():
    class Tied(nn.Module):
        def __init__(self):
            self.first, self.last = nn.Linear(2, 2, bias=False), nn.Linear(2, 2, bias=False)
            self.first.weight = self.last.weight = tn.eye(2)

        def forward(self, x):
            return self.last(self.first(x))

    model = Tied()
    optimizer = optim.SGD(model.parameters(), lr=0.1, momentum=0.9)
    assert list(optimizer.state["moments"]) == ["first.weight"]
    tn.sum(model(tn.array([[1.0, 2.0]]))).backward()
    assert model.last.weight.grad.tolist() == [[2, 4], [2, 4]]
    assert nn.utils.clip_grad_norm_(model.parameters(), 1e6).item() == pytest.approx(40**0.5)
    nn.utils.clip_grad_norm_(model.parameters(), 0.5 * 40**0.5)
    optimizer.step()
    assert model.first.weight is model.last.weight
    np.testing.assert_allclose(model.last.weight.numpy(), [[0.9, -0.2], [-0.1, 0.8]], 1e-6)


@pytest.mark.parametrize("change", ["load", "apply"])
def test_an_optimizer_of_tensors_goes_on_after_they_got_other_values(change):
    model = nn.Linear(2, 1, bias=False)
    optimizer = optim.SGD([model.weight], lr=0.5)
    if change == "load":
        model.load_weights({"weight": tn.ones((1, 2))})
    else:
        model.apply(lambda w: w * 0 + 1)
    tn.sum(model(tn.ones((1, 2)))).backward()
    optimizer.step()
    assert model.weight.tolist() == [[0.5, 0.5]]


def test_apply_changes_a_tied_parameter_once():
    model = nn.Sequential(nn.Linear(2, 2), nn.Linear(2, 2))
    model[0].weight = model[1].weight = tn.ones((2, 2))
    for _ in range(2):
        model.apply(lambda w: 2 * w)
        optim.SGD(model.parameters(), lr=0.1)  # they require gradients from now on
    assert model[0].weight is model[1].weight and model[1].weight[0, 0].item() == 4


def test_only_what_was_said_freezes():
    model = nn.Linear(2, 1)
    model.weight, model.bias = tn.randn(1, 2), tn.rand(1)
    assert list(model.trainable_parameters()) == ["weight", "bias"]
    model.bias.requires_grad = False
    for other in (model, copy.deepcopy(model), model.load_state_dict(model.state_dict()) and model):
        assert list(other.trainable_parameters()) == ["weight"]
    model.apply(lambda w: 2 * w)
    assert list(model.trainable_parameters()) == ["weight"]
    model.bias.requires_grad = True
    assert list(model.trainable_parameters()) == ["weight", "bias"]


def test_gradients_become_none_or_zeros():
    w = tn.ones(2)
    optimizer = optim.SGD([w, tn.ones(3)], lr=0.1)
    w.sum().backward()
    optimizer.zero_grad(set_to_none=False)
    assert w.grad.tolist() == [0, 0]
    optimizer.zero_grad()
    assert w.grad is None


# Weight decay and several optimizers --------------------------------------------------------


def only_matrices(name, w):
    return 0.5 if w.ndim > 1 else 0


@pytest.mark.parametrize("kind", [optim.SGD, optim.Lion])
def test_weight_decay_by_parameter(kind):
    ones = {"w": tn.ones((1, 1)), "b": tn.ones(1)}
    zeros = tn.tree.map(tn.zeros_like, ones)
    made = kind(0.1, weight_decay=only_matrices).apply_gradients(zeros, ones)
    np.testing.assert_allclose(made["w"].numpy(), [[0.95]], 1e-6)
    assert made["b"].item() == 1


def test_several_optimizers():
    momentum, plain = optim.SGD(lambda step: 0.5 ** (step + 1), 0.9), optim.SGD(1.0)
    both = optim.MultiOptimizer([momentum, plain], [lambda name, w: name.endswith(".b")])
    parameters = tensors(START)
    both.init(parameters)
    assert list(momentum.state["moments"]) == ["layers.0.b"] and not plain.state["moments"]
    made = both.apply_gradients(parameters, parameters)
    assert made["w"].tolist() == np.zeros((3, 2)).tolist()
    want = np.float32(START["layers"][0]["b"]) * 0.5
    np.testing.assert_allclose(made["layers"][0]["b"].numpy(), want, 1e-6)
    assert both.state == {"optimizers": [momentum.state, plain.state]}
    assert both.learning_rate.item() == 0.5
    both.learning_rate = 0.25
    assert plain.learning_rate.item() == 0.25


def test_several_optimizers_in_a_compiled_step():
    model = nn.Linear(3, 2)
    both = optim.MultiOptimizer([optim.Muon(), optim.AdamW()], [lambda name, w: w.ndim > 1])
    both.init(model.trainable_parameters())
    state = [model.state, both.state]

    @tn.compile(inputs=state, outputs=state)
    def step(x):
        value, grads = nn.value_and_grad(model, lambda: tn.sum(tn.square(model(x))))()
        both.update(model, grads)
        return value

    values = [step(tn.ones((1, 3))).item() for _ in range(3)]
    assert values[0] > values[1] > values[2] and step.stats().traces == 1


@pytest.mark.parametrize("name", sorted(set(RULES) - {"Adafactor", "Muon"}))
def test_the_updates_of_many_parameters_are_few_kernels(name):
    optimizer = getattr(optim, name)()
    holder = {"parameters": [tn.ones(16 + i % 2) for i in range(20)]}
    optimizer.init(holder["parameters"])
    state = [holder, optimizer.state]

    @tn.compile(inputs=state, outputs=state)
    def step(gradients):
        holder["parameters"] = optimizer.apply_gradients(gradients, holder["parameters"])

    step(holder["parameters"])
    on_gpu = tn.default_device().kind == "cuda"  # whose launches are nodes of one graph
    assert step.show("plan").count("\nstep ") <= (64 if on_gpu else 4)


def test_models_are_updated_in_place():
    model = nn.Sequential(nn.Linear(2, 2), tn.tanh, nn.Linear(2, 1))
    first = model.layers[0].freeze()
    weight, last = first.weight, model.layers[2].weight.numpy()
    optimizer = optim.SGD(0.5)

    def loss(m):
        return tn.sum(m(tn.ones((1, 2))))

    for grads in (nn.value_and_grad(model, loss)(model)[1], tn.grad(loss)(model)):
        optimizer.update(model, grads)
    assert first.weight is weight and not np.array_equal(model.layers[2].weight.numpy(), last)
    assert optimizer.state["step"].item() == 2


ONES = {"w": tn.ones(2)}


@pytest.mark.parametrize(
    "call, text",
    [
        (lambda: optim.SGD(0.1, nesterov=True), "SGD: nesterov needs a momentum above 0"),
        (lambda: optim.SGD(-0.1), "SGD: learning_rate must be at least 0, not -0.1"),
        (lambda: optim.AdamW(weight_decay=-1), "AdamW: weight_decay must be at least 0, not -1"),
        (
            lambda: optim.Adam(betas=(0.9, 1.0)),
            "Adam: betas must be at least 0 and less than 1, not 1",
        ),
        (
            lambda: optim.SGD([{"weight_decay": 0.1}]),
            "parameter groups are dicts with params, and nothing else",
        ),
        (
            lambda: optim.Muon(adjust_lr_fn="no"),
            "Muon: adjust_lr_fn must be one of original, match_rms_adamw: 'no'",
        ),
        (lambda: optim.Muon(ns_steps=-1), "ns_steps must be at least 0 and at most 1000, not -1"),
        (lambda: optim.Muon(ns_steps=2.5), "Muon: ns_steps must be an integer: 2.5"),
        (lambda: optim.Adam(betas=0.9), "Adam: betas must be 2 numbers: 0.9"),
        (lambda: optim.Adam(betas=(0.9,)), r"Adam: betas must be 2 numbers: \(0.9,\)"),
        (lambda: optim.Adam(betas=("a", 0.9)), "Adam: betas must be a number: 'a'"),
        (lambda: optim.SGD(momentum=None), "SGD: momentum must be a number: None"),
        (lambda: optim.RMSprop(centered="yes"), "RMSprop: centered must be True or False: 'yes'"),
        (lambda: optim.Adafactor(beta_1=1.0), "Adafactor: beta_1 must be at least 0 and less"),
        (lambda: Halved(betas=(2, 0)), "Halved: betas must be at least 0 and less than 1, not 2"),
        (lambda: optim.Adafactor(decay_rate=0.8), "Adafactor: decay_rate must be at most 0"),
        (
            lambda: optim.MultiOptimizer([optim.SGD()], [lambda name, w: True]),
            "MultiOptimizer: 1 filters for 1 optimizers; the last optimizer has none",
        ),
        (
            lambda: optim.SGD().apply_gradients({"w": tn.ones(3)}, ONES),
            r"SGD: the gradient of w has the wrong shape: \(3,\) for \(2,\)",
        ),
        (
            lambda: optim.SGD().apply_gradients({"b": tn.ones(2)}, ONES),
            "SGD: a gradient for b, which is no parameter",
        ),
        (
            lambda: optim.SGD().apply_gradients([tn.ones(2)], []),
            "SGD: 1 gradients for 0 parameters",
        ),
        (
            lambda: optim.SGD().apply_gradients({"w": None}, ONES),
            "SGD: the gradient of w is a NoneType for a Tensor",
        ),
    ],
)
def test_errors(call, text):
    with pytest.raises((ValueError, TypeError), match=text):
        call()


class Halved(optim.Adam):
    """Adam with half the change."""

    def apply_single(self, gradient, parameter, state):
        state.setdefault("count", tn.array(0))
        state["count"] = state["count"] + 1
        return (parameter + super().apply_single(gradient, parameter, state)) / 2


def test_classes_of_the_library_are_bases():
    whole, half = optim.Adam(0.5), Halved(lr=0.5)
    want = whole.apply_gradients(ONES, ONES)["w"].numpy()
    got = half.apply_gradients(ONES, ONES)["w"].numpy()
    np.testing.assert_allclose(got, (1 + want) / 2, 1e-6)
    assert list(half.state["moments"]["w"]) == ["m", "v", "count"]
    assert issubclass(optim.AdamW, optim.Adam) and optim.AdamW.decoupled


def test_options_are_attributes_that_may_change():
    changed, made = optim.Lion(0.1), optim.Lion(0.1, betas=(0.5, 0.25))
    assert changed.betas == (0.9, 0.99) and optim.Muon().adjust_lr_fn is None
    changed.betas = [0.5, 0.25]
    for _ in range(3):
        got = changed.apply_gradients({"w": tn.array([1.0, -2.0])}, ONES)
        want = made.apply_gradients({"w": tn.array([1.0, -2.0])}, ONES)
    assert got["w"].tolist() == want["w"].tolist()
    signature = inspect.signature(optim.Lion.__init__)
    assert list(signature.parameters) == ["self", "learning_rate", "betas", "weight_decay"]
    assert optim.Adafactor(learning_rate=None).lr.item() == pytest.approx(0.01)


def test_state_that_a_changed_option_needs_is_missed():
    optimizer = optim.SGD(0.1, momentum=0.0)
    optimizer.apply_gradients(ONES, ONES)
    optimizer.state["moments"]["w"] = {}
    optimizer.momentum = 0.9
    with pytest.raises(ValueError, match="SGD: the state of the parameter has no 'v'"):
        optimizer.apply_gradients(ONES, ONES)


def test_names():
    assert set(optim.optimizers.__all__) <= set(optim.__all__) & set(nn.__all__)
    assert optim.Adadelta is optim.AdaDelta
    assert nn.SGD is optim.SGD and tn.Module is nn.Module and tn.Linear is nn.Linear
    assert tn.nn.gelu is tn.gelu


MODULES = [optim.clipping, optim.multi, optim.optimizer, optim.optimizers]


@pytest.mark.host
@pytest.mark.parametrize("module", MODULES, ids=lambda m: m.__name__)
def test_examples_in_the_documentation(module):
    assert doctest.testmod(module, extraglobs={"tn": tn}).failed == 0


def test_the_state_of_another_model_is_refused():
    one, other = tn.nn.Linear(2, 1), tn.nn.Sequential(tn.nn.Linear(2, 3), tn.nn.Linear(3, 1))
    kept = optim.SGD(one.parameters(), lr=0.1, momentum=0.9).state_dict()
    rule = optim.SGD(other.parameters(), lr=0.1, momentum=0.9)
    with pytest.raises(ValueError, match=r"are layers\.0\.bias, .*, not bias, weight"):
        rule.load_state_dict(kept)
    other.layers[0].freeze()
    optim.SGD(other.parameters(), lr=0.1, momentum=0.9).load_state_dict(rule.state_dict())


def test_a_parameter_that_was_computed_from_itself_is_told():
    model = tn.nn.Linear(2, 1)
    rule = optim.SGD(model.parameters(), lr=0.1)
    model.weight = model.weight * 0.0 + 1.0
    (model(tn.ones((1, 2))) ** 2).sum().backward(retain_graph=True)
    with pytest.warns(UserWarning, match=r"weight was computed from .*\.detach\(\)"):
        rule.step()
