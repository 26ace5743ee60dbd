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
  const used = new Set();  // where lines would touch, the first stands for all
  g.fillStyle = COLLECTIVE; g.save(); g.beginPath(); g.rect(LEFT, 0, plot, height); g.clip();
  for (const [t, lanes] of d.meetings) {
    const at = Math.floor(x(t) / 3) * 3, first = lanes[0], last = lanes[lanes.length - 1];
    const key = at + ' ' + lanes;
    if (t < from || t > to || used.has(key)) continue;
    used.add(key); g.fillRect(at, tops[first] + 4, 1, tops[last] - tops[first] + 16);
    for (const i of lanes) g.fillRect(at - 2, tops[i] + 9, 5, 5);
  }
  g.restore();
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
  const s = l.spans.findLast(s => t >= s[0] - near && t <= s[0] + s[1] + near); if (!s) return '';
  const took = s[1] ? text(s[1]) + ' from ' : 'at ';
  return d.names[s[2]] + (s[3] == MARKED ? ' (compiled)' : '') + '\n' + took + text(s[0])
    + (s[4] >= 0 ? '\n' + d.names[s[4]] : '');
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
