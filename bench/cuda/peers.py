"""The rows of bench/cuda in PyTorch, by the Python that has it: `python3 peers.py ROW...`."""

import os
import sys
import time

import rows as w

try:
    import torch
except ImportError:
    sys.exit("PyTorch is not installed: nothing to compare with")

f = torch.nn.functional


def timed(row, call, *args):
    with torch.no_grad():
        for way, g in (("torch", call), ("torch.compile", torch.compile(call))):
            w.show(row, way, w.best_of(lambda: g(*args), torch.cuda.synchronize))


def normal(*shape):
    return torch.randn(*shape, device="cuda")


def bf16(*shape):
    return normal(*shape).bfloat16()


def linear_gelu(row):
    m, k, n = w.LINEAR
    call = lambda x, weight, bias: f.gelu(torch.addmm(bias, x, weight), approximate="tanh")
    timed(row, call, bf16(m, k), bf16(k, n), bf16(n))


def attention(row):
    q, k, v = (bf16(*w.ATTENTION) for _ in range(3))
    timed(row, lambda q, k, v: f.scaled_dot_product_attention(q, k, v, is_causal=True), q, k, v)


def attention_back(row):
    q, k, v = (bf16(*w.ATTENTION).requires_grad_() for _ in range(3))
    ct = bf16(*w.ATTENTION)

    def attend(q, k, v):
        return f.scaled_dot_product_attention(q, k, v, is_causal=True)

    for way, g in (("torch", attend), ("torch.compile", torch.compile(attend))):
        call = lambda: torch.autograd.grad(g(q, k, v), (q, k, v), ct)
        w.show(row, way, w.best_of(call, torch.cuda.synchronize))


def tiny(row):
    x = normal(4)
    for way, g in (("torch", lambda v: v + 1), ("torch.compile", torch.compile(lambda v: v + 1))):
        w.show("tiny", way, w.best_of(lambda: g(x), torch.cuda.synchronize))

        def waits():
            g(x)
            torch.cuda.synchronize()

        w.show("tiny_waiting", way, w.best_of(waits, lambda: None))


def mlp(row):
    batch, wide, hidden, classes = w.MLP
    x, labels = normal(batch, wide), torch.arange(batch, device="cuda") % classes
    for way in ("torch", "torch.compile"):
        model = torch.nn.Sequential(
            torch.nn.Linear(wide, hidden), torch.nn.ReLU(), torch.nn.Linear(hidden, classes)
        ).cuda()
        optimizer = torch.optim.SGD(model.parameters(), lr=0.01)
        loss = lambda x, labels: f.cross_entropy(model(x), labels)
        if way == "torch.compile":
            loss = torch.compile(loss)

        def step():
            optimizer.zero_grad()
            loss(x, labels).backward()
            optimizer.step()

        w.show(row, way, w.best_of(step, torch.cuda.synchronize))


def gpt2(row):
    def tensor(array):
        made = torch.tensor(array, device="cuda")
        return made.bfloat16() if array.dtype == "float32" else made

    gpt, weights, tokens = w.gpt2_parts(w.GPT2, tensor)
    timed(row, lambda tokens: gpt.forward(torch, weights, tokens), tokens)


def first_gelu(row):
    x = normal(*w.GELU)
    torch.cuda.synchronize()
    began = time.perf_counter()
    torch.compile(f.gelu)(x)
    torch.cuda.synchronize()
    w.show(row, "torch.compile", time.perf_counter() - began)


def first_gpt2(row):
    gpt, weights, tokens = w.gpt2_parts(w.GPT2_STEP, lambda a: torch.tensor(a, device="cuda"))
    step = gpt.torch_step(torch, torch.compile, {"params": weights})
    torch.cuda.synchronize()
    began = time.perf_counter()
    step(tokens, tokens)
    torch.cuda.synchronize()
    w.show(row, "torch.compile", time.perf_counter() - began)


def scatter(row):
    rows = (normal(1 << 16).abs() * 1e5).long() % 50257
    call = lambda table, new, at: table.index_add(0, at, new)
    timed(row, call, torch.zeros(50257, 768, device="cuda"), normal(1 << 16, 768), rows)


FUNCTIONS = {
    "copy": lambda row: timed(row, lambda v: v * 1.5, normal(*w.SQUARE)),
    "gelu": lambda row: timed(row, f.gelu, normal(*w.GELU)),
    "softmax": lambda row: timed(row, lambda v: f.softmax(v, -1), normal(*w.SQUARE)),
    "layer_norm": lambda row: timed(
        row, torch.nn.LayerNorm(w.SQUARE[1], device="cuda"), normal(*w.SQUARE)),
    "sum": lambda row: timed(row, lambda a, b: (a * b).sum(), normal(*w.LONG), normal(*w.LONG)),
    "bf16_chain": lambda row: timed(row, lambda v: (v * 1.5 + 0.25) * v - 1, bf16(*w.SQUARE)),
    "bf16_swiglu": lambda row: timed(
        row, lambda a, b: f.silu(a) * b, bf16(*w.SQUARE), bf16(*w.SQUARE)),
    "bf16_gelu": lambda row: timed(row, f.gelu, bf16(*w.SQUARE)),
    "product": lambda row: timed(row, lambda v: v @ v, normal(4096, 4096)),
    "bf16_product": lambda row: timed(row, lambda v: v @ v, bf16(4096, 4096)),
    "linear_gelu": linear_gelu,
    "attention": attention,
    "attention_back": attention_back,
    "tiny": tiny,
    "mlp": mlp,
    "gpt2": gpt2,
    "sort": lambda row: timed(row, lambda v: torch.sort(v)[0], normal(1 << 24)),
    "top_k": lambda row: timed(row, lambda v: torch.topk(v, 64), normal(512, 50257)),
    "cumsum": lambda row: timed(row, lambda v: torch.cumsum(v, 1), normal(4096, 4096)),
    "scatter": scatter,
    "conv": lambda row: timed(
        row, lambda v, k: f.conv2d(v, k, padding=1), normal(32, 64, 56, 56), normal(64, 64, 3, 3)),
    "first_gelu": first_gelu,
    "first_gpt2": first_gpt2,
}

if __name__ == "__main__":
    w.run_rows(FUNCTIONS, int(os.environ.get("LIMIT", 60)))
