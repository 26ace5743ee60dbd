"""C files, compiled by the C compiler at hand and run: what `CBackend` evaluates with."""

from __future__ import annotations

import contextlib
import ctypes
import hashlib
import os
import pathlib
import platform
import re
import shlex
import shutil
import stat
import subprocess
import tempfile
from collections.abc import Sequence
from functools import cache

from .. import _core

#: Without these a compiler may change bits.
EXACT = ("-std=c11", "-ffp-contract=off", "-fno-math-errno", "-fno-trapping-math")
#: For this machine, as fast as it goes.
FLAGS = ("-O3", "-march=native")
KEPT = 256  # libraries in the folder of the cache; the oldest go

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
    with OpenMP. Compiled files are kept, by their content, in the folder of the cache.

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
    openmp = ("-fopenmp",) if threads > 1 else ()
    library = _loaded(compile_c(text, (*flags, *openmp)))
    if threads > 1:
        library.omp_set_num_threads(threads)
        _alone_after_fork(library)
    address = ctypes.cast(getattr(library, name + "_run"), ctypes.c_void_p).value
    types: dict[str, list[str]] = {"inputs": [], "outputs": []}
    for found in _VALUE.finditer(declared[name]):
        types[found["list"]].append(found["type"])
    return _core._CFunction(
        name, address, types["inputs"], types["outputs"], int(arena[1]), constants
    )


def compile_c(text: str, flags: Sequence[str] = FLAGS) -> str:
    """Compiles a C file into a shared library, unless one of the same content is kept; its path."""
    command = [*compiler(), *EXACT, *flags, "-shared", "-fPIC"]
    content = "\0".join([text, *command, _version(command[0]), _processor()])
    folder = _folder()
    kept = folder / (hashlib.sha256(content.encode()).hexdigest()[:40] + ".so")
    with contextlib.suppress(FileNotFoundError):  # another process may remove it meanwhile
        os.utime(kept)
        return str(kept)
    with tempfile.TemporaryDirectory(dir=folder, prefix="c-") as room:
        source, made = pathlib.Path(room, "model.c"), pathlib.Path(room, "model.so")
        source.write_text(text, encoding="utf-8")
        done = subprocess.run(
            [*command, "-o", str(made), str(source), "-lm"], capture_output=True, text=True
        )
        if done.returncode != 0:
            said = "\n".join(done.stderr.splitlines()[:12])
            _core._fail("value", f"CBackend: {shlex.join(command)} failed:\n{said}")
        os.replace(made, kept)
    _forget_old(folder)
    return str(kept)


@cache
def _loaded(path: str) -> ctypes.CDLL:
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
    """What -march=native depends on: folders are shared between machines."""
    try:
        lines = pathlib.Path("/proc/cpuinfo").read_text().splitlines()
    except OSError:
        return platform.processor()
    wanted = ("model name", "flags", "Features", "CPU part")
    return "\n".join(sorted({line for line in lines if line.startswith(wanted)}))


def _folder() -> pathlib.Path:
    """That of the user's cache, or one of this process where it is switched off or is not the
    user's alone: what lies there is run.
    """
    wanted = os.environ.get("TENON_CACHE_DIR")
    if os.environ.get("TENON_CACHE") == "0":
        return _own_folder()
    caches = os.environ.get("XDG_CACHE_HOME") or pathlib.Path.home() / ".cache"
    folder = pathlib.Path(wanted or pathlib.Path(caches, "tenon"), "c")
    try:
        folder.mkdir(mode=0o700, parents=True, exist_ok=True)
        found = folder.stat()
    except OSError:
        return _own_folder()
    private = found.st_uid == os.getuid() and not found.st_mode & (stat.S_IWGRP | stat.S_IWOTH)
    return folder if private and os.access(folder, os.W_OK) else _own_folder()


@cache
def _own_folder() -> pathlib.Path:
    made = tempfile.TemporaryDirectory(prefix="tenon-c-")
    _own_folder.kept = made  # type: ignore[attr-defined]  # removed when Python ends
    return pathlib.Path(made.name)


def _forget_old(folder: pathlib.Path) -> None:
    """Libraries that are in use stay loaded when their files go."""

    def used(path: pathlib.Path) -> float:
        try:
            return path.stat().st_mtime
        except OSError:  # another process removed it
            return 0.0

    for path in sorted(folder.glob("*.so"), key=used)[:-KEPT]:
        path.unlink(missing_ok=True)
