"""Batches of data for training: shuffled by key, resumable, made ahead by a thread.

    >>> images, labels = tn.arange(12).reshape(6, 2), [0, 1, 0, 1, 0, 1]
    >>> for x, y in tn.data.batches((images, labels), 4):
    ...     print(x.shape, y.tolist())
    (4, 2) [0, 1, 0, 1]
    (2, 2) [0, 1]
"""

from typing import TYPE_CHECKING

from .batching import Batches, batches, split
from .prefetching import Prefetch, prefetch

__all__ = ["Batches", "Prefetch", "batches", "prefetch", "split"]


if not TYPE_CHECKING:  # to type checkers it would say that every name exists

    def __getattr__(name: str) -> object:
        from .._advice import missing_name

        raise AttributeError(missing_name(name, globals(), __name__), name=name)
