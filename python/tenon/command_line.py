"""The command `tenon`: the commands are C++, and functions to compile are found here."""

from __future__ import annotations

import importlib
import importlib.util
import os
import pathlib
import signal
import sys
import traceback
from ast import literal_eval
from collections.abc import Callable, Sequence
from types import ModuleType
from typing import Any, NoReturn

import tenon as tn

from . import _core
from .ahead import signature_of


def main(argv: Sequence[str] | None = None) -> NoReturn:
    """Runs a command and ends the process, as the program `tenon` would."""
    for number in (signal.SIGINT, signal.SIGPIPE):  # end it, and say nothing
        signal.signal(number, signal.SIG_DFL)
    sys.exit(run(sys.argv[1:] if argv is None else argv))


def run(argv: Sequence[str]) -> int:
    """Runs a command and returns its exit code: 0 done, 1 the user's fault, 2 usage, 3 ours."""
    try:
        return _core._run_command_line(list(argv), compile_function)
    except tn.InternalError as error:
        return complain(3, error)
    except (tn.Error, CannotFind) as error:
        return complain(1, error)
    except Exception:  # of the user's own code
        traceback.print_exc()
        return 1


def complain(code: int, error: Exception) -> int:
    print(f"tenon: {error}", file=sys.stderr)
    return code


class CannotFind(Exception):
    """What is to be compiled is not where it was said to be."""


def compile_function(source: str, inputs: list[tuple], values: list[str], level: int, output: str,
                     targets: list[str], debug: bool) -> None:
    """Compiles what `source` names ("model.py:function") and saves it."""
    f = load(source)
    given = {name: info(*rest) for name, *rest in inputs}
    given |= dict(map(constant, values))
    args, kwargs = arranged(f, given, source)
    made = tn.compile(f, optimization_level=level, args=args, kwargs=kwargs)
    made.save(output, targets=targets, debug=debug)


def info(dtype: str, sizes: list[tuple[int, int, int, str]], is_size: bool) -> object:
    """The description of an input: of a tensor, or of a size by itself."""
    dims: list[Any] = []
    for low, best, high, name in sizes:
        if name:
            dims.append(tn.NamedDimension(name, low, best, high))
        else:
            dims.append(low if low == high else (low, best, high))
    return tn.DimensionInputInfo(sizes[0][:3]) if is_size else tn.InputInfo(
        tuple(dims), getattr(tn, dtype))


def constant(text: str) -> tuple[str, object]:
    """`axis=1` as a name and a value."""
    name, equals, value = text.partition("=")
    try:
        return name, literal_eval(value)
    except (ValueError, SyntaxError):
        raise CannotFind(f"--value {text}: not a Python value\n  hint: write name=3, name=1.5 "
                         "or name=\"'text'\"") from None


def load(source: str) -> Callable[..., Any]:
    """The function or module that "file.py:expression" or "package.module:expression" names."""
    place, colon, expression = source.partition(":")
    if not colon or not expression:
        raise CannotFind(f"{source}: names no function\n  hint: write {place}:function")
    module = load_file(place) if place.endswith(".py") else load_module(place)
    try:
        f = eval(expression, vars(module))  # what the user wrote, on their own command line
    except (NameError, AttributeError, SyntaxError) as error:
        raise CannotFind(f"{source}: {error}") from None
    if not callable(f):
        raise CannotFind(f"{source}: not a function but {type(f).__name__}")
    return f


def load_file(path: str) -> ModuleType:
    file = pathlib.Path(path)
    if not file.is_file():
        raise CannotFind(f"no file {path} that can be read")
    sys.path.insert(0, os.path.dirname(os.path.abspath(path)))
    spec = importlib.util.spec_from_file_location(file.stem, file)
    assert spec and spec.loader
    module = importlib.util.module_from_spec(spec)
    sys.modules[file.stem] = module
    spec.loader.exec_module(module)
    return module


def load_module(name: str) -> ModuleType:
    sys.path.insert(0, os.getcwd())
    try:
        return importlib.import_module(name)
    except ModuleNotFoundError as error:
        if error.name and (name + ".").startswith(error.name + "."):
            raise CannotFind(f"there is no module {name}\n  hint: files are written with .py: "
                             f"{name}.py:function") from None
        raise


def arranged(f: Callable[..., Any], given: dict[str, object],
             source: str) -> tuple[list[object], dict[str, object]]:
    """The arguments by position, as far as they follow each other, and the others by name."""
    parameters = signature_of(f).parameters.values()
    names = [p.name for p in parameters if p.kind not in (p.VAR_POSITIONAL, p.VAR_KEYWORD)]
    if not any(p.kind == p.VAR_KEYWORD for p in parameters):
        for name in given:
            if name not in names:
                raise CannotFind(f"{source}: it has no parameter {name}: there "
                                 f"{'is' if len(names) == 1 else 'are'} {', '.join(names)}")
    for p in parameters:
        if p.name in names and p.default is p.empty and p.name not in given:
            raise CannotFind(f"{source}: nothing is said about its parameter {p.name}\n  hint: "
                             f"--input {p.name}=f32[2,3], or --value {p.name}=3")
    args = []
    for p in parameters:
        if p.name not in given or p.kind not in (p.POSITIONAL_ONLY, p.POSITIONAL_OR_KEYWORD):
            break
        args.append(given[p.name])
    return args, {name: value for name, value in given.items() if name not in names[:len(args)]}
