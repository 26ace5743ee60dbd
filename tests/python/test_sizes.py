"""Sizes beyond the samples: long and odd extents, where blocks, tails and threads matter."""

import numpy as np
import pytest

import tenon as tn
from op_harness import EPS, Call, check_results, draw, is_float, tensor, varying
from references import reference

SAMPLES = {s.op: s for s in reversed(tn.testing.samples())}
ELEMENTWISE = sorted(o for o, s in SAMPLES.items() if s.family == "elementwise" and varying(s))
TYPES = [tn.bool, tn.int8, tn.int32, tn.uint64, tn.bfloat16, tn.float32, tn.float64, tn.complex64]


def enlarged(sample, shapes, dtype):
    """The call with other shapes."""
    call = Call(sample, dtype)
    rng = np.random.default_rng(11)
    drawn = [draw(rng, d, s, sample.lo, sample.hi) for d, s in zip(call.types, shapes)]
    call.given, call.wide = [g for g, _ in drawn], [w for _, w in drawn]
    return call


@pytest.mark.parametrize("op", ELEMENTWISE)
def test_elementwise(op):
    sample = SAMPLES[op]
    expected = reference(op, sample.aliases)
    count = len(sample.args)
    layouts = [[(4099,)] * count, [(67, 129)] * count, [(67, 1), (129,), (67, 129)][:count]]
    for dtype in TYPES:
        if dtype not in sample.dtypes or op in ("nextafter", "lgamma", "erfinv"):
            continue
        if op == "astype" and dtype.name.startswith("complex"):
            continue
        for shapes in layouts:
            call = enlarged(sample, shapes, dtype)
            result = call.run()
            wide = call.wide
            if is_float(result.dtype) and not is_float(dtype):
                wide = [
                    w.astype(np.float64) if w.dtype != bool or d != tn.bool else w
                    for w, (d, _) in zip(wide, sample.args)
                ]
            check_results(result, expected(*wide, **sample.keywords), 5)
            # Reading backwards and transposed gives the same bits in another order.
            views = [tn.flip(x) for x in call.operands()]
            back = tn.flip(sample.call(*views)) if shapes[0] == shapes[-1] else result
            assert back.astype(tn.bool).tolist() == result.astype(tn.bool).tolist()


SHAPES = [
    (100_003,),
    (3, 40_009),
    (40_009, 3),
    (61, 67, 71),
    (1, 5000, 1),
    (2, 1, 3, 1000),
    (16, 0, 5),
]


@pytest.mark.parametrize("shape", SHAPES, ids=str)
@pytest.mark.parametrize(
    "op",
    [
        "sum",
        "prod",
        "max",
        "min",
        "mean",
        "std",
        "all",
        "any",
        "argmax",
        "count_nonzero",
        "logsumexp",
    ],
)
def test_reductions(op, shape):
    rng = np.random.default_rng(5)
    a = rng.uniform(0.5, 1.5, shape)
    if op == "prod":
        a = 1 + (a - 1) * 1e-3
    axes = [None, *range(len(shape))] + ([(0, -1)] if len(shape) > 2 and op != "argmax" else [])
    for axis in axes:
        gone = a.size if axis is None else np.prod([a.shape[i] for i in np.atleast_1d(axis)])
        if gone == 0 and op not in ("sum", "prod", "all", "any", "count_nonzero"):
            continue
        # Products of numbers near 1 round to one side more often; NumPy sums axis 0 plainly.
        roundings = 30 + (0.02 * gone if op == "prod" else 0.2 * gone**0.5)
        f = (
            (lambda x, axis: np.log(np.exp(x).sum(axis=axis)))
            if op == "logsumexp"
            else getattr(np, op)
        )
        for dtype in (np.float32, np.float64):
            x = a.astype(dtype)
            got = getattr(tn, op)(tn.asarray(x), axis=axis).numpy()
            want = f(x.astype(np.float64), axis=axis)
            np.testing.assert_allclose(
                got, want, rtol=roundings * EPS[x.dtype.name], err_msg=f"{axis} {dtype}"
            )
            if axis is not None and len(shape) > 1 and not isinstance(axis, tuple):
                turned = tn.permute_dims(tn.asarray(np.ascontiguousarray(x.T)))
                np.testing.assert_allclose(
                    getattr(tn, op)(turned, axis=axis).numpy(),
                    want,
                    rtol=roundings * EPS[x.dtype.name],
                )
        n = (a * 100).astype(np.int16)
        if op in ("sum", "max", "min", "all", "argmax"):
            np.testing.assert_array_equal(
                getattr(tn, op)(tn.asarray(n), axis=axis).numpy(), f(n, axis=axis)
            )


