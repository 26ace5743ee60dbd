"""Physical models as files: executables, and source in other languages."""

from __future__ import annotations

import inspect
import os
import pathlib
import re
from collections.abc import Sequence
from typing import Any

import tenon as tn

from .. import _core
from ..executables import Executable
from ..files import path_of
from ..input_infos import InputInfo, NamedDimension
from .backends import CudaBackend
from .evaluation import ARGUMENTS, Evaluation, StaticValues, Tensors, first_state
from .generated import Source, source_of
from .on_device import OnDevice
from .options import Options, one_name, read_names

_OPEN = (1, 65536)  # what a size of which nothing is said may be in a file


class Saving:
    """Mixin that writes physical models to files."""

    name: str
    backend: Any
    evaluate: Any
    _functions: _core.ModelFunctions
    _options: Options

    def save(self, path: str | os.PathLike[str], targets: str | Sequence[str] = ()) -> None:
        """Writes the evaluation without gradients as an executable, one `.tnx` file.

        `tn.load(path)` loads it. It is called like `evaluate`, with `params` and `data`, and with
        `state` for a model with state; in training the new state follows the outputs. Static values
        are stored in the file and are not arguments. `targets` are the CPUs to include code for, as
        in `Executable.save`.
        """
        extra: dict[str, Any] = {"targets": targets} if targets else {}
        self._executable(self._known("save")).save(path_of("save", path), **extra)

    def __copy__(self) -> Any:
        made = object.__new__(type(self))
        made.__dict__.update(self.__dict__)
        return made

    def __reduce_ex__(self, protocol: Any) -> Any:
        hint = "save(path) writes an executable; or pickle what builds it, and the parameters"
        _core._fail("type", "pickle: physical models are not pickled", hint)

    def source(self, language: str | None = None) -> str:
        """The model as the text of one file: "c", "numpy", "torch" or "jax".

        The default is the language of the backend, or C. Static values are constants in it.
        """
        language = getattr(self.backend, "language", "c") if language is None else language
        one_name("language", language, ("c", "numpy", "torch", "jax"))
        return self._source(language, self._known("source")).text()

    def _source(self, language: str, static: Tensors) -> Source:
        return source_of(language, self.name, self._functions, static, self._options)

    def _write(self, path: pathlib.Path, static: Tensors) -> None:
        """The file that was asked for when compiling; its ending says which."""
        if path.suffix == ".tnx":
            self._executable(static).save(path)
            return
        languages = {".c": "c", ".py": "numpy"}
        if path.suffix not in languages:
            text = f"compile: file_path ends with .tnx, .c or .py, not {path.name!r}"
            _core._fail("value", text)
        self._source(languages[path.suffix], static).write(path, self._options.params)

    def _executable(self, static: Tensors) -> Executable:
        evaluation = self._evaluation(static)
        infos: dict[str, dict[str, InputInfo]] = {"params": {}, "data": {}, "state": {}}
        for name, role, shape, dtype, _ in self._functions.given:
            if name not in static:
                infos[ARGUMENTS[role]][name] = InputInfo(self._dimensions(shape), dtype)
        names = [name for name, inputs in infos.items() if inputs]  # of arguments

        def function(*arguments: Any) -> Any:
            given = {"params": {}, "data": {}} | dict(zip(names, arguments))
            made = evaluation.evaluate(**given)
            return made[0] if self._options.inference and "state" in given else made

        positional = inspect.Parameter.POSITIONAL_OR_KEYWORD
        parameters = [inspect.Parameter(name, positional) for name in names]
        function.__signature__ = inspect.Signature(parameters)  # type: ignore[attr-defined]
        function.__name__ = re.sub(r"\W", "_", self.name)
        described = [infos[name] for name in names]
        return tn.compile(function, args=described, **self._options.of_executables)

    def _known(self, who: str) -> Tensors:
        """The values that are constants."""
        held = self.evaluate
        if not isinstance(held, StaticValues):
            return {}
        if not held.values:
            text = f"{who}: the static values of {self.name} are not known yet"
            _core._fail("value", text, "give params= to tn.compile, or evaluate it first")
        return self._with_state(held.values)

    def _with_state(self, static: Tensors) -> Tensors:
        """A state that is static and was not given is the first one."""
        if not self._options.static_inference:
            return static
        return {**first_state(self._functions), **static}

    def _evaluation(self, static: Tensors, calls: Any = None) -> Evaluation:
        return Evaluation(self._functions, self._options.ranges, static, calls)

    def _compiled(self, static: Tensors) -> Any:
        said = self._options.compiler
        if isinstance(self.backend, CudaBackend):  # targets are those of files
            said = {name: value for name, value in said.items() if name != "target_hardware"}
            make = lambda moved: tn.compile(self._evaluation(moved).evaluate, **said)
            return OnDevice(self.backend.device, static, make)
        targets = said.get("target_hardware", "native")
        if not _core._runs_here(list(read_names("target_hardware", targets))):
            return self._run_elsewhere
        return tn.compile(self._evaluation(static).evaluate, **said)

    def _run_elsewhere(self, *_: Any, **__: Any) -> Any:
        targets = self._options.compiler["target_hardware"]
        text = f"evaluate: {self.name} was compiled for {targets}, which is not this machine"
        _core._fail("value", text, "save it, and load it there")

    def _dimensions(self, shape: Sequence[Any]) -> list[Any]:
        tried = self._functions.model.tried_sizes
        usual = {name: (_OPEN[0], best, _OPEN[1]) for name, best in tried.items()}
        ranges = usual | self._options.ranges
        return [d if isinstance(d, int) else NamedDimension(str(d), *ranges[str(d)]) for d in shape]
