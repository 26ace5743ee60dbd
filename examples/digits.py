"""The handwritten digits that come with scikit-learn: 1,797 images of 8 x 8 pixels."""

from __future__ import annotations

import sys
from collections.abc import Iterable
from typing import NamedTuple

import numpy as np

import tenon as tn


class Digits(NamedTuple):
    """Images in [0, 1], as float32[n, 1, 8, 8], and their labels."""

    images: tn.Tensor
    labels: tn.Tensor

    @property
    def size(self) -> int:
        return self.images.shape[0]

    def batches(self, size: int, epochs: int | None = None) -> Iterable[Digits]:
        """Batches of `size` images, shuffled in every epoch; `epochs=None` is infinite.

        An incomplete last batch is dropped.
        """
        return tn.data.batches(self, size, key=0, drop_last=True, epochs=epochs)


def load_digits(seed: int = 0) -> tuple[Digits, Digits]:
    """The training set and the test set, which has one fifth of the images."""
    try:
        from sklearn import datasets
    except ImportError:
        sys.exit("the digits come with scikit-learn: .venv/bin/python -m pip install scikit-learn")
    data = datasets.load_digits()
    images = (data.images[:, None] / 16).astype(np.float32)
    order = np.random.default_rng(seed).permutation(len(images))
    test, train = np.split(order, [len(order) // 5])
    return tuple(Digits(tn.array(images[i]), tn.array(data.target[i])) for i in (train, test))
