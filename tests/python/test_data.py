"""tn.data: batches, orders that can be resumed, datasets, and the thread that works ahead."""

from __future__ import annotations

import doctest
import gc
import itertools
import signal
import subprocess
import sys
import threading
import time
from dataclasses import dataclass
from typing import NamedTuple

import numpy as np
import pytest

import tenon as tn
from tenon import data


def lists(loader):
    return [tn.tree.map(lambda t: t.tolist(), batch) for batch in loader]


def threads():
    return [t for t in threading.enumerate() if t.name == "tenon prefetch"]


# Batches ---------------------------------------------------------------------------


def test_batches_in_order():
    x = np.arange(10).reshape(5, 2)
    assert lists(data.batches(x, 2)) == [[[0, 1], [2, 3]], [[4, 5], [6, 7]], [[8, 9]]]
    assert lists(data.batches(x, 2, drop_last=True)) == [[[0, 1], [2, 3]], [[4, 5], [6, 7]]]
    assert len(data.batches(x, 2)) == 3 and len(data.batches(x, 2, drop_last=True, epochs=3)) == 6
    assert lists(data.batches(x, 9)) == [x.tolist()]
    assert lists(data.batches(x, 9, drop_last=True)) == []
    assert lists(data.batches(np.zeros((0, 3)), 2)) == []


class Pair(NamedTuple):
    x: object
    y: object


@dataclass
class Fields:
    x: object
    y: object


@pytest.mark.parametrize(
    "make",
    [lambda x, y: (x, y), lambda x, y: [x, y], lambda x, y: {"x": x, "y": y}, Pair, Fields],
    ids=["tuple", "list", "dict", "NamedTuple", "dataclass"],
)
def test_trees_of_columns(make):
    columns = make(np.arange(3, dtype=np.uint8), tn.arange(3) * 10)
    first, last = data.batches(columns, 2)
    assert type(first) is type(columns)
    assert lists([first]) == [make([0, 1], [0, 10])] and lists([last]) == [make([2], [20])]
    assert tn.tree.leaves(first)[0].dtype == tn.uint8


def test_lists_of_numbers_are_columns():
    assert lists(data.batches([1, 2, 3], 2)) == [[1, 2], [3]]
    assert lists(data.batches(([[1, 2], [3, 4]], [5, 6]), 1)) == [([[1, 2]], [5]), ([[3, 4]], [6])]


def test_a_dataset_is_asked_for_examples():
    class Squares:
        def __len__(self):
            return 5

        def __getitem__(self, i):
            return {"x": np.float32(i), "y": i * i}

    batches = lists(data.batches(Squares(), 2, key=1))
    assert sorted(x for b in batches for x in b["x"]) == [0, 1, 2, 3, 4]
    assert all(x * x == y for b in batches for x, y in zip(b["x"], b["y"]))


def test_map_is_applied_to_batches():
    loader = data.batches(np.arange(4), 2, map=lambda x: (x, x.astype(tn.float32) / 2))
    assert lists(loader) == [([0, 1], [0, 0.5]), ([2, 3], [1, 1.5])]


@pytest.mark.parametrize(
    "call, text",
    [
        (lambda: data.batches(np.arange(3), 0), "data: batch_size is at least 1, not 0"),
        (lambda: data.batches(np.arange(3), 1.5), "data: batch_size is an integer, not 1.5"),
        (lambda: data.batches(np.arange(3), 1, epochs=0), "data: epochs is at least 1, not 0"),
        (lambda: data.batches(np.float32(3), 1), "each with an axis of examples"),
        (lambda: data.batches((), 1), "there must be columns"),
        (
            lambda: data.batches((np.zeros(3), np.zeros(4)), 1),
            r"columns have different numbers of examples: \[3, 4\]",
        ),
        (lambda: data.split(tn.arange(5), 2), "split: 5 examples do not divide into 2 parts"),
        (lambda: data.prefetch(3), "prefetch: not iterable: int"),
        (lambda: len(data.batches(np.arange(3), 1, epochs=None)), "no length: epochs=None"),
    ],
)
def test_what_is_refused(call, text):
    with pytest.raises(tn.Error, match=text):
        call()


# Orders ----------------------------------------------------------------------------


def test_a_key_decides_the_order():
    x = np.arange(20)
    one = lists(data.batches(x, 8, key=3, epochs=2))
    assert one == lists(data.batches(x, 8, key=tn.random.key(3), epochs=2))
    assert one != lists(data.batches(x, 8, key=4, epochs=2))
    epochs = [sum(one[:3], []), sum(one[3:], [])]
    assert epochs[0] != epochs[1] and sorted(epochs[0]) == sorted(epochs[1]) == x.tolist()
    assert lists(data.batches(x, 20, key=3, shuffle=False)) == [x.tolist()]


def test_shuffling_without_a_key_follows_the_seed():
    runs = []
    for _ in range(2):
        tn.random.seed(5)
        runs.append(lists(data.batches(np.arange(9), 9, shuffle=True)))
    assert runs[0] == runs[1] != [[list(range(9))]]


