"""The training loop of GT's document on compilation, as it is written there, names apart."""

from __future__ import annotations

import pytest

import tenon as tn
from tenon.nn import Linear, Module
from tenon.optim import SGD


class MLP(Module):
    def __init__(self) -> None:
        super().__init__()
        self.fc1 = Linear(784, 256)
        self.fc2 = Linear(256, 10)

    def forward(self, x: tn.Tensor) -> tn.Tensor:
        x = self.fc1(x).relu()
        return self.fc2(x)


def losses(compiled: bool, whole: bool = True) -> tuple[list[float], tn.Tensor]:
    tn.random.seed(0)
    X, y = tn.randn(64, 784), tn.randn(64, 10)
    model = MLP()
    optimizer = SGD(model.parameters(), lr=0.01)

    def iteration(X: tn.Tensor, y: tn.Tensor) -> tn.Tensor:
        pred = model(X)
        loss = ((pred - y) ** 2).mean()
        loss.backward()
        optimizer.step()
        optimizer.zero_grad()
        return loss

    if compiled:
        state = [model, optimizer] if whole else [model.state, optimizer.state]
        iteration = tn.compile(iteration, inputs=state, outputs=state)
    return [iteration(X, y).item() for _ in range(20)], model.fc1.weight


@pytest.mark.parametrize("whole", [True, False])
def test_eager_and_compiled_reach_the_same_bits(whole: bool) -> None:
    eager, weight = losses(compiled=False)
    compiled, compiled_weight = losses(compiled=True, whole=whole)
    assert compiled == eager and eager[-1] < eager[0]
    assert compiled_weight.tolist() == weight.tolist()
