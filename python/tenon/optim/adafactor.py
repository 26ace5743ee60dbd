"""Adafactor."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import tenon as tn

from .optimizer import Decay, Optimizer, Rate, both_habits


class Adafactor(Optimizer):
    """Adafactor (Shazeer and Stern, 2018), which remembers a row and a column of each matrix.

    They are the running means of the squared gradients along the last two axes; their product
    stands for the mean of each element. For vectors `v` itself is remembered:

        kept = 1 - step**decay_rate
        v = kept * v + (1 - kept) * gradient**2
        u = gradient / max(sqrt(v), eps[0])
        w = w - rate * u / max(1, rms(u) / clip_threshold)

    The rate is the learning rate, with `relative_step` at most `1 / sqrt(step)`; with
    `scale_parameter` times `max(eps[1], rms(w))`. `warmup_init` takes `1e-6 * step` for the
    learning rate, and `beta_1` keeps a running mean of the changes. Weight decay is `decoupled`.
    Where `eps[0]` is None it is the precision of the parameter.
    """

    decoupled = True

    @both_habits
    def __init__(
        self,
        learning_rate: Rate | None = None,
        eps: Sequence[float | None] = (None, 1e-3),
        clip_threshold: float = 1.0,
        decay_rate: float = -0.8,
        beta_1: float | None = None,
        weight_decay: Decay = 0.0,
        scale_parameter: bool = True,
        relative_step: bool = True,
        warmup_init: bool = False,
    ) -> None:
        super().__init__(1e-2 if learning_rate is None else learning_rate, weight_decay)
        if decay_rate > 0:
            self._refuse(f"decay_rate must be at most 0, not {decay_rate}")
        if beta_1 is not None:
            self._check_shares(beta_1=beta_1)
        self.eps, self.clip_threshold, self.decay_rate = eps, clip_threshold, decay_rate
        self.beta_1, self.scale_parameter = beta_1, scale_parameter
        self.relative_step, self.warmup_init = relative_step, warmup_init

    def init_single(self, parameter: tn.Tensor, state: dict[str, Any]) -> None:
        if parameter.ndim > 1:
            kind, place = parameter.dtype, parameter.device
            state["row"] = tn.zeros((*parameter.shape[:-1], 1), dtype=kind, device=place)
            shape = (*parameter.shape[:-2], 1, parameter.shape[-1])
            state["column"] = tn.zeros(shape, dtype=kind, device=place)
        else:
            state["v"] = tn.zeros_like(parameter)
        if self.beta_1 is not None:
            state["m"] = tn.zeros_like(parameter)

    def apply_single(
        self, gradient: tn.Tensor, parameter: tn.Tensor, state: dict[str, Any]
    ) -> tn.Tensor:
        least = self.eps[0]
        if least is None:
            least = tn.finfo(parameter.dtype).eps
        v = self._mean_square(gradient, state, least)
        change = gradient * tn.rsqrt(tn.maximum(v, least * least))
        change = change / tn.maximum(1.0, _rms(change) / self.clip_threshold)
        change = self._rate(parameter) * change
        if self.beta_1 is not None:
            change = state["m"] = self.beta_1 * state["m"] + (1 - self.beta_1) * change
        return parameter - change

    def _mean_square(
        self, gradient: tn.Tensor, state: dict[str, Any], least: float
    ) -> tn.Tensor:
        """The running mean of the squared gradient, of matrices as a product."""
        new = self.state["step"].astype(gradient.dtype) ** self.decay_rate

        def mean(name: str, value: tn.Tensor) -> tn.Tensor:
            state[name] = state[name] + new * (value - state[name])
            return state[name]

        square = tn.square(gradient)
        if gradient.ndim < 2:
            return mean("v", square)
        row = mean("row", tn.mean(square, axis=-1, keepdims=True))
        column = mean("column", tn.mean(square, axis=-2, keepdims=True))
        return row / tn.maximum(tn.mean(row, axis=-2, keepdims=True), least) * column

    def _rate(self, parameter: tn.Tensor) -> tn.Tensor:
        step = self.state["step"].astype(tn.float32)
        rate = 1e-6 * step if self.warmup_init else self.learning_rate
        if self.relative_step:
            rate = tn.minimum(rate, tn.rsqrt(step))
        return tn.maximum(self.eps[1], _rms(parameter)) * rate if self.scale_parameter else rate


def _rms(x: tn.Tensor) -> tn.Tensor:
    return tn.sqrt(tn.mean(tn.square(x)))
