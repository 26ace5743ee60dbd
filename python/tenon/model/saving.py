"""Physical models as executables: one file that runs without the model."""

from __future__ import annotations

import inspect
import os
import re
from collections.abc import Sequence
from typing import Any

import tenon as tn

from .. import _core
from ..executables import Executable
from ..files import path_of
from ..input_infos import InputInfo, NamedDimension
from .evaluation import ARGUMENTS, Evaluation, StaticValues
from .options import Options

_OF_EXECUTABLES = ("optimization_level", "memory_limit", "memory_planning", "optimize_for", "off",
                   "on", "target_hardware")
_OPEN = (1, 65536)  # what a size of which nothing is said may be in a file


class Saving:
    """What physical models are written as."""

    name: str
    evaluate: Any
    _functions: _core.ModelFunctions
    _options: Options

    def save(self, path: str | os.PathLike[str], targets: str | Sequence[str] = ()) -> None:
        """Writes the evaluation without gradients as an executable, one `.tnx` file.

        `tn.load(path)` gives it back. It is called as `evaluate`: with `params` and `data`, and for
        a model with state also with `state`, which in training is given anew behind the outputs.
        What is static is in the file, and not an argument. `targets` are CPUs to hold code for, as
        of `Executable.save`.
        """
        extra = {"targets": targets} if targets else {}
        self._executable().save(path_of("save", path), **extra)

    def _executable(self) -> Executable:
        evaluation, static = self._static_evaluation()
        infos: dict[str, dict[str, InputInfo]] = {"params": {}, "data": {}, "state": {}}
        for name, role, shape, dtype, _ in self._functions.given:
            if name not in static:
                infos[ARGUMENTS[role]][name] = InputInfo(self._dimensions(shape), dtype)
        names = [name for name, inputs in infos.items() if inputs]  # of arguments

        def function(*arguments: Any) -> Any:
            given = {"params": {}, "data": {}} | dict(zip(names, arguments))
            made = evaluation.run(**given)
            return made[0] if self._options.inference and "state" in given else made

        positional = inspect.Parameter.POSITIONAL_OR_KEYWORD
        parameters = [inspect.Parameter(name, positional) for name in names]
        function.__signature__ = inspect.Signature(parameters)  # type: ignore[attr-defined]
        function.__name__ = re.sub(r"\W", "_", self.name)
        said = {n: value for n, value in self._options.compiler.items() if n in _OF_EXECUTABLES}
        return tn.compile(function, args=[infos[name] for name in names], **said)

    def _static_evaluation(self) -> tuple[Evaluation, Any]:
        """What runs, and the values that are constants in it."""
        held = self.evaluate
        if not isinstance(held, StaticValues):
            return self._evaluation({}), {}
        if not held.values:
            text = f"save: the static values of {self.name} are not known yet"
            _core._fail("value", text, "give params= to tn.compile, or evaluate it first")
        return self._evaluation(held.values), held.values

    def _evaluation(self, static: Any) -> Evaluation:
        raise NotImplementedError

    def _dimensions(self, shape: Sequence[Any]) -> list[Any]:
        tried = self._functions.model.tried_sizes
        usual = {name: (_OPEN[0], best, _OPEN[1]) for name, best in tried.items()}
        ranges = usual | self._options.ranges
        return [d if isinstance(d, int) else NamedDimension(str(d), *ranges[str(d)]) for d in shape]
