"""Layers in transforms, in compiled functions and in executables, and their running statistics."""

import numpy as np
import pytest

import tenon as tn
from tenon import nn, optim


def close(got, want, tolerance=1e-5):
    np.testing.assert_allclose(got.numpy(), want.numpy(), tolerance, tolerance)


def small_cnn():
    return nn.Sequential(
        nn.Conv2d(2, 4, 3, padding=1),
        nn.BatchNorm2d(4),
        nn.ReLU(),
        nn.MaxPool2d(2),
        nn.Dropout2d(0.25),
        nn.Conv2d(4, 6, 3),
        nn.GroupNorm(2, 6),
        nn.gelu,
        nn.Flatten(),
        nn.Linear(24, 3),
    )


class SmallGPT(nn.Module):
    def __init__(self):
        self.embedding = nn.Embedding(11, 16)
        self.positions = nn.SinusoidalPositionalEncoding(16)
        self.blocks = nn.TransformerEncoder(2, 16, 4, dropout=0.1, norm_first=True)

    def forward(self, x):
        x = self.embedding(x) + self.positions(tn.arange(x.shape[1]))
        return self.embedding.as_linear(self.blocks(x, causal=True))


# Running statistics -------------------------------------------------------------------------


def statistics_of(x, momentum=0.1):
    """The running mean and variance after one step from 0 and 1."""
    x = np.moveaxis(x.numpy().astype(np.float64), 1, -1).reshape(-1, x.shape[1])
    return momentum * x.mean(axis=0), 1 - momentum + momentum * x.var(axis=0, ddof=1)


def assert_statistics(layer, x):
    for got, want in zip((layer.running_mean, layer.running_var), statistics_of(x)):
        np.testing.assert_allclose(got.numpy(), want, 1e-5, 1e-6)


def test_running_statistics_are_state_and_no_parameters():
    layer = nn.BatchNorm2d(3)
    assert list(layer.trainable_parameters()) == ["weight", "bias"]
    assert list(layer.state_dict()) == ["weight", "bias", "running_mean", "running_var"]
    x = tn.randn(4, 3, 2, 2)
    layer(x)
    assert_statistics(layer, x)
    before = layer.eval().running_mean
    layer(x)
    assert layer.running_mean is before


def test_running_statistics_move_inside_gradients():
    x = tn.randn(6, 3)
    by_module, by_argument = nn.BatchNorm(3), nn.BatchNorm(3)
    nn.value_and_grad(by_module, lambda x: tn.sum(by_module(x) ** 3))(x)
    tn.grad(lambda x: tn.sum(by_argument(x) ** 3))(x)
    assert_statistics(by_module, x)
    assert_statistics(by_argument, x)


def test_running_statistics_have_no_gradient():
    layer, x = nn.BatchNorm(3), tn.randn(6, 3)

    def loss(x):
        layer(x)
        return tn.sum(layer.running_mean) + tn.sum(layer.running_var)

    assert tn.grad(loss)(x).tolist() == tn.zeros((6, 3)).tolist()


def test_running_statistics_move_in_a_compiled_step():
    layer, twin = nn.BatchNorm(3), nn.BatchNorm(3)
    traces = []

    def step(layer, x):
        traces.append(1)
        return nn.value_and_grad(layer, lambda x: tn.sum(layer(x) ** 3))(x)[0]

    compiled = tn.compile(lambda x: step(layer, x), inputs=layer.state, outputs=layer.state)
    for seed in range(4):
        x = tn.random.normal((6, 3), key=tn.random.key(seed))
        close(compiled(x), step(twin, x))
        close(layer.running_mean, twin.running_mean)
        close(layer.running_var, twin.running_var)
    assert len(traces) == 4 + 1


@pytest.mark.parametrize("habit", ["none", "value_and_grad", "backward"])
def test_steps_that_only_look_at_the_loss_keep_nothing_alive(habit):
    model = nn.Sequential(nn.Linear(3, 30), nn.BatchNorm(30), nn.Linear(30, 1))
    if habit == "backward":
        optimizer = optim.SGD(model.parameters(), lr=0.1)

    def loss(x):
        return tn.mean(model(x) ** 2)

    def step(x):
        if habit == "value_and_grad":
            value, gradients = nn.value_and_grad(model, loss)(x)
            model.update(optim.SGD(0.1).apply_gradients(gradients, model.trainable_parameters()))
            return value
        value = loss(x)
        if habit == "backward":
            optimizer.zero_grad()
            value.backward()
            optimizer.step()
        return value

    used = []
    for _ in range(6):
        step(tn.randn(1000, 3)).item()
        used.append(tn.active_memory())
    assert used[-1] < used[1] + 30_000  # an activation has 120,000 bytes


def test_half_precision_keeps_the_type_of_the_statistics():
    layer = nn.BatchNorm(3)
    layer(tn.ones((4, 3), tn.float16))
    assert layer.running_mean.dtype == tn.float32
    layer.apply(lambda x: x.astype(tn.float16))(tn.ones((4, 3)))
    assert layer.running_mean.dtype == tn.float16


