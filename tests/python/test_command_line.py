"""The command `tenon`: every command, its JSON, its exit codes, and what it says of bad input."""

import ctypes
import json
import os
import pathlib
import pty
import re
import signal
import subprocess
import sys
import time

import numpy as np
import pytest

from command_line import PATHS, PYTHON, ROOT, TENON, answer, refused, tenon

pytestmark = pytest.mark.skipif(not TENON.exists(), reason="the command is not built")

MODEL = """
import tenon as tn

def scaled(x, factor=2.0):
    return tn.tanh(x) * factor

def both(x, n):
    return tn.exp(x), tn.sum(x, axis=1) + n

class Net(tn.nn.Module):
    def __init__(self):
        super().__init__()
        self.layer = tn.nn.Linear(2, 3)

    def forward(self, x):
        return tn.relu(self.layer(x))

def make_model():
    return Net()

def faulty(x):
    return x @ tn.ones((5, 5))

not_a_function = 3
"""
GRAPH = """func @poly(%x: f32[4,2]) {
  %0 = exp %x
  %1 = add %0, %x
  return %1
}
"""


@pytest.fixture(scope="module")
def folder(tmp_path_factory):
    """With a model, a graph, and executables of both."""
    path = tmp_path_factory.mktemp("command_line")
    (path / "model.py").write_text(MODEL)
    (path / "poly.tn").write_text(GRAPH)
    np.save(path / "x.npy", np.arange(8, dtype=np.float32).reshape(4, 2) / 8)
    np.save(path / "wide.npy", np.ones((4, 3), np.float32))
    np.save(path / "double.npy", np.ones((4, 2)))
    made = tenon("compile", "model.py:scaled", "--input", "x=f32[1:4:16,2]", cwd=path)
    assert made.returncode == 0, made.stderr
    return (path / "scaled.tnx").rename(path / "model.tnx").parent  # it has the function's name


# compile ---------------------------------------------------------------------------------------


def test_python_compiles_and_the_program_runs(folder):
    x = np.load(folder / "x.npy")
    said = answer("run", "model.tnx", "--input", "x=x.npy", "--output", "y.npy", cwd=folder)
    assert "y.npy" in said
    np.testing.assert_allclose(np.load(folder / "y.npy"), np.tanh(x) * 2, rtol=1e-6)


def test_python_m_tenon_is_the_same_command(folder):
    for args in (["env", "--json"], ["--version"], ["inspect", "model.tnx"], ["run", "--help"]):
        assert answer(*args, cwd=folder, command=PYTHON) == answer(*args, cwd=folder)


def test_a_module_with_parameters_is_made_by_a_call(folder):
    answer("compile", "model.py:make_model()", "--input", "x=f32[batch=1:4:16,2]", "-o", "net.tnx",
           cwd=folder)
    found = json.loads(answer("inspect", "net.tnx", "--json", cwd=folder))
    assert {c["name"] for c in found["constants"]} == {"layer.weight", "layer.bias"}
    assert found["inputs"][0]["sizes"][0] == {"min": 1, "opt": 4, "max": 16, "name": "batch"}


def test_constants_and_sizes_are_arguments_too(folder):
    answer("compile", "model.py:scaled", "--input", "x=f32[4,2]", "--value", "factor=3", "-o",
           "three.tnx", cwd=folder)
    answer("run", "three.tnx", "--input", "x=x.npy", "--output", "y.npy", cwd=folder)
    np.testing.assert_allclose(np.load(folder / "y.npy"), np.tanh(np.load(folder / "x.npy")) * 3,
                               rtol=1e-6)
    answer("compile", "model.py:both", "--input", "x=f32[4,2]", "--input", "n=1:2:9", "-o",
           "both.tnx", cwd=folder)
    said = json.loads(answer("run", "both.tnx", "--input", "x=x.npy", "--input", "n=3", "--output",
                             "1=sum.npy", "--json", cwd=folder))
    assert [out["shape"] for out in said] == [[4, 2], [4]]
    np.testing.assert_allclose(np.load(folder / "sum.npy"), np.load(folder / "x.npy").sum(1) + 3)


