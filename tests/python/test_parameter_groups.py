"""Groups of parameters with options of their own."""

import pytest

import tenon as tn
from tenon import nn, optim


def models():
    """Two layers with the same parameters every time, and inputs."""
    trunk, head = nn.Linear(3, 4), nn.Linear(4, 2)
    for i, layer in enumerate((trunk, head)):
        layer.weight = tn.cos(tn.arange(layer.weight.size) + i).reshape(layer.weight.shape)
        layer.bias = tn.full_like(layer.bias, 0.1)
    return trunk, head, tn.sin(tn.arange(15.0)).reshape(5, 3)


def values(*layers):
    return [p.tolist() for layer in layers for p in layer.parameters()]


def steps(optimizers, trunk, head, x, count=3):
    for _ in range(count):
        tn.mean(tn.square(head(tn.tanh(trunk(x))))).backward()
        for optimizer in optimizers:
            optimizer.step()
            optimizer.zero_grad()


@pytest.mark.parametrize(
    "kind, common, own",
    [
        (optim.SGD, {"lr": 0.1, "momentum": 0.9}, {"lr": 0.5, "weight_decay": 0.1}),
        (optim.AdamW, {"lr": 0.1}, {"betas": (0.5, 0.9), "weight_decay": 0.0}),
        (optim.RMSprop, {"lr": 0.01}, {"lr": 0.02, "alpha": 0.5}),
    ],
)
def test_groups_make_the_steps_of_optimizers_of_their_own(kind, common, own):
    trunk, head, x = models()
    apart = [kind(trunk.parameters(), **common), kind(head.parameters(), **{**common, **own})]
    steps(apart, trunk, head, x)
    want = values(trunk, head)
    for params in (lambda layer: layer.parameters(), lambda layer: list(layer.parameters())):
        trunk, head, x = models()
        groups = [{"params": params(trunk)}, {"params": params(head), **own}]
        steps([kind(groups, **common)], trunk, head, x)
        assert values(trunk, head) == want


def test_options_are_read_and_set_by_group():
    trunk, head, x = models()
    optimizer = optim.SGD([{"params": trunk.parameters()}], lr=0.25, momentum=0.5)
    optimizer.add_param_group({"params": head.parameters(), "lr": 0.5})
    first, second = optimizer.param_groups
    assert (first["lr"], second["lr"], second["momentum"]) == (0.25, 0.5, 0.5)
    assert first["params"][0] is trunk.weight and len(second["params"]) == 2
    assert set(first) == {"params", "lr", "weight_decay", "momentum", "dampening", "nesterov"}
    for group in optimizer.param_groups:
        group["lr"] *= 0.5
    assert repr(optimizer) == "SGD(learning_rate=[0.125, 0.25], 4 parameters)"
    second["weight_decay"] = 0.75
    assert optimizer.param_groups[1]["weight_decay"] == 0.75 and optimizer.weight_decay == 0
    optimizer.lr = 1.0
    assert [group["lr"] for group in optimizer.param_groups] == [1, 1]
    one = optim.Adam(trunk.parameters(), lr=0.5)
    one.param_groups[0]["lr"] = 0.25
    assert one.learning_rate.item() == 0.25


def test_rates_of_groups_may_be_schedules_and_positional():
    trunk, head, x = models()
    halved = optim.exponential_decay(1.0, 0.5)
    groups = [{"params": trunk.parameters()}, {"params": head.parameters(), "lr": halved}]
    optimizer = optim.SGD(groups, 0.25)
    steps([optimizer], trunk, head, x)
    assert [group["lr"] for group in optimizer.param_groups] == [0.25, 0.25]


def test_a_compiled_step_and_a_checkpoint_have_all_groups():
    def run(compiled, kept=None):
        trunk, head, x = models()
        groups = [{"params": trunk.parameters()}, {"params": head.parameters(), "lr": 0.01}]
        optimizer = optim.Adam(groups, lr=0.1)
        if kept:
            trunk.load_state_dict(kept[0])
            head.load_state_dict(kept[1])
            optimizer.load_state_dict(kept[2])

        def step():
            loss = tn.mean(tn.square(head(tn.tanh(trunk(x)))))
            loss.backward()
            optimizer.step()
            optimizer.zero_grad()
            return loss

        state = [trunk.state, head.state, optimizer.state]
        step = tn.compile(step, inputs=state, outputs=state) if compiled else step
        losses = []
        for number in range(3):
            if number == 2:
                optimizer.param_groups[1]["lr"] = 0.05
            losses.append(step().item())
            if number == 1:
                kept = [trunk.state_dict(), head.state_dict(), optimizer.state_dict()]
        return losses, values(trunk, head), kept

    eager, compiled = run(False), run(True)
    assert eager[:2] == compiled[:2]
    assert run(False, eager[2])[0][0] == eager[0][2]


