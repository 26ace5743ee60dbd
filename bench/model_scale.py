"""How long logical models take: to build, flatten, infer, and to reach a plan.

    python bench/model_scale.py [--check]

GPT-like models of 250 to 2,000 blocks: 8 blocks a layer, and 28 and more layers. `--check` fails
where the goals are missed: 1.5 s at 1,000 blocks, and no more than linear.
"""

from __future__ import annotations

import argparse
import time

import tenon as tn
from tenon import model as M

GOAL_S = 1.5
SIZES = (250, 500, 1000, 2000)
HEADS, VOCABULARY = 2, 64
WIDTHS = (32, 36, 40)  # each time another one: what was planned before is remembered


def layer(dims: int) -> M.Model:
    """Attention and a feed-forward part, both with a residual connection: 8 blocks."""
    model = M.Model("layer")
    model |= M.LayerNorm()(input="x", output="a")
    model |= M.MultiHeadAttention(dims, HEADS, causal=True)(input="a", output="b")
    model |= M.Add()(x1="x", x2="b", output="h")
    model |= M.LayerNorm()(input="h", output="c")
    model |= M.Linear(4 * dims)(input="c", output="d")
    model |= M.Gelu()(input="d", output="e")
    model |= M.Linear(dims)(input="e", output="f")
    model |= M.Add()(x1="h", x2="f", output="y")
    return model


def gpt(blocks: int, dims: int) -> M.Model:
    model = M.Model("gpt")
    model |= M.Embedding(VOCABULARY, dims)(input="tokens", output="h0")
    layers = (blocks - 3) // 8
    for i in range(layers):
        model |= layer(dims)(x=f"h{i}", y=f"h{i + 1}")
    model |= M.LayerNorm()(input=f"h{layers}", output="last")
    model |= M.Linear(VOCABULARY)(input="last", output="logits")
    return model


def best(blocks: int) -> dict[str, float]:
    runs = [measure(blocks, dims) for dims in WIDTHS]
    return min(runs, key=lambda times: times["total"])


def measure(blocks: int, dims: int) -> dict[str, float]:
    times = {}

    def timed(stage: str, f):
        start = time.perf_counter()
        made = f()
        times[stage] = time.perf_counter() - start
        return made

    model = timed("build", lambda: gpt(blocks, dims))
    timed("flatten", lambda: model._core._blocks_text())
    tokens = tn.zeros((2, 16), dtype=tn.int64)
    physical = timed("compile", lambda: tn.compile(model, shapes={"tokens": [2, 16]}))
    params = physical.randomize_params()
    tn.eval(params)
    timed("plan and first call", lambda: tn.eval(physical.evaluate(params, {"tokens": tokens})))
    times["total"] = times["build"] + times["compile"] + times["plan and first call"]
    return times


def main() -> None:
    parser = argparse.ArgumentParser()
    parser.add_argument("--check", action="store_true")
    arguments = parser.parse_args()
    measure(50, 44)  # imports and kernels that all of them share
    rows = {blocks: best(blocks) for blocks in SIZES}
    stages = list(rows[SIZES[0]])
    print("blocks  " + "  ".join(f"{stage:>19}" for stage in stages))
    for blocks, times in rows.items():
        print(f"{blocks:6}  " + "  ".join(f"{times[stage]:17.3f} s" for stage in stages))
    growth = rows[2000]["total"] / rows[500]["total"]
    print(f"2,000 blocks take {growth:.2f} times as long as 500")
    if arguments.check and (rows[1000]["total"] > GOAL_S or growth > 5):
        raise SystemExit(f"goal: {GOAL_S} s at 1,000 blocks, linear")


if __name__ == "__main__":
    main()
