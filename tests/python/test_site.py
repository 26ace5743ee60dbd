"""The generators of the documentation site. `tools/site/build.py` itself is a step of make test."""

import json
import pathlib

import pytest

ROOT = pathlib.Path(__file__).resolve().parents[2]


@pytest.fixture
def tools(monkeypatch):
    monkeypatch.syspath_prepend(ROOT / "tools/site")


def site(folder, **pages):
    for name, text in pages.items():
        (folder / f"{name}.html").write_text(text)
    return folder


@pytest.mark.parametrize(
    "page, fault",
    [
        ('<a href="b.html">b</a>', None),
        ('<a href="b.html#there">b</a>', None),
        ('<a href="https://example.org">b</a>', None),
        ('<a href="c.html">c</a>', "a.html: c.html does not exist"),
        ('<a href="b.html#gone">b</a>', "a.html: b.html#gone has no such anchor"),
        ('<a href="#gone">b</a>', "a.html: #gone has no such anchor"),
        ('<img src="//example.org/x.png">', "a.html: //example.org/x.png needs the network"),
    ],
)
def test_links_of_a_site(tools, tmp_path, page, fault):
    import links

    made = site(tmp_path, a=page, b='<p id="there"></p>')
    assert links.faults(made) == ([fault] if fault else [])


def test_style_sheets_need_no_network(tools, tmp_path):
    import links

    (tmp_path / "a.css").write_text("@import 'https://fonts.example.org/a.css';")
    assert links.faults(tmp_path) == ["a.css: https://fonts.example.org/a.css needs the network"]


def test_links_of_the_repository_become_links_of_the_site(tools, tmp_path):
    import links

    (tmp_path / "examples").mkdir()
    (tmp_path / "examples/one.py").write_text("print(1)\n")
    text = "![p](docs/p.svg) [a](docs/a.md#x) [b](docs/) `[c](docs/)`\n"
    code = "```\n[d](docs/)\n```\n[e](examples) [f](examples/one.py)"
    pages = {"index.md": text + code, "docs/a.md": "[up](../README.md)", "docs/index.md": ""}
    done = links.resolved(pages, tmp_path)
    assert done["index.md"] == (
        "![p](docs/p.svg) [a](docs/a.md#x) [b](docs/index.md) `[c](docs/)`\n"
        "```\n[d](docs/)\n```\n[e](examples/index.md) [f](examples/one.py.md)")
    assert done["docs/a.md"] == "[up](../index.md)"
    assert "print(1)" in done["examples/one.py.md"] and "print(1)" in done["examples/index.md"]


HEADER = """#pragma once
// Boxes, of which there are two. They
// have sizes.
#include <string>

namespace tn {

/// A box.
///
///     Box b;
class Box {
 public:
  int size() const;

 private:
  int size_;
};

/// Opens it.
inline void open(Box& box) {
  box = {};
}
inline Box wider(Box& box,
                 int by) {
  return box;
}
void close(Box& box);

namespace typed {

void hidden();

}  // namespace typed

}  // namespace tn
"""


def test_headers_become_pages(tools, tmp_path):
    import cpp_reference

    (tmp_path / "box.h").write_text(HEADER)
    pages = cpp_reference.pages(tmp_path)
    row = "| [`tenon/box.h`](box.md) | Boxes, of which there are two. |"
    assert row in pages["api/cpp/index.md"]
    page = pages["api/cpp/box.md"]
    assert "## `Box`\n\nA box.\n\n\n```cpp\nBox b;\n```" in page
    assert "int size() const;" in page and "size_" not in page
    assert "inline void open(Box& box);" in page and "box = {}" not in page
    assert "int by);\nvoid close(Box& box);" in page
    assert "hidden" not in page


