# Written by Tenon from the graph of the computation. It needs PyTorch and nothing else.
# Comments behind statements are the types of their values.
import torch
import torch.nn.functional as F


def cnn(
    x,  # f32[2, 3, 8, 8]
    kernel,  # f32[4, 3, 3, 3]
    scale,  # f32[4]
    shift,  # f32[4]
    weight,  # f32[4, 5]
    bias,  # f32[5]
):
    conv = F.conv2d(x, kernel, padding=(1, 1))            # f32[2, 4, 8, 8]
    sum_1 = torch.sum(conv, dim=(0, 2, 3), keepdim=True)  # f32[1, 4, 1, 1]
    subtract = conv - sum_1 / 128.0                       # f32[2, 4, 8, 8]
    sum_2 = torch.sum(subtract * subtract, dim=(0, 2, 3), keepdim=True)  # f32[1, 4, 1, 1]
    rsqrt = torch.rsqrt(sum_2 / 128.0 + 1e-05)            # f32[1, 4, 1, 1]
    multiply = subtract * rsqrt * scale.reshape((4, 1, 1))  # f32[2, 4, 8, 8]
    relu = torch.relu(multiply + shift.reshape((4, 1, 1)))  # f32[2, 4, 8, 8]
    sum_3 = torch.sum(F.max_pool2d(relu, [2, 2]), dim=(2, 3))  # f32[2, 4]
    return sum_3 / 16.0 @ weight + bias                   # f32[2, 5]
