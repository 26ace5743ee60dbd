"""Modules made of others, and `Identity`.

Lists and dicts of modules need no class of their own; PyTorch's names for them are `list` and
`dict` themselves.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import Any

import tenon as tn

from .. import _core
from .module import Module
from .reshaping import Flatten as Flatten  # pickles of earlier versions find it here

ModuleList = list
ModuleDict = dict


def Parameter(data: Any) -> tn.Tensor:
    """`data` as a tensor: every tensor that is an attribute of a module is a parameter.

        >>> tn.nn.Parameter([1.0, 2.0]).tolist()
        [1.0, 2.0]
    """
    return tn.asarray(data)


class Sequential(Module):
    """Modules and functions, one after the other.

        >>> model = tn.nn.Sequential(tn.nn.Linear(3, 8), tn.nn.relu, tn.nn.Linear(8, 1))
        >>> model(tn.zeros((5, 3))).shape
        (5, 1)
        >>> model[2]
        Linear(8 -> 1)
    """

    def __init__(self, *layers: Callable[[Any], Any]) -> None:
        for i, layer in enumerate(layers):
            if not callable(layer):
                text = f"layer {i} is a {type(layer).__name__}, not a module or function"
                _core._fail("type", f"Sequential: {text}", "Sequential(*layers)")
            if isinstance(layer, type) and issubclass(layer, Module):
                text = f"layer {i} is the class {layer.__name__}, not a module"
                _core._fail("type", f"Sequential: {text}", f"write {layer.__name__}()")
        self.layers = list(layers)

    def forward(self, x: Any) -> Any:
        for layer in self.layers:
            x = layer(x)
        return x

    def __len__(self) -> int:
        return len(self.layers)

    def __iter__(self) -> Iterator[Callable[[Any], Any]]:
        return iter(self.layers)

    def __getitem__(self, index: int) -> Callable[[Any], Any]:
        return self.layers[index]


class Identity(Module):
    """Returns its input. The constructor ignores its arguments, so it can replace any layer.

        >>> tn.nn.Identity()(tn.array([1.0, 2.0])).tolist()
        [1.0, 2.0]
    """

    def __init__(self, *args: Any, **kwargs: Any) -> None:
        pass

    def forward(self, x: Any) -> Any:
        return x
