"""Normalisations: `(x - mean) / sqrt(var + eps) * weight + bias`, with means over various axes."""

from __future__ import annotations

from typing import Any

import tenon as tn

from .. import _core
from .checks import (
    SPATIAL_AXES,
    Sizes,
    also_called,
    check_channels,
    check_divides,
    check_shape,
    check_sizes,
    one_per_axis,
    refuse,
    type_text,
)
from .description import described
from .module import Module


class BatchNorm(Module):
    """Normalises each channel over everything else.

    `x` is [batch, num_features, ...], or [..., num_features] with `channels_last`. In training the
    mean and variance are those of `x`, and `running_mean` and `running_var` move to them by
    `momentum` of the way (the variance there is that of a sample, with n - 1). Otherwise they are
    the running ones. These are buffers: state that is never trained. The `num_batches_tracked` of
    PyTorch's files has no use here, and is left out when they are loaded.

        >>> layer = tn.nn.BatchNorm(2)
        >>> layer(tn.array([[1.0, 10.0], [3.0, 30.0]])).round(3).tolist()
        [[-1.0, -1.0], [1.0, 1.0]]
        >>> layer.running_mean.tolist()
        [0.20000000298023224, 2.0]
    """

    buffers = ("running_mean", "running_var")
    axes: tuple[Any, ...] = (...,)  # of a class: those beside batch and channels

    def __init__(
        self,
        num_features: int,
        eps: float = 1e-5,
        momentum: float = 0.1,
        affine: bool = True,
        track_running_stats: bool = True,
        *,
        channels_last: bool = False,
    ) -> None:
        check_sizes(self, num_features=num_features)
        if not isinstance(momentum, (int, float)):
            refuse(self, f"momentum must be a number, not {momentum!r}")
        self.num_features = num_features
        self.eps = eps
        self.momentum = momentum
        self.channels_last = channels_last
        self.weight = tn.ones(num_features) if affine else None
        self.bias = tn.zeros(num_features) if affine else None
        self.running_mean = tn.zeros(num_features) if track_running_stats else None
        self.running_var = tn.ones(num_features) if track_running_stats else None

    def forward(self, x: tn.Tensor) -> tn.Tensor:
        check_channels(self, x, self.num_features, *self.axes)
        axis = -1 if self.channels_last else 1
        if not self.training and self.running_mean is not None:
            mean, var = self.running_mean, self.running_var
        else:
            others = [a for a in range(x.ndim) if a != axis % x.ndim]
            mean, var = tn.mean(x, others), tn.var(x, others)
            if self.training and self.running_mean is not None:
                count = x.size // self.num_features
                if count == 1:
                    refuse(self, f"training needs more than one value a channel: {type_text(x)}")
                self._track(mean, var * count / (count - 1))
        return tn.batch_norm(x, mean, var, self.weight, self.bias, self.eps, axis)

    def _track(self, mean: tn.Tensor, var: tn.Tensor) -> None:
        if not _core._is_traced(self.running_mean):
            # A loop that never looks at them would keep what they come from: all activations.
            tn.eval(self.running_mean, self.running_var)
        self.running_mean = self._moved(self.running_mean, mean)
        self.running_var = self._moved(self.running_var, var)

    def _moved(self, running: tn.Tensor, new: tn.Tensor) -> tn.Tensor:
        moved = (1 - self.momentum) * running + self.momentum * tn.stop_gradient(new)
        return moved.astype(running.dtype)

    def describe(self) -> str:
        return described(self, self.num_features, eps=1e-5, momentum=0.1, channels_last=False)


class BatchNorm1d(BatchNorm):
    """`BatchNorm` of [batch, num_features] or [batch, num_features, length].

        >>> tn.nn.BatchNorm1d(8)(tn.zeros((4, 8, 20))).shape
        (4, 8, 20)
    """

    def forward(self, x: tn.Tensor) -> tn.Tensor:
        if getattr(x, "ndim", None) != 2:
            check_channels(self, x, self.num_features, *SPATIAL_AXES[1])
        return super().forward(x)


class BatchNorm2d(BatchNorm):
    """`BatchNorm` of [batch, num_features, height, width].

        >>> tn.nn.BatchNorm2d(8)(tn.zeros((4, 8, 16, 16))).shape
        (4, 8, 16, 16)
    """

    axes = SPATIAL_AXES[2]


