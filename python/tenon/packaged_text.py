"""Styles and scripts of pages, which are files of the package."""

from __future__ import annotations

from functools import cache
from importlib.resources import files


@cache
def packaged_text(package: str, name: str) -> str:
    """The text of a file in the folder of `package`, such as "tenon.model"."""
    return files(package).joinpath(name).read_text(encoding="utf-8")
