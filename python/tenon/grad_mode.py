"""`no_grad` and `enable_grad`: whether ops are recorded for `backward()`."""

from __future__ import annotations

import contextlib

from . import _core


class _GradMode(contextlib.ContextDecorator):
    """Switches recording for `backward()`, on the calling thread."""

    def __init__(self, enabled: bool) -> None:
        self._enabled = enabled
        self._before: list[bool] = []

    def _recreate_cm(self) -> _GradMode:
        return _GradMode(self._enabled)  # a decorated function may run on several threads

    def __enter__(self) -> None:
        self._before.append(_core._set_grad_enabled(self._enabled))

    def __exit__(self, *error: object) -> None:
        _core._set_grad_enabled(self._before.pop())


def no_grad() -> _GradMode:
    """Disables recording for `backward()` in a `with` statement, or in a decorated function.

        >>> w = tn.ones(2, requires_grad=True)
        >>> with tn.no_grad():
        ...     y = w * 2
        >>> y.requires_grad
        False
    """
    return _GradMode(False)


def enable_grad() -> _GradMode:
    """Enables recording for `backward()` inside `no_grad`."""
    return _GradMode(True)