class BatchNorm3d(BatchNorm):
    """`BatchNorm` of [batch, num_features, depth, height, width].

        >>> tn.nn.BatchNorm3d(8)(tn.zeros((4, 8, 5, 6, 7))).shape
        (4, 8, 5, 6, 7)
    """

    axes = SPATIAL_AXES[3]


class GroupNorm(Module):
    """Normalises each example and each of `num_groups` runs of channels over everything else.

    `x` is [batch, num_channels, ...], or [batch, ..., num_channels] with `channels_last`.

        >>> tn.nn.GroupNorm(2, 4)(tn.array([[1.0, 3.0, 5.0, 9.0]])).round(3).tolist()
        [[-1.0, 1.0, -1.0, 1.0]]
    """

    def __init__(
        self,
        num_groups: int,
        num_channels: int,
        eps: float = 1e-5,
        affine: bool = True,
        *,
        channels_last: bool = False,
    ) -> None:
        check_sizes(self, num_groups=num_groups, num_channels=num_channels)
        check_divides(self, "num_groups", num_groups, num_channels=num_channels)
        self.num_groups = num_groups
        self.num_channels = num_channels
        self.eps = eps
        self.channels_last = channels_last
        self.weight = tn.ones(num_channels) if affine else None
        self.bias = tn.zeros(num_channels) if affine else None

    def forward(self, x: tn.Tensor) -> tn.Tensor:
        check_channels(self, x, self.num_channels, ...)
        axis = -1 if self.channels_last else 1
        return tn.group_norm(
            x, self.weight, self.bias, num_groups=self.num_groups, eps=self.eps, axis=axis
        )

    def describe(self) -> str:
        sizes = f"{self.num_channels} in {self.num_groups} groups"
        return described(self, sizes, eps=1e-5, channels_last=False)


class InstanceNorm(GroupNorm):
    """Normalises each example and each channel over everything else, `GroupNorm` of single ones.

        >>> tn.nn.InstanceNorm(2)(tn.array([[[1.0, 3.0], [5.0, 9.0]]])).round(3).tolist()
        [[[-1.0, 1.0], [-1.0, 1.0]]]
    """

    def __init__(
        self,
        num_features: int,
        eps: float = 1e-5,
        affine: bool = False,
        *,
        channels_last: bool = False,
    ) -> None:
        check_sizes(self, num_features=num_features)
        super().__init__(num_features, num_features, eps, affine, channels_last=channels_last)

    def describe(self) -> str:
        return described(self, self.num_channels, eps=1e-5, channels_last=False)


class LayerNorm(Module):
    """Normalises over the last axes, whose extents are `normalized_shape`.

        >>> tn.nn.LayerNorm(2)(tn.array([[1.0, 3.0], [5.0, 9.0]])).round(3).tolist()
        [[-1.0, 1.0], [-1.0, 1.0]]
    """

    @also_called(elementwise_affine="affine")
    def __init__(
        self, normalized_shape: Sizes, eps: float = 1e-5, affine: bool = True, bias: bool = True
    ) -> None:
        axes = len(normalized_shape) if isinstance(normalized_shape, (list, tuple)) else 1
        shape = one_per_axis(self, "normalized_shape", normalized_shape, axes)
        self.normalized_shape = shape
        self.eps = eps
        self.weight = tn.ones(shape) if affine else None
        self.bias = tn.zeros(shape) if affine and bias else None

    def forward(self, x: tn.Tensor) -> tn.Tensor:
        check_shape(self, x, ..., *self.normalized_shape)
        return tn.layer_norm(x, self.weight, self.bias, self.eps, len(self.normalized_shape))

    def describe(self) -> str:
        return described(self, *self.normalized_shape, eps=1e-5)


class RMSNorm(Module):
    """`x / sqrt(mean(x * x) + eps) * weight`, along the last axis.

        >>> tn.nn.RMSNorm(2)(tn.array([3.0, -3.0])).round(3).tolist()
        [1.0, -1.0]
    """

    def __init__(self, dims: int, eps: float = 1e-5, affine: bool = True) -> None:
        check_sizes(self, dims=dims)
        self.dims = dims
        self.eps = eps
        self.weight = tn.ones(dims) if affine else None

    def forward(self, x: tn.Tensor) -> tn.Tensor:
        check_shape(self, x, ..., self.dims)
        return tn.rms_norm(x, self.weight, self.eps)

    def describe(self) -> str:
        return described(self, self.dims, eps=1e-5)
