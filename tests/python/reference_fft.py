"""What Fourier transforms should give, by NumPy."""

import numpy as np


def fft_axis(x, kind="c2c", inverse=False, scale=1.0, n=None, axis=-1):
    if kind == "c2c":
        return (np.fft.ifft if inverse else np.fft.fft)(x, axis=axis, norm=FORWARD[inverse]) * scale
    if kind == "r2c":
        return (np.fft.ihfft if inverse else np.fft.rfft)(x, axis=axis, norm=FORWARD[inverse]) * scale
    return (np.fft.irfft if inverse else np.fft.hfft)(x, n, axis, FORWARD[inverse]) * scale


FORWARD = {False: "backward", True: "forward"}  # neither divides
FFT = {"fft_axis": fft_axis}
for _name in "fft ifft fftn ifftn rfft irfft rfftn irfftn hfft ihfft fftshift ifftshift".split():
    FFT[_name] = getattr(np.fft, _name)
FFT["fftfreq"], FFT["rfftfreq"] = np.fft.fftfreq, np.fft.rfftfreq
