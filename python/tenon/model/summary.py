"""Models as tables: blocks, shapes, parameters, work and memory."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from html import escape
from typing import Any

from .. import _core
from ..explanation.units import bytes_text

HEADS = ("block", "kind", "output", "parameters", "FLOPs", "bytes")
NUMBERS = 3  # of the last columns


@dataclass(frozen=True)
class BlockSummary:
    """A row: a block, or a model inside the model with all that is in it."""

    path: str
    kind: str
    settings: str
    inputs: tuple[tuple[Any, ...], ...]
    outputs: tuple[tuple[Any, ...], ...]
    parameters: int
    parameter_bytes: int
    flops: float
    bytes: int

    @property
    def depth(self) -> int:
        return self.path.count(".")


class Summary(Sequence[BlockSummary]):
    """The blocks of a model, row by row; prints as a table, also in notebooks.

    `bytes` counts the outputs of blocks; a multiply-add counts as two FLOPs.
    """

    def __init__(self, name: str, rows: Iterable[BlockSummary], sizes: dict[str, int]) -> None:
        self.name = name
        self.rows = tuple(rows)
        self.sizes = sizes

    def __len__(self) -> int:
        return len(self.rows)

    def __getitem__(self, index: Any) -> Any:
        return self.rows[index]

    @property
    def parameters(self) -> int:
        return sum(row.parameters for row in self.rows)

    @property
    def parameter_bytes(self) -> int:
        return sum(row.parameter_bytes for row in self.rows)

    @property
    def flops(self) -> float:
        return sum(row.flops for row in self.rows)

    @property
    def bytes(self) -> int:
        return sum(row.bytes for row in self.rows)

    def _cells(self) -> list[tuple[str, ...]]:
        return [
            (
                row.path,
                f"{row.kind}({row.settings})" if row.settings else row.kind,
                " ".join(map(_shape, row.outputs)),
                f"{row.parameters:,}" if row.parameters else "-",
                count_text(row.flops),
                bytes_text(row.bytes),
            )
            for row in self.rows
        ]

    def _total(self) -> tuple[str, ...]:
        return (
            "total",
            f"{len(self.rows)} block{'s' * (len(self.rows) != 1)}",
            "",
            f"{self.parameters:,}",
            count_text(self.flops),
            bytes_text(self.bytes),
        )

    @property
    def remark(self) -> str:
        remark = f"parameters take {bytes_text(self.parameter_bytes)}"
        if self.sizes:
            taken = ", ".join(f"{name} = {value}" for name, value in self.sizes.items())
            remark += f"; work and bytes are for {taken}"
        return remark

    def __str__(self) -> str:
        lines = [HEADS, *self._cells(), self._total()]
        widths = [max(len(line[i]) for line in lines) for i in range(len(HEADS))]
        texts = []
        for line in lines:
            left = [cell.ljust(w) for cell, w in zip(line[:-NUMBERS], widths)]
            right = [cell.rjust(w) for cell, w in zip(line[-NUMBERS:], widths[-NUMBERS:])]
            texts.append("  ".join(left + right).rstrip())
        rule = "-" * (sum(widths) + 2 * (len(HEADS) - 1))
        return "\n".join([self.name, texts[0], rule, *texts[1:-1], rule, texts[-1], self.remark])

    __repr__ = __str__

    def _repr_html_(self) -> str:
        def line(cells: tuple[str, ...], tag: str) -> str:
            number = len(cells) - NUMBERS
            return "".join(
                f"<{tag}{' style=text-align:right' * (i >= number)}>{escape(cell)}</{tag}>"
                for i, cell in enumerate(cells)
            )

        rows = "".join(f"<tr>{line(cells, 'td')}</tr>" for cells in self._cells())
        return (
            f"<table><caption>{escape(self.name)}: {escape(self.remark)}</caption>"
            f"<thead><tr>{line(HEADS, 'th')}</tr></thead><tbody>{rows}</tbody>"
            f"<tfoot><tr>{line(self._total(), 'th')}</tr></tfoot></table>"
        )


def count_text(count: float) -> str:
    """`1.5 M`, with the prefix that fits."""
    for prefix in ("", " k", " M", " G"):
        if count < 1000:
            return f"{count:.3g}{prefix}" if count else "-"
        count /= 1000
    return f"{count:.4g} T"


def _shape(shape: tuple[Any, ...]) -> str:
    return f"[{', '.join(map(str, shape))}]"


def summarize(name: str, resolved: _core.ResolvedModel, depth: int | None = None) -> Summary:
    """The blocks of a model; those deeper than `depth` models are added up into one row."""
    shapes = [shape for _, _, shape, _ in resolved.wires]
    rows: dict[str, BlockSummary] = {}
    for block, cost in zip(resolved.blocks, resolved.costs):
        path, kind, settings, reads, writes, _ = block
        outputs = tuple(shapes[w] for w in writes)
        inputs = tuple(shapes[w] for w in reads if w >= 0)
        parameters, parameter_bytes, written, flops = cost
        parts = path.split(".")
        if depth is not None and len(parts) > depth:
            path, kind, settings = ".".join(parts[:depth]), "Model", ""
        before = rows.get(path)
        if before is not None:
            inputs = before.inputs
            parameters += before.parameters
            parameter_bytes += before.parameter_bytes
            written += before.bytes
            flops += before.flops
        rows[path] = BlockSummary(
            path, kind, settings, inputs, outputs, parameters, parameter_bytes, flops, written
        )
    return Summary(name, rows.values(), resolved.tried_sizes)