def test_a_graph_is_compiled_without_python(folder):
    said = json.loads(answer("compile", "poly.tn", "-o", "poly.tnx", "--json", cwd=folder,
                             env={"TENON_PYTHON": "/nowhere"}))
    assert said["file"] == "poly.tnx" and said["bytes"] == (folder / "poly.tnx").stat().st_size
    answer("run", "poly.tnx", "--input", "x=x.npy", "--output", "y.npy", "--quiet", cwd=folder)
    x = np.load(folder / "x.npy")
    np.testing.assert_allclose(np.load(folder / "y.npy"), np.exp(x) + x, rtol=1e-6)


def test_a_graph_takes_ranges_from_the_command_line(folder):
    answer("compile", "poly.tn", "--input", "x=f32[1:4:16,2]", "-o", "open.tnx", cwd=folder)
    assert "1 to 16" in answer("inspect", "open.tnx", cwd=folder)


@pytest.mark.parametrize("source, inputs, message", [
    ("model.py:scaled", ["x=f32[1:8]"], 'not a size: "1:8"'),
    ("model.py:scaled", ["x=f32[batch,2]"], "where a name is first used it has its range"),
    ("model.py:scaled", ["x=f33[2]"], 'no element type "f33"'),
    ("model.py:scaled", ["x=f32[9:8:16]"], "not 0 <= min <= opt <= max: 9:8:16"),
    ("model.py:scaled", ["f32[2]"], "an input needs a name and a type"),
    ("model.py:scaled", ["y=f32[2]"], "it has no parameter y: there are x, factor"),
    ("model.py:scaled", [], "no description of its parameter x"),
    ("model.py:scaled", ["x=f32[2]", "x=f32[3]"], "--input x: it is given twice"),
    ("model.py:scale", ["x=f32[2]"], "name 'scale' is not defined"),
    ("model.py:not_a_function", ["x=f32[2]"], "not a function but int"),
    ("model.py:Net", ["x=f32[2,2]"], "hint: write 'model.py:Net()'"),
    ("model.py", ["x=f32[2]"], "names no function"),
    ("nothing.py:f", ["x=f32[2]"], "cannot read nothing.py"),
    ("nothing:f", ["x=f32[2]"], "there is no module nothing"),
    ("model.py:faulty", ["x=f32[2,2]"], "matmul"),
    ("poly.tn", ["y=f32[2]"], "the graph has no such input: there are x"),
    ("nothing.tn", [], "cannot read nothing.tn"),
])
def test_what_cannot_be_compiled_is_told(folder, source, inputs, message):
    said = [word for text in inputs for word in ("--input", text)]
    assert message in refused("compile", source, *said, "-o", "no.tnx", cwd=folder)
    assert not (folder / "no.tnx").exists()


def test_a_missing_python_is_told(folder):
    message = refused("compile", "model.py:scaled", "--input", "x=f32[2]", cwd=folder,
                      env={"TENON_PYTHON": "/nowhere/python"})
    assert "/nowhere/python cannot be run" in message and "hint: " in message


def test_a_python_without_tenon_is_told(folder):
    message = refused("compile", "model.py:scaled", "--input", "x=f32[2]", cwd=folder,
                      env={"PYTHONPATH": "", "TENON_PYTHON": "/usr/bin/python3"})
    assert "cannot import tenon" in message and "TENON_PYTHON" in message


def test_an_exception_of_the_users_module_keeps_its_traceback(folder):
    (folder / "broken.py").write_text("def f(x):\n    return x\n\n1 / 0\n")
    done = tenon("compile", "broken.py:f", "--input", "x=f32[2]", cwd=folder)
    assert done.returncode == 1 and "broken.py\", line 4" in done.stderr
    assert "command_line.py" not in done.stderr


