"""Models as files in other languages, and what runs them.

A file has two functions: one gives the outputs and, in training, the new states; the other gives
the same and then the gradients. They take what an evaluation is given, in the order of the model,
without what is static, which they hold as constants.
"""

from __future__ import annotations

import importlib
import inspect
import keyword
import pathlib
import re
import tempfile
import types
from collections.abc import Callable, Mapping, Sequence
from typing import Any

import tenon as tn

from .. import _core
from ..input_infos import InputInfo
from . import c_backend
from .backends import CBackend
from .evaluation import Tensors
from .options import Options

List = list[tn.Tensor]


class Source:
    """Base class of generated files in any language."""

    suffix = ".py"

    def __init__(self, name: str, functions: _core.ModelFunctions, static: Tensors) -> None:
        plain = re.sub(r"\W", "_", name, flags=re.ASCII)
        self.name = plain if plain[0].isalpha() else f"model{plain}"
        self._functions = functions
        self._static = {name: value.to_device("cpu") for name, value in static.items()}
        self._given = [row for row in functions.given if row[0] not in self._static]
        self._path: pathlib.Path | None = None

    def text(self) -> str:
        raise NotImplementedError

    def write(self, path: pathlib.Path, params: Tensors) -> None:
        """Writes the file, and beside it what it reads, or else `params` for those who call it."""
        if path.suffix != self.suffix:
            text = f"compile: file_path ends with {self.suffix} here, not {path.name!r}"
            _core._fail("value", text)
        constants = self._write(path)
        if constants or params:
            tn.save_safetensors(path.with_suffix(".safetensors"), dict(constants or params))
        self._path = path

    def _write(self, path: pathlib.Path) -> Tensors:
        """Writes the text, and gives the constants that it reads by name."""
        raise NotImplementedError

    def _run(self, function: str, given: List) -> List:
        raise NotImplementedError

    def forward(self, given: List) -> List:
        return self._ran("forward", self._rest(given))

    def gradients(self, given: List, cotangents: list[tn.Tensor | None]) -> List:
        for (name, _, _, dtype), seed in zip(self._functions.model.outputs, cotangents):
            if seed is not None and not _has_gradient(dtype):
                _core._fail("type", f"evaluate: {name!r} has no gradient: it is {dtype}")
        if any(seed is None for seed in cotangents):
            outputs = self.forward(given)
            cotangents = [tn.zeros_like(o) if c is None else c for o, c in zip(outputs, cotangents)]
        seeds = []  # integers have none
        for (name, _, shape, dtype), seed in zip(self._functions.model.outputs, cotangents):
            if seed is None or not _has_gradient(dtype):
                continue
            sizes = [s for s in shape if isinstance(s, int)]
            fits = len(shape) == len(seed.shape) and sizes == [
                n for s, n in zip(shape, seed.shape) if isinstance(s, int)
            ]
            if not fits or seed.dtype.kind != dtype.kind:
                text = f"evaluate: the gradient of {name!r} is {seed.dtype}{list(seed.shape)}"
                _core._fail("value", f"{text} but must be {dtype}{list(shape)}")
            seeds.append(seed.astype(dtype))
        return self._ran("gradients", [*self._rest(given), *seeds])

    def _ran(self, function: str, given: List) -> List:
        """The file runs on the host; what it gives is where the evaluation is."""
        _core._refuse_transforms(given)
        with tn.device("cpu"):
            made = self._run(function, [value.to_device("cpu") for value in given])
        _core._end_derivatives(given, made)
        return [value.to_device(tn.default_device()) for value in made]

    def _rest(self, given: List) -> List:
        rows = zip(self._functions.given, given)
        return [value for (name, *_), value in rows if name not in self._static]


# C ------------------------------------------------------------------------------------------


