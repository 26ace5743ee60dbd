"""The default device of a block of code or a function."""

from __future__ import annotations

import contextlib

from . import _core


class device(contextlib.ContextDecorator):
    """Sets the default device in a `with` statement, or in a decorated function.

    It applies to the current thread.

        >>> with tn.device("cpu"):
        ...     x = tn.ones(2)
        >>> x.device
        tenon.cpu
    """

    def __init__(self, device: str | _core.Device | None) -> None:
        self._context = _core._DeviceContext(device)

    def _recreate_cm(self) -> device:
        return device(self._context.device)  # a decorated function may run on several threads

    def __enter__(self) -> _core.Device:
        return self._context.__enter__()

    def __exit__(self, *error: object) -> None:
        self._context.__exit__(*error)
