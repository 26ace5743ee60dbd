"""Training in float32 with tn.set_matmul_precision("exact"): the GPU's bits are the CPU's.

    python tests/cuda/exact.py [device] [steps]    cuda and 100 by default; a line per model
"""

import sys

import numpy as np

import tenon as tn


def mlp():
    return tn.nn.Sequential(tn.nn.Linear(784, 256), tn.nn.ReLU(), tn.nn.Linear(256, 10))


def cnn():
    return tn.nn.Sequential(
        tn.nn.Conv2d(1, 8, 3, padding=1),
        tn.nn.ReLU(),
        tn.nn.MaxPool2d(2),
        tn.nn.Conv2d(8, 16, 3, stride=2, padding=1),
        tn.nn.ReLU(),
        tn.nn.Flatten(),
        tn.nn.Linear(16 * 7 * 7, 10),
    )


def embedded():
    return tn.nn.Sequential(tn.nn.Embedding(50, 32), tn.nn.Flatten(), tn.nn.Linear(64 * 32, 10))


def data(name, steps, batch=64):
    draw = np.random.default_rng(5)
    shape = {"mlp": (batch, 784), "cnn": (batch, 1, 28, 28)}.get(name)
    for _ in range(steps):
        if shape:
            x = draw.standard_normal(shape).astype(np.float32)
        else:
            x = draw.integers(0, 50, (batch, 64))
        yield x, draw.integers(0, 10, batch)


def trained(make, steps, device):
    """The losses and the parameters after so many steps of Adam."""
    tn.random.seed(0)
    model = make()
    optimizer = tn.optim.Adam(1e-3)
    model.to(device)

    def loss(x, labels):
        return tn.nn.losses.cross_entropy(model(x), labels).mean()

    @tn.compile(inputs=[model, optimizer], outputs=[model, optimizer])
    def step(x, labels):
        value, grads = tn.nn.value_and_grad(model, loss)(x, labels)
        optimizer.update(model, grads)
        return value

    losses = []
    for x, labels in data(make.__name__, steps):
        losses.append(step(tn.array(x).to(device), tn.array(labels).to(device)))
    values = [np.asarray(v) for v in losses]
    return values + [np.asarray(p) for p in model.parameters()]


def main(device="cuda", steps="100"):
    tn.set_matmul_precision("exact")
    bad = 0
    for make in (mlp, cnn, embedded):
        here = trained(make, int(steps), "cpu")
        there = trained(make, int(steps), device)
        same = sum(a.tobytes() == b.tobytes() for a, b in zip(here, there))
        bad += same < len(here)
        losses = f"loss {here[0]:.4f} to {here[int(steps) - 1]:.4f}"
        word = "the same bits" if same == len(here) else f"ONLY {same} of {len(here)} the same"
        print(f"{make.__name__:<10}{steps} steps on {device}: {word}, {losses}")
    return bad > 0


if __name__ == "__main__":
    sys.exit(main(*sys.argv[1:]))
