"""Pictures of models: an SVG, or a page on which models inside the model open and close."""

from __future__ import annotations

import json
from html import escape

from ..explanation.document import document
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
    """From places inside the box around to places in the picture."""
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
STYLE = """
.picture { --ink:#1d2430; --soft:#5d6878; --line:#c6ced8; --paper:#fff; --raised:#f6f8fa;
  --accent:#2b6cb0; --fill:#e8f1fb; --end:#2a7f62; --end-fill:#e6f4ee; }
@media (prefers-color-scheme: dark) { .picture { --ink:#e4e9f0; --soft:#98a4b5; --line:#3a4556;
  --paper:#12161c; --raised:#1a2029; --accent:#7db3ec; --fill:#17283b; --end:#5fc29f;
  --end-fill:#15302a; } }
.picture text { font:12px system-ui, -apple-system, "Segoe UI", Roboto, "DejaVu Sans", sans-serif;
  fill:var(--ink); }
.picture .strong { font-weight:600; } .picture .soft { fill:var(--soft); }
.picture .paper { fill:var(--paper); }
.picture .block rect { fill:var(--fill); stroke:var(--accent); }
.picture .model rect { fill:var(--raised); stroke:var(--line); }
.picture .end rect { fill:var(--end-fill); stroke:var(--end); }
.picture .flow { fill:none; stroke:var(--soft); stroke-width:1.3; opacity:.8; }
.picture .tip { fill:var(--soft); }
"""


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
    return (
        f'<svg class="picture" xmlns="http://www.w3.org/2000/svg" width="{width:.0f}" '
        f'height="{height:.0f}" viewBox="0 0 {width:.0f} {height:.0f}" role="img" '
        f'aria-label="{escape(whole.kind)}"><style>{STYLE}</style>{TIP}'
        f'<rect class="paper" width="100%" height="100%"/>'
        f'{"".join(map(drawn, whole.inside))}{"".join(flows)}</svg>'
    )


# A page --------------------------------------------------------------------------------------

PAGE_STYLE = """
.graph { position:relative; padding:8px 48px; overflow:auto; }
.graph svg { position:absolute; left:0; top:0; pointer-events:none; }
.row { display:flex; justify-content:center; align-items:flex-start; gap:34px; margin:0 0 34px; }
.row:last-child { margin-bottom:0; }
.box { border:1px solid var(--accent); background:var(--code-fill); border-radius:8px;
  padding:4px 12px 6px; text-align:center; font-size:13px; line-height:1.35; min-width:120px;
  position:relative; z-index:1; }
.box b { display:block; } .box span { display:block; color:var(--soft); font-size:12px; }
.box.end { border-color:var(--result); background:var(--raised); border-radius:20px; }
details.model { border:1px solid var(--line); background:var(--raised); margin:0; padding:0; }
details.model > summary { padding:5px 12px; font-weight:600; font-size:13px; text-align:left; }
details.model > summary span { color:var(--soft); font-weight:400; font-size:12px; }
details.model > .rows { padding:6px 34px 14px 20px; }
details.model[open] > summary span { display:none; }
.flow { fill:none; stroke:var(--soft); stroke-width:1.3; opacity:.75; }
.flow.on { stroke:var(--accent); stroke-width:2.2; opacity:1; }
.graph + h2 + .scroll caption { display:none; }
.tools { display:flex; gap:10px; margin:10px 0; }
button { font:inherit; font-size:13px; padding:3px 10px; border:1px solid var(--line);
  border-radius:6px; background:var(--raised); color:inherit; cursor:pointer; }
"""
PAGE_SCRIPT = """
const graph = document.querySelector(".graph"), flows = JSON.parse(graph.dataset.flows);
const places = new Map([...graph.querySelectorAll("[data-path]")].map(e => [e.dataset.path, e]));
const layer = document.createElementNS("http://www.w3.org/2000/svg", "svg");
graph.prepend(layer);
let picked = null;
const shown = path => {  // the box itself, or the outermost closed model around it
  let found = places.get(path);
  for (let e = found.parentElement.closest("details"); e; e = e.parentElement.closest("details"))
    if (!e.open) found = e;
  return found;
};
const line = (from, to, on) => {
  const base = graph.getBoundingClientRect(), a = from.getBoundingClientRect(),
    b = to.getBoundingClientRect(), dx = graph.scrollLeft - base.left,
    dy = graph.scrollTop - base.top;
  const x0 = a.left + a.width / 2 + dx, y0 = a.bottom + dy, x1 = b.left + b.width / 2 + dx,
    y1 = b.top + dy;
  let path;
  const left = Math.min(x0, x1) - 8, right = Math.max(x0, x1) + 8;
  const between = [...places.values()].filter(e => {
    const r = e.getBoundingClientRect();
    return r.width && !e.contains(from) && !e.contains(to) && r.top > a.bottom && r.bottom < b.top
      && r.left + dx < right && r.right + dx > left;
  });
  if (!between.length) {
    const bend = Math.max(12, (y1 - y0) / 2);
    path = `M${x0} ${y0}C${x0} ${y0 + bend} ${x1} ${y1 - bend} ${x1} ${y1}`;
  } else {
    const side = Math.max(x0, x1, ...between.map(e => e.getBoundingClientRect().right + dx)) + 10
      + 3 * Math.min(6, between.length), bend = 23;
    path = `M${x0} ${y0}C${x0} ${y0 + bend} ${side} ${y0} ${side} ${y0 + 2 * bend}L${side} `
      + `${y1 - 2 * bend}C${side} ${y1} ${x1} ${y1 - bend} ${x1} ${y1}`;
  }
  return `<path class="flow${on ? " on" : ""}" d="${path}" marker-end="url(#tip)"/>`;
};
const draw = () => {
  layer.setAttribute("width", 0), layer.setAttribute("height", 0);
  const drawn = new Set(), paths = [];
  for (const [source, target] of flows) {
    const from = shown(source), to = shown(target), key = from.dataset.path + ">" + to.dataset.path;
    if (from === to || drawn.has(key)) continue;
    drawn.add(key);
    paths.push(line(from, to, picked === from || picked === to));
  }
  layer.setAttribute("width", graph.scrollWidth), layer.setAttribute("height", graph.scrollHeight);
  layer.innerHTML = `<defs><marker id="tip" viewBox="0 0 8 8" refX="7" refY="4" markerWidth="7"
    markerHeight="7" markerUnits="userSpaceOnUse" orient="auto"><path fill="var(--soft)"
    d="M0 0L8 4L0 8z"/></marker></defs>` + paths.join("");
};
graph.addEventListener("toggle", draw, true);
graph.addEventListener("click", event => {
  const box = event.target.closest(".box");
  picked = box && box !== picked ? box : null;
  draw();
});
for (const button of document.querySelectorAll("button[data-open]")) button.onclick = () => {
  for (const e of graph.querySelectorAll("details")) e.open = button.dataset.open === "1";
  draw();
};
addEventListener("resize", draw);
draw();
"""


def boxes(box: Box) -> str:
    """What is inside a box, row by row."""
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
    body = (
        f"<style>{PAGE_STYLE}</style>{tools * has_models}"
        f'<div class="frame graph" data-flows="{escape(flows)}">{boxes(whole)}</div>'
        f"<h2>Blocks</h2><div class=scroll>{table}</div><script>{PAGE_SCRIPT}</script>"
    )
    return document(whole.kind, remark, body)
