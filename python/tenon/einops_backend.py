"""einops on tensors: `einops.rearrange(t, "b h w -> b (h w)")`.

einops asks every subclass of its AbstractBackend whether a tensor is its own. Ours is defined once
einops has been imported, whichever of the two packages comes first.
"""

from __future__ import annotations

import sys

from . import _core

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Any

_BACKENDS = "einops._backends"


def _define(backends: Any) -> None:
    class TenonBackend(backends.AbstractBackend):  # type: ignore[misc]
        framework_name = "tenon"

        def is_appropriate_type(self, tensor: Any) -> bool:
            return isinstance(tensor, _core.Tensor)

        def from_numpy(self, x: Any) -> Any:
            return _core.asarray(x)

        def to_numpy(self, x: Any) -> Any:
            return x.numpy()

        def arange(self, start: int, stop: int) -> Any:
            return _core.arange(start, stop)

        def reshape(self, x: Any, shape: Any) -> Any:
            return _core.reshape(x, tuple(shape))

        def transpose(self, x: Any, axes: Any) -> Any:
            return _core.permute_dims(x, tuple(axes))

        def reduce(self, x: Any, operation: str, axes: Any) -> Any:
            return getattr(_core, operation)(x, axis=tuple(axes))

        def stack_on_zeroth_dimension(self, tensors: list[Any]) -> Any:
            return _core.stack(tensors)

        def add_axis(self, x: Any, new_position: int) -> Any:
            return _core.expand_dims(x, axis=new_position)

        def tile(self, x: Any, repeats: Any) -> Any:
            return _core.tile(x, tuple(repeats))

        def concat(self, tensors: list[Any], axis: int) -> Any:
            return _core.concat(tensors, axis=axis)

        def is_float_type(self, x: Any) -> bool:
            return str(x.dtype.name).startswith(("float", "bfloat"))

        def einsum(self, pattern: str, *x: Any) -> Any:
            return _core.einsum(pattern, *x)

    # The class lives as long as it is in here: einops looks it up among subclasses.
    backends.TenonBackend = TenonBackend


class _Finder:
    """Waits for einops: its backends are imported as usual, and ours is defined after them."""

    def find_spec(self, name: str, path: Any = None, target: Any = None) -> Any:
        if name != _BACKENDS:
            return None
        from importlib.util import find_spec

        sys.meta_path.remove(self)
        spec = find_spec(name)
        if spec is not None and spec.loader is not None:
            run = spec.loader.exec_module

            def exec_module(module: Any) -> None:
                run(module)
                _define(module)

            spec.loader.exec_module = exec_module  # type: ignore[method-assign]
        return spec


def install() -> None:
    if _BACKENDS in sys.modules:
        _define(sys.modules[_BACKENDS])
    else:
        sys.meta_path.insert(0, _Finder())
