"""What models say about mistakes: programs, ----, and the error each ends with.

TENON_UPDATE_GOLDEN=1 writes what is said now.
"""

import os
import re
from pathlib import Path

import pytest

import tenon as tn
from tenon import model as M

FOLDER = Path(__file__).parent.parent / "golden" / "models"
CASE = re.compile(r"# (?P<title>.*)\n(?P<program>(?:(?!----\n|# ).*\n)+)----\n")
FILES = sorted(FOLDER.glob("*.txt"))


def error_of(program):
    """The kind and text of the error, without its place."""
    names = {"tn": tn, **{name: getattr(M, name) for name in M.__all__}}
    try:
        exec(compile(program, "program", "exec"), names)
    except Exception as error:
        lines = [line for line in str(error).splitlines() if not line.startswith("  at ")]
        return f"{type(error).__name__}: " + "\n".join(lines) + "\n"
    return "no error\n"


@pytest.mark.parametrize("file", FILES, ids=lambda f: f.stem)
def test_golden_errors(file):
    text = file.read_text()
    cases = [match.groupdict() for match in CASE.finditer(text)]
    now = "\n".join(
        f"# {c['title']}\n{c['program']}----\n{error_of(c['program'])}" for c in cases
    )
    if os.environ.get("TENON_UPDATE_GOLDEN"):
        file.write_text(now)
    assert now == file.read_text()
    assert "no error" not in now


def test_there_are_cases():
    assert sum(len(CASE.findall(file.read_text())) for file in FILES) >= 30
