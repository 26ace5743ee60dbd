"""The examples run, for a few steps, and what they train gets better."""

import importlib
import os
import pathlib
import re
import shutil
import subprocess
import sys

import pytest

import tenon as tn
from cpp_programs import run_cpp

ROOT = pathlib.Path(__file__).resolve().parents[2]
EXAMPLES = ROOT / "examples"


@pytest.fixture
def example(monkeypatch):
    """A function that gives an example by its name."""
    monkeypatch.syspath_prepend(str(EXAMPLES))
    return importlib.import_module


def mean(values):
    return sum(values) / len(values)


PARTS = {"char_gpt": 0.8, "pipeline": 0.8, "resnet_digits": 0.7, "three_habits": 0.9, "vae": 0.8}


@pytest.mark.parametrize("name, part", PARTS.items())
def test_losses_fall(example, name, part, capsys):
    if name in ("resnet_digits", "vae"):
        pytest.importorskip("sklearn")
    losses = example(name).main(["--quick"])
    assert mean(losses[-3:]) < part * mean(losses[:3])
    printed = capsys.readouterr().out
    assert f"{len(losses)} losses: all the same" in printed or f"in {len(losses)} steps" in printed


def test_steps_are_those_asked_for(example):
    pytest.importorskip("sklearn")
    assert len(example("vae").main(["--steps", "3"])) == 3


def test_the_picture_of_the_autoencoder_is_a_png(example, tmp_path):
    vae = example("vae")
    path = tmp_path / "a.png"
    pixels = vae.drawn(vae.VAE(), side=3)
    vae.write_png(path, pixels)
    data = path.read_bytes()
    assert pixels.shape == (120, 120) and pixels.dtype == "uint8"
    assert data[:8] == b"\x89PNG\r\n\x1a\n" and data.endswith(b"IEND\xaeB`\x82")


def run(script, *options, **environment):
    command = [sys.executable, str(EXAMPLES / script), *map(str, options)]
    return subprocess.run(
        command, capture_output=True, text=True, env={**os.environ, **environment}, timeout=300
    )


@pytest.mark.compiles
def test_the_demo(tmp_path):
    pytest.importorskip("sklearn")
    library = pathlib.Path(tn.__file__).absolute().parents[2] / "libtenon_rt.so"
    if not library.exists() or not shutil.which("g++"):
        pytest.skip("needs the runtime in a build tree, and g++")
    done = run("demo.py", "--quick", "--out", tmp_path)
    assert done.returncode == 0, done.stdout + done.stderr
    assert "88 losses, all with the same bits" in done.stdout
    assert "3590 scores of C++ and Python have the same bits" in done.stdout
    assert (tmp_path / "digits.tnx").exists()
    page = (tmp_path / "index.html").read_text()
    assert page.count("<svg") == 3 and "x = nn.gelu(self.norm1(self.conv1(x)))" in page


def test_without_the_digits_one_sentence_says_where_they_are(tmp_path):
    (tmp_path / "sklearn.py").write_text("raise ImportError('not installed')")
    path = os.pathsep.join([str(tmp_path), os.environ.get("PYTHONPATH", "")])
    done = run("resnet_digits.py", "--quick", PYTHONPATH=path)
    assert done.returncode == 1
    assert done.stderr == ("the digits come with scikit-learn: "
                           ".venv/bin/python -m pip install scikit-learn\n")


def test_the_tour():
    done = run("tour.py", "--quick")
    assert done.returncode == 0, done.stderr
    assert "== Errors name the op" in done.stdout and "NumPy / Tenon" in done.stdout


def test_a_divided_model_is_served_by_threads_and_processes(tmp_path):
    file = tmp_path / "llm.tnx"
    done = run("serve_divided.py", "--save", file)
    assert done.returncode == 0, done.stderr
    threads = run("serve_divided.py", file)
    assert threads.stdout.startswith("tokens 3 1 4 ") and len(threads.stdout.split()) == 12
    script = str(EXAMPLES / "serve_divided.py")
    command = [sys.executable, "-m", "tenon", "launch", "-n", "2", script, str(file)]
    done = subprocess.run(command, capture_output=True, text=True, timeout=300)
    assert (done.returncode, done.stdout) == (0, threads.stdout), done.stderr


def numbers(pattern, text):
    """What the group of a pattern matches, everywhere in a text."""
    return [float(found) for found in re.findall(pattern, text)]


def check_digits(printed, folder):
    assert numbers(r"accuracy ([\d.]+)", printed)[-1] > 90
    assert len(re.findall(r"^read as \d with", printed, re.M)) == 2
    datasets = pytest.importorskip("sklearn.datasets")
    data = datasets.load_digits()
    rows = [[*image, label] for image, label in zip(data.data[:500], data.target)]
    (folder / "digits.csv").write_text("".join(",".join(map(str, row)) + "\n" for row in rows))
    command = [folder / "program", "digits.csv", "3"]
    done = subprocess.run(command, cwd=folder, capture_output=True, text=True)
    assert numbers(r"accuracy ([\d.]+)", done.stdout)[-1] > 50, done.stderr
    command[1] = "nothing.csv"
    done = subprocess.run(command, cwd=folder, capture_output=True, text=True)
    assert done.returncode == 1
    assert done.stderr == "digits: nothing.csv: expected lines of 65 numbers\n"


def check_char_model(printed, folder):
    losses = numbers(r"loss ([\d.]+)", printed)
    assert losses[-1] < 0.2 * losses[0]
    assert "characters, 31 different ones" in printed


def check_physics(printed, folder):
    assert abs(numbers(r"changed by ([-\d.e]+)", printed)[0]) < 1e-3
    assert numbers(r"largest error of a mass: ([\d.]+)", printed)[0] < 1


def check_own_optimizer(printed, folder):
    assert numbers(r"AdaBelief +([\d.]+)", printed)[0] < 0.02
    assert "compiled or not: the same bits" in printed
    assert re.findall(r"^moments\S+", printed, re.M) == ["moments.w.m", "moments.w.s"]


def check_serve(printed, folder):
    assert "1000 requests on 4 threads" in printed
    assert "the bits of calls of their own: yes" in printed
    assert "a request has 8 features, not 3" in printed


def check_model(printed, folder):
    assert "block1    residual" in printed
    assert "classifier(points: float32[n, 2]) -> float32[n, 3]" in printed
    assert numbers(r"right ([\d.]+)", printed)[0] > 95


PROGRAMS = {f.__name__.removeprefix("check_"): f for f in (
    check_char_model, check_digits, check_model, check_own_optimizer, check_physics, check_serve
)}  # fmt: skip


@pytest.mark.compiles
@pytest.mark.parametrize("name", PROGRAMS)
def test_cpp_programs(name, tmp_path):
    source = (EXAMPLES / "cpp" / f"{name}.cpp").read_text()
    PROGRAMS[name](run_cpp(source, tmp_path, name), tmp_path)