@pytest.mark.parametrize("command", [(TENON,), PYTHON])
def test_places_are_those_of_the_user(folder, command):
    """Not lines of what runs the command: the option stands for the line that declares an input."""
    given = ["compile", "model.py:scaled", "--input", "x=f32[1:4:16,2]", "-o"]
    assert "  at " not in refused(*given, "no/such/folder/y.tnx", cwd=folder, command=command)
    answer(*given, "placed.tnx", cwd=folder, command=command)
    np.save(folder / "long.npy", np.ones((17, 2), np.float32))
    message = refused("run", "placed.tnx", "--input", "x=long.npy", cwd=folder, command=command)
    assert "declared at tenon compile --input x\n" in message


# run -------------------------------------------------------------------------------------------


def test_results_are_printed_when_no_file_takes_them(folder):
    assert answer("run", "model.tnx", "--input", "x=x.npy", cwd=folder).startswith("0 = tensor([[")


def test_random_inputs_are_repeatable(folder):
    first, again, other = (answer("run", "model.tnx", "--random", "--seed", seed, cwd=folder)
                           for seed in (1, 1, 2))
    assert first == again != other


@pytest.mark.parametrize("args, message", [
    ([], "no value for the input x=f32[1:4:16,2]"),
    (["--input", "x=nothing.npy"], "cannot read nothing.npy"),
    (["--input", "y=x.npy"], "--input y: there is no such input: there is x"),
    (["--input", "x=double.npy"], "expected f32, the file has f64"),
    (["--input", "x=wide.npy"], "x"),
    (["--input", "x=model.py"], "model.py: not a readable .npy file: wrong magic number"),
    (["--input", "x.npy"], "expected NAME=VALUE"),
    (["--input", "x=x.npy", "--input", "x=x.npy"], "--input x: it is given twice"),
    (["--input", "x=no=file.npy"], "cannot read no=file.npy"),
    (["--random", "--output", "a.npy", "--output", "b.npy"], "no such result: scaled gives 0"),
    (["--random", "--output", "no/such/folder/y.npy"], "cannot write no/such/folder/y.npy"),
])
def test_wrong_inputs_are_told(folder, args, message):
    assert message in refused("run", "model.tnx", *args, cwd=folder)


def test_elements_are_converted_when_asked(folder):
    answer("run", "model.tnx", "--input", "x=double.npy", "--cast", cwd=folder)


@pytest.mark.parametrize("command", [
    ["run", "sub"], ["run", "model.tnx", "--input", "x=sub"], ["inspect", "sub"], ["bench", "sub"],
    ["export", "sub"], ["show", "sub"], ["opt", "sub"], ["compile", "sub", "-o", "no.tnx"],
    ["compile", "sub.py:f", "--input", "x=f32[2]", "-o", "no.tnx"],
    ["compile", "poly.tn", "-o", "sub"],
    ["run", "model.tnx", "--random", "--output", "sub"],
    ["export", "model.tnx", "-o", "poly.tn"],
])  # fmt: skip
def test_a_folder_where_a_file_is_wanted(folder, command):
    for name in ("sub", "sub.py"):
        (folder / name).mkdir(exist_ok=True)
    for program in ([TENON], PYTHON)[: 1 if command[0] != "compile" else 2]:
        message = refused(*command, cwd=folder, command=program)
        assert "sub" in message or "poly.tn" in message
        assert re.search("[iI]s a directory|Not a directory|cannot create the folder", message)
    assert not (folder / "no.tnx").exists()


@pytest.mark.parametrize("damage", ["empty", "short", "text", "flipped"])
def test_bad_files_are_told(folder, damage):
    whole = (folder / "model.tnx").read_bytes()
    bad = {"empty": b"", "short": whole[:100], "text": b"hello" * 100,
           "flipped": whole[:20] + bytes([whole[20] ^ 1]) + whole[21:]}[damage]
    (folder / "bad.tnx").write_bytes(bad)
    for command in (["run", "--random"], ["inspect"], ["bench"], ["export"]):
        assert "bad.tnx" in refused(command[0], "bad.tnx", *command[1:], cwd=folder)
    assert "no.tnx" in refused("run", "no.tnx", cwd=folder)


