"""Settings of Sphinx. build.py makes the pages."""
import pathlib
import re

ROOT = pathlib.Path(__file__).resolve().parents[2]

project = "Tenon"
release = re.search(r"project\(tenon VERSION ([\d.]+)", (ROOT / "CMakeLists.txt").read_text())[1]
extensions = ["myst_parser"]
html_theme = "furo"
html_title = f"Tenon {release}"
html_static_path = ["style.css"]
html_css_files = ["style.css"]
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
