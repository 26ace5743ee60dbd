# Written by Tenon from the graph of the computation. It needs NumPy 2 and nothing else.
# Comments behind statements are the types of their values.
import numpy as np


@np.errstate(all="ignore")
def mlp_gradients(
    x,  # f32[8, 5]
    w1,  # f32[5, 16]
    b1,  # f32[16]
    w2,  # f32[16, 3]
    b2,  # f32[3]
):
    # mlp
    add = x @ w1 + b1                                     # f32[8, 16]
    relu = np.maximum(add, 0.0)                           # f32[8, 16]
    add_1 = relu @ w2 + b2                                # f32[8, 3]

    # loss
    divide = np.sum(add_1 * add_1) / 24.0                 # f32[]
    multiply = (np.float32(1.0) / 24.0).reshape((1, 1)) * add_1  # f32[8, 3]
    multiply_1 = multiply * 2.0                           # f32[8, 3]

    # mlp
    where = np.where(add > 0.0, multiply_1 @ w2.T, 0.0)   # f32[8, 16]
    dot = where @ w1.T                                    # f32[8, 5]
    dot_1 = x.T @ where                                   # f32[5, 16]
    sum_1 = np.sum(where, axis=0)                         # f32[16]
    dot_2 = relu.T @ multiply_1                           # f32[16, 3]
    sum_2 = np.sum(multiply_1, axis=0)                    # f32[3]
    return divide, dot, dot_1, sum_1, dot_2, sum_2
