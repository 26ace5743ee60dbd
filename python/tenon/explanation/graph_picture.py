"""A plan as a picture: boxes in the order data flows, a box for a step or for a group of steps."""

from __future__ import annotations

import math
from collections import defaultdict
from collections.abc import Iterable
from dataclasses import dataclass, field
from html import escape
from typing import Any

from .groups import Group
from .units import bytes_text

WIDTH, GAP_X, GAP_Y, MARGIN = 232, 26, 46, 20
LINE, HEAD, PAD = 17, 26, 8  # heights of a line, of the title of a kernel, of the space around it
MOST_LINES = 4  # of ops in a kernel
AROUND = 150  # the most that a line leaves the boxes
FAR = 3  # layers: longer edges are faint until their step is picked


@dataclass
class Kernel:
    title: str
    kind: str
    lines: list[str]

    @property
    def height(self) -> int:
        return HEAD + LINE * len(self.lines)


@dataclass
class Node:
    """A step of the plan, or a group of them."""

    number: int
    kernels: list[Kernel]
    foot: str
    hint: str
    layer: int = 0
    x: float = 0
    y: float = 0
    into: list[Edge] = field(default_factory=list)

    @property
    def height(self) -> int:
        return sum(k.height for k in self.kernels) + PAD * (len(self.kernels) + 1) + LINE


@dataclass
class Edge:
    source: Node
    target: Node
    bytes: int
    names: list[str]

    @property
    def layers(self) -> int:
        return self.target.layer - self.source.layer


def wrapped(words: Iterable[str], most: int = 32) -> list[str]:
    """Lines of words with commas, at most MOST_LINES of them."""
    lines: list[str] = []
    line, left = "", list(words)
    total = len(left)
    while left:
        word = left[0]
        is_last = len(lines) == MOST_LINES - 1
        room = most - len(" + 99 more") if is_last and len(left) > 1 else most
        if line and len(line) + len(word) + 2 > room:
            if is_last:
                break
            lines.append(line + ",")
            line = ""
        line += (", " if line else "") + word
        left.pop(0)
    if line:
        lines.append(line + (f" + {len(left)} more" if left and total else ""))
    return lines


def kernel_of(step: Any) -> Kernel:
    names = [op.name for op in step.ops]
    lines = wrapped(names) if len(names) > 1 else []
    return Kernel(shortened(step.name), step.kind, lines + [made_by(step)] * bool(step.ops))


def made_by(step: Any) -> str:
    """The type of what a step makes: that of its last op."""
    return step.ops[-1].type if step.ops else ""


def nodes_of(facts: Any) -> list[Node]:
    groups: dict[int, list[Any]] = defaultdict(list)
    for step in facts.steps:
        groups[step.step].append(step)
    nodes = []
    for number, steps in groups.items():
        results = [b for s in steps for b in s.writes if facts.buffers[b].role == "result"]
        moved = bytes_text(sum(s.bytes_read + s.bytes_written for s in steps))
        foot = f"{moved} moved" + (", result" if results else "")
        hint = dict.fromkeys(text for s in steps for text in (s.name, s.place) if text)
        nodes.append(Node(number, [kernel_of(s) for s in steps], foot, "\n".join(hint)))
    return nodes


def nodes_of_groups(groups: list[Group]) -> tuple[list[Node], dict[int, Node]]:
    """A node for each group, and those of the steps, by their numbers."""
    nodes: list[Node] = []
    homes: dict[int, Node] = {}
    for number, group in enumerate(groups):
        steps = list(group.all_steps())
        kinds = [step.kind for step in steps]
        title = shortened(group.path or group.title)
        called = dict.fromkeys(name for step in steps for name in calls_in(step.name))
        kernel = Kernel(title, max(set(kinds), key=kinds.count), wrapped(called))
        foot = f"{len(steps)} step{'s' * (len(steps) != 1)}, {bytes_text(group.bytes)} moved"
        node = Node(number, [kernel], foot, f"{group.path}\n{group.title}".strip())
        nodes.append(node)
        for step in steps:
            homes.setdefault(step.step, node)
    return nodes, homes


def calls_in(name: str) -> list[str]:
    """`["matmul", "add"]` of `blocks[0]: attn.matmul + attn.add`."""
    listed = name.rpartition(": ")[2].split(" + ")
    return [part.rpartition(".")[2] for part in listed if part != "..."]


def shortened(text: str, most: int = 31) -> str:
    """Return the end of a long text, which identifies files and modules best."""
    return text if len(text) <= most else f"…{text[1 - most:]}"


def connect(facts: Any, nodes: list[Node], homes: dict[int, Node]) -> list[Edge]:
    """Edges from the last step that wrote a buffer to those that read it; layers by depth."""
    writer: dict[int, Node] = {}
    edges: dict[tuple[int, int], Edge] = {}
    for step in facts.steps:
        node = homes[step.step]
        for buffer in (*step.reads, *step.writes):
            source = writer.get(buffer)
            if source is None or source is node:
                continue
            # A derivative comes back to where its data came from: one edge stands for both ways.
            edge = (edges.get((source.number, node.number))
                    or edges.get((node.number, source.number)))
            if edge is None:
                edge = edges[source.number, node.number] = Edge(source, node, 0, [])
                node.into.append(edge)
            edge.bytes += facts.buffers[buffer].bytes
            edge.names.append(facts.buffers[buffer].name)
        for buffer in step.writes:
            writer[buffer] = node
    for node in nodes:  # in the order they run
        before = (edge.source for edge in node.into if edge.source.number < node.number)
        node.layer = max((source.layer + 1 for source in before), default=0)
    return list(edges.values())


