"""Serves a language model whose weights are divided among two workers.

    python examples/serve_divided.py --save llm.tnx
    python examples/serve_divided.py llm.tnx                    # two threads
    tenon launch -n 2 examples/serve_divided.py llm.tnx         # two processes, the same tokens

The file has every weight once. Each worker maps or copies its blocks of them. Attention heads, the
hidden units of the MLPs and the vocabulary are divided.
"""

from __future__ import annotations

import argparse

import tenon as tn
from char_gpt import LENGTH, CharGPT
from tenon import nn

DIVIDED = {
    "*.out_proj.weight": (None, "model"),
    "*.down.weight": (None, "model"),
    "embedding.weight": "model",
}


def save(path: str) -> None:
    """Writes a model, here with random weights, as an executable for any length of the text."""
    tn.random.seed(0)
    with tn.Mesh(model=2) as mesh:
        model = nn.shard(CharGPT(letters=64), DIVIDED)
    tokens = tn.InputInfo((1, (1, 16, LENGTH)), tn.int64)
    tn.compile(model, args=[tokens], mesh=mesh).save(path)


def continued(path: str, start: list[int], count: int) -> list[int]:
    """The most likely tokens behind `start`. All workers compute them, so all may read them."""
    logits_of = tn.Executable.load(path)
    tokens = list(start)
    for _ in range(count):
        logits = logits_of(tn.array([tokens[-LENGTH:]]))
        tokens.append(tn.argmax(logits[0, -1]).item())
    return tokens


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("file", help="the executable, .tnx")
    parser.add_argument("--save", action="store_true", help="write it")
    given = parser.parse_args()
    if given.save:
        return save(given.file)
    tokens = continued(given.file, [3, 1, 4], 8)
    if tn.distributed.init().rank() == 0:
        print("tokens", *tokens)


if __name__ == "__main__":
    main()
