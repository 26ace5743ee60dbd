"""Training steps through modules and optimizers beside the same steps written by hand.

Both are compiled, have the same parameters and must give the same losses. The step by hand is that
of bench/workloads: a function from a state and a batch to a loss and the next state. Then a loop
compiled and op by op.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np

import tenon as tn
from rivals import Pair
from tenon import nn, optim
from workloads import WORKLOADS, gpt, mlp
from workloads.workload import map_tree

Step = Callable[[], Any]
LEAST = 0.97  # times as fast as the step by hand
TENSOR = {"w": "weight", "b": "bias"}


class Attention(nn.Module):
    """Heads of queries, keys and values from one product, as in workloads/gpt.py."""

    def __init__(self, width: int) -> None:
        self.qkv, self.proj = nn.Linear(width, 3 * width), nn.Linear(width, width)

    def forward(self, x: tn.Tensor) -> tn.Tensor:
        batch, length, width = x.shape
        split = self.qkv(x).reshape(batch, length, 3, width // gpt.HEAD, gpt.HEAD)
        q, k, v = (split[:, :, i].swapaxes(1, 2) for i in range(3))
        joined = tn.scaled_dot_product_attention(q, k, v, is_causal=True)
        return self.proj(joined.swapaxes(1, 2).reshape(batch, length, width))


class Block(nn.Module):
    def __init__(self, width: int) -> None:
        self.norm1, self.attention = nn.LayerNorm(width), Attention(width)
        self.norm2 = nn.LayerNorm(width)
        self.up, self.down = nn.Linear(width, 4 * width), nn.Linear(4 * width, width)

    def forward(self, x: tn.Tensor) -> tn.Tensor:
        x = x + self.attention(self.norm1(x))
        return x + self.down(nn.gelu_tanh(self.up(self.norm2(x))))


class GPT(nn.Module):
    def __init__(self, layers: int, vocabulary: int, length: int, width: int) -> None:
        self.token = nn.Embedding(vocabulary, width)
        self.position = tn.zeros((length, width))
        self.blocks = [Block(width) for _ in range(layers)]
        self.norm = nn.LayerNorm(width)

    def forward(self, tokens: tn.Tensor) -> tn.Tensor:
        x = self.token(tokens) + self.position
        for block in self.blocks:
            x = block(x)
        return self.token.as_linear(self.norm(x))


def mlp_model(params: Any) -> nn.Module:
    model = nn.Sequential(nn.Linear(784, 256), nn.ReLU(), nn.Linear(256, 10))
    for layer, its in zip(model.layers[::2], params):
        set_linear(layer, its)
    return model


def gpt_model(params: Any) -> GPT:
    """A model with the weights of workloads/gpt.py; those of `nn.Linear` are transposed."""
    vocabulary, width = params["token"].shape
    model = GPT(len(params["blocks"]), vocabulary, len(params["position"]), width)
    model.update({"token": {"weight": params["token"]}, "position": params["position"]})
    model.norm.update(renamed(params["norm"]))
    for block, its in zip(model.blocks, params["blocks"]):
        block.norm1.update(renamed(its["norm1"]))
        block.norm2.update(renamed(its["norm2"]))
        for name in ("qkv", "proj", "up", "down"):
            owner = block.attention if hasattr(block.attention, name) else block
            set_linear(getattr(owner, name), its[name])
    return model


def renamed(tensors: dict[str, tn.Tensor]) -> dict[str, tn.Tensor]:
    return {TENSOR[name]: value for name, value in tensors.items()}


def set_linear(layer: nn.Linear, tensors: dict[str, tn.Tensor]) -> None:
    layer.update({"weight": tensors["w"].T.contiguous(), "bias": tensors["b"]})


def by_hand(name: str, quick: bool) -> tuple[Step, Any, list[tn.Tensor]]:
    """The step of a workload, a copy of its state before, and the batch."""
    workload = WORKLOADS[name]
    state, *batch = map_tree(lambda a: tn.array(np.asarray(a)), workload.inputs(quick))
    version, start = workload.versions["tenon"], map_tree(tn.copy, state)
    step = tn.compile(lambda *inputs: version(tn, *inputs))

    def run() -> Any:
        nonlocal state
        loss, state = step(state, *batch)
        tn.eval(loss, state)
        return loss

    return run, start, batch


def computed(step: Callable[..., Any], batch: list[tn.Tensor], state: list[Any]) -> Step:
    """A call of the step, with all that it changes."""

    def run() -> Any:
        loss = step(*batch)
        tn.eval(loss, state)
        return loss

    return run


def through_modules(model: nn.Module, optimizer: optim.Optimizer, batch: list[tn.Tensor]) -> Step:
    """The step as people write it with `nn` and `optim`."""
    optimizer.init(model.trainable_parameters())
    state = [model.state, optimizer.state]
    loss_and_grad = nn.value_and_grad(
        model, lambda x, y: nn.losses.cross_entropy(model(x), y, reduction="mean"))

    @tn.compile(inputs=state, outputs=state)
    def step(x: tn.Tensor, y: tn.Tensor) -> tn.Tensor:
        loss, grads = loss_and_grad(x, y)
        optimizer.update(model, grads)
        return loss

    return computed(step, batch, state)


def through_backward(model: nn.Module, optimizer: optim.Optimizer, batch: list[tn.Tensor]) -> Step:
    """The step as people write it after PyTorch; `optimizer` was given the parameters."""
    state = [model.state, optimizer.state]

    @tn.compile(inputs=state, outputs=state)
    def step(x: tn.Tensor, y: tn.Tensor) -> tn.Tensor:
        loss = nn.losses.cross_entropy(model(x), y, reduction="mean")
        loss.backward()
        optimizer.step()
        optimizer.zero_grad()
        return loss

    return computed(step, batch, state)


SETUPS: dict[str, Callable[[Any], tuple[nn.Module, type[optim.Optimizer], dict[str, Any]]]] = {
    "mlp": lambda state: (mlp_model(state), optim.SGD, {"lr": mlp.RATE}),
    "gpt_train": lambda state: (
        gpt_model(state["params"]), optim.AdamW,
        {"lr": gpt.RATE, "betas": (gpt.BETA1, gpt.BETA2), "eps": gpt.EPSILON,
         "weight_decay": gpt.DECAY}),
}


def beside_hand(name: str, quick: bool) -> list[Pair]:
    title, made = WORKLOADS[name].title, []
    for habit in (through_modules, through_backward):
        hand, start, batch = by_hand(name, quick)
        model, kind, options = SETUPS[name](start)
        given = [model.parameters()] if habit is through_backward else []
        step = habit(model, kind(*given, **options), batch)
        step(), hand()  # so that losses after a step are compared
        made.append(Pair(f"{title}: {habit.__name__.replace('_', ' ')}", step, hand,
                         None if quick else LEAST, 1e-4, rival="by hand"))
    return made


def small_network(rows: int) -> tuple[nn.Module, tn.Tensor, tn.Tensor]:
    tn.random.seed(0)
    model = nn.Sequential(nn.Linear(784, 256), nn.ReLU(), nn.Linear(256, 10))
    return model, tn.randn(rows, 784).eval(), tn.randn(rows, 10).eval()


def loop(rows: int) -> Step:
    """A turn of the loop of the GT document, compiled."""
    model, x, y = small_network(rows)
    optimizer = optim.SGD(learning_rate=0.01)
    loss_and_grad = nn.value_and_grad(model, lambda: ((model(x) - y) ** 2).mean())
    state = [model.state, optimizer.state]

    @tn.compile(inputs=state, outputs=state)
    def turn() -> tn.Tensor:
        loss, grads = loss_and_grad()
        optimizer.update(model, grads)
        return loss

    return turn


def loop_op_by_op(rows: int) -> Step:
    """The same with every op computed at once, as where nothing is lazy: also the derivative."""
    model, x, y = small_network(rows)
    params = tn.tree.leaves(model.parameters())

    def turn() -> tn.Tensor:
        w1, b1, w2, b2 = params
        hidden = ((x @ w1.T).eval() + b1).eval()
        active = hidden.relu().eval()
        error = (((active @ w2.T).eval() + b2).eval() - y).eval()
        loss = (error**2).eval().mean().eval()
        d_out = (error * (2 / error.size)).eval()
        d_active = (d_out @ w2).eval()
        d_hidden = (d_active * (hidden > 0).eval()).eval()
        grads = [(d_hidden.T @ x).eval(), d_hidden.sum(0).eval(),
                 (d_out.T @ active).eval(), d_out.sum(0).eval()]
        params[:] = [(p - (0.01 * g).eval()).eval() for p, g in zip(params, grads)]
        return loss

    return turn


def loops(rows: int, quick: bool) -> Pair:
    compiled, op_by_op = loop(rows), loop_op_by_op(rows)
    compiled(), op_by_op()
    return Pair(f"loop of a network 784-256-10, batch {rows}", compiled, op_by_op,
                None if quick else 3.0, rival="op by op")


def training(quick: bool) -> list[Pair]:
    """PyTorch's steps are beside those by hand in the workloads, in a process of their own."""
    return [*beside_hand("mlp", quick), *beside_hand("gpt_train", quick),
            *(loops(rows, quick) for rows in ((2, 4) if quick else (32, 128)))]
