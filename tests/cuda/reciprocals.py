"""Reciprocals in math functions on a GPU, whose division is not the hardware's own: the bits of the
CPU for every mantissa.

    python tests/cuda/reciprocals.py    on a machine with a GPU
"""

import sys

import numpy as np

import tenon as tn

MANTISSAS = np.arange(1 << 23, dtype=np.uint32)


def main():
    cpu, gpu = tn.compile(tn.nn.gelu), tn.compile(tn.nn.gelu)
    wrong = 0
    for exponent in range(115, 132):  # from 2**-12 to 2**4
        for sign in (0, 1 << 31):
            bits = MANTISSAS | np.uint32(exponent << 23 | sign)
            x = tn.array(bits.view(np.float32))
            own = cpu(x).numpy().view(np.uint32)
            there = gpu(x.to("cuda")).cpu().numpy().view(np.uint32)
            wrong += int((own != there).sum())
    print(f"gelu: {wrong} of {34 << 23} results differ from the CPU's")
    return wrong > 0


if __name__ == "__main__":
    sys.exit(main())
