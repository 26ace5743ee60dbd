"""Trains a GPT-style character model on the documentation of this repository.

    python examples/char_gpt.py --steps 1000

The embedding matrix also computes the logits (tied weights). The training step is one plan:
forward, backward, clipping and AdamW. A checkpoint is saved every 100 steps; `--resume` continues a
stopped run with the same bits.
"""

from __future__ import annotations

from pathlib import Path

import numpy as np

import tenon as tn
from tenon import nn, optim
from terminal import options, output_folder, sparkline

ROOT = Path(__file__).resolve().parent.parent
LENGTH, BATCH = 64, 32  # characters of an example, examples of a step


class Text:
    """The characters of some files, encoded as integers."""

    def __init__(self, files: list[Path]) -> None:
        text = "\n".join(path.read_text(encoding="utf-8") for path in files)
        self.letters = sorted(set(text))
        number = {letter: i for i, letter in enumerate(self.letters)}
        self.numbers = np.array([number[letter] for letter in text])

    def batch(self, step: int) -> tuple[tn.Tensor, tn.Tensor]:
        """The examples of a step: characters, and the characters that follow them."""
        draw = np.random.default_rng(step)
        starts = draw.integers(0, len(self.numbers) - LENGTH, (BATCH, 1))
        drawn = self.numbers[starts + np.arange(LENGTH + 1)]
        return tn.array(drawn[:, :-1]), tn.array(drawn[:, 1:])

    def read(self, numbers: list[int]) -> str:
        return "".join(self.letters[i] for i in numbers)


class Block(nn.Module):
    def __init__(self, dims: int, heads: int) -> None:
        self.attention_norm, self.attention = nn.LayerNorm(dims), nn.MultiHeadAttention(dims, heads)
        self.norm = nn.LayerNorm(dims)
        self.up, self.down = nn.Linear(dims, 4 * dims), nn.Linear(4 * dims, dims)

    def forward(self, x: tn.Tensor) -> tn.Tensor:
        x = x + self.attention(self.attention_norm(x), causal=True)
        return x + self.down(nn.gelu(self.up(self.norm(x))))


class CharGPT(nn.Module):
    def __init__(self, letters: int, dims: int = 96, heads: int = 4, layers: int = 3) -> None:
        self.embedding = nn.Embedding(letters, dims)
        self.embedding.weight = 0.02 * tn.random.normal((letters, dims))
        self.positions = 0.02 * tn.random.normal((LENGTH, dims))
        self.blocks = [Block(dims, heads) for _ in range(layers)]
        self.norm = nn.LayerNorm(dims)

    def forward(self, tokens: tn.Tensor) -> tn.Tensor:
        x = self.embedding(tokens) + self.positions[: tokens.shape[1]]
        for block in self.blocks:
            x = block(x)
        return self.embedding.as_linear(self.norm(x))


def loss_of(model: CharGPT, tokens: tn.Tensor, following: tn.Tensor) -> tn.Tensor:
    return nn.losses.cross_entropy(model(tokens), following, reduction="mean")


def train(text: Text, steps: int, resume: bool = False) -> tuple[CharGPT, list[float]]:
    tn.random.seed(0)
    model = CharGPT(len(text.letters))
    warm_up = max(1, steps // 10)
    schedule = optim.join_schedules(
        [optim.linear_schedule(0.0, 3e-3, warm_up), optim.cosine_decay(3e-3, steps - warm_up)],
        [warm_up],
    )
    optimizer = optim.AdamW(schedule, weight_decay=0.1)
    optimizer.init(model.trainable_parameters())
    state = [model.state, optimizer.state]

    def step(tokens: tn.Tensor, following: tn.Tensor) -> tn.Tensor:
        loss, gradients = nn.value_and_grad(model, loss_of)(model, tokens, following)
        gradients, _ = optim.clip_grad_norm(gradients, 1.0)
        optimizer.update(model, gradients)
        return loss

    step = tn.compile(step, inputs=state, outputs=state)
    file = output_folder() / f"char_gpt-{steps}.safetensors"
    losses: list[float] = []
    if resume and file.exists():
        losses = tn.load_checkpoint(file, model=model, optimizer=optimizer)["losses"]
    while len(losses) < steps:
        losses.append(step(*text.batch(len(losses))).item())
        if len(losses) % 100 == 0:
            tn.save_checkpoint(file, model=model, optimizer=optimizer, losses=losses)
    return model, losses


def sample(model: CharGPT, text: Text, start: str, count: int, heat: float = 0.7) -> str:
    """`start`, continued by the model."""
    logits_of = tn.compile(model)
    numbers = [text.letters.index(letter) for letter in start]
    for i in range(count):
        seen = tn.array(numbers[-LENGTH:])[None]
        logits = logits_of(seen)[0, -1] / heat
        numbers.append(tn.random.categorical(logits, key=tn.random.key(i)).item())
    return text.read(numbers)


def main(given: list[str] | None = None) -> list[float]:
    chosen = options(__doc__, 1000, 60, given, resume="go on with what a stopped run saved")
    text = Text([ROOT / "README.md", *sorted((ROOT / "docs" / "tutorial").glob("*.md"))])
    print(f"{len(text.numbers)} characters, {len(text.letters)} different ones")
    model, losses = train(text, chosen.steps, chosen.resume)
    print(f"loss {losses[0]:.3f} to {losses[-1]:.3f} in {len(losses)} steps  {sparkline(losses)}\n")
    print(sample(model, text, "A tensor ", 20 if chosen.quick else 240))
    return losses


if __name__ == "__main__":
    main()
