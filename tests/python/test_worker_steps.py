"""Sums over workers among the steps of a plan: joined, started early, in place."""

import signal

import numpy as np
import pytest

import tenon as tn
from tenon import distributed, nn, optim


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


def gathers_around_a_sum(before, after):
    """A sum of 2.4 MB, started and awaited around collectives that take one step each."""
    with tn.Mesh(data=2) as mesh:

        def body(x, *ys):
            first = [distributed.all_gather(y, axis="data") for y in ys[:before]]
            start = sum((g.sum() * 0 for g in first), tn.array(0.0))
            total = distributed.all_sum(x + start, axis="data")
            rest = [distributed.all_gather(y + start, axis="data") for y in ys[before:]]
            return total.sum(), *rest

        count = before + after
        f = tn.compile(
            tn.shard_map(
                body, mesh, in_specs=(None, *["data"] * count), out_specs=(None,) * (after + 1)
            )
        )
        ys = [tn.ones((4, 3)) * i for i in range(count)]
        total, *rest = f(tn.ones(600_000), *ys)
        return total.item(), [y.mean().item() for y in rest]


@pytest.mark.parametrize("before", [0, 8])
def test_other_collectives_between_a_start_and_its_wait(before):
    total, rest = gathers_around_a_sum(before, 8)
    assert total == 1_200_000
    assert rest == list(range(before, before + 8))


def test_loops_with_sums_between_a_start_and_its_wait():
    with tn.Mesh(data=2) as mesh:

        def body(x, y):
            total = distributed.all_sum(x, axis="data")
            halved = lambda c: (c[0] + 1, distributed.all_sum(c[1], axis="data") * 0.5)
            _, y = tn.while_loop(lambda c: c[0] < 20, halved, (tn.array(0), y))
            return total.sum(), y

        f = tn.compile(tn.shard_map(body, mesh, in_specs=(None, None), out_specs=(None, None)))
        total, y = f(tn.ones(600_000), tn.ones(3))
        assert total.item() == 1_200_000 and y.tolist() == [1, 1, 1]


def test_interrupts_before_a_wait_stop_all_workers():
    class Stop(Exception):
        pass

    def stop(*_):
        raise Stop

    before = signal.signal(signal.SIGALRM, stop)
    try:
        with tn.Mesh(data=2) as mesh:
            body = lambda x, a: (distributed.all_sum(x, axis="data") * 2, tn.sin(tn.exp(a)))
            f = tn.compile(tn.shard_map(body, mesh, in_specs=(None, None), out_specs=(None, None)))
            x, a = tn.ones(600_000), tn.ones(2_000_000)
            for k in range(40):
                try:
                    signal.setitimer(signal.ITIMER_REAL, 0.001 + 0.0005 * k)
                    tn.eval(*f(x, a))
                    signal.setitimer(signal.ITIMER_REAL, 0)
                except Stop:
                    pass
            assert f(x, a)[0].sum().item() == 2_400_000
    finally:
        signal.setitimer(signal.ITIMER_REAL, 0)
        signal.signal(signal.SIGALRM, before)
