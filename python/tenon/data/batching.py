"""Batches: examples of columns or of a dataset, some at a time."""

from __future__ import annotations

import itertools
import operator
from collections.abc import Callable, Iterator
from typing import Any

from .. import _core, random, tree
from ..creation import asarray


class Batches:
    """The result of `batches`: each loop over it yields `epochs` epochs, shuffled differently.

    `position` counts the batches yielded so far. A new object with this position assigned continues
    with the same batches.
    """

    def __init__(
        self,
        data: Any,
        batch_size: int,
        key: _core.Tensor | None,
        drop_last: bool,
        epochs: int | None,
        map: Callable[[Any], Any] | None,
    ) -> None:
        self._source = data if _is_dataset(data) else _columns(data)
        self._examples = _examples(self._source)
        self._batch_size, self._key, self._epochs, self._map = batch_size, key, epochs, map
        self._per_epoch = self._examples // batch_size
        if not drop_last and self._examples % batch_size:
            self._per_epoch += 1
        self._position, self._resumes = 0, False

    @property
    def position(self) -> int:
        return self._position

    @position.setter
    def position(self, batches: int) -> None:
        self._position, self._resumes = as_count("position", batches, least=0), True

    def state_dict(self) -> dict[str, Any]:
        """The state for a checkpoint: the position, and the key of the order."""
        return {"position": self._position, "key": self._key}

    def load_state_dict(self, state: dict[str, Any]) -> None:
        self.position, self._key = state["position"], state["key"]

    def __len__(self) -> int:
        """The number of batches of a loop."""
        if self._epochs is None:
            _core._fail("type", "batches: no length: epochs=None repeats the data without end")
        return self._per_epoch * self._epochs

    def __iter__(self) -> Iterator[Any]:
        if self._per_epoch == 0:
            return
        if not self._resumes:  # a loop that was left early is over
            self._position += -self._position % (self._per_epoch * (self._epochs or 1))
        self._resumes = False
        first, done = divmod(self._position, self._per_epoch)
        for epoch in itertools.count(first):
            if self._epochs is not None and epoch > first and epoch % self._epochs == 0:
                return
            order = self._order(epoch)
            for number in range(done, self._per_epoch):
                self._position += 1
                start = number * self._batch_size
                batch = self._take(order, start, min(start + self._batch_size, self._examples))
                yield batch if self._map is None else self._map(batch)
            done = 0

    def _order(self, epoch: int) -> _core.Tensor | None:
        if self._key is None:
            return None
        order = random.permutation(self._examples, key=random.fold_in(self._key, epoch))
        _core.eval(order)  # once, and not behind every batch
        return order

    def _take(self, order: _core.Tensor | None, start: int, end: int) -> Any:
        chosen = None if order is None else order[start:end]
        if not _is_dataset(self._source):
            if chosen is None:
                return tree.map(lambda column: column[start:end], self._source)
            return tree.map(lambda column: _rows(column, chosen), self._source)
        numbers = range(start, end) if chosen is None else chosen.tolist()
        examples = [self._source[i] for i in numbers]
        return tree.map(lambda *parts: _core.stack([asarray(p) for p in parts]), *examples)


def _rows(column: Any, chosen: _core.Tensor) -> _core.Tensor:
    column = asarray(column)
    return _core.take(column, chosen.to_device(column.device), axis=0)


def batches(
    data: Any,
    batch_size: int,
    *,
    key: int | _core.Tensor | None = None,
    shuffle: bool | None = None,
    drop_last: bool = False,
    epochs: int | None = 1,
    map: Callable[[Any], Any] | None = None,
) -> Batches:
    """Batches of `batch_size` examples of `data`, as trees of tensors like `data`.

    `data` is a tree of tensors, NumPy arrays and lists of numbers with examples along axis 0, or a
    dataset: an object with `__len__` and `__getitem__`, whose examples are stacked. With a `key`
    (or an integer for one) each epoch is shuffled differently and reproducibly; `shuffle=True`
    alone takes a key from `tn.random.state`. `drop_last` drops a smaller last batch. `epochs=None`
    is infinite. `map` is applied to each batch.

        >>> loader = tn.data.batches({"x": tn.arange(5)}, 2, key=0, drop_last=True)
        >>> [batch["x"].tolist() for batch in loader]
        [[0, 2], [4, 1]]
        >>> loader.position
        2
    """
    batch_size = as_count("batch_size", batch_size)
    if epochs is not None:
        epochs = as_count("epochs", epochs)
    if shuffle is None:
        shuffle = key is not None
    if shuffle and key is None:
        key = random._or_next(None)
    if key is not None and not isinstance(key, _core.Tensor):
        key = random.key(as_count("key", key, least=0))
    return Batches(data, batch_size, key if shuffle else None, drop_last, epochs, map)


def split(data: Any, parts: int) -> list[Any]:
    """Splits a batch into `parts` of equal size: micro-batches for `tn.optim.accumulate`.

        >>> [x.tolist() for x in tn.data.split(tn.arange(4), 2)]
        [[0, 1], [2, 3]]
    """
    columns = _columns(data)
    examples, parts = _examples(columns), as_count("parts", parts)
    if examples % parts or (examples == 0 and parts > 1):
        _core._fail("value", f"split: {examples} examples do not divide into {parts} parts")
    size = examples // parts
    ranges = [slice(i * size, (i + 1) * size) for i in range(parts)]
    return [tree.map(operator.itemgetter(part), columns) for part in ranges]


def as_count(name: str, value: Any, least: int = 1) -> int:
    try:
        number = operator.index(value)
    except TypeError:
        _core._fail("type", f"data: {name} is an integer, not {value!r}")
    if number < least:
        _core._fail("value", f"data: {name} is at least {least}, not {number}")
    return number


def _is_dataset(data: Any) -> bool:
    """Whether it gives examples one by one, and is no tree of columns."""
    plain = (list, tuple, dict, str, bytes, _core.Tensor)
    if isinstance(data, plain) or hasattr(data, "__array__") or hasattr(data, "__dlpack__"):
        return False
    return hasattr(data, "__getitem__") and hasattr(data, "__len__")


def _columns(data: Any) -> Any:
    """`data` with tensors for its columns. A list is one unless there are columns in it."""
    if isinstance(data, list) and not any(hasattr(part, "shape") for part in data):
        return asarray(data)
    if type(data) is dict:
        return {name: _columns(part) for name, part in data.items()}
    if type(data) in (list, tuple):
        return type(data)([_columns(part) for part in data])
    return tree.map(asarray, data)


def _examples(source: Any) -> int:
    """Return the number of examples, which must be equal in all columns."""
    if _is_dataset(source):
        return len(source)
    columns = tree.leaves(source)
    if not columns or any(column.ndim == 0 for column in columns):
        _core._fail("value", "data: there must be columns, each with an axis of examples")
    counts: list[int] = [column.shape[0] for column in columns]
    if len(set(counts)) > 1:
        _core._fail("value", f"data: columns have different numbers of examples: {counts}")
    return counts[0]