@pytest.mark.parametrize("array", [
    np.arange(6).reshape(2, 3), np.float32(3), np.zeros((0, 3)), np.array([True, False]),
    np.asfortranarray(np.arange(6, dtype=np.int16).reshape(2, 3)), np.array([1 + 2j]),
    np.array([1, 2], np.uint8), np.array([0.5], np.float16),
], ids=lambda a: f"{a.dtype}{a.shape}")
def test_arrays_come_back_as_they_went(tmp_path, array):
    kind = {"b": "bool", "c": "c128"}.get(array.dtype.kind, array.dtype.str[1:])
    dtype = {"i8": "i64", "f4": "f32", "f8": "f64", "i2": "i16", "u1": "u8", "f2": "f16"}.get(
        kind, kind)
    sizes = ",".join(map(str, np.shape(array)))
    (tmp_path / "same.tn").write_text(
        f"func @same(%x: {dtype}[{sizes}]) {{\n  return %x\n}}\n")
    np.save(tmp_path / "x.npy", array)
    answer("compile", "same.tn", cwd=tmp_path)
    answer("run", "same.tnx", "--input", "x=x.npy", "--output", "y.npy", cwd=tmp_path)
    came = np.load(tmp_path / "y.npy")
    assert came.dtype == array.dtype
    np.testing.assert_array_equal(came, array)


def npy(header, elements=b"", version=1):
    text = header.encode("latin1") + b"\n"
    return (b"\x93NUMPY" + bytes([version, 0]) +
            len(text).to_bytes(2 if version == 1 else 4, "little") + text + elements)


@pytest.mark.parametrize("data, message", [
    (b"\x93NUMPY", "it ends too early"),
    (npy("{'descr': '<f4', 'fortran_order': False, 'shape': (2,), }", bytes(7)),
     "it has 7 bytes of elements, expected 8"),
    (npy("{'descr': '<f4', 'fortran_order': False, 'shape': (99999999999, 99999999999), }"),
     "more than can be counted"),
    (npy("{'descr': '<f4', 'fortran_order': False, 'shape': (-2,), }"), "its shape is invalid"),
    (npy("{'descr': '>f4', 'fortran_order': False, 'shape': (2,), }"), "big-endian"),
    (npy("{'descr': '<U4', 'fortran_order': False, 'shape': (2,), }"), "elements of type <U4"),
    (npy("{'descr': [('a', '<f4')], 'fortran_order': False, 'shape': (2,), }"), "records"),
    (npy("{'descr': '<f4', 'fortran_order': False, 'shape': (" + "1," * 20 + ")}", bytes(4)),
     "20 axes, and tensors have at most 16"),
    (npy("{}"), "its header has no descr"),
    (npy("{'descr': '"), "records"),
    (npy("", version=9), "version 9"),
])
def test_bad_arrays_are_told(folder, data, message):
    (folder / "bad.npy").write_bytes(data)
    told = refused("run", "model.tnx", "--input", "x=bad.npy", cwd=folder)
    assert message in told


# inspect, bench, export, show, opt -------------------------------------------------------------


def test_inspect_tells_what_is_in_a_file(folder):
    text = answer("inspect", "model.tnx", cwd=folder)
    for part in ("scaled(", "1 to 16, best at 4", "graph", "code for x86-64-v", "a call needs"):
        assert part in text
    assert "checksums" not in text
    assert "checksums are right" in answer("inspect", "model.tnx", "--verify", cwd=folder)
    found = json.loads(answer("inspect", "model.tnx", "--json", "--verify", cwd=folder))
    assert found["bytes"] == (folder / "model.tnx").stat().st_size
    assert found["peak_bytes"] >= 16 * 2 * 4
    assert {"meta", "graph", "plan", "code"} <= {s["kind"] for s in found["sections"]}


def test_code_for_several_processors_is_in_one_file(folder):
    answer("compile", "poly.tn", "--target", "native,x86-64-v2", "--target", "x86-64-v3", "--strip",
           "-o", "levels.tnx", cwd=folder)
    found = json.loads(answer("inspect", "levels.tnx", "--json", cwd=folder))
    assert {"x86-64-v2", "x86-64-v3"} <= set(found["targets"])
    assert "debug" not in {s["kind"] for s in found["sections"]}
    assert "x86-64-v9" in refused("compile", "poly.tn", "--target", "x86-64-v9", cwd=folder)


