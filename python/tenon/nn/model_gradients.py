"""The gradients of a model's parameters."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import tenon as tn

from .. import _core
from .module import Module, hidden_parameters


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
        trained = model.trainable_parameters()
        if not trained and (hidden := hidden_parameters(model)):
            _core._fail("value", f"nn.value_and_grad: {type(model).__name__} {hidden}")
        before = _parameters_by_module(model, trained)

        def of_parameters(*parameters: Any) -> Any:
            for (module, _), own in zip(before, parameters):
                module.update(own)
            return f(*args, **kwargs)

        lists = tuple(parameters for _, parameters in before)
        keys = tuple(range(len(lists)))
        call = _core._call_value_and_grad
        try:
            with tn.no_grad():  # nothing is to be kept for backward(), should an optimizer want it
                value, grads = call(of_parameters, lists, {}, keys, False, len(lists))
            return value, grads[0]
        finally:
            for module, parameters in before:
                module.update(parameters)

    return wrapper


def _parameters_by_module(model: Module, trained: Any) -> list[tuple[Module, Any]]:
    """Return what is trained of `model` and of the copies that functions around got as arguments.

    All have the shapes of the first: what vmap has cut is not what the whole model has.
    """
    found = [
        (copy, _chosen(_core._parameters_of(copy, frozen=True), trained, copy))
        for copy in _core._stand_ins_of(model)
    ]
    if not found:
        return [(model, trained)]
    found.append((model, trained))
    shapes = [[x.shape for x in tn.tree.leaves(parameters)] for _, parameters in found]
    return [each for each, own in zip(found, shapes) if own == shapes[0]]


def _chosen(parameters: Any, wanted: Any, copy: Module) -> Any:
    """The tensors of `parameters` at the places of those of `wanted`."""
    if isinstance(wanted, tn.Tensor):
        return parameters
    try:
        if isinstance(wanted, dict):
            return {name: _chosen(parameters[name], part, copy) for name, part in wanted.items()}
        return [_chosen(own, part, copy) for own, part in zip(parameters, wanted, strict=True)]
    except (LookupError, TypeError, ValueError):
        text = f"the {type(copy).__name__} that is an argument has other parameters than the model"
        _core._fail("value", f"nn.value_and_grad: {text}")
