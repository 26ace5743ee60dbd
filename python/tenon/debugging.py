"""Finding what made a NaN."""

from __future__ import annotations

from . import _core


class debug_nans:
    """Makes a NaN among computed values an error, in the whole process.

    The error names the op that made the first one from operands without, the types of the operands
    and the line that called it; for a derivative, the line of the op that it is the derivative of.
    With `inf=True` infinities count too. A step of a compiled function that fails so changes no
    state. Values are looked through after they are computed, and computed once more, op by op, when
    there is something to find.

    As a statement it lasts until `tn.debug_nans(False)`, in a `with` statement until its end;
    `TENON_DEBUG_NANS=1` (or `inf`) in the environment does it from the start.

        >>> with tn.debug_nans():
        ...     tn.log(tn.array([1.0, -1.0])).numpy()
        Traceback (most recent call last):
        tenon.InvalidValue: debug_nans: log(f32[2]) made NaN: 1 of 2 elements ...
    """

    def __init__(self, enabled: bool = True, *, inf: bool = False) -> None:
        self._before = _core._set_debug_nans((2 if inf else 1) if enabled else 0)

    def __enter__(self) -> debug_nans:
        return self

    def __exit__(self, *_: object) -> None:
        _core._set_debug_nans(self._before)
