"""A model in two stages, each on its own workers, that work on different microbatches.

    python examples/pipeline.py                        # workers are threads
    tenon launch -n 4 examples/pipeline.py             # workers are processes

Both print the same loss. `--stages 1` puts both stages on one part of the mesh.
"""

from __future__ import annotations

import argparse
from collections.abc import Sequence

import tenon as tn
from tenon import nn, optim


def mlp() -> nn.Sequential:
    return nn.Sequential(nn.Linear(784, 64), nn.relu, nn.Linear(64, 10))


def cross_entropy(logits: tn.Tensor, y: tn.Tensor) -> tn.Tensor:
    return nn.losses.cross_entropy(logits, y).mean()


def training(pipe: nn.Pipeline) -> object:
    optimizer = optim.AdamW(learning_rate=1e-3)
    state = [pipe.state, optimizer.state]

    def loss_of(pipe: nn.Pipeline, x: tn.Tensor, y: tn.Tensor) -> tn.Tensor:
        return pipe.loss(cross_entropy, x, y)

    @tn.compile(inputs=state, outputs=state)
    def step(x: tn.Tensor, y: tn.Tensor) -> tn.Tensor:
        loss, gradients = nn.value_and_grad(pipe, loss_of)(pipe, x, y)
        optimizer.update(pipe, gradients)
        return loss

    return step


def main(arguments: Sequence[str] | None = None) -> list[float]:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--steps", type=int, default=100)
    parser.add_argument("--stages", type=int, default=2)
    parser.add_argument("--quick", action="store_true", help="ten steps")
    given = parser.parse_args(arguments)
    steps = 10 if given.quick else given.steps

    tn.random.seed(0)
    mesh = tn.Mesh(stage=given.stages, data=2)
    first, last = mesh.at(stage=0), mesh.at(stage=given.stages - 1)
    with mesh:
        stages = [tn.place(nn.Sequential(nn.Linear(784, 784), nn.relu), first)]
        stages.append(tn.place(mlp(), last))
        pipe = tn.pipeline(stages, microbatches=8)
        step = training(pipe)
        x = tn.random.normal((128, 784), key=tn.random.key(1))
        x, y = tn.shard((x, tn.argmax(x[:, :10], axis=1)), "data")
        losses = [step(x, y).item() for _ in range(steps)]
    print(f"loss {losses[-1]:.6f} in {len(losses)} steps")
    return losses


if __name__ == "__main__":
    main()
