"""Convolutions. Their weights have PyTorch's shapes, also with `channels_last`."""

from __future__ import annotations

from math import prod
from typing import Any

import tenon as tn

from .checks import (
    SPATIAL_AXES,
    Sizes,
    check_channels,
    check_divides,
    check_sizes,
    one_per_axis,
    refuse,
)
from .description import described, one_for_all
from .module import Module
from .padding import check_mode, padded


class _Convolution(Module):
    """What convolutions and their adjoints share: arguments, parameters and checks."""

    # Of a class:
    spatial_axes = 0  # if 0, as many as kernel_size has numbers
    usual: dict[str, Any] = {
        "stride": 1,
        "padding": 0,
        "dilation": 1,
        "groups": 1,
        "channels_last": False,
    }

    def __init__(
        self,
        in_channels: int,
        out_channels: int,
        kernel_size: Sizes,
        stride: Sizes,
        dilation: Sizes,
        groups: int,
        channels_last: bool,
    ) -> None:
        check_sizes(self, in_channels=in_channels, out_channels=out_channels, groups=groups)
        check_divides(self, "groups", groups, in_channels=in_channels, out_channels=out_channels)
        axes = self.spatial_axes
        if axes == 0:
            if not isinstance(kernel_size, (list, tuple)) or not 1 <= len(kernel_size) <= 3:
                refuse(self, f"kernel_size must be 1 to 3 integers, not {kernel_size!r}")
            axes = len(kernel_size)
        self.in_channels = in_channels
        self.out_channels = out_channels
        self.kernel_size = one_per_axis(self, "kernel_size", kernel_size, axes)
        self.stride = one_per_axis(self, "stride", stride, axes)
        self.dilation = one_per_axis(self, "dilation", dilation, axes)
        self.groups = groups
        self.channels_last = channels_last

    def _draw_parameters(self, channels: tuple[int, int], bias: bool) -> None:
        """Uniformly between plus and minus 1 / sqrt(the number of weights behind an output)."""
        bound = (channels[1] * prod(self.kernel_size)) ** -0.5
        self.weight = tn.random.uniform(-bound, bound, (*channels, *self.kernel_size))
        self.bias = tn.random.uniform(-bound, bound, (self.out_channels,)) if bias else None

    def _check(self, x: tn.Tensor) -> None:
        check_channels(self, x, self.in_channels, *SPATIAL_AXES[len(self.kernel_size)])

    def describe(self) -> str:
        channels = f"{self.in_channels} -> {self.out_channels}"
        kernel = f"kernel_size={one_for_all(self.kernel_size)}"
        text = described(self, channels, kernel, **self.usual)
        return text if self.bias is not None else f"{text}, bias=False"


