"""Building blocks of pages. A page is one self-contained file."""

from __future__ import annotations

from collections.abc import Iterable
from html import escape

from ..packaged_text import packaged_text

NUMBERS = ("step", "time", "size", "reads", "writes", "here", "part", "steps")  # columns
KINDS = {"code": "machine code", "library": "library call", "interpreted": "interpreted"}


def document(title: str, remark: str, body: str) -> str:
    """A page; `title` and `remark` are text, `body` is HTML."""
    name = escape(title)
    style = packaged_text("tenon.explanation", "page.css")
    script = packaged_text("tenon.explanation", "page.js")
    return (f'<!doctype html><html lang="en"><head><meta charset="utf-8"><title>{name}</title>'
            '<meta name="viewport" content="width=device-width, initial-scale=1">'
            f"<style>{style}</style></head><body><main><h1>{name}</h1>"
            f'<p class="soft">{escape(remark)}</p>{body}</main><script>{script}</script></body>'
            "</html>")


def cards(shown: Iterable[tuple[object, str]]) -> str:
    """Numbers that are seen first, with what they are."""
    inner = "".join(f'<div class="card"><b>{value}</b><span>{what}</span></div>'
                    for value, what in shown)
    return f'<div class="cards">{inner}</div>'


def place(text: str) -> str:
    return f'<td class="place">{escape(text)}</td>'


def table(name: str, heads: Iterable[str], rows: Iterable[str], filters: bool = False) -> str:
    box = f'<input data-filters="{name}" placeholder="filter" aria-label="filter">' * filters
    head = "".join(f'<th{" class=n" * (h in NUMBERS)}>{h}</th>' for h in heads)
    return (f'{box}<div class="scroll"><table class="sorts" id="{name}"><thead><tr>{head}</tr>'
            f'</thead><tbody>{"".join(rows)}</tbody></table></div>')


def key(*remarks: str) -> str:
    """Return the legend of the colours of steps."""
    kinds = "".join(f'<span><i class="{kind}"></i>{text}</span>' for kind, text in KINDS.items())
    return f'<div class="key">{kinds}{"".join(f"<span>{text}</span>" for text in remarks)}</div>'
