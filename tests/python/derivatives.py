"""Checks of derivatives and batching over the samples of the op table.

As a program it checks the ops it is given: `python derivatives.py sin matmul`.
"""

import itertools
import sys
import zlib

import numpy as np

import tenon as tn
from op_harness import Call, draw, is_float, numpy_of

STEP = 1e-6


def as_list(result):
    return list(result) if isinstance(result, (list, tuple)) else [result]


def floating(x):
    return is_float(x.dtype)


class Problem:
    """A sample as a function of its floating operands, in float64."""

    def __init__(self, sample, dtype=tn.float64, seed=0):
        self.call = Call(sample, dtype, seed)
        self.operands = self.call.operands()
        self.places = [i for i, x in enumerate(self.operands) if floating(x)]
        self.primals = [self.operands[i] for i in self.places]
        self.rng = np.random.default_rng(zlib.crc32(sample.text.encode()) + seed)

    def function(self, given):
        operands = list(self.operands)
        for place, x in zip(self.places, given):
            operands[place] = x
        return [r for r in as_list(self.call.run(operands)) if floating(r)]

    def random_like(self, tensors):
        return [tn.asarray(draw(self.rng, x.dtype, x.shape, -1, 1)[0]) for x in tensors]


def inner(xs, ys):
    """Re sum x*y: complex pairs are not conjugated."""
    return sum(np.sum(numpy_of(x) * numpy_of(y)).real for x, y in zip(xs, ys))


def moved(tensors, directions, by):
    return [tn.asarray(numpy_of(x) + by * numpy_of(d)) for x, d in zip(tensors, directions)]


def check_close(got, want, what, tolerance=1e-5):
    scale = max(1.0, abs(want))
    assert abs(got - want) <= tolerance * scale, f"{what}: {got}, expected {want}"


def check_derivatives(sample, dtype=tn.float64, vjp=tn._core._vjp, jvp=tn._core._jvp):
    """vjp and jvp against central differences, and against each other."""
    p = Problem(sample, dtype)
    if not p.primals or not p.function(p.primals):
        return False
    out = p.function(p.primals)
    directions, cts = p.random_like(p.primals), p.random_like(out)
    plus = p.function(moved(p.primals, directions, STEP))
    minus = p.function(moved(p.primals, directions, -STEP))
    with np.errstate(all="ignore"):
        change = [(numpy_of(a) - numpy_of(b)) / (2 * STEP) for a, b in zip(plus, minus)]
    want = sum(np.sum(c * numpy_of(ct)).real for c, ct in zip(change, cts))
    values, gradients = vjp(p.function, p.primals, cts)
    for a, b in zip(values, out):
        assert numpy_of(a).tobytes() == numpy_of(b).tobytes(), f"{sample}: values change under vjp"
    for g, x in zip(gradients, p.primals):
        assert g.dtype == x.dtype and g.shape == x.shape, f"{sample}: gradient {g.dtype} {g.shape}"
    check_close(inner(gradients, directions), want, f"{sample}: vjp against differences")
    _, tangents = jvp(p.function, p.primals, directions)
    check_close(inner(tangents, cts), want, f"{sample}: jvp against differences")
    check_close(
        inner(tangents, cts), inner(gradients, directions), f"{sample}: <Jt,c> and <t,J'c>", 1e-10
    )
    return True


def check_second_order(sample, dtype=tn.float64):
    """jvp of the gradient against differences of the gradient."""
    p = Problem(sample, dtype)
    if not p.primals or not p.function(p.primals):
        return False
    cts = p.random_like(p.function(p.primals))

    def gradient(x):
        return tn._core._vjp(p.function, x, cts)[1]

    directions = p.random_like(p.primals)
    plus = gradient(moved(p.primals, directions, STEP))
    minus = gradient(moved(p.primals, directions, -STEP))
    weights = p.random_like(p.primals)
    want = sum(
        np.sum((numpy_of(a) - numpy_of(b)) / (2 * STEP) * numpy_of(w)).real
        for a, b, w in zip(plus, minus, weights)
    )
    _, tangents = tn._core._jvp(gradient, p.primals, directions)
    check_close(inner(tangents, weights), want, f"{sample}: second order", 1e-4)
    return True


def check_vmap(sample, dtype=tn.float32, size=3, vmap=tn._core._vmap):
    """vmap against a loop, with every choice of batched operands, along first and last axes."""
    calls = [Call(sample, dtype, seed).operands() for seed in range(size)]
    count = len(calls[0])
    if count == 0:
        return False
    call = Call(sample, dtype)
    choices = [c for c in itertools.product([None, 0, -1], repeat=count) if any(a is not None for a in c)]
    if len(choices) > 12:
        choices = choices[:: len(choices) // 12]
    for axes in choices:
        args, rows = [], []
        for k, axis in enumerate(axes):
            column = [c[k] for c in calls]
            args.append(column[0] if axis is None else tn.stack(column, axis=axis))
        for i in range(size):
            rows.append([c if axis is None else calls[i][k] for k, (axis, c) in enumerate(zip(axes, calls[0]))])
        got = vmap(lambda x: as_list(call.run(x)), args, axes)
        want = [as_list(call.run(row)) for row in rows]
        for j, g in enumerate(got):
            w = np.stack([numpy_of(r[j]) for r in want])
            g = numpy_of(g)
            assert g.shape == w.shape and g.dtype == w.dtype, f"{sample} in_axes={axes}: {g.dtype}{g.shape}, loop {w.dtype}{w.shape}"
            np.testing.assert_allclose(g, w, rtol=2e-5, atol=2e-5, err_msg=f"{sample} in_axes={axes}")
    return True


def main(names):
    chosen = [s for s in tn.testing.samples() if not names or s.op in names]
    failed = 0
    for sample in chosen:
        checks = [("vmap", check_vmap)]
        if sample.gradient == "by_rule":
            checks += [("derivatives", check_derivatives), ("second order", check_second_order)]
        for name, check in checks:
            try:
                done = check(sample)
                print(f"{'ok' if done else '--':4} {name:13} {sample}")
            except Exception as error:  # noqa: BLE001
                failed += 1
                text = " ".join(str(error).split())
                print(f"FAIL {name:13} {sample}: {type(error).__name__}: {text[:300]}")
    print(f"{failed} failed")
    return failed


if __name__ == "__main__":
    sys.exit(bool(main(sys.argv[1:])))
