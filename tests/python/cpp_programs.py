"""C++ programs of tests: compiled against the library that is being tested, and run."""

import pathlib
import re
import shutil
import subprocess

import pytest

import tenon as tn

ROOT = pathlib.Path(__file__).resolve().parents[2]


def built_library():
    """The static library next to the module that is being tested, or None."""
    build = pathlib.Path(tn.__file__).absolute().parent.parent.parent
    for folder in (build, ROOT / "build" / "release"):
        if (folder / "libtenon.a").exists():
            return folder / "libtenon.a"
    return None


def _libraries(library):
    """The library and what it needs, as its pkg-config file says."""
    flags = re.search("^Libs: .*-ltenon(.*)$", (library.parent / "tenon.pc").read_text(), re.M)
    return [str(library), *flags[1].split()]


def run_cpp(text, folder, name="program"):
    """Compiles a program and runs it in `folder`; what it prints."""
    library = built_library()
    if library is None:
        pytest.skip("no static library: not a build tree")
    source, program = folder / "main.cpp", folder / "program"
    source.write_text(text)
    flags = ["-std=c++20", "-fuse-ld=mold"] if shutil.which("mold") else ["-std=c++20"]
    command = ["g++", *flags, f"-I{ROOT / 'include'}", str(source), *_libraries(library)]
    compiled = subprocess.run([*command, "-o", str(program)], capture_output=True, text=True)
    assert compiled.returncode == 0, f"{name}\n{compiled.stderr}"
    done = subprocess.run([str(program)], capture_output=True, text=True, cwd=folder)
    assert done.returncode == 0, f"{name}\n{done.stderr}"
    return done.stdout
