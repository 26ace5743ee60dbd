"""Checks of derivatives and batching over the samples of the op table.

As a program it checks the ops it is given: `python derivatives.py sin matmul`.
"""

import itertools
import sys
import zlib

import numpy as np

import flat
import tenon as tn
from op_harness import EPS, Call, draw, is_float, numpy_of, varying

STEP = 1e-6  # of central differences in 64 bits: truncation and rounding both reach about 1e-10
CLOSE = 1e-6

# Ops that cannot be batched: the shapes of their results depend on values.
SHAPED_BY_VALUES = [
    "argwhere",
    "nonzero",
    "unique_all",
    "unique_counts",
    "unique_inverse",
    "unique_values",
]
# Operands whose values decide the shape of the result, and so are the same for every example.
DECIDES_SHAPE = {"repeat": [1], "delete_elements": [1]}


def as_list(result):
    return list(result) if isinstance(result, (list, tuple)) else [result]


def floating(x):
    return is_float(x.dtype)


def wide(dtype):
    """The element type to compare in: 64 bits for each real number."""
    return tn.complex128 if dtype.name.startswith("complex") else tn.float64


def rounded(tensors, dtype):
    """Floating operands in `dtype`, complex ones in the complex type of that precision."""
    of_complex = tn.complex128 if dtype == tn.float64 else tn.complex64
    return [
        x.astype(of_complex if x.dtype.name.startswith("complex") else dtype) if floating(x) else x
        for x in tensors
    ]


class Problem:
    """A sample as a function of its floating operands."""

    def __init__(self, sample, kind=tn.float32, seed=0):
        """Values are drawn as `kind`, in place of float32, and computed with in 64 bits."""
        self.sample, self.kind = sample, kind
        own = varying(sample)
        self.call = Call(sample, kind if own is None or is_float(own) else own, seed)
        self.given = self.call.operands()
        self.operands = [x.astype(wide(x.dtype)) if floating(x) else x for x in self.given]
        self.places = [i for i, x in enumerate(self.operands) if floating(x)]
        rng = np.random.default_rng(zlib.crc32(f"{sample.text}{seed}".encode()))
        self.out = self.function(self.primals) if self.places else []
        self.cts = random_like(rng, self.out)
        self.tangents = random_like(rng, self.primals)
        self.weights = random_like(rng, self.primals)

    def __str__(self):
        return f"{self.sample} with {wide(self.kind).name}"

    def __bool__(self):
        """Whether there is something to differentiate, and with respect to something."""
        return bool(self.out)

    @property
    def primals(self):
        return [self.operands[i] for i in self.places]

    @property
    def smooth(self):
        """Whether differences mean something: a result in fewer bits moves in steps."""
        return all(x.dtype == wide(x.dtype) for x in self.out)

    def function(self, given):
        return self.around(self.operands)(given)

    def around(self, operands):
        """The function of the floating ones among `operands`."""

        def f(given):
            replaced = list(operands)
            for place, x in zip(self.places, given):
                replaced[place] = x
            return self.results(replaced)

        return f

    def results(self, operands):
        return [r for r in as_list(self.call.run(operands)) if floating(r)]

    def gradient(self, given):
        return flat.vjp(self.function, given, self.cts)[1]

    def gradient_at(self, operands, cts):
        return flat.vjp(self.around(operands), [operands[i] for i in self.places], cts)[1]


def random_like(rng, tensors):
    drawn = [draw(rng, wide(x.dtype), x.shape, -1, 1)[0] for x in tensors]
    return [tn.asarray(values).astype(x.dtype) for values, x in zip(drawn, tensors)]


def inner(xs, ys):
    """(Re sum x*y, the size of its terms): complex pairs are not conjugated."""
    terms = [np.asarray(numpy_of(x) * numpy_of(y)) for x, y in zip(xs, ys)]
    return sum(t.sum().real for t in terms), sum(np.abs(t).sum() for t in terms)


def differences(f, primals, tangents):
    """The derivative of f along the tangents, and the size of what was subtracted."""
    ends = []
    for step in (STEP, -STEP):
        at = [tn.asarray(numpy_of(x) + step * numpy_of(t)) for x, t in zip(primals, tangents)]
        ends.append([numpy_of(y) for y in f(at)])
    with np.errstate(all="ignore"):
        change = [np.asarray((a - b) / (2 * STEP)) for a, b in zip(*ends)]
    return change, max((np.max(np.abs(a), initial=0) for a in ends[0]), default=0)


def check_close(got, want, what, tolerance, scale=1.0):
    """Equal up to `tolerance`, of `scale` or of the largest number expected."""
    got, want = np.asarray(got), np.asarray(want)
    assert got.shape == want.shape, f"{what}: shape {got.shape}, expected {want.shape}"
    error = np.max(np.abs(got - want), initial=0)
    allowed = tolerance * max(scale, np.max(np.abs(want), initial=0))
    assert error <= allowed, f"{what}: {got}, expected {want}"


