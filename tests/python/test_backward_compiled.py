"""`backward()`, `step()` and `zero_grad()` in compiled functions: one plan, the bits of eager."""

from __future__ import annotations

import copy
import gc
import itertools
import warnings

import numpy as np
import pytest

import tenon as tn

KEY = tn.random.key(3)
X, Y = tn.random.normal((16, 5), key=KEY), tn.random.normal((16, 2), key=tn.random.fold_in(KEY, 1))

OPTIMIZERS = {
    "SGD": lambda p: tn.optim.SGD(p, lr=0.05, momentum=0.9),
    "Adam": lambda p: tn.optim.Adam(p, lr=0.01),
}


class Net(tn.nn.Module):
    def __init__(self) -> None:
        tn.random.seed(1)
        self.first, self.last = tn.nn.Linear(5, 8), tn.nn.Linear(8, 2)

    def forward(self, x: tn.Tensor) -> tn.Tensor:
        return self.last(tn.tanh(self.first(x)))


class Program:
    """A model, its optimizer, and the parts of a training step, compiled or not."""

    def __init__(self, optimizer: str = "SGD", compiled: bool = True, whole: bool = True) -> None:
        self.model = Net()
        self.optimizer = OPTIMIZERS[optimizer](self.model.parameters())
        state = [self.model, self.optimizer]
        self.state = state if whole else [s.state for s in state]
        self.compiled = compiled

    def __call__(self, f):
        return tn.compile(f, inputs=self.state, outputs=self.state) if self.compiled else f

    def loss(self) -> tn.Tensor:
        return ((self.model(X) - Y) ** 2).mean()

    def back(self) -> tn.Tensor:
        loss = self.loss()
        loss.backward()
        return loss

    def step(self) -> None:
        self.optimizer.step()

    def zero(self) -> None:
        self.optimizer.zero_grad()

    def parameters(self) -> list[list[float]]:
        return [p.tolist() for _, p in self.model.named_parameters()]


def result_of(program: Program, run, times: int = 4):
    losses = [run().item() for _ in range(times)]
    return losses, program.parameters()


def whole_step(program: Program, zero_first: bool = False):
    def step() -> tn.Tensor:
        if zero_first:
            program.zero()
        loss = program.back()
        program.step()
        if not zero_first:
            program.zero()
        return loss

    return program(step)


@pytest.mark.parametrize("optimizer", OPTIMIZERS)
@pytest.mark.parametrize("whole", [True, False])
def test_a_step_has_the_bits_of_eager_and_is_traced_once(optimizer: str, whole: bool) -> None:
    plain = Program(optimizer, compiled=False)
    want = result_of(plain, whole_step(plain))
    program = Program(optimizer, whole=whole)
    step = whole_step(program)
    assert result_of(program, step) == want
    assert step.stats().traces == 1
    weight = program.model.first.weight
    assert weight.requires_grad and weight.is_leaf and weight.grad is None


def test_a_step_has_the_bits_of_value_and_grad() -> None:
    program, other = Program(), Program()
    loss_and_grad = tn.nn.value_and_grad(other.model, other.loss)

    def step() -> tn.Tensor:
        loss, grads = loss_and_grad()
        other.optimizer.update(other.model, grads)
        return loss

    assert result_of(program, whole_step(program)) == result_of(other, other(step))


def test_gradients_may_be_let_go_of_first() -> None:
    plain = Program(compiled=False)
    want = result_of(plain, whole_step(plain, zero_first=True))
    program = Program()
    step = whole_step(program, zero_first=True)
    assert result_of(program, step) == want
    assert step.stats().traces == 2  # without gradients, then with those of the call before
    assert program.model.first.weight.grad is not None
    assert any("gradients of inputs" in line for line in step.why_recompiled())


@pytest.mark.parametrize("parts", [*itertools.product([True, False], repeat=3)])
def test_parts_of_a_step_are_compiled_or_not(parts: tuple[bool, ...]) -> None:
    def run(program: Program, compiled: tuple[bool, ...]):
        calls = (program.back, program.step, program.zero)
        back, step, zero = (program(f) if c else f for f, c in zip(calls, compiled))

        def whole() -> tn.Tensor:
            loss = back()
            step()
            zero()
            return loss

        return result_of(program, whole)

    assert run(Program(), parts) == run(Program(compiled=False), (False, False, False))


def test_gradients_add_up_over_calls() -> None:
    plain, program = Program(compiled=False), Program()
    back = program(program.back)
    for _ in range(3):
        plain.back(), back()
        for (_, p), (_, q) in zip(
            plain.model.named_parameters(), program.model.named_parameters()
        ):
            assert q.grad.tolist() == p.grad.tolist()
    assert back.stats().traces == 2


def test_whoever_holds_a_parameter_sees_the_step() -> None:
    program = Program()
    weight = program.model.first.weight
    before = weight.tolist()
    whole_step(program)()
    assert weight is program.model.first.weight and weight.tolist() != before


