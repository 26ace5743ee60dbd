"""What the documents show is run, Python and C++, and prints the output shown after it.

The Python blocks of a document are one program. So are the ```cpp blocks of a tutorial page that
have no main: they are the body of one, and blocks with the fence ```cpp top are at file scope.
Output behind a Python block and a C++ block is that of both.
"""

import ast
import contextlib
import dataclasses
import inspect
import io
import operator
import pathlib
import re

import pytest

import tenon as tn
from cpp_programs import run_cpp

ROOT = pathlib.Path(__file__).resolve().parents[2]
BLOCK = re.compile(r"^```(\w*)([^\n]*)\n(.*?)^```[ \t]*$", re.M | re.S)
FRAGMENTS_BEGIN = """#include <tenon/tenon.h>
#include <tenon/nn.h>
#include <tenon/optim.h>

#include <cmath>
#include <iostream>

namespace nn = tn::nn;
namespace optim = tn::optim;
"""
SEPARATOR = "\x1e"  # of what fragments print


@dataclasses.dataclass
class Block:
    language: str
    info: str  # behind the language
    text: str
    line: int  # of the opening fence
    follows: bool  # the block before, directly or after an empty line


def blocks(path):
    """Every fenced block."""
    text, found, end = path.read_text(), [], -2
    for m in BLOCK.finditer(text):
        line = text.count("\n", 0, m.start()) + 1
        found.append(Block(m[1], m[2].strip(), m[3], line, line - end <= 2))
        end = text.count("\n", 0, m.end()) + 1
    return found


def output_of(found, number):
    """What a document shows as the output of a block, or None. That of a Python block may come
    after the C++ that prints the same."""
    for block in found[number + 1 :]:
        if block.follows and block.language in ("text", ""):
            return block.text
        if not (block.follows and found[number].language == "python" and block.language == "cpp"):
            break
    return None


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


def check_output(found, number, printed, path):
    shown, line = output_of(found, number), found[number].line
    if shown is not None:
        assert matches(shown, printed), f"{path.name}:{line} prints\n{printed}\nnot\n{shown}"


@pytest.mark.parametrize("path", documents(), ids=lambda p: str(p.relative_to(ROOT)))
def test_python_blocks(path, tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    monkeypatch.syspath_prepend(path.parent)  # of the program beside a document
    scope = {"__name__": "__main__"}
    found = blocks(path)
    for number, block in enumerate(found):
        if block.language == "python":
            printed = run_block(block.text, scope, f"{path.name}:{block.line}")
            if printed:
                check_output(found, number, printed, path)


def reference_blocks(language):
    pages = [p for p in sorted((ROOT / "docs" / "ops").glob("*.md")) if p.name != "README.md"]
    found = [
        (f"{page.name}:{block.line}", block.text)
        for page in pages
        for block in blocks(page)
        if block.language == language
    ]
    assert len(found) == len(tn.testing.op_names())
    return found


def test_reference_pages_show_the_real_signatures():
    for where, text in reference_blocks("python"):
        name, arguments = re.fullmatch(r"tn\.([\w.]+)\((.*)\)", text.strip(), re.S).groups()
        given = ast.parse(f"def f({arguments}): pass").body[0].args
        names = [a.arg for a in given.args + given.kwonlyargs]
        signature = inspect.signature(operator.attrgetter(name)(tn))
        assert names == list(signature.parameters), where


def test_reference_pages_show_what_the_header_declares():
    headers = [ROOT / "include" / "tenon" / name for name in ("ops.h", "nn/functions.h")]
    header = " ".join(word for path in headers for word in path.read_text().split())
    place = r",? ?std::source_location place = std::source_location::current\(\)"
    declared = re.sub(place, "", header)
    for where, text in reference_blocks("cpp"):
        assert " ".join(text.split()) in declared, where


def is_program(block):
    return "int main(" in block.text


def cpp_programs():
    """(path, blocks, number) of every C++ block that is a whole program."""
    for path in documents():
        found = blocks(path)
        for number, block in enumerate(found):
            if block.language == "cpp" and is_program(block):
                if "tenon/runtime.h" not in block.text:  # test_runtime.py runs those
                    yield pytest.param(path, found, number, id=f"{path.name}:{block.line}")


@pytest.mark.compiles
@pytest.mark.parametrize("path, found, number", list(cpp_programs()))
def test_cpp_programs(path, found, number, tmp_path):
    printed = run_cpp(found[number].text, tmp_path, f"{path.name}:{found[number].line}")
    check_output(found, number, printed, path)


def fragments(path):
    """(number, block) of the C++ that is a part of the page's program."""
    for number, block in enumerate(blocks(path)):
        if block.language == "cpp" and not is_program(block):
            yield number, block


def tutorial_pages():
    pages = sorted((ROOT / "docs" / "tutorial").glob("*.md"))
    return [page for page in pages if any(fragments(page))]


@pytest.mark.compiles
@pytest.mark.parametrize("path", tutorial_pages(), ids=lambda p: p.name)
def test_cpp_fragments(path, tmp_path):
    top, body = FRAGMENTS_BEGIN, ""
    inside = []
    for number, block in fragments(path):
        text = f'#line {block.line + 1} "{path.relative_to(ROOT)}"\n{block.text}'
        if block.info == "top":
            top += text
        else:
            body += f'{text}std::cout << "{SEPARATOR}" << std::flush;\n'
            inside.append(number)
    printed = run_cpp(f"{top}int main() {{\n{body}}}\n", tmp_path, path.name).split(SEPARATOR)
    for number, text in zip(inside, printed):
        check_output(blocks(path), number, text, path)