@pytest.mark.parametrize("section, part", [
    ("graph", "tanh"), ("signature", "scaled("), ("memory", "peak"), ("sections", "graph"),
])
def test_inspect_shows_one_part(folder, section, part):
    assert part in answer("inspect", "model.tnx", "--section", section, cwd=folder)


def test_bench_measures_every_size(folder):
    args = ["bench", "model.tnx", "--size", "x.0=1,8", "--seconds", "0.01", "--threads", "1"]
    found = json.loads(answer(*args, "--json", cwd=folder))
    assert [row["sizes"] for row in found["seconds"]] == [{"x.0": 1}, {"x.0": 8}]
    assert all(0 < row["fastest"] <= row["median"] <= row["p90"] for row in found["seconds"])
    lines = answer(*args, cwd=folder).splitlines()
    assert lines[0].split()[:2] == ["sizes", "median"] and lines[1].startswith("x.0=1 ")


@pytest.mark.parametrize("size, message", [
    ("x.0=17", "16"), ("x.7=1", "there is no such size: there are x.0, x.1"), ("x.0", "not sizes"),
    ("x.0=a", "not sizes"),
])
def test_bench_refuses_sizes_that_are_none(folder, size, message):
    assert message in refused("bench", "model.tnx", "--size", size, cwd=folder)


def test_export_writes_c(folder):
    answer("compile", "poly.tn", "-o", "poly.tnx", cwd=folder)
    said = answer("export", "poly.tnx", "--to", "c", "-o", "c", cwd=folder)
    assert said.split() == ["c/poly.h", "c/poly.c"]
    assert "int poly_run(" in (folder / "c/poly.h").read_text()
    assert "int poly_run(" in (folder / "c/poly.c").read_text()  # a file of its own
    assert "has symbolic sizes" in refused("export", "model.tnx", "-o", "c", cwd=folder)
    assert "--to" in refused("export", "poly.tnx", "--to", "rust", cwd=folder, code=2)


def test_exported_python_computes_the_same(folder):
    answer("compile", "model.py:make_model()", "--input", "x=f32[4,2]", "-o", "2-net.tnx",
           cwd=folder)
    said = json.loads(answer("export", "2-net.tnx", "--to", "numpy", "-o", "py", "--json",
                             cwd=folder))
    assert said == {"files": ["py/f2_net.py", "py/f2_net.safetensors"]}
    answer("run", "2-net.tnx", "--input", "x=x.npy", "--output", "y.npy", cwd=folder)
    code = ("import sys; sys.path.insert(0, 'py'); import numpy as np, f2_net; "
            "np.save('z.npy', f2_net.f2_net(np.load('x.npy')))")
    subprocess.run([sys.executable, "-I", "-c", code], cwd=folder, check=True)
    np.testing.assert_allclose(np.load(folder / "z.npy"), np.load(folder / "y.npy"), rtol=1e-5)


PACKED = """
import numpy as np
import tenon as tn

random = np.random.default_rng(0)

def weights(*shape):
    return tn.array(random.standard_normal(shape).astype(np.float32) / 16)

kernel, deep = weights(16, 3, 3, 3), weights(64, 32, 3, 3)
wide, right = weights(288, 512), weights(512, 300)

def convolution(x):
    return tn.relu(tn.conv2d(x, kernel, padding=1))

def deep_convolution(x):
    return tn.conv2d(x, deep, stride=2)

def dense(x):
    return tn.matmul(tn.tanh(tn.matmul(x, wide)), right)

def dense_double(x):
    return tn.matmul(x, wide.astype(tn.float64))

def both(x):
    y = tn.conv2d(x, kernel)
    return tn.matmul(tn.reshape(y, (y.shape[0], -1))[:, :288], wide)
"""
PACKED_INPUTS = {"convolution": (2, 3, 8, 8), "deep_convolution": (2, 32, 8, 8), "dense": (24, 288),
                 "dense_double": (24, 288), "both": (2, 3, 8, 8)}


