"""Pictures of models: an SVG, or a page on which models inside the model open and close."""

from __future__ import annotations

import json
from html import escape

from ..explanation.document import document
from ..packaged_text import packaged_text
from .structure import Box, Flow, Structure

LEAST, LETTER, LINE, PAD, GAP, HEAD = 120, 6.9, 17, 10, 34, 24
ENDS = ("in:", "out:")


def is_end(box: Box) -> bool:
    return box.path.startswith(ENDS)


def texts(box: Box) -> list[str]:
    return box.lines if is_end(box) else [box.title, *box.lines]


# SVG -----------------------------------------------------------------------------------------


def measure(box: Box) -> None:
    """Gives boxes their sizes, from inside to outside, and places inside the box around them."""
    if not box.inside:
        longest = max(map(len, texts(box)))
        box.width = max(LEAST, longest * LETTER + 2 * PAD)
        box.height = LINE * len(texts(box)) + PAD
        return
    for inner in box.inside:
        measure(inner)
    rows = box.rows()
    widths = [sum(b.width for b in row) + GAP * (len(row) - 1) for row in rows]
    head = HEAD if box.path else 0
    # Lines that pass by boxes need room beside them.
    box.width = max(max(widths), len(box.title) * LETTER) + 2 * PAD + 2 * GAP
    y = float(PAD + head)
    for row, width in zip(rows, widths):
        x = (box.width - width) / 2
        for inner in row:
            inner.x, inner.y = x, y
            x += inner.width + GAP
        y += max(b.height for b in row) + GAP
    box.height = y - GAP + PAD


def settle(box: Box, x: float = 0, y: float = 0) -> None:
    """Convert positions relative to the enclosing box to positions in the picture."""
    box.x += x
    box.y += y
    for inner in box.inside:
        settle(inner, box.x, box.y)


def curve(source: Box, target: Box, flow: Flow, between: list[Box]) -> str:
    """Down to the box below; around the boxes between to one further down."""
    x0, y0 = source.x + source.width / 2, source.y + source.height
    x1, y1 = target.x + target.width / 2, target.y
    bend = GAP / 2 + 6 if between else max(12.0, (y1 - y0) / 2)
    down, up = f"{x0:.0f} {y0 + bend:.0f}", f"{x1:.0f} {y1 - bend:.0f}"
    if not between:
        path = f"M{x0:.0f} {y0:.0f}C{down} {up} {x1:.0f} {y1:.0f}"
    else:
        side = max([b.x + b.width for b in between] + [x0, x1]) + 10 + 3 * min(6, len(between))
        path = (
            f"M{x0:.0f} {y0:.0f}C{down} {side:.0f} {y0:.0f} {side:.0f} {y0 + 2 * bend:.0f}"
            f"L{side:.0f} {y1 - 2 * bend:.0f}C{side:.0f} {y1:.0f} {up} {x1:.0f} {y1:.0f}"
        )
    hint = escape(f"{flow.name}: {flow.shape}")
    return f'<path class="flow" d="{path}" marker-end="url(#tip)"><title>{hint}</title></path>'


def passed(source: Box, target: Box, boxes: list[Box]) -> list[Box]:
    """Boxes that a straight line between two others would cross."""
    left = min(source.x + source.width / 2, target.x + target.width / 2)
    right = max(source.x + source.width / 2, target.x + target.width / 2)
    return [
        b
        for b in boxes
        if b.y > source.y + source.height
        and b.y + b.height < target.y
        and b.x < right + 8
        and b.x + b.width > left - 8
    ]


def drawn(box: Box) -> str:
    kind = "end" if is_end(box) else "model" if box.inside else "block"
    parts = [
        f'<g class="{kind}"><title>{escape(box.hint or box.path)}</title>'
        f'<rect x="{box.x:.0f}" y="{box.y:.0f}" width="{box.width:.0f}" height="{box.height:.0f}" '
        f'rx="{box.height / 2 if kind == "end" else 8:.0f}"/>'
    ]
    if box.inside:
        parts.append(
            f'<text class="strong" x="{box.x + PAD:.0f}" y="{box.y + LINE:.0f}">'
            f"{escape(box.title)}</text>"
        )
    else:
        middle = box.x + box.width / 2
        for i, line in enumerate(texts(box)):
            style = "strong" if i == 0 else "soft"
            parts.append(
                f'<text class="{style}" text-anchor="middle" x="{middle:.0f}" '
                f'y="{box.y + LINE * (i + 1):.0f}">{escape(line)}</text>'
            )
    return "".join(parts) + "</g>" + "".join(map(drawn, box.inside))


TIP = (
    '<defs><marker id="tip" viewBox="0 0 8 8" refX="7" refY="4" markerWidth="7" markerHeight="7" '
    'markerUnits="userSpaceOnUse" orient="auto"><path class="tip" d="M0 0L8 4L0 8z"/></marker>'
    "</defs>"
)


def svg(structure: Structure) -> str:
    """The model with everything in it, as a file of its own."""
    whole = structure.whole
    measure(whole)
    settle(whole)
    boxes = list(whole.all_inside())
    by_path = {box.path: box for box in boxes}
    flows = []
    for flow in structure.flows:
        source, target = by_path[flow.source], by_path[flow.target]
        flows.append(curve(source, target, flow, passed(source, target, boxes)))
    width, height = whole.width, whole.height
    style = packaged_text("tenon.model", "drawing.css")
    return (
        f'<svg class="picture" xmlns="http://www.w3.org/2000/svg" width="{width:.0f}" '
        f'height="{height:.0f}" viewBox="0 0 {width:.0f} {height:.0f}" role="img" '
        f'aria-label="{escape(whole.kind)}"><style>{style}</style>{TIP}'
        f'<rect class="paper" width="100%" height="100%"/>'
        f'{"".join(map(drawn, whole.inside))}{"".join(flows)}</svg>'
    )


# A page --------------------------------------------------------------------------------------


def boxes(box: Box) -> str:
    """Return the HTML of a box's contents, row by row."""
    rows = []
    for row in box.rows():
        inner = []
        for part in row:
            if part.inside:
                inner.append(
                    f'<details class="model" data-path="{escape(part.path)}" open>'
                    f"<summary>{escape(part.title)} <span>{part.blocks()} blocks"
                    f'</span></summary><div class="rows">{boxes(part)}</div></details>'
                )
                continue
            first, *others = texts(part)
            lines = "".join(f"<span>{escape(text)}</span>" for text in others)
            inner.append(
                f'<div class="box{" end" * is_end(part)}" data-path="{escape(part.path)}" '
                f'title="{escape(part.hint)}"><b>{escape(first)}</b>{lines}</div>'
            )
        rows.append(f'<div class="row">{"".join(inner)}</div>')
    return "".join(rows)


def page(structure: Structure, remark: str, table: str) -> str:
    """One file that needs nothing else."""
    whole = structure.whole
    flows = json.dumps([(flow.source, flow.target) for flow in structure.flows])
    has_models = any(box.inside for box in whole.inside)
    tools = (
        '<div class="tools"><button data-open="1">open all</button>'
        '<button data-open="0">close all</button></div>'
    )
    style = packaged_text("tenon.model", "drawing_page.css")
    script = packaged_text("tenon.model", "drawing_page.js")
    body = (
        f"<style>{style}</style>{tools * has_models}"
        f'<div class="frame graph" data-flows="{escape(flows)}">{boxes(whole)}</div>'
        f"<h2>Blocks</h2><div class=scroll>{table}</div><script>{script}</script>"
    )
    return document(whole.kind, remark, body)
