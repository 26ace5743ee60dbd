"""Modules whose calls are compiled; they keep their parameters and names."""

from __future__ import annotations

from typing import Any

from . import _core
from .copying import compile_again


def is_module(value: Any) -> bool:
    """Whether it is a tree that has state of its own: an `nn.Module`."""
    return hasattr(type(value), "state") and hasattr(type(value), "__tree_flatten__")


class _CompiledCall:
    """Mixin of compiled modules, placed before the class of the module."""

    _plain: type  # the class of the module
    _compiled: _core.CompiledFunction[..., Any]  # calls of `_of`
    _of: Any
    _options: dict[str, Any]

    def __call__(self, *args: Any, **kwargs: Any) -> Any:
        # A copy, such as a transform makes of its arguments, has values of its own.
        if vars(self) is not vars(self._of):
            return self._plain.__call__(self, *args, **kwargs)
        return type(self)._compiled(*args, **kwargs)

    def __getattr__(self, name: str) -> Any:
        """`stats`, `show` and the other methods of compiled functions."""
        if not name.startswith("__") and hasattr(_core.CompiledFunction, name):
            return getattr(type(self)._compiled, name)
        inherited = getattr(self._plain, "__getattr__", None)
        if inherited:
            return inherited(self, name)
        raise AttributeError(f"{self._plain.__name__!r} object has no attribute {name!r}")

    def __repr__(self) -> str:
        return f"<compiled {self._of!r}>"

    def _repr_html_(self) -> str:
        """The module and what its calls did."""
        from .notebook import compiled_html, module_html

        return module_html(self._of) + compiled_html(type(self)._compiled)

    def __reduce_ex__(self, protocol: Any) -> Any:
        return compile_again, (self._of, self._options)


def plain(fun: Any) -> Any:
    """The module behind a compiled one; anything else as it is."""
    return fun._of if isinstance(fun, _CompiledCall) else fun


def function_of(fun: Any) -> Any:
    """The compiled function behind a compiled module; anything else as it is."""
    return type(fun)._compiled if isinstance(fun, _CompiledCall) else fun


def compiled_module(
    module: Any, compiled: _core.CompiledFunction[..., Any], options: dict[str, Any]
) -> Any:
    """`module` with `compiled` for its calls. Both have one state: a change of one is in both."""
    own = type(module)
    named = {name: getattr(own, name) for name in ("__module__", "__qualname__", "__doc__")}
    made_class: Any = type(own.__name__, (_CompiledCall, own), named)
    made_class._plain, made_class._compiled = own, compiled
    made_class._of, made_class._options = module, options
    made: Any = object.__new__(made_class)
    made.__dict__ = module.__dict__
    return made
