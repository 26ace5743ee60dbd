"""Print options of tensors."""

from __future__ import annotations

import contextlib
import sys
from collections.abc import Iterator
from typing import Any

from . import _core

_NAMES = ("precision", "threshold", "edgeitems", "linewidth", "suppress", "sci_mode")
_LEFT_OUT: Any = object()
_PROFILES: dict[str, dict[str, Any]] = {
    "default": {"precision": None, "threshold": 1000, "edgeitems": 3, "linewidth": 80},
    "short": {"precision": 2, "threshold": 1000, "edgeitems": 2, "linewidth": 80},
    "full": {"precision": None, "threshold": sys.maxsize, "edgeitems": 3, "linewidth": 80},
}


def get_printoptions() -> dict[str, Any]:
    """The current print options, as set by `tn.set_printoptions`.

    >>> tn.get_printoptions()["edgeitems"]
    3
    """
    return dict(zip(_NAMES, _core._printing()))


def set_printoptions(
    precision: int | None = _LEFT_OUT,
    threshold: float | None = None,
    edgeitems: int | None = None,
    linewidth: float | None = None,
    suppress: bool | None = None,
    sci_mode: bool | None = _LEFT_OUT,
    profile: str | None = None,
) -> None:
    """Sets how tensors are printed, in the whole process. Omitted options are unchanged.

    - `precision`: the maximum number of digits after the point. None, the default: 8, or more if
      all elements are below 0.1, so that the largest has 8 significant digits. Digits beyond those
      that identify an element in its type are never shown.
    - `threshold`: tensors with more elements (1,000) show only `edgeitems` (3) elements at each
      end of every axis; `math.inf` shows all.
    - `linewidth`: columns of a line (80). Vectors continue on the next line. A row of a matrix
      has one line and omits columns that do not fit; `math.inf` shows all.
    - `suppress`: whether small numbers are printed without an exponent (False).
    - `sci_mode`: whether numbers have an exponent. None, the default: when one of them is 1e8 or
      more or below 1e-4, or the largest is more than 1,000 times the smallest.
    - `profile`: "default", "short" or "full", as in PyTorch; applied before the other options.

        >>> tn.set_printoptions(precision=3)
        >>> tn.array([3.14159, 100.0])
        tensor([  3.142, 100.   ], dtype=float32)
        >>> tn.set_printoptions(profile="default")
    """
    options = get_printoptions()
    if profile is not None:
        if profile not in _PROFILES:
            known = ", ".join(map(repr, _PROFILES))
            _core._fail("value", f"set_printoptions: profile is one of {known}, not {profile!r}")
        options |= _PROFILES[profile] | {"suppress": False, "sci_mode": None}
    sizes = {"threshold": threshold, "edgeitems": edgeitems, "linewidth": linewidth}
    options |= {name: _size(name, given) for name, given in sizes.items() if given is not None}
    if precision is not _LEFT_OUT:
        options["precision"] = None if precision is None else _size("precision", precision)
    if suppress is not None:
        options["suppress"] = bool(suppress)
    if sci_mode is not _LEFT_OUT:
        options["sci_mode"] = None if sci_mode is None else bool(sci_mode)
    _core._set_printing(**options)


def _size(name: str, given: Any) -> int:
    if isinstance(given, bool) or not isinstance(given, (int, float)) or given != given:
        _core._fail("type", f"set_printoptions: {name} is a number, not {given!r}")
    most = 2**31 - 1 if name == "precision" else sys.maxsize
    return int(max(min(given, most), -most))


@contextlib.contextmanager
def printoptions(**options: Any) -> Iterator[None]:
    """`tn.set_printoptions` inside a `with` statement.

    >>> with tn.printoptions(precision=2):
    ...     print(tn.array([3.14159]))
    tensor([3.14], dtype=float32)
    """
    before = get_printoptions()
    try:
        set_printoptions(**options)
        yield
    finally:
        _core._set_printing(**before)
