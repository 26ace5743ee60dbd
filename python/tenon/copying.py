"""Functions that pickles refer to: they rebuild tensors and compiled functions."""

from __future__ import annotations

import sys
import types
from collections.abc import Callable
from functools import reduce
from typing import Any

from . import _core


def tensor(
    dtype: str,
    shape: tuple[int, ...],
    data: Any,
    requires_grad: bool | None,
    type: Any,
    device: str | None = None,
) -> _core.Tensor:
    """A tensor of the bytes of its elements. Nothing that is given is trusted."""
    return _core._read_pickle(dtype, shape, data, requires_grad, type, device)


def result_class(name: str) -> type | None:
    """The class of the results of an op with several, as `top_k_result`, which pickles name."""
    base = name.removesuffix("_along_dim_result")
    if base != name and hasattr(_core.Tensor, base):
        getattr(_core.zeros((1,)), base)(dim=0)  # those of `x.max(dim=0)` are made when first used
    found = (kind for kind in tuple.__subclasses__() if kind.__name__ == name)
    return next((kind for kind in found if kind.__module__ == "tenon"), None)


def reduced(
    compiled: Any, fun: Callable[..., Any], options: dict[str, Any]
) -> str | tuple[Any, ...]:
    """Return what pickle stores: a name, if the function was compiled where it is defined."""
    module = sys.modules.get(getattr(fun, "__module__", None) or "")
    name = getattr(fun, "__qualname__", "")
    if _found(module, name) is compiled:
        return name
    return compile_again, (fun, options)


def copied(
    compiled: Any, fun: Callable[..., Any], options: dict[str, Any], memo: dict[int, Any]
) -> Any:
    """Implement deepcopy: functions are not copied; a method is bound to the copied object."""
    if not isinstance(fun, types.MethodType):
        return compiled
    import copy

    return compile_again(copy.deepcopy(fun, memo), copy.deepcopy(options, memo))


def compile_again(fun: Any, options: dict[str, Any]) -> Any:
    from .compilation import compile

    return compile(fun, **options)


def _found(module: Any, name: str) -> Any:
    try:
        return reduce(getattr, name.split("."), module)
    except AttributeError:
        return None
