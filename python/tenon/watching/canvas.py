"""Canvases for pictures: pixels for PNG, shapes for SVG. Both look the same."""

from __future__ import annotations

import struct
import zlib
from html import escape
from typing import Protocol

from .colors import DARK, PAPER, THEME, Color
from .glyphs import BOLD, PEN, shape_of

LETTER = 6.5  # the width of a letter, in both
TITLE = 1.5  # how much larger those of titles are


class Canvas(Protocol):
    """Distances are in points, from the upper left corner."""

    def rect(self, x: float, y: float, width: float, height: float, color: Color,
             opacity: float = 1.0) -> None: ...
    def text(self, x: float, y: float, text: str, color: Color, size: float = 1.0) -> None: ...


def fitting(text: str, width: float, letter: float = LETTER) -> str:
    """Return as much of `text` as fits, or "" if too little would remain."""
    most = int(width / letter)
    if len(text) <= most:
        return text
    return f"{text[:most - 1]}…" if most >= 4 else ""


class Points:
    """Makes PNG. Everything is drawn twice as large, for screens of today."""

    SCALE = 2

    def __init__(self, width: int, height: int) -> None:
        self._width, self._height = self.SCALE * width, self.SCALE * height
        self._rows = [bytearray(bytes(PAPER) * self._width) for _ in range(self._height)]

    def rect(self, x: float, y: float, width: float, height: float, color: Color,
             opacity: float = 1.0) -> None:
        left, right = self._between(x, x + width, self._width)
        top, bottom = self._between(y, y + height, self._height)
        if left == right or top == bottom:
            return
        if opacity < 1:
            color = _mixed(self._rows[top][3 * left:3 * left + 3], color, opacity)
        line = bytes(color) * (right - left)
        for row in self._rows[top:bottom]:
            row[3 * left:3 * right] = line

    def _between(self, first: float, last: float, most: int) -> tuple[int, int]:
        begin = min(max(round(self.SCALE * first), 0), most)
        return begin, min(max(round(self.SCALE * last), begin + 1), most)

    def text(self, x: float, y: float, text: str, color: Color, size: float = 1.0) -> None:
        step = self.SCALE * LETTER * size
        top, pen = round(self.SCALE * y), BOLD if size > 1 else PEN
        for place, letter in enumerate(text):
            left = round(self.SCALE * x + step * place)
            for across, down, share in shape_of(letter, step / 6, pen):
                if 0 <= left + across < self._width and 0 <= top + down < self._height:
                    row, at = self._rows[top + down], 3 * (left + across)
                    row[at:at + 3] = bytes(_mixed(row[at:at + 3], color, share))

    def png(self) -> bytes:
        def chunk(kind: bytes, data: bytes) -> bytes:
            checksum = zlib.crc32(kind + data)
            return struct.pack(">I", len(data)) + kind + data + struct.pack(">I", checksum)

        header = struct.pack(">IIBBBBB", self._width, self._height, 8, 2, 0, 0, 0)
        data = zlib.compress(b"".join(b"\0" + row for row in self._rows), 6)
        return (b"\x89PNG\r\n\x1a\n" + chunk(b"IHDR", header) + chunk(b"IDAT", data)
                + chunk(b"IEND", b""))


class Shapes:
    """Makes SVG, which follows the reader's choice of light or dark."""

    def __init__(self, width: int, height: int) -> None:
        light = "".join(f".{name}{{fill:{hex_of(color)}}}" for color, name in THEME.items())
        dark = "".join(f".{name}{{fill:{hex_of(color)}}}" for name, color in DARK.items())
        self._parts = [f'<svg xmlns="http://www.w3.org/2000/svg" width="{width}" height="{height}" '
                       f'viewBox="0 0 {width} {height}" shape-rendering="crispEdges" '
                       f'font-family="ui-monospace, Menlo, Consolas, \'DejaVu Sans Mono\', '
                       f'monospace"><style>{light}@media '
                       f'(prefers-color-scheme:dark){{{dark}}}</style>'
                       f'<rect width="100%" height="100%" class="paper"/>']

    def rect(self, x: float, y: float, width: float, height: float, color: Color,
             opacity: float = 1.0) -> None:
        part = f' fill-opacity="{opacity:.2f}"' if opacity < 1 else ""
        self._parts.append(f'<rect x="{x:.2f}" y="{y:.2f}" width="{max(width, 0.5):.2f}" '
                           f'height="{max(height, 0.5):.2f}" {_fill(color)}{part}/>')

    def text(self, x: float, y: float, text: str, color: Color, size: float = 1.0) -> None:
        height = LETTER / 0.6 * size  # letters of these fonts are 0.6 of their height wide
        weight = ' font-weight="600"' if size > 1 else ""
        self._parts.append(f'<text x="{x:.1f}" y="{y + 0.73 * height:.1f}" font-size="{height:.2f}"'
                           f' {_fill(color)}{weight} xml:space="preserve">{escape(text)}</text>')

    def svg(self) -> str:
        return "\n".join([*self._parts, "</svg>\n"])


def _mixed(below: bytes | bytearray, above: Color, share: float) -> Color:
    r, g, b = (round(base + (color - base) * share) for base, color in zip(below, above))
    return r, g, b


def _fill(color: Color) -> str:
    return f'class="{THEME[color]}"' if color in THEME else f'fill="{hex_of(color)}"'


def hex_of(color: Color) -> str:
    return "#" + "".join(f"{part:02x}" for part in color)
