"""What users of other libraries write: it works, or the error says what to write here."""

from __future__ import annotations

import traceback

import numpy as np
import pytest

import tenon as tn
from tenon import nn, optim


def network() -> nn.Sequential:
    return nn.Sequential(nn.Linear(4, 8), nn.Tanh(), nn.Linear(8, 2))


def data(rows: int = 6) -> tuple[tn.Tensor, tn.Tensor]:
    return tn.ones((rows, 4)), tn.zeros((rows, 2))


@pytest.mark.parametrize(
    "module, name, here",
    [
        (tn, "long", "tn.int64"),
        (tn, "tensor", "tn.array"),
        (tn, "cuda", r"tn\.devices\(\)"),
        (tn, "linspce", "did you mean 'linspace'"),
        (tn.amp, "GradScaler", "LossScaler"),
        (tn.data, "DataLoader", "tn.data.batches"),
        (tn, "norm", "tn.linalg.norm"),
        (optim.lr_scheduler, "SequentialLR", "join_schedules"),
        (nn, "MultiheadAttention", "MultiHeadAttention"),
        (nn, "Linera", "did you mean 'Linear'"),
        (nn.init, "xavier_uniform_", "glorot_uniform"),
    ],
)
def test_names_of_other_libraries(module, name, here):
    with pytest.raises(AttributeError, match=here):
        getattr(module, name)
    assert not hasattr(module, name)


def test_a_name_is_proposed_once():
    with pytest.raises(AttributeError) as error:
        tn.hot_path
    text = "".join(traceback.format_exception(error.value))
    assert text.lower().count("did you mean") == 1


@pytest.mark.parametrize(
    "call, text",
    [
        (lambda m: optim.SGD(list(m.parameters().keys())), "hint: give model.parameters"),
        (lambda m: optim.SGD("0.1"), "learning_rate is a number, a tensor or a function"),
        (lambda m: optim.SGD(0.1).update(m, (1, {})), "loss, gradients = nn.value_and_grad"),
        (lambda m: optim.SGD(0.1).update({}, m), "needs a module and gradients"),
        (lambda m: optim.Optimizer(0).apply_gradients([tn.ones(1)], [tn.ones(1)]), "apply_single"),
        (lambda m: nn.value_and_grad(lambda: 0, m), "needs a module and a function"),
        (lambda m: tn.save({"w": tn.ones(2)}, "model.pt"), "save_checkpoint"),
        (lambda m: tn.save("model.pt", m.state_dict()), "save_weights"),
    ],
)
def test_mistakes_are_explained(call, text):
    with pytest.raises(TypeError, match=text):
        call(network())


def test_a_layer_without_a_name_is_named_once():
    with pytest.raises(ValueError) as error:
        nn.Conv2d(1, 4, 3)(tn.ones((2, 3)))
    assert str(error.value).startswith("Conv2d: expected")


def test_learning_rates_by_the_name_they_are_given_with():
    optimizer = optim.SGD(network().parameters(), lr=0.1)
    optimizer.lr = np.float32(0.25)
    assert optimizer.lr.item() == optimizer.learning_rate.item() == 0.25
    several = optim.MultiOptimizer([optim.SGD(0.1), optim.Adam(0.1)], [lambda name, w: w.ndim > 1])
    several.lr = 0.5
    assert [o.learning_rate.item() for o in several.optimizers] == [0.5, 0.5]


def test_modules_freeze_and_forget_gradients_by_pytorch_names():
    model, (x, y) = network(), data()
    model[0].requires_grad_(False)
    optimizer = optim.SGD(model.parameters(), lr=0.1)
    before = model.state_dict()["layers.0.weight"].numpy().copy()
    nn.losses.mse_loss(model(x), y).backward()
    optimizer.step()
    assert np.array_equal(model[0].weight.numpy(), before) and model[2].weight.grad is not None
    model.zero_grad()
    assert model[2].weight.grad is None
    assert "weight" in model[0].requires_grad_().trainable_parameters()


def test_integers_and_masks_are_not_trained():
    class Chosen(nn.Module):
        def __init__(self):
            self.w, self.columns = tn.ones((2, 2)), tn.array([0, 2])
            self.masks = [tn.array([True, False])]

        def forward(self, x):
            return tn.where(self.masks[0], x[:, self.columns] @ self.w, 0)

    model, (x, y) = Chosen(), data()
    assert list(model.state_dict()) == ["w", "columns", "masks.0"]
    _, gradients = nn.value_and_grad(model, lambda: nn.losses.mse_loss(model(x), y))()
    assert list(gradients) == ["w"]
    optimizer = optim.Adam(model.parameters(), lr=0.1)
    nn.losses.mse_loss(model(x), y).backward()
    optimizer.step()
    assert model.columns.tolist() == [0, 2] and model.w[0].tolist() != [1, 1]


def test_losses_serve_batches_of_all_sizes():
    model = network()
    loss = tn.compile(lambda x, y: nn.losses.mse_loss(model(x), y))
    for rows in (8, 6, 5, 3, 7):
        loss(*data(rows))
    assert loss.stats().traces == 2


def test_the_order_of_calls_of_a_scaler_in_pytorch():
    model, (x, y) = network(), data()
    optimizer, scaler = optim.SGD(model.parameters(), lr=0.1), tn.amp.LossScaler()
    losses = []
    for _ in range(3):
        with tn.amp.autocast(tn.float16):
            loss = nn.losses.mse_loss(model(x), y)
        optimizer.zero_grad()
        scaler.scale(loss).backward()
        scaler.step(optimizer)
        scaler.update()
        losses.append(loss.item())
    assert losses[2] < losses[0]