def test_every_loop_is_an_epoch_of_its_own():
    loader = data.batches(np.arange(6), 2, key=0)
    both = [lists(loader), lists(loader)]
    assert sum(both, []) == lists(data.batches(np.arange(6), 2, key=0, epochs=2))
    next(iter(loader))  # one that is left early is over
    assert loader.position == 7
    assert len(lists(loader)) == 3 and loader.position == 12


@pytest.mark.parametrize("ahead", [0, 3], ids=["plain", "prefetched"])
@pytest.mark.parametrize("epochs", [1, 3])
def test_a_position_is_resumed(ahead, epochs):
    def fresh():
        loader = data.batches(np.arange(10), 3, key=7, epochs=epochs)
        return data.prefetch(loader, ahead) if ahead else loader

    whole = lists(itertools.chain(fresh(), fresh()))[: 4 * epochs]
    for stop in range(1, 4 * epochs):
        loader = fresh()
        begun = lists(itertools.islice(iter(loader), stop))
        assert loader.position == stop
        again = fresh()
        again.position = loader.position
        assert begun + lists(again) == whole


@pytest.mark.parametrize("ahead", [0, 3], ids=["plain", "prefetched"])
def test_checkpoints_hold_where_a_loop_was(ahead, tmp_path):
    def fresh():
        loader = data.batches(np.arange(10), 2, shuffle=True)
        return data.prefetch(loader, ahead) if ahead else loader

    loader = fresh()
    batches = iter(loader)
    begun = lists(itertools.islice(batches, 2))
    tn.save_checkpoint(tmp_path / "run", loader=loader)
    rest = lists(batches)
    again = fresh()  # in another order, if it were not for the checkpoint
    tn.load_checkpoint(tmp_path / "run", loader=again)
    assert lists(again) == rest and sorted(sum(begun + rest, [])) == list(range(10))


def test_batches_without_end():
    loader = data.batches(np.arange(2), 1, epochs=None)
    assert lists(itertools.islice(loader, 5)) == [[0], [1], [0], [1], [0]]


# The thread ------------------------------------------------------------------------


def test_prefetch_gives_the_same_and_ends():
    loader = data.batches(np.arange(100), 3, key=1)
    assert lists(data.prefetch(loader)) == lists(data.batches(np.arange(100), 3, key=1))
    assert not threads()


def test_prefetch_works_ahead_but_not_further():
    made = []

    def source():
        for i in range(10):
            made.append(i)
            yield tn.array(i) * 2

    items = iter(data.prefetch(source(), 2))
    assert next(items).item() == 0
    while len(made) < 3:
        time.sleep(0.001)
    assert made == [0, 1, 2]
    items.close()
    assert not threads()


def test_tensors_are_computed_by_the_thread():
    for x in data.prefetch([tn.arange(4) * 2]):
        assert tn.graph_text(x).count("=") == 0  # nothing is pending


def test_errors_of_the_source_come_where_its_item_would():
    def source():
        yield 1
        raise KeyError("lost")

    items = iter(data.prefetch(source()))
    assert next(items) == 1
    with pytest.raises(KeyError, match="lost"):
        next(items)
    assert not threads()


def test_leaving_the_loop_closes_the_source():
    closed = []

    def source():
        try:
            yield from itertools.count()
        finally:
            closed.append(True)

    for item in data.prefetch(source()):
        if item == 3:
            break
    gc.collect()
    assert closed == [True] and not threads()


def run_program(text, **kwargs):
    return subprocess.Popen(
        [sys.executable, "-c", text], stdout=subprocess.PIPE, stderr=subprocess.PIPE, **kwargs
    )


def test_the_program_ends_with_an_iterator_left_open():
    program = run_program(
        "import itertools, tenon as tn\n"
        "items = iter(tn.data.prefetch(tn.data.batches(tn.arange(100), 1, epochs=None)))\n"
        "print(next(items).item())\n"
    )
    out, err = program.communicate(timeout=120)
    assert (out, err, program.returncode) == (b"0\n", b"", 0)


def test_the_program_can_be_interrupted_while_it_waits():
    program = run_program(
        "import signal, time, tenon as tn\n"
        "signal.signal(signal.SIGINT, signal.default_int_handler)\n"
        "def source():\n"
        "    print('ready', flush=True)\n"
        "    time.sleep(5)\n"
        "    yield 1\n"
        "for item in tn.data.prefetch(source()): pass\n"
    )
    assert program.stdout.readline() == b"ready\n"
    program.send_signal(signal.SIGINT)
    _, err = program.communicate(timeout=120)
    assert b"KeyboardInterrupt" in err and program.returncode != 0


@pytest.mark.parametrize(
    "module", [data, data.batching, data.prefetching], ids=lambda m: m.__name__
)
def test_examples_in_the_documentation(module):
    assert doctest.testmod(module, extraglobs={"tn": tn}).failed == 0
