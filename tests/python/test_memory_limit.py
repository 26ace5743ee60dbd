"""`memory_limit` computes values again until a plan fits; checkpoints of modules."""

from __future__ import annotations

import re

import numpy as np
import pytest

import tenon as tn
from tenon import nn, optim

WIDTH, ROWS = 32, 256


class Block(nn.Module):
    def __init__(self) -> None:
        super().__init__()
        self.norm, self.drop = nn.LayerNorm(WIDTH), nn.Dropout(0.2)
        self.up, self.down = nn.Linear(WIDTH, 4 * WIDTH), nn.Linear(4 * WIDTH, WIDTH)

    def __call__(self, x: tn.Tensor) -> tn.Tensor:
        return x + self.drop(self.down(nn.gelu(self.up(self.norm(x)))))


class Model(nn.Module):
    def __init__(self, checkpointed: bool = False, layers: int = 6) -> None:
        super().__init__()
        self.blocks = [Block() for _ in range(layers)]
        self.checkpointed = checkpointed

    def __call__(self, x: tn.Tensor) -> tn.Tensor:
        for block in self.blocks:
            x = tn.checkpoint(block)(x) if self.checkpointed else block(x)
        return x


def batch(rows: int = ROWS) -> tuple[tn.Tensor, tn.Tensor]:
    rng = np.random.default_rng(3)
    return tuple(tn.array(rng.standard_normal((rows, WIDTH), dtype=np.float32)) for _ in range(2))


def training(checkpointed: bool = False, **options):
    """A compiled step of AdamW, always from the same parameters and masks."""
    tn.random.seed(0)
    model, optimizer = Model(checkpointed), optim.AdamW(learning_rate=1e-3)
    optimizer.init(model.parameters())
    loss_of = nn.value_and_grad(model, lambda x, y: tn.mean((model(x) - y) ** 2))
    state = [model, optimizer, tn.random.state]

    @tn.compile(inputs=state, outputs=state, **options)
    def step(x, y):
        loss, gradients = loss_of(x, y)
        optimizer.update(model, gradients)
        return loss

    return step, model


def bits(model: nn.Module) -> list[bytes]:
    return [np.asarray(p).tobytes() for p in tn.tree.leaves(model.parameters())]


def steps(step, count: int = 3) -> list[float]:
    return [step(*batch()).item() for _ in range(count)]


@pytest.fixture(scope="module")
def plain():
    step, model = training()
    losses = steps(step)
    return losses, bits(model), step.memory(*batch()).peak


@pytest.mark.parametrize("part", [0.8, 0.6, 0.5])
def test_less_memory_gives_the_same_bits(plain, part):
    losses, parameters, peak = plain
    limit = int(part * peak)
    step, model = training(memory_limit=limit)
    assert steps(step) == losses
    assert bits(model) == parameters
    assert step.memory(*batch()).peak <= limit


def test_a_limit_that_fits_changes_nothing(plain):
    former, _ = training()
    step, _ = training(memory_limit=plain[2])
    assert step.show("plan", *batch()) == former.show("plan", *batch())
    assert "memory:" not in step.show("decisions", *batch())


