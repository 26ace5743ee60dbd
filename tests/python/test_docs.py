"""What the documents show is run: Python with the output shown after it, the README's C++."""

import ast
import contextlib
import inspect
import io
import operator
import pathlib
import re

import pytest

import tenon as tn
from cpp_programs import run_cpp

ROOT = pathlib.Path(__file__).resolve().parents[2]
BLOCK = re.compile(r"^```(\w*)[^\n]*\n(.*?)^```\s*$", re.M | re.S)


def blocks(path):
    """(language, text, line) of every fenced block."""
    text = path.read_text()
    return [(m[1], m[2], text.count("\n", 0, m.start()) + 1) for m in BLOCK.finditer(text)]


def documents():
    found = [ROOT / n for n in ("README.md", "ARCHITECTURE.md", "CONTRIBUTING.md")]
    found += [p for p in sorted((ROOT / "docs").rglob("*.md")) if p.parent.name != "ops"]
    return [p for p in found if p.exists()]


def run_block(text, scope, where):
    out = io.StringIO()
    with contextlib.redirect_stdout(out):
        exec(compile(text, where, "exec"), scope)
    return out.getvalue()


def matches(shown, printed):
    """Equal but for space at the ends of lines; `...` stands for anything, as do measured times."""
    want = [line.rstrip() for line in shown.strip().splitlines()]
    got = [line.rstrip() for line in printed.strip().splitlines()]
    pattern = "\n".join(re.escape(line).replace(re.escape("..."), ".*") for line in want)
    return re.fullmatch(pattern, "\n".join(got), re.S) is not None


@pytest.mark.parametrize("path", documents(), ids=lambda p: str(p.relative_to(ROOT)))
def test_python_blocks(path, tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    monkeypatch.syspath_prepend(path.parent)  # of the program beside a document
    scope = {"__name__": "__main__"}
    found = blocks(path)
    for number, (language, text, line) in enumerate(found):
        if language != "python":
            continue
        printed = run_block(text, scope, f"{path.name}:{line}")
        follows = found[number + 1] if number + 1 < len(found) else ("python", "", 0)
        adjacent = follows[2] - line <= text.count("\n") + 4
        if follows[0] in ("text", "") and adjacent and printed:
            assert matches(
                follows[1], printed
            ), f"{path.name}:{line} prints\n{printed}\nnot\n{follows[1]}"


def test_reference_pages_show_the_real_signatures():
    pages = [p for p in sorted((ROOT / "docs" / "ops").glob("*.md")) if p.name != "README.md"]
    shown = 0
    for page in pages:
        for language, text, line in blocks(page):
            if language != "python":
                continue
            name, arguments = re.fullmatch(r"tn\.([\w.]+)\((.*)\)", text.strip(), re.S).groups()
            given = ast.parse(f"def f({arguments}): pass").body[0].args
            names = [a.arg for a in given.args + given.kwonlyargs]
            assert names == list(
                inspect.signature(operator.attrgetter(name)(tn)).parameters
            ), f"{page.name}:{line}"
            shown += 1
    assert shown == len(tn.testing.op_names())


def cpp_programs():
    """(path, line, text, what it prints or None) of every C++ block that is a whole program."""
    for path in documents():
        found = blocks(path)
        for number, (language, text, line) in enumerate(found):
            if language == "cpp" and "int main(" in text and "tenon/runtime.h" not in text:
                after = found[number + 1] if number + 1 < len(found) else ("", "", 0)
                adjacent = after[2] - line <= text.count("\n") + 4
                yield path, line, text, after[1] if after[0] == "text" and adjacent else None


@pytest.mark.compiles
@pytest.mark.parametrize(
    "path, line, text, shown", cpp_programs(), ids=lambda v: v.name if hasattr(v, "name") else ""
)
def test_cpp_programs(path, line, text, shown, tmp_path):
    printed = run_cpp(text, tmp_path, f"{path.name}:{line}")
    if shown is not None:
        assert matches(shown, printed), f"{path.name}:{line} prints\n{printed}"
