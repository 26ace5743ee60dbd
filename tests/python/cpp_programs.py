"""C++ programs of tests: compiled against the library that is being tested, and run."""

import functools
import pathlib
import re
import shutil
import subprocess
import tempfile

import pytest

import tenon as tn

ROOT = pathlib.Path(__file__).resolve().parents[2]
FLAGS = ["-std=c++20", "-O0"]


def built_library():
    """The static library next to the module that is being tested, or None."""
    build = pathlib.Path(tn.__file__).absolute().parent.parent.parent
    for folder in (build, ROOT / "build" / "release"):
        if (folder / "libtenon.a").exists():
            return folder / "libtenon.a"
    return None


def _libraries(library):
    """The library and what it needs, as its pkg-config file says."""
    text = (library.parent / "tenon_static.pc").read_text()
    flags = re.search("^Libs: .*-l:libtenon.a(.*)$", text, re.M)
    mold = ["-fuse-ld=mold"] if shutil.which("mold") else []
    return [*mold, str(library), *flags[1].split()]


@functools.cache
def _precompiled():
    """A folder with <tenon/tenon.h> precompiled. Programs that begin with it compile in a third of
    the time."""
    folder = tempfile.TemporaryDirectory(prefix="tenon-headers-")
    made = pathlib.Path(folder.name, "tenon", "tenon.h.gch")
    made.parent.mkdir()
    include = ROOT / "include"
    header = ["-w", "-x", "c++-header", str(include / "tenon" / "tenon.h"), "-o", str(made)]
    subprocess.run(["g++", *FLAGS, f"-I{include}", *header], check=True)
    return folder


def run_cpp(text, folder, name="program"):
    """Compiles a program and runs it in `folder`; what it prints."""
    library = built_library()
    if library is None:
        pytest.skip("no static library: not a build tree")
    source, program = folder / "main.cpp", folder / "program"
    source.write_text(text)
    headers = [f"-I{_precompiled().name}", f"-I{ROOT / 'include'}"]
    command = ["g++", *FLAGS, *headers, str(source), *_libraries(library), "-o", str(program)]
    compiled = subprocess.run(command, capture_output=True, text=True)
    assert compiled.returncode == 0, f"{name}\n{compiled.stderr}"
    done = subprocess.run([str(program)], capture_output=True, text=True, cwd=folder)
    assert done.returncode == 0, f"{name}\n{done.stdout}\n{done.stderr}"
    return done.stdout
