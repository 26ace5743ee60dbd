"""A training run that goes on from its last checkpoint: FOLDER STEPS MODE.

The mode is update or backward, for how gradients are found, and may begin with compiled-.
"""

import sys

import tenon as tn
from tenon import nn, optim


def main(folder, steps, mode):
    tn.random.seed(3)
    x = tn.random.normal((60, 4), key=tn.random.key(5))
    batches = tn.data.batches((x, tn.sum(x * x, axis=1, keepdims=True)), 16, shuffle=True,
                              epochs=None)
    model = nn.Sequential(
        nn.Linear(4, 32), nn.BatchNorm(32), nn.relu, nn.Dropout(0.3), nn.Linear(32, 1)
    )
    rate = optim.join_schedules(
        [optim.linear_schedule(0.0, 1e-2, 3), optim.cosine_decay(1e-2, 12)], [3]
    )
    optimizer = optim.AdamW(model.parameters(), lr=rate)

    def loss_of(x, y):
        return nn.losses.mse_loss(model(x), y)

    def update(x, y):
        loss, grads = nn.value_and_grad(model, loss_of)(x, y)
        optimizer.update(model, grads)
        return loss

    def backward(x, y):
        optimizer.zero_grad()
        loss = loss_of(x, y)
        loss.backward()
        optimizer.step()
        return loss

    step = backward if mode.endswith("backward") else update
    if mode.startswith("compiled"):
        state = [model.state, optimizer.state, tn.random.state]
        step = tn.compile(step, inputs=state, outputs=state)
    checkpoints = tn.Checkpoints(folder)
    parts = {"model": model, "optimizer": optimizer, "batches": batches}
    before = checkpoints.load(**parts)
    losses = before.get("losses", [])
    for _, batch in zip(range(before.get("step", 0), steps), batches):
        losses.append(step(*batch).item())
    checkpoints.save(steps, **parts, losses=losses)


if __name__ == "__main__":
    main(sys.argv[1], int(sys.argv[2]), sys.argv[3])
