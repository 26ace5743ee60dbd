"""Element types of modules, by PyTorch's names."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, TypeVar

import tenon as tn

from .. import _core

Self = TypeVar("Self", bound="Convertible")

_FLOATING = ("real floating", "complex floating")


def _is_place(given: Any) -> bool:
    """Whether it stands for a device; a number is refused as one."""
    if isinstance(given, str):
        return not isinstance(getattr(tn, given, None), tn.DType)
    return isinstance(given, tn.Device) or type(given) is int


class Convertible:
    """The methods of a module that convert what it holds."""

    def apply(self: Self, f: Callable[[tn.Tensor], tn.Tensor]) -> Self:
        raise NotImplementedError

    def to(
        self: Self, *target: Any, dtype: tn.DType | str | None = None, device: Any = None
    ) -> Self:
        """Moves the module to a device, converts its floating-point parameters and buffers, or
        both: `to("cuda:0", tn.bfloat16)`.

        A tensor as argument selects its element type and device. Integers keep their type. Tensors
        whose names begin with an underscore are moved too.

            >>> tn.nn.Linear(2, 1).to(tn.bfloat16).weight.dtype
            tenon.bfloat16
        """
        for each in target:
            if isinstance(each, tn.Tensor):
                dtype, device = each.dtype, each.device
            elif _is_place(each):
                device = each
            elif each is not None:
                dtype = each
        if device is not None:
            self._move(tn.Device(device))
        if dtype is None:
            return self
        wanted = tn.dtype(dtype)
        if not tn.isdtype(wanted, _FLOATING):
            hint = "module.apply(lambda w: w.astype(...)) converts whatever there is"
            _core._fail("type", f"to: parameters are floating-point, not {wanted.name}", hint)
        return self.apply(lambda w: w.astype(wanted) if tn.isdtype(w.dtype, _FLOATING) else w)

    def _move(self, place: tn.Device) -> None:
        raise NotImplementedError

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

    def cuda(self: Self, device: int | str | tn.Device | None = None) -> Self:
        """`to("cuda")`, or to the GPU of that number or name."""
        return self.to(f"cuda:{device}" if isinstance(device, int) else device or "cuda")
