"""The package as an implementation of the array API standard."""

import ast
import inspect
import math
import operator
import pathlib

import numpy as np
import pytest

import tenon as tn
from array_api_names import ATTRIBUTES, BINARY, CONSTANTS, DTYPES, METHODS, MODULES, UNARY


def function(module, name):
    return getattr(getattr(tn, module) if module else tn, name)


@pytest.mark.parametrize(
    ("module", "name"), [(m, name) for m in MODULES for name in sorted(MODULES[m])]
)
def test_function_has_the_standard_parameters(module, name):
    words = MODULES[module][name].split()
    if name in ("finfo", "iinfo"):
        return
    given = inspect.signature(function(module, name)).parameters
    in_order = []
    for word in words:
        if word == "*":
            break
        in_order.append(word.lstrip("?*"))
    harmless = {"device", "copy"}  # taken by every function that may get them, although not listed
    for word in words:
        plain = word.lstrip("?*")
        if plain and plain not in harmless and not word.startswith("*"):
            names = [plain, "obj"] if name == "from_dlpack" else [plain]
            assert any(n in given for n in names), f"{name}: no parameter {plain}: {list(given)}"
            if word.startswith("?"):
                assert (
                    given[plain].default is not inspect.Parameter.empty
                ), f"{name}: {plain} has no default"
    positional = [n for n in given if n in in_order]
    assert positional == [n for n in in_order if n in given]


def test_constants_dtypes_and_methods_are_there():
    assert (tn.e, tn.pi, tn.inf, tn.newaxis) == (math.e, math.pi, math.inf, None)
    assert math.isnan(tn.nan)
    for name in CONSTANTS + DTYPES:
        assert hasattr(tn, name), name
    x = tn.ones((2, 3))
    for name in ATTRIBUTES + METHODS:
        assert hasattr(x, name), name
    assert tn.__array_api_version__ == "2025.12"


def test_namespace():
    x = tn.ones(2)
    assert x.__array_namespace__() is tn
    assert x.__array_namespace__(api_version="2025.12") is tn
    with pytest.raises(ValueError):
        x.__array_namespace__(api_version="1999.01")
    info = tn.__array_namespace_info__()
    assert info.capabilities()["boolean indexing"] and info.capabilities()["data-dependent shapes"]
    assert info.default_dtypes()["real floating"] == tn.float32
    assert set(info.dtypes()) >= set(DTYPES)
    assert set(info.dtypes(kind="signed integer")) == {"int8", "int16", "int32", "int64"}
    assert info.default_device() in info.devices()
    assert x.device == info.default_device() and x.to_device(x.device) is not None


