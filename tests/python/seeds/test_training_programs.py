"""Training programs that no document shows, in the manner of those that do.

Each trains something small in another way: other layers, other optimizers, other containers of
state. Compiled and not, they reach the same losses, bit for bit.
"""

from dataclasses import dataclass
from functools import partial

import numpy as np
import pytest

import tenon as tn
import tenon.nn as nn
import tenon.optim as optim


def assert_falls(losses, part):
    assert all(np.isfinite(losses))
    assert np.mean(losses[-3:]) < part * np.mean(losses[:3])


# Sequences: a recurrent network that learns which of two numbers it saw more often --------------


class Counter(nn.Module):
    def __init__(self, hidden):
        self.embed = nn.Embedding(2, hidden)
        self.cell = nn.GRU(hidden, hidden)
        self.out = nn.Linear(hidden, 1)

    def __call__(self, bits):
        states, _ = self.cell(self.embed(bits))
        return self.out(states[:, -1]).squeeze(-1)


def recurrent_losses(compiled, steps=25):
    tn.random.seed(3)
    model = Counter(12)
    optimizer = optim.RMSprop(learning_rate=0.01)
    bits = tn.random.randint(0, 2, (48, 9))
    more = (tn.mean(bits.astype(tn.float32), axis=1) > 0.5).astype(tn.float32)

    def loss_of(model):
        return nn.losses.binary_cross_entropy(model(bits), more)

    def step():
        loss, grads = nn.value_and_grad(model, loss_of)(model)
        optimizer.update(model, grads)
        return loss

    if compiled:
        state = {"model": model, "optimizer": optimizer.state}
        step = tn.compile(step, inputs=state, outputs=state)
    losses = []
    for _ in range(steps):
        losses.append(step().item())
        tn.eval(model.state, optimizer.state)
    return losses


def test_a_recurrent_network():
    want = recurrent_losses(compiled=False)
    assert_falls(want, 0.9)
    assert recurrent_losses(compiled=True) == want


# Two networks against each other, each with its optimizer, and draws in between -----------------


@dataclass
class Player:
    """A network and what trains it; a tree like any other."""

    net: nn.Module
    optimizer: dict


def test_two_networks_in_one_step():
    def play(compiled, rounds=12):
        tn.random.seed(8)
        maker = nn.Sequential(nn.Linear(2, 16), nn.silu, nn.Linear(16, 2))
        judge = nn.Sequential(nn.Linear(2, 16), nn.leaky_relu, nn.Linear(16, 1))
        improve = optim.Adam(0.01, betas=(0.5, 0.9)), optim.Adam(0.02, betas=(0.5, 0.9))
        for net, optimizer in zip((maker, judge), improve):
            optimizer.init(net.parameters())
        state = [Player(maker, improve[0].state), Player(judge, improve[1].state), tn.random.state]

        def says(judge, points, truth):
            target = tn.full((points.shape[0], 1), truth)
            return nn.losses.binary_cross_entropy(judge(points), target)

        def judge_loss(judge, real, made):
            return says(judge, real, 1.0) + says(judge, made, 0.0)

        def maker_loss(maker, noise):
            return says(judge, maker(noise), 1.0)

        def round_of(real):
            noise = tn.random.normal((32, 2))
            first, grads = nn.value_and_grad(judge, judge_loss)(judge, real, maker(noise))
            improve[1].update(judge, grads)
            second, grads = nn.value_and_grad(maker, maker_loss)(maker, noise)
            improve[0].update(maker, grads)
            return first, second

        if compiled:
            round_of = tn.compile(round_of, inputs=state, outputs=state)
        real = tn.random.normal((32, 2), key=tn.random.key(1)) * 0.3 + tn.array([2.0, -1.0])
        return [[loss.item() for loss in round_of(real)] for _ in range(rounds)]

    want = play(compiled=False)
    assert want[-1][0] < want[0][0]  # the judge learns
    assert play(compiled=True) == want


# A trunk that stays as it is, a head that learns, and a mean of the weights over time -----------