def test_decisions_tell_what_is_computed_again(plain):
    step, _ = training(memory_limit=plain[2] // 2)
    lines = [line for line in step.show("decisions", *batch()).splitlines()
             if line.startswith("memory")]
    assert re.match(r"memory: \d+ more ops, [\d.]+ % more multiply-adds: with memory_limit a run "
                    r"needs [\d.]+ [KM]iB", lines[0])
    assert any("test_memory_limit.py" in line and "again" in line for line in lines[1:])
    assert "more multiply-adds" in str(tn.explain(step)(*batch()))


def test_the_error_has_the_least_that_was_found(plain):
    step, _ = training(memory_limit="50KB")
    with pytest.raises(MemoryError, match="50000 bytes, the smallest peak") as caught:
        step(*batch())
    needed = int(re.search(r"peak is (\d+) bytes", str(caught.value))[1])
    assert 50_000 < needed < plain[2]
    assert "most at step" in str(caught.value)


def test_level_0_only_fails():
    x = tn.ones(100_000)
    with pytest.raises(MemoryError, match=r"is 1000 bytes, the smallest peak is \d+ bytes\n"):
        tn.compile(lambda x: tn.exp(x) + 1, optimization_level=0, memory_limit=1000)(x)


def test_sizes_that_vary():
    """Small batches fit as they are; for large ones values are computed again."""
    weights = [tn.array(w) for w in
               np.random.default_rng(0).standard_normal((8, 64, 64), dtype=np.float32) / 8]

    def gradients(x, weights):
        def loss(weights):
            y = x
            for w in weights:
                y = tn.tanh(y @ w)
            return tn.sum(y * y)

        return tn.grad(loss)(weights)

    free = tn.compile(gradients, shapeless=True)
    peak = free.memory(tn.ones((512, 64)), weights).peak
    limit = int(0.7 * peak)
    f = tn.compile(gradients, shapeless=True, memory_limit=limit)
    for rows in (16, 512, 64, 500, 512):
        x = tn.array(np.random.default_rng(rows).standard_normal((rows, 64), dtype=np.float32))
        for a, b in zip(f(x, weights), free(x, weights)):
            assert np.array_equal(np.asarray(a), np.asarray(b))
        assert f.memory(x, weights).peak <= limit


def deep(x):
    total = y = x
    kept = []
    for _ in range(6):
        y = tn.tanh(y @ tn.swapaxes(x, 0, 1) @ x)
        kept.append(y)
    for y in reversed(kept):
        total = tn.tanh(total * y) @ tn.swapaxes(x, 0, 1) @ x
    return total


def test_executables(tmp_path):
    info = [tn.InputInfo(((64, 256, 256), 48), tn.float32)]
    x = tn.array(np.random.default_rng(0).standard_normal((256, 48), dtype=np.float32))
    free = tn.compile(deep, args=info)
    limited = tn.compile(deep, args=info, memory_limit=int(0.7 * free.memory().peak))
    assert limited.memory().peak <= 0.7 * free.memory().peak
    want = np.asarray(free(x))
    assert np.array_equal(np.asarray(limited(x)), want)
    limited.save(tmp_path / "deep.tnx")
    loaded = tn.Executable.load(tmp_path / "deep.tnx")
    assert np.array_equal(np.asarray(loaded(x)), want)
    assert loaded.memory().peak == limited.memory().peak
    with pytest.raises(MemoryError, match="the smallest peak is"):
        tn.compile(deep, args=info, memory_limit="10KB")


def test_numbers_given_at_every_run():
    """Numbers keep their places where ops are computed twice."""

    def f(x, a, b):
        early = tn.exp(x * a)
        y = early
        for _ in range(3):
            y = tn.softmax(y @ y * b)
        return tn.sum(y * early * a)

    x = tn.array(np.random.default_rng(0).standard_normal((128, 128), dtype=np.float32))
    free = tn.compile(f)
    peak = free.memory(x, 0.5, 0.25).peak
    limited = tn.compile(f, memory_limit=peak - 1)
    for a, b in ((0.5, 0.25), (0.75, 0.5), (0.1, 1.5)):
        assert limited(x, a, b).item() == free(x, a, b).item()


def test_updates_that_finish_products_take_the_memory_of_their_state():
    """All but one: the sums of the product are made in the memory of a result."""

    def update(state, x, y):
        p, m, v = state
        g = tn.swapaxes(x, 0, 1) @ y
        m, v = 0.9 * m + 0.1 * g, 0.99 * v + 0.01 * (g * g)
        return p - 0.1 * (m / (tn.sqrt(v) + 1e-3) + 0.01 * p), m, v

    rng = np.random.default_rng(0)
    state = [abs(rng.standard_normal((256, 512), dtype=np.float32)) for _ in range(3)]
    x, y = (tn.array(rng.standard_normal((64, n), dtype=np.float32)) for n in (256, 512))
    plain, given = tn.compile(update), tn.compile(update, donate_argnums=0)
    assert given.memory(tuple(map(tn.array, state)), x, y).outputs == state[0].nbytes
    want = plain(tuple(map(tn.array, state)), x, y)
    for a, b in zip(want, given(tuple(map(tn.array, state)), x, y)):
        assert np.array_equal(np.asarray(a), np.asarray(b))


# Checkpoints ----------------------------------------------------------------------------------


def gradients_of(checkpointed: bool, habit: str, compiled: bool) -> tuple[float, list[np.ndarray]]:
    tn.random.seed(0)
    model = Model(checkpointed, layers=2)
    x, y = batch(16)
    loss = lambda x: tn.mean((model(x) - y) ** 2)
    if habit == "module":
        call = nn.value_and_grad(model, loss)
    else:  # the parameters come from outside of the checkpointed call

        def call(x):
            def of(parameters):
                model.update(parameters)
                return loss(x)

            return tn.value_and_grad(of)(model.parameters())

    if compiled:
        state = [model, tn.random.state]
        call = tn.compile(call, inputs=state, outputs=state)
    value, gradients = call(x)
    return value.item(), [np.asarray(g) for g in tn.tree.leaves(gradients)]


@pytest.mark.parametrize("compiled", [False, True])
@pytest.mark.parametrize("habit", ["module", "closure"])
def test_checkpointed_modules_have_their_gradients(habit, compiled):
    value, gradients = gradients_of(False, habit, compiled)
    again, same = gradients_of(True, habit, compiled)
    assert value == again
    assert len(gradients) == len(same) == 12
    for a, b in zip(gradients, same):
        assert np.any(a != 0)
        assert np.array_equal(a, b)


def test_backward_through_checkpointed_modules():
    found = []
    for checkpointed in (False, True):
        tn.random.seed(0)
        model = Model(checkpointed, layers=2)
        optimizer = optim.SGD(model.parameters(), lr=0.1)
        x, y = batch(16)
        for _ in range(2):
            optimizer.zero_grad()
            tn.mean((model(x) - y) ** 2).backward()
            optimizer.step()
        found.append(bits(model))
    assert found[0] == found[1]


def test_checkpoint_is_a_module_with_the_same_state():
    plain = nn.Sequential(nn.Linear(4, 4), nn.BatchNorm(4), nn.Linear(4, 2))
    model = nn.Sequential(*(nn.checkpoint(layer) for layer in plain.layers))
    assert repr(model) == repr(plain)
    assert model.state_dict().keys() == plain.state_dict().keys()
    assert type(nn.checkpoint(model.layers[0])) is type(model.layers[0])
    x = batch(8)[0][:, :4]
    loss, gradients = nn.value_and_grad(model, lambda x: tn.sum(model(x) ** 2))(x)
    assert len(tn.tree.leaves(gradients)) == 6
    optim.SGD(learning_rate=0.1).update(model, gradients)
    assert bits(model) == bits(plain)  # statistics and parameters are those of both
    with pytest.raises(TypeError, match="nn.checkpoint: expected a module, not function"):
        nn.checkpoint(lambda x: x)


def test_checkpoints_save_memory(plain):
    step, model = training(checkpointed=True)
    assert steps(step) == plain[0]
    assert bits(model) == plain[1]
    assert step.memory(*batch()).peak < plain[2]