def test_tensors_without_a_module() -> None:
    def train(compiled: bool) -> tuple[list[float], list[float]]:
        w = tn.array([1.0, -2.0, 3.0], requires_grad=True)
        optimizer = tn.optim.SGD([w], lr=0.1)

        def step(x: tn.Tensor) -> tn.Tensor:
            loss = ((w * x) ** 2).sum()
            loss.backward()
            optimizer.step()
            optimizer.zero_grad()
            return loss

        if compiled:
            step = tn.compile(step, inputs=optimizer, outputs=optimizer)
        return [step(tn.ones(3)).item() for _ in range(3)], w.tolist()

    assert train(True) == train(False)


def test_a_tensor_that_is_named_twice() -> None:
    w = tn.array([1.0, 2.0], requires_grad=True)
    state = {"a": w, "b": [w]}

    @tn.compile(inputs=state, outputs=state)
    def step() -> tn.Tensor:
        loss = (state["a"] * state["b"][0]).sum()
        loss.backward()
        return loss

    assert [step().item(), step().item()] == [5, 5]
    assert w.grad.tolist() == [4, 8] and state["a"] is w and state["b"][0] is w


def test_a_change_that_is_lost_is_warned_of() -> None:
    program = Program()
    with pytest.warns(UserWarning, match=r"changes inputs\['first'\].*name it in outputs="):
        tn.compile(program.back, inputs=program.model.state)()
    assert program.model.first.weight.grad is None


def test_a_parameter_that_is_not_captured_is_not_rebound() -> None:
    program = Program()
    program.back()
    with pytest.raises(tn.InvalidValue, match=r"a new value is given(.*\n)*.*inputs=state"):
        tn.compile(program.step)()
    assert program.model.first.weight.requires_grad


def test_nothing_is_left_of_a_trace_that_fails() -> None:
    program = Program()
    before = program.parameters()

    def step() -> None:
        program.back()
        program.step()
        raise KeyError("stop")

    with pytest.raises(KeyError):
        program(step)()
    assert program.parameters() == before
    assert all(p.grad is None and p.requires_grad for _, p in program.model.named_parameters())
    assert whole_step(program)().item() == whole_step(Program(compiled=False))().item()


def test_a_run_that_fails_leaves_variables_as_they_were() -> None:
    program = Program()

    def step(x: tn.Tensor) -> tn.Tensor:
        tn.check(x > 0, "positive")
        loss = program.back()
        program.step()
        return loss

    compiled = program(step)
    compiled(tn.array(1.0))
    before = program.parameters()
    with pytest.raises(tn.InvalidValue, match="positive"):
        compiled(tn.array(-1.0))
    assert program.parameters() == before
    assert all(p.requires_grad and p.grad is not None for p in tn.tree.leaves(program.model))


def test_requires_grad_is_a_part_of_what_a_trace_is_for() -> None:
    w = tn.ones(2)
    f = tn.compile(lambda x: (x * x).sum())
    f(w)
    w.requires_grad = True
    f(w).backward()
    assert w.grad.tolist() == [2, 2]
    with tn.no_grad():
        assert not f(w).requires_grad
    assert any("requires_grad" in line for line in f.why_recompiled())


def test_memory_does_not_grow() -> None:
    program = Program()
    step = whole_step(program)
    for _ in range(3):
        step().eval()
    gc.collect()  # of what other tests left
    before = tn.active_memory()
    for _ in range(5):
        step().eval()
    assert tn.active_memory() == before


def test_no_warnings() -> None:
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        program = Program("Adam")
        step = whole_step(program)
        step(), step()


def test_a_compiled_step_inside_another() -> None:
    plain, program = Program(compiled=False), Program()
    inner = whole_step(program)
    outer = program(lambda: inner() + inner())
    step = whole_step(plain)
    want = [(step() + step()).item() for _ in range(2)]
    assert np.allclose([outer().item() for _ in range(2)], want, rtol=1e-6)


@pytest.mark.parametrize("whole", [True, False])
def test_running_statistics_of_a_compiled_model_lead_to_no_step_before(whole: bool) -> None:
    model = tn.nn.Sequential(tn.nn.Linear(5, 4), tn.nn.BatchNorm(4), tn.nn.Linear(4, 2))
    plain = copy.deepcopy(model)
    run = tn.compile(model) if whole else tn.compile(model.__call__, inputs=model, outputs=model)

    def losses(call, parameters) -> list[float]:
        optimizer = tn.optim.SGD(parameters, lr=0.1)
        made = []
        for _ in range(3):
            loss = ((call(X) - Y) ** 2).mean()
            loss.backward()
            optimizer.step()
            optimizer.zero_grad()
            made.append(loss.item())
        return made

    want = losses(plain, plain.parameters())
    np.testing.assert_allclose(losses(run, model.parameters()), want, rtol=1e-5)
    np.testing.assert_allclose(model[1].running_var.numpy(), plain[1].running_var.numpy(), 1e-5)
