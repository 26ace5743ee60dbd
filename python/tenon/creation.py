"""Tensors from Python data and from other libraries."""

from __future__ import annotations

from . import _core


def array(
    obj: object, dtype: object = None, *, device: object = None, requires_grad: bool = False
) -> _core.Tensor:
    """A tensor with a copy of the data: numbers, nested lists, arrays.

    Floats become float32 and integers int64, unless `dtype` is given. With `requires_grad`,
    `backward()` stores a gradient in the tensor.
    """
    made = _core.array(obj, dtype, device=device)
    return made.requires_grad_() if requires_grad else made


def asarray(
    obj: object, dtype: object = None, *, device: object = None, copy: bool | None = None
) -> _core.Tensor:
    """A tensor of the data: a copy, except of read-only arrays, which are shared.

    `copy=True` always copies. `copy=False` also shares writable arrays, and fails for data that
    cannot be shared. Do not write to shared memory while results that depend on it are pending.
    """
    return _core.asarray(obj, dtype, device=device, copy=copy)


def from_dlpack(x: object, /, *, device: object = None, copy: bool | None = None) -> _core.Tensor:
    """A tensor that shares the memory of an object with `__dlpack__`.

    Do not write to the memory while results that depend on it are pending.
    """
    return _core.from_dlpack(x, device=device, copy=copy)


def result_type(*arrays_and_dtypes: object) -> _core.DType:
    """The element type that these tensors, numbers and types promote to."""
    return _core.result_type(*arrays_and_dtypes)
