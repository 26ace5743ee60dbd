"""Counts graphs inside graphs, which the process keeps in one table."""

import itertools

import tenon as tn
from tenon import _core

ROUNDS = 3


def graphs_added(run, count):
    """How many graphs `count` runs of `run(i)` leave behind, each with an `i` of its own.

    The least of some rounds: what earlier tests still compile in the background adds graphs too,
    but not in every round.
    """
    numbers = itertools.count(3)

    def round_of(count):
        before = _core._interned()[2]
        for i in itertools.islice(numbers, count):
            tn.eval(run(i))
        return _core._interned()[2] - before

    round_of(2)  # makes what all of them share
    return min(round_of(count) for _ in range(ROUNDS))
