"""Every op of the table, in every way it can run: each op's samples, with every element type."""

import inspect
import itertools

import numpy as np
import pytest

import tenon as tn
from op_harness import TYPES, Call, bits_of, check_results, draw, is_float, tensor, varying
from references import OF_BITS, WITHOUT_REFERENCE, reference

SAMPLES = {}
for _sample in tn.testing.samples():
    SAMPLES.setdefault(_sample.op, []).append(_sample)
OPS = sorted(SAMPLES)
# Functions whose steps round one after the other, or whose reference is itself only close.
ROUNDINGS = {"elementwise": 4, "movement": 0, "reduction": 8, "composite": 32, "general": 32}


def types_to_try(sample):
    return TYPES if varying(sample) else [tn.float32]


def required(sample, dtype):
    """Whether the op has to take operands of this type."""
    if sample.op == "astype" and dtype.name.startswith("complex"):
        return sample.keywords["dtype"].name.startswith("complex")
    if sample.family in ("elementwise", "reduction"):
        return dtype in sample.dtypes
    return dtype == tn.float32


def calls(op):
    """Every sample with every element type that the op takes, with its result."""
    for sample in SAMPLES[op]:
        taken = 0
        for dtype in types_to_try(sample):
            call = Call(sample, dtype)
            try:
                result = call.run()
            except TypeError as error:
                assert not required(sample, dtype), f"{sample} {dtype.name}: {error}"
                assert str(error).startswith(op) or ":" in str(error)
                continue
            taken += 1
            yield call, result
        assert taken, f"{sample}: no element type works"


def reference_operands(call, result):
    """Functions of reals make floats of integers, here of enough bits."""
    if call.sample.op in OF_BITS:
        return [
            v.astype(np.float32) if v.dtype.kind in "biu" and call.sample.op == "nextafter" else v
            for v in call.given
        ]
    first = result[0] if isinstance(result, (list, tuple)) else result
    if not is_float(first.dtype) or is_float(call.dtype):
        return call.wide
    wide = [
        w.astype(np.float64) if d == varying(call.sample) else w
        for w, (d, _) in zip(call.wide, call.sample.args)
    ]
    if call.sample.op == "scaled_dot_product_attention":
        wide[3:] = call.wide[3:]  # a mask of booleans selects, one of numbers is added
    return wide


def where_of(call):
    return f"{call.sample} with {call.dtype.name}: "


def test_every_op_has_samples_and_a_reference():
    assert sorted(tn.testing.op_names()) == OPS
    for op in OPS:
        known = reference(op, SAMPLES[op][0].aliases) is not None
        assert known or op in WITHOUT_REFERENCE, op


@pytest.mark.parametrize("op", OPS)
def test_values_are_those_of_numpy(op):
    expected = reference(op, SAMPLES[op][0].aliases)
    for call, result in calls(op):
        if op in WITHOUT_REFERENCE:
            continue
        try:
            want = expected(*reference_operands(call, result), **call.sample.keywords)
            check_results(result, want, ROUNDINGS[call.sample.family])
        except Exception as error:
            error.args = (where_of(call) + str(error),)
            raise


@pytest.mark.parametrize("op", OPS)
def test_fused_and_stepwise_give_equal_bits(op):
    for call, _ in calls(op):
        if not call.types or not is_float(call.dtype):
            continue

        # Scaling by a power of two is exact, so operands keep their values.
        def pending(x):
            return x * 2 if is_float(x.dtype) else x

        halves = [x / 2 if is_float(d) else x for x, d in zip(call.given, call.types)]
        operands = [tensor(v.astype(o.dtype), d) for v, o, d in zip(halves, call.given, call.types)]
        fused = call.run([pending(x) for x in operands])
        stepwise = [pending(x) for x in operands]
        tn.eval(stepwise)
        single = call.run(stepwise)
        assert bits_of(fused) == bits_of(single), where_of(call)
        follow = list(fused) if isinstance(fused, (list, tuple)) else [fused]
        if all(is_float(x.dtype) for x in follow):
            again = call.run([pending(x) for x in operands])
            again = again if isinstance(again, (list, tuple)) else [again]
            assert bits_of([x * 0.5 for x in again]) == bits_of(
                [x * 0.5 for x in follow]
            ), where_of(call)


def strided_views(v):
    """The same elements under other strides."""
    yield v.T.copy().T
    if v.ndim:
        yield v[::-1].copy()[::-1]
        yield np.repeat(v, 2, axis=-1)[..., ::2]


@pytest.mark.parametrize("op", OPS)
def test_operands_need_not_be_contiguous(op):
    for call, result in calls(op):
        if not call.types or call.dtype not in (tn.float32, tn.int16, tn.complex64, tn.bfloat16):
            continue
        expected = bits_of(result)
        views = [list(strided_views(v)) for v in call.given]
        for k in range(3):
            operands = [tensor(vs[min(k, len(vs) - 1)], d) for vs, d in zip(views, call.types)]
            assert bits_of(call.run(operands)) == expected, where_of(call)
        # A view that is still to be computed.
        pending = [tn.permute_dims(tensor(v.T.copy(), d)) for v, d in zip(call.given, call.types)]
        assert bits_of(call.run(pending)) == expected, where_of(call)
        padded = [
            tensor(np.stack([v, v], -1), d)[..., 1] if v.ndim else tensor(v, d)
            for v, d in zip(call.given, call.types)
        ]
        assert bits_of(call.run(padded)) == expected, where_of(call)


