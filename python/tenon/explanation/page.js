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
