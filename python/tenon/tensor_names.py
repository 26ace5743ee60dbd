"""Methods of tensors under PyTorch's names: those that no op has, and those that mean something
else in NumPy. A call that only one of the two could mean does what it means; a call that both could
mean is an error.
"""

from __future__ import annotations

from . import _core

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable, Iterator
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


def to(self: _Tensor, *target: Any, dtype: Any = None, device: Any = None) -> _Tensor:
    """`x` converted to a device, an element type, or both; for a tensor, to its device and type.

        >>> tn.ones(2).to("cpu", tn.float64).dtype
        tenon.float64
    """
    for each in (*target, dtype, device):
        if each is None:
            continue
        if isinstance(each, str) and isinstance(getattr(_core, each, None), _core.DType):
            text = f"to: {each!r} is an element type, not a device"
            _core._fail("value", text, f"x.to(tn.{each})")
        is_device = isinstance(each, (str, _core.Device)) or hasattr(each, "__tenon_device__")
        if is_device or each is device:
            self = self.to_device(each)
        elif isinstance(each, _Tensor):
            self = self.astype(each.dtype).to_device(each.device)
        elif type(each) is int:
            self.to_device(each)  # fails: devices have names
        else:
            self = self.astype(each)
    return self


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


def transpose(x: _Tensor, *axes: Any, **named: Any) -> _Tensor:
    """Permutes the axes, by default reversing them: `permute_dims(x, axes)`.

    Two integers exchange these axes, as in PyTorch.

        >>> tn.zeros((2, 3, 4)).transpose(1, 2).shape
        (2, 4, 3)
        >>> tn.zeros((2, 3, 4)).transpose(2, 0, 1).shape
        (4, 2, 3)
    """
    if named.keys() == {"dim0", "dim1"} and not axes:
        return _core.swapaxes(x, named["dim0"], named["dim1"])
    if len(axes) != 2 or named:
        return _core.permute_dims(x, *axes, **named)
    x = _core.asarray(x)
    if x.ndim == 2 and [axis % 2 for axis in axes] == [0, 1]:
        text = f"transpose: {axes} exchanges the axes in PyTorch and keeps them in NumPy"
        hint = "write x.T or x.swapaxes(0, 1), or x.permute_dims((0, 1))"
        _core._fail("value", f"{text}: {_text(x)}", hint)
    return _core.swapaxes(x, *axes)


def _repeat(self: _Tensor, *repeats: Any, **named: Any) -> _Tensor:
    """Each element `repeats` times along `axis`, as `tn.repeat`.

    Several integers repeat the whole tensor along each axis, as in PyTorch: `tn.tile`.

        >>> tn.arange(2).repeat(2).tolist(), tn.arange(2).repeat(2, 2).tolist()
        ([0, 0, 1, 1], [[0, 1, 0, 1], [0, 1, 0, 1]])
    """
    if len(repeats) < 2 or named:
        return _core.repeat(self, *repeats, **named)
    if len(repeats) == 2 and isinstance(repeats[1], int):
        tiles = self.ndim <= 2 and repeats[1] > 0  # PyTorch wants a number for every axis
        axis = repeats[1] if -self.ndim <= repeats[1] < self.ndim else None
        if tiles and axis is not None:
            text = f"repeat: {repeats} is repeats and axis in NumPy and repeats by axis in PyTorch"
            hint = f"write x.repeat({repeats[0]}, axis={axis}), or tn.tile(x, {repeats})"
            _core._fail("value", f"{text}: {_text(self)}", hint)
        if not tiles:
            return _core.repeat(self, *repeats)
    return _core.tile(self, repeats)


def _where(self: _Tensor, condition: Any, other: Any) -> _Tensor:
    """`tn.where(condition, x, other)`: `x` where the condition holds, `other` elsewhere."""
    condition = _core.asarray(condition)
    if condition.dtype != _core.bool:
        text = f"where: the condition is not bool: {_text(condition)}"
        _core._fail("type", text, "x.where(condition, other), or tn.where(condition, x, other)")
    return _core.where(condition, self, other)


def _t(self: _Tensor) -> _Tensor:
    """A matrix transposed; a vector as it is."""
    if self.ndim > 2:
        hint = "x.mT transposes the last two axes"
        _core._fail("value", f"t: more than two axes: {_text(self)}", hint)
    return _core.permute_dims(self)


