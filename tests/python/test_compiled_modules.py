"""tn.compile(module): still a module, alone and as a part of another one."""

from __future__ import annotations

import contextlib
import copy
import functools

import pytest

import tenon as tn
from tenon.nn import BatchNorm, Linear, Module, ReLU, Sequential
from tenon.optim import SGD

X = tn.array([[1.0, -2.0, 0.5, 3.0], [0.0, 1.0, -1.0, 2.0], [2.0, 2.0, 1.0, -3.0]])


class Encoder(Module):
    def __init__(self) -> None:
        super().__init__()
        self.fc = Linear(4, 8)

    def forward(self, x: tn.Tensor) -> tn.Tensor:
        return self.fc(x).relu()


class Model(Module):
    def __init__(self, compiled: bool) -> None:
        super().__init__()
        tn.random.seed(3)
        self.encoder = tn.compile(Encoder()) if compiled else Encoder()
        self.decoder = Linear(8, 2)

    def forward(self, x: tn.Tensor) -> tn.Tensor:
        return self.decoder(self.encoder(x))


def trained(compiled: bool, backward: bool) -> tuple[list[float], dict[str, list]]:
    model = Model(compiled)
    optimizer = SGD(model.parameters() if backward else 0.1, **({"lr": 0.1} if backward else {}))
    losses = []
    for _ in range(6):
        if backward:
            loss = (model(X) ** 2).mean()
            loss.backward()
            optimizer.step()
            optimizer.zero_grad()
        else:
            loss, grads = tn.nn.value_and_grad(model, lambda x: (model(x) ** 2).mean())(X)
            optimizer.update(model, grads)
        losses.append(loss.item())
    if compiled:
        assert model.encoder.stats().hits > 0
    return losses, {name: value.tolist() for name, value in model.state_dict().items()}


@pytest.mark.parametrize("backward", [True, False])
def test_a_compiled_part_is_trained_like_a_plain_one(backward: bool) -> None:
    losses, weights = trained(True, backward)
    plain_losses, plain_weights = trained(False, backward)
    assert losses == pytest.approx(plain_losses, rel=1e-5) and losses[-1] < losses[0]
    assert weights.keys() == plain_weights.keys()
    for name, values in weights.items():
        assert tn.allclose(tn.array(values), tn.array(plain_weights[name]), rtol=1e-4, atol=1e-6)


def test_gradients_that_nobody_asked_for_in_time_are_not_lost_in_silence() -> None:
    model = Model(True)
    with pytest.raises(ValueError, match="or by a compiled part"):
        (model(X) ** 2).mean().backward()
    assert all(p.grad is None for p in tn.tree.leaves(model.parameters()))
    traces = model.encoder.stats().traces
    optimizer = SGD(model.parameters(), lr=0.1)
    (model(X) ** 2).mean().backward()
    plain = Model(False)
    (plain(X) ** 2).mean().backward()
    for name in ("encoder", "decoder"):
        got, wanted = (m.encoder.fc if name == "encoder" else m.decoder for m in (model, plain))
        assert tn.allclose(got.weight.grad, wanted.weight.grad, rtol=1e-4, atol=1e-6)
    optimizer.step()
    optimizer.zero_grad()
    model(X)
    assert model.encoder.stats().traces == traces + 1


@pytest.mark.parametrize("how", ["module", "closure", "state", "argument"])
@pytest.mark.parametrize("calls", [1, 2])
def test_a_compiled_part_before_a_plain_call_of_it_says_so_too(how: str, calls: int) -> None:
    """Its parameters become leaves when it is called, whoever calls it."""
    part = Linear(4, 1)
    compiled = {
        "module": tn.compile(part),
        "closure": tn.compile(lambda x: part(x)),
        "state": tn.compile(lambda x: part(x), inputs=part.state),
        "argument": functools.partial(tn.compile(lambda m, x: m(x)), part),
    }[how]
    for _ in range(calls):
        made = compiled(X)
    with pytest.raises(ValueError, match="or by a compiled part"):
        (made.mean() + part(X * 0).sum()).backward()
    with tn.no_grad():
        made = compiled(X)
    (made.mean() + part(X * 0).sum()).backward()
    assert part.bias.grad.item() == len(X)