def test_parameters_are_changed_in_place_without_an_optimizer():
    model, (x, y) = network(), data()
    losses = []
    for _ in range(3):
        loss = nn.losses.mse_loss(model(x), y)
        loss.backward()
        with tn.no_grad():
            for _, parameter in model.named_parameters():
                parameter -= 0.1 * parameter.grad
                parameter.grad = None
        losses.append(loss.item())
    assert losses[2] < losses[1] < losses[0]


@pytest.mark.parametrize(
    "call, text",
    [
        (lambda x: tn.cross_entropy(x, tn.zeros(6)), "hint: classes are integers"),
        (lambda x: tn.cross_entropy(x, tn.zeros((6, 1), dtype=tn.int64)), "hint: .*squeeze"),
        (lambda x: x.requires_grad_().sum().backward(create_graph=True), "hint: tn.grad"),
    ],
)
def test_hints(call, text):
    with pytest.raises(ValueError, match=text):
        call(data()[0])


def test_a_state_that_is_carried_over_wants_to_be_detached():
    layer, (x, _) = nn.GRU(4, 4), data()
    optim.SGD(layer.parameters(), lr=0.1)
    out, state = layer(x[None])
    out.sum().backward()
    out, _ = layer(x[None], state)
    with pytest.raises(ValueError, match="hint: detach"):
        out.sum().backward()


def test_a_state_dict_is_a_copy():
    model, (x, y) = network(), data()
    optimizer = optim.SGD(model.parameters(), lr=0.1)
    best, before = model.state_dict(), model[0].weight.numpy().copy()
    nn.losses.mse_loss(model(x), y).backward()
    optimizer.step()
    assert np.array_equal(best["layers.0.weight"].numpy(), before)
    assert not np.array_equal(model[0].weight.numpy(), before)
    model.load_state_dict(best)
    assert np.array_equal(model[0].weight.numpy(), before)


def test_states_of_other_optimizers_are_refused():
    parameters = network().parameters()
    state = optim.Adam(parameters).state_dict()
    with pytest.raises(ValueError, match="\\['v'\\] are remembered of .*, not \\['m', 'v'\\]"):
        optim.SGD(parameters, lr=0.1, momentum=0.9).load_state_dict(state)


def test_the_state_of_an_optimizer_is_a_copy():
    w = tn.ones(2, requires_grad=True)
    optimizer = optim.SGD([w], lr=1.0)
    state = optimizer.state_dict()
    w.sum().backward()
    optimizer.step()
    assert state["parameters"][0].tolist() == [1, 1]
    optimizer.load_state_dict(state)
    assert w.tolist() == [1, 1] and w.requires_grad


def test_parameters_that_refuse_gradients_do_so_after_loading_until_told_otherwise():
    model = network()
    model[0].weight.requires_grad = False
    model.load_state_dict(network().state_dict())
    assert list(model.trainable_parameters()["layers"][0]) == ["bias"]
    model.unfreeze(keys="bias")
    assert list(model.trainable_parameters()["layers"][0]) == ["bias"]
    model.unfreeze()
    assert list(model.trainable_parameters()["layers"][0]) == ["weight", "bias"]


def test_weights_of_a_sequential_of_pytorch():
    class Classifier(nn.Module):
        def __init__(self):
            self.features = nn.Sequential(nn.Linear(2, 2), nn.ReLU())

    given = {"features.0.weight": tn.ones((2, 2)), "features.0.bias": tn.zeros(2)}
    for options in ({}, {"strict": False}, {"mapping": {"features": "features.layers"}}):
        model = Classifier().load_weights(given, **options)
        assert model.features[0].weight.tolist() == [[1, 1], [1, 1]]


def test_layers_that_are_replaced_want_a_new_optimizer():
    model, (x, _) = network(), data()
    optimizer = optim.Adam(model.parameters())
    model.layers[2] = nn.Linear(8, 3)
    tn.sum(model(x)).backward()
    with pytest.raises(ValueError, match="layers.2.weight is .3, 8. now.*\n.*\n.*new optimizer"):
        optimizer.step()


def test_optimizers_have_a_text():
    assert repr(optim.AdamW(0.25)) == "AdamW(learning_rate=0.25)"
    model = network()
    assert repr(optim.SGD(model.parameters(), lr=0.5)) == "SGD(learning_rate=0.5, 4 parameters)"
    several = optim.MultiOptimizer([optim.SGD(0.5), optim.Adam(0.1)], [lambda name, w: True])
    assert repr(several) == "MultiOptimizer(learning_rate=0.5)"


def test_methods_under_their_names_in_pytorch():
    x = tn.array([[1.5, -2.0], [3.0, 4.0]])
    right = (x > 0).float().mean()
    assert right.dtype == tn.float32 and right.item() == 0.75
    assert x.long().tolist() == [[1, -2], [3, 4]] and x.double().dtype == tn.float64
    assert x.to(tn.float16).dtype == x.half().dtype == x.half().to(x.half()).dtype == tn.float16
    assert x.to("cpu") is x and x.numel() == 4 and x.dim() == 2
    assert x.masked_fill(x < 0, 0).tolist() == [[1.5, 0.0], [3.0, 4.0]]
    assert x.int().masked_fill(x < 0, -1).dtype == tn.int32
    assert tn.grad(lambda x: tn.sum(x.clone() * x))(x).tolist() == (2 * x).tolist()
    with pytest.raises(ValueError, match="cuda: no NVIDIA driver was found"):
        x.to("cuda")