class CSource(Source):
    """A C file. Sizes are fixed in it; constants are bytes beside it."""

    suffix = ".c"

    def __init__(self, *said: Any, threads: int, compiler: Mapping[str, Any]) -> None:
        super().__init__(*said)
        self._threads = threads
        self._compiler = compiler
        self._file: tuple[str, bytes] | None = None
        self._loaded: dict[str, Callable[[List], List]] | None = None
        for name, _, shape, *_ in self._given:
            if not all(isinstance(size, int) for size in shape):
                text = f"CBackend: sizes are fixed in C, but the shape of {name!r} is open: {shape}"
                _core._fail("value", text, f'give it: shapes={{"{name}": [...]}}')

    def text(self) -> str:
        return self._content()[0]

    def _write(self, path: pathlib.Path) -> Tensors:
        text, constants = self._content()
        path.write_text(text, encoding="utf-8")
        if constants:
            path.with_suffix(".bin").write_bytes(constants)
        return {}

    def _run(self, function: str, given: List) -> List:
        self._loaded = self._loaded or self._load()
        return self._loaded[function](given)

    def _content(self) -> tuple[str, bytes]:
        if self._file is None:
            programs = [(name, made._program) for name, made in self._executables().items()]
            self._file = _core._c_source(programs)
        return self._file

    def _load(self) -> dict[str, Callable[[List], List]]:
        names = {"forward": self.name}
        if self._functions.training:
            names["gradients"] = f"{self.name}_gradients"
        text, constants = self._content()
        return {
            function: c_backend.build(text, constants, name, self._flags(), self._threads)
            for function, name in names.items()
        }

    def _flags(self) -> tuple[str, ...]:
        """Levels of CPUs have one name here and in C compilers."""
        target = self._compiler.get("target_hardware")
        known = isinstance(target, str) and target.startswith("x86-64-")
        return ("-O3", f"-march={target}") if known else c_backend.FLAGS

    @tn.device("cpu")
    def _executables(self) -> dict[str, Any]:
        functions = self._functions
        names = [name for name, *_ in self._given]
        infos = [InputInfo(shape, dtype) for _, _, shape, dtype, _ in self._given]
        outputs = functions.model.outputs

        def forward(*given: tn.Tensor) -> tuple[tn.Tensor, ...]:
            made = functions.forward(self._all(given))
            return tuple(made if functions.training else made[: len(outputs)])

        def gradients(*given: tn.Tensor) -> tuple[tn.Tensor, ...]:
            rest = iter(given[len(names) :])
            seeds = [next(rest) if _has_gradient(dtype) else None for *_, dtype in outputs]
            return tuple(functions.gradients(self._all(given[: len(names)]), seeds))

        made = {self.name: tn.compile(_named(forward, names), args=infos, **self._compiler)}
        if functions.training:
            seeded = [row for row in outputs if _has_gradient(row[3])]
            seeds = [f"gradient_{name}" for name, *_ in seeded]
            infos = infos + [InputInfo(shape, dtype) for _, _, shape, dtype in seeded]
            made[f"{self.name}_gradients"] = tn.compile(
                _named(gradients, [*names, *seeds]), args=infos, **self._compiler
            )
        return made

    def _all(self, given: Sequence[tn.Tensor]) -> List:
        """Return all arguments of the model's functions, static values included."""
        rest = iter(given)
        static = self._static
        return [static[n] if n in static else next(rest) for n, *_ in self._functions.given]


def _has_gradient(dtype: Any) -> bool:
    return dtype.kind in ("real floating", "complex floating")


def _named(function: Callable[..., Any], names: Sequence[str]) -> Callable[..., Any]:
    """The function of so many tensors, with these names."""
    taken: list[str] = []
    for name in names:
        plain = re.sub(r"^(?=\d)|\W", "_", name)
        while plain in taken or keyword.iskeyword(plain):
            plain += "_"
        taken.append(plain)
    kind = inspect.Parameter.POSITIONAL_OR_KEYWORD
    parameters = [inspect.Parameter(name, kind) for name in taken]
    function.__signature__ = inspect.Signature(parameters)  # type: ignore[attr-defined]
    return function


# Python -------------------------------------------------------------------------------------


class PythonSource(Source):
    """A Python file, loaded from where it was written."""

    def __init__(self, language: str, host: Callable[[], Host], *said: Any) -> None:
        super().__init__(*said)
        self._language = language
        self._make_host = host
        self._loaded: tuple[Host, dict[str, Callable[..., Any]]] | None = None

    def text(self) -> str:
        return self._content(self.name)[0]

    def _content(self, stem: str) -> tuple[str, dict[str, tn.Tensor]]:
        tn.eval(self._static)
        return self._functions.python_file(self._language, self._static, f"{stem}.safetensors")

    def _write(self, path: pathlib.Path) -> Tensors:
        text, constants = self._content(path.stem)
        path.write_text(text, encoding="utf-8")
        return constants

    def _run(self, function: str, given: List) -> List:
        self._loaded = self._loaded or self._load()
        host, loaded = self._loaded
        made = loaded[function](*map(host.given, given))
        return [host.taken(x) for x in (made if isinstance(made, tuple) else (made,))]

    def _load(self) -> tuple[Host, dict[str, Callable[..., Any]]]:
        host = self._make_host()
        if self._path is None:
            self._room = tempfile.TemporaryDirectory(prefix="tenon-")  # as long as this lives
            self.write(pathlib.Path(self._room.name, f"{self.name}.py"), {})
        path = self._path
        assert path is not None  # which writing sets
        # Not imported: Python would run what it remembers of a file of the same size and time.
        module = types.ModuleType(self.name)
        module.__file__ = str(path)
        exec(compile(path.read_bytes(), path, "exec"), module.__dict__)
        names = ("forward", "gradients") if self._functions.training else ("forward",)
        return host, {name: host.jitted(getattr(module, name)) for name in names}


