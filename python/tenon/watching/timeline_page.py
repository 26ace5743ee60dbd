"""A timeline as one page that needs nothing else: zoom with the wheel, move by dragging."""

from __future__ import annotations

import json
from collections.abc import Sequence
from html import escape

from .drawing import COLORS, FAILED, color_of, lanes_of
from .recording import Event, Recording
from .summary import summary_of

MOST_SPANS = 60_000  # of a lane

STYLE = """
body { margin:0; font:14px/1.5 system-ui, sans-serif; color:#1d2430; background:#fff; }
main { max-width:1400px; margin:0 auto; padding:20px; }
h1 { font-size:22px; margin:0; } h2 { font-size:17px; margin:26px 0 4px; overflow-wrap:anywhere; }
p { margin:2px 0 14px; color:#5d6878; }
dl { display:flex; flex-wrap:wrap; gap:6px 28px; margin:0 0 10px; }
dt { color:#5d6878; font-size:12px; } dd { margin:0; font-weight:600; }
canvas { width:100%; display:block; border:1px solid #dfe4ea; border-radius:6px; cursor:grab; }
#tip { position:fixed; display:none; background:#1d2430; color:#fff; padding:6px 10px;
  border-radius:6px; font-size:12.5px; max-width:520px; pointer-events:none; white-space:pre-line; }
table { border-collapse:collapse; margin:8px 0; }
td, th { padding:3px 18px 3px 0; text-align:right; }
td:first-child, th:first-child { text-align:left; color:#5d6878; }
"""

SCRIPT = """
const LEFT = 84, GAP = 8, AXIS = 24, tip = document.getElementById('tip');
const longest = Math.max(...DATA.map(d => d.seconds), 1e-9);
let from = 0, to = longest;
const text = s => s >= 1 ? +s.toPrecision(4) + ' s' : s >= 1e-3 ? +(s * 1e3).toPrecision(4) + ' ms'
  : s > 0 ? +(s * 1e6).toPrecision(4) + ' µs' : '0';
const size = b => { let u = 0; for (; b >= 1024 && u < 4; ++u) b /= 1024;
  return +b.toPrecision(3) + ' ' + ['B', 'KiB', 'MiB', 'GiB', 'TiB'][u]; };
function draw(d) {
  const box = d.canvas, ratio = devicePixelRatio || 1, width = box.clientWidth;
  const height = d.lanes.reduce((h, l) => h + l.height + GAP, GAP) + AXIS;
  box.style.height = height + 'px'; box.width = width * ratio; box.height = height * ratio;
  const g = box.getContext('2d'), plot = width - LEFT - 8, scale = plot / (to - from);
  const x = t => LEFT + (t - from) * scale;
  g.scale(ratio, ratio); g.font = '12px system-ui, sans-serif'; g.textBaseline = 'middle';
  let step = 1e-9; while (step * scale < 90) step *= step * 2 * scale < 90 && step * 5 * scale >= 90
    ? 5 : step * 2 * scale >= 90 ? 2 : 10;
  for (let t = Math.ceil(from / step) * step; t <= to; t += step) {
    g.fillStyle = '#e4e8ee'; g.fillRect(x(t), 0, 1, height - AXIS);
    g.fillStyle = '#5d6878'; g.fillText(text(Math.round(t / step) * step), x(t) + 3, height - 11);
  }
  let top = GAP; d.hits = [];
  for (const l of d.lanes) {
    g.fillStyle = '#1d2430'; g.textAlign = 'right';
    const most = l.name == 'memory' ? l.spans.reduce((m, s) => Math.max(m, s[2]), 1) : 0;
    g.fillText(l.name, LEFT - 8, top + l.height / 2 - (most ? 8 : 0)); g.fillStyle = '#5d6878';
    if (most) g.fillText('≤ ' + size(most), LEFT - 8, top + l.height / 2 + 8);
    g.textAlign = 'left';
    g.save(); g.beginPath(); g.rect(LEFT, top, plot, l.height); g.clip();
    g.fillStyle = '#f6f8fa'; g.fillRect(LEFT, top, plot, l.height);
    if (most) {
      g.fillStyle = '#96beaf'; g.beginPath();
      g.moveTo(x(l.spans[0][0]), top + l.height); let y = top + l.height;
      for (const s of l.spans) { g.lineTo(x(s[0]), y); y = top + l.height * (1 - s[2] / most);
        g.lineTo(x(s[0]), y); }
      g.lineTo(x(d.seconds), y); g.lineTo(x(d.seconds), top + l.height); g.fill();
    } else for (const s of l.spans) {
      if (s[0] + s[1] < from || s[0] > to) continue;
      const w = Math.max(s[1] * scale - .5, .7); g.fillStyle = COLORS[s[3]];
      g.fillRect(x(s[0]), top, w, l.height);
      const name = d.names[s[2]], left = Math.max(x(s[0]), LEFT);
      if (x(s[0]) + w - left > 40 && l.height > 14) { g.save(); g.beginPath();
        g.rect(left, top, x(s[0]) + w - left - 3, l.height); g.clip(); g.fillStyle = '#fff';
        g.fillText(name, left + 4, top + l.height / 2); g.restore(); }
    }
    g.restore(); d.hits.push([top, top + l.height, l]); top += l.height + GAP;
  }
}
const all = () => DATA.forEach(draw);
function told(d, e) {
  const box = d.canvas.getBoundingClientRect(), y = e.clientY - box.top;
  const scale = (box.width - LEFT - 8) / (to - from);
  const t = from + (e.clientX - box.left - LEFT) / scale;
  const hit = d.hits.find(h => y >= h[0] && y < h[1]); if (!hit) return '';
  const l = hit[2], near = 2 / scale;
  if (l.name == 'memory') { const s = l.spans.filter(s => s[0] <= t).pop();
    return s ? size(s[2]) + ' at ' + text(t) : ''; }
  const s = l.spans.find(s => t >= s[0] - near && t <= s[0] + s[1] + near); if (!s) return '';
  const took = s[1] ? text(s[1]) + ' from ' : 'at ';
  return d.names[s[2]] + '\\n' + took + text(s[0]) + (s[4] >= 0 ? '\\n' + d.names[s[4]] : '');
}
for (const d of DATA) {
  d.canvas = document.getElementById(d.id); let drag = null;
  d.canvas.onwheel = e => { e.preventDefault();
    const box = d.canvas.getBoundingClientRect(), plot = box.width - LEFT - 8;
    const at = from + (e.clientX - box.left - LEFT) / plot * (to - from);
    const by = Math.exp(e.deltaY * .0015);
    const wide = Math.min(longest, Math.max(1e-7, (to - from) * by));
    from = Math.max(0, Math.min(at - (at - from) * wide / (to - from), longest - wide));
    to = from + wide; all(); };
  d.canvas.onpointerdown = e => { drag = [e.clientX, from];
    d.canvas.setPointerCapture(e.pointerId); };
  d.canvas.onpointerup = () => drag = null;
  d.canvas.ondblclick = () => { from = 0; to = longest; all(); };
  d.canvas.onpointermove = e => {
    if (drag) { const wide = to - from, plot = d.canvas.clientWidth - LEFT - 8;
      from = Math.max(0, Math.min(longest - wide, drag[1] - (e.clientX - drag[0]) / plot * wide));
      to = from + wide; all(); return; }
    const said = told(d, e); tip.style.display = said ? 'block' : 'none'; tip.textContent = said;
    tip.style.left = Math.min(e.clientX + 14, innerWidth - 300) + 'px';
    tip.style.top = e.clientY + 16 + 'px'; };
  d.canvas.onpointerleave = () => tip.style.display = 'none';
}
addEventListener('resize', all); all();
"""


