"""The rows of bench/cuda: shapes, goals, how they are timed and how results reach run.py."""

import json
import signal
import sys
import time
import traceback
from dataclasses import dataclass
from pathlib import Path

sys.path.insert(0, str(Path(__file__).resolve().parents[1]))  # bench/workloads: GPT-2

GELU = (8, 1000, 4096)
SQUARE = (8192, 8192)
LONG = (64 << 20,)
MLP = (128, 784, 256, 10)
LINEAR = (8192, 4096, 8192)
ATTENTION = (4, 16, 4096, 128)
GPT2 = dict(layers=12, batch=1, length=512, vocabulary=50257)
GPT2_STEP = dict(layers=12, batch=4, length=512, vocabulary=50257)


@dataclass(frozen=True)
class Row:
    title: str
    goal: float | None = None  # microseconds
    nbytes: int = 0  # read and written: beside a copy of as many
    share: float | None = None  # of that copy's rate, which is a goal as well


def _bytes(shape, element, tensors=2):
    count = element * tensors
    for extent in shape:
        count *= extent
    return count


ROWS = {
    "copy": Row("x * 1.5, 8192x8192"),
    "gelu": Row("gelu 8x1000x4096", 258, _bytes(GELU, 4), 0.95),
    "softmax": Row("softmax 8192x8192", 138, _bytes(SQUARE, 4)),
    "layer_norm": Row("layer norm 8192x8192", 140, _bytes(SQUARE, 4)),
    "sum": Row("sum(x * y), 64 M", 128, _bytes(LONG, 4)),
    "bf16_chain": Row("bf16 chain 8192x8192", None, _bytes(SQUARE, 2), 0.9),
    "bf16_swiglu": Row("bf16 swiglu 8192x8192", None, _bytes(SQUARE, 2, 3), 0.9),
    "bf16_gelu": Row("bf16 gelu 8192x8192", None, _bytes(SQUARE, 2), 0.9),
    "product": Row("f32 product 4096^3"),
    "exact": Row('f32 product 4096^3, "exact"'),
    "bf16_product": Row("bf16 product 4096^3"),
    "linear_gelu": Row("bf16 linear + bias + gelu 8192x4096x8192", 720),
    "attention": Row("bf16 causal attention 4x16x4096x128", 500),
    "attention_back": Row("the same and its derivative"),
    "tiny": Row("compiled x + 1 on 4 elements, not waiting", 4),
    "tiny_waiting": Row("the same, waiting", 8),
    "mlp": Row("MLP training step 784-256-10, batch 128", 35),
    "gpt2": Row("bf16 GPT-2 forward 1x512", 750),
    "sort": Row("sort 16 M"),
    "top_k": Row("top_k 64 of 512 rows of 50257"),
    "cumsum": Row("cumsum of 4096 rows of 4096"),
    "scatter": Row("scatter-add of 64 K rows of 768"),
    "conv": Row("conv 32x64x56x56 by 64 of 3x3"),
    "first_gelu": Row("first call: gelu, nothing cached", 50e3),
    "first_gelu_disk": Row("the same, from disk", 5e3),
    "first_eager": Row("first call: gelu, not compiled, nothing cached", 50e3),
    "first_eager_disk": Row("the same, from disk", 5e3),
    "first_gpt2": Row("first call: GPT-2 training step, nothing cached", 1e6),
    "first_gpt2_disk": Row("the same, from disk", 400e3),
    "gpt2_step": Row("GPT-2 training step 4x512"),
}


def gpt2_parts(config, numpy_to):
    """Weights of GPT-2 and tokens for it; `numpy_to` makes tensors of arrays."""
    from workloads import gpt

    made = gpt.Config(**config)
    convert = lambda tree: (
        {k: convert(v) for k, v in tree.items()} if isinstance(tree, dict)
        else [convert(v) for v in tree] if isinstance(tree, list) else numpy_to(tree)
    )
    return gpt, convert(gpt.weights(made)), numpy_to(gpt.tokens(made))


def best_of(run, wait, rounds=5, least=0.1):
    """Seconds of one call of `run`, the best of some rounds."""
    run(), wait()
    began = time.perf_counter()
    run(), wait()
    calls = max(1, int(least / max(time.perf_counter() - began, 1e-6)))
    best = float("inf")
    for _ in range(rounds):
        began = time.perf_counter()
        for _ in range(calls):
            run()
        wait()
        best = min(best, (time.perf_counter() - began) / calls)
    return best


def report(**what):
    """A line for run.py."""
    print("ROW " + json.dumps(what), flush=True)


def show(row, way, seconds):
    report(row=row, way=way, us=seconds * 1e6)


def run_rows(functions, limit):
    """Those that the command names, each for `limit` seconds at most."""

    def stop(*_):
        raise TimeoutError(f"longer than {limit} s")

    signal.signal(signal.SIGALRM, stop)
    for row in sys.argv[1:]:
        signal.alarm(limit)
        try:
            if row in functions:
                functions[row](row)
        except Exception as error:
            traceback.print_exc()
            report(row=row, error=f"{type(error).__name__}: {error}"[:300])
        finally:
            signal.alarm(0)
        report(row=row, done=True)
