"""Random programs on nested containers: compiled with the state captured, they do the same."""

import copy
import random

import numpy as np
import pytest

import tenon as tn


def random_tree(choose, depth=0):
    kind = choose.random()
    if depth > 2 or kind < 0.5:
        shape = choose.choice([(), (3,), (2, 3), (1,)])
        values = np.random.default_rng(choose.randrange(10**6)).normal(size=shape)
        return tn.array(values.astype(np.float32))
    if kind < 0.55:
        return choose.choice([1.5, 2, True, "text", None])
    if kind < 0.75:
        return {c: random_tree(choose, depth + 1) for c in "abc"[: choose.randrange(1, 4)]}
    return [random_tree(choose, depth + 1) for _ in range(choose.randrange(1, 4))]


def places(tree, kind):
    """(container, key) of everything of a kind in a tree."""
    keys = tree if isinstance(tree, dict) else range(len(tree))
    for key in list(keys):
        value = tree[key]
        if isinstance(value, kind):
            yield tree, key
        if isinstance(value, (list, dict)):
            yield from places(value, kind)


def change(choose, state, x, results):
    """One random thing that a function may do to its state."""
    tensors = list(places(state, tn.Tensor))
    if not tensors:
        return
    (at, key), (other, other_key) = choose.choice(tensors), choose.choice(tensors)
    here, there = at[key], other[other_key]
    kind = choose.random()
    if kind < 0.5:
        at[key] = tn.tanh(here) * 0.9 + tn.sum(there) * 0.1 + tn.sum(x) * 0.01
    elif kind < 0.6:
        at[key], other[other_key] = there, here
    elif kind < 0.7:
        for inside, name in list(places(state, list))[:1]:
            inside[name].append(x * 2) if len(inside[name]) < 4 else inside[name].pop()
    elif kind < 0.8:
        for inside, name in list(places(state, dict))[:1]:
            held = inside[name]
            held.pop("x") if "x" in held else held.update(x=here)
    elif kind < 0.85:
        at[key] = [here]
    else:
        results.append(here if kind < 0.9 else tn.sum(x) + tn.sum(here))


def program(seed, state, x):
    choose, results = random.Random(seed), []
    for _ in range(choose.randrange(1, 6)):
        change(choose, state, x, results)
    return results, x + 1


def assert_same(a, b, seed):
    left, right = tn.tree.flatten(a), tn.tree.flatten(b)
    assert left[1] == right[1], f"seed {seed}"
    for x, y in zip(left[0], right[0]):
        assert type(x) is type(y), f"seed {seed}"
        assert np.asarray(x).tobytes() == np.asarray(y).tobytes(), f"seed {seed}"


@pytest.mark.parametrize("part", range(4))
def test_random_changes_of_a_captured_state(part):
    for seed in range(25 * part, 25 * part + 25):
        choose = random.Random(seed)
        state = [random_tree(choose) for _ in range(2)]
        plain = copy.deepcopy(state)
        compiled = tn.compile(lambda x: program(seed, state, x), inputs=state, outputs=state)
        held = []
        for call in range(5):
            held += [(t, t.tolist()) for t in tn.tree.leaves(state) if isinstance(t, tn.Tensor)][:1]
            x = tn.arange(3 + call * (seed % 2), dtype=tn.float32)
            want, got = program(seed, plain, x), compiled(x)
            assert_same(got, want, seed)
            assert_same(state, plain, seed)
        assert all(t.tolist() == values for t, values in held)
