"""Mixed precision: products in a narrow type, numerically sensitive ops in float32.

Parameters stay float32 (they are their own master weights), and so do their gradients: the
conversion to the narrow type is a recorded op, and its derivative converts back.

    >>> model = tn.nn.Linear(8, 4)
    >>> x = tn.ones((2, 8))
    >>> with tn.amp.autocast(tn.bfloat16):
    ...     y = model(x)
    ...     loss = tn.mean(y)
    >>> y.dtype, loss.dtype, model.weight.dtype
    (tenon.bfloat16, tenon.float32, tenon.float32)

Training in float16 also needs a `LossScaler`, because small gradients underflow to 0.
"""

from __future__ import annotations

import contextlib
import dataclasses
import functools
import operator
from typing import TYPE_CHECKING, Any

import tenon as tn

from . import _core

__all__ = ["LossScaler", "Policy", "all_finite", "autocast", "policy"]


_LARGEST = 2.0**100  # scale; its inverse is the smallest: both are floats with an inverse


@dataclasses.dataclass(frozen=True)
class Policy:
    """The types that ops convert float32, bfloat16 and float16 operands to while it is active.

        >>> tn.amp.Policy(tn.float16).type_of("matmul"), tn.amp.Policy().type_of("softmax")
        (tenon.float16, tenon.float32)
    """

    dtype: tn.DType = tn.bfloat16

    def type_of(self, op: str) -> tn.DType | None:
        """The type that the op converts its operands to; None if it keeps their type."""
        types = {"low": self.dtype, "full": tn.float32, "any": None}
        return types[_core._precision_of(op)]


class autocast(contextlib.ContextDecorator):
    """Activates a policy on this thread, in a `with` statement or as a decorator.

    Products, convolutions and attention convert their operands to `dtype`; sums, norms, softmax,
    losses, exponentials and logarithms convert to float32. A composite op converts as a whole, and
    derivatives use the types of the ops they differentiate, wherever they are taken.
    `enabled=False` disables an enclosing policy. A compiled function has one trace per policy.

        >>> @tn.amp.autocast(tn.float16)
        ... def product(a, b):
        ...     return a @ b
        >>> product(tn.ones((2, 2)), tn.ones((2, 2))).dtype
        tenon.float16
    """

    def __init__(self, dtype: tn.DType | str | Policy = tn.bfloat16, enabled: bool = True) -> None:
        self._narrow = dtype.dtype if isinstance(dtype, Policy) else dtype
        self._enabled = enabled
        self._before: list[tn.DType | None] = []

    def _recreate_cm(self) -> autocast:
        return autocast(self._narrow, self._enabled)  # calls on several threads do not share one

    def __enter__(self) -> Policy | None:
        self._before.append(_core._set_autocast(self._narrow if self._enabled else None))
        return policy()

    def __exit__(self, *_: object) -> None:
        _core._set_autocast(self._before.pop())


def policy() -> Policy | None:
    """The active policy of this thread."""
    dtype = _core._autocast()
    return None if dtype is None else Policy(dtype)


def all_finite(values: Any) -> tn.Tensor:
    """Whether all tensors of a tree are free of infinities and NaNs.

        >>> tn.amp.all_finite({"w": tn.array([1.0, float("inf")])})
        tensor(False, dtype=bool)
    """
    nothing = tn.array(True, device="cpu")
    finite: dict[tn.Device, tn.Tensor] = {}
    for leaf in tn.tree.leaves(values):
        finite[leaf.device] = finite.get(leaf.device, nothing) & tn.all(tn.isfinite(leaf))
    if len(finite) == 1:
        return next(iter(finite.values()))
    return functools.reduce(operator.and_, (f.to_device("cpu") for f in finite.values()), nothing)


