"""What the documents show is run: Python with the output shown after it, the README's C++."""

import ast
import contextlib
import inspect
import io
import os
import pathlib
import re
import subprocess

import pytest

import tenon as tn

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
            name, arguments = re.fullmatch(r"tn\.(\w+)\((.*)\)", text.strip(), re.S).groups()
            given = ast.parse(f"def f({arguments}): pass").body[0].args
            names = [a.arg for a in given.args + given.kwonlyargs]
            assert names == list(
                inspect.signature(getattr(tn, name)).parameters
            ), f"{page.name}:{line}"
            shown += 1
    assert shown == len(tn.testing.op_names())


def built_library():
    """The static library next to the module that is being tested, or None."""
    build = pathlib.Path(tn.__file__).absolute().parent.parent.parent
    for folder in (build, ROOT / "build" / "release"):
        if (folder / "libtenon.a").exists():
            return folder / "libtenon.a"
    return None


@pytest.mark.compiles
def test_cpp_blocks_of_the_readme(tmp_path):
    readme = ROOT / "README.md"
    programs = (
        [(t, line, i) for i, (lang, t, line) in enumerate(blocks(readme)) if lang == "cpp"]
        if readme.exists()
        else []
    )
    library = built_library()
    if not programs or library is None:
        pytest.skip("no C++ in the README, or no static library")
    for text, line, number in programs:
        source = tmp_path / f"readme_{line}.cpp"
        if "main(" not in text:
            text = f"#include <tenon/tenon.h>\n#include <iostream>\nint main() {{\n{text}\n}}\n"
        source.write_text(text)
        program = source.with_suffix("")
        command = [
            "g++",
            "-std=c++20",
            f"-I{ROOT / 'include'}",
            str(source),
            str(library),
            "-lpthread",
            "-ldl",
            "-o",
            str(program),
        ]
        compiled = subprocess.run(command, capture_output=True, text=True)
        assert compiled.returncode == 0, f"README.md:{line}\n{compiled.stderr}"
        done = subprocess.run([str(program)], capture_output=True, text=True, env=dict(os.environ))
        assert done.returncode == 0, done.stderr
        follows = blocks(readme)[number + 1 : number + 2]
        if follows and follows[0][0] in ("text", ""):
            assert matches(follows[0][1], done.stdout), f"README.md:{line} prints\n{done.stdout}"