def middle_of_sources(node: Node) -> float:
    return sum(edge.source.x for edge in node.into) / max(1, len(node.into))


def place(nodes: list[Node]) -> tuple[float, float]:
    """Gives every node its position, near what it reads; returns the size of the picture."""
    layers: dict[int, list[Node]] = defaultdict(list)
    for node in nodes:
        layers[node.layer].append(node)
    widest = max(map(len, layers.values()))
    middle = MARGIN + widest * (WIDTH + GAP_X) / 2
    y = float(MARGIN)
    for number in sorted(layers):
        row = layers[number]
        row.sort(key=lambda node: (middle_of_sources(node), node.number))
        x = middle - (len(row) * (WIDTH + GAP_X) - GAP_X) / 2
        for node in row:
            node.x, node.y = x, y
            x += WIDTH + GAP_X
        y += max(node.height for node in row) + GAP_Y
    return 2 * middle, y - GAP_Y + MARGIN


def curve(edge: Edge, tip: str) -> str:
    """Down to the next layer; around the boxes between to one further down."""
    far = edge.layers > FAR
    if edge.layers == 1:
        x0, y0 = edge.source.x + WIDTH / 2, edge.source.y + edge.source.height
        x1, y1 = edge.target.x + WIDTH / 2, edge.target.y
        bend = (y1 - y0) / 2
        bends = f"{x0:.0f} {y0 + bend:.0f} {x1:.0f} {y1 - bend:.0f}"
    else:
        x0, y0 = edge.source.x + WIDTH, edge.source.y + edge.source.height - 10
        x1, y1 = edge.target.x + WIDTH, edge.target.y + 12
        side = max(x0, x1) + min(AROUND, 16 + 8 * edge.layers) * 4 / 3
        bends = f"{side:.0f} {y0:.0f} {side:.0f} {y1:.0f}"
    width = 1 + 0.28 * math.log2(1 + edge.bytes / 4096)
    hint = f"{', '.join(dict.fromkeys(edge.names))}: {bytes_text(edge.bytes)}"
    return (f'<path class="edge{" far" * far}" data-from="{edge.source.number}" '
            f'data-to="{edge.target.number}" stroke-width="{width:.1f}" '
            f'd="M{x0:.0f} {y0:.0f}C{bends} {x1:.0f} {y1:.0f}" '
            f'marker-end="url(#{tip})"><title>{escape(hint)}</title></path>')


def box(node: Node) -> str:
    parts = [f'<g class="node" data-step="{node.number}" '
             f'transform="translate({node.x:.0f} {node.y:.0f})">',
             f"<title>step {node.number}\n{escape(node.hint)}</title>",
             f'<rect width="{WIDTH}" height="{node.height}" rx="9" fill="var(--paper)" '
             'stroke="var(--line)"/>']
    y = PAD
    for kernel in node.kernels:
        parts.append(f'<g class="node {kernel.kind}"><rect class="box" x="{PAD}" y="{y}" rx="5" '
                     f'width="{WIDTH - 2 * PAD}" height="{kernel.height}"/></g>')
        parts.append(f'<text x="{2 * PAD}" y="{y + LINE}" font-weight="600">'
                     f"{escape(kernel.title)}</text>")
        for i, line in enumerate(kernel.lines):
            parts.append(f'<text class="soft" x="{2 * PAD}" y="{y + HEAD + LINE * i + 10}">'
                         f"{escape(line)}</text>")
        y += kernel.height + PAD
    parts.append(f'<text class="soft" x="{PAD}" y="{y + 9}">{node.number} &#183; '
                 f"{escape(node.foot)}</text></g>")
    return "".join(parts)


def picture(facts: Any, groups: list[Group] | None = None) -> str:
    """Draw steps, or groups of them. The picture is empty if nothing runs."""
    if groups is None:
        nodes = nodes_of(facts)
        homes = {node.number: node for node in nodes}
    else:
        nodes, homes = nodes_of_groups(groups)
    if not nodes:
        return ""
    edges = connect(facts, nodes, homes)
    width, height = place(nodes)
    width += max((min(AROUND, 16 + 8 * e.layers) for e in edges if e.layers > 1), default=0)
    name = "tip" if groups is None else "group-tip"
    tip = (f'<marker id="{name}" viewBox="0 0 8 8" refX="7" refY="4" markerWidth="7" '
           'markerHeight="7" markerUnits="userSpaceOnUse" orient="auto"><path d="M0 0L8 4L0 8z" '
           'fill="var(--soft)"/></marker>')
    return (f'<svg class="graph" xmlns="http://www.w3.org/2000/svg" width="{width:.0f}" '
            f'height="{height:.0f}" style="margin:0 auto"><defs>{tip}</defs>'
            + "".join(curve(edge, name) for edge in edges) + "".join(map(box, nodes)) + "</svg>")
