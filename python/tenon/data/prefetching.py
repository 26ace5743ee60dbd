"""Prefetch: a thread that makes items before they are asked for."""

from __future__ import annotations

import atexit
import threading
import weakref
from collections import deque
from collections.abc import Iterable, Iterator
from typing import Any

from .. import _core, tree
from ..creation import asarray
from .batching import as_count


class Prefetch:
    """The result of `prefetch`. `position` counts the yielded items of the source."""

    def __init__(self, source: Iterable[Any], ahead: int, device: _core.Device | None) -> None:
        self._source: Any = source
        self._ahead = ahead
        self._device = device
        self._position: int | None = None

    @property
    def position(self) -> int:
        if self._position is None:
            position: int = self._source.position
            return position
        return self._position

    @position.setter
    def position(self, batches: int) -> None:
        self._source.position, self._position = batches, None

    def state_dict(self) -> dict[str, Any]:
        """The state of the source after the yielded items."""
        return {**self._source.state_dict(), "position": self.position}

    def load_state_dict(self, state: dict[str, Any]) -> None:
        self._source.load_state_dict(state)
        self._position = None

    def __len__(self) -> int:
        return len(self._source)

    def __iter__(self) -> Iterator[Any]:
        filling = _Filling(self._source, self._ahead, self._device)
        try:
            while (made := filling.take()) is not None:
                item, self._position = made
                yield item
        finally:  # also when the loop is left early
            filling.stop()


def prefetch(
    source: Iterable[Any], ahead: int = 2, *, device: str | _core.Device | None = None
) -> Prefetch:
    """The items of `source`, prepared by a thread, up to `ahead` items in advance.

    Tensors are evaluated there too, but for those on a mesh. With a `device`, tensors and NumPy
    arrays are copied to it there: on a GPU while it computes with earlier items. An error of the
    source is raised in place of its item. The thread ends with the loop, even if the loop fails.

        >>> sum(x.item() for x in tn.data.prefetch(tn.data.batches(tn.arange(4), 1)))
        6
    """
    if not hasattr(source, "__iter__"):
        _core._fail("type", f"prefetch: not iterable: {type(source).__name__}")
    there = None if device is None else _core.Device(device) if isinstance(device, str) else device
    return Prefetch(source, as_count("ahead", ahead), there)


def _moved(item: Any, device: _core.Device) -> Any:
    def to(leaf: Any) -> Any:
        if isinstance(leaf, _core.Tensor):
            return leaf.to(device)
        return asarray(leaf, device=device) if hasattr(leaf, "__array__") else leaf

    return tree.map(to, item)


class _Filling:
    """A thread at work, and the items it has ready."""

    def __init__(self, source: Iterable[Any], ahead: int, device: _core.Device | None) -> None:
        self._changed = threading.Condition()
        self._ready: deque[tuple[Any, int | None]] = deque()
        self._error: BaseException | None = None
        self._done = self._stopped = False
        self._thread = threading.Thread(
            target=self._fill, args=(source, ahead, device), name="tenon prefetch", daemon=True
        )
        self._thread.start()
        _running.add(self)

    def _fill(self, source: Iterable[Any], ahead: int, device: _core.Device | None) -> None:
        items = iter(source)
        try:
            for item in items:
                if device is not None:
                    item = _moved(item, device)
                tensors = [t for t in tree.leaves(item) if isinstance(t, _core.Tensor)]
                # Processes of a mesh evaluate in the same order, which threads do not keep.
                _core.eval([t for t in tensors if t.device.kind != "mesh"])
                with self._changed:
                    self._ready.append((item, getattr(source, "position", None)))
                    self._changed.notify()
                    self._changed.wait_for(lambda: len(self._ready) < ahead or self._stopped)
                    if self._stopped:
                        break
        except BaseException as error:  # for the thread that asks
            self._error = error
        finally:
            if hasattr(items, "close"):
                items.close()
            with self._changed:
                self._done = True
                self._changed.notify()

    def take(self) -> tuple[Any, int | None] | None:
        """The next item and the position behind it, or None at the end."""
        with self._changed:
            self._changed.wait_for(lambda: self._ready or self._done)
            if self._ready:
                made = self._ready.popleft()
                self._changed.notify()
                return made
        error, self._error = self._error, None
        if error is not None:
            raise error
        return None

    def stop(self, seconds: float | None = None) -> None:
        with self._changed:
            self._stopped = True
            self._changed.notify()
        self._thread.join(seconds)


_running: weakref.WeakSet[_Filling] = weakref.WeakSet()


@atexit.register
def _stop_all() -> None:
    """No thread of ours runs when the interpreter goes; one that its source blocks is left."""
    for filling in list(_running):
        filling.stop(seconds=2.0)