def check_values(got, want, what):
    for g, w in zip(got, want, strict=True):
        same = numpy_of(g).tobytes() == numpy_of(w).tobytes()
        assert same, f"{what}: {numpy_of(g)}, expected {numpy_of(w)}"


def check_types(got, like, what):
    for g, x in zip(got, like, strict=True):
        assert (g.dtype, g.shape) == (x.dtype, x.shape), (
            f"{what}: {g.dtype}{list(g.shape)} for an operand {x.dtype}{list(x.shape)}"
        )


def check_first_order(p):
    """vjp and jvp against central differences, and against each other."""
    values, gradients = flat.vjp(p.function, p.primals, p.cts)
    check_values(values, p.out, f"{p}: the value under vjp")
    check_types(gradients, p.primals, f"{p}: gradient")
    values, tangents = flat.jvp(p.function, p.primals, p.tangents)
    check_values(values, p.out, f"{p}: the value under jvp")
    check_types(tangents, p.out, f"{p}: tangent")
    forward, size = inner(tangents, p.cts)
    backward, other_size = inner(gradients, p.tangents)
    if p.smooth:
        change, scale = differences(p.function, p.primals, p.tangents)
        for t, c in zip(tangents, change):
            check_close(numpy_of(t), c, f"{p}: jvp against differences", CLOSE, max(1, scale))
        want = sum(np.sum(c * numpy_of(ct)).real for c, ct in zip(change, p.cts))
        size = max(1, size, other_size, scale)
        check_close(backward, want, f"{p}: vjp against differences", CLOSE, size)
    exact = 1e-11 if p.smooth else 2e-2
    check_close(forward, backward, f"{p}: <Jt,c> and <t,J'c>", exact, size)


def check_second_order(p):
    """jvp of the gradient against differences of the gradient, and against its vjp."""
    if not p.smooth:
        return
    _, tangents = flat.jvp(p.gradient, p.primals, p.tangents)
    change, scale = differences(p.gradient, p.primals, p.tangents)
    for t, c in zip(tangents, change):
        check_close(numpy_of(t), c, f"{p}: second order", 10 * CLOSE, max(1, scale))
    _, gradients = flat.vjp(p.gradient, p.primals, p.weights)
    forward, size = inner(tangents, p.weights)
    backward, other_size = inner(gradients, p.tangents)
    size = max(1, size, other_size)
    check_close(forward, backward, f"{p}: <Ht,c> and <t,H'c>", 1e-10, size)


def check_precision(p, dtype):
    """The gradient in `dtype`: of that type, and near the one in 64 bits of the same operands."""
    operands = rounded(p.operands, dtype)
    try:
        out = p.results(operands)
    except TypeError:
        return  # not an element type of this op
    cts = [c.astype(x.dtype) for c, x in zip(p.cts, out, strict=True)]
    got = p.gradient_at(operands, cts)
    what = f"{p}: gradient in {dtype.name}"
    check_types(got, [operands[i] for i in p.places], what)
    if not p.smooth:
        return
    want = p.gradient_at(rounded(operands, tn.float64), rounded(cts, tn.float64))
    for g, w in zip(got, want):
        beyond = numpy_of(w.astype(g.dtype) == g)  # infinities, where the type ends
        g, w = np.where(beyond, 0, numpy_of(g)), np.where(beyond, 0, numpy_of(w))
        check_close(g, w, what, 64 * EPS[dtype.name])