class Host:
    """The library that a Python file imports: here NumPy."""

    def __init__(self) -> None:
        self._numpy = _imported("numpy", "NumPy", "NumpyBackend")

    def jitted(self, function: Callable[..., Any]) -> Callable[..., Any]:
        return function

    def given(self, value: tn.Tensor) -> Any:
        return self._numpy.asarray(value)

    def taken(self, value: Any) -> tn.Tensor:
        return tn.array(value)


class TorchHost(Host):
    def __init__(self, device: str, jit: bool, options: Mapping[str, Any]) -> None:
        self._torch = _imported("torch", "PyTorch", "TorchBackend")
        self._device, self._jit, self._options = device, jit, options

    def jitted(self, function: Callable[..., Any]) -> Callable[..., Any]:
        return self._torch.compile(function, **self._options) if self._jit else function

    def given(self, value: tn.Tensor) -> Any:
        return self._torch.from_dlpack(value).to(self._device)

    def taken(self, value: Any) -> tn.Tensor:
        return tn.from_dlpack(value.detach().resolve_conj().resolve_neg().contiguous().cpu())


class JaxHost(Host):
    def __init__(self, device: str | None, jit: bool, donated: Sequence[int]) -> None:
        super().__init__()
        self._jax = _imported("jax", "JAX", "JaxBackend")
        try:
            self._device = self._jax.devices(device)[0] if device else None
        except RuntimeError:
            _core._fail("value", f"JaxBackend: JAX finds no {device!r} here")
        self._jit, self._donated = jit, donated

    def jitted(self, function: Callable[..., Any]) -> Callable[..., Any]:
        return self._jax.jit(function, donate_argnums=self._donated) if self._jit else function

    def given(self, value: tn.Tensor) -> Any:
        if value.dtype == tn.bfloat16:  # NumPy has none
            return self._jax.numpy.from_dlpack(value)
        return self._jax.device_put(self._numpy.asarray(value), self._device)

    def taken(self, value: Any) -> tn.Tensor:
        if value.dtype == self._jax.numpy.bfloat16:
            return tn.from_dlpack(value)
        return tn.array(self._numpy.asarray(value))


def _imported(module: str, product: str, backend: str) -> Any:
    try:
        return importlib.import_module(module)
    except ImportError:
        text = f"{backend}: evaluating needs {product}, which is not installed"
        _core._fail("value", text, f"pip install {module}; file_path= writes the file without it")


# Of a model ---------------------------------------------------------------------------------


def source_of(
    language: str, name: str, functions: _core.ModelFunctions, static: Tensors, options: Options
) -> Source:
    """The model as a file in a language."""
    backend, jit = options.backend, options.jit
    said = name, functions, static
    if language == "c":
        threads = backend.threads if isinstance(backend, CBackend) else 1
        return CSource(*said, threads=threads, compiler=options.of_executables)
    if language == "torch":
        device = getattr(backend, "device", "cpu")
        given: dict[str, Any] = options.jit_options
        known = {name: value for name, value in given.items() if name in ("mode", "backend")}
        return PythonSource(language, lambda: TorchHost(device, bool(jit), known), *said)
    if language == "jax":
        device = getattr(backend, "device", None)
        donated = _donated(functions, static, options.jit_options["donate_argnums"])
        return PythonSource(language, lambda: JaxHost(device, jit is not False, donated), *said)
    return PythonSource(language, Host, *said)


def _donated(
    functions: _core.ModelFunctions, static: Tensors, argnums: Sequence[int]
) -> tuple[int, ...]:
    """Arguments of the functions of a file, from those of `evaluate`."""
    roles = {"parameter": 0, "input": 1, "state": 3}
    given = [roles[role] for name, role, *_ in functions.given if name not in static]
    return tuple(i for i, argument in enumerate(given) if argument in argnums)
