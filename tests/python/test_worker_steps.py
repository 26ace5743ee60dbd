"""Sums over workers among the steps of a plan: joined, started early, in place."""

import numpy as np
import pytest

import tenon as tn
from tenon import nn, optim


def numbers(*shape, seed=0):
    return np.random.default_rng(seed).normal(size=shape).astype(np.float32)


def trained(workers, width, steps=3):
    """The plan and the parameters of an MLP after some steps on as many workers."""
    tn.random.seed(3)
    with tn.Mesh(data=workers, parts=8):
        model = nn.Sequential(nn.Linear(12, width), nn.relu, nn.Linear(width, 5))
        optimizer = optim.AdamW(0.01)
        state = [model.state, optimizer.state]

        def loss_of(m, x, y):
            return nn.losses.cross_entropy(m(x), y, reduction="mean")

        @tn.compile(inputs=state, outputs=state)
        def step(x, y):
            loss, gradients = nn.value_and_grad(model, loss_of)(model, x, y)
            optimizer.update(model, gradients)
            return loss

        batch = tn.shard((numbers(16, 12), np.arange(16) % 5), "data")
        losses = [step(*batch).item() for _ in range(steps)]
        values = [tensor.numpy() for tensor in tn.tree.leaves(model.parameters())]
        return step, losses, values


@pytest.mark.parametrize("width", [24, 40_000])  # one bucket, and gradients of more than 1 MiB
def test_bits_do_not_depend_on_what_is_joined(width):
    _, losses, values = trained(1, width)
    for workers in (2, 4):
        _, other_losses, other_values = trained(workers, width)
        assert losses == other_losses
        for first, other in zip(values, other_values):
            np.testing.assert_array_equal(first, other)


def test_small_gradients_are_one_collective():
    step, _, _ = trained(2, 24, steps=1)
    starts = [line for line in step.show("plan").splitlines() if ": start all_sum" in line]
    assert len(starts) == 1 and ": start all_sum of 5 " in starts[0]
    text = step.show("sharding")
    assert "5 collectives, a worker sends" in text  # in the graph of a worker
    [joined] = [line for line in text.splitlines() if "until it is waited for" in line]
    assert ": all_sum of " in joined and "f32[24,12]" in joined and "f32[5]" in joined


def test_large_gradients_start_before_the_rest_of_the_backward_pass():
    step, _, _ = trained(2, 40_000, steps=1)
    lines = step.show("plan").split("on mesh:")[1].splitlines()
    first = next(i for i, line in enumerate(lines) if ": start all_sum" in line)
    waits = next(i for i, line in enumerate(lines) if ": wait for all_sum" in line)
    assert any("matmul" in line for line in lines[first:waits])


def test_a_step_that_fails_beside_a_sum_under_way():
    with tn.Mesh(data=2):
        x = tn.shard(tn.ones((4, 300_000)), "data")
        table = tn.ones((3, 2))

        def both(i):
            return x.sum(axis=0), tn.take(table, i, axis=0)

        for _ in range(3):
            with pytest.raises(IndexError, match="7 is out of bounds for axis 0 of extent 3"):
                tn.eval(*both(tn.array([7])))
            total, row = both(tn.array([1]))
            assert total.sum().item() == 1_200_000 and row.tolist() == [[1.0, 1.0]]
