"""Gradients and batches in Tenon and, where they are installed, in PyTorch and JAX.

Nothing is compiled on any side, and all use as many threads.
"""

from __future__ import annotations

import functools
import importlib
import os
import sys
import time
from collections.abc import Callable
from types import ModuleType

import numpy as np

import tenon as tn
from rivals import Pair

LAYERS, WIDTH = 8, 64


@functools.cache
def peer(name: str) -> ModuleType | None:
    """The other library, when it is installed."""
    try:
        module = importlib.import_module(name)
    except ImportError:
        print(f"bench: no {name} here, so no rows against it; `make bench PEERS=1` installs it",
              file=sys.stderr)
        return None
    if name == "torch":
        module.set_num_threads(tn.num_threads())
    return module


def mlp_arrays(batch: int) -> tuple[list[tuple[np.ndarray, np.ndarray]], np.ndarray, np.ndarray]:
    """Weights and biases of the layers, inputs, wanted outputs."""
    rng = np.random.default_rng(0)

    def normal(*shape: int) -> np.ndarray:
        return rng.standard_normal(shape, dtype=np.float32)

    layers = [(normal(WIDTH, WIDTH) / 8, normal(WIDTH) / 8) for _ in range(LAYERS)]
    return layers, normal(batch, WIDTH), normal(batch, WIDTH)


def squared_error(layers, x, y, relu, mean):
    """The same source for every library."""
    for w, b in layers[:-1]:
        x = relu(x @ w + b)
    w, b = layers[-1]
    d = x @ w + b - y
    return mean(d * d)


def mlp(batch: int) -> list[Pair]:
    """Loss and gradient of a small network, the way a training step asks for them."""
    layers, x, y = mlp_arrays(batch)
    params, inputs, wanted = tn.tree.map(tn.array, (layers, x, y))
    value_and_grad = tn.value_and_grad(
        lambda p: squared_error(p, inputs, wanted, tn.relu, tn.mean))

    def ours() -> object:
        loss, gradient = value_and_grad(params)
        tn.eval(loss, gradient)
        return gradient[0][1]

    name = f"value_and_grad, {LAYERS} layers of {WIDTH}, batch {batch}"
    torch = peer("torch")
    theirs = torch_mlp(torch, layers, x, y) if torch else None
    return [Pair(name, ours, theirs, 1.0, rival="PyTorch")]


def torch_mlp(torch: ModuleType, layers, x, y) -> Callable[[], object]:
    params = [[torch.tensor(a, requires_grad=True) for a in layer] for layer in layers]
    inputs, wanted = torch.tensor(x), torch.tensor(y)

    def run() -> object:
        for layer in params:
            for p in layer:
                p.grad = None
        squared_error(params, inputs, wanted, torch.relu, torch.mean).backward()
        return params[0][1].grad

    return run


def per_example(batch: int) -> list[Pair]:
    """A gradient for every example: vmap of grad."""
    layers, x, y = mlp_arrays(batch)
    params, inputs, wanted = tn.tree.map(tn.array, (layers, x, y))
    each = tn.vmap(tn.grad(lambda p, x, y: squared_error(p, x, y, tn.relu, tn.mean)),
                   in_axes=(None, 0, 0))

    def ours() -> object:
        gradient = each(params, inputs, wanted)
        tn.eval(gradient)
        return gradient[0][1]

    by_torch = by_jax = None
    if torch := peer("torch"):
        on_torch = ([[torch.tensor(a) for a in layer] for layer in layers], torch.tensor(x),
                    torch.tensor(y))
        torch_each = torch.func.vmap(
            torch.func.grad(lambda p, x, y: squared_error(p, x, y, torch.relu, torch.mean)),
            in_dims=(None, 0, 0))
        by_torch = lambda: torch_each(*on_torch)[0][1]
    if jax := peer("jax"):
        on_jax = jax.tree_util.tree_map(jax.numpy.asarray, (layers, x, y))
        jax_each = jax.vmap(
            jax.grad(lambda p, x, y: squared_error(p, x, y, jax.nn.relu, jax.numpy.mean)),
            in_axes=(None, 0, 0))
        by_jax = lambda: jax.block_until_ready(jax_each(*on_jax))[0][1]
    name = f"vmap(grad), {LAYERS} layers of {WIDTH}, {batch} examples"
    return [Pair(name, ours, by_torch, 1.0, rival="PyTorch"),
            Pair(name, ours, by_jax, 1.0, rival="JAX")]