def test_gradients_that_are_given_find_their_groups():
    trunk, head, x = models()
    model = nn.Sequential(trunk, nn.tanh, head)
    groups = [{"params": trunk.parameters()}, {"params": head.parameters(), "lr": 0.0}]
    optimizer = optim.SGD(groups, lr=0.5)
    before = head.weight.tolist(), trunk.weight.tolist()
    _, gradients = nn.value_and_grad(model, lambda: tn.sum(model(x)))()
    optimizer.update(model, gradients)
    assert head.weight.tolist() == before[0] and trunk.weight.tolist() != before[1]


def test_schedulers_keep_the_rates_of_groups_apart():
    trunk, head, _ = models()
    groups = [{"params": trunk.parameters()}, {"params": head.parameters(), "lr": 0.5}]
    optimizer = optim.SGD(groups, lr=1.0)
    scheduler = optim.lr_scheduler.StepLR(optimizer, 1, 0.5)
    scheduler.step()
    assert scheduler.get_last_lr() == [0.5, 0.25]
    optimizer = optim.SGD(groups, lr=1.0)
    each = [lambda step: 1.0, lambda step: 1 / (step + 1)]
    scheduler = optim.lr_scheduler.LambdaLR(optimizer, each)
    scheduler.step()
    assert scheduler.get_last_lr() == [1.0, 0.25]


def test_closures_and_iterables():
    trunk, head, x = models()
    trainable = (p for p in trunk.parameters() if p.requires_grad)
    optimizer = optim.SGD(trainable, lr=0.5)

    def closure():
        optimizer.zero_grad()
        loss = tn.sum(trunk(x))
        loss.backward()
        return loss

    before = tn.sum(trunk(x)).item()
    assert optimizer.step(closure).item() == before
    assert tn.sum(trunk(x)).item() < before


@pytest.mark.parametrize(
    "call, text",
    [
        (lambda layer: optim.SGD([{"params": [tn.ones(1)], "rate": 1}]), "rate"),
        (lambda layer: optim.SGD([{"params": [tn.ones(1)]}, tn.ones(1)]), "nothing else"),
        (lambda layer: optim.SGD([{"params": layer}, {"params": layer}]), "in two groups"),
        (lambda layer: optim.SGD(layer).param_groups[0].update(x=1), "no option 'x'"),
        (lambda layer: optim.SGD(layer).param_groups[0].pop("lr"), "cannot be deleted"),
        (lambda layer: optim.SGD([{"params": layer, "lr": -1.0}]), "must be at least 0, not -1.0"),
    ],
)
def test_errors(call, text):
    with pytest.raises((ValueError, TypeError), match=text):
        call(nn.Linear(1, 1))


def test_groups_stay_in_functional_loops():
    # Parameters that apply_gradients made are in no group by themselves: their names are.
    params = {"a": tn.array([1.0]), "b": [tn.array([1.0])]}
    groups = [{"params": params["a"], "lr": 0.0}, {"params": params["b"], "lr": 1.0}]
    optimizer = tn.optim.SGD(groups)
    grads = tn.tree.map(tn.ones_like, params)
    for _ in range(3):
        params = optimizer.apply_gradients(grads, params)
    assert (params["a"].item(), params["b"][0].item()) == (1.0, -2.0)


def test_groups_are_found_in_compiled_functions_after_init():
    params = {"a": tn.array([1.0]), "b": tn.array([1.0])}
    groups = [{"params": [params["a"]], "lr": 0.0}, {"params": [params["b"]], "lr": 1.0}]
    grads = tn.tree.map(tn.ones_like, params)
    optimizer = tn.optim.SGD(groups)
    step = tn.compile(optimizer.apply_gradients, inputs=optimizer.state, outputs=optimizer.state)
    others = tn.tree.map(tn.ones_like, params)
    with pytest.raises(ValueError, match="[ab] is in none of the groups"):
        optimizer.apply_gradients(grads, others)
    optimizer.init(params)
    for _ in range(2):
        others = step(grads, others)
    assert (others["a"].item(), others["b"].item()) == (1.0, -1.0)
