"""Gradients of a large batch from small ones."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from typing import Any

import tenon as tn

from .. import _core


def accumulate(f: Callable[..., Any], batches: Iterable[Any]) -> Any:
    """The mean of `f(*batch)` over micro-batches of the same size: of losses, gradients, any tree.

    That is what `f` of the whole batch gives, within rounding, for losses that are means over
    examples; it needs the memory of one micro-batch. A batch that is no tuple is one argument.
    In a compiled function the micro-batches are part of the plan; `tn.data.split` makes them.

        >>> model = tn.nn.Linear(3, 1)
        >>> loss_and_grad = tn.nn.value_and_grad(model, lambda x: tn.mean(model(x) ** 2))
        >>> x = tn.randn(8, 3)
        >>> loss, grads = tn.optim.accumulate(loss_and_grad, tn.data.split(x, 4))
        >>> tn.allclose(grads["weight"], loss_and_grad(x)[1]["weight"], rtol=1e-5, atol=1e-6)
        tensor(True, dtype=bool)
    """
    total, count = None, 0
    for batch in batches:
        made = f(*batch) if isinstance(batch, tuple) else f(batch)
        total = made if total is None else tn.tree.map(lambda t, m: t + m, total, made)
        count += 1
        if not _core._is_tracing():  # what a micro-batch needed is let go of before the next
            tn.eval(total)
    if count == 0:
        _core._fail("value", "accumulate: there are no batches")
    return tn.tree.map(lambda t: t / count, total)
