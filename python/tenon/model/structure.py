"""The structure that pictures of models show: nested blocks, and the flows between them."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterator
from dataclasses import dataclass, field
from typing import Any

from .. import _core
from .summary import count_text


@dataclass
class Box:
    """A block, a model with what is in it, or an end of the whole model."""

    path: str
    kind: str
    lines: list[str] = field(default_factory=list)
    hint: str = ""
    inside: list[Box] = field(default_factory=list)
    layer: int = 0  # how many boxes of the model around it come before it
    x: float = 0
    y: float = 0
    width: float = 0
    height: float = 0

    @property
    def title(self) -> str:
        return self.path.rpartition(".")[2]

    def rows(self) -> list[list[Box]]:
        """Return the boxes inside, by layer."""
        rows: dict[int, list[Box]] = defaultdict(list)
        for box in self.inside:
            rows[box.layer].append(box)
        return [rows[layer] for layer in sorted(rows)]

    def all_inside(self) -> Iterator[Box]:
        for box in self.inside:
            yield box
            yield from box.all_inside()

    def blocks(self) -> int:
        """Return the number of blocks inside, at any depth."""
        return sum(not box.inside for box in self.all_inside())


@dataclass(frozen=True)
class Flow:
    """A value that one box writes and another reads."""

    source: str
    target: str
    name: str
    shape: str


@dataclass
class Structure:
    """A model as one box, and the flows between the boxes in it that hold no others."""

    whole: Box
    flows: list[Flow]


def shape_text(shape: tuple[Any, ...]) -> str:
    return "\u00d7".join(map(str, shape)) or "scalar"


def _says(path: str, kind: str) -> bool:
    """Whether the name of a block tells its kind: "batch_norm2d_1" that of BatchNorm2d."""
    name = path.rpartition(".")[2].replace("_", "")
    return name.startswith(kind.lower()) and name[len(kind) :].isdigit() or name == kind.lower()


def structure_of(name: str, resolved: _core.ResolvedModel) -> Structure:
    wires = resolved.wires
    whole = Box("", name)
    flows: list[Flow] = []
    writer: dict[int, str] = {}
    number = {wire[0]: w for w, wire in enumerate(wires)}
    for key, role, shape, dtype in resolved.open:
        if role == "input":
            writer[number[key]] = f"in:{key}"
            whole.inside.append(Box(f"in:{key}", "input", [key, f"{shape_text(shape)} {dtype}"]))
    for block, cost in zip(resolved.blocks, resolved.costs):
        path, kind, settings, reads, writes, place = block
        lines = [f"{kind}({settings})"] if settings else [] if _says(path, kind) else [kind]
        lines += [shape_text(wires[w][2]) for w in writes[:2]]
        if cost[0]:
            lines.append(f"{cost[0]:,} parameters")
        hint = f"{path}\n{count_text(cost[3])} FLOPs\n{place}"
        _container(whole, path).inside.append(Box(path, kind, lines, hint))
        flows += [
            Flow(writer[w], path, wires[w][0], shape_text(wires[w][2]))
            for w in reads
            if w in writer
        ]
        writer.update(dict.fromkeys(writes, path))
    for key, _, shape, dtype in resolved.outputs:
        box = Box(f"out:{key}", "output", [key, f"{shape_text(shape)} {dtype}"])
        whole.inside.append(box)
        flows.append(Flow(writer[number[key]], box.path, key, shape_text(shape)))
    _layer(whole, flows)
    return Structure(whole, flows)


def _container(whole: Box, path: str) -> Box:
    """The innermost model around the block of this path; made where it is new."""
    parts = path.split(".")[:-1]
    box = whole
    for depth in range(len(parts)):
        here = ".".join(parts[: depth + 1])
        if not box.inside or box.inside[-1].path != here:
            found = next((b for b in box.inside if b.path == here), None)
            if found is None:
                found = Box(here, "Model")
                box.inside.append(found)
            box = found
        else:
            box = box.inside[-1]
    return box


def _layer(whole: Box, flows: list[Flow]) -> None:
    """Puts every box below those of the same model that it reads from."""
    parents: dict[str, list[Box]] = {}  # of a leaf: the boxes around it, from outside, and itself

    def visit(box: Box, around: list[Box]) -> None:
        if not box.inside:
            parents[box.path] = around + [box]
        for inner in box.inside:
            visit(inner, around + [box])

    visit(whole, [])
    reads: dict[int, list[Box]] = defaultdict(list)  # by box: those beside it that it reads
    for flow in flows:
        for a, b in zip(parents[flow.source], parents[flow.target]):
            if a is not b:
                reads[id(b)].append(a)
                break

    done: set[int] = set()

    def settle(first: Box) -> None:
        stack = [first]
        while stack:
            box = stack[-1]
            # Models that feed each other in turns have no order: what is under way counts as above.
            waiting = [b for b in reads[id(box)] if id(b) not in done and b not in stack]
            if waiting:
                stack.append(waiting[0])
                continue
            box.layer = max((b.layer + 1 for b in reads[id(box)] if id(b) in done), default=0)
            done.add(id(stack.pop()))

    def settle_inside(box: Box) -> None:
        for inner in box.inside:
            if id(inner) not in done:
                settle(inner)
            settle_inside(inner)

    settle_inside(whole)
    last = max((box.layer for box in whole.inside), default=0)
    for box in whole.inside:
        if box.kind == "output" and box.path.startswith("out:"):
            box.layer = max(box.layer, last)
