"""Bounds for gradients: as trees, and as `backward()` leaves them in parameters."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from typing import Any

import tenon as tn

from .. import _core


def clip_grad_norm(grads: Any, max_norm: float) -> tuple[Any, tn.Tensor]:
    """The gradients scaled down to a norm of at most `max_norm`, and the norm they had.

    It is the norm of all elements of all gradients together.

        >>> clipped, norm = tn.optim.clip_grad_norm({"w": tn.array([3.0, 4.0])}, max_norm=1.0)
        >>> clipped, norm
        ({'w': tensor([0.5999999 , 0.79999983], dtype=float32)}, tensor(5., dtype=float32))
    """
    norm = _norm("clip_grad_norm", tn.tree.leaves(grads))
    scale = _scale("clip_grad_norm", norm, max_norm)
    return tn.tree.map(lambda g: (g * scale.to_device(g.device)).astype(g.dtype), grads), norm


def clip_grad_value(grads: Any, clip_value: float) -> Any:
    """The gradients with every element between `-clip_value` and `clip_value`."""
    _check_not_negative("clip_grad_value", "clip_value", clip_value)
    return tn.tree.map(lambda g: tn.clip(g, -clip_value, clip_value), grads)


def clip_grad_norm_(parameters: Any, max_norm: float) -> tn.Tensor:
    """`clip_grad_norm` of the gradients in parameters, those of a module or a list; the norm."""
    having = _having_grad(parameters)
    norm = _norm("clip_grad_norm_", [p.grad for p in having if p.grad is not None])
    scale = _scale("clip_grad_norm_", norm, max_norm)
    _change(having, lambda g: (g * scale.to_device(g.device)).astype(g.dtype))
    return norm


def clip_grad_value_(parameters: Any, clip_value: float) -> None:
    """`clip_grad_value` of the gradients in parameters, those of a module or a list."""
    _check_not_negative("clip_grad_value_", "clip_value", clip_value)
    _change(_having_grad(parameters), lambda g: tn.clip(g, -clip_value, clip_value))


def _norm(name: str, grads: list[tn.Tensor]) -> tn.Tensor:
    if not grads:
        _core._fail("value", f"{name}: there are no gradients; call loss.backward() first")
    squares = [tn.sum(tn.square(g.astype(tn.result_type(g.dtype, tn.float32)))) for g in grads]
    if len({x.device for x in squares}) > 1:  # stages of a pipeline
        from ..nn.pipeline_stages import whole_mesh

        squares = [x.to_device(whole_mesh(x.device)) for x in squares]
    return tn.sqrt(tn.sum(tn.stack(squares)))


def _scale(name: str, norm: tn.Tensor, max_norm: float) -> tn.Tensor:
    _check_not_negative(name, "max_norm", max_norm)
    return tn.minimum(max_norm / (norm + 1e-6), 1)


def _having_grad(parameters: Any) -> list[tn.Tensor]:
    if isinstance(parameters, Iterable) and not isinstance(parameters, (dict, tn.Tensor)):
        parameters = list(parameters)
    each_once = {id(p): p for p in tn.tree.leaves(parameters)}  # tied ones have several places
    return [p for p in each_once.values() if p.grad is not None]


def _change(parameters: list[tn.Tensor], f: Callable[[tn.Tensor], tn.Tensor]) -> None:
    for parameter in parameters:
        if parameter.grad is not None:
            parameter.grad = f(parameter.grad)


def _check_not_negative(name: str, argument: str, value: float) -> None:
    if not value >= 0:
        _core._fail("value", f"{name}: {argument} must be at least 0, not {value}")
