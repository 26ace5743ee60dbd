"""A timeline as one page that needs nothing else: zoom with the wheel, move by dragging."""

from __future__ import annotations

import json
from collections.abc import Sequence
from html import escape

from .canvas import hex_of
from .colors import COMPILED, DARK, MARK, THEME, Color, Palette, ink_on, legend_of
from .timeline_drawing import MARK_BELOW, MARK_HEIGHT, lanes_of, notes_of
from .recording import Event, Recording
from .recording_summary import figures, gain, summary_of

MOST_SPANS = 60_000  # of a lane

STYLE = """
body { margin:0; font:14px/1.5 system-ui, sans-serif; color:var(--ink); background:var(--paper); }
main { max-width:1400px; margin:0 auto; padding:24px 20px 40px; }
h1 { font-size:22px; margin:0; } h2 { font-size:17px; margin:32px 0 6px; overflow-wrap:anywhere; }
p { margin:2px 0 14px; color:var(--soft); }
.figures, .legend { display:flex; flex-wrap:wrap; gap:6px 28px; margin:0 0 12px; }
.figures dt { color:var(--soft); font-size:12px; }
.figures dd { margin:0; font-weight:600; font-variant-numeric:tabular-nums; }
.legend { gap:4px 20px; margin:8px 0 0; padding-left:92px; font-size:12.5px; color:var(--soft); }
.legend b { position:absolute; margin-left:-92px; width:84px; text-align:right; font-weight:400; }
.legend i { display:inline-block; width:11px; height:11px; border-radius:2px; margin-right:6px;
  vertical-align:-1px; }
canvas { width:100%; display:block; cursor:grab; touch-action:pan-y; }
canvas:active { cursor:grabbing; }
#tip { position:fixed; display:none; background:var(--ink); color:var(--paper); padding:6px 10px;
  border-radius:6px; font-size:12.5px; max-width:520px; pointer-events:none; white-space:pre-line;
  overflow-wrap:anywhere; }
table { border-collapse:collapse; margin:8px 0; font-variant-numeric:tabular-nums; }
td, th { padding:3px 0 3px 28px; text-align:right; }
th { font-weight:600; border-bottom:1px solid var(--rule); }
td:first-child, th:first-child { text-align:left; color:var(--soft); padding-left:0; }
"""

