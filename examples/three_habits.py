"""Trains one network in three styles, which reach the same losses bit for bit.

    python examples/three_habits.py

The styles are functions of parameters, as in JAX; modules and optimizers that take gradients, as in
MLX; and `backward()`, `step()`, `zero_grad()`, as in PyTorch. Each step also runs compiled, as one
plan.
"""

from __future__ import annotations

from collections.abc import Callable

import tenon as tn
from tenon import nn, optim
from terminal import options, sparkline

RATE, MOMENTUM = 0.05, 0.9
Step = Callable[[tn.Tensor, tn.Tensor], tn.Tensor]


def spirals(count: int = 256) -> tuple[tn.Tensor, tn.Tensor]:
    """Points on two spirals, and the spiral of each point."""
    turn = tn.linspace(0.5, 3.0, count // 2)
    arm = tn.stack([turn * tn.cos(2 * turn), turn * tn.sin(2 * turn)], axis=1)
    return tn.concat([arm, -arm]), tn.repeat(tn.array([0.0, 1.0]), count // 2)


class Network(nn.Module):
    def __init__(self, hidden: int = 64) -> None:
        self.fc1, self.fc2 = nn.Linear(2, hidden), nn.Linear(hidden, hidden)
        self.out = nn.Linear(hidden, 1)

    def forward(self, x: tn.Tensor) -> tn.Tensor:
        return self.out(nn.tanh(self.fc2(nn.tanh(self.fc1(x))))).squeeze(-1)


def functional(compiled: bool) -> Step:
    """Parameters and optimizer state are arguments and results."""
    params = Network().parameters()
    layers = ("fc1", "fc2", "out")
    carry = {"params": {name: params[name] for name in layers}}
    carry["velocity"] = tn.tree.map(tn.zeros_like, carry["params"])

    def loss_of(params, x, y):
        for name in layers:
            x = tn.linear(x, params[name]["weight"], params[name]["bias"])
            x = tn.tanh(x) if name != "out" else x.squeeze(-1)
        return nn.losses.binary_cross_entropy(x, y)

    def advanced(carry, x, y):
        loss, grads = tn.value_and_grad(loss_of)(carry["params"], x, y)
        velocity = tn.tree.map(lambda v, g: MOMENTUM * v + g, carry["velocity"], grads)
        params = tn.tree.map(lambda p, v: p - RATE * v, carry["params"], velocity)
        return loss, {"params": params, "velocity": velocity}

    if compiled:
        advanced = tn.compile(advanced)

    def step(x: tn.Tensor, y: tn.Tensor) -> tn.Tensor:
        nonlocal carry
        loss, carry = advanced(carry, x, y)
        return loss

    return step


def with_gradients(compiled: bool) -> Step:
    """The optimizer receives a tree of gradients with the structure of the parameters."""
    model = Network()
    optimizer = optim.SGD(RATE, momentum=MOMENTUM)

    def loss_of(model, x, y):
        return nn.losses.binary_cross_entropy(model(x), y)

    def step(x: tn.Tensor, y: tn.Tensor) -> tn.Tensor:
        loss, grads = nn.value_and_grad(model, loss_of)(model, x, y)
        optimizer.update(model, grads)
        return loss

    state = [model.state, optimizer.state]
    return tn.compile(step, inputs=state, outputs=state) if compiled else step


def with_backward(compiled: bool) -> Step:
    """`backward()` stores gradients in the parameters, where the optimizer finds them."""
    model = Network()
    optimizer = optim.SGD(model.parameters(), lr=RATE, momentum=MOMENTUM)

    def step(x: tn.Tensor, y: tn.Tensor) -> tn.Tensor:
        loss = nn.losses.binary_cross_entropy(model(x), y)
        loss.backward()
        optimizer.step()
        optimizer.zero_grad()
        return loss

    state = [model.state, optimizer.state]
    return tn.compile(step, inputs=state, outputs=state) if compiled else step


def main(given: list[str] | None = None) -> list[float]:
    steps = options(__doc__, usual=800, quick=20, given=given).steps
    x, y = spirals()
    runs = []
    for habit in (functional, with_gradients, with_backward):
        for compiled in (False, True):
            tn.random.seed(0)
            step = habit(compiled)
            runs.append([step(x, y).item() for _ in range(steps)])
            how = "compiled" if compiled else "eager"
            last = f"last loss {runs[-1][-1]:.6f}"
            print(f"{habit.__name__:15} {how:9} {sparkline(runs[-1])}  {last}")
    same = all(run == runs[0] for run in runs)
    print(f"{len(runs)} times {steps} losses: {'all the same' if same else 'they differ'}")
    return runs[0]


if __name__ == "__main__":
    main()
