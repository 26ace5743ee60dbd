"""Trains a residual network with batch normalization on handwritten digits, by SGD with momentum.

    python examples/resnet_digits.py --steps 300

The running means and variances are state: a compiled step updates them like the parameters, and the
model uses them after `model.eval()`.
"""

from __future__ import annotations

from itertools import islice

import tenon as tn
from digits import Digits, load_digits
from tenon import nn, optim
from terminal import options, sparkline

BATCH = 64


class Residual(nn.Module):
    """`relu(x + f(x))`; if the shape changes, a convolution projects `x`."""

    def __init__(self, channels: int, out: int, stride: int = 1) -> None:
        self.conv1 = nn.Conv2d(channels, out, 3, stride=stride, padding=1, bias=False)
        self.conv2 = nn.Conv2d(out, out, 3, padding=1, bias=False)
        self.norm1, self.norm2 = nn.BatchNorm2d(out), nn.BatchNorm2d(out)
        changes = stride != 1 or channels != out
        self.shortcut = nn.Conv2d(channels, out, 1, stride=stride) if changes else nn.Identity()

    def forward(self, x: tn.Tensor) -> tn.Tensor:
        y = nn.relu(self.norm1(self.conv1(x)))
        return nn.relu(self.shortcut(x) + self.norm2(self.conv2(y)))


class ResNet(nn.Module):
    def __init__(self, width: int = 16, classes: int = 10) -> None:
        self.stem = nn.Conv2d(1, width, 3, padding=1)
        self.blocks = [
            Residual(width, width),
            Residual(width, 2 * width, stride=2),
            Residual(2 * width, 4 * width, stride=2),
        ]
        self.head = nn.Linear(4 * width, classes)

    def forward(self, x: tn.Tensor) -> tn.Tensor:
        x = nn.relu(self.stem(x))
        for block in self.blocks:
            x = block(x)
        return self.head(tn.mean(x, axis=(2, 3)))


def loss_of(model: ResNet, images: tn.Tensor, labels: tn.Tensor) -> tn.Tensor:
    logits = model(images)
    return nn.losses.cross_entropy(logits, labels, label_smoothing=0.1, reduction="mean")


def train(digits: Digits, steps: int) -> tuple[ResNet, list[float]]:
    tn.random.seed(0)
    model = ResNet()
    rate = optim.cosine_decay(0.1, steps)
    optimizer = optim.SGD(rate, momentum=0.9, weight_decay=5e-4, nesterov=True)
    optimizer.init(model.trainable_parameters())
    state = [model.state, optimizer.state]

    def step(images: tn.Tensor, labels: tn.Tensor) -> tn.Tensor:
        loss, gradients = nn.value_and_grad(model, loss_of)(model, images, labels)
        optimizer.update(model, gradients)
        return loss

    step = tn.compile(step, inputs=state, outputs=state)
    losses = [step(*batch).item() for batch in islice(digits.batches(BATCH), steps)]
    return model, losses


def accuracy(model: ResNet, digits: Digits) -> float:
    right = tn.argmax(model.eval()(digits.images), axis=1) == digits.labels
    return tn.mean(right.astype(tn.float32)).item()


def main(given: list[str] | None = None) -> list[float]:
    steps = options(__doc__, usual=300, quick=20, given=given).steps
    training, test = load_digits()
    model, losses = train(training, steps)
    print(f"loss {losses[0]:.3f} to {losses[-1]:.3f} in {steps} steps  {sparkline(losses)}")
    print(f"{100 * accuracy(model, test):.1f} % of {test.size} test images right")
    return losses


if __name__ == "__main__":
    main()