# Compiled -----------------------------------------------------------------------------------


def test_a_training_step_of_many_layers_is_traced_once():
    tn.random.seed(0)
    model, optimizer = small_cnn(), optim.SGD(0.05)
    x, y = tn.randn(8, 2, 8, 8), tn.array([0, 1, 2, 0, 1, 2, 0, 1])
    traces = []

    def loss(x, y):
        traces.append(1)
        return tn.mean(nn.losses.cross_entropy(model(x), y))

    state = [model.state, optimizer.state, tn.random.state]

    def step(x, y):
        value, gradients = nn.value_and_grad(model, loss)(x, y)
        optimizer.update(model, gradients)
        return value

    compiled = tn.compile(step, inputs=state, outputs=state)
    optimizer.init(model.trainable_parameters())
    losses = [compiled(x, y).item() for _ in range(15)]
    assert len(traces) == 1 and losses[-1] < 0.8 * losses[0]
    model.eval()(x)
    model.train()
    compiled(x, y)
    assert len(traces) == 1


@pytest.mark.parametrize("cell", [nn.RNN, nn.GRU, nn.LSTM])
def test_recurrent_layers_compiled(cell):
    layer = cell(3, 4, num_layers=2, bidirectional=True)
    x = tn.randn(2, 5, 3)

    def loss(layer, x):
        return tn.sum(layer(x)[0] ** 2)

    want, got = tn.grad(loss)(layer, x), tn.compile(tn.grad(loss))(layer, x)
    for name, gradient in want.named_parameters():
        close(got.state_dict()[name], gradient)


# Ahead of time, for ranges of sizes ---------------------------------------------------------

RANGE = (1, 4, 8)


def assert_same_for_sizes(model, info, make, tmp_path):
    """An executable for a range of sizes, saved and loaded, gives what the model gives."""
    tn.compile(model, args=[info]).save(str(tmp_path / "model.tnx"))
    executable = tn.Executable.load(str(tmp_path / "model.tnx"))
    for size in (1, 3, 8):
        close(executable(make(size)), model(make(size)))


def test_a_cnn_for_a_range_of_batches(tmp_path):
    info = tn.InputInfo((RANGE, 2, 8, 8), tn.float32)
    make = lambda n: tn.random.normal((n, 2, 8, 8), key=tn.random.key(n))
    assert_same_for_sizes(small_cnn().eval(), info, make, tmp_path)


def test_a_transformer_for_ranges_of_batches_and_lengths(tmp_path):
    info = tn.InputInfo((RANGE, RANGE), tn.int64)
    make = lambda n: tn.random.randint(0, 11, (n, 9 - n), key=tn.random.key(n))
    assert_same_for_sizes(SmallGPT().eval(), info, make, tmp_path)


def test_a_recurrent_layer_for_ranges_of_batches_and_lengths(tmp_path):
    class Last(nn.Module):
        def __init__(self):
            self.cell = nn.LSTM(3, 4, bidirectional=True)

        def forward(self, x):
            outputs, (h, c) = self.cell(x)
            return tn.concat([outputs[:, -1], h[0]], axis=-1)

    info = tn.InputInfo((RANGE, RANGE, 3), tn.float32)
    make = lambda n: tn.random.normal((n, 9 - n, 3), key=tn.random.key(n))
    assert_same_for_sizes(Last(), info, make, tmp_path)


# Per example --------------------------------------------------------------------------------

UNBATCHED = [
    (nn.Linear(3, 4), (5, 3)),
    (nn.LayerNorm(3), (5, 3)),
    (nn.Bilinear(3, 3, 2), (5, 3)),
    (nn.GRU(3, 4), (5, 3)),
    (nn.RoPE(2), (5, 3)),
    (nn.PReLU(), (5, 3)),
]


@pytest.mark.parametrize("layer, shape", UNBATCHED, ids=lambda x: type(x).__name__)
def test_layers_without_a_batch_are_mapped(layer, shape):
    def loss(layer, x):
        out = layer(x, x) if isinstance(layer, nn.Bilinear) else layer(x)
        return tn.sum((out[0] if isinstance(out, tuple) else out) ** 2)

    x, gradient = tn.randn(3, *shape), tn.grad(loss, (0, 1))
    mapped = tn.tree.leaves(tn.vmap(gradient, in_axes=(None, 0))(layer, x))
    for i in range(3):
        for got, want in zip(mapped, tn.tree.leaves(gradient(layer, x[i]))):
            close(got[i], want)


def test_models_are_mapped_with_batches_of_one():
    for model, x in [
        (small_cnn().eval(), tn.randn(3, 2, 8, 8)),
        (SmallGPT().eval(), tn.random.randint(0, 11, (3, 5))),
    ]:
        close(tn.vmap(lambda x: model(x[None])[0])(x), model(x))