def test_calls_as_the_standard_writes_them():
    x = tn.reshape(tn.arange(6, dtype=tn.float32), (2, 3))
    checks = [
        (tn.zeros((2,), dtype=tn.int8, device=x.device), np.zeros(2, np.int8)),
        (tn.asarray([1, 2], dtype=tn.float64, copy=True), np.array([1.0, 2.0])),
        (tn.full((2, 2), 7), np.full((2, 2), 7)),
        (tn.eye(2, 3, k=1, dtype=tn.int32), np.eye(2, 3, 1, np.int32)),
        (
            tn.linspace(0, 1, 5, endpoint=False),
            np.linspace(0, 1, 5, endpoint=False, dtype=np.float32),
        ),
        (tn.arange(1, 10, 3), np.arange(1, 10, 3)),
        (
            tn.meshgrid(tn.arange(2), tn.arange(3), indexing="ij")[1],
            np.meshgrid(*map(np.arange, (2, 3)), indexing="ij")[1],
        ),
        (tn.broadcast_arrays(x, tn.ones(3))[1], np.ones((2, 3), np.float32)),
        (tn.sum(x, axis=1, keepdims=True), [[3.0], [12.0]]),
        (tn.sum(x, axis=(0, 1), dtype=tn.float64), np.float64(15)),
        (tn.sort(x, axis=-1, descending=True), [[2, 1, 0], [5, 4, 3]]),
        (tn.std(x, axis=0, correction=1), np.std(np.arange(6.0).reshape(2, 3), axis=0, ddof=1)),
        (tn.permute_dims(x, (1, 0)), np.arange(6).reshape(2, 3).T),
        (tn.squeeze(tn.ones((1, 2, 1)), (0, 2)), np.ones(2)),
        (tn.expand_dims(x, axis=0), np.arange(6).reshape(1, 2, 3)),
        (tn.concat([x, x], axis=None), np.tile(np.arange(6), 2)),
        (tn.stack([x, x], axis=-1)[..., 0], np.arange(6).reshape(2, 3)),
        (tn.take(x, tn.asarray([1]), axis=1), [[1], [4]]),
        (tn.tensordot(x, x, axes=((1,), (1,))), [[5, 14], [14, 50]]),
        (tn.tensordot(x, x.T, axes=1), [[5, 14], [14, 50]]),
        (tn.vecdot(x, x, axis=-1), [5, 50]),
        (tn.repeat(x, 2, axis=1)[0], [0, 0, 1, 1, 2, 2]),
        (tn.clip(x, 1, 3), np.clip(np.arange(6).reshape(2, 3), 1, 3)),
        (tn.clip(x, max=2), np.minimum(np.arange(6).reshape(2, 3), 2)),
        (tn.where(x > 2, x, 0), [[0, 0, 0], [3, 4, 5]]),
        (tn.searchsorted(tn.asarray([1, 3]), tn.asarray([2, 3]), side="right"), [1, 2]),
        (tn.cumulative_sum(x, axis=1, include_initial=True)[1], [0, 3, 7, 12]),
        (tn.diff(x, axis=1, n=1, prepend=tn.zeros((2, 1))), [[0, 1, 1], [3, 1, 1]]),
        (tn.unique_counts(tn.asarray([3, 1, 3])).counts, [1, 2]),
        (tn.nonzero(tn.asarray([0, 2, 3]))[0], [1, 2]),
        (tn.isin(tn.asarray([1, 2]), tn.asarray([2, 5]), invert=True), [True, False]),
        (tn.astype(x, tn.int16, copy=False), np.arange(6).reshape(2, 3)),
        (tn.reshape(x, (3, 2), copy=True), np.arange(6).reshape(3, 2)),
        (tn.round(tn.asarray([0.5, 1.5, 2.5])), [0, 2, 2]),
    ]
    for number, (got, want) in enumerate(checks):
        np.testing.assert_allclose(got.numpy(), want, rtol=1e-6, err_msg=f"check {number}")
    assert tn.broadcast_shapes((2, 1), (3,)) == (2, 3)
    assert isinstance(tn.unstack(x), (list, tuple)) and len(tn.unstack(x)) == 2


def test_ranges_beyond_int64():
    for ends in [
        (0, 2**63 + 2**62, 2**62), (2**63 - 1, 2**63 + 2), (2**63 + 2, 2**63 - 2, -1),
        (0, 2**64 - 1, 2**63), (3, 2**63, 2**63), (2**64 - 1, -1, -(2**63)), (5, 2**63, -1),
    ]:
        want = list(range(*ends))
        assert tn.arange(*ends, dtype=tn.uint64).tolist() == want
        assert tn.compile(lambda ends=ends: tn.arange(*ends, dtype=tn.uint64))().tolist() == want
        assert tn.arange(*ends, dtype=tn.float64).tolist() == [float(n) for n in want]
    f = tn.compile(lambda x: tn.arange(x.shape[0], 2**63, 2**62, dtype=tn.uint64), shapeless=True)
    assert [f(tn.ones(n)).tolist() for n in (3, 4)] == [[3, 3 + 2**62], [4, 4 + 2**62]]


def test_repeats_that_differ():
    assert tn.repeat(tn.arange(3), tn.asarray([2, 0, 1])).tolist() == [0, 0, 2]


INTS = ["int8", "int16", "int32", "int64"]
NATURALS = ["uint8", "uint16", "uint32", "uint64"]