def batched_matmul(count: int) -> list[Pair]:
    """vmap of a product of matrices against the product of batches it should become."""
    a, b = np.random.default_rng(1).standard_normal((2, count, 64, 64), dtype=np.float32)
    x, y = tn.array(a), tn.array(b)
    each = tn.vmap(tn.matmul)
    name = f"vmap of matmul 64x64x64, batch {count}"
    made = [Pair(name, lambda: each(x, y).eval(), lambda: tn.matmul(x, y).eval(), 0.9,
                 rival="tn.matmul of batches")]
    theirs = None
    if torch := peer("torch"):
        torch_each, tx, ty = torch.func.vmap(torch.matmul), torch.tensor(a), torch.tensor(b)
        theirs = lambda: torch_each(tx, ty)
    return [*made, Pair(name, lambda: each(x, y).eval(), theirs, rival="PyTorch")]


def power(x, length: int):
    """A chain of products of numbers near one."""
    y = x
    for _ in range(length):
        y = y * x
    return y.sum()


def chain(length: int) -> list[Pair]:
    """The gradient through a chain of small ops, and the chain alone."""
    start = np.linspace(0.999999, 1, 16, dtype=np.float32)
    x = tn.array(start)
    gradient = tn.grad(lambda x: power(x, length))
    backward = forward = None
    if torch := peer("torch"):
        tx = torch.tensor(start, requires_grad=True)
        constant = torch.tensor(start)

        def backward() -> object:
            tx.grad = None
            power(tx, length).backward()
            return tx.grad

        def forward() -> object:
            return power(constant, length)

    def ours() -> object:
        return gradient(x).eval()

    return [Pair(f"grad of {length:,} small ops, per op", ours, backward, 1.0, length * 1e-5,
                 rival="PyTorch", per=length),
            Pair(f"{length:,} small ops without grad, per op", lambda: power(x, length).eval(),
                 forward, None, 1e-3, rival="PyTorch", per=length)]


def transforms(quick: bool) -> list[Pair]:
    sizes = (1,) if quick else (1, 64, 256)
    return [*(pair for batch in sizes for pair in mlp(batch)),
            *per_example(2 if quick else 64),
            *batched_matmul(2 if quick else 64),
            *chain(10 if quick else 100),
            *chain(100 if quick else 200_000)]


def numbers_in_checkpoints(quick: bool) -> tuple[float, float]:
    """Processor seconds of gradients of checkpoints with many numbers, and with 8 times as many."""
    def seconds(n: int) -> float:
        def chain(a):
            for i in range(n):
                a = a * (1 + 1e-6 * i) + 0.1
            return a

        began = time.process_time()
        tn.eval(tn.grad(tn.checkpoint(chain))(1.0))
        return time.process_time() - began

    n = 50 if quick else 500
    seconds(n // 5)
    # Each for the first time.
    return min(seconds(n - k) for k in range(3)), min(seconds(8 * n - k) for k in range(2))


def resident() -> int:
    """Bytes of memory this process occupies."""
    with open("/proc/self/statm") as file:
        return int(file.read().split()[1]) * os.sysconf("SC_PAGE_SIZE")


def memory_per_op(length: int) -> float:
    """Bytes one op of a chain and its gradient occupy before they run. It is for a new process:
    memory that was used before and kept is not seen again."""
    x = tn.array(np.linspace(0.999999, 1, 16, dtype=np.float32))
    before = resident()
    pending = tn.grad(lambda x: power(x, length))(x)
    taken = resident() - before
    pending.eval()
    return taken / length
