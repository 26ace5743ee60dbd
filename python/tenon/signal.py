"""Named regions of a program, and a YAML file that configures them.

    forward:
      compile: true                  # or false, or {mode: max-autotune, threshold: 3}
      shard: {axis: 0, workers: [0, 1]}
      backward: gradients            # the signal of its derivatives

`TENON_CONFIG=config.yaml` in the environment, or `tn.signal.load("config.yaml")`, loads a file. The
program names its regions. Names that are not in the file have no effect; a name that looks like a
misspelling is reported.

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
    """Names a region: the ops recorded in a `with` statement, or in a decorated function.

    If the configuration has `compile:` for the name, each pass through the region is evaluated as
    one plan. So are its derivatives, under the signal `backward`, else the one named in the
    configuration, else the signal "backward" of the configuration, else the region's own signal.
    Regions belong to the thread; in nested regions the innermost applies; in compiled functions
    they are only names.

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
    """Ends the innermost region of this thread, which must be `name`."""
    _core._signal_exit(_checked("exit", name))


def tensor(x: tn.Tensor, name: str) -> tn.Tensor:
    """`x`, distributed over workers as configured by `shard:` for `name`.

    Without workers tensors are not distributed.

        >>> tn.signal.tensor(tn.ones(2), "batch")
        tensor([1., 1.], dtype=float32)
    """
    if not isinstance(x, tn.Tensor):
        _core._fail("type", f"signal.tensor: needs a tensor, not {type(x).__name__}")
    return _core._signal_tensor(x, _checked("tensor", name))


def load(path: str | os.PathLike[str] | None) -> None:
    """Loads a configuration, replacing the current one; None clears it and overrides TENON_CONFIG.

    Errors name the file, the line and the key, and leave the current configuration unchanged.
    """
    if path is not None and not isinstance(path, (str, os.PathLike)):
        _core._fail("type", f"signal.load: needs a path, or None, not {type(path).__name__}")
    _core._signal_load(None if path is None else os.fsdecode(path))


def config() -> dict[str, dict[str, Any]]:
    """The current configuration, by name.

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
