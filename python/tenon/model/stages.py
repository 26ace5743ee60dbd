"""The stages of a compilation, to be looked at by name."""

from __future__ import annotations

from typing import Any

import tenon as tn

from .. import _core
from .backends import SourceBackend
from .evaluation import ARGUMENTS, StaticValues
from .on_device import OnDevice, put
from .options import Options, one_name

#: Stages of the document, and what the compiler calls what comes after them.
MODEL_STAGES = ("flattening", "terminals", "shapes", "types")
COMPILER_STAGES = {
    "graph": "graph",
    "optimized": "optimized",
    "loops": "loops",
    "code": "kernels",
    "plan": "plan",
    "memory": "memory",
    "decisions": "decisions",
}


class Stages:
    """Mixin that shows a model at every stage of compilation."""

    stages = (*MODEL_STAGES, *COMPILER_STAGES)

    name: str
    backend: Any
    evaluate: Any
    source: Any
    _compiled: Any
    _with_state: Any
    _functions: _core.ModelFunctions
    _options: Options

    def show(self, stage: str, gradients: bool = False) -> str:
        """A stage as text; with `gradients`, of an evaluation that gives them.

        Open sizes have the best value of their range.
        """
        one_name("stage", stage, self.stages)
        if stage in MODEL_STAGES:
            return self._functions.text(stage)
        if stage == "code" and isinstance(self.backend, SourceBackend):
            source: str = self.source()
            return source
        function, arguments = self._example(gradients)
        shown: str = function.show(COMPILER_STAGES[stage], *arguments)
        return shown

    def explain(self, gradients: bool = False) -> Any:
        """Report how and why the compiler compiled the model as it did."""
        function, arguments = self._example(gradients)
        explanation = tn.explain(function)(*arguments)
        explanation.facts.function = self.name
        return explanation

    def memory(self, gradients: bool | None = None) -> _core.MemoryReport:
        """The memory that an evaluation needs besides its arguments, with gradients in training."""
        wanted = not self._options.inference if gradients is None else gradients
        function, arguments = self._example(wanted)
        report: _core.MemoryReport = function.memory(*arguments)
        return report

    @property
    def peak_memory(self) -> int:
        """The peak of `memory()` in bytes; known before a run."""
        return self.memory().peak

    def _example(self, gradients: bool) -> tuple[Any, tuple[Any, ...]]:
        """The compiled function, and arguments for it as an evaluation has them."""
        model, ranges = self._functions.model, self._options.ranges
        shapes = model.shapes_at({name: best for name, (_, best, _) in ranges.items()})
        given: dict[str, dict[str, tn.Tensor]] = {"params": {}, "data": {}, "state": {}}
        for name, role, shape, dtype, _ in self._functions.given:
            given[ARGUMENTS[role]][name] = tn.zeros(shapes.get(name, shape), dtype)
        state = given["state"] if self._functions.states and self._functions.training else None
        seeds = {n: tn.zeros(shapes[n], t) for n, _, _, t in model.outputs} if gradients else None
        function, held = self.evaluate, self.evaluate
        if isinstance(held, StaticValues):
            every = {name: value for part in given.values() for name, value in part.items()}
            static = held.values or {n: every[n] for part in held.names.values() for n in part}
            function = self._compiled(self._with_state(static))
            given = held.rest(given)
            held = function
        elif isinstance(self.backend, SourceBackend):
            function = self._compiled({})  # what the compiler makes of it
        if isinstance(held, OnDevice):
            function = held.compiled
            given = {role: put(held.device, part) for role, part in given.items()}
            state = None if state is None else given["state"]
            seeds = None if seeds is None else put(held.device, seeds)
        return function, (given["params"], given["data"], seeds, state)
