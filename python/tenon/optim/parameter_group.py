"""The options of a group of parameters, as PyTorch has them."""

from __future__ import annotations

import struct
from collections.abc import Iterator, MutableMapping
from typing import TYPE_CHECKING, Any

from .. import _core

if TYPE_CHECKING:
    from .optimizer import Optimizer


class ParameterGroup(MutableMapping[str, Any]):
    """A group of parameters and its options, as PyTorch has them: `params`, `lr` and the others."""

    def __init__(self, optimizer: Optimizer) -> None:
        self._optimizer = optimizer

    def __getitem__(self, name: str) -> Any:
        if name == "params":
            return [parameter for _, parameter in self._optimizer._own()]
        if name not in self._names():
            raise KeyError(name)
        value = getattr(self._optimizer, name)
        return _shortest(value.item()) if name == "lr" and not _core._is_traced(value) else value

    def __setitem__(self, name: str, value: Any) -> None:
        if name == "params" or name not in self._names():
            self._optimizer._refuse(f"a group has no option {name!r} to set", "type")
        if name == "lr":
            self._optimizer._change_rate(value)
        else:
            setattr(self._optimizer, name, value)

    def __delitem__(self, name: str) -> None:
        self._optimizer._refuse(f"an option cannot be deleted: {name!r}", "type")

    def _names(self) -> list[str]:
        own = (name for name in vars(self._optimizer) if not name.startswith("_"))
        return ["lr", *(name for name in own if name != "state")]

    def __iter__(self) -> Iterator[str]:
        return iter(["params", *self._names()])

    def __len__(self) -> int:
        return 1 + len(self._names())

    def __repr__(self) -> str:
        return repr(dict(self))


def _shortest(rate: float) -> float:
    """The shortest decimal number that float32 rounds to the rate: 0.1 where 0.1 was set."""
    if not rate < 1e38:  # fewer digits may be more than float32 has
        return rate
    known = struct.pack("f", rate)
    texts = (f"{rate:.{digits}g}" for digits in range(1, 9))
    return next((float(text) for text in texts if struct.pack("f", float(text)) == known), rate)
