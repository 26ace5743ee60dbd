# Written by Tenon from the graph of the computation. It needs NumPy 2 and nothing else.
# Comments behind statements are the types of their values.
import numpy as np


@np.errstate(all="ignore")
def mlp(
    x,  # f32[8, 5]
    w1,  # f32[5, 16]
    b1,  # f32[16]
    w2,  # f32[16, 3]
    b2,  # f32[3]
):
    relu = np.maximum(x @ w1 + b1, 0.0)                   # f32[8, 16]
    return relu @ w2 + b2                                 # f32[8, 3]
