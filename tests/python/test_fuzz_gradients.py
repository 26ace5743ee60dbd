"""Random programs of all ops: derivatives against differences, batches against a loop.

TENON_FUZZ=5000 tries that many programs instead of a few.
"""

import os

import numpy as np
import pytest

import flat
import tenon as tn
from derivatives import (
    SHAPED_BY_VALUES,
    as_list,
    check_batch,
    check_close,
    differences,
    floating,
    inner,
    random_like,
)
from op_harness import numpy_of

PROGRAMS = int(os.environ.get("TENON_FUZZ", 60))
PARTS = 6
SHAPES = [(2, 3), (3,), (), (2, 3, 4), (3, 3), (1, 4), (2, 2)]
# Constants by decree, whatever differences say; a shape from values; vectors of free phase.
LEFT_OUT = [*SHAPED_BY_VALUES, "bitcast", "stop_gradient", "repeat", "eig", "eigh", "svd"]
CHOICES = [
    sample
    for sample in tn.testing.samples()
    if sample.args and sample.gradient != "none" and sample.op not in LEFT_OUT
]


def usable(x):
    """Numbers that leave room for differences, in 64 bits."""
    if not floating(x):
        return x.size <= 200
    if x.dtype not in (tn.float64, tn.complex128) or x.size > 200:
        return False
    return bool(np.all(np.abs(numpy_of(x)) < 1e3))  # false for nan too


class Program:
    """Random calls on earlier values. Left out are those that fail, or have no finite slope."""

    def __init__(self, seed, length=8):
        self.rng = np.random.default_rng(seed)
        self.inputs = [
            tn.asarray(self.rng.uniform(-2, 2, SHAPES[i]))
            for i in self.rng.integers(len(SHAPES), size=4)
        ]
        self.fixed = [tn.asarray(self.rng.integers(0, 2, SHAPES[i])) for i in (1, 2, 4)]
        self.calls = []
        values = self.inputs + self.fixed
        tries = 0
        while len(self.calls) < length and tries < 40 * length:
            tries += 1
            sample = CHOICES[self.rng.integers(len(CHOICES))]
            places = [int(self.rng.integers(len(values))) for _ in sample.args]
            if made := self.attempt(sample, [values[p] for p in places]):
                self.calls.append((sample, places))
                values += made
        self.tangents = random_like(self.rng, self.inputs)
        self.cts = random_like(self.rng, self.run(self.inputs))

    def attempt(self, sample, operands):
        """The results of the call, or nothing when it is of no use."""
        try:
            made = as_list(sample.call(*operands))
            if not all(usable(x) for x in made):
                return None
            at = [i for i, x in enumerate(operands) if floating(x)]
            outputs = [i for i, x in enumerate(made) if floating(x)]
        except (tn.Error, OverflowError):
            return None

        def f(given):
            args = list(operands)
            for i, x in zip(at, given):
                args[i] = x
            results = as_list(sample.call(*args))
            return [results[i] for i in outputs]

        if at and outputs:
            ones = [tn.ones_like(made[i]) for i in outputs]
            try:
                back = flat.vjp(f, [operands[i] for i in at], ones)[1]
            except tn.Unsupported:  # of these shapes
                return None
            if not all(usable(g) for g in back):
                return None
        return made

    def run(self, inputs):
        """Every floating value computed from the inputs."""
        values = list(inputs) + self.fixed
        for sample, places in self.calls:
            values += as_list(sample.call(*(values[p] for p in places)))
        return [x for x in values[len(inputs) :] if floating(x)]

    def text(self):
        return "\n".join(f"  {sample} of {places}" for sample, places in self.calls)

    def gradient(self, inputs):
        return flat.vjp(self.run, inputs, self.cts)[1]


def is_smooth(program):
    """Whether differences with two steps agree: then they can be believed."""
    half = [t * 0.5 for t in program.tangents]
    whole, scale = differences(program.run, program.inputs, program.tangents)
    again, _ = differences(program.run, program.inputs, half)
    bound = 1e-7 * max(1, scale, *(np.max(np.abs(w), initial=0) for w in whole))
    return all(np.max(np.abs(w - 2 * a), initial=0) < bound for w, a in zip(whole, again))


def check_program(seed):
    program = Program(seed)
    what = f"seed {seed}\n{program.text()}\n"
    _, tangents = flat.jvp(program.run, program.inputs, program.tangents)
    gradients = program.gradient(program.inputs)
    forward, size = inner(tangents, program.cts)
    backward, other_size = inner(gradients, program.tangents)
    size = max(1, size, other_size)
    check_close(forward, backward, what + "<Jt,c> and <t,J'c>", 1e-10, size)
    smooth = is_smooth(program)
    if smooth:
        change, scale = differences(program.run, program.inputs, program.tangents)
        for t, c in zip(tangents, change):
            check_close(numpy_of(t), c, what + "jvp against differences", 1e-5, max(1, scale))
    others = [random_like(program.rng, program.inputs) for _ in range(2)]
    axes = [0] * len(program.inputs)
    check_batch(program.run, [program.inputs, *others], axes, what + "vmap")
    check_batch(program.gradient, [program.inputs, *others], axes, what + "vmap of the gradient")
    return smooth


@pytest.mark.parametrize("part", range(PARTS))
def test_random_programs(part):
    seeds = range(part, PROGRAMS, PARTS)
    smooth = sum(check_program(seed) for seed in seeds)
    assert smooth >= len(seeds) // 2, f"differences tell nothing of {len(seeds) - smooth} programs"