class LossScaler:
    """Keeps gradients in the range of float16: scales the loss up and the gradients down.

    A dynamic scaler doubles the scale after `interval` successful steps, and halves it when a
    gradient overflows. Such a step leaves parameters and optimizer unchanged. The decision is made
    on values inside the step, so the step can be compiled; pass `state` in `inputs=` and
    `outputs=`, together with that of the model and the optimizer.

        >>> model, optimizer = tn.nn.Linear(2, 1), tn.optim.SGD(0.1)
        >>> scaler = tn.amp.LossScaler()
        >>> def loss_fn(x):
        ...     with tn.amp.autocast(tn.float16):
        ...         return scaler.scale(tn.mean(model(x)))
        >>> def step(x):
        ...     loss, grads = tn.nn.value_and_grad(model, loss_fn)(x)
        ...     scaler.update(optimizer, model, scaler.unscale(grads))
        ...     return scaler.unscale(loss)
        >>> step(tn.ones((4, 2))).dtype, optimizer.state["step"].item()
        (tenon.float32, 1)
    """

    def __init__(
        self,
        scale: float = 2.0**15,
        *,
        dynamic: bool = True,
        growth: float = 2.0,
        backoff: float = 0.5,
        interval: int = 2000,
    ) -> None:
        if not scale > 0 or not growth >= 1 or not 0 < backoff < 1 or interval < 1:
            _core._fail(
                "value",
                "LossScaler: scale > 0, growth >= 1, 0 < backoff < 1 and interval >= 1 are needed:"
                f" {scale}, {growth}, {backoff} and {interval}",
            )
        self._dynamic, self._growth, self._backoff = dynamic, growth, backoff
        self._interval, self._unscaled = interval, set[int]()  # ids of optimizers
        self.state: dict[str, tn.Tensor] = {
            "scale": tn.array(scale, dtype=tn.float32, device="cpu"),  # of the next loss
            # Of the last loss, and its gradients.
            "used": tn.array(scale, dtype=tn.float32, device="cpu"),
            "good_steps": tn.array(0, device="cpu"),
        }

    def state_dict(self) -> dict[str, tn.Tensor]:
        """The state as a dict, for a checkpoint."""
        return dict(self.state)

    def load_state_dict(self, state: dict[str, tn.Tensor]) -> None:
        if state.keys() != self.state.keys():
            known, given = sorted(self.state), sorted(state)
            _core._fail("value", f"LossScaler: load_state_dict: a state has {known}, not {given}")
        self.state.update(state)

    def scale(self, loss: tn.Tensor) -> tn.Tensor:
        """The scaled loss, which is to be differentiated."""
        self.state["used"] = self.state["scale"]
        return loss * self.state["used"]

    def unscale(self, gradients: Any) -> Any:
        """The gradients of the loss from those of the scaled loss, in at least float32."""
        factor = 1.0 / self.state["used"]
        return tn.tree.map(lambda g: g * factor, gradients)

    def update(
        self,
        optimizer: tn.optim.Optimizer | None = None,
        model: tn.nn.Module | None = None,
        gradients: Any = None,
    ) -> None:
        """`optimizer.update(model, gradients)` if the unscaled gradients are finite.

        Without arguments it does nothing, for PyTorch's loops: `step` has already adjusted the
        scale.
        """
        if optimizer is None or model is None:
            return
        optimizer.init(model.trainable_parameters())
        parameters, state = model.parameters(), _copied(optimizer.state)
        optimizer.update(model, gradients)
        finite = self._adjust(gradients)
        kept = tn.tree.map(lambda n, o: _chosen(finite, n, o), model.parameters(), parameters)
        model.update(kept)
        _keep(finite, optimizer.state, state)

    def unscale_(self, optimizer: tn.optim.Optimizer) -> None:
        """Unscales the gradients stored by `backward()`, for clipping before `step`."""
        for _, parameter in optimizer._watched():
            if parameter.grad is not None:
                parameter.grad = self.unscale(parameter.grad).astype(parameter.dtype)
        self._unscaled.add(id(optimizer))

    def step(self, optimizer: tn.optim.Optimizer) -> None:
        """`optimizer.step()` if the unscaled gradients stored by `backward()` are finite."""
        if id(optimizer) not in self._unscaled:
            self.unscale_(optimizer)
        self._unscaled.remove(id(optimizer))
        parameters = [parameter for _, parameter in optimizer._watched()]
        gradients = [p.grad for p in parameters if p.grad is not None]
        before, state = [p.detach() for p in parameters], _copied(optimizer.state)
        optimizer.step()
        finite = self._adjust(gradients)
        with tn.no_grad():
            for new, old in zip(parameters, before):
                _core._rebind(new, tn.where(finite, new, old))
            _keep(finite, optimizer.state, state)
        if not _core._is_tracing():  # as `optimizer.step` does: loops may ask for no values
            tn.eval(parameters, optimizer.state, self.state)

    def _adjust(self, gradients: Any) -> tn.Tensor:
        """Whether gradients are finite; the scale for the next step follows from it."""
        finite = all_finite(gradients).to_device("cpu")
        if not self._dynamic:
            return finite
        scale, good = self.state["scale"], self.state["good_steps"] + 1
        grows = good >= self._interval
        larger = tn.minimum(scale * self._growth, _LARGEST)
        smaller = tn.maximum(scale * self._backoff, 1 / _LARGEST)
        self.state["scale"] = tn.where(finite, tn.where(grows, larger, scale), smaller)
        self.state["good_steps"] = tn.where(finite & ~grows, good, 0)
        return finite


def _copied(state: Any) -> Any:
    return tn.tree.map(lambda leaf: leaf, state)


def _chosen(finite: tn.Tensor, new: Any, old: Any) -> Any:
    return new if new is old else tn.where(finite, new, old)


def _keep(finite: tn.Tensor, state: Any, before: Any) -> None:
    """Leaves in nested dicts and lists what is there now, if it is finite, or else was before."""
    for key, new in state.items() if isinstance(state, dict) else enumerate(state):
        if isinstance(new, (dict, list)):
            _keep(finite, new, before[key])
        else:
            state[key] = _chosen(finite, new, before[key])


if not TYPE_CHECKING:  # to type checkers it would say that every name exists

    def __getattr__(name: str) -> object:
        from ._advice import missing_name

        raise AttributeError(missing_name(name, globals(), __name__), name=name)
