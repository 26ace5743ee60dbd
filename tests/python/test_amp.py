"""Mixed precision: what ops compute in, derivatives, traces, and training with scaled losses."""

from __future__ import annotations

import doctest
import threading

import numpy as np
import pytest

import tenon as tn
from tenon import amp, nn, optim, testing

NARROW = [tn.bfloat16, tn.float16]
FLOATS = {tn.float32, *NARROW}


def types_of(tree):
    return [t.dtype for t in tn.tree.leaves(tree) if isinstance(t, tn.Tensor)]


# Every op --------------------------------------------------------------------------


def has_narrow_form(sample):
    floats = [dtype for dtype, _ in sample.args if dtype == tn.float32]
    return floats and sample.op != "bitcast"  # which is about bytes


@pytest.mark.parametrize("sample", [*filter(has_narrow_form, testing.samples())], ids=str)
def test_every_op_computes_in_the_type_that_the_policy_says(sample):
    rng = np.random.default_rng(0)
    values = [rng.uniform(sample.lo, sample.hi, shape) for _, shape in sample.args]
    given = [tn.array(v).astype(dtype) for v, (dtype, _) in zip(values, sample.args)]
    for float_type in (tn.float32, tn.bfloat16):
        operands = [t.astype(float_type) if t.dtype == tn.float32 else t for t in given]
        with amp.autocast(tn.bfloat16) as policy:
            result = sample.call(*operands)
        tn.eval(result)
        wanted = policy.type_of(sample.op)
        plain = types_of(sample.call(*(given if wanted else operands)))
        for before, now in zip(plain, types_of(result), strict=True):
            assert now == (wanted if wanted and before in FLOATS else before)


@pytest.mark.parametrize("draw", ["uniform", "normal", "gumbel", "laplace", "exponential"])
def test_draws_have_the_type_that_is_asked_for(draw):
    key = tn.random.key(0)
    plain = getattr(tn.random, draw)(shape=(8,), dtype=tn.bfloat16, key=key)
    with amp.autocast():
        inside = getattr(tn.random, draw)(shape=(8,), dtype=tn.bfloat16, key=key)
    assert inside.dtype == tn.bfloat16
    np.testing.assert_allclose(
        inside.astype(tn.float32).numpy(), plain.astype(tn.float32).numpy(), 1e-2
    )


def test_float64_and_integers_are_left_alone():
    a, b = tn.ones((2, 2), dtype=tn.float64), tn.ones((2, 2), dtype=tn.int32)
    with amp.autocast():
        assert (a @ a).dtype == tn.float64
        assert (b @ b).dtype == tn.int32
        assert tn.sum(a).dtype == tn.float64
        assert (tn.ones(3) * 2).dtype == tn.float32


def test_the_inside_of_an_op_follows_the_op():
    """attention has a softmax inside, a norm has products: neither is converted again."""
    q = tn.array(np.ones((1, 2, 4, 8), np.float32))
    with amp.autocast():
        graph = tn.graph_text(tn.scaled_dot_product_attention(q, q, q))
        assert graph.count("astype") == 3
        assert "astype" not in tn.graph_text(tn.linalg.vector_norm(q))


# The policy ------------------------------------------------------------------------


def test_policies_nest_and_end():
    a = tn.ones((2, 2))
    assert amp.policy() is None
    with amp.autocast(tn.float16):
        with amp.autocast(amp.Policy(tn.bfloat16)) as inner:
            assert inner == amp.policy() == amp.Policy(tn.bfloat16)
            with amp.autocast(enabled=False):
                assert amp.policy() is None and (a @ a).dtype == tn.float32
        assert (a @ a).dtype == tn.float16
        with pytest.raises(ZeroDivisionError), amp.autocast():
            raise ZeroDivisionError
        assert amp.policy() == amp.Policy(tn.float16)
    assert amp.policy() is None and (a @ a).dtype == tn.float32


def test_a_policy_belongs_to_its_thread():
    seen = []
    with amp.autocast():
        thread = threading.Thread(target=lambda: seen.append(amp.policy()))
        thread.start()
        thread.join()
    assert seen == [None]


def test_a_decorated_function_may_call_itself():
    @amp.autocast(tn.float16)
    def power(a, n):
        return a if n == 1 else a @ power(a, n - 1)

    assert power(tn.ones((2, 2)), 3).dtype == tn.float16 and amp.policy() is None


