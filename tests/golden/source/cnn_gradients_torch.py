# Written by Tenon from the graph of the computation. It needs PyTorch and nothing else.
# Comments behind statements are the types of their values.
import itertools

import torch
import torch.nn.functional as F


def _windows(x, size, step, dilation):
    """Views of the windows over the last axes: all places, then all elements."""
    first = x.ndim - len(size)
    for k, (n, s, d) in enumerate(zip(size, step, dilation)):
        x = x.unfold(first + k, (n - 1) * d + 1, s)[..., ::d]
    return x


def _spread(x, padding, dilation):
    """x, channels second, with zeros between its elements and around them."""
    for k, d in enumerate(dilation):
        if d > 1:
            n = x.shape[2 + k]
            shape = list(x.shape)
            shape[2 + k] = (n - 1) * d + 1
            made = x.new_zeros(shape)
            made[(slice(None),) * (2 + k) + (slice(None, None, d),)] = x
            x = made
    flat = [n for k in reversed(range(len(dilation))) for n in padding[2 * k : 2 * k + 2]]
    return F.pad(x, flat)


def _conv(x, w, stride, padding, input_dilation, kernel_dilation, groups, channels_last):
    if channels_last:
        x, w = x.movedim(-1, 1), w.movedim(-1, 1)
    conv = (F.conv1d, F.conv2d, F.conv3d)[len(stride) - 1]
    x = _spread(x, padding, input_dilation)
    made = conv(x, w, stride=stride, dilation=kernel_dilation, groups=groups)
    return made.movedim(1, -1) if channels_last else made


