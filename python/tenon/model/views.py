"""Looking at models: tables and pictures."""

from __future__ import annotations

import os
from pathlib import Path

from .. import _core
from ..files import path_of
from . import drawing
from .structure import structure_of
from .summary import Summary, summarize


class Drawing:
    """A diagram of a model: displayed in notebooks, saved as .svg or .html.

    In HTML, submodels can be expanded and collapsed; an SVG shows everything.
    """

    def __init__(self, name: str, resolved: _core.ResolvedModel) -> None:
        self._name = name
        self._resolved = resolved

    @property
    def svg(self) -> str:
        return drawing.svg(structure_of(self._name, self._resolved))

    @property
    def html(self) -> str:
        table = summarize(self._name, self._resolved)
        structure = structure_of(self._name, self._resolved)
        return drawing.page(structure, table.remark, table._repr_html_())

    def save(self, path: str | os.PathLike[str]) -> None:
        """Writes the diagram in the format of the suffix: .svg or .html."""
        target = Path(path_of("draw", path))
        texts = {".svg": lambda: self.svg, ".html": lambda: self.html}
        if target.suffix not in texts:
            _core._fail("value", f"draw: {target.name!r} ends neither with .svg nor with .html")
        target.write_text(texts[target.suffix](), encoding="utf-8")

    def _repr_svg_(self) -> str:
        return self.svg

    def __repr__(self) -> str:
        return f"<picture of {self._name}: save(path) as .svg or .html>"


class Views:
    """Mixin with summary and drawing methods."""

    name: str
    _resolved: _core.ResolvedModel

    def summary(self, depth: int | None = None) -> Summary:
        """A table of the blocks with their shapes, parameters, FLOPs and bytes.

        Submodels deeper than `depth` are summarized in one row each.
        """
        if depth is not None and (not isinstance(depth, int) or depth < 1):
            _core._fail("value", f"summary: depth must be a positive number, not {depth!r}")
        return summarize(self.name, self._resolved, depth)

    def draw(self, path: str | os.PathLike[str] | None = None) -> Drawing:
        """A diagram of the blocks and their connections; written to `path` if given."""
        picture = Drawing(self.name, self._resolved)
        if path is not None:
            picture.save(path)
        return picture

    def _repr_html_(self) -> str:
        from ..notebook import physical_html

        return physical_html(self)
