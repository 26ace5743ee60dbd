"""The parts of the Python array API standard that are not ops."""

from __future__ import annotations

from . import _core

e = 2.718281828459045
pi = 3.141592653589793
inf = float("inf")
nan = float("nan")
newaxis = None
__array_api_version__ = "2025.12"

_SIGNED = ("int8", "int16", "int32", "int64")
_UNSIGNED = ("uint8", "uint16", "uint32", "uint64")
_REAL = ("float16", "bfloat16", "float32", "float64")
_COMPLEX = ("complex64", "complex128")
_KINDS = {
    "bool": ("bool",),
    "signed integer": _SIGNED,
    "unsigned integer": _UNSIGNED,
    "integral": _SIGNED + _UNSIGNED,
    "real floating": _REAL,
    "complex floating": _COMPLEX,
    "numeric": _SIGNED + _UNSIGNED + _REAL + _COMPLEX,
}
# Bits of the mantissa, least and largest exponent of a normal number.
_FLOATS = {
    "float8_e4m3": (3, -6, 8),
    "float8_e5m2": (2, -14, 15),
    "float16": (10, -14, 15),
    "bfloat16": (7, -126, 127),
    "float32": (23, -126, 127),
    "float64": (52, -1022, 1023),
}
_PARTS = {"complex64": "float32", "complex128": "float64"}


class finfo:
    """Limits of a floating-point type: `bits eps max min smallest_normal dtype`."""

    __slots__ = ("bits", "dtype", "eps", "max", "min", "smallest_normal")

    def __init__(self, type: object, /) -> None:
        dtype = _dtype_of(type)
        name = _PARTS.get(dtype.name, dtype.name)
        if name not in _FLOATS:
            _core._fail("type", f"finfo: not a floating-point type: {dtype.name}")
        mantissa, low, high = _FLOATS[name]
        self.dtype = _core.dtype(name)
        self.bits = 8 * self.dtype.itemsize
        self.eps = 2.0**-mantissa
        # e4m3 gives its last pattern to NaN, the others a whole exponent to infinities.
        steps = 2 if name == "float8_e4m3" else 1
        self.max = (2.0 - steps * self.eps) * 2.0**high
        self.min = -self.max
        self.smallest_normal = 2.0**low

    def __repr__(self) -> str:
        return f"finfo(min={self.min}, max={self.max}, eps={self.eps}, dtype={self.dtype.name})"


class iinfo:
    """Limits of an integer type: `bits max min dtype`."""

    __slots__ = ("bits", "dtype", "max", "min")

    def __init__(self, type: object, /) -> None:
        self.dtype = _dtype_of(type)
        if self.dtype.name not in _KINDS["integral"]:
            _core._fail("type", f"iinfo: not an integer type: {self.dtype.name}")
        self.bits = 8 * self.dtype.itemsize
        signed = self.dtype.name in _SIGNED
        self.min = -(2 ** (self.bits - 1)) if signed else 0
        self.max = 2 ** (self.bits - signed) - 1

    def __repr__(self) -> str:
        return f"iinfo(min={self.min}, max={self.max}, dtype={self.dtype.name})"


def _dtype_of(type: object) -> _core.DType:
    return type.dtype if isinstance(type, _core.Tensor) else _core.dtype(type)


def isdtype(dtype: object, kind: object) -> bool:
    """Whether `dtype` is of `kind`: a type, the name of a kind, or a tuple of these."""
    if isinstance(kind, tuple):
        return any(isdtype(dtype, k) for k in kind)
    dtype = _core.dtype(dtype)
    if isinstance(kind, str) and kind in _KINDS:
        return dtype.name in _KINDS[kind]
    if isinstance(kind, str):
        known = ", ".join(_KINDS)
        _core._fail("value", f"isdtype: unknown kind: {kind!r}; known: {known}")
    return dtype == _core.dtype(kind)


def can_cast(from_: object, to: object, /) -> bool:
    """Whether promotion can convert `from_` (a type or a tensor) to `to`."""
    to = _core.dtype(to)
    return _core.result_type(_dtype_of(from_), to) == to


def broadcast_shapes(*shapes: tuple[int, ...]) -> tuple[int, ...]:
    """The shape that all `shapes` broadcast to."""
    result: list[int] = []
    for shape in shapes:
        shape = (shape,) if isinstance(shape, int) else tuple(shape)
        result = [1] * (len(shape) - len(result)) + result
        for i, n in enumerate(shape, len(result) - len(shape)):
            if n != 1 and result[i] not in (1, n):
                given = ", ".join(str(list(s)) for s in shapes)
                _core._fail("value", f"broadcast_shapes: sizes differ: {given}")
            result[i] = n if result[i] == 1 else result[i]
    return tuple(result)


class __array_namespace_info__:
    """Describes this implementation of the array API."""

    def capabilities(self) -> dict[str, object]:
        """Boolean indexing and data-dependent shapes work; the number of axes is bounded."""
        return {"boolean indexing": True, "data-dependent shapes": True, "max dimensions": 16}

    def default_device(self) -> _core.Device:
        """The device on which tensors are created by default."""
        return _core.default_device()

    def default_dtypes(self, *, device: object = None) -> dict[str, _core.DType]:
        """The default element types of Python numbers."""
        return {
            "real floating": _core.float32,
            "complex floating": _core.complex64,
            "integral": _core.int64,
            "indexing": _core.int64,
        }

    def dtypes(self, *, device: object = None, kind: object = None) -> dict[str, _core.DType]:
        """The element types of the standard, by name."""
        names = ("bool", *(n for n in _KINDS["numeric"] if n != "bfloat16"))
        found = {name: _core.dtype(name) for name in names}
        return {n: d for n, d in found.items() if kind is None or isdtype(d, kind)}

    def devices(self) -> list[_core.Device]:
        """All devices."""
        return _core.devices()