def expected_promotion(a, b):
    """docs/design/002-promotion.md."""
    order = [
        "bool",
        *INTS,
        *NATURALS,
        "float16",
        "bfloat16",
        "float32",
        "float64",
        "complex64",
        "complex128",
    ]
    a, b = sorted((a, b), key=order.index)
    if a == b or a == "bool":
        return b
    if a in INTS and b in NATURALS:
        if b == "uint64":
            return "float64"
        bits = max(int(a[3:]), 2 * int(b[4:]))
        return f"int{bits}"
    if {a, b} == {"float16", "bfloat16"}:
        return "float32"
    if a == "float64" and b == "complex64":
        return "complex128"
    return b


ALL_TYPES = [
    "bool",
    *INTS,
    *NATURALS,
    "float16",
    "bfloat16",
    "float32",
    "float64",
    "complex64",
    "complex128",
]


@pytest.mark.parametrize("a", ALL_TYPES)
def test_promotion(a):
    for b in ALL_TYPES:
        want = expected_promotion(a, b)
        x, y = tn.ones(2, dtype=getattr(tn, a)), tn.ones(2, dtype=getattr(tn, b))
        assert tn.result_type(x.dtype, y.dtype).name == want, (a, b)
        assert tn.result_type(x, y.dtype).name == want
        assert (x * y).dtype.name == want, (a, b)
        assert tn.concat([x, y]).dtype.name == want
        assert tn.where(tn.asarray(True), x, y).dtype.name == want
        assert (x == y).dtype == tn.bool and bool(tn.all(x == y))


def test_numbers_choose_a_kind_never_a_width():
    for name, number, want in [
        ("float16", 1.0, "float16"),
        ("bfloat16", 2, "bfloat16"),
        ("float32", True, "float32"),
        ("int32", 1.5, "float32"),
        ("uint8", 1, "uint8"),
        ("bool", 1, "int64"),
        ("bool", 1.5, "float32"),
        ("float32", 1j, "complex64"),
        ("float64", 1j, "complex128"),
        ("int8", 1j, "complex64"),
        ("complex64", 1.5, "complex64"),
        ("bool", True, "bool"),
    ]:
        x = tn.ones(2, dtype=getattr(tn, name))
        assert (x * number).dtype.name == want, (name, number)
        assert (number * x).dtype.name == want, (name, number)
    assert tn.asarray(1).dtype == tn.int64 and tn.asarray(1.0).dtype == tn.float32
    assert tn.asarray(True).dtype == tn.bool and tn.asarray(1j).dtype == tn.complex64
    assert tn.asarray([1, 2.5]).dtype == tn.float32
    assert (tn.asarray([3, 4]) / 2).dtype == tn.float32
    with pytest.raises((ValueError, OverflowError)):
        tn.ones(1, dtype=tn.uint8) + 300
    assert bool((tn.ones(1, dtype=tn.uint8) < 300).item())
    assert tn.asarray([1, -1]).dtype == tn.int64


def test_reductions_of_small_integers_are_wide():
    for name, want in [
        ("int8", "int64"),
        ("uint8", "uint64"),
        ("bool", "int64"),
        ("int32", "int64"),
        ("float16", "float16"),
    ]:
        assert tn.sum(tn.ones(3, dtype=getattr(tn, name))).dtype.name == want, name
    assert tn.sum(tn.full((300,), 100, dtype=tn.int8)).item() == 30000
    assert tn.mean(tn.asarray([1, 2])).dtype == tn.float32
    assert tn.sum(tn.ones(4096 * 16, dtype=tn.bfloat16)).item() == 65536