def test_a_compiled_part_after_a_plain_one_says_so_too() -> None:
    plain, compiled = Linear(4, 4), tn.compile(Linear(4, 2))
    with pytest.raises(ValueError, match="requires_grad_"):
        compiled(plain(X)).sum().backward()


@pytest.mark.parametrize("how", ["detach", "no_grad", "freeze"])
def test_a_compiled_part_that_is_not_trained(how: str) -> None:
    teacher, student = tn.compile(Linear(4, 2)), Linear(4, 2)
    if how == "freeze":
        teacher.freeze()
    with tn.no_grad() if how == "no_grad" else contextlib.nullcontext():
        target = teacher(X)
    if how == "detach":
        target = target.detach()
    ((student(X) - target) ** 2).mean().backward()
    assert student.weight.grad is not None and teacher.weight.grad is None


def test_functional_updates_make_no_chains() -> None:
    model = tn.compile(Encoder())
    for _ in range(3):
        _, grads = tn.nn.value_and_grad(model, lambda x: (model(x) ** 2).mean())(X)
        SGD(0.1).update(model, grads)
        model(X)
    assert model.stats().traces <= 2


def test_names_types_and_text() -> None:
    model = Model(True)
    names = ["encoder.fc.weight", "encoder.fc.bias", "decoder.weight", "decoder.bias"]
    assert list(model.state_dict()) == names
    assert isinstance(model.encoder, Encoder) and type(model.encoder).__name__ == "Encoder"
    assert "encoder=<compiled Encoder(" in str(model)
    assert [path for path, _ in model.named_modules()][:2] == ["", "encoder"]
    with pytest.raises(AttributeError, match="'Encoder' object has no attribute 'nothing'"):
        model.encoder.nothing


def test_both_have_one_state() -> None:
    plain = Encoder()
    compiled = tn.compile(plain)
    compiled(X)
    compiled.fc.weight = plain.fc.weight * 0
    assert not plain.fc.weight.any().item() and (compiled(X) == plain(X)).all().item()
    compiled.eval()
    assert not plain.training
    other = Linear(4, 8)
    plain.fc = other
    assert compiled.fc is other and (compiled(X) == plain(X)).all().item()


def test_state_that_a_call_changes_is_kept() -> None:
    plain, like = Sequential(Linear(4, 4), BatchNorm(4)), Sequential(Linear(4, 4), BatchNorm(4))
    like.load_state_dict(plain.state_dict())
    compiled = tn.compile(plain)
    for _ in range(3):
        compiled(X), like(X)
    for name, value in plain.state_dict().items():
        assert tn.allclose(value, like.state_dict()[name], rtol=1e-5, atol=1e-6), name


def test_copies_have_values_of_their_own() -> None:
    model = Model(True)
    before = model(X).tolist()
    encoder = copy.deepcopy(model).encoder
    assert encoder(X).tolist() == model.encoder(X).tolist() and encoder.stats().traces == 1
    encoder.fc.weight = encoder.fc.weight * 0
    assert model(X).tolist() == before


def test_a_module_is_a_tree_all_the_same() -> None:
    model = Model(True)
    gradient = tn.grad(lambda m: (m(X) ** 2).mean())(model)
    loss, parts = tn.nn.value_and_grad(model, lambda x: (model(x) ** 2).mean())(X)
    assert tn.allclose(gradient.encoder.fc.weight, parts["encoder"]["fc"]["weight"])


def test_what_is_compiled_can_be_compiled_again_and_shown() -> None:
    compiled = tn.compile(Encoder())
    again = tn.compile(compiled, mode="reduce-overhead")
    assert again.fc is compiled.fc and (again(X) == compiled(X)).all().item()
    assert tn.show(compiled, X).startswith("func @main")
    assert "Encoder" in str(tn.explain(compiled)(X))


def test_layers_without_parameters() -> None:
    assert tn.compile(ReLU())(X).min().item() == 0


def test_dropout_draws_anew_in_each_call():
    x, layers = tn.ones(64), (tn.nn.Dropout(0.5), tn.compile(tn.nn.Dropout(0.5)))
    drawn = []
    for layer in layers:
        tn.random.seed(3)
        drawn.append([layer(x).tolist() for _ in range(3)])
    assert drawn[0] == drawn[1] and drawn[1][0] != drawn[1][1]
    assert layers[1].stats().traces == 1