@pytest.mark.parametrize("dtype", ["float32", tn.int8, tn.float64])
def test_other_types_are_refused(dtype):
    with pytest.raises(TypeError, match="autocast: the narrow type is bfloat16 or float16, not"):
        with amp.autocast(dtype):
            pass
    assert amp.policy() is None


def test_unknown_ops_are_refused():
    with pytest.raises(ValueError, match="amp: no op is called nothing"):
        amp.Policy().type_of("nothing")


# Compiled functions and derivatives ------------------------------------------------


def test_a_compiled_function_has_a_trace_for_each_policy():
    f = tn.compile(lambda a: a @ a)
    a = tn.ones((2, 2))
    assert f(a).dtype == tn.float32
    for dtype in NARROW:
        with amp.autocast(dtype):
            assert f(a).dtype == dtype
    assert f(a).dtype == tn.float32
    assert f.stats().traces == 3 and f.stats().hits == 1
    assert "autocast was float32" not in "".join(f.why_recompiled())
    assert f.why_recompiled()[1].startswith("autocast was off, now bfloat16")


def test_a_policy_inside_a_compiled_function():
    @tn.compile
    def f(a):
        with amp.autocast():
            b = a @ a
        return b, a @ a

    assert types_of(f(tn.ones((2, 2)))) == [tn.bfloat16, tn.float32]
    assert amp.policy() is None


@pytest.mark.parametrize("inside", [True, False], ids=["in the policy", "after it"])
def test_gradients_have_the_type_of_the_parameters(inside):
    model = nn.Sequential(nn.Linear(4, 8), nn.gelu, nn.Linear(8, 3))
    x, y = tn.randn(5, 4), tn.array([0, 1, 2, 1, 0])

    def loss(model):
        with amp.autocast():
            return nn.losses.cross_entropy(model(x), y, reduction="mean")

    exact = tn.grad(lambda m: nn.losses.cross_entropy(m(x), y, reduction="mean"))(model)
    if inside:
        with amp.autocast():
            gradient = tn.grad(loss)(model)
    else:
        gradient = tn.grad(loss)(model)
    for g, e in zip(tn.tree.leaves(gradient), tn.tree.leaves(exact), strict=True):
        assert g.dtype == tn.float32
        np.testing.assert_allclose(g.numpy(), e.numpy(), rtol=0.05, atol=2e-3)


LAYERS = {
    "convolution": (
        lambda: nn.Sequential(nn.Conv2d(3, 8, 3, bias=False), nn.BatchNorm2d(8), nn.MaxPool2d(2)),
        (2, 3, 8, 8),
    ),
    "attention": (lambda: nn.TransformerEncoder(1, 16, 2, dropout=0.0), (2, 5, 16)),
    "norms": (lambda: nn.Sequential(nn.Linear(8, 8), nn.LayerNorm(8), nn.RMSNorm(8)), (4, 8)),
    "recurrent": (lambda: nn.Sequential(nn.GRU(8, 8)), (2, 5, 8)),
}


@pytest.mark.parametrize("compiled", [False, True])
@pytest.mark.parametrize("name", LAYERS)
def test_layers(name, compiled):
    tn.random.seed(0)
    make, shape = LAYERS[name]
    model, x = make(), tn.randn(*shape)

    def loss(model):
        return tn.mean(tn.square(tn.tree.leaves(model(x))[0]))

    gradient = amp.autocast(tn.bfloat16)(tn.grad(loss))
    narrow = (tn.compile(gradient) if compiled else gradient)(model)
    for g, e in zip(tn.tree.leaves(narrow), tn.tree.leaves(tn.grad(loss)(model)), strict=True):
        assert g.dtype == tn.float32
        np.testing.assert_allclose(g.numpy(), e.numpy(), atol=0.03 * (0.01 + abs(e.numpy()).max()))


def test_gradients_of_backward_have_the_type_of_the_parameters():
    model = nn.Linear(4, 3)
    with amp.autocast():
        y = model(tn.ones((2, 4)))
        assert y.dtype == tn.bfloat16
        tn.mean(y * y).backward()
    assert model.weight.grad.dtype == tn.float32