def test_python_names_show_their_cpp_forms(tools, tmp_path):
    import cpp_reference
    import python_reference

    (tmp_path / "box.h").write_text(HEADER.replace("close(Box& box)", "compile(Box& box)"))
    forms = cpp_reference.python_forms(tmp_path)
    link = "C++: [`tenon/box.h`](../cpp/box.md#{})"
    assert forms["tn.Box"].strip() == link.format("box")
    page = python_reference.pages(forms)["api/python/tenon.md"]
    shown = "```\n```cpp\nvoid compile(Box& box);\n```\n\n" + link.format("open")
    assert shown in page


def test_every_public_name_of_python_is_in_the_reference(tools):
    import python_reference

    import tenon as tn

    text = "\n".join(python_reference.pages().values())
    for name, thing in python_reference.public(tn):
        if not python_reference.is_op(thing) and thing is not tn.Tensor:
            assert f".{name}`" in text, name


def documented():
    """It steps:

    v = 2 * v
    w = w - v

    >>> documented()
    """


def test_docstrings_become_markdown(tools):
    import python_reference

    assert python_reference.docstring(documented) == (
        "It steps:\n\n```text\nv = 2 * v\nw = w - v\n```\n\n```pycon\n>>> documented()\n```")


def test_long_signatures_have_a_parameter_a_line(tools):
    import python_reference

    signature = "(first: dict[str, int], second: str = 'a, b', *, third: int = 0) -> " + "x" * 40
    assert python_reference.wrapped("f", signature) == [
        "f(", "    first: dict[str, int],", "    second: str = 'a, b',", "    *,",
        "    third: int = 0,", ") -> " + "x" * 40]


def test_the_page_of_benchmarks_without_results_says_how_to_get_them(tools, tmp_path):
    import benchmark_page

    assert "make bench" in benchmark_page.page(tmp_path / "absent.json")


def test_the_page_of_benchmarks_shows_results(tools, tmp_path):
    import benchmark_page

    row = {"name": "gelu", "title": "gelu, 16 Mi", "tenon_ms": 2.0, "peers": {"numpy": 8.0},
           "best_peer": "numpy", "speedup_over_best_peer": 4.0, "share_of_limit": 0.5,
           "first_call_ms": 30.0, "quartiles_ms": {"tenon": [1.9, 2.1]}}
    figure = {"name": "sum", "ours": 1e-4, "theirs": None, "rival": "", "unit": "s", "ratio": None,
              "goal": "<= 1 ms", "met": True}
    machine = {"cpu": "a CPU", "threads": 2, "tenon": "0.1.0"}
    results = tmp_path / "latest.json"
    results.write_text(json.dumps({"machine": machine, "rows": [row], "figures": [figure]}))
    page = benchmark_page.page(results)
    assert "| gelu, 16 Mi | 2.00 | 10% | 8.00 | 4.00x | 50% | 30.0 |" in page
    assert "| sum | 0.100 ms |  |  |  | <= 1 ms |" in page
    assert "<svg" in page and "viewBox" in page


def test_python_and_cpp_become_tabs(tools):
    nodes = pytest.importorskip("docutils.nodes")
    import languages

    class App:
        class env:
            docname = "docs/tutorial/01-tensors"

    def made(*kinds):
        """Kinds of blocks, and in parentheses those of a tab."""
        blocks = [nodes.literal_block(kind, kind, language=kind) for kind in kinds]
        page = nodes.section("", *blocks)
        languages.make_tabs(App, page)

        def kind(node):
            if isinstance(node, nodes.literal_block):
                return node["language"]
            tabs = [" ".join(map(kind, tab)) for tab in node]
            return "(" + "|".join(tabs) + ")"

        return " ".join(map(kind, page))

    assert made("python", "text", "cpp", "text") == "(python text|cpp text)"
    assert made("python", "cpp", "text", "python") == "(python|cpp) text python"
    assert made("python", "cpp", "cpp", "python", "cpp") == "(python|cpp cpp) (python|cpp)"
    assert made("python", "text", "text", "sh", "cpp") == "python text text sh cpp"
    App.env.docname = "docs/ops/elementwise"
    assert made("python", "cpp") == "python cpp"