def page(recordings: Sequence[Recording]) -> str:
    """One recording, or several over the same time with their figures beside each other."""
    data = json.dumps([_data(i, recording) for i, recording in enumerate(recordings)])
    colors = json.dumps(["#%02x%02x%02x" % color for color in (*COLORS, FAILED)])
    table = _table(recordings) if len(recordings) > 1 else ""
    parts = "".join(_part(i, recording) for i, recording in enumerate(recordings))
    script = data.replace("<", "\\u003c")  # no name ends the script
    return (f'<!doctype html><html lang="en"><meta charset="utf-8"><title>Timeline</title>'
            f"<style>{STYLE}</style><main><h1>Timeline</h1><p>Wheel: zoom. Drag: move. Double "
            f"click: everything.</p>{table}{parts}<div id=tip></div></main><script>const DATA = "
            f"{script}, COLORS = {colors};{SCRIPT}</script></html>\n")


def _part(number: int, recording: Recording) -> str:
    figures = "".join(f"<div><dt>{escape(name)}</dt><dd>{escape(value)}</dd></div>"
                      for name, value in summary_of(recording).rows())
    missing = f"<p>The last {recording.missing:,} events are missing.</p>" * bool(recording.missing)
    return (f"<h2>{escape(recording.title or 'trace')}</h2><dl>{figures}</dl>{missing}"
            f'<canvas id="t{number}"></canvas>')


def _table(recordings: Sequence[Recording]) -> str:
    columns = [dict(summary_of(recording).rows()) for recording in recordings]
    heads = "".join(f"<th>{escape(recording.title or 'trace')}</th>" for recording in recordings)
    rows = "".join(f"<tr><td>{escape(name)}</td>"
                   + "".join(f"<td>{escape(column[name])}</td>" for column in columns) + "</tr>"
                   for name in columns[0])
    return f"<table><tr><th></th>{heads}</tr>{rows}</table>"


def _data(number: int, recording: Recording) -> dict[str, object]:
    """Spans are [began, seconds, name, color, place]; those of memory have bytes for a name."""
    names: dict[str, int] = {}

    def number_of(name: str) -> int:
        return names.setdefault(name, len(names))

    lanes = []
    for lane in lanes_of(recording):
        events = _most_telling(lane.events)
        spans = [[round(e.began, 9), round(e.seconds, 9), e.value] if e.kind == "memory" else
                 [round(e.began, 9), round(e.seconds, 9), number_of(e.name or e.kind), _color(e),
                  number_of(e.place) if e.place else -1] for e in events]
        lanes.append({"name": lane.name, "height": lane.height, "spans": spans})
    return {"id": f"t{number}", "seconds": recording.seconds, "lanes": lanes, "names": list(names)}


def _most_telling(events: list[Event]) -> list[Event]:
    """The longest of too many; of moments, some from everywhere."""
    if len(events) <= MOST_SPANS:
        return events
    if events[0].kind in ("record", "memory"):
        return events[::len(events) // MOST_SPANS + 1]
    kept = sorted(events, key=lambda event: -event.seconds)[:MOST_SPANS]
    return sorted(kept, key=lambda event: event.began)


def _color(event: Event) -> int:
    color = color_of(event)
    return len(COLORS) if color == FAILED else COLORS.index(color)