class Conv(_Convolution):
    """Slides kernels over `x`, [batch, in_channels, spatial axes ...], without mirroring them.

    `kernel_size` has one number for each of the 1 to 3 spatial axes. `Conv1d`, `Conv2d` and
    `Conv3d` take one number for all too, as `stride`, `padding` and `dilation` may be here.
    `padding` may also be "same" or "valid"; what it puts around `x` is zeros, or by `padding_mode`
    "reflect", "replicate" (the edge) or "circular" what the layers of `nn.padding` put there. The
    weight is [out_channels, in_channels / groups, *kernel_size]; with `channels_last`, `x` is
    [batch, spatial axes ..., in_channels] and the weight is the same.

        >>> tn.nn.Conv(3, 8, (5,))(tn.zeros((2, 3, 20))).shape
        (2, 8, 16)
    """

    usual = {**_Convolution.usual, "padding_mode": "zeros"}

    def __init__(
        self,
        in_channels: int,
        out_channels: int,
        kernel_size: Sizes,
        stride: Sizes = 1,
        padding: Sizes | str = 0,
        dilation: Sizes = 1,
        groups: int = 1,
        bias: bool = True,
        padding_mode: str = "zeros",
        *,
        channels_last: bool = False,
    ) -> None:
        super().__init__(
            in_channels, out_channels, kernel_size, stride, dilation, groups, channels_last
        )
        check_mode(self, padding_mode)
        self.padding_mode = padding_mode
        if isinstance(padding, str):
            if padding not in ("same", "valid"):
                refuse(self, f"padding must be numbers, 'same' or 'valid', not {padding!r}")
            self.padding: str | tuple[int, ...] = padding
        else:
            self.padding = one_per_axis(self, "padding", padding, len(self.kernel_size), least=0)
        self._draw_parameters((out_channels, in_channels // groups), bias)

    def forward(self, x: tn.Tensor) -> tn.Tensor:
        self._check(x)
        conv = (tn.conv1d, tn.conv2d, tn.conv3d)[len(self.kernel_size) - 1]
        padding: str | tuple[int, ...] = self.padding
        if self.padding_mode != "zeros":
            x, padding = self._padded(x), "valid"
        by_name = isinstance(padding, str)
        return conv(
            x,
            tn.moveaxis(self.weight, 1, -1) if self.channels_last else self.weight,
            self.bias,
            self.stride,
            0 if by_name else padding,
            self.dilation,
            self.groups,
            self.channels_last,
            padding if by_name else "given",
        )

    def _padded(self, x: tn.Tensor) -> tn.Tensor:
        if self.padding == "same":
            if any(step != 1 for step in self.stride):
                refuse(self, "padding 'same' needs a stride of 1")
            reach = [d * (k - 1) for d, k in zip(self.dilation, self.kernel_size)]
            sides = [(both // 2, both - both // 2) for both in reach]
        else:
            each = (0,) * len(self.kernel_size) if self.padding == "valid" else self.padding
            sides = [(side, side) for side in each]
        return padded(x, sides, self.padding_mode, self.channels_last)


class Conv1d(Conv):
    """`Conv` over [batch, in_channels, length].

        >>> tn.nn.Conv1d(3, 8, 5, stride=2)(tn.zeros((2, 3, 20))).shape
        (2, 8, 8)
    """

    spatial_axes = 1


class Conv2d(Conv):
    """`Conv` over [batch, in_channels, height, width].

        >>> layer = tn.nn.Conv2d(3, 8, 5, padding=2)
        >>> layer
        Conv2d(3 -> 8, kernel_size=5, padding=2)
        >>> layer(tn.zeros((2, 3, 16, 20))).shape
        (2, 8, 16, 20)
    """

    spatial_axes = 2


class Conv3d(Conv):
    """`Conv` over [batch, in_channels, depth, height, width].

        >>> tn.nn.Conv3d(3, 8, 3, padding="same")(tn.zeros((2, 3, 5, 6, 7))).shape
        (2, 8, 5, 6, 7)
    """

    spatial_axes = 3


class ConvTranspose(_Convolution):
    """The adjoint of `Conv` in its input: it goes from that one's outputs to its inputs.

    An axis of n elements becomes one of (n - 1) * stride - 2 * padding + dilation * (kernel_size
    - 1) + 1 + output_padding. The weight is [in_channels, out_channels / groups, *kernel_size].

        >>> tn.nn.ConvTranspose(3, 8, (5,))(tn.zeros((2, 3, 20))).shape
        (2, 8, 24)
    """

    usual = {**_Convolution.usual, "output_padding": 0}

    def __init__(
        self,
        in_channels: int,
        out_channels: int,
        kernel_size: Sizes,
        stride: Sizes = 1,
        padding: Sizes = 0,
        output_padding: Sizes = 0,
        groups: int = 1,
        bias: bool = True,
        dilation: Sizes = 1,
        *,
        channels_last: bool = False,
    ) -> None:
        super().__init__(
            in_channels, out_channels, kernel_size, stride, dilation, groups, channels_last
        )
        axes = len(self.kernel_size)
        self.padding = one_per_axis(self, "padding", padding, axes, least=0)
        self.output_padding = one_per_axis(self, "output_padding", output_padding, axes, least=0)
        self._draw_parameters((in_channels, out_channels // groups), bias)

    def forward(self, x: tn.Tensor) -> tn.Tensor:
        self._check(x)
        conv_transpose = (tn.conv_transpose1d, tn.conv_transpose2d, tn.conv_transpose3d)
        return conv_transpose[len(self.kernel_size) - 1](
            x,
            self._weight_with_channels_last() if self.channels_last else self.weight,
            self.bias,
            self.stride,
            self.padding,
            self.output_padding,
            self.groups,
            self.dilation,
            self.channels_last,
        )

    def _weight_with_channels_last(self) -> tn.Tensor:
        """The weight as [out_channels, *kernel_size, in_channels / groups]."""
        groups = tn.unflatten(self.weight, 0, (self.groups, -1))
        return tn.flatten(tn.moveaxis(groups, 1, -1), 0, 1)


class ConvTranspose1d(ConvTranspose):
    """`ConvTranspose` over [batch, in_channels, length].

        >>> tn.nn.ConvTranspose1d(3, 8, 4, stride=2, padding=1)(tn.zeros((2, 3, 10))).shape
        (2, 8, 20)
    """

    spatial_axes = 1


class ConvTranspose2d(ConvTranspose):
    """`ConvTranspose` over [batch, in_channels, height, width].

        >>> tn.nn.ConvTranspose2d(3, 8, 2, stride=2)(tn.zeros((2, 3, 4, 5))).shape
        (2, 8, 8, 10)
    """

    spatial_axes = 2


class ConvTranspose3d(ConvTranspose):
    """`ConvTranspose` over [batch, in_channels, depth, height, width].

        >>> tn.nn.ConvTranspose3d(3, 8, 2, stride=2)(tn.zeros((2, 3, 4, 5, 6))).shape
        (2, 8, 8, 10, 12)
    """

    spatial_axes = 3