def _conv_weights(
    x, ct, kernel, stride, padding, input_dilation, kernel_dilation, groups, channels_last
):
    """The derivative of _conv in w, times ct."""
    if channels_last:
        x, ct = x.movedim(-1, 1), ct.movedim(-1, 1)
    x, none = _spread(x, padding, input_dilation), (0,) * len(stride)
    w = x.new_empty((ct.shape[1], x.shape[1] // groups) + tuple(kernel))
    made = torch.ops.aten.convolution_backward(
        ct, x, w, None, stride, none, kernel_dilation, False, none, groups, (False, True, False)
    )[1]
    return made.movedim(1, -1) if channels_last else made


def _fold_windows(x, extents, step, dilation):
    """The sum of windows in the places that they came from."""
    axes = len(extents)
    front, places, size = x.shape[: -2 * axes], x.shape[-2 * axes : -axes], x.shape[-axes:]
    made = x.new_zeros(front + tuple(extents))
    for at in itertools.product(*map(range, size)):
        first = [i * d for i, d in zip(at, dilation)]
        to = tuple(slice(i, i + (n - 1) * s + 1, s) for i, n, s in zip(first, places, step))
        made[(...,) + to] += x[(...,) + at]
    return made


def cnn_gradients(
    x,  # f32[2, 3, 8, 8]
    kernel,  # f32[4, 3, 3, 3]
    scale,  # f32[4]
    shift,  # f32[4]
    weight,  # f32[4, 5]
    bias,  # f32[5]
):
    # cnn
    conv = F.conv2d(x, kernel, padding=(1, 1))            # f32[2, 4, 8, 8]
    sum_1 = torch.sum(conv, dim=(0, 2, 3), keepdim=True)  # f32[1, 4, 1, 1]
    subtract = conv - sum_1 / 128.0                       # f32[2, 4, 8, 8]
    sum_2 = torch.sum(subtract * subtract, dim=(0, 2, 3), keepdim=True)  # f32[1, 4, 1, 1]
    add = sum_2 / 128.0 + 1e-05                           # f32[1, 4, 1, 1]
    rsqrt = torch.rsqrt(add)                              # f32[1, 4, 1, 1]
    multiply = subtract * rsqrt                           # f32[2, 4, 8, 8]
    reshape = scale.reshape((4, 1, 1))                    # f32[4, 1, 1]
    add_1 = multiply * reshape + shift.reshape((4, 1, 1))  # f32[2, 4, 8, 8]
    relu = torch.relu(add_1)                              # f32[2, 4, 8, 8]
    sum_3 = torch.sum(F.max_pool2d(relu, [2, 2]), dim=(2, 3))  # f32[2, 4]
    divide = sum_3 / 16.0                                 # f32[2, 4]
    add_2 = divide @ weight + bias                        # f32[2, 5]

    # loss
    divide_1 = torch.sum(add_2 * add_2) / 10.0            # f32[]

    # cnn
    window = _windows(relu, (2, 2), (2, 2), (1, 1))       # f32[2, 4, 4, 4, 2, 2]
    reshape_1 = torch.amax(window, dim=(4, 5)).reshape((2, 4, 4, 4, 1, 1))  # f32[2, 4, 4, 4, 1, 1]
    equal = window == reshape_1                           # bool[2, 4, 4, 4, 2, 2]

    # loss
    divide_2 = torch.tensor(1.0, dtype=torch.float32) / 10.0  # f32[]
    multiply_1 = divide_2.reshape((1, 1)) * add_2 * 2.0   # f32[2, 5]

    # cnn
    reshape_2 = (multiply_1 @ weight.T / 16.0).reshape((2, 4, 1, 1))  # f32[2, 4, 1, 1]
    sum_4 = torch.sum(equal.to(torch.float32), dim=(4, 5))  # f32[2, 4, 4, 4]
    reshape_3 = (reshape_2 / sum_4).reshape((2, 4, 4, 4, 1, 1))  # f32[2, 4, 4, 4, 1, 1]
    window_fold = _fold_windows(
        torch.where(equal, reshape_3, 0.0), (8, 8), (2, 2), (1, 1)
    )  # f32[2, 4, 8, 8]
    where = torch.where(add_1 > 0.0, window_fold, 0.0)    # f32[2, 4, 8, 8]
    multiply_2 = where * reshape                          # f32[2, 4, 8, 8]
    sum_5 = torch.sum(multiply_2 * subtract, dim=(0, 2, 3))  # f32[4]
    divide_3 = sum_5.reshape((1, 4, 1, 1)) * rsqrt / (add * -2.0)  # f32[1, 4, 1, 1]
    multiply_3 = divide_3 / 128.0 * subtract              # f32[2, 4, 8, 8]
    add_3 = multiply_2 * rsqrt + multiply_3 + multiply_3  # f32[2, 4, 8, 8]
    reshape_4 = torch.sum(-add_3, dim=(0, 2, 3)).reshape((1, 4, 1, 1))  # f32[1, 4, 1, 1]
    add_4 = add_3 + reshape_4 / 128.0                     # f32[2, 4, 8, 8]
    reshape_5 = torch.flip(kernel, (2, 3)).reshape((1, 4, 3, 3, 3))  # f32[1, 4, 3, 3, 3]
    permute_dims = torch.permute(reshape_5, (0, 2, 1, 3, 4))  # f32[1, 3, 4, 3, 3]
    conv_1 = F.conv2d(add_4, permute_dims.reshape((3, 4, 3, 3)), padding=(1, 1))  # f32[2, 3, 8, 8]
    conv_weights = _conv_weights(
        x, add_4, (3, 3), (1, 1), (1, 1, 1, 1), (1, 1), (1, 1), 1, False
    )  # f32[4, 3, 3, 3]
    sum_6 = torch.sum(where * multiply, dim=(0, 2, 3))    # f32[4]
    reshape_6 = sum_6.reshape((4, 1, 1)).reshape((4,))    # f32[4]
    reshape_7 = torch.sum(where, dim=(0, 2, 3)).reshape((4, 1, 1))  # f32[4, 1, 1]
    reshape_8 = reshape_7.reshape((4,))                   # f32[4]
    dot = divide.T @ multiply_1                           # f32[4, 5]
    sum_7 = torch.sum(multiply_1, dim=0)                  # f32[5]
    return divide_1, conv_1, conv_weights, reshape_6, reshape_8, dot, sum_7