def test_total_operations():
    i = tn.asarray([7, -7, 0, -128], dtype=tn.int8)
    assert (i // 0).tolist() == [0, 0, 0, 0] and (i % 0).tolist() == [0, 0, 0, 0]
    assert (i // -1).tolist() == [-7, 7, 0, -128] and (i % -1).tolist() == [0, 0, 0, 0]
    assert tn.abs(i).tolist() == [7, 7, 0, -128] and (-i).tolist() == [-7, 7, 0, -128]
    assert (i << 9).tolist() == [0, 0, 0, 0] and (i >> 9).tolist() == [0, -1, 0, -1]
    f = tn.asarray([1e10, -1e10, math.nan, -1.9, math.inf])
    assert f.astype(tn.int32).tolist() == [2**31 - 1, -(2**31), 0, -1, 2**31 - 1]
    assert f.astype(tn.uint8).tolist() == [255, 0, 0, 0, 255]
    assert tn.asarray([300, -1]).astype(tn.uint8).tolist() == [44, 255]
    assert tn.asarray([math.nan, 0.0]).astype(tn.bool).tolist() == [True, False]
    x, y = tn.asarray([math.nan, 1.0]), tn.asarray([1.0, math.nan])
    assert all(map(math.isnan, tn.maximum(x, y).tolist() + tn.minimum(x, y).tolist()))
    big = tn.asarray([2**64 - 1], dtype=tn.uint64)
    assert (big > tn.asarray([-1])).tolist() == [True] and (big == tn.asarray([-1])).tolist() == [
        False
    ]
    with pytest.raises(ValueError):
        tn.asarray([2, 3]) ** -1


def test_special_cases_of_the_standard():
    inf, nan = math.inf, math.nan
    cases = [
        ("atan2", (0.0, -0.0), math.pi),
        ("atan2", (-0.0, -0.0), -math.pi),
        ("atan2", (inf, -inf), 3 * math.pi / 4),
        ("pow", (nan, 0.0), 1.0),
        ("pow", (1.0, nan), 1.0),
        ("pow", (-1.0, inf), 1.0),
        ("pow", (0.0, -1.0), inf),
        ("pow", (-0.0, -1.0), -inf),
        ("pow", (-8.0, 1 / 3), nan),
        ("pow", (2.0, -inf), 0.0),
        ("divide", (1.0, 0.0), inf),
        ("divide", (1.0, -0.0), -inf),
        ("divide", (0.0, 0.0), nan),
        ("floor_divide", (-7.0, 2.0), -4.0),
        ("remainder", (-7.0, 2.0), 1.0),
        ("remainder", (7.0, -2.0), -1.0),
        ("remainder", (1.0, inf), 1.0),
        ("hypot", (inf, nan), inf),
        ("logaddexp", (-inf, -inf), -inf),
        ("exp", (-inf,), 0.0),
        ("log", (0.0,), -inf),
        ("log", (-1.0,), nan),
        ("log1p", (-1.0,), -inf),
        ("sqrt", (-0.0,), -0.0),
        ("sqrt", (-1.0,), nan),
        ("tanh", (inf,), 1.0),
        ("atan", (inf,), math.pi / 2),
        ("round", (-0.5,), -0.0),
        ("round", (2.5,), 2.0),
        ("sign", (-0.0,), 0.0),
        ("trunc", (-0.5,), -0.0),
        ("ceil", (-0.5,), -0.0),
        ("copysign", (1.0, -0.0), -1.0),
        ("nextafter", (0.0, 1.0), None),
        ("acos", (2.0,), nan),
        ("acosh", (1.0,), 0.0),
        ("atanh", (1.0,), inf),
        ("expm1", (-0.0,), -0.0),
        ("sin", (inf,), nan),
        ("sinh", (-0.0,), -0.0),
        ("asinh", (-inf,), -inf),
        ("cosh", (-inf,), inf),
    ]
    for dtype in (tn.float32, tn.float64):
        for name, args, want in cases:
            got = getattr(tn, name)(*(tn.asarray(a, dtype=dtype) for a in args)).item()
            if want is None:
                want = {tn.float32: 2.0**-149, tn.float64: 2.0**-1074}[dtype]
            near = math.isclose(got, want, rel_tol=1e-6) or (math.isnan(got) and math.isnan(want))
            assert near, (name, args, got, want)
            if want == 0:
                assert math.copysign(1, got) == math.copysign(1, want), (name, args, "sign of zero")


def test_statistics_of_nothing():
    empty = tn.zeros((0,))
    assert tn.sum(empty).item() == 0 and tn.prod(empty).item() == 1
    assert tn.all(empty).item() is True and tn.any(empty).item() is False
    assert math.isnan(tn.mean(empty).item())
    for f in (tn.max, tn.min, tn.argmax, tn.argmin):
        with pytest.raises(ValueError):
            f(empty)


def test_dtype_functions():
    assert tn.finfo(tn.float32).eps == 2.0**-23 and tn.finfo(tn.complex128).bits == 64
    assert tn.finfo(tn.bfloat16).max == float(np.uint32(0x7F7F0000).view(np.float32))
    assert tn.iinfo(tn.int8).min == -128 and tn.iinfo(tn.uint64).max == 2**64 - 1
    assert tn.isdtype(tn.float32, "real floating") and tn.isdtype(tn.int8, ("bool", "integral"))
    assert not tn.isdtype(tn.bool, "numeric") and tn.isdtype(tn.int8, tn.int8)
    assert tn.can_cast(tn.int8, tn.int16) and not tn.can_cast(tn.int16, tn.int8)
    assert tn.can_cast(tn.ones(1, dtype=tn.float32), tn.float64)
    with pytest.raises((TypeError, ValueError)):
        tn.finfo(tn.int8)
    with pytest.raises((TypeError, ValueError)):
        tn.iinfo(tn.float32)
    with pytest.raises((TypeError, ValueError)):
        tn.isdtype(tn.int8, "wrong")


OPERATORS = {
    "add": operator.add,
    "subtract": operator.sub,
    "multiply": operator.mul,
    "divide": operator.truediv,
    "floor_divide": operator.floordiv,
    "remainder": operator.mod,
    "pow": operator.pow,
    "equal": operator.eq,
    "not_equal": operator.ne,
    "less": operator.lt,
    "less_equal": operator.le,
    "greater": operator.gt,
    "greater_equal": operator.ge,
    "bitwise_and": operator.and_,
    "bitwise_or": operator.or_,
    "bitwise_xor": operator.xor,
    "bitwise_left_shift": operator.lshift,
    "bitwise_right_shift": operator.rshift,
    "negative": operator.neg,
    "positive": operator.pos,
    "abs": operator.abs,
    "bitwise_invert": operator.invert,
    "matmul": operator.matmul,
}


@pytest.mark.parametrize("name", sorted(OPERATORS))
def test_operators_are_the_functions(name):
    f, op = getattr(tn, name), OPERATORS[name]
    x, y = tn.asarray([[3, 5], [1, 2]]), tn.asarray([[2, 1], [4, 3]])
    if name in UNARY:
        assert op(x).tolist() == f(x).tolist()
        return
    assert op(x, y).tolist() == f(x, y).tolist()
    if name == "matmul":
        return
    assert op(x, 2).tolist() == f(x, 2).tolist()
    assert op(7, x).tolist() == f(7, x).tolist()
    assert op(x, np.asarray([[2, 1], [4, 3]])).tolist() == f(x, y).tolist()


def test_in_place_operators_make_a_new_tensor():
    x = tn.asarray([1.0, 2.0])
    y = x
    x += 1
    x *= 2
    assert x.tolist() == [4, 6] and y.tolist() == [1, 2]


def test_stub_lists_every_function():
    stub = pathlib.Path(tn.__file__).resolve().parent / "_core.pyi"
    tree = ast.parse(stub.read_text())
    names = set()
    for node in tree.body:
        if isinstance(node, (ast.FunctionDef, ast.ClassDef)):
            names.add(node.name)
        elif isinstance(node, ast.Assign):
            names.update(t.id for t in node.targets if isinstance(t, ast.Name))
        elif isinstance(node, ast.AnnAssign):
            names.add(node.target.id)
    for op in tn.testing.op_names():
        assert op in names, op
    public = {n for n in dir(tn._core) if not n.startswith("_")}
    assert public - names <= {"dtype", "index_update", "result_type", "Op"}, sorted(public - names)
    missing = {n for n in names if not n.startswith("_")} - public - {"ArrayLike", "DTypeLike"}
    assert not missing, sorted(missing)
    assert (stub.parent / "py.typed").exists()


def test_binary_names_cover_the_standard():
    for name in BINARY + UNARY:
        assert callable(getattr(tn, name))
        assert hasattr(tn.Tensor, name), f"no method {name}"