def test_a_frozen_trunk_and_a_mean_of_the_weights():
    tn.random.seed(5)
    trunk = nn.Sequential(nn.Conv1d(1, 8, 3, padding=1), nn.GroupNorm(2, 8), nn.ReLU())
    model = nn.Sequential(trunk, lambda x: tn.mean(x, axis=2), nn.Linear(8, 3))
    trunk.freeze()
    optimizer = optim.Lion(learning_rate=3e-3, weight_decay=0.01)
    averages = tn.tree.map(tn.copy, dict(model.trainable_parameters()))
    state = (model.state, optimizer.state, averages)
    x = tn.random.normal((30, 1, 12))
    y = tn.argmax(tn.stack([x[:, 0].max(axis=1), x[:, 0].std(axis=1), x[:, 0, 0]], axis=1), axis=1)

    def loss_of(params, x, y):
        model.update(params)
        return tn.mean(nn.losses.cross_entropy(model(x), y))

    @partial(tn.compile, inputs=state, outputs=state)
    def step(x, y):
        loss, grads = tn.value_and_grad(loss_of)(model.trainable_parameters(), x, y)
        optimizer.update(model, grads)
        moved = tn.tree.map(lambda a, p: 0.9 * a + 0.1 * p, averages,
                            dict(model.trainable_parameters()))
        averages.update(moved)
        return loss

    before = [p.tolist() for p in tn.tree.leaves(trunk.parameters())]
    start = averages["layers"][2]["weight"].numpy().copy()
    losses = [step(x, y).item() for _ in range(40)]
    assert_falls(losses, 0.95)
    assert [p.tolist() for p in tn.tree.leaves(trunk.parameters())] == before
    last = model.layers[2].weight.numpy()
    mean = averages["layers"][2]["weight"].numpy()
    assert np.all(np.abs(last - mean) <= np.abs(last - start) + 1e-6) and not np.all(mean == last)
    assert step.stats().traces <= 2


# Vectors of words without any module, and a rate that falls -------------------------------------


def test_plain_dicts_of_tensors_with_a_schedule():
    tn.random.seed(6)
    params = {"words": [0.1 * tn.random.normal((20, 6)), 0.1 * tn.random.normal((20, 6))]}
    rate = optim.step_decay(0.5, 0.8, 5)
    optimizer = optim.Adagrad(rate)
    optimizer.init(params)
    state = [params, optimizer.state]

    def loss_of(params, word, near, far):
        inner, outer = params["words"]
        score = lambda a, b: tn.sum(inner[a] * outer[b], axis=-1)
        return tn.mean(tn.softplus(-score(word, near)) + tn.softplus(score(word, far)))

    @partial(tn.compile, inputs=state, outputs=state)
    def step(word, near, far):
        loss, grads = tn.value_and_grad(loss_of)(params, word, near, far)
        params.update(optimizer.apply_gradients(grads, params))
        return loss

    rng = np.random.default_rng(0)
    losses = []
    for _ in range(20):
        word = rng.integers(0, 19, 64)
        far = (word + rng.integers(3, 15, 64)) % 20
        losses.append(step(tn.array(word), tn.array(word + 1), tn.array(far)).item())
    assert_falls(losses, 0.9)
    assert optimizer.learning_rate.item() == pytest.approx(0.5 * 0.8**3)
    assert optimizer.state["step"].item() == 20 and step.stats().traces <= 2


# A student that learns from a teacher, with backward() and step() -------------------------------


def taught_losses(compiled, steps=20):
    tn.random.seed(7)
    teacher = nn.Sequential(nn.Linear(6, 32), nn.BatchNorm(32), nn.Tanh(), nn.Linear(32, 4)).eval()
    student = nn.Sequential(nn.Linear(6, 12), nn.LayerNorm(12), nn.Mish(), nn.Linear(12, 4))
    optimizer = optim.AdamW(student.parameters(), lr=0.02)
    x = tn.random.normal((40, 6))

    def step(x):
        with tn.no_grad():
            wanted = tn.log_softmax(teacher(x) * 3, axis=-1)
        optimizer.zero_grad()
        said = tn.log_softmax(student(x), axis=-1)
        loss = nn.losses.kl_div_loss(said, wanted, reduction="mean")
        loss.backward()
        optimizer.step()
        return loss

    if compiled:
        state = [student, optimizer.state]
        step = tn.compile(step, inputs=state, outputs=state)
    return [step(x).item() for _ in range(steps)]


def test_a_student_and_a_teacher():
    want = taught_losses(compiled=False)
    assert_falls(want, 0.8)
    assert taught_losses(compiled=True) == want


# Two losses, one after the other, whose gradients add up ----------------------------------------


class TwoHeads(nn.Module):
    def __init__(self):
        super().__init__()
        self.fc = nn.Linear(5, 24)
        self.heads = {"size": nn.Linear(24, 1), "sign": nn.Linear(24, 1)}

    def forward(self, x):
        h = self.fc(x).relu()
        return {name: head(h) for name, head in self.heads.items()}


