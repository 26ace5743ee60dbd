"""Tenon on a GPU: `make bench-cuda`, beside bench/cuda/peers.py."""

import time
import traceback

import tenon as tn
import workloads as w

gpu = tn.Device("cuda")


def shown(f):
    try:
        f()
    except Exception:
        last = traceback.format_exc().strip().splitlines()[-3:]
        print(f"{f.__name__}: " + " | ".join(last)[:500])


def normal(*shape, dtype=tn.float32):
    return tn.random.normal(shape=shape, key=tn.random.key(0), device=gpu).astype(dtype).eval()


def time_call(name, f, *args, nbytes=0):
    g = tn.compile(f)
    began = time.perf_counter()
    tn.eval(g(*args))
    tn.synchronize()
    first = time.perf_counter() - began
    seconds = w.best_of(lambda: tn.async_eval(g(*args)), tn.synchronize)
    w.show(name, seconds, nbytes)
    print(f"{'':<34}{first * 1e3:12.2f} ms for the first call")


def copy():
    x = normal(*w.SQUARE)
    time_call("copy 8192x8192 (x + 0)", lambda v: v * 1.5, x, nbytes=x.size * 8)


def gelu():
    x = normal(*w.GELU)
    time_call("gelu 8x1000x4096", tn.nn.gelu, x, nbytes=x.size * 8)


def softmax():
    x = normal(*w.SQUARE)
    time_call("softmax 8192x8192", lambda v: tn.softmax(v, axis=-1), x, nbytes=x.size * 8)


def layer_norm():
    x = normal(*w.SQUARE)
    layer = tn.nn.LayerNorm(w.SQUARE[1]).to(gpu)
    time_call("layer norm 8192x8192", layer, x, nbytes=x.size * 8)


def sums():
    x, y = normal(*w.LONG), normal(*w.LONG)
    time_call("sum(x * y) 64M", lambda a, b: (a * b).sum(), x, y, nbytes=x.size * 8)
    time_call("sum over rows 8192x8192", lambda a: a.sum(0), normal(*w.SQUARE), nbytes=4 << 26)


def products():
    x = normal(4096, 4096)
    time_call("f32 product 4096^3", lambda a: a @ a, x)
    for precision in ("exact", "high"):
        before = tn.set_matmul_precision(precision)
        time_call(f'f32 product 4096^3, "{precision}"', lambda a: a @ a, x)
        tn.set_matmul_precision(before)
    b = x.astype(tn.bfloat16).eval()
    time_call("bf16 product 4096^3", lambda a: a @ a, b)


def library():
    x = normal(1 << 24)
    time_call("sort 16 M", tn.sort, x)
    time_call("top_k 64 of 512 rows of 50257", lambda v: tn.top_k(v, 64), normal(512, 50257))
    time_call("cumsum 4096 rows of 4096", lambda v: tn.cumsum(v, axis=1), normal(4096, 4096))
    rows = (tn.abs(normal(1 << 16)) * 1e5).astype(tn.int64) % 50257
    updates, table = normal(1 << 16, 768), tn.zeros((50257, 768), device=gpu)
    time_call("scatter-add 64 K rows of 768",
              lambda t, u, at: tn.scatter_add(t, u, [at], axes=[0]), table, updates, rows)
    images, kernels = normal(32, 64, 56, 56), normal(64, 64, 3, 3)
    conv = lambda v, k: tn.conv2d(v, k, padding=1)
    time_call("conv 32x64x56x56, 64 of 3x3", conv, images, kernels)


def tiny():
    x = normal(4)
    g = tn.compile(lambda v: v + 1)
    tn.eval(g(x))
    w.show("tiny call, not waiting", w.best_of(lambda: g(x), tn.synchronize))

    def waits():
        tn.eval(g(x))
        tn.synchronize()

    w.show("tiny call, waiting", w.best_of(waits, lambda: None))
    w.show("immediate x + 1, not waiting", w.best_of(lambda: tn.async_eval(x + 1), tn.synchronize))


def device_steps(name, f, *args):
    """What each step takes on the device."""
    f(*args)
    timing = tn.profile(f, calls=5)(*args)
    print(f"{name}: {sum(step.seconds for step in timing.steps) * 1e6:.1f} us on the device")
    for step in timing.steps:
        print(f"{'':<4}{step.seconds * 1e6:10.2f} us  {step.name}")


def steps():
    x = normal(*w.SQUARE)
    device_steps("gelu", tn.compile(tn.nn.gelu), normal(*w.GELU))
    device_steps("softmax", tn.compile(lambda v: tn.softmax(v, axis=-1)), x)
    device_steps("layer norm", tn.compile(tn.nn.LayerNorm(w.SQUARE[1]).to(gpu)), x)
    device_steps("tiny call", tn.compile(lambda v: v + 1), normal(4))


def mlp():
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

    began = time.perf_counter()
    value = step(x, labels).item()
    print(f"{'':<34}loss {value:.4f}, first call {time.perf_counter() - began:.3f} s")
    w.show("MLP step 784-256-10, batch 128", w.best_of(lambda: step(x, labels), tn.synchronize))
    device_steps("MLP step", step, x, labels)


def main():
    for f in (copy, gelu, softmax, layer_norm, sums, products, library, tiny, steps, mlp):
        shown(f)


if __name__ == "__main__":
    main()