def emptied(sample):
    """The sample's shapes with one extent 0, where the others then still fit."""
    shapes = [s for _, s in sample.args]
    if len(shapes) == 1:
        for axis in range(len(shapes[0])):
            yield [shapes[0][:axis] + (0,) + shapes[0][axis + 1 :]]
    elif sample.family == "elementwise":
        yield [(0, 3)] * len(shapes)
        yield [(2, 1)] + [(0,)] * (len(shapes) - 1)
        yield [()] + [(2, 0)] * (len(shapes) - 1)


# Of no elements: NumPy has no answer, or reads one from nowhere, or the attributes do not fit.
EMPTY_DIFFERS = {
    "irfftn",
    "logsumexp",
    "quantile",
    "median",
    "einsum",
    "interpolate",
    "rope",
    "bitcast",
    "partition",
    "argpartition",
    "fft_axis",
    "hfft",  # of no elements, NumPy returns memory that it has not written
    "irfft",
}


@pytest.mark.parametrize("op", OPS)
def test_empty_operands(op):
    expected = reference(op, SAMPLES[op][0].aliases)
    for sample in SAMPLES[op]:
        for shapes in emptied(sample):
            call = Call(sample, varying(sample) or tn.float32)
            rng = np.random.default_rng(0)
            drawn = [draw(rng, d, s, sample.lo, sample.hi) for d, s in zip(call.types, shapes)]
            call.given, call.wide = [g for g, _ in drawn], [w for _, w in drawn]
            try:
                result = call.run()
                tn.eval(result)
            except (ValueError, IndexError):
                result = None
            if op in WITHOUT_REFERENCE or op in EMPTY_DIFFERS:
                continue
            try:
                want = expected(*call.wide, **sample.keywords)
            except Exception:
                continue  # NumPy refuses; an answer or an error are both fine
            assert result is not None, f"{sample} of {shapes}: refused, NumPy gives {want!r}"
            check_results(result, want, 8)


SPECIAL = [0.0, -0.0, 1.0, -1.0, 0.5, -2.5, 3.0, 1e-40, 1e15, -1e15, np.inf, -np.inf, np.nan]
# Where NumPy's answer for a special value is not the documented one of the op.
SPECIAL_DIFFERS = {
    "erfinv": "the reference has no infinities",
    "lgamma": "the reference refuses poles",
    "fmod": "",
}


@pytest.mark.parametrize("op", [o for o in OPS if SAMPLES[o][0].family == "elementwise"])
def test_special_values(op):
    sample = SAMPLES[op][0]
    count = len(sample.args)
    if tn.float32 not in sample.dtypes or op in SPECIAL_DIFFERS or count > 2:
        pytest.skip("not a function of one or two reals")
    expected = reference(op, sample.aliases)
    for name in ("float32", "float64"):
        grid = np.array(list(itertools.product(SPECIAL, repeat=count)), dtype=name)
        columns = [np.ascontiguousarray(grid[:, k]) for k in range(count)]
        result = getattr(tn, op)(*map(tn.asarray, columns), **sample.keywords)
        want = expected(*(c.astype(np.float64) for c in columns), **sample.keywords)
        got = result.numpy()
        want = np.asarray(want)
        with np.errstate(all="ignore"):
            want = want.astype(got.dtype)
            same = (got == want) | ((got != got) & (want != want))
            near = np.abs(got - want) <= 1e-6 * np.abs(want) if got.dtype.kind == "f" else same
        wrong = ~(same | near)
        assert not wrong.any(), [
            (*(c[i] for c in columns), "gives", got[i], "NumPy", want[i])
            for i in np.flatnonzero(wrong)[:5]
        ]


@pytest.mark.parametrize("op", OPS)
def test_signature_methods_and_docs(op):
    function = SAMPLES[op][0].function
    signature = inspect.signature(function)
    assert signature.parameters or op in ()
    assert function.__doc__ and function.__name__ == op
    for alias in set(SAMPLES[op][0].aliases) - {"transpose"}:  # NumPy's and PyTorch's, by hand
        assert getattr(tn, alias) is function or getattr(tn, alias).__doc__ == function.__doc__
    for name in SAMPLES[op][0].keywords:
        assert name in signature.parameters


@pytest.mark.parametrize("op", OPS)
def test_graph_text_names_only_ops(op):
    for sample in SAMPLES[op]:
        call = Call(sample, varying(sample) or tn.float32)
        result = call.run()
        text = tn.graph_text(*(result if isinstance(result, (list, tuple)) else [result]))
        assert text.startswith("func @main(") and text.rstrip().endswith("}")
        if (
            sample.recorded
            and sample.family != "movement"
            and op not in ("astype", "conj", "real", "positive")
        ):
            assert f" = {op}" in text or "=" not in text, text


def test_unknown_types_are_refused_not_computed():
    for op in OPS:
        for sample in SAMPLES[op][:1]:
            if sample.family != "elementwise" or not varying(sample):
                continue
            if sample.dtypes == [tn.bool]:
                continue  # any number converts to bool
            for dtype in (tn.float8_e4m3, tn.float8_e5m2):
                if dtype in sample.dtypes:
                    continue
                operands = [tn.zeros(s).astype(dtype) for _, s in sample.args]
                with pytest.raises(TypeError):
                    getattr(tn, op)(*operands, **sample.keywords)
