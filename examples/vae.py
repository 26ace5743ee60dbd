"""Trains a variational autoencoder on handwritten digits, and generates new digits.

    python examples/vae.py --steps 1500

The encoder maps an image to a normal distribution over a plane. A point is sampled from it, and the
decoder maps the point to an image. Samples come from `tn.random.state`, which the compiled step
captures together with the parameters, so each call draws new numbers.
"""

from __future__ import annotations

import struct
import zlib
from itertools import islice
from pathlib import Path

import numpy as np

import tenon as tn
from digits import Digits, load_digits
from tenon import nn, optim
from terminal import options, output_folder, sparkline

BATCH, PLANE, SIDE = 128, 2, 8


class VAE(nn.Module):
    def __init__(self, hidden: int = 128) -> None:
        self.encoder = nn.Sequential(
            nn.Flatten(), nn.Linear(SIDE * SIDE, hidden), nn.gelu, nn.Linear(hidden, 2 * PLANE)
        )
        self.decoder = nn.Sequential(
            nn.Linear(PLANE, hidden), nn.gelu, nn.Linear(hidden, hidden), nn.gelu,
            nn.Linear(hidden, SIDE * SIDE),
        )

    def forward(self, images: tn.Tensor) -> tuple[tn.Tensor, tn.Tensor, tn.Tensor]:
        """The logits of the pixels, and the means and log variances of the points."""
        mean, log_variance = tn.split(self.encoder(images), 2, axis=1)
        point = mean + tn.exp(log_variance / 2) * tn.random.normal(mean.shape)
        return self.decoder(point), mean, log_variance


def loss_of(model: VAE, images: tn.Tensor) -> tn.Tensor:
    """Reconstruction error in nats, plus the divergence from a standard normal distribution."""
    logits, mean, log_variance = model(images)
    pixels = tn.reshape(images, logits.shape)
    taken = nn.losses.binary_cross_entropy(logits, pixels, reduction="sum")
    away = 0.5 * tn.sum(tn.exp(log_variance) + mean**2 - 1 - log_variance)
    return (taken + away) / images.shape[0]


def train(digits: Digits, steps: int) -> tuple[VAE, list[float]]:
    tn.random.seed(0)
    model = VAE()
    optimizer = optim.Adam(2e-3)
    optimizer.init(model.trainable_parameters())
    state = [model.state, optimizer.state, tn.random.state]

    def step(images: tn.Tensor) -> tn.Tensor:
        loss, gradients = nn.value_and_grad(model, loss_of)(model, images)
        optimizer.update(model, gradients)
        return loss

    step = tn.compile(step, inputs=state, outputs=state)
    losses = [step(images).item() for images, _ in islice(digits.batches(BATCH), steps)]
    return model, losses


def drawn(model: VAE, side: int = 12, scale: int = 4) -> np.ndarray:
    """A grid of `side` by `side` generated images, as one image with bytes for pixels."""
    ticks = tn.linspace(-2.0, 2.0, side)
    points = tn.reshape(tn.stack(tn.meshgrid(ticks, ticks), axis=-1), (-1, PLANE))
    pixels = tn.reshape(tn.sigmoid(model.decoder(points)), (side, side, SIDE, SIDE))
    framed = tn.pad(pixels, ((0, 0), (0, 0), (1, 1), (1, 1)))
    rows = [tn.concat(tn.unstack(row), axis=1) for row in tn.unstack(framed)]
    picture = tn.repeat(tn.repeat(tn.concat(rows), scale, axis=0), scale, axis=1)
    return (255 * (1 - picture)).astype(tn.uint8).numpy()


def write_png(path: Path, pixels: np.ndarray) -> None:
    """A greyscale PNG: header, compressed rows (each after a zero: no filter), end."""

    def chunk(name: bytes, data: bytes) -> bytes:
        check = struct.pack(">I", zlib.crc32(name + data))
        return struct.pack(">I", len(data)) + name + data + check

    height, width = pixels.shape
    rows = np.pad(pixels, ((0, 0), (1, 0))).tobytes()
    header = struct.pack(">IIBBBBB", width, height, 8, 0, 0, 0, 0)
    path.write_bytes(b"\x89PNG\r\n\x1a\n" + chunk(b"IHDR", header)
                     + chunk(b"IDAT", zlib.compress(rows, 9)) + chunk(b"IEND", b""))


def main(given: list[str] | None = None) -> list[float]:
    steps = options(__doc__, usual=1500, quick=30, given=given).steps
    model, losses = train(load_digits()[0], steps)
    print(f"loss {losses[0]:.1f} to {losses[-1]:.1f} in {steps} steps  {sparkline(losses)}")
    path = output_folder() / "vae.png"
    write_png(path, drawn(model))
    print(f"{path}: digits drawn from a grid of points")
    return losses


if __name__ == "__main__":
    main()
