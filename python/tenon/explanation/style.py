"""How the page looks and moves. It follows the reader's choice of light or dark."""

CSS = """
:root { --ink:#1d2430; --soft:#5d6878; --line:#dfe4ea; --paper:#fff; --raised:#f6f8fa;
  --accent:#2b6cb0; --code:#2b6cb0; --library:#8a5a00; --interpreted:#a03a4a; --result:#2a7f62;
  --code-fill:#e8f1fb; --library-fill:#fdf3df; --interpreted-fill:#fbe9ec; }
@media (prefers-color-scheme: dark) { :root { --ink:#e4e9f0; --soft:#98a4b5; --line:#2d3644;
  --paper:#12161c; --raised:#1a2029; --accent:#7db3ec; --code:#7db3ec; --library:#e0b04f;
  --interpreted:#ef8b9b; --result:#5fc29f; --code-fill:#17283b; --library-fill:#2c2413;
  --interpreted-fill:#351c22; } }
* { box-sizing:border-box; }
body { margin:0; background:var(--paper); color:var(--ink);
  font:15px/1.5 system-ui, -apple-system, "Segoe UI", Roboto, sans-serif; }
main { max-width:1120px; margin:0 auto; padding:24px 16px 64px; }
h1 { font-size:26px; line-height:1.2; margin:0 0 4px; overflow-wrap:anywhere; }
h2 { font-size:18px; margin:40px 0 10px; padding-bottom:6px; border-bottom:1px solid var(--line); }
p { margin:6px 0; } .soft { color:var(--soft); }
nav { display:flex; flex-wrap:wrap; gap:4px 16px; margin:12px 0 20px; font-size:14px; }
a { color:var(--accent); text-decoration:none; } a:hover { text-decoration:underline; }
.cards { display:grid; grid-template-columns:repeat(auto-fit, minmax(140px, 1fr)); gap:10px; }
.card { background:var(--raised); border:1px solid var(--line); border-radius:8px;
  padding:10px 14px; }
.card b { display:block; font-size:20px; line-height:1.3; font-variant-numeric:tabular-nums; }
.card span { color:var(--soft); font-size:13px; }
.frame { border:1px solid var(--line); border-radius:8px; background:var(--raised);
  overflow:auto; max-height:78vh; }
.frame svg { display:block; } .frame.padded { padding:12px 16px; }
svg text.mono, code { font:12px ui-monospace, SFMono-Regular, Menlo, Consolas, monospace; }
svg text { font:12px system-ui, sans-serif; fill:var(--ink); }
svg .soft { fill:var(--soft); color:var(--soft); }
.key { display:flex; flex-wrap:wrap; gap:4px 18px; margin:8px 0; font-size:13px;
  color:var(--soft); }
.key i { display:inline-block; width:11px; height:11px; border-radius:3px; margin-right:6px; }
.kind { display:inline-block; padding:0 8px; border-radius:9px; font-size:12.5px;
  white-space:nowrap; }
.share { height:12px; border-radius:3px; background:var(--code); min-width:2px; }
#phases td:last-child { width:60%; vertical-align:middle; }
.scroll { overflow-x:auto; }
table { border-collapse:collapse; width:100%; font-size:14px; }
th, td { text-align:left; padding:6px 10px; border-bottom:1px solid var(--line);
  vertical-align:top; }
th { color:var(--soft); font-weight:600; white-space:nowrap; cursor:pointer; user-select:none; }
th[data-order]::after { content:" \\2191"; } th[data-order="down"]::after { content:" \\2193"; }
h3 { font-size:15px; margin:20px 0 6px; } th.n { text-align:right; }
td.n { text-align:right; font-variant-numeric:tabular-nums; white-space:nowrap; }
td.place { color:var(--soft); overflow-wrap:anywhere; min-width:120px; }
input { font:inherit; width:100%; max-width:320px; padding:6px 10px; margin:4px 0 10px;
  color:inherit; background:var(--paper); border:1px solid var(--line); border-radius:6px; }
details { border:1px solid var(--line); border-radius:8px; margin:8px 0; background:var(--raised); }
summary { cursor:pointer; padding:8px 12px; overflow-wrap:anywhere; }
details details { margin:8px 12px; background:var(--paper); }
.inside { padding:0 12px 12px; } .inside > .frame { max-height:70vh; }
details details.layer, details .step { margin:4px 12px; }
details.layer > summary { display:flex; gap:14px; align-items:center; }
.layer .name { flex:1; } .layer .place { color:var(--soft); font-size:13.5px; }
.layer .n { width:86px; text-align:right; font-variant-numeric:tabular-nums; font-size:13.5px; }
.layer .of { width:180px; } .layer .share { display:block; }
.step > summary, div.step { display:flex; flex-wrap:wrap; gap:2px 14px; font-size:13.5px; }
div.step { padding:8px 12px; } .ops { padding:0 14px; font-size:13.5px; }
@media (max-width:720px) { .layer .of { display:none; } }
pre { margin:0; padding:10px 14px; overflow:auto; max-height:60vh;
  font:12.5px/1.45 ui-monospace, SFMono-Regular, Menlo, Consolas, monospace; }
ol li, ul li { margin:4px 0; overflow-wrap:anywhere; } li pre { padding:2px 0; }
.made { color:var(--result); } .refused { color:var(--interpreted); }
.node rect { stroke-width:1.4; } .node { cursor:pointer; }
.edge { fill:none; stroke:var(--soft); opacity:.55; } .edge.far { opacity:.16; }
svg.picked .edge { opacity:.06; } svg.picked .edge.on { opacity:1; stroke:var(--accent); }
svg.picked .node { opacity:.35; } svg.picked .node.on { opacity:1; }
""" + "".join(
    f".node.{kind} rect.box, .bar.{kind} {{ fill:var(--{kind}-fill); stroke:var(--{kind}); }}\n"
    f".kind.{kind} {{ background:var(--{kind}-fill); color:var(--{kind}); }}\n"
    f".key i.{kind} {{ background:var(--{kind}); }}\n"
    f".time.{kind} {{ fill:var(--{kind}); }}\n"
    for kind in ("code", "library", "interpreted"))

