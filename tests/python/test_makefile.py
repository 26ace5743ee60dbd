"""What the Makefile and the documents name exists and begins to work.

`make test` builds all programs, tests and benchmarks; here is what it does not build: targets that
take long are only asked what they would do.
"""

import importlib
import pathlib
import re
import shutil
import subprocess

import pytest

ROOT = pathlib.Path(__file__).resolve().parents[2]
MAKEFILE = (ROOT / "Makefile").read_text()
PHONY = re.search(r"^\.PHONY: (.*)$", MAKEFILE, re.M)[1].split()
DOCUMENTS = [ROOT / "README.md", ROOT / "CONTRIBUTING.md", *sorted((ROOT / "docs").rglob("*.md"))]


def named(pattern):
    return {name for path in DOCUMENTS for name in re.findall(pattern, path.read_text())}


def test_targets_in_the_documents_exist():
    assert named(r"`make (\w+)") <= set(PHONY)


@pytest.mark.skipif(not shutil.which("make"), reason="make is not installed")
@pytest.mark.parametrize("target", PHONY)
def test_targets_can_be_made(target):
    done = subprocess.run(["make", "-n", target], cwd=ROOT, text=True, capture_output=True)
    assert done.returncode == 0, done.stderr
    for script in re.findall(r"(?:tools|bench|tests|examples)/[\w/]+\.(?:py|sh)", done.stdout):
        assert (ROOT / script).is_file()


def test_files_in_the_documents_exist():
    for name in named(r"`((?:bench|examples|tools|tests|src|python)/[\w/]+\.\w+)`"):
        if name != "src/ops/squareplus.cpp":  # which the reader is to write
            assert (ROOT / name).is_file(), name


def test_programs_that_measure_can_be_imported(monkeypatch):
    monkeypatch.syspath_prepend(str(ROOT / "bench"))
    for path in sorted((ROOT / "bench").glob("*.py")):
        importlib.import_module(path.stem)
    subprocess.run(["bash", "-n", ROOT / "bench" / "build.sh"], check=True)


def test_the_wheel_is_described(tmp_path, monkeypatch):
    """`make wheel` compiles everything once more; what it would be called is known before."""
    build = pytest.importorskip("scikit_build_core.build")
    monkeypatch.chdir(ROOT)
    made = build.prepare_metadata_for_build_wheel(str(tmp_path))
    text = (tmp_path / made / "METADATA").read_text()
    assert "\nName: tenonc\n" in text
    required = re.findall(r"\nRequires-Dist: (.*)", text)
    assert all("extra ==" in line for line in required), required  # NumPy is an option
    version = re.search(r"\nVersion: (\S+)", text)[1]
    assert f"project(tenon VERSION {version}" in (ROOT / "CMakeLists.txt").read_text()
    entry = (tmp_path / made / "entry_points.txt").read_text()
    module, function = re.search(r"tenon = ([\w.]+):(\w+)", entry).groups()
    assert callable(getattr(importlib.import_module(module), function))