@pytest.mark.parametrize("name", PACKED_INPUTS)
def test_constants_that_a_file_holds_packed_are_exported(folder, name):
    """Files have the right sides of products as kernels read them, and not as they were."""
    (folder / "packed.py").write_text(PACKED)
    kind = "f64" if name == "dense_double" else "f32"
    x = np.random.default_rng(1).standard_normal(PACKED_INPUTS[name])
    np.save(folder / f"{name}.npy", x.astype({"f64": np.float64, "f32": np.float32}[kind]))
    sizes = ",".join(map(str, x.shape))
    answer("compile", f"packed.py:{name}", "--input", f"x={kind}[{sizes}]", "-o", f"{name}.tnx",
           cwd=folder)
    answer("run", f"{name}.tnx", "--input", f"x={name}.npy", "--output", "y.npy", cwd=folder)
    for target in ("torch", "jax", "numpy"):  # those of NumPy can be run here
        answer("export", f"{name}.tnx", "--to", target, "-o", "packed", cwd=folder)
    code = (f"import sys; sys.path.insert(0, 'packed'); import numpy as np, {name} as m; "
            f"np.save('z.npy', m.{name}(np.load('{name}.npy')))")
    subprocess.run([sys.executable, "-I", "-c", code], cwd=folder, check=True)
    np.testing.assert_allclose(np.load(folder / "z.npy"), np.load(folder / "y.npy"), rtol=1e-4,
                               atol=1e-5)