SCRIPT = """
const LEFT = 92, RIGHT = 8, GAP = 8, AXIS = 24, tip = document.getElementById('tip');
const longest = Math.max(...DATA.map(d => d.seconds), 1e-9);
let from = 0, to = longest;
const text = s => s >= 1 ? +s.toPrecision(4) + ' s' : s >= 1e-3 ? +(s * 1e3).toPrecision(4) + ' ms'
  : s >= 1e-6 ? +(s * 1e6).toPrecision(4) + ' µs' : s ? +(s * 1e9).toPrecision(4) + ' ns' : '0';
const size = b => { let u = 0; for (; b >= 1024 && u < 4; ++u) b /= 1024;
  return +b.toPrecision(3) + ' ' + ['B', 'KiB', 'MiB', 'GiB', 'TiB'][u]; };
const count = n => { let u = 0; for (; n >= 1000 && u < 3; ++u) n /= 1000;
  return +n.toPrecision(3) + ['', 'k', 'M', 'G'][u]; };
const theme = name => getComputedStyle(document.documentElement).getPropertyValue('--' + name);
// What fills a point, in the color of those that fill most of it.
function add(points, at, color, share) {
  const p = points.get(at) || { sum: 0, most: 0, shares: {} }; points.set(at, p);
  const now = p.shares[color] = (p.shares[color] || 0) + share; p.sum += share;
  if (now >= p.most) { p.most = now; p.color = color; }
}
function rates(g, l, top, scale, plot) {
  const bars = new Map(); let most = 0;
  for (const s of l.spans) { const at = Math.floor((s[0] - from) * scale / 2);
    if (at >= 0 && 2 * at < plot) add(bars, at, s[3], l.each); }
  for (const b of bars.values()) most = Math.max(most, b.sum);
  for (const [at, b] of bars) { const h = Math.max(1, l.height * b.sum / most);
    g.fillStyle = COLORS[b.color]; g.fillRect(LEFT + 2 * at, top + l.height - h, 2, h); }
  return most ? '≤ ' + count(most * scale / 2) + '/s' : '';
}
function memory(g, l, top, x, end) {
  const most = l.spans.reduce((m, s) => Math.max(m, s[2]), 1);
  g.fillStyle = COLORS[l.color]; g.beginPath();
  g.moveTo(x(l.spans[0][0]), top + l.height); let y = top + l.height;
  for (const s of l.spans) { g.lineTo(x(s[0]), y); y = top + l.height * (1 - s[2] / most);
    g.lineTo(x(s[0]), y); }
  g.lineTo(x(end), y); g.lineTo(x(end), top + l.height); g.fill();
  return '≤ ' + size(most);
}
function fitting(g, name, room) {
  if (g.measureText(name).width <= room) return name;
  const most = Math.floor(room / 7) - 1;
  return most >= 3 ? name.slice(0, most) + '…' : '';
}
function spans(g, d, l, top, x, scale) {
  const points = new Map();
  const box = (left, w, color) => { g.fillStyle = COLORS[color];
    g.fillRect(left, top, w, l.height);
    if (color != MARKED) return;
    g.fillStyle = MARK; g.fillRect(left, top + l.height - MARK_BELOW, w, MARK_HEIGHT); };
  for (const s of l.spans)
    if (s[1] * scale < 2 && s[0] + s[1] >= from && s[0] <= to)
      add(points, Math.floor(x(s[0])), s[3], s[1] * scale);
  for (const [at, p] of points) { g.globalAlpha = Math.min(1, .35 + .65 * p.sum);
    box(at, 1, p.color); }
  g.globalAlpha = 1;
  for (const s of l.spans) {
    const w = s[1] * scale - .5;
    if (w < 1.5 || s[0] + s[1] < from || s[0] > to) continue;
    box(x(s[0]), w, s[3]);
    const left = Math.max(x(s[0]), LEFT), room = x(s[0]) + w - left - 8;
    if (room > 32 && l.height > 14) { g.fillStyle = INKS[s[3]];
      g.fillText(fitting(g, d.names[s[2]], room), left + 4, top + l.height / 2); }
  }
  return '';
}
function draw(d) {
  const box = d.canvas, ratio = devicePixelRatio || 1, width = box.clientWidth;
  const height = d.lanes.reduce((h, l) => h + l.height + GAP, GAP) + AXIS;
  box.style.height = height + 'px'; box.width = width * ratio; box.height = height * ratio;
  const g = box.getContext('2d'), plot = width - LEFT - RIGHT, scale = plot / (to - from);
  const x = t => LEFT + (t - from) * scale, tops = []; let top = GAP; d.hits = [];
  g.scale(ratio, ratio); g.font = '12px system-ui, sans-serif'; g.textBaseline = 'middle';
  g.fillStyle = theme('ground');
  for (const l of d.lanes) { tops.push(top); d.hits.push([top, top + l.height, l]);
    g.fillRect(LEFT, top, Math.max(0, Math.min(plot, x(d.seconds) - LEFT)), l.height);
    top += l.height + GAP; }
  let step = 1e-9; while (step * scale < 90) step *= step * 2 * scale < 90 && step * 5 * scale >= 90
    ? 5 : step * 2 * scale >= 90 ? 2 : 10;
  for (let t = Math.ceil(from / step) * step; t <= to; t += step) {
    g.fillStyle = theme('rule'); g.fillRect(x(t), 0, 1, height - AXIS + 4);
    g.fillStyle = theme('soft'); const label = text(Math.round(t / step) * step);
    g.fillText(label, Math.min(x(t), width - g.measureText(label).width - 2), height - 9);
  }
  d.lanes.forEach((l, i) => {
    g.save(); g.beginPath(); g.rect(LEFT, tops[i], plot, l.height); g.clip();
    const most = l.kind == 'record' ? rates(g, l, tops[i], scale, plot)
      : l.kind == 'memory' ? memory(g, l, tops[i], x, d.seconds)
      : spans(g, d, l, tops[i], x, scale);
    g.restore(); g.textAlign = 'right'; g.fillStyle = theme('ink');
    g.fillText(l.name, LEFT - 8, tops[i] + l.height / 2 - (most ? 8 : 0));
    g.fillStyle = theme('soft'); g.fillText(most, LEFT - 8, tops[i] + l.height / 2 + 8);
    g.textAlign = 'left';
  });
}
const all = () => DATA.forEach(draw);
function told(d, e) {
  const box = d.canvas.getBoundingClientRect(), y = e.clientY - box.top;
  const scale = (box.width - LEFT - RIGHT) / (to - from);
  const t = from + (e.clientX - box.left - LEFT) / scale;
  const hit = d.hits.find(h => y >= h[0] && y < h[1]); if (!hit || t < from) return '';
  const l = hit[2], near = 2 / scale;
  if (l.kind == 'memory') { const s = l.spans.filter(s => s[0] <= t).pop();
    return s && t <= d.seconds ? size(s[2]) + ' at ' + text(t) : ''; }
  const s = l.spans.find(s => t >= s[0] - near && t <= s[0] + s[1] + near); if (!s) return '';
  const took = s[1] ? text(s[1]) + ' from ' : 'at ';
  return d.names[s[2]] + (s[3] == MARKED ? ' (compiled)' : '') + '\\n' + took + text(s[0])
    + (s[4] >= 0 ? '\\n' + d.names[s[4]] : '');
}
for (const d of DATA) {
  d.canvas = document.getElementById(d.id); let drag = null;
  d.canvas.onwheel = e => { e.preventDefault();
    const box = d.canvas.getBoundingClientRect(), plot = box.width - LEFT - RIGHT;
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
    if (drag) { const wide = to - from, plot = d.canvas.clientWidth - LEFT - RIGHT;
      from = Math.max(0, Math.min(longest - wide, drag[1] - (e.clientX - drag[0]) / plot * wide));
      to = from + wide; all(); return; }
    const said = told(d, e); tip.style.display = said ? 'block' : 'none'; tip.textContent = said;
    tip.style.left = Math.max(8, Math.min(e.clientX + 14, innerWidth - tip.offsetWidth - 8)) + 'px';
    tip.style.top = e.clientY + 16 + 'px'; };
  d.canvas.onpointerleave = () => tip.style.display = 'none';
}
matchMedia('(prefers-color-scheme: dark)').addEventListener('change', all);
addEventListener('resize', all); all();
"""


