"""Finding what made a NaN, and indices out of bounds."""

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


class debug_indices:
    """Makes an index out of bounds an error in compiled functions too, in the whole process.

    What is computed at once checks its indices always. Compiled code does not: it clamps an index
    where it reads (`x[i]`, `take`, `embedding`), drops what it would write outside (`x.at[i].set`,
    `segment_sum`), and gives NaN for a class that does not exist (`cross_entropy`). Here compiled
    functions are interpreted instead, with the same results, and an index out of bounds is an error
    that names the op, the index, the bounds and the line. A step that fails so changes no state.
    Executables are not checked.

    As a statement it lasts until `tn.debug_indices(False)`, in a `with` statement until its end;
    `TENON_DEBUG_INDICES=1` in the environment does it from the start.

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
