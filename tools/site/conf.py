"""Settings of Sphinx. build.py makes the pages."""
import pathlib
import re
import sys

from sphinx import addnodes

sys.path.insert(0, str(pathlib.Path(__file__).parent))
import languages

ROOT = pathlib.Path(__file__).resolve().parents[2]

project = "Tenon"
release = re.search(r"project\(tenon VERSION ([\d.]+)", (ROOT / "CMakeLists.txt").read_text())[1]
extensions = ["myst_parser"]
html_theme = "furo"
html_title = f"Tenon {release}"
html_static_path = ["style.css", "languages.js"]
html_css_files = ["style.css"]
html_js_files = ["languages.js"]
html_copy_source = False
html_show_sourcelink = False
html_use_index = False
html_show_copyright = False
html_theme_options = {"navigation_with_keys": True}
pygments_style, pygments_dark_style = "friendly", "native"
highlight_language = "text"
myst_heading_anchors = 4
# Fragments of programs are not whole ones, and highlighting makes the best of them.
suppress_warnings = ["misc.highlighting_failure"]


def titles_only(toc):
    """The table of contents of a page without its headings, but with the pages below it."""
    bare = toc.deepcopy()
    for item in bare.children:
        for below in item.children[1:]:
            pages = [tree.deepcopy() for tree in below.findall(addnodes.toctree)]
            below[:] = pages
            if not pages:
                item.remove(below)
    return bare


def light_navigation(app, page, template, context, doctree):
    """The sidebar shows titles. Without this, Sphinx copies all headings for each page."""
    whole, draw = app.env.tocs, context.get("toctree")
    if not hasattr(app, "bare_tocs"):
        app.bare_tocs = {name: titles_only(toc) for name, toc in whole.items()}

    def toctree(**options):
        app.env.tocs = app.bare_tocs
        try:
            return draw(**options)
        finally:
            app.env.tocs = whole

    context["toctree"] = toctree


def setup(app):
    app.connect("doctree-read", languages.make_tabs)
    app.connect("html-page-context", light_navigation, priority=400)  # before Furo's own
