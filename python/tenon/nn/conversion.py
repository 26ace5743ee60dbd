"""Element types of modules, by PyTorch's names."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, TypeVar

import tenon as tn

from .. import _core

Self = TypeVar("Self", bound="Convertible")

_FLOATING = ("real floating", "complex floating")


class Convertible:
    """The methods of a module that convert what it holds."""

    def apply(self: Self, f: Callable[[tn.Tensor], tn.Tensor]) -> Self:
        raise NotImplementedError

    def to(
        self: Self, target: Any = None, *, dtype: tn.DType | str | None = None, device: Any = None
    ) -> Self:
        """Moves parameters and buffers to a device, or converts those of floating point.

        A tensor stands for its element type and its device. Integers keep their type.

            >>> tn.nn.Linear(2, 1).to(tn.bfloat16).weight.dtype
            tenon.bfloat16
        """
        if isinstance(target, tn.Tensor):
            target, device = target.dtype, target.device
        is_name = isinstance(target, str) and not isinstance(getattr(tn, target, None), tn.DType)
        if is_name or isinstance(target, tn.Device):
            target, device = None, target
        if device is not None:
            place = tn.Device(device)
            self.apply(lambda w: w.to_device(place))
        wanted = target if dtype is None else dtype
        if wanted is None:
            return self
        wanted = tn.dtype(wanted)
        if not tn.isdtype(wanted, _FLOATING):
            hint = "module.apply(lambda w: w.astype(...)) converts whatever there is"
            _core._fail("type", f"to: parameters are floating-point, not {wanted.name}", hint)
        return self.apply(lambda w: w.astype(wanted) if tn.isdtype(w.dtype, _FLOATING) else w)

    def half(self: Self) -> Self:
        """`to(tn.float16)`."""
        return self.to(tn.float16)

    def bfloat16(self: Self) -> Self:
        """`to(tn.bfloat16)`."""
        return self.to(tn.bfloat16)

    def float(self: Self) -> Self:
        """`to(tn.float32)`."""
        return self.to(tn.float32)

    def double(self: Self) -> Self:
        """`to(tn.float64)`."""
        return self.to(tn.float64)

    def cpu(self: Self) -> Self:
        """`to("cpu")`."""
        return self.to("cpu")
