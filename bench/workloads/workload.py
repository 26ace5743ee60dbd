"""A workload: one computation, the same inputs for every library, and what it must reach."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from typing import Any


@dataclass(frozen=True)
class Work:
    """What the computation cannot do without: bytes of inputs read and results written, and
    multiply-adds. The machine's limits turn it into a time."""

    read: float = 0
    written: float = 0
    multiply_adds: float = 0


@dataclass(frozen=True)
class Goal:
    """What a row must reach. Every part that is given counts."""

    least_ratio: float | None = None  # times as fast as the rival
    rival: str | None = None  # None: the fastest
    least_ratio_many: float | None = 1.0  # than the fastest, with many threads
    copy_times: float | None = None  # at most so many times a plain copy of what is read
    most_ms: float | None = None  # of one call
    first_call_ms: float | None = None
    first_call_ratio: float | None = None  # times as fast as the rival's, nothing compiled before

    @property
    def has_first_call(self) -> bool:
        return bool(self.first_call_ms or self.first_call_ratio)


@dataclass(frozen=True)
class Workload:
    """`versions` has one function for each library; its first argument is the library.

    A "function" is called with the inputs. A "model" too, but its first input, the weights, never
    changes, so a library may prepare them. A "step" gets the state and a batch and returns the
    loss and the next state; its version for PyTorch, which updates in place, is a function from
    the state to a step.
    """

    name: str
    title: str
    inputs: Callable[[bool], tuple[Any, ...]]  # NumPy arrays in trees; True: tiny, to test the rig
    versions: Mapping[str, Callable[..., Any]]
    work: Work = Work()
    goal: Goal = Goal()
    kind: str = "function"
    tolerance: float = 1e-4
    dtype: str = "float32"  # floating inputs are converted to it
    rivals: tuple[str, ...] = field(default=())  # beyond those that have a version


def leaves(tree: Any) -> list[Any]:
    """What nested dicts, lists and tuples hold; dicts by key, since libraries reorder them."""
    if isinstance(tree, dict):
        tree = [tree[key] for key in sorted(tree)]
    if isinstance(tree, (list, tuple)):
        return [leaf for part in tree for leaf in leaves(part)]
    return [tree]


def map_tree(f: Callable[[Any], Any], tree: Any) -> Any:
    """`f` of every leaf of nested dicts, lists and tuples."""
    if isinstance(tree, dict):
        return {key: map_tree(f, value) for key, value in tree.items()}
    if isinstance(tree, (list, tuple)):
        return type(tree)(map_tree(f, value) for value in tree)
    return f(tree)
