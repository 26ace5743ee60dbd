"""HTML for notebooks: tables of modules, compiled functions and models, with collapsed details."""

from __future__ import annotations

import inspect
import re
from collections.abc import Iterable, Sequence
from html import escape
from typing import Any

from .explanation.units import bytes_text

MOST_ROWS = 200
_NUMBER = "text-align:right;font-variant-numeric:tabular-nums"


def table(title: str, heads: Sequence[str], rows: Iterable[Sequence[str]], numbers: int = 0) -> str:
    """`numbers` columns at the right are aligned as such. The first cell keeps its indentation."""
    shown = list(rows)
    left_out = len(shown) - MOST_ROWS
    styles = ["text-align:left;white-space:pre"] + ["text-align:left"] * (len(heads) - 1)
    styles[len(heads) - numbers :] = [_NUMBER] * numbers

    def line(tag: str, cells: Sequence[str]) -> str:
        pairs = zip(styles, cells)
        made = [f'<{tag} style="{style}">{escape(text)}</{tag}>' for style, text in pairs]
        return f"<tr>{''.join(made)}</tr>"

    body = "".join(line("td", row) for row in shown[:MOST_ROWS])
    if left_out > 0:
        body += f'<tr><td colspan="{len(heads)}">{left_out:,} more</td></tr>'
    head = f"<thead>{line('th', heads)}</thead>" if any(heads) else ""
    return f"<div><b>{escape(title)}</b></div><table>{head}<tbody>{body}</tbody></table>"


def folded(title: str, text: str) -> str:
    """Text that opens when its title is clicked; nothing where there is none."""
    if not text:
        return ""
    return f"<details><summary>{escape(title)}</summary><pre>{escape(text)}</pre></details>"


def module_html(module: Any) -> str:
    """Every module in it, with its own parameters."""
    from .nn.weights import all_named

    parts = dict(module.named_modules())
    buffers = {id(tensor) for _, tensor in module.named_buffers()}
    everything = [pair for pair in all_named(module) if id(pair[1]) not in buffers]
    owned: dict[str, list[Any]] = {path: [] for path in parts}
    for name, tensor in everything:
        owned[_above(name, parts)].append(tensor)
    rows, depths = [], {"": -1}
    for path, part in parts.items():
        above = _above(path, parts)
        depths[path] = depths[above] + 1
        name = path.removeprefix(above).removeprefix(".") or type(module).__name__
        kind = f"{type(part).__name__}({part.describe() or ''})"
        own = owned[path]
        types = ", ".join(sorted({x.dtype.name for x in own}))
        elements = f"{sum(x.size for x in own):,}" if own else ""
        rows.append(("  " * depths[path] + name, kind, types, elements))
    count = sum(x.size for _, x in everything)
    size = bytes_text(sum(x.nbytes for _, x in everything))
    title = f"{type(module).__name__}: {count:,} parameters, {size}"
    return table(title, ("name", "module", "type", "parameters"), rows, numbers=1)


def _above(path: str, modules: dict[str, Any]) -> str:
    """The path of the innermost module that holds it."""
    above = path.rpartition(".")[0]
    while above not in modules:
        above = above.rpartition(".")[0]
    return above


def compiled_html(f: Any) -> str:
    """Return a compiled function's statistics, reasons for traces and latest graph as HTML."""
    name = getattr(f, "__name__", "")
    if name:
        try:
            name += str(inspect.signature(f))
        except (TypeError, ValueError):
            pass
    stats = f.stats()
    figures = {
        "traces": stats.traces,
        "calls that found one": stats.hits,
        "graphs compiled": stats.graph_compiles,
        "kernels compiled": stats.kernel_compiles,
    }
    rows = [(what, f"{count:,}") for what, count in figures.items()]
    graph = f.show("graph") if stats.traces else ""
    return (
        table(f"compiled {name}".rstrip(), ("", ""), rows, numbers=1)
        + folded("Why it was traced", "\n".join(f.why_recompiled()))
        + folded("Graph of the latest trace", graph)
    )


def model_html(model: Any) -> str:
    """The blocks of a logical model and what they read and make."""
    title, *lines = repr(model).splitlines()
    rows = [re.split(r" {2,}", line.strip(), maxsplit=2) for line in lines]
    if any(len(row) != 3 for row in rows):
        return f"<pre>{escape(repr(model))}</pre>"
    return table(title, ("name", "block", "from -> to"), rows)


def physical_html(model: Any) -> str:
    """The picture of a compiled model, and its blocks as a table."""
    return (
        f'<div style="overflow:auto;max-height:70vh">{model.draw().svg}</div>'
        f"<details><summary>{escape(repr(model))}</summary>"
        f"{model.summary()._repr_html_()}</details>"
    )
