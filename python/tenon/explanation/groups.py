"""The steps of a plan by what the user wrote: modules by their paths, then lines of source."""

from __future__ import annotations

import re
from collections.abc import Iterator
from dataclasses import dataclass, field
from typing import Any

MOST_BOXES = 24  # of a picture of groups


@dataclass
class Group:
    """A module, or a line of the program, with the steps that come from it."""

    title: str  # "attn" inside of "blocks[0]", or "train.py:31, in loss"
    path: str  # "blocks[0].attn"; of a line that of its module
    steps: list[Any] = field(default_factory=list)  # not those of `inside`
    inside: dict[str, Group] = field(default_factory=dict)
    is_line: bool = False
    is_open: bool = False  # its modules are shown instead of it

    def all_steps(self) -> Iterator[Any]:
        yield from self.steps
        for group in self.inside.values():
            yield from group.all_steps()

    def modules(self) -> list[Group]:
        """Return the groups inside, if some of them are modules."""
        inside = list(self.inside.values())
        return inside if not all(group.is_line for group in inside) else []

    @property
    def bytes(self) -> int:
        return sum(step.bytes_read + step.bytes_written for step in self.all_steps())


def components(path: str) -> list[str]:
    """`["blocks[0]", "attn"]` of `blocks[0].attn`; keys in brackets may hold dots."""
    return re.findall(r"(?:[^.\[]|\[[^\]]*\])+", path)


def tree(facts: Any) -> Group:
    """Groups in the order in which their first steps run."""
    root = Group(facts.function, "")
    for step in facts.steps:
        group, path = root, ""
        for part in components(step.module):
            path = f"{path}.{part}" if path else part
            group = group.inside.setdefault(part, Group(part, path))
        line = step.place or "no line of the program"
        group = group.inside.setdefault(f"\n{line}", Group(line, path, is_line=True))
        group.steps.append(step)
    return root


def flat(root: Group) -> list[Group]:
    """Groups that share the steps among them: the most detailed modules that are not too many."""
    shown = list(root.inside.values())
    while True:
        deeper = [inner for group in shown for inner in group.modules() or [group]]
        if len(deeper) == len(shown) or len(deeper) > MOST_BOXES:
            return shown
        for group in shown:
            group.is_open = bool(group.modules())
        shown = deeper
