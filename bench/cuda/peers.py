"""The workloads of bench/cuda in PyTorch, by the Python that has it."""

import sys

import workloads as w

try:
    import torch
except ImportError:
    sys.exit("PyTorch is not installed: nothing to compare with")


def compiled(f):
    return torch.compile(f)


def time_call(name, f, *args, nbytes=0):
    for way, g in (("eager", f), ("compiled", compiled(f))):
        w.show(f"torch {way} {name}", w.best_of(lambda: g(*args), torch.cuda.synchronize), nbytes)


def mlp():
    batch, wide, hidden, classes = w.MLP
    model = torch.nn.Sequential(
        torch.nn.Linear(wide, hidden), torch.nn.ReLU(), torch.nn.Linear(hidden, classes)
    ).cuda()
    optimizer = torch.optim.SGD(model.parameters(), lr=0.01)
    x = torch.randn(batch, wide, device="cuda")
    labels = torch.arange(batch, device="cuda") % classes

    def step():
        optimizer.zero_grad()
        torch.nn.functional.cross_entropy(model(x), labels).backward()
        optimizer.step()

    w.show("torch eager MLP step", w.best_of(step, torch.cuda.synchronize))


def main():
    f = torch.nn.functional
    x = torch.randn(*w.GELU, device="cuda")
    time_call("gelu", f.gelu, x, nbytes=x.numel() * 8)
    x = torch.randn(*w.SQUARE, device="cuda")
    time_call("softmax", lambda v: f.softmax(v, -1), x, nbytes=x.numel() * 8)
    layer = torch.nn.LayerNorm(w.SQUARE[1], device="cuda")
    with torch.no_grad():
        time_call("layer norm", layer, x, nbytes=x.numel() * 8)
    y, z = torch.randn(*w.LONG, device="cuda"), torch.randn(*w.LONG, device="cuda")
    time_call("sum(x * y)", lambda a, b: (a * b).sum(), y, z, nbytes=y.numel() * 8)
    a = torch.randn(4096, 4096, device="cuda")
    time_call("f32 product", lambda v: v @ v, a)
    time_call("bf16 product", lambda v: v @ v, a.bfloat16())
    t = torch.randn(4, device="cuda")
    time_call("tiny call", lambda v: v + 1, t)
    mlp()


if __name__ == "__main__":
    main()