def page(recordings: Sequence[Recording]) -> str:
    """One recording, or several over the same time with their figures beside each other."""
    palette, colors = Palette(recordings), _Colors()
    data = json.dumps([_data(i, recording, palette, colors)
                       for i, recording in enumerate(recordings) if lanes_of(recording)])
    script = data.replace("<", "\\u003c")  # no name ends the script
    values = {"COLORS": [hex_of(color) for color in colors.all],
              "INKS": [hex_of(ink_on(color)) for color in colors.all],
              "MARKED": colors.number(COMPILED), "MARK": hex_of(MARK),
              "MARK_BELOW": MARK_BELOW, "MARK_HEIGHT": MARK_HEIGHT}
    constants = "".join(f"const {name} = {json.dumps(value)};" for name, value in values.items())
    table = _table(recordings) if len(recordings) > 1 else ""
    parts = "".join(_part(i, recording, palette) for i, recording in enumerate(recordings))
    return (f'<!doctype html><html lang="en"><meta charset="utf-8"><meta name="color-scheme" '
            f'content="light dark"><title>Timeline</title><style>{_themes()}{STYLE}</style><main>'
            f"<h1>Timeline</h1><p>Wheel: zoom. Drag: move. Double click: everything.</p>{table}"
            f"{parts}<div id=tip></div></main><script>{constants}const DATA = {script};{SCRIPT}"
            f"</script></html>\n")


