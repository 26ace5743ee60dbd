"""grad, jvp, vmap, checkpoint and custom functions, inside each other in every order.

Every transform here takes a function from R^3 to R^3 and gives another, so that they nest to any
depth. The oracle is NumPy: the plain function written again, differences, and loops.
"""

import functools
import itertools

import numpy as np
import pytest

import tenon as tn

RNG = np.random.default_rng(7)
A, B, C = RNG.uniform(-1, 1, (3, 3, 4))
SQUARE = RNG.uniform(-0.3, 0.3, (3, 3))
BIAS = RNG.uniform(-1, 1, 4)
STEPS = RNG.uniform(-1, 1, (4, 3))
AT = np.array([0.8, -0.9, 1.9])  # far from every kink of the functions below

# Fixed arguments of the transforms.
WEIGHTS = np.array([0.7, -1.1, 0.4])
DIRECTION = np.array([0.5, 1.2, -0.8])
SCALES = np.array([1.0, 0.9, 1.1])
SHIFTS = np.array([0.0, 0.05, -0.05])
PARTS = np.array([0.5, -0.7, 1.3])


# The functions, each for Tenon and for NumPy ---------------------------------------------------


def network(x):
    hidden = tn.tanh(x @ tn.asarray(A) + tn.asarray(BIAS))
    return tn.tanh(hidden @ tn.asarray(B.T))


def numpy_network(x):
    return np.tanh(np.tanh(x @ A + BIAS) @ B.T)


def cross_entropy(x):
    logits = tn.take(x, tn.asarray([0, 2, 2]), axis=0)[:, None] * tn.asarray(A) + x[:, None]
    logits = logits * tn.asarray(C)
    return tn.cross_entropy(logits, tn.asarray([3, 0, 1]), reduction="none")


def numpy_cross_entropy(x):
    logits = (x[[0, 2, 2]][:, None] * A + x[:, None]) * C
    return np.log(np.exp(logits).sum(1)) - logits[np.arange(3), [3, 0, 1]]


def recurrent(x):
    def step(h, s):
        h = tn.tanh(tn.asarray(SQUARE) @ h + x * s)
        return h, h

    last, every = tn.scan(step, tn.asarray(WEIGHTS), tn.asarray(STEPS))
    return last + every[1]


def numpy_recurrent(x):
    h, every = WEIGHTS, []
    for s in STEPS:
        h = np.tanh(SQUARE @ h + x * s)
        every.append(h)
    return h + every[1]


def piecewise(x):
    ordered = tn.sort(x * tn.asarray([1.0, 2.0, 1.0]))
    chosen = tn.where(ordered > 0, ordered * ordered, tn.sin(ordered))
    return tn.maximum(chosen, x) + tn.max(x) * tn.cumulative_prod(x)


def numpy_piecewise(x):
    ordered = np.sort(x * np.array([1.0, 2.0, 1.0]))
    chosen = np.where(ordered > 0, ordered * ordered, np.sin(ordered))
    return np.maximum(chosen, x) + np.max(x) * np.cumprod(x)


def solution(x):
    matrix = tn.asarray(SQUARE) + tn.diag(tn.exp(0.3 * x)) * 2
    return tn.linalg.solve(matrix, x * x)


def numpy_solution(x):
    return np.linalg.solve(SQUARE + np.diag(np.exp(0.3 * x)) * 2, x * x)


FUNCTIONS = {
    "network": (network, numpy_network),
    "cross_entropy": (cross_entropy, numpy_cross_entropy),
    "recurrent": (recurrent, numpy_recurrent),
    "piecewise": (piecewise, numpy_piecewise),
    "solution": (solution, numpy_solution),
}


# The transforms ----------------------------------------------------------------------------------


def by_grad(f):
    return tn.grad(lambda x: tn.sum(f(x) * tn.asarray(WEIGHTS)))


def by_jvp(f):
    return lambda x: tn.jvp(f, [x], [tn.asarray(DIRECTION)])[1]


def by_vmap(f):
    each = tn.vmap(f, in_axes=0, out_axes=1)

    def g(x):
        batch = x * tn.asarray(SCALES)[:, None] + tn.asarray(SHIFTS)[:, None]
        return each(batch) @ tn.asarray(PARTS)

    return g


def by_custom_vjp(f):
    made = tn.custom_function(f)
    made.vjp(lambda x, cotangent, output: tn.vjp(f, [x], [cotangent])[1][0])
    return made


def by_custom_jvp(f):
    made = tn.custom_function(f)
    made.jvp(lambda x, tangent: tn.jvp(f, [x], [tangent])[1])
    return made


TRANSFORMS = {
    "grad": by_grad,
    "jvp": by_jvp,
    "vmap": by_vmap,
    "checkpoint": tn.checkpoint,
    "custom_vjp": by_custom_vjp,
    "custom_jvp": by_custom_jvp,
}
CHAINS = [c for n in (1, 2, 3) for c in itertools.product(TRANSFORMS, repeat=n)]


# Their oracle ------------------------------------------------------------------------------------

# The first derivative from values at 1, 2, 3 and 4 steps to both sides: exact up to h^8. It can be
# nested, because a step this long loses only two digits each time.
H = 0.02
STENCIL = {1: 4 / 5, 2: -1 / 5, 3: 4 / 105, 4: -1 / 280}


def slope(f, x, direction):
    return sum(
        c / H * (f(x + k * H * direction) - f(x - k * H * direction)) for k, c in STENCIL.items()
    )


def numpy_grad(f):
    return lambda x: np.array([slope(f, x, e) @ WEIGHTS for e in np.eye(3)])


def numpy_jvp(f):
    return lambda x: slope(f, x, DIRECTION)


def numpy_vmap(f):
    return lambda x: sum(p * f(x * a + b) for p, a, b in zip(PARTS, SCALES, SHIFTS))


NUMPY = {"grad": numpy_grad, "jvp": numpy_jvp, "vmap": numpy_vmap}


@functools.cache
def expected(name, chain):
    f = FUNCTIONS[name][1]
    for transform in chain:
        f = NUMPY[transform](f)
    return f(AT)


@pytest.mark.parametrize("name", FUNCTIONS)
def test_plain_function(name):
    ours, theirs = FUNCTIONS[name]
    np.testing.assert_allclose(ours(tn.asarray(AT)).numpy(), theirs(AT), rtol=1e-12)


def has_derivatives(chain):
    """Whether every derivative in the chain exists: forwards through a custom vjp there is none."""
    modes = {"forward", "reverse"}
    for transform in chain:
        needed = {"grad": "reverse", "jvp": "forward"}.get(transform)
        if needed and needed not in modes:
            return False
        if transform == "grad":
            modes = {"forward", "reverse"}  # what the rule computes is made of plain ops
        elif transform == "custom_vjp":
            modes = modes & {"reverse"}
        elif transform == "custom_jvp" and "forward" not in modes:
            modes = set()
    return True


@pytest.mark.parametrize("chain", CHAINS, ids=lambda c: "(".join(reversed(c)))
@pytest.mark.parametrize("name", FUNCTIONS)
def test_composition(name, chain):
    f = FUNCTIONS[name][0]
    for transform in chain:
        f = TRANSFORMS[transform](f)
    if not has_derivatives(chain):
        with pytest.raises(tn.Error, match="forward-mode differentiation needs a jvp rule"):
            f(tn.asarray(AT)).numpy()
        return
    got = f(tn.asarray(AT)).numpy()
    want = expected(name, tuple(t for t in chain if t in NUMPY))
    np.testing.assert_allclose(got, want, rtol=1e-7, atol=1e-7 * np.max(np.abs(want)))
