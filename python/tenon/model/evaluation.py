"""The function of dicts that `evaluate` computes and the compiler traces.

Names, shapes and types are checked while it is traced. Calls that differ in any of them are traced
anew, so a call of a known kind checks nothing.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from contextlib import nullcontext
from itertools import chain
from typing import Any, NamedTuple

import tenon as tn

from .. import _core
from ..input_infos import Range

Tensors = Mapping[str, Any]
#: By the role of what is given, the argument of `evaluate` that has it.
ARGUMENTS = {"parameter": "params", "input": "data", "state": "state"}
RANDOM_KEY = "random.key"


class Evaluation:
    """`static` values are constants; `ranges` bound open sizes; `calls` compute, or the model."""

    def __init__(
        self,
        functions: _core.ModelFunctions,
        ranges: Mapping[str, Range],
        static: Tensors,
        calls: Any = None,
    ) -> None:
        self._functions = functions
        self._calls = functions if calls is None else calls  # who computes
        self._ranges = dict(ranges)
        self._static = dict(static)
        self._roles = {name: role for name, role, *_ in functions.given}
        self._trained = [name for name, *_, trainable in functions.given if trainable]
        self._first_state = {} if static_state(self) else first_state(functions)

    def evaluate(
        self,
        params: Tensors | None = None,
        data: Tensors | None = None,
        output_gradients: Tensors | None = None,
        state: Tensors | None = None,
    ) -> Any:
        """See `PhysicalModel.evaluate`. What it makes itself is where the arguments are."""
        parts = [part.values() for part in (params, data, state) if isinstance(part, Mapping)]
        with _core._elsewhere(tuple(chain(*parts)), {}) or nullcontext():
            return self._evaluated(params, data, output_gradients, state)

    def _evaluated(self, params: Any, data: Any, output_gradients: Any, state: Any) -> Any:
        params, data = ({} if part is None else part for part in (params, data))
        params, data, output_gradients, state = map(
            _tensors, (params, data, output_gradients, state)
        )
        own = self._static if state is not None else {**self._first_state, **self._static}
        given = self._functions.gather(params, data, state, own, self._ranges)
        outputs, states = self._functions.outputs, self._functions.states
        if output_gradients is None:
            made = self._calls.forward(given)
        else:
            made = self._calls.gradients(given, self._functions.cotangents(output_gradients))
        results: list[Any] = [dict(zip(outputs, made))]
        if output_gradients is not None:
            results.append(dict(zip(self._trained, made[len(outputs) + len(states) :])))
        if state is not None:
            fixed = {n: x for n, x in self._static.items() if self._roles[n] == "state"}
            results.append({**fixed, **state, **dict(zip(states, made[len(outputs) :]))})
        return results[0] if len(results) == 1 else tuple(results)


def first_state(functions: _core.ModelFunctions, seed: int = 0) -> dict[str, tn.Tensor]:
    """Running statistics and the random key of a first evaluation."""
    if not functions.states:
        return {}
    values = functions.first_values(tn.random.key(seed))
    rows = zip(functions.given, values)
    states = ((name, value) for (name, role, *_), value in rows if role == "state")
    return {name: value for name, value in states if value is not None}


def static_state(evaluation: Evaluation) -> bool:
    states = [name for name, role in evaluation._roles.items() if role == "state"]
    return all(name in evaluation._static for name in states)


def _tensors(given: Any) -> Any:
    """NumPy arrays as tensors; while something is traced all are."""
    if not isinstance(given, Mapping):
        return given
    return {n: v if isinstance(v, tn.Tensor) else tn.array(v) for n, v in given.items()}


class _Current(NamedTuple):
    held: _core._HeldValues
    values: dict[str, tn.Tensor]
    call: Callable[..., Any]


class StaticValues:
    """An evaluation in which some values are constants: those of the first call.

    A call with others makes another evaluation, and forgets the former.
    """

    def __init__(
        self,
        names: Mapping[str, Sequence[str]],
        values: Tensors,
        make: Callable[[dict[str, tn.Tensor]], Callable[..., Any]],
    ) -> None:
        self.names = names
        self._static = {argument: frozenset(part) for argument, part in names.items()}
        self._make = make
        self._current: _Current | None = None
        known = [name for part in names.values() for name in part if name in values]
        if known and all(name in values for name in (*names["params"], *names["data"])):
            self._hold(known, [values[name] for name in known])

    @property
    def values(self) -> dict[str, tn.Tensor]:
        return {} if self._current is None else self._current.values

    @property
    def call(self) -> Callable[..., Any] | None:
        return self._current and self._current.call

    def _hold(self, names: list[str], values: list[Any]) -> _Current:
        held = _core._HeldValues(values)
        named = dict(zip(names, held.values()))
        # At once, for other threads: what a call computes with is what it looked at.
        self._current = made = _Current(held, named, self._make(named))
        return made

    def __call__(
        self,
        params: Tensors | None = None,
        data: Tensors | None = None,
        output_gradients: Tensors | None = None,
        state: Tensors | None = None,
    ) -> Any:
        given = {"params": params or {}, "data": data or {}, "state": state}
        names, values = [], []
        for argument, part in self.names.items():
            tensors = given[argument] or {}
            names += [name for name in part if name in tensors]
            values += [tensors[name] for name in part if name in tensors]
        current = self._current
        if current is None or (names and not current.held.are(values)):
            current = self._hold(names, values)
        rest = self.rest(given)
        return current.call(rest["params"], rest["data"], output_gradients, rest["state"])

    def rest(self, given: Mapping[str, Any]) -> dict[str, Any]:
        """Return the arguments that are not constant."""
        return {
            argument: tensors
            and {n: v for n, v in tensors.items() if n not in self._static.get(argument, ())}
            for argument, tensors in given.items()
        }
