"""Methods of tensors under PyTorch's names, where no op has that name."""

from __future__ import annotations

from . import _core

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable
    from typing import Any

_Tensor = _core.Tensor

# `x.float()` and its like: the element types they stand for.
_CONVERSIONS = {
    "bfloat16": _core.bfloat16,
    "double": _core.float64,
    "float": _core.float32,
    "half": _core.float16,
    "int": _core.int32,
    "long": _core.int64,
}


def _conversion(name: str, dtype: _core.DType) -> Callable[[_Tensor], _Tensor]:
    def convert(self: _Tensor) -> _Tensor:
        return self.astype(dtype)

    convert.__name__ = name
    convert.__doc__ = f"`x.astype(tn.{dtype.name})`."
    return convert


def _to(self: _Tensor, target: Any) -> _Tensor:
    """`x.astype(target)`, or with the element type of another tensor; "cpu": `x`."""
    if isinstance(target, str):
        if target != "cpu":
            _core._fail("value", f"to: tensors are on the CPU; there is no device {target!r} yet")
        return self
    return self.astype(target.dtype if isinstance(target, _Tensor) else target)


def _clone(self: _Tensor) -> _Tensor:
    """A copy, with a derivative: `tn.copy(x)`."""
    return _core.copy(self)


def _numel(self: _Tensor) -> int:
    """The number of elements, `x.size`."""
    return self.size


def _dim(self: _Tensor) -> int:
    """The number of axes, `x.ndim`."""
    return self.ndim


def _masked_fill(self: _Tensor, mask: Any, value: Any) -> _Tensor:
    """`tn.where(mask, value, x)`, in the type of `x`."""
    return _core.where(mask, value, self).astype(self.dtype)


def install(tensor: type) -> None:
    for name, dtype in _CONVERSIONS.items():
        setattr(tensor, name, _conversion(name, dtype))
    tensor.to = _to  # type: ignore[attr-defined]
    tensor.clone = _clone  # type: ignore[attr-defined]
    tensor.numel = _numel  # type: ignore[attr-defined]
    tensor.dim = _dim  # type: ignore[attr-defined]
    tensor.masked_fill = _masked_fill  # type: ignore[attr-defined]
