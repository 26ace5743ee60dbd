"""What the command `tenon` reports for sources, values and files that are not what it needs."""
import os

import numpy as np
import pytest

import tenon as tn
from command_line import TENON, refused, tenon
from test_command_line import npy

pytestmark = pytest.mark.skipif(not TENON.exists(), reason="the command is not built")

MODEL = """
import tenon as tn

def repeated(x, n):
    return tn.sum(x) * tn.ones(n)

class Net(tn.nn.Module):
    pass

number = 3
"""
GRAPH = "func @open[B: 1..8](%x: f32[B,2]) {\n  %0 = exp %x\n  return %0\n}\n"


@pytest.fixture(scope="module")
def folder(tmp_path_factory):
    path = tmp_path_factory.mktemp("command_errors")
    (path / "model.py").write_text(MODEL)
    (path / "open.tn").write_text(GRAPH)
    (path / "package.py").mkdir()
    np.save(path / "x.npy", np.ones(2, np.float32))
    made = tenon("compile", "model.py:repeated", "--input", "x=f32[2]", "--input", "n=1:2:4", "-o",
                 "sized.tnx", cwd=path)
    assert made.returncode == 0, made.stderr
    fixed = tenon("compile", "open.tn", "--input", "x=f32[4,2]", "-o", "fixed.tnx", cwd=path)
    assert fixed.returncode == 0, fixed.stderr
    return path


@pytest.mark.parametrize("args, message", [
    (["model.py:repeated", "--input", "x=f32[2"],
     "x=f32[2: no ] at the end\n"
     "  hint: write name=f32[2,1:8:16,batch=1:8:16], or name=1:8:16 for a size"),
    (["model.py:repeated", "--input", "x=f32[2]"],
     "model.py:repeated: no description of its parameter n\n"
     "  hint: --input n=f32[2,3], or --value n=3"),
    (["model.py:repeated", "--input", "z=f32[2]"],
     "model.py:repeated: it has no parameter z: there are x, n"),
    (["model.py:repeated", "--input", "x=f32[2]", "--value", "n=a b"],
     "--value n=a b: not a Python value\n  hint: write name=3, name=1.5 or name=\"'text'\""),
    (["open.tn"],
     "the input x has sizes that vary: f32[B,2]\n  hint: --input x=f32[min:opt:max,...]"),
    (["package.py"], "package.py is a directory\n  hint: give the name of a file in it"),
    (["package.py:f"], "package.py is a directory\n  hint: give the name of a file in it"),
    (["model.py"], "model.py: names no function\n  hint: write model.py:function"),
    (["model.py:nothing"], "model.py:nothing: name 'nothing' is not defined"),
    (["model.py:number"], "model.py:number: not a function but int"),
    (["model.py:Net"],
     "model.py:Net: a class, not an instance of it\n  hint: write 'model.py:Net()'"),
    (["nothing.py:f"], "cannot read nothing.py: there is no such file"),
    (["nothing:f"],
     "there is no module nothing\n  hint: files are written with .py: nothing.py:function"),
])
def test_compile(folder, args, message):
    assert refused("compile", *args, cwd=folder) == f"tenon: {message}\n"


@pytest.mark.parametrize("args, message", [
    (["run", "sized.tnx", "--input", "x=x.npy", "--input", "n=two"],
     "--input n=two: not a whole number: two"),
    (["export", "fixed.tnx", "--to", "c", "-o", "x.npy/c"],
     "cannot create the folder x.npy/c: Not a directory"),
])
def test_run_and_export(folder, args, message):
    assert refused(*args, cwd=folder) == f"tenon: {message}\n"


def test_an_array_without_a_shape(folder):
    data = npy("{'descr': '<f4', 'fortran_order': False, 'shape': 2, }", bytes(8))
    (folder / "bad.npy").write_bytes(data)
    text = refused("run", "sized.tnx", "--input", "x=bad.npy", "--input", "n=2", cwd=folder)
    assert text == "tenon: bad.npy: not a readable .npy file: its header has no shape\n"


def test_a_name_that_is_no_text(folder):
    name = os.fsdecode(b"\xff")  # the name of a size, which Python cannot decode
    done = tenon("compile", "open.tn", "--input", f"x=f32[{name}=1:2:4,2]", "-o", "name.tnx",
                 cwd=folder)
    assert done.returncode == 0, done.stderr
    with pytest.raises(ValueError, match="name.tnx is damaged: a text in it is not UTF-8"):
        tn.Executable.load(folder / "name.tnx")


def test_an_unknown_processor_level(folder):
    args = ["run", "sized.tnx", "--input", "x=x.npy", "--input", "n=2"]
    text = refused(*args, cwd=folder, env={"TENON_CPU_LEVEL": "v9"})
    assert text == "tenon: TENON_CPU_LEVEL: not one of v2, v3, v4: v9\n"