def _themes() -> str:
    light = "".join(f"--{name}:{hex_of(color)};" for color, name in THEME.items())
    dark = "".join(f"--{name}:{hex_of(color)};" for name, color in DARK.items())
    return f":root {{ {light} }} @media (prefers-color-scheme:dark) {{ :root {{ {dark} }} }}"


class _Colors:
    """Those of a page, by number."""

    def __init__(self) -> None:
        self.all = [COMPILED]

    def number(self, color: Color) -> int:
        if color not in self.all:
            self.all.append(color)
        return self.all.index(color)


def _part(number: int, recording: Recording, palette: Palette) -> str:
    shown = "".join(f"<div><dt>{escape(name)}</dt><dd>{escape(value)}</dd></div>"
                    for name, value in figures(recording).items())
    notes = "".join(f"<p>{escape(note[0].upper() + note[1:])}.</p>" for note in notes_of(recording))
    title = escape(recording.title or "trace")
    canvas = (f'<canvas id="t{number}" role="img" aria-label="timeline of {title}"></canvas>'
              if lanes_of(recording) else "<p>Nothing was recorded.</p>")
    return (f"<h2>{title}</h2><dl class=figures>{shown}</dl>{notes}"
            f"{canvas}{_legend(recording, palette)}")


def _legend(recording: Recording, palette: Palette) -> str:
    rows = []
    for lane, entries in legend_of(recording, palette):
        texts = "".join(f'<span><i style="background:{_swatch(color)}"></i>{escape(text)}</span>'
                        for text, color in entries)
        rows.append(f"<div class=legend><b>{escape(lane)}</b>{texts}</div>")
    return "".join(rows)


def _swatch(color: Color) -> str:
    if color != COMPILED:
        return hex_of(color)
    return f"linear-gradient({hex_of(color)} 6px, {hex_of(MARK)} 6px 8px, {hex_of(color)} 8px)"


def _table(recordings: Sequence[Recording]) -> str:
    columns = [summary_of(recording).rows() for recording in recordings]
    heads = "".join(f"<th>{escape(recording.title or 'trace')}</th>" for recording in recordings)
    rows = "".join(f"<tr><td>{escape(name)}</td>"
                   + "".join(f"<td>{escape(column[name])}</td>" for column in columns) + "</tr>"
                   for name in columns[0])
    said = gain(*recordings) if len(recordings) == 2 else ""
    return f"<table><tr><th></th>{heads}</tr>{rows}</table>" + f"<p>{said}</p>" * bool(said)


def _data(number: int, recording: Recording, palette: Palette,
          colors: _Colors) -> dict[str, object]:
    """Spans are [began, seconds, name, color, place]; those of memory have bytes for a name."""
    names: dict[str, int] = {}

    def number_of(name: str) -> int:
        return names.setdefault(name, len(names))

    lanes = []
    for lane in lanes_of(recording):
        events = _most_telling(lane.events)
        spans = [[round(e.began, 9), round(e.seconds, 9), e.value] if e.kind == "memory" else
                 [round(e.began, 9), round(e.seconds, 9), number_of(e.name or e.kind),
                  colors.number(palette.of(e)), number_of(e.place) if e.place else -1]
                 for e in events]
        lanes.append({"name": lane.name, "kind": events[0].kind, "height": lane.height,
                      "spans": spans, "color": colors.number(palette.of(events[0])),
                      "each": len(lane.events) / len(events)})  # how many one stands for
    return {"id": f"t{number}", "seconds": recording.seconds, "lanes": lanes, "names": list(names)}


def _most_telling(events: list[Event]) -> list[Event]:
    """The longest of too many; of moments, some from everywhere."""
    if len(events) <= MOST_SPANS:
        return events
    if events[0].kind in ("record", "memory"):
        return events[::len(events) // MOST_SPANS + 1]
    kept = sorted(events, key=lambda event: -event.seconds)[:MOST_SPANS]
    return sorted(kept, key=lambda event: event.began)
