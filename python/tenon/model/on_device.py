"""Evaluations of a model on a GPU."""

from __future__ import annotations

import functools
from collections.abc import Callable, Mapping
from typing import Any

import tenon as tn

Values = Mapping[str, Any]


def put(device: Any, values: Values) -> dict[str, tn.Tensor]:
    """The same values on a device."""
    there = tn.Device(device) if isinstance(device, str) else device
    return {
        name: value.to(there) if isinstance(value, tn.Tensor) else tn.asarray(value, device=there)
        for name, value in values.items()
    }


class OnDevice:
    """Calls a compiled function with values that are on a device; what it creates is there too.

    `make` compiles it, with constants that are there. Nothing needs the device before the first
    call.
    """

    def __init__(self, device: Any, constants: Values, make: Callable[..., Any]) -> None:
        self.device = device
        self._constants = constants
        self._make = make

    @functools.cached_property
    def compiled(self) -> Any:
        return self._make(put(self.device, self._constants))

    def __call__(
        self,
        params: Values | None = None,
        data: Values | None = None,
        output_gradients: Values | None = None,
        state: Values | None = None,
    ) -> Any:
        given = {
            "params": params,
            "data": data,
            "output_gradients": output_gradients,
            "state": state,
        }
        with tn.device(self.device):
            moved = {n: put(self.device, part) for n, part in given.items() if part is not None}
            return self.compiled(**moved)
