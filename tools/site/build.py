#!/usr/bin/env python3
"""Build the documentation site: pages from the sources into build/site-pages, HTML into build/site.

The pages mirror the repository, so that a relative link means the same on a repository host and in
the site. Broken links, unknown references and assets from the network fail the build.
"""
import argparse
import pathlib
import shutil
import subprocess
import sys
import time

import benchmark_page
import cpp_reference
import links
import python_reference

HERE = pathlib.Path(__file__).resolve().parent
ROOT = HERE.parents[1]
PAGES, SITE = ROOT / "build/site-pages", ROOT / "build/site"


def source_pages():
    """Path of the page -> text, for every document of the repository."""
    documents = sorted(ROOT.glob("*.md")) + sorted((ROOT / "docs").rglob("*.md"))
    found = {}
    for path in documents:
        name = path.relative_to(ROOT)
        page = name.with_name("index.md") if name.name == "README.md" else name
        found[str(page)] = path.read_text()
    return found


def toctree(pages, caption="", hidden=True):
    options = [":maxdepth: 1"] + [":hidden:"] * hidden + [f":caption: {caption}"] * bool(caption)
    return "\n".join(["", "```{toctree}", *options, "", *pages, "```", ""])


def listing(title, introduction, pages, folder):
    """A page that links to the pages of its folder."""
    inside = sorted(p for p in pages if p.startswith(folder + "/"))
    names = [pathlib.Path(p).stem for p in inside]
    return f"# {title}\n\n{introduction}\n" + toctree(names, hidden=False)


def add_contents(pages):
    """The pages that hold others, and the table of contents in the first page."""
    pages["docs/tutorial/index.md"] = listing(
        "Tutorial",
        "Each page gets one thing done, in Python and in C++. The tests run every example.",
        pages, "docs/tutorial")
    pages["docs/design/index.md"] = listing(
        "Design notes", "Why things are as they are, and what was rejected.",
        pages, "docs/design")
    families = sorted(p for p in pages if p.startswith("docs/ops/") and p != "docs/ops/index.md")
    pages["docs/ops/index.md"] += toctree([pathlib.Path(p).stem for p in families])
    pages["api/python/index.md"] += toctree(python_reference.PAGES)
    headers = sorted(p for p in pages if p.startswith("api/cpp/") and p != "api/cpp/index.md")
    pages["api/cpp/index.md"] += toctree([pathlib.Path(p).stem for p in headers])
    placed = {"index.md", "ARCHITECTURE.md", "benchmarks.md"}
    project = [p for p in sorted(pages) if "/" not in p and p not in placed]
    project.append("docs/release-checklist.md")
    pages["index.md"] += toctree(["docs/tutorial/index"], "Learn") + toctree(
        ["docs/ops/index", "api/python/index", "api/cpp/index"], "Reference") + toctree(
        ["ARCHITECTURE", "docs/tenon-in-500-lines", "docs/design/index"], "How it works") + toctree(
        ["benchmarks", *(p.removesuffix(".md") for p in project)], "Project")


def write(pages):
    """Only what changed, so that Sphinx reads no page twice. Whether a page is gone, which the
    others then still have in their sidebar."""
    is_gone = False
    for name, text in pages.items():
        path = PAGES / name
        path.parent.mkdir(parents=True, exist_ok=True)
        if not path.exists() or path.read_text() != text:
            path.write_text(text)
    for path in PAGES.rglob("*.md"):
        name = path.relative_to(PAGES)
        if str(name) not in pages:
            path.unlink()
            (SITE / name).with_suffix(".html").unlink(missing_ok=True)
            is_gone = True
    return is_gone


def copy_pictures():
    for path in (ROOT / "docs").rglob("*"):
        if path.suffix in links.PICTURES:
            copy = PAGES / path.relative_to(ROOT)
            copy.parent.mkdir(parents=True, exist_ok=True)
            shutil.copy2(path, copy)


def main():
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--fresh", action="store_true", help="read every page again")
    given = parser.parse_args()
    began = time.monotonic()
    pages = source_pages()
    headers = ROOT / "include/tenon"
    pages |= python_reference.pages(cpp_reference.python_forms(headers))
    pages |= cpp_reference.pages(headers)
    pages["benchmarks.md"] = benchmark_page.page(ROOT / "bench/results/latest.json")
    add_contents(pages)
    is_gone = write(links.resolved(pages, ROOT))
    copy_pictures()
    options = ["-W", "--keep-going", "-q", "-j", "auto"] + ["-E"] * (given.fresh or is_gone)
    command = [sys.executable, "-m", "sphinx", "-b", "html", *options, "-c", str(HERE),
               "-d", str(PAGES) + "-cache", str(PAGES), str(SITE)]
    faults = ["sphinx reported warnings"] if subprocess.run(command).returncode else []
    faults += links.faults(SITE)
    print("\n".join(faults) or f"site: {SITE.relative_to(ROOT)}/index.html, {len(pages)} pages, "
          f"{time.monotonic() - began:.1f} s")
    sys.exit(bool(faults))


if __name__ == "__main__":
    main()
