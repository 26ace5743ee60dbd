"""Names for parts of a program, and a YAML file that says what becomes of them.

    forward:
      compile: true                  # or false, or {mode: max-autotune, threshold: 3}
      shard: {axis: 0, workers: [0, 1]}
      backward: gradients            # the signal of its derivatives

`TENON_CONFIG=config.yaml` in the environment, or `tn.signal.load("config.yaml")`, puts a file in
force. The program names its parts; names that the file does not know change nothing, and are told
of where they look like a slip.

    >>> with tn.signal.context("forward"):
    ...     y = tn.ones(3) * 2
    >>> y
    tensor([2., 2., 2.], dtype=float32)
"""

from __future__ import annotations

import contextlib
import os
from typing import Any

import tenon as tn

from . import _core

__all__ = ["config", "context", "enter", "exit", "load", "tensor"]


class context(contextlib.ContextDecorator):
    """What is recorded inside, or in a function decorated with it, is a region called `name`.

    Where the configuration says `compile:` for the name, each passage is computed on its own, as
    one plan; its derivatives too, under the signal `backward`, or what the configuration names, or
    the one called "backward" there, or else the same. Regions belong to the thread; inside others,
    the inner one counts; in compiled functions they are names only.

        >>> @tn.signal.context("loss", backward="gradients")
        ... def loss(x):
        ...     return tn.sum(x * x)
        >>> loss(tn.ones(3))
        tensor(3., dtype=float32)
    """

    def __init__(self, name: str, backward: str | None = None) -> None:
        self._name, self._backward = _checked("context", name), backward
        if backward is not None:
            _checked("context", backward)
        self._outer: list[int] = []

    def _recreate_cm(self) -> context:
        return context(self._name, self._backward)  # calls on several threads do not share one

    def __enter__(self) -> context:
        self._outer.append(_core._signal_enter(self._name, self._backward))
        return self

    def __exit__(self, *_: object) -> None:
        _core._signal_leave(self._outer.pop())


def enter(name: str, backward: str | None = None) -> None:
    """Begins a region where a `with` statement does not fit; `exit(name)` ends it.

        >>> tn.signal.enter("warmup")
        >>> tn.signal.exit("warmup")
    """
    _core._signal_enter(_checked("enter", name), backward)


def exit(name: str) -> None:
    """Ends the region that was entered last on this thread, which has to be `name`."""
    _core._signal_exit(_checked("exit", name))


def tensor(x: tn.Tensor, name: str) -> tn.Tensor:
    """`x`, laid out over workers as `shard:` of the configuration says for `name`.

    Without workers every tensor is whole.

        >>> tn.signal.tensor(tn.ones(2), "batch")
        tensor([1., 1.], dtype=float32)
    """
    if not isinstance(x, tn.Tensor):
        _core._fail("type", f"signal.tensor: needs a tensor, not {type(x).__name__}")
    return _core._signal_tensor(x, _checked("tensor", name))


def load(path: str | os.PathLike[str] | None) -> None:
    """Puts a file in force, in place of the former one; None: nothing, whatever TENON_CONFIG says.

    Errors name the file, the line and the key, and leave in force what was.
    """
    if path is not None and not isinstance(path, (str, os.PathLike)):
        _core._fail("type", f"signal.load: needs a path, or None, not {type(path).__name__}")
    _core._signal_load(None if path is None else os.fsdecode(path))


def config() -> dict[str, dict[str, Any]]:
    """What is in force, by name.

        >>> tn.signal.config()
        {}
    """
    return _core._signal_config()


def __dir__() -> list[str]:
    return __all__


def _checked(call: str, name: str) -> str:
    if not isinstance(name, str):
        _core._fail("type", f"signal.{call}: a name is a str, not {type(name).__name__}")
    return name