@pytest.mark.parametrize("transform", ["vmap", "checkpoint", "scan", "jvp"])
def test_transforms_record_what_the_policy_says(transform):
    w, x = tn.randn(4, 4), tn.randn(3, 4)

    def f(v):
        return tn.tanh(v @ w)

    def run():
        if transform == "vmap":
            return tn.vmap(f)(x)
        if transform == "checkpoint":
            return tn.checkpoint(f)(x)
        if transform == "scan":
            return tn.scan(lambda c, v: (c, f(v)), tn.array(0.0), x)[1]
        return tn.jvp(f, (x,), (x,))[1]

    exact = run()
    with amp.autocast():
        narrow = run()
    assert narrow.dtype == tn.bfloat16
    np.testing.assert_allclose(narrow.astype(tn.float32).numpy(), exact.numpy(), 0.05, 0.05)


def test_rules_of_custom_functions_compute_in_the_types_they_are_given():
    @tn.custom_function
    def square(x):
        return x * x

    seen = []

    @square.vjp
    def square_vjp(x, ct, y):
        seen.append((ct @ ct).dtype)
        return 2 * x * ct

    with amp.autocast():
        tn.grad(lambda x: tn.sum(square(x)))(tn.ones((2, 2))).numpy()
    assert seen == [tn.float32]


# Training --------------------------------------------------------------------------


def spirals():
    rng = np.random.default_rng(1)
    t = rng.uniform(0.5, 3, 96)
    y = np.arange(96) % 2
    x = np.stack([t * np.cos(t * 2 + np.pi * y), t * np.sin(t * 2 + np.pi * y)], 1)
    return tn.array(x, dtype=tn.float32), tn.array(y)


def trained(dtype, scaler=None, steps=60):
    """The losses of a run, and the model."""
    tn.random.seed(0)
    model = nn.Sequential(nn.Linear(2, 32), nn.relu, nn.Linear(32, 32), nn.relu, nn.Linear(32, 2))
    optimizer = optim.Adam(0.01)
    scaler = scaler or amp.LossScaler(1.0, dynamic=False)
    state = [model.state, optimizer.state, scaler.state]
    optimizer.init(model.trainable_parameters())

    def loss(x, y):
        with amp.autocast(dtype or tn.bfloat16, enabled=dtype is not None):
            return scaler.scale(nn.losses.cross_entropy(model(x), y, reduction="mean"))

    @tn.compile(inputs=state, outputs=state)
    def step(x, y):
        value, grads = nn.value_and_grad(model, loss)(x, y)
        scaler.update(optimizer, model, scaler.unscale(grads))
        return scaler.unscale(value)

    x, y = spirals()
    losses = [step(x, y).item() for _ in range(steps)]
    assert step.stats().traces == 1
    assert set(types_of(model.parameters())) == {tn.float32}
    return losses, model


def test_training_in_narrow_types_follows_that_in_float32():
    exact, _ = trained(None)
    assert exact[-1] < 0.5 * exact[0]
    for dtype, scaler in [(tn.bfloat16, None), (tn.float16, amp.LossScaler(2.0**10))]:
        losses, _ = trained(dtype, scaler)
        np.testing.assert_allclose(losses[:10], exact[:10], rtol=0.02)
        assert losses[-1] < 0.5 * losses[0]


def test_a_scale_that_overflows_is_halved_until_it_does_not():
    scaler = amp.LossScaler(2.0**30)
    losses, _ = trained(tn.float16, scaler)
    assert losses[0] == losses[1]  # the step was skipped
    assert losses[-1] < 0.5 * losses[0] and np.isfinite(losses).all()
    assert scaler.state["scale"].item() < 2.0**30


def make_step(scaler, gradient):
    model = nn.Linear(2, 1)
    optimizer = optim.Adam(0.1)
    gradients = tn.tree.map(lambda p: tn.full_like(p, gradient), model.parameters())
    return model, optimizer, lambda: scaler.update(optimizer, model, gradients)


@pytest.mark.parametrize("bad", [float("inf"), float("nan")])
def test_a_step_with_bad_gradients_changes_nothing_but_the_scale(bad):
    scaler = amp.LossScaler(8.0)
    model, optimizer, step = make_step(scaler, bad)
    before = model.weight.numpy()
    step()
    assert (model.weight.numpy() == before).all() and optimizer.state["step"].item() == 0
    assert all(np.isfinite(t.numpy()).all() for t in tn.tree.leaves(optimizer.state))
    assert scaler.state["scale"].item() == 4.0


