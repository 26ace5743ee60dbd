"""How fast a GPU interprets kernels beside compiled ones: `python bench/cuda/interpreted.py`.

A sequence is interpreted until it is compiled in the background, which large ones are after two
runs. So the second run is interpreted, and one that comes seconds later is compiled.
"""

import time

import rows as w

import tenon as tn

gpu = tn.Device("cuda")
FUNCTIONS = {
    "copy": lambda x: x * 1.5,
    "2 ops": lambda x: x * 1.5 + 0.25,
    "exp(-x) + x": lambda x: tn.exp(-x) + x,
    "gelu": tn.nn.gelu,
    "20 ops": lambda x: chain(x, 20),
    "softmax": lambda x: tn.softmax(x, axis=-1),
    "sum of rows": lambda x: x.sum(axis=-1),
}


def chain(x, count):
    for i in range(count):
        x = x * 1.5 if i % 2 else x + 0.25
    return x


def seconds(f, x):
    began = time.perf_counter()
    tn.eval(f(x))
    tn.synchronize()
    return time.perf_counter() - began


def main():
    x = tn.random.normal(shape=w.GELU, key=tn.random.key(0), device=gpu).eval()
    tn.synchronize()
    time.sleep(5)  # until the interpreter itself is assembled
    print("| us, waiting | interpreted | compiled |\n|---|---|---|")
    for name, f in FUNCTIONS.items():
        seconds(f, x)
        interpreted = seconds(f, x)
        time.sleep(2)
        compiled = min(seconds(f, x) for _ in range(20))
        print(f"| {name} | {interpreted * 1e6:.1f} | {compiled * 1e6:.1f} |", flush=True)


if __name__ == "__main__":
    main()