@pytest.mark.parametrize("axis", [0, 1, 2])
def test_scans_sorts_and_moves(axis):
    rng = np.random.default_rng(6)
    a = rng.normal(size=(37, 129, 65)).astype(np.float32)
    x = tn.asarray(a)
    double = a.astype(np.float64)
    np.testing.assert_allclose(
        tn.cumulative_sum(x, axis=axis).numpy(), double.cumsum(axis), rtol=1e-4, atol=1e-4
    )
    np.testing.assert_array_equal(tn.sort(x, axis=axis).numpy(), np.sort(a, axis))
    np.testing.assert_array_equal(
        tn.argsort(x, axis=axis).numpy(), np.argsort(a, axis, stable=True)
    )
    np.testing.assert_array_equal(tn.flip(x, axis=axis).numpy(), np.flip(a, axis))
    np.testing.assert_array_equal(tn.roll(x, 11, axis=axis).numpy(), np.roll(a, 11, axis))
    np.testing.assert_array_equal(
        tn.concat([x, x], axis=axis).numpy(), np.concatenate([a, a], axis)
    )
    np.testing.assert_array_equal(tn.pad(x, 3, mode="wrap").numpy(), np.pad(a, 3, mode="wrap"))
    np.testing.assert_array_equal(tn.moveaxis(x, axis, 0).numpy(), np.moveaxis(a, axis, 0))
    np.testing.assert_array_equal(tn.cummax(x, axis=axis).numpy(), np.maximum.accumulate(a, axis))
    i = rng.integers(0, a.shape[axis], 500)
    np.testing.assert_array_equal(tn.take(x, tn.asarray(i), axis=axis).numpy(), np.take(a, i, axis))
    top = tn.top_k(x, 5, axis=axis).values.numpy()
    np.testing.assert_array_equal(top, np.take(np.flip(np.sort(a, axis), axis), range(5), axis))
    np.testing.assert_allclose(
        tn.softmax(x, axis=axis).numpy(),
        np.exp(double) / np.exp(double).sum(axis, keepdims=True),
        rtol=1e-5,
    )
    np.testing.assert_allclose(tn.var(x, axis=axis).numpy(), double.var(axis), rtol=1e-5)


@pytest.mark.parametrize(
    "m, k, n",
    [
        (1, 1, 1),
        (1, 300, 1),
        (7, 1, 9),
        (65, 129, 33),
        (1, 500, 257),
        (257, 500, 1),
        (130, 70, 260),
        (5, 0, 4),
    ],
)
def test_products(m, k, n):
    rng = np.random.default_rng(7)
    for dtype, tolerance in (
        ("float32", 2e-5),
        ("float64", 1e-12),
        ("complex64", 2e-5),
        ("int32", 0),
    ):
        a, b = (rng.integers(-9, 9, s).astype(dtype) for s in ((m, k), (k, n)))
        if np.dtype(dtype).kind in "fc":
            a, b = a + rng.normal(size=a.shape).astype(dtype), b + rng.normal(size=b.shape).astype(
                dtype
            )
        want = a.astype(np.complex128) @ b if dtype == "complex64" else a @ b
        scale = max(np.abs(want).max(initial=0), 1)
        for left, right in ((a, b), (a.T.copy().T, b), (a, b.T.copy().T)):
            got = (tn.asarray(left) @ tn.asarray(right)).numpy()
            np.testing.assert_allclose(got, want, rtol=tolerance, atol=tolerance * scale)
        lazy = tn.permute_dims(tn.asarray(b.T.copy()))
        np.testing.assert_allclose(
            (tn.asarray(a) @ lazy).numpy(), want, rtol=tolerance, atol=tolerance * scale
        )
        got = tn.einsum("mk,kn->nm", tn.asarray(a), tn.asarray(b)).numpy()
        np.testing.assert_allclose(got, want.T, rtol=tolerance, atol=tolerance * scale)


def test_fused_chains_over_odd_views():
    rng = np.random.default_rng(8)
    a = rng.normal(size=(129, 257)).astype(np.float32)
    x = tn.asarray(a)
    for view in (
        lambda v: v,
        lambda v: v.T,
        lambda v: v[::-1, ::2],
        lambda v: v[1:, :-1],
        lambda v: v[:, 5:6],
        lambda v: v[3],
        lambda v: v[::7, None, ::-3],
    ):
        got = (tn.exp(view(x) * 0.5) - view(x) + 1.0).numpy()
        want = np.exp(view(a) * np.float32(0.5)) - view(a) + np.float32(1)
        np.testing.assert_allclose(got, want, rtol=1e-5, atol=1e-5)
        total = tn.sum(view(x) * view(x)).item()
        np.testing.assert_allclose(total, (view(a).astype(np.float64) ** 2).sum(), rtol=1e-5)


def test_narrow_floats_round_once():
    rng = np.random.default_rng(9)
    a = rng.normal(size=5001).astype(np.float32)
    half = a.astype(np.float16)
    got = (tensor(half, tn.float16) * 3 + 1).numpy()
    want = ((half.astype(np.float32) * 3).astype(np.float16).astype(np.float32) + 1).astype(
        np.float16
    )
    np.testing.assert_array_equal(got, want)
    assert tn.sum(tensor(half, tn.float16)).dtype == tn.float16
    np.testing.assert_allclose(
        tn.sum(tensor(half, tn.float16)).item(), half.astype(np.float64).sum(), rtol=2e-3
    )