def _text(x: _Tensor) -> str:
    return f"{x.dtype.name}{list(x.shape)}"


_copied: Callable[[_Tensor], _Tensor] = _Tensor.__copy__


def _copy(self: _Tensor) -> _Tensor:
    """Implement `copy.copy`: keep the class and the attributes."""
    return _as_class(self, vars(self) if type(self) is not _Tensor else {})


def _deepcopy(self: _Tensor, memo: dict[int, Any]) -> _Tensor:
    if type(self) is _Tensor:
        return _copied(self)
    import copy

    return _as_class(self, copy.deepcopy(vars(self), memo))


def _as_class(self: _Tensor, attributes: dict[str, Any]) -> _Tensor:
    made, kind = _copied(self), type(self)
    if kind is _Tensor:
        return made
    own = kind.__new__(kind)
    _Tensor.__init__(own, made)
    vars(own).update(attributes)
    return own


def _cpu(self: _Tensor) -> _Tensor:
    """`x.to("cpu")`."""
    return self.to_device("cpu")


def _cuda(self: _Tensor, device: int | str | _core.Device | None = None) -> _Tensor:
    """`x.to("cuda")`, or on the GPU of that number or name."""
    return self.to_device(f"cuda:{device}" if isinstance(device, int) else device or "cuda")


def _local(self: _Tensor) -> _Tensor:
    """The block of this worker, on the host, of a tensor that is divided over a mesh of processes;
    of any other tensor, all of it."""
    blocks = _core._blocks(self)
    return blocks[0] if len(blocks) == 1 else self.to_device("cpu")


def _contiguous(self: _Tensor) -> _Tensor:
    """The tensor itself: elements of all stand one after the other."""
    return self


def _norm(self: _Tensor, *args: Any, **kwargs: Any) -> _Tensor:
    """`tn.linalg.norm(x)`."""
    from .linalg import norm

    return norm(self, *args, **kwargs)


def _reversed(self: _Tensor) -> Iterator[_Tensor]:
    """Along the first axis, from the end."""
    return iter(_core.flip(self, 0))


def _round(self: _Tensor, ndigits: int | None = None) -> _Tensor:
    return _core.round(self, ndigits or 0)


class Elsewhere:
    """An attribute that users look for and `owner` has not, with what there is instead."""

    def __init__(self, owner: str, name: str, instead: str) -> None:
        self._text = f"{owner!r} object has no attribute {name!r}; here: {instead}"

    def __get__(self, tensor: Any, owner: Any) -> Any:
        raise AttributeError(self._text)


_IN_PLACE = {  # what they are made of; tensors do not change
    "add_": "x += y", "clamp_": "x = x.clamp(low, high)", "copy_": "x[...] = y", "div_": "x /= y",
    "fill_": "x[...] = value", "mul_": "x *= y", "sub_": "x -= y", "zero_": "x[...] = 0",
}  # fmt: skip
_MISSING = {
    "data": "x.detach()",
    "is_cuda": 'x.device.kind == "cuda"',
}


def _dir(self: _Tensor) -> list[str]:
    """List the attributes, without names that only give advice."""
    return [name for name in object.__dir__(self) if name not in _IN_PLACE | _MISSING]


_METHODS: dict[str, Any] = {
    **{name: _conversion(name, dtype) for name, dtype in _CONVERSIONS.items()},
    "to": to,
    "__dir__": _dir,
    "norm": _norm,
    "__reversed__": _reversed,
    "__round__": _round,
    "clone": _clone,
    "numel": _numel,
    "dim": _dim,
    "masked_fill": _masked_fill,
    "transpose": transpose,
    "repeat": _repeat,
    "where": _where,
    "cpu": _cpu,
    "cuda": _cuda,
    "local": property(_local),
    "contiguous": _contiguous,
    "__copy__": _copy,
    "__deepcopy__": _deepcopy,
    "t": _t,
}


def install(tensor: type) -> None:
    for name, method in _METHODS.items():
        setattr(tensor, name, method)
    for name, instead in (_IN_PLACE | _MISSING).items():
        setattr(tensor, name, Elsewhere("Tensor", name, instead))
