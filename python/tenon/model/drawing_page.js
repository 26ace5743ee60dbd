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