def axes_to_try(sample):
    """Choices of a batch axis, or none, for each operand: at most a dozen."""
    options, middle = [], []
    for k, (_, shape) in enumerate(sample.args):
        fixed = k in DECIDES_SHAPE.get(sample.op, [])
        options.append([None] if fixed else [0, None, len(shape)])
        middle.append(None if fixed else min(1, len(shape)))
    choices = [axes for axes in itertools.product(*options) if any(a is not None for a in axes)]
    return choices[:: -(-len(choices) // 11)] + [tuple(middle)]


def first_axes(sample):
    """The first axis of every operand."""
    return [None if k in DECIDES_SHAPE.get(sample.op, []) else 0 for k in range(len(sample.args))]


def check_batch(f, examples, axes, what):
    """f under vmap against a loop over `examples`, lists of operands."""
    args = [
        column[0] if axis is None else tn.stack(column, axis=axis)
        for axis, column in zip(axes, zip(*examples))
    ]
    rows = [
        [first if axis is None else x for axis, first, x in zip(axes, examples[0], example)]
        for example in examples
    ]
    got = flat.vmap(f, args, axes)
    want = [f(row) for row in rows]
    for j, g in enumerate(got):
        assert g.dtype == want[0][j].dtype, f"{what}: {g.dtype}, in a loop {want[0][j].dtype}"
        w = np.stack([numpy_of(r[j]) for r in want])
        tolerance = 1e-12 if g.dtype == wide(g.dtype) else 64 * EPS.get(g.dtype.name, 0)
        g = numpy_of(g)
        assert g.shape == w.shape, f"{what}: shape {g.shape}, in a loop {w.shape}"
        same = (g == w) | ((g != g) & (w != w))  # infinities too, and what is not a number
        check_close(np.where(same, 0, g), np.where(same, 0, w), what, tolerance)


def check_vmap(sample, size=3):
    """vmap against a loop, with every choice of batched operands, along several axes."""
    dtype = varying(sample) or tn.float32
    calls = [Call(sample, dtype, seed) for seed in range(size)]
    examples = [call.operands() for call in calls]

    def f(operands):
        return as_list(calls[0].run(operands))

    for axes in axes_to_try(sample):
        check_batch(f, examples, axes, f"{sample}: vmap with in_axes={axes}")
    axes = first_axes(sample)
    check_batch(f, examples[:1], axes, f"{sample}: vmap of one example")
    check_empty_batch(f, examples[0], axes, f"{sample}: vmap of no example")


def check_empty_batch(f, operands, axes, what):
    none = [
        x if axis is None else tn.zeros((0, *x.shape), dtype=x.dtype)
        for x, axis in zip(operands, axes)
    ]
    for g, w in zip(flat.vmap(f, none, axes), f(operands), strict=True):
        want = (w.dtype, (0, *w.shape))
        assert (g.dtype, numpy_of(g).shape) == want, f"{what}: {g.dtype}{g.shape}, expected {want}"


def check_vmap_of_gradient(sample, size=2):
    """Gradients under vmap against a loop of gradients: all operands batched, and each alone."""
    problems = [Problem(sample, seed=seed) for seed in range(size)]
    p, rng = problems[0], np.random.default_rng(size)
    count = len(p.operands)

    def gradient(given):
        return p.gradient_at(given[:count], given[count:])

    every = first_axes(sample)
    operands = [
        [x if axis == 0 else first for x, first, axis in zip(q.operands, p.operands, every)]
        for q in problems
    ]
    examples = [given + random_like(rng, p.out) for given in operands]
    alone = [[0 if i == k else None for i in range(count)] for k in range(count) if every[k] == 0]
    for axes in [every, *(alone if count > 1 else [])]:
        axes = axes + [0] * len(p.cts)
        check_batch(gradient, examples, axes, f"{sample}: vmap of the gradient, in_axes={axes}")


def check_checkpoint(p):
    """What checkpoint computes again has the same bits, under every transform."""
    def held(x):
        return tn.checkpoint(p.function)(x)

    def gradient_of(f):
        return lambda x: flat.vjp(f, x, p.cts)[1]

    def derivatives(f):
        gradient = gradient_of(f)
        yield "value", f(p.primals)
        yield "gradient", gradient(p.primals)
        yield "tangent", flat.jvp(f, p.primals, p.tangents)[1]
        yield "second order", flat.jvp(gradient, p.primals, p.tangents)[1]
        batch = [tn.stack([x, x]) for x in p.primals]
        yield "vmap", flat.vmap(f, batch, [0] * len(batch))
        yield "vmap of the gradient", flat.vmap(gradient, batch, [0] * len(batch))

    for (name, got), (_, want) in zip(derivatives(held), derivatives(p.function)):
        check_values(got, want, f"{p}: {name} of checkpoint")


def problems(sample, kinds=(tn.float32, tn.complex64)):
    """The sample with real and, where it can be, with complex numbers; those with derivatives."""
    found = []
    for kind in kinds if tn.float32 in [d for d, _ in sample.args] else kinds[:1]:
        try:
            found.append(Problem(sample, kind))
        except TypeError:
            if kind == tn.float32:
                raise
    return [p for p in found if p]


def for_problems(check):
    def checked(sample):
        found = problems(sample)
        for p in found:
            check(p)
        return bool(found)

    return checked


def of_gradients(check):
    def checked(sample):
        found = problems(sample, [tn.float32])
        if found:
            check(sample)
        return bool(found)

    return checked


def batched(sample):
    if sample.args:
        check_vmap(sample)
    return bool(sample.args)


CHECKS = {
    "vmap": batched,
    "first order": for_problems(check_first_order),
    "second order": for_problems(check_second_order),
    "vmap of gradient": of_gradients(check_vmap_of_gradient),
    "float32": for_problems(lambda p: check_precision(p, tn.float32)),
    "bfloat16": for_problems(lambda p: check_precision(p, tn.bfloat16)),
    "float16": for_problems(lambda p: check_precision(p, tn.float16)),
    "checkpoint": for_problems(check_checkpoint),
}


def main(names):
    chosen = [s for s in tn.testing.samples() if not names or s.op in names]
    failed = 0
    for sample in chosen:
        for name, check in CHECKS.items():
            if name != "vmap" and sample.gradient != "by_rule":
                continue
            try:
                done = check(sample)
                print(f"{'ok' if done else '--':4} {name:16} {sample}")
            except Exception as error:
                failed += 1
                text = " ".join(str(error).split())
                print(f"FAIL {name:16} {sample}: {type(error).__name__}: {text[:300]}")
    print(f"{failed} failed")
    return failed


if __name__ == "__main__":
    sys.exit(bool(main(sys.argv[1:])))
