"""What pictures are drawn on: points, for PNG, or shapes, for SVG. Both look the same."""

from __future__ import annotations

import struct
import zlib
from html import escape
from typing import Protocol

from .glyphs import rows_of

Color = tuple[int, int, int]
LETTER = 6  # the width of a small letter, in both


class Canvas(Protocol):
    """Distances are in points, from the upper left corner; `large` letters are twice as large."""

    def rect(self, x: float, y: float, width: float, height: float, color: Color) -> None: ...
    def text(self, x: float, y: float, text: str, color: Color, large: bool = False) -> None: ...


def fitting(text: str, width: float, letter: float = LETTER) -> str:
    """As much of `text` as has room; nothing where that would say nothing."""
    most = int(width / letter)
    if len(text) <= most:
        return text
    return f"{text[:most - 1]}…" if most >= 4 else ""


class Points:
    """Makes PNG. Everything is drawn twice as large, for screens of today."""

    SCALE = 2

    def __init__(self, width: int, height: int) -> None:
        self._width, self._height = self.SCALE * width, self.SCALE * height
        self._rows = [bytearray(b"\xff" * 3 * self._width) for _ in range(self._height)]

    def rect(self, x: float, y: float, width: float, height: float, color: Color) -> None:
        left, right = self._between(x, x + width, self._width)
        top, bottom = self._between(y, y + height, self._height)
        line = bytes(color) * (right - left)
        for row in self._rows[top:bottom]:
            row[3 * left:3 * right] = line

    def _between(self, first: float, last: float, most: int) -> tuple[int, int]:
        begin = min(max(round(self.SCALE * first), 0), most)
        return begin, min(max(round(self.SCALE * last), begin + 1), most)

    def text(self, x: float, y: float, text: str, color: Color, large: bool = False) -> None:
        size = 2 if large else 1
        for place, letter in enumerate(text):
            for down, row in enumerate(rows_of(letter)):
                for across in range(5):
                    if row >> (4 - across) & 1:
                        self.rect(x + size * (LETTER * place + across), y + size * down, size, size,
                                  color)

    def png(self) -> bytes:
        def chunk(kind: bytes, data: bytes) -> bytes:
            checksum = zlib.crc32(kind + data)
            return struct.pack(">I", len(data)) + kind + data + struct.pack(">I", checksum)

        header = struct.pack(">IIBBBBB", self._width, self._height, 8, 2, 0, 0, 0)
        data = zlib.compress(b"".join(b"\0" + row for row in self._rows), 6)
        return (b"\x89PNG\r\n\x1a\n" + chunk(b"IHDR", header) + chunk(b"IDAT", data)
                + chunk(b"IEND", b""))


class Shapes:
    """Makes SVG."""

    def __init__(self, width: int, height: int) -> None:
        self._parts = [f'<svg xmlns="http://www.w3.org/2000/svg" width="{width}" height="{height}" '
                       f'viewBox="0 0 {width} {height}" font-family="ui-monospace, Menlo, '
                       f'Consolas, monospace"><rect width="100%" height="100%" fill="#fff"/>']

    def rect(self, x: float, y: float, width: float, height: float, color: Color) -> None:
        self._parts.append(f'<rect x="{x:.2f}" y="{y:.2f}" width="{max(width, 0.5):.2f}" '
                           f'height="{max(height, 0.5):.2f}" fill="{_hex(color)}"/>')

    def text(self, x: float, y: float, text: str, color: Color, large: bool = False) -> None:
        size = 10 * (2 if large else 1)
        self._parts.append(f'<text x="{x:.1f}" y="{y + 0.75 * size:.1f}" font-size="{size}" '
                           f'fill="{_hex(color)}" xml:space="preserve">{escape(text)}</text>')

    def svg(self) -> str:
        return "\n".join([*self._parts, "</svg>\n"])


def _hex(color: Color) -> str:
    return "#%02x%02x%02x" % color