def test_gradients_of_two_losses_add_up():
    tn.random.seed(2)
    model = TwoHeads()
    optimizer = optim.SGD(model.parameters(), lr=0.05, momentum=0.9)
    x = tn.randn(32, 5)
    target = x.sum(axis=1, keepdims=True)

    losses = []
    for _ in range(30):
        out = model(x)
        size = ((out["size"] - target.abs()) ** 2).mean()
        sign = nn.losses.hinge_loss(out["sign"], target.sign())
        size.backward(retain_graph=True)
        alone = model.fc.weight.grad.numpy().copy()
        tn.mean(sign).backward()
        assert not np.array_equal(model.fc.weight.grad.numpy(), alone)
        optimizer.step()
        optimizer.zero_grad()
        losses.append(size.item() + tn.mean(sign).item())
    assert model.fc.weight.grad is None
    assert_falls(losses, 0.5)


# A loop without an optimizer ----------------------------------------------------------------------


def test_parameters_changed_by_hand():
    tn.random.seed(1)
    x = tn.randn(50, 3)
    y = x @ tn.array([1.0, -2.0, 0.5]) + 3
    w, b = tn.zeros(3, requires_grad=True), tn.zeros((), requires_grad=True)
    variables = w, b
    losses = []
    for _ in range(30):
        loss = ((x @ w + b - y) ** 2).mean()
        loss.backward()
        with tn.no_grad():
            w -= 0.1 * w.grad
            b -= 0.1 * b.grad
        w.grad = b.grad = None
        losses.append(loss.item())
    assert_falls(losses, 0.05)
    assert variables[0] is w and w.requires_grad and w.is_leaf

    plain = other = tn.ones(3)
    with tn.no_grad():
        plain -= 1
        with pytest.raises(TypeError, match="must keep its type f32.3., given f32.2,3."):
            w += tn.ones((2, 3))
    assert other.tolist() == [1, 1, 1] and plain.tolist() == [0, 0, 0]
    assert (w + 0).requires_grad


# A layer around a layer that is frozen: few numbers are trained ---------------------------------


class LowRank(nn.Module):
    def __init__(self, linear, rank):
        super().__init__()
        outputs, inputs = linear.weight.shape
        self.linear = linear.freeze()
        self.down = 0.1 * tn.random.normal((inputs, rank))
        self.up = tn.zeros((rank, outputs))

    def __call__(self, x):
        return self.linear(x) + (x @ self.down) @ self.up


def test_a_low_rank_change_of_a_frozen_model():
    tn.random.seed(9)
    x = tn.random.normal((64, 8))
    y = tn.argmax(x[:, :3], axis=1)
    model = nn.Sequential(nn.Linear(8, 16), nn.tanh, nn.Linear(16, 3)).freeze()
    before = model(x).numpy()
    model.layers[0] = LowRank(model.layers[0], rank=2)
    np.testing.assert_array_equal(model(x).numpy(), before)
    optimizer = optim.Adam(0.05)
    state = [model, optimizer]

    def loss_of(model, x, y):
        logits = model(x)
        right = tn.argmax(logits, axis=1) == y
        return nn.losses.cross_entropy(logits, y, reduction="mean"), tn.count_nonzero(right)

    @partial(tn.compile, inputs=state, outputs=state)
    def step(x, y):
        (loss, right), grads = nn.value_and_grad(model, loss_of)(model, x, y)
        optimizer.update(model, grads)
        return loss, right

    seen = [[value.item() for value in step(x, y)] for _ in range(30)]
    assert_falls([loss for loss, _ in seen], 0.6)
    assert seen[-1][1] > seen[0][1]
    assert set(optimizer.state["moments"]) == {"layers.0.down", "layers.0.up"}


# Four networks at once, each a loop over positions ----------------------------------------------


def test_an_ensemble_of_loops():
    def drawn(key):
        inner, outer = tn.random.split(key)
        return {"w": 0.3 * tn.random.normal((8, 8), key=inner),
                "u": 0.3 * tn.random.normal((8, 3), key=outer)}

    x = tn.random.normal((64, 8), key=tn.random.key(1))
    y = tn.argmax(x[:, :3], axis=1)
    params = tn.vmap(drawn)(tn.random.split(tn.random.key(0), 4))

    def loss_of(params, x, y):
        advance = lambda h, _: (tn.tanh(h @ params["w"]), None)
        h, _ = tn.scan(advance, x, None, length=3)
        return tn.cross_entropy(h @ params["u"], y)

    def step(params):
        losses, grads = tn.vmap(tn.value_and_grad(loss_of), in_axes=(0, None, None))(params, x, y)
        return losses, tn.tree.map(lambda p, g: p - 0.5 * g, params, grads)

    def run(step, params):
        seen = []
        for _ in range(20):
            losses, params = step(params)
            seen.append(losses.tolist())
        return seen

    want = run(step, params)
    assert all(last < 0.6 * first for first, last in zip(want[0], want[-1]))
    assert run(tn.compile(step), params) == want
