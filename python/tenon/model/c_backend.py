"""C files, compiled by the system's C compiler and run: what `CBackend` evaluates with."""

from __future__ import annotations

import ctypes
import hashlib
import os
import pathlib
import platform
import re
import shlex
import shutil
import subprocess
import tempfile
from collections.abc import Sequence
from functools import cache

from .. import _core

#: Without these a compiler may change bits.
EXACT = ("-std=c11", "-ffp-contract=off", "-fno-math-errno", "-fno-trapping-math")
#: For this machine, as fast as it goes.
FLAGS = ("-O3", "-march=native")

_DECLARATION = re.compile(r"/\* (?P<name>\w+)\n(?P<lines>(?: {3}.*\n)*?) {3}arena:")
_VALUE = re.compile(r" {3}(?P<list>inputs|outputs)\[\d+\]: (?P<type>\w+\[[\d,]*\])")


def compiler() -> list[str]:
    """The command of the C compiler: `CC` of the environment, or cc, gcc or clang."""
    wanted = shlex.split(os.environ.get("CC", ""))
    for command in [wanted] if wanted else [["cc"], ["gcc"], ["clang"]]:
        if shutil.which(command[0]):
            return command
    _core._fail(
        "value",
        f"CBackend: no C compiler: {wanted[0] if wanted else 'cc, gcc and clang'} not found; "
        "install one, or name it in CC",
    )


def build(
    text: str,
    constants: bytes = b"",
    name: str | None = None,
    flags: Sequence[str] = FLAGS,
    threads: int = 1,
) -> _core._CFunction:
    """The function `name` of a C file made by Tenon, or its only one: it takes and gives tensors.

    `constants` are the bytes beside the file. With more than one of `threads` the file is compiled
    with OpenMP. Compiled files are kept, by their content, in the disk cache beside kernels.

        >>> double = tn.compile(lambda x: 2 * x, args=[tn.InputInfo((3,), tn.float32)])
        >>> text, constants = tn._core._c_source([("double", double._program)])
        >>> build(text, constants)([tn.array([1.0, 2.0, 3.0])])
        [tensor([2., 4., 6.], dtype=float32)]
    """
    declared = {found["name"]: found["lines"] for found in _DECLARATION.finditer(text)}
    if name is None:
        name = next(iter(declared), "")
    if name not in declared:
        _core._fail("value", f"CBackend: the file has no function {name!r}: {', '.join(declared)}")
    arena = re.search(rf"#define {name.upper()}_ARENA_BYTES (\d+)", text)
    assert arena is not None  # every such file defines it
    openmp = ("-fopenmp",) if threads > 1 else ()
    library = compile_c(text, (*flags, *openmp))
    if threads > 1:
        library.omp_set_num_threads(threads)
        _alone_after_fork(library)
    address = ctypes.cast(getattr(library, name + "_run"), ctypes.c_void_p).value or 0
    types: dict[str, list[str]] = {"inputs": [], "outputs": []}
    for found in _VALUE.finditer(declared[name]):
        types[found["list"]].append(found["type"])
    return _core._CFunction(
        name, address, types["inputs"], types["outputs"], int(arena[1]), constants
    )


_libraries: dict[bytes, ctypes.CDLL] = {}  # by what they were made of; they stay loaded


def compile_c(text: str, flags: Sequence[str] = FLAGS) -> ctypes.CDLL:
    """A C file as a library: one that is loaded already, one of the disk cache, or a new one.

    The cache verifies what it reads: a damaged library is a miss, removed and compiled again.
    """
    command = [*compiler(), *EXACT, *flags, "-shared", "-fPIC"]
    content = "\0".join([text, *command, _version(command[0]), _processor()])
    key = b"C library " + hashlib.sha256(content.encode()).digest()
    if key not in _libraries:
        library = _core._read_cache(key)
        if library is None:
            library = _compiled(command, text)
            _core._write_cache(key, library)
        _libraries[key] = _loaded(library)
    return _libraries[key]


def _compiled(command: Sequence[str], text: str) -> bytes:
    with _room() as room:
        source, made = pathlib.Path(room, "model.c"), pathlib.Path(room, "model.so")
        source.write_text(text, encoding="utf-8")
        done = subprocess.run(
            [*command, "-o", str(made), str(source), "-lm"], capture_output=True, text=True
        )
        if done.returncode != 0:
            said = "\n".join(done.stderr.splitlines()[:12])
            _core._fail("value", f"CBackend: {shlex.join(command)} failed:\n{said}")
        return made.read_bytes()


def _loaded(library: bytes) -> ctypes.CDLL:
    """Loads a library from a file of its own, so that nothing can change what was verified."""
    with _room() as room:
        path = pathlib.Path(room, "model.so")  # dlopen knows libraries by path: a new one
        path.write_bytes(library)
        return _opened(str(path))


def _opened(path: str) -> ctypes.CDLL:
    """Threads of OpenMP that wait by turning would take the processor from everybody else's."""
    waits = "OMP_WAIT_POLICY"
    if waits in os.environ:
        return ctypes.CDLL(path)
    os.environ[waits] = "passive"  # read when OpenMP is loaded
    try:
        return ctypes.CDLL(path)
    finally:
        del os.environ[waits]


@cache
def _alone_after_fork(library: ctypes.CDLL) -> None:
    """A child has none of the threads that OpenMP believes it has, and would wait for them."""
    os.register_at_fork(after_in_child=lambda: library.omp_set_num_threads(1))


@cache
def _version(command: str) -> str:
    done = subprocess.run([command, "--version"], capture_output=True, text=True)
    return done.stdout


@cache
def _processor() -> str:
    """Return what -march=native depends on, because machines may share folders."""
    try:
        lines = pathlib.Path("/proc/cpuinfo").read_text().splitlines()
    except OSError:
        return platform.processor()
    wanted = ("model name", "flags", "Features", "CPU part")
    return "\n".join(sorted({line for line in lines if line.startswith(wanted)}))


def _room() -> tempfile.TemporaryDirectory[str]:
    """A new folder for files that are compiled or loaded: beside the cache where that is the user's
    alone, since systems may forbid to run what lies in the folder of temporary files.
    """
    prefix = "tenon-c-"
    try:
        return tempfile.TemporaryDirectory(prefix=prefix, dir=_core._cache_directory())
    except OSError:  # a cache may be read-only, full or deleted
        return tempfile.TemporaryDirectory(prefix=prefix)
