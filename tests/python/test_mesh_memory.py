"""`memory_limit` on a mesh: the memory of one worker, for the layouts of the call."""

import re

import numpy as np
import pytest

import tenon as tn
from tenon import nn, optim

WIDTH, LAYERS, ROWS = 32, 6, 8


def numbers(*shape, seed=0):
    return np.random.default_rng(seed).normal(size=shape).astype(np.float32)


def training(workers, spec=None, rows=ROWS, divided=True, runs=3, **options):
    """Losses, parameters and the compiled step of AdamW."""
    tn.random.seed(0)
    with tn.Mesh(data=workers, parts=4):
        layers = [nn.Sequential(nn.Linear(WIDTH, WIDTH, bias=False), nn.gelu)
                  for _ in range(LAYERS)]
        model = nn.Sequential(*layers)
        nn.shard(model, {"*": spec})
        optimizer = optim.AdamW(learning_rate=0.01)
        optimizer.init(model.parameters())
        state = [model.state, optimizer.state]

        @tn.compile(inputs=state, outputs=state, **options)
        def step(x):
            loss, slopes = nn.value_and_grad(model, lambda m, x: (m(x) ** 2).mean())(model, x)
            optimizer.update(model, slopes)
            return loss

        x = tn.array(numbers(rows, WIDTH))
        x = tn.shard(x, "data") if divided else x
        losses = [step(x).item() for _ in range(runs)]
        return losses, [p.numpy() for _, p in model.named_parameters()], step, x


def peak(made):
    return made[2].memory(made[3]).peak


def assert_same_bits(a, b):
    assert a[0] == b[0]
    for x, y in zip(a[1], b[1], strict=True):
        np.testing.assert_array_equal(x, y)


def test_the_limit_is_of_a_worker():
    whole, divided = training(1, rows=1024), training(4, rows=1024)
    assert peak(divided) < 0.4 * peak(whole)
    limited = training(4, rows=1024, memory_limit=peak(divided))
    assert_same_bits(limited, divided)
    assert "memory:" not in limited[2].show("decisions", limited[3])


@pytest.mark.parametrize("part", [0.8, 0.6])
def test_values_are_rematerialised_until_a_worker_fits(part):
    plain = training(4, rows=1024)
    limit = int(part * peak(plain))
    limited = training(4, rows=1024, memory_limit=limit)
    assert_same_bits(limited, plain)
    assert peak(limited) <= limit
    assert "more multiply-adds: with memory_limit a run needs" in limited[2].show(
        "decisions", limited[3])


def test_stored_parameters_need_two_layers():
    stored = tn.stored("data")
    limited = training(4, stored, memory_limit=2 * 4 * WIDTH * WIDTH + 8 * 4 * ROWS * WIDTH)
    assert_same_bits(limited, training(4, stored))


def test_the_error_names_the_peak_of_a_worker():
    with pytest.raises(MemoryError) as caught:
        training(4, rows=1024, memory_limit="20KB")
    text = str(caught.value)
    found = re.search(r"compile: memory_limit is 20000 bytes, the smallest peak of a worker is "
                      r"(\d+) bytes: no plan was found that needs less", text)
    assert found and 20_000 < int(found[1]) < peak(training(4, rows=1024))
    assert "most at step" in text
    assert "hint: divide more: tn.shard of the batch, tn.stored of parameters" in text


def test_layouts_of_the_call_decide():
    """One function serves divided inputs and refuses whole ones."""
    with tn.Mesh(data=4):
        x, w = tn.array(numbers(1024, WIDTH)), tn.array(numbers(WIDTH, WIDTH, seed=1))
        f = tn.compile(lambda x: tn.sort(x @ w, axis=1), memory_limit=x.nbytes // 2)
        rows = tn.shard(x, "data")
        assert "peak" in f.show("memory", rows)  # it has not run: a report refuses nothing
        np.testing.assert_array_equal(f(rows).numpy(), np.sort((x @ w).numpy(), axis=1))
        with pytest.raises(MemoryError, match="of a worker"):
            f(tn.shard(x, (None, None)))
        f(rows)


def test_values_are_gathered_again():
    """A gathered value waits for its last reader, unless memory is short."""

    def program(x):
        first = tn.shard(x, (None, None))
        total = tn.sort(first, axis=0)[0].sum()
        for i in range(3):
            other = tn.shard(x * (i + 2.0), (None, None))
            total = total + tn.sort(tn.sort(other, axis=0) * total, axis=0)[0].sum()
        return total + tn.cumsum(first, axis=0)[-1].sum()

    def run(limit=None):
        f = tn.compile(program, memory_limit=limit)
        made = f(x).item()
        return made, f.memory(x).peak, f.show("sharding", x).count("all_gather along")

    with tn.Mesh(data=4):
        x = tn.shard(tn.array(numbers(1024, WIDTH)), "data")
        plain = run()
        limited = run(int(0.7 * plain[1]))
    assert limited[0] == plain[0] and limited[1] <= 0.7 * plain[1]
    assert limited[2] > plain[2]


def test_added_views_of_stored_parameters_are_gathered_once():
    with tn.Mesh(data=2):
        a, b = (tn.shard(tn.array(numbers(8, 8, seed=i)), tn.stored("data")) for i in (1, 2))
        x = tn.shard(tn.array(numbers(4, 8)), "data")
        f = tn.compile(lambda x, a, b: x @ (a.T + b.T), optimization_level=0)
        f(x, a, b)
        assert f.show("sharding").count("all_gather along data of") == 2
