"""What Fourier transforms should give, by NumPy."""

import numpy as np


def fft_axis(x, kind="c2c", inverse=False, scale=1.0, n=None, axis=-1):
    forward, back = {
        "c2c": (np.fft.fft, np.fft.ifft),
        "r2c": (np.fft.rfft, np.fft.ihfft),
        "c2r": (np.fft.hfft, np.fft.irfft),
    }[kind]
    return (back if inverse else forward)(x, n, axis, FORWARD[inverse]) * scale


FORWARD = {False: "backward", True: "forward"}  # neither divides
FFT = {"fft_axis": fft_axis}
for _name in "fft ifft fftn ifftn rfft irfft rfftn irfftn hfft ihfft fftshift ifftshift".split():
    FFT[_name] = getattr(np.fft, _name)
FFT["fftfreq"], FFT["rfftfreq"] = np.fft.fftfreq, np.fft.rfftfreq