SCRIPT = """
for (const table of document.querySelectorAll("table.sorts")) {
  const body = table.tBodies[0], heads = [...table.tHead.rows[0].cells];
  heads.forEach((head, column) => head.onclick = () => {
    const down = head.dataset.order === "up";
    heads.forEach(other => delete other.dataset.order);
    head.dataset.order = down ? "down" : "up";
    const key = row => row.cells[column].dataset.n ?? row.cells[column].textContent;
    const order = (a, b) => key(a).localeCompare(key(b), undefined, {numeric: true});
    body.append(...[...body.rows].sort((a, b) => down ? order(b, a) : order(a, b)));
  });
}
for (const input of document.querySelectorAll("input[data-filters]")) {
  const rows = [...document.getElementById(input.dataset.filters).tBodies[0].rows];
  input.oninput = () => rows.forEach(row =>
    row.hidden = !row.textContent.toLowerCase().includes(input.value.toLowerCase()));
}
for (const svg of document.querySelectorAll("svg.graph")) {
  svg.parentElement.scrollLeft = (svg.clientWidth - svg.parentElement.clientWidth) / 2;
  const pick = node => {
    svg.querySelectorAll(".on").forEach(e => e.classList.remove("on"));
    svg.classList.toggle("picked", !!node);
    if (!node) return;
    node.classList.add("on");
    for (const edge of svg.querySelectorAll(".edge")) {
      if (![edge.dataset.from, edge.dataset.to].includes(node.dataset.step)) continue;
      edge.classList.add("on");
      for (const end of [edge.dataset.from, edge.dataset.to])
        svg.querySelector(`.node[data-step="${end}"]`).classList.add("on");
    }
  };
  svg.onclick = event => {
    const node = event.target.closest(".node");
    pick(node && !node.classList.contains("on") ? node : null);
  };
}
"""
