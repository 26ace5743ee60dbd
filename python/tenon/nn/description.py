"""The `repr` of layers."""

from __future__ import annotations

from typing import Any

from .module import Module


def described(layer: Module, *sizes: object, **usual: Any) -> str:
    """The sizes, then the options that are not as usual, by name."""
    texts = [str(one_for_all(size)) for size in sizes]
    for name, default in usual.items():
        value = one_for_all(getattr(layer, name))
        texts += [f"{name}={value!r}"] if value != one_for_all(default) else []
    return ", ".join(texts)


def one_for_all(value: Any) -> Any:
    """Return one number in place of a tuple of equal ones."""
    return value[0] if isinstance(value, tuple) and len(set(value)) == 1 else value
