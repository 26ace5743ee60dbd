"""Tensors from data of Python and of other libraries."""

from __future__ import annotations

from . import _core


def array(
    obj: object, dtype: object = None, *, device: object = None, requires_grad: bool = False
) -> _core.Tensor:
    """A tensor with a copy of the data: numbers, nested lists, arrays.

    Floats become float32, integers int64, unless `dtype` says otherwise. With `requires_grad`,
    `backward()` leaves a gradient at the tensor.
    """
    made = _core.array(obj, dtype, device=device)
    return made.requires_grad_() if requires_grad else made


def asarray(
    obj: object, dtype: object = None, *, device: object = None, copy: bool | None = None
) -> _core.Tensor:
    """A tensor of the data: a copy, except of read-only arrays, which are shared.

    `copy=True` always copies. `copy=False` shares writable arrays too, and data that cannot be
    shared is an error; shared memory must not change while results that depend on it are pending.
    """
    return _core.asarray(obj, dtype, device=device, copy=copy)


def from_dlpack(x: object, /, *, device: object = None, copy: bool | None = None) -> _core.Tensor:
    """A tensor that shares the memory of an object with `__dlpack__`.

    The memory must not change while results that depend on it are pending.
    """
    return _core.from_dlpack(x, device=device, copy=copy)


def result_type(*arrays_and_dtypes: object) -> _core.DType:
    """The element type of a computation on these tensors, numbers and types."""
    return _core.result_type(*arrays_and_dtypes)