@pytest.mark.compiles
def test_exported_c_computes_the_same(folder):
    answer("compile", "model.py:make_model()", "--input", "x=f32[4,2]", "-o", "2-net.tnx",
           cwd=folder)
    said = json.loads(answer("export", "2-net.tnx", "-o", "c", "--json", cwd=folder))
    assert said == {"files": ["c/f2_net.h", "c/f2_net.c", "c/f2_net.bin"]}
    answer("run", "2-net.tnx", "--input", "x=x.npy", "--output", "y.npy", cwd=folder)
    # With fused multiply-adds, as the library has them: then products have its bits too.
    subprocess.run(["cc", "-std=c11", "-O1", "-march=x86-64-v3", "-ffp-contract=off", "-fPIC",
                    "-shared", "f2_net.c", "-o", "net.so", "-lm"], cwd=folder / "c", check=True,
                   capture_output=True)
    inputs = [np.load(folder / "x.npy"), np.fromfile(folder / "c/f2_net.bin", np.uint8)]
    out, arena = np.empty((4, 3), np.float32), np.zeros(1 << 20, np.uint8)
    pointers = (ctypes.c_void_p * 2)(*(a.ctypes.data for a in inputs))
    aligned = ctypes.c_void_p((arena.ctypes.data + 63) // 64 * 64)
    net = ctypes.CDLL(str(folder / "c/net.so"))
    assert net.f2_net_run(pointers, (ctypes.c_void_p * 1)(out.ctypes.data), aligned) == 0
    np.testing.assert_array_equal(out, np.load(folder / "y.npy"))


def test_show_and_opt_take_executables(folder):
    assert "tanh" in answer("show", "model.tnx", "--what", "optimized", cwd=folder)
    assert "tanh" in answer("opt", "model.tnx", cwd=folder)


# exit codes and the terminal -------------------------------------------------------------------


@pytest.mark.parametrize("args, message", [
    ([], "A subcommand is required"),
    (["inspec"], "did you mean inspect?"),
    (["run"], "file is required"),
    (["bench", "f.tnx", "--threads", "0"], "--threads"),
    (["compile", "poly.tn", "--level", "9"], "--level"),
    (["env", "--jason"], "--jason"),
])
@pytest.mark.parametrize("command", [[TENON], PYTHON], ids=["tenon", "python"])
def test_wrong_usage_has_its_own_code(args, message, command):
    assert message in refused(*args, code=2, command=command)


@pytest.mark.parametrize("command", ["compile", "run", "inspect", "bench", "export", "show", "opt",
                                     "cache", "env", "doctor"])
def test_every_command_has_help(command):
    assert "Usage: tenon " + command in answer(command, "--help")


@pytest.mark.parametrize("command", [[TENON], PYTHON], ids=["tenon", "python"])
def test_a_closed_pipe_is_no_error(folder, command):
    words = [*command, "inspect", "model.tnx", "--section", "graph"]
    line = " ".join(map(str, words)) + " 2>err | true"
    subprocess.run(["bash", "-c", line], cwd=folder, env=os.environ | {"PYTHONPATH": PATHS},
                   check=True)
    assert (folder / "err").read_text() == ""


def takes_signals(pid):
    """Whether the command has begun: the library is there, and Python leaves SIGINT alone."""
    process = pathlib.Path(f"/proc/{pid}")
    caught = int(re.search(r"SigCgt:\s*(\w+)", (process / "status").read_text())[1], 16)
    loaded = re.search(r"/_core\.|/tenon$", (process / "maps").read_text(), re.M)
    return loaded and not caught & 1 << (signal.SIGINT - 1)


@pytest.mark.parametrize("command", [[TENON], PYTHON], ids=["tenon", "python"])
def test_ctrl_c_ends_a_command_quietly(folder, command):
    running = subprocess.Popen([*command, "bench", "model.tnx", "--seconds", "60"], cwd=folder,
                               env=os.environ | {"PYTHONPATH": PATHS}, stdout=subprocess.PIPE,
                               stderr=subprocess.PIPE, text=True)
    while not takes_signals(running.pid):
        time.sleep(0.01)
    running.send_signal(signal.SIGINT)
    _, errors = running.communicate(timeout=60)
    assert running.returncode == -signal.SIGINT and errors == ""


def test_a_long_compilation_shows_progress_on_a_terminal_only(folder):
    (folder / "slow.py").write_text("import time\n\ndef f(x):\n    time.sleep(1.5)\n"
                                    "    return x\n")
    args = ["compile", "slow.py:f", "--input", "x=f32[2]"]
    assert tenon(*args, cwd=folder).stderr == ""
    ours, theirs = pty.openpty()
    env = os.environ | {"PYTHONPATH": PATHS, "TENON_PYTHON": sys.executable}
    subprocess.run([TENON, *args], cwd=folder, env=env, stderr=theirs, stdout=subprocess.DEVNULL,
                   check=True)
    os.close(theirs)
    shown = os.read(ours, 4096).decode()
    os.close(ours)
    assert "compiling [" in shown and shown.endswith("\r\x1b[K")


def test_the_tutorial_runs(tmp_path):
    """Blocks of sh, with the output that is shown after them."""
    from test_docs import blocks, matches

    (tmp_path / "bin").mkdir()
    (tmp_path / "bin/tenon").symlink_to(TENON)
    (tmp_path / "bin/python3").symlink_to(sys.executable)
    env = os.environ | {"PYTHONPATH": PATHS, "TENON_PYTHON": sys.executable, "TENON_CACHE": "1",
                        "TENON_CACHE_DIR": str(tmp_path / "cache"),
                        "PATH": f"{tmp_path / 'bin'}:{os.environ['PATH']}"}
    found = blocks(ROOT / "docs/tutorial/10-command-line.md")
    for block, output in zip(found, found[1:]):
        if block.language == "python":
            (tmp_path / "model.py").write_text(block.text)
        if block.language != "sh":
            continue
        done = subprocess.run(["bash", "-ec", block.text], cwd=tmp_path, env=env, text=True,
                              capture_output=True)
        assert done.returncode == 0, done.stderr
        assert matches(output.text, done.stdout), done.stdout


def test_gen_wants_a_checkout(tmp_path):
    assert "is no checkout of Tenon" in refused("gen", cwd=tmp_path)
    assert not list(tmp_path.iterdir())


def test_an_export_that_fails_makes_no_folder(tmp_path):
    assert "cannot open" in refused("export", "none.tnx", "-o", "made", cwd=tmp_path)
    assert not list(tmp_path.iterdir())
