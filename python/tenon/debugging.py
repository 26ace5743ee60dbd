"""Finding what made a NaN, and indices out of bounds."""

from __future__ import annotations

from . import _core


class debug_nans:
    """Raises an error when an evaluated value contains a NaN, in the whole process.

    The error names the first op that produced a NaN from operands without NaNs, its operand types
    and its source line; for a derivative, the line of the differentiated op. `inf=True` also
    detects infinities. A failed step of a compiled function changes no state. Results are checked
    after evaluation, and recomputed op by op if one is bad.

    The setting lasts until `tn.debug_nans(False)`, or until the end of a `with` statement.
    `TENON_DEBUG_NANS=1` (or `inf`) in the environment enables it from the start.

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


class debug_indices:
    """Raises an error for out-of-bounds indices in compiled functions, in the whole process.

    Uncompiled code always checks indices. Compiled code does not: it clamps out-of-bounds reads
    (`x[i]`, `take`, `embedding`), drops out-of-bounds writes (`x.at[i].set`, `segment_sum`), and
    returns NaN for a class that does not exist (`cross_entropy`). With this setting compiled
    functions are interpreted, with the same results, and an out-of-bounds index is an error that
    names the op, the index, the bounds and the line. A failed step changes no state. Executables
    are not checked.

    The setting lasts until `tn.debug_indices(False)`, or until the end of a `with` statement.
    `TENON_DEBUG_INDICES=1` in the environment enables it from the start.

        >>> row = tn.compile(lambda table, i: table[i])
        >>> row(tn.array([1.0, 2.0]), tn.array(5))
        tensor(2., dtype=float32)
        >>> with tn.debug_indices():
        ...     row(tn.array([1.0, 2.0]), tn.array(5))
        Traceback (most recent call last):
        tenon.InvalidIndex: gather: 5 is out of bounds for axis 0 of extent 2 (f32[2]) ...
    """

    def __init__(self, enabled: bool = True) -> None:
        self._before = _core._set_debug_indices(bool(enabled))

    def __enter__(self) -> debug_indices:
        return self

    def __exit__(self, *_: object) -> None:
        _core._set_debug_indices(self._before)
