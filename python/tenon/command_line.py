"""The command `tenon`: the commands are C++, and functions to compile are found here."""

from __future__ import annotations

import importlib
import importlib.util
import os
import pathlib
import re
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
    except Exception as error:  # of the user's own code
        print_user_frames(error)
        return 1


def complain(code: int, error: Exception) -> int:
    text = re.sub(r"\n  at <[^\n]*", "", str(error))  # the code that called us, which is in no file
    print(f"tenon: {text}", file=sys.stderr)
    return code


def print_user_frames(error: Exception) -> None:
    """Print an error as Python does, without the frames between the command and the user's code."""
    shown = traceback.TracebackException.from_exception(error)
    ours = (os.path.dirname(__file__), "<")
    theirs = [frame for frame in shown.stack if not frame.filename.startswith(ours)]
    shown.stack = traceback.StackSummary.from_list(theirs or shown.stack)
    print(*shown.format(), sep="", end="", file=sys.stderr)


class CannotFind(Exception):
    """The object to compile was not found."""


def compile_function(source: str, inputs: list[tuple[Any, ...]], values: list[str], level: int,
                     output: str, targets: list[str], debug: bool) -> None:
    """Compiles what `source` names ("model.py:function") and saves it."""
    f = load(source)
    given = {name: info(name, *rest) for name, *rest in inputs}
    given |= dict(map(constant, values))
    args, kwargs = arranged(f, given, source)
    made = tn.compile(f, optimization_level=level, args=args, kwargs=kwargs)
    made.save(output, targets=targets, debug=debug)


def info(name: str, dtype: str, sizes: list[tuple[int, int, int, str]], is_size: bool) -> object:
    """The description of an input: of a tensor, or of a size by itself."""
    dims: list[Any] = []
    for low, best, high, shared in sizes:
        if shared:
            dims.append(tn.NamedDimension(shared, low, best, high))
        else:
            dims.append(low if low == high else (low, best, high))
    made = tn.DimensionInputInfo(sizes[0][:3]) if is_size else tn.InputInfo(
        tuple(dims), getattr(tn, dtype))
    made.place = f"tenon compile --input {name}"
    return made


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
    if not colon and os.path.isdir(place):
        raise CannotFind(f"{place} is a directory\n  hint: give the name of a file in it")
    if not colon or not expression:
        raise CannotFind(f"{source}: names no function\n  hint: write {place}:function")
    module = load_file(place) if place.endswith(".py") else load_module(place)
    try:
        f = eval(expression, vars(module))  # what the user wrote, on their own command line
    except (NameError, AttributeError, SyntaxError) as error:
        raise CannotFind(f"{source}: {error}") from None
    if isinstance(f, type):
        raise CannotFind(f"{source}: a class, not an instance of it\n  hint: write '{source}()'")
    if not callable(f):
        raise CannotFind(f"{source}: not a function but {type(f).__name__}")
    function: Callable[..., Any] = f
    return function


def load_file(path: str) -> ModuleType:
    file = pathlib.Path(path)
    if file.is_dir():
        raise CannotFind(f"{path} is a directory\n  hint: give the name of a file in it")
    if not file.is_file():
        raise CannotFind(f"cannot read {path}: there is no such file")
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
            raise CannotFind(f"{source}: no description of its parameter {p.name}\n  hint: "
                             f"--input {p.name}=f32[2,3], or --value {p.name}=3")
    args = []
    for p in parameters:
        if p.name not in given or p.kind not in (p.POSITIONAL_ONLY, p.POSITIONAL_OR_KEYWORD):
            break
        args.append(given[p.name])
    return args, {name: value for name, value in given.items() if name not in names[:len(args)]}
