"""The rows of bench/cuda in Tenon: `python ours.py ROW...`; run.py starts it."""

import os
import time

import rows as w

import tenon as tn

gpu = tn.Device("cuda")


def normal(*shape, dtype=tn.float32):
    return tn.random.normal(shape=shape, key=tn.random.key(0), device=gpu).astype(dtype).eval()


def seconds_of(f, *args):
    tn.eval(f(*args))
    return w.best_of(lambda: tn.async_eval(f(*args)), tn.synchronize)


def timed(row, f, *args):
    g = tn.compile(f)
    w.show(row, "tenon", seconds_of(g, *args))
    if nbytes := w.ROWS[row].nbytes:
        w.show(row, "copy", seconds_of(tn.compile(lambda v: v * 1.5), normal(nbytes // 8)))
    if os.environ.get("TENON_BENCH_STEPS"):
        device_steps(g, *args)


def device_steps(f, *args):
    """Prints what each step takes on the device."""
    timing = tn.profile(f, calls=5)(*args)
    for step in timing.steps:
        print(f"{'':<4}{step.seconds * 1e6:10.2f} us  {step.name}")


def bf16(*shape):
    return normal(*shape, dtype=tn.bfloat16)


def exact(row):
    before = tn.set_matmul_precision("exact")
    timed(row, lambda a: a @ a, normal(4096, 4096))
    tn.set_matmul_precision(before)


def linear_gelu(row):
    m, k, n = w.LINEAR
    f = lambda x, weight, bias: tn.gelu_tanh(x @ weight + bias)
    timed(row, f, bf16(m, k), bf16(k, n), bf16(n))


def attention(row):
    q, k, v = (bf16(*w.ATTENTION) for _ in range(3))
    f = lambda q, k, v: tn.scaled_dot_product_attention(q, k, v, is_causal=True)
    timed(row, f, q, k, v)


def attention_back(row):
    q, k, v, ct = (bf16(*w.ATTENTION) for _ in range(4))

    def f(q, k, v, ct):
        attend = lambda q, k, v: tn.scaled_dot_product_attention(q, k, v, is_causal=True)
        out, back = tn.vjp(attend, [q, k, v])
        return out, back(ct)

    timed(row, f, q, k, v, ct)


def layer_norm(row):
    timed(row, tn.nn.LayerNorm(w.SQUARE[1]).to(gpu), normal(*w.SQUARE))


def scatter(row):
    rows = (tn.abs(normal(1 << 16)) * 1e5).astype(tn.int64) % 50257
    f = lambda table, new, at: tn.scatter_add(table, new, [at], axes=[0])
    timed(row, f, tn.zeros((50257, 768), device=gpu), normal(1 << 16, 768), rows)


def tiny(row):
    x = normal(4)
    g = tn.compile(lambda v: v + 1)
    tn.eval(g(x))
    w.show("tiny", "tenon", w.best_of(lambda: g(x), tn.synchronize))

    def waits():
        tn.eval(g(x))
        tn.synchronize()

    w.show("tiny_waiting", "tenon", w.best_of(waits, lambda: None))


def mlp(row):
    batch, wide, hidden, classes = w.MLP
    with tn.device(gpu):
        first, last = tn.nn.Linear(wide, hidden), tn.nn.Linear(hidden, classes)
        model = tn.nn.Sequential(first, tn.nn.ReLU(), last)
        optimizer = tn.optim.SGD(0.01)
    x = normal(batch, wide)
    labels = tn.array([i % classes for i in range(batch)]).to(gpu)

    def loss(x, labels):
        return tn.nn.losses.cross_entropy(model(x), labels).mean()

    @tn.compile(inputs=[model, optimizer], outputs=[model, optimizer])
    def step(x, labels):
        value, grads = tn.nn.value_and_grad(model, loss)(x, labels)
        optimizer.update(model, grads)
        return value

    for _ in range(3):
        step(x, labels).item()
    w.show(row, "tenon", w.best_of(lambda: step(x, labels), tn.synchronize))
    device_steps(step, x, labels)


def gpt2(row):
    def tensor(array):
        made = tn.array(array).to(gpu)
        return (made.astype(tn.bfloat16) if array.dtype == "float32" else made).eval()

    gpt, weights, tokens = w.gpt2_parts(w.GPT2, tensor)
    f = tn.compile(lambda tokens: gpt.forward(tn, weights, tokens))
    began = time.perf_counter()
    tn.eval(f(tokens))
    tn.synchronize()
    print(f"    first call {time.perf_counter() - began:.3f} s")
    w.show(row, "tenon", w.best_of(lambda: tn.async_eval(f(tokens)), tn.synchronize))


def first_gelu(row):
    x = normal(*w.GELU)
    tn.synchronize()
    report_first(row, tn.compile(tn.nn.gelu), x)


def first_eager(row):
    x = normal(*w.GELU)
    tn.synchronize()
    report_first(row, tn.nn.gelu, x)


def first_gpt2(row):
    gpt, weights, tokens = w.gpt2_parts(w.GPT2_STEP, lambda array: tn.array(array).to(gpu).eval())
    zeros = lambda: tn.tree.map(tn.zeros_like, weights)
    state = {"params": weights, "m": zeros(), "v": zeros(), "t": tn.array(0.0).to(gpu)}
    tn.eval(state)
    tn.synchronize()
    step = tn.compile(lambda state, x: gpt.step(tn, state, x, x))
    report_first(row, step, state, tokens)
    w.show("gpt2_step", "tenon", w.best_of(lambda: step(state, tokens), tn.synchronize, rounds=2))


def report_first(row, f, *args):
    began = time.perf_counter()
    tn.eval(f(*args))
    tn.synchronize()
    w.show(row, "tenon", time.perf_counter() - began)


def softmax(x):
    return tn.softmax(x, axis=-1)


FUNCTIONS = {
    "copy": lambda row: timed(row, lambda v: v * 1.5, normal(*w.SQUARE)),
    "gelu": lambda row: timed(row, tn.nn.gelu, normal(*w.GELU)),
    "softmax": lambda row: timed(row, softmax, normal(*w.SQUARE)),
    "layer_norm": layer_norm,
    "sum": lambda row: timed(row, lambda a, b: (a * b).sum(), normal(*w.LONG), normal(*w.LONG)),
    "bf16_chain": lambda row: timed(row, lambda v: (v * 1.5 + 0.25) * v - 1, bf16(*w.SQUARE)),
    "bf16_swiglu": lambda row: timed(
        row, lambda a, b: tn.silu(a) * b, bf16(*w.SQUARE), bf16(*w.SQUARE)),
    "bf16_gelu": lambda row: timed(row, tn.nn.gelu, bf16(*w.SQUARE)),
    "product": lambda row: timed(row, lambda a: a @ a, normal(4096, 4096)),
    "exact": exact,
    "bf16_product": lambda row: timed(row, lambda a: a @ a, bf16(4096, 4096)),
    "linear_gelu": linear_gelu,
    "attention": attention,
    "attention_back": attention_back,
    "tiny": tiny,
    "mlp": mlp,
    "gpt2": gpt2,
    "sort": lambda row: timed(row, tn.sort, normal(1 << 24)),
    "top_k": lambda row: timed(row, lambda v: tn.top_k(v, 64), normal(512, 50257)),
    "cumsum": lambda row: timed(row, lambda v: tn.cumsum(v, axis=1), normal(4096, 4096)),
    "scatter": scatter,
    "conv": lambda row: timed(
        row, lambda v, k: tn.conv2d(v, k, padding=1), normal(32, 64, 56, 56), normal(64, 64, 3, 3)),
    "first_gelu": first_gelu,
    "first_gelu_disk": first_gelu,
    "first_eager": first_eager,
    "first_eager_disk": first_eager,
    "first_gpt2": first_gpt2,
    "first_gpt2_disk": first_gpt2,
}

if __name__ == "__main__":
    w.run_rows(FUNCTIONS, int(os.environ.get("LIMIT", 60)))
