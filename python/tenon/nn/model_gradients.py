"""The gradients of a model's parameters."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import tenon as tn

from .. import _core
from .module import Module, hidden_parameters, modules_by_place


def value_and_grad(model: Module, f: Callable[..., Any]) -> Callable[..., Any]:
    """A function that returns the result of `f` and its gradient for the trainable parameters.

    `f` uses `model`, as an argument or not, and returns a scalar, or a tuple that starts with one.

        >>> model = tn.nn.Linear(2, 1)
        >>> loss_and_grad = tn.nn.value_and_grad(model, lambda x: tn.sum(model(x)))
        >>> loss, grads = loss_and_grad(tn.array([[1.0, 2.0]]))
        >>> grads
        {'weight': tensor([[1., 2.]], dtype=float32), 'bias': tensor([1.], dtype=float32)}
    """
    if not isinstance(model, Module) or not callable(f):
        given = f"{type(model).__name__} and {type(f).__name__}"
        hint = "without a module it is tn.value_and_grad(f)"
        _core._fail("type", f"nn.value_and_grad: needs a module and a function, not {given}", hint)

    def wrapper(*args: Any, **kwargs: Any) -> Any:
        used = [*_copies_among((args, kwargs), model), model]
        before = [module.trainable_parameters() for module in used]

        def of_parameters(parameters: Any) -> Any:
            for module in used:
                module.update(parameters)
            return f(*args, **kwargs)

        if not before[0] and (hidden := hidden_parameters(model)):
            _core._fail("value", f"nn.value_and_grad: {type(model).__name__} {hidden}")
        try:
            with tn.no_grad():  # nothing is to be kept for backward(), should an optimizer want it
                return tn.value_and_grad(of_parameters)(before[0])
        finally:
            for module, parameters in zip(used, before):
                module.update(parameters)

    return wrapper


def _copies_among(arguments: Any, model: Module) -> list[Module]:
    """Return the modules that stand for `model` among arguments of a transformed function."""
    copies = []
    for _, module in modules_by_place(arguments):
        original: Module | None = module
        while original is not None and original is not model:
            reference = getattr(original, "_original", None)
            original = reference() if reference else None
        if original is model and module is not model:
            copies.append(module)
    return copies
