"""LBFGS: a quasi-Newton method for losses that are the same at every evaluation."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import tenon as tn

from .. import _core
from .line_search import strong_wolfe
from .optimizer import Optimizer, both_habits

Closure = Callable[[], Any]


class LBFGS(Optimizer):
    """LBFGS (Liu and Nocedal, 1989): steps along `-H g`, where `H` is an estimate of the inverse of
    the Hessian from the last `history_size` changes of parameters and gradients.

    A step evaluates `closure`, which computes the loss and its gradients, up to `max_eval` times
    (by default 1.25 times `max_iter`):

        >>> w = tn.array([3.0, -2.0])
        >>> optimizer = tn.optim.LBFGS([w], lr=0.5, line_search_fn="strong_wolfe")
        >>> def closure():
        ...     optimizer.zero_grad()
        ...     loss = tn.sum(w**2)
        ...     loss.backward()
        ...     return loss
        >>> first = optimizer.step(closure)
        >>> first.item(), abs(closure().item()) < 1e-8
        (13.0, True)

    It ends before `max_iter` iterations where no gradient is larger than `tolerance_grad`, and
    where the change of parameters or loss is less than `tolerance_change`. How far a step goes is
    `lr`, or found by a line search with the strong Wolfe conditions. It branches on values of the
    loss: it cannot be a part of a compiled function, while the closure may call one.
    """

    @both_habits
    def __init__(
        self,
        learning_rate: float = 1.0,
        max_iter: int = 20,
        max_eval: int | None = None,
        tolerance_grad: float = 1e-7,
        tolerance_change: float = 1e-9,
        history_size: int = 100,
        line_search_fn: str | None = None,
    ) -> None:
        super().__init__(learning_rate)
        if line_search_fn not in (None, "strong_wolfe"):
            self._refuse(f"line_search_fn must be None or 'strong_wolfe', not {line_search_fn!r}")
        for name, value in (("max_iter", max_iter), ("history_size", history_size)):
            if value < 1:
                self._refuse(f"{name} must be at least 1, not {value}")
        self.max_iter, self.history_size = max_iter, history_size
        self.max_eval = max_iter * 5 // 4 if max_eval is None else max_eval
        self.tolerance_grad, self.tolerance_change = tolerance_grad, tolerance_change
        self.line_search_fn = line_search_fn
        # Changes of parameters and of gradients, the oldest first; and the end of the last step.
        self.state |= {"changes": [], "gradient_changes": [], "last": {}}

    def _add_group(self, parameters: Any, options: dict[str, Any]) -> None:
        self._refuse("it takes one group of parameters", hint="list all of them: [a, b]")

    def apply_single(
        self, gradient: tn.Tensor, parameter: tn.Tensor, state: dict[str, Any]
    ) -> tn.Tensor:
        self._refuse("it needs a closure that evaluates the loss: step(closure)", "type")

    def step(self, closure: Closure | None = None) -> Any:
        """Evaluates `closure` and improves the parameters, several times; the first loss."""
        if closure is None:
            self._refuse("step: a closure that evaluates the loss is needed", "type")
        if _core._is_tracing():
            hint = "let the closure call a compiled function"
            text = "step: it cannot be traced, because it branches on computed values"
            self._refuse(text, "type", hint)
        first = self._evaluated(closure)
        with tn.no_grad():
            loss, flat = float(first), self._flat_gradient()
            if _largest(flat) > self.tolerance_grad:
                self._iterate(closure, loss, flat)
            tn.eval([parameter for _, parameter in self._watched()], self.state)
        return first

    def _iterate(self, closure: Closure, loss: float, flat: tn.Tensor) -> None:
        last, evaluations = self.state["last"], 1
        for iteration in range(1, self.max_iter + 1):
            self._count_step()
            if last:
                change = last["direction"] * last["length"].item()
                self._remember(change, flat - last["gradient"])
            direction = self._direction(flat)
            slope = float(tn.sum(flat * direction))
            length = self.learning_rate.item()
            if not last:  # nothing is known of the scale yet
                length *= min(1.0, 1.0 / float(tn.sum(tn.abs(flat))))
            before = loss
            last |= {"gradient": flat, "direction": direction}
            last["length"] = tn.array(length, tn.float64, device="cpu")
            if slope > -self.tolerance_change:
                return
            if self.line_search_fn:
                start = (loss, flat, slope)
                loss, flat, length, used = self._search(closure, direction, length, start)
                evaluations += used
                self._move(direction, length)
            else:
                self._move(direction, length)
                if iteration < self.max_iter:
                    loss, flat = self._loss_and_gradient(closure)
                    evaluations += 1
            last["length"] = tn.array(length, tn.float64, device="cpu")
            small = _largest(direction * length) <= self.tolerance_change
            done = small or abs(loss - before) < self.tolerance_change
            done = done or _largest(flat) <= self.tolerance_grad
            if done or iteration == self.max_iter or evaluations >= self.max_eval:
                return

    def _remember(self, change: tn.Tensor, gradient_change: tn.Tensor) -> None:
        """Store a curvature pair, if the curvature is positive."""
        if float(tn.sum(change * gradient_change)) <= 1e-10:
            return
        for name, value in (("changes", change), ("gradient_changes", gradient_change)):
            self.state[name] = [*self.state[name], value][-self.history_size :]
        tn.eval(change, gradient_change)

    def _direction(self, flat: tn.Tensor) -> tn.Tensor:
        """`-H g`, by the two loops over what is remembered."""
        direction = -flat
        pairs = list(zip(self.state["changes"], self.state["gradient_changes"]))
        weights = []
        for s, y in reversed(pairs):
            weight = tn.sum(s * direction) / tn.sum(s * y)
            direction = direction - weight * y
            weights.append(weight)
        if pairs:
            s, y = pairs[-1]
            direction = direction * (tn.sum(s * y) / tn.sum(y * y))
        for (s, y), weight in zip(pairs, reversed(weights)):
            direction = direction + s * (weight - tn.sum(y * direction) / tn.sum(s * y))
        return direction.eval()

    def _search(
        self,
        closure: Closure,
        direction: tn.Tensor,
        length: float,
        start: tuple[float, tn.Tensor, float],
    ) -> tuple[float, tn.Tensor, float, int]:
        before = [parameter.detach() for _, parameter in self._watched()]

        def at(length: float) -> tuple[float, tn.Tensor, float]:
            self._move(direction, length)
            loss, flat = self._loss_and_gradient(closure)
            for (_, parameter), value in zip(self._watched(), before):
                _core._rebind(parameter, value)
            return loss, flat, float(tn.sum(flat * direction))

        scale = _largest(direction)
        return strong_wolfe(at, length, start, scale, self.tolerance_change)

    def _loss_and_gradient(self, closure: Closure) -> tuple[float, tn.Tensor]:
        return float(self._evaluated(closure)), self._flat_gradient()

    def _flat_gradient(self) -> tn.Tensor:
        """The gradients of all parameters in a row; zeros for those without one."""
        watched = self._watched()
        if not watched:
            self._refuse(f"step: {self._why_nothing(0)}")
        parts = [tn.zeros_like(p) if p.grad is None else p.grad for _, p in watched]
        return tn.concat([tn.reshape(part, (-1,)) for part in parts]).eval()

    def _move(self, direction: tn.Tensor, length: float) -> None:
        begin = 0
        for _, parameter in self._watched():
            part = tn.reshape(direction[begin : begin + parameter.size], parameter.shape)
            _core._rebind(parameter, (parameter + length * part).astype(parameter.dtype).eval())
            begin += parameter.size


def _largest(x: tn.Tensor) -> float:
    return float(tn.max(tn.abs(x))) if x.size else 0.0
