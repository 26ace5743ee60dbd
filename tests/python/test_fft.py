"""Fourier transforms: lengths, precision, norms, derivatives, batches."""

import numpy as np
import pytest

import flat
import tenon as tn
from derivatives import differences, inner
from op_harness import numpy_of

RNG = np.random.default_rng(7)


def numbers(*shape, dtype="complex128"):
    x = RNG.standard_normal(shape)
    if dtype.startswith("complex"):
        x = x + 1j * RNG.standard_normal(shape)
    return x.astype(dtype)


LENGTHS = [*range(1, 34), 60, 97, 128, 210, 243, 1001, 1009, 2048, 4096, 4097, 5000, 6007, 10006]


@pytest.mark.parametrize("n", LENGTHS)
def test_every_length(n):
    for dtype, real, eps in [("complex64", "float32", 2**-23), ("complex128", "float64", 2**-52)]:
        bound = eps * (4 + 2 * np.log2(n))
        z, x, half = numbers(3, n, dtype=dtype), numbers(3, n, dtype=real), numbers(3, n // 2 + 1)
        half = half.astype(dtype)
        pairs = [
            (tn.fft.fft(z), np.fft.fft(z.astype("complex128"))),
            (tn.fft.ifft(z, norm="forward"), np.fft.ifft(z.astype("complex128"), norm="forward")),
            (tn.fft.rfft(x), np.fft.rfft(x.astype("float64"))),
            (tn.fft.irfft(half, n), np.fft.irfft(half.astype("complex128"), n)),
            (tn.fft.hfft(half, n), np.fft.hfft(half.astype("complex128"), n)),
            (tn.fft.ihfft(x), np.fft.ihfft(x.astype("float64"))),
        ]
        for number, (got, want) in enumerate(pairs):
            assert got.dtype.name == (real if want.dtype.kind == "f" else dtype)
            error = np.linalg.norm(got.numpy() - want) / np.linalg.norm(want)
            assert error <= bound, (n, dtype, number, error / eps)


@pytest.mark.parametrize("n", [2**20, 2**20 + 7, 3**12, 2 * 500009])
def test_long_lines(n):
    z = numbers(n, dtype="complex64")
    want = np.fft.fft(z.astype("complex128"))
    error = np.linalg.norm(tn.fft.fft(z).numpy() - want) / np.linalg.norm(want)
    assert error < 1e-6
    x = z.real.copy()
    want = np.fft.rfft(x.astype("float64"))
    got = tn.fft.rfft(x)
    assert np.linalg.norm(got.numpy() - want) / np.linalg.norm(want) < 1e-6
    back = tn.fft.irfft(got, n).numpy()
    assert np.linalg.norm(back - x) / np.linalg.norm(x) < 1e-6


def test_bits_do_not_depend_on_threads_or_company():
    z = numbers(9, 5000, dtype="complex64")
    whole = tn.fft.fft(z).numpy()
    count = tn.num_threads()
    try:
        for threads in (1, 2, 3):
            tn.set_num_threads(threads)
            assert tn.fft.fft(z).numpy().tobytes() == whole.tobytes()
    finally:
        tn.set_num_threads(count)
    for n in (12, 97, 5000):
        part = tn.fft.fft(z[:, :n].copy()).numpy()
        for i in range(9):
            assert tn.fft.fft(z[i, :n].copy()).numpy().tobytes() == part[i].tobytes()
        columns = tn.fft.fft(np.ascontiguousarray(z[:, :n].T), axis=0).numpy()
        assert np.ascontiguousarray(columns.T).tobytes() == part.tobytes()


@pytest.mark.parametrize("norm", ["backward", "ortho", "forward"])
def test_norms_axes_and_lengths(norm):
    z = numbers(4, 6, 5)
    for axes in ([0, 1], [2, 0], [1], None):
        for s in (None, [3, 7, 4]):
            s = s and s[: len(axes or s)]
            more = {"s": s, "axes": axes if s is None or axes else [0, 1, 2], "norm": norm}
            for name in ("fftn", "ifftn", "irfftn"):
                got = getattr(tn.fft, name)(z, **more)
                np.testing.assert_allclose(
                    got.numpy(), getattr(np.fft, name)(z, **more), atol=1e-12, err_msg=name
                )
            got = tn.fft.rfftn(z.real.copy(), **more)
            np.testing.assert_allclose(got.numpy(), np.fft.rfftn(z.real, **more), atol=1e-12)


def test_types():
    for name, want in [("int32", "complex64"), ("float16", "complex64"), ("float64", "complex128")]:
        assert tn.fft.fft(tn.ones(4, dtype=getattr(tn, name))).dtype.name == want
    with pytest.raises(TypeError, match="rfft"):
        tn.fft.rfft(tn.ones(4, dtype=tn.complex64))
    with pytest.raises(ValueError, match="fft: at least one number"):
        tn.fft.fft(tn.ones((2, 0)))
    with pytest.raises(ValueError, match="named twice"):
        tn.fft.fftn(tn.ones((2, 3)), axes=[0, 0])
    assert tn.fft.fft(tn.ones((0, 3))).shape == (0, 3)
    assert tn.fft.fftfreq(5, d=0.1, dtype=tn.float64).tolist() == np.fft.fftfreq(5, 0.1).tolist()


CASES = {
    "fft": lambda x: tn.fft.fft(x),
    "ifft": lambda x: tn.fft.ifft(x, n=9),
    "fftn": lambda x: tn.fft.fftn(x),
    "irfft even": lambda x: tn.fft.irfft(x),
    "irfft odd": lambda x: tn.fft.irfft(x, n=7, axis=0),
    "hfft": lambda x: tn.fft.hfft(x, n=8, norm="ortho"),
    "rfft even": lambda x: tn.fft.rfft(tn.real(x), n=6),
    "rfft odd": lambda x: tn.fft.rfft(tn.real(x), n=5),
    "ihfft": lambda x: tn.fft.ihfft(tn.imag(x)),
    "irfftn": lambda x: tn.fft.irfftn(x),
}


@pytest.mark.parametrize("name", CASES)
def test_derivatives_and_batches(name):
    def f(given):
        return [CASES[name](given[0])]

    x, t = [tn.asarray(numbers(3, 5))], [tn.asarray(numbers(3, 5))]
    forward = flat.jvp(f, x, t)[1]
    change, _ = differences(f, x, t)
    np.testing.assert_allclose(numpy_of(forward[0]), change[0], atol=1e-7)
    ct = numbers(*forward[0].shape, dtype=forward[0].dtype.name)
    back = flat.vjp(f, x, [tn.asarray(ct)])[1]
    assert np.isclose(inner([tn.asarray(ct)], forward)[0], inner(back, t)[0])
    batch = tn.asarray(numbers(4, 3, 5))
    got = flat.vmap(f, [batch], [0])[0]
    for i in range(4):
        assert numpy_of(got[i]).tobytes() == numpy_of(f([batch[i]])[0]).tobytes()