def test_the_scale_grows_after_good_steps():
    scaler = amp.LossScaler(8.0, interval=2)
    model, optimizer, step = make_step(scaler, 1.0)
    scales = []
    for _ in range(4):
        step()
        scales.append(scaler.state["scale"].item())
    assert scales == [8, 16, 16, 32] and optimizer.state["step"].item() == 4


def test_the_scale_has_bounds():
    for gradient, bound in [(1.0, 2.0**100), (float("nan"), 2.0**-100)]:
        scaler = amp.LossScaler(8.0, growth=2.0**60, backoff=2.0**-60, interval=1)
        _, _, step = make_step(scaler, gradient)
        for _ in range(3):
            step()
        assert scaler.state["scale"].item() == bound


def test_a_static_scale_stays():
    scaler = amp.LossScaler(8.0, dynamic=False)
    _, optimizer, step = make_step(scaler, float("inf"))
    step()
    assert scaler.state["scale"].item() == 8.0 and optimizer.state["step"].item() == 0


@pytest.mark.parametrize("compiled", [False, True])
@pytest.mark.parametrize("clips", [False, True])
def test_backward_and_step(compiled, clips):
    """The scale overflows at first, so that steps are skipped until it is small enough."""
    tn.random.seed(0)
    model = nn.Sequential(nn.Linear(2, 16), nn.relu, nn.Linear(16, 2))
    optimizer = optim.Adam(model.parameters(), lr=0.01)
    scaler = amp.LossScaler(2.0**24)
    x, y = spirals()

    def step(x, y):
        optimizer.zero_grad()
        with amp.autocast(tn.float16):
            loss = nn.losses.cross_entropy(model(x), y, reduction="mean")
        scaler.scale(loss).backward()
        if clips:
            scaler.unscale_(optimizer)
            optim.clip_grad_norm_(model.parameters(), 1.0)
        scaler.step(optimizer)
        return loss

    if compiled:
        state = [model, optimizer, scaler.state]
        step = tn.compile(step, inputs=state, outputs=state)
    losses = []
    for _ in range(60):
        losses.append(step(x, y).item())
        tn.eval(model.state, optimizer.state, scaler.state)
    taken = optimizer.state["step"].item()
    assert losses[0] == losses[1] and 0 < taken < 60
    assert losses[-1] < 0.9 * losses[0] and scaler.state["scale"].item() == 2.0 ** (24 - 60 + taken)


@pytest.mark.parametrize("before", [False, True])
def test_gradients_of_two_optimizers_are_those_of_one_loss(before):
    """The scale changes with the first step, and the second still has gradients of the old one."""
    models = nn.Linear(2, 1), nn.Linear(2, 1)
    optimizers = [optim.SGD(model.parameters(), lr=1.0) for model in models]
    scaler = amp.LossScaler(1024.0, interval=1)
    weights = [model.weight.numpy() for model in models]
    scaler.scale(sum(tn.sum(model(tn.ones((1, 2)))) for model in models)).backward()
    for optimizer in optimizers if before else []:
        scaler.unscale_(optimizer)
    for optimizer in optimizers:
        scaler.step(optimizer)
    for model, old in zip(models, weights):
        np.testing.assert_allclose(old - model.weight.numpy(), [[1, 1]], rtol=1e-6)


def test_checkpoints_hold_the_scale(tmp_path):
    scaler, again = amp.LossScaler(8.0, interval=3), amp.LossScaler()
    _, _, step = make_step(scaler, 1.0)
    step()
    tn.save_checkpoint(tmp_path / "run", scaler=scaler)
    tn.load_checkpoint(tmp_path / "run", scaler=again)
    assert [again.state[name].item() for name in ("scale", "good_steps")] == [8, 1]
    with pytest.raises(ValueError, match="LossScaler: load_state_dict: a state has"):
        again.load_state_dict({"scale": tn.array(1.0)})


def test_bad_scales_are_refused():
    with pytest.raises(ValueError, match="LossScaler: scale > 0"):
        amp.LossScaler(0)


@pytest.mark.host
def test_examples_in_the_documentation():
    assert doctest.testmod(amp, extraglobs={"tn": tn}).failed == 0
