"""The Python array API standard, 2025.12: names and signatures."""

CONSTANTS = ["e", "inf", "nan", "newaxis", "pi"]
DTYPES = [
    "bool",
    "int8",
    "int16",
    "int32",
    "int64",
    "uint8",
    "uint16",
    "uint32",
    "uint64",
    "float32",
    "float64",
    "complex64",
    "complex128",
]

# name: parameters in order; "*" begins those that may be given by keyword only, "?" have a default.
CREATION = {
    "arange": "start ?stop ?step * ?dtype ?device",
    "asarray": "obj * ?dtype ?device ?copy",
    "empty": "shape * ?dtype ?device",
    "empty_like": "x * ?dtype ?device",
    "eye": "n_rows ?n_cols * ?k ?dtype ?device",
    "from_dlpack": "x * ?device ?copy",
    "full": "shape fill_value * ?dtype ?device",
    "full_like": "x fill_value * ?dtype ?device",
    "linspace": "start stop num * ?dtype ?device ?endpoint",
    "meshgrid": "*arrays * ?indexing",
    "ones": "shape * ?dtype ?device",
    "ones_like": "x * ?dtype ?device",
    "tril": "x * ?k",
    "triu": "x * ?k",
    "zeros": "shape * ?dtype ?device",
    "zeros_like": "x * ?dtype ?device",
}
DATA_TYPES = {
    "astype": "x dtype * ?copy ?device",
    "can_cast": "from_ to",
    "finfo": "type",
    "iinfo": "type",
    "isdtype": "dtype kind",
    "result_type": "*arrays_and_dtypes",
}
UNARY = (
    "abs acos acosh asin asinh atan atanh bitwise_invert ceil conj cos cosh exp expm1 floor "
    "imag isfinite isinf isnan log log1p log2 log10 logical_not negative positive real "
    "reciprocal round sign signbit sin sinh square sqrt tan tanh trunc"
).split()
BINARY = (
    "add atan2 bitwise_and bitwise_left_shift bitwise_or bitwise_right_shift bitwise_xor "
    "copysign divide equal floor_divide greater greater_equal hypot less less_equal "
    "logaddexp logical_and logical_or logical_xor maximum minimum multiply nextafter "
    "not_equal pow remainder subtract"
).split()
ELEMENTWISE = (
    dict.fromkeys(UNARY, "x") | dict.fromkeys(BINARY, "x1 x2") | {"clip": "x ?min ?max"}
)
OTHERS = {
    "take": "x indices * ?axis",
    "take_along_axis": "x indices * ?axis",
    "matmul": "x1 x2",
    "matrix_transpose": "x",
    "tensordot": "x1 x2 * ?axes",
    "vecdot": "x1 x2 * ?axis",
    "broadcast_arrays": "*arrays",
    "broadcast_shapes": "*shapes",
    "broadcast_to": "x shape",
    "concat": "arrays * ?axis",
    "expand_dims": "x * ?axis",
    "flip": "x * ?axis",
    "moveaxis": "x source destination",
    "permute_dims": "x axes",
    "repeat": "x repeats * ?axis",
    "reshape": "x shape * ?copy",
    "roll": "x shift * ?axis",
    "squeeze": "x axis",
    "stack": "arrays * ?axis",
    "tile": "x repetitions",
    "unstack": "x * ?axis",
    "argmax": "x * ?axis ?keepdims",
    "argmin": "x * ?axis ?keepdims",
    "count_nonzero": "x * ?axis ?keepdims",
    "nonzero": "x",
    "searchsorted": "x1 x2 * ?side ?sorter",
    "where": "condition x1 x2",
    "isin": "x1 x2 * ?invert",
    "unique_all": "x",
    "unique_counts": "x",
    "unique_inverse": "x",
    "unique_values": "x",
    "argsort": "x * ?axis ?descending ?stable",
    "sort": "x * ?axis ?descending ?stable",
    "cumulative_prod": "x * ?axis ?dtype ?include_initial",
    "cumulative_sum": "x * ?axis ?dtype ?include_initial",
    "max": "x * ?axis ?keepdims",
    "mean": "x * ?axis ?keepdims",
    "min": "x * ?axis ?keepdims",
    "prod": "x * ?axis ?dtype ?keepdims",
    "std": "x * ?axis ?correction ?keepdims",
    "sum": "x * ?axis ?dtype ?keepdims",
    "var": "x * ?axis ?correction ?keepdims",
    "all": "x * ?axis ?keepdims",
    "any": "x * ?axis ?keepdims",
    "diff": "x * ?axis ?n ?prepend ?append",
}
FUNCTIONS = CREATION | DATA_TYPES | ELEMENTWISE | OTHERS

_FFT = "x * ?n ?axis ?norm"
_FFTN = "x * ?s ?axes ?norm"
FFT = {
    "fft": _FFT,
    "ifft": _FFT,
    "fftn": _FFTN,
    "ifftn": _FFTN,
    "rfft": _FFT,
    "irfft": _FFT,
    "rfftn": _FFTN,
    "irfftn": _FFTN,
    "hfft": _FFT,
    "ihfft": _FFT,
    "fftfreq": "n * ?d ?dtype ?device",
    "rfftfreq": "n * ?d ?dtype ?device",
    "fftshift": "x * ?axes",
    "ifftshift": "x * ?axes",
}
LINALG = {
    "cholesky": "x * ?upper",
    "cross": "x1 x2 * ?axis",
    "det": "x",
    "diagonal": "x * ?offset",
    "eig": "x",
    "eigh": "x",
    "eigvals": "x",
    "eigvalsh": "x",
    "inv": "x",
    "matmul": "x1 x2",
    "matrix_norm": "x * ?keepdims ?ord",
    "matrix_power": "x n",
    "matrix_rank": "x * ?rtol",
    "matrix_transpose": "x",
    "outer": "x1 x2",
    "pinv": "x * ?rtol",
    "qr": "x * ?mode",
    "slogdet": "x",
    "solve": "x1 x2",
    "svd": "x * ?full_matrices",
    "svdvals": "x",
    "tensordot": "x1 x2 * ?axes",
    "trace": "x * ?offset ?dtype",
    "vecdot": "x1 x2 * ?axis",
    "vector_norm": "x * ?axis ?keepdims ?ord",
}
MODULES = {"": FUNCTIONS, "fft": FFT, "linalg": LINALG}

ATTRIBUTES = ["dtype", "device", "mT", "ndim", "shape", "size", "T"]
METHODS = (
    "__abs__ __add__ __and__ __array_namespace__ __bool__ __complex__ __dlpack__ "
    "__dlpack_device__ __eq__ __float__ __floordiv__ __ge__ __getitem__ __gt__ __index__ "
    "__int__ __invert__ __le__ __lshift__ __lt__ __matmul__ __mod__ __mul__ __ne__ __neg__ "
    "__or__ __pos__ __pow__ __rshift__ __setitem__ __sub__ __truediv__ __xor__ to_device "
    "__radd__ __rsub__ __rmul__ __rtruediv__ __rfloordiv__ __rpow__ __rmod__ __rmatmul__ "
    "__rand__ __ror__ __rxor__ __rlshift__ __rrshift__"
).split()
