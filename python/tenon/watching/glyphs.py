"""Letters for pictures that are made of points.

A letter is seven rows of five bits, the highest on the left; more rows hang below the line. Points
that touch are joined by lines, which are drawn in any size with soft edges.
"""

from __future__ import annotations

import functools
import math
from collections.abc import Iterator

LETTERS = {
    " ": "", "!": "04040404040004", '"': "0a0a0a", "#": "0a0a1f0a1f0a0a", "$": "040f140e051e04",
    "%": "18190204081303", "&": "0c12140815120d", "'": "040404", "(": "02040808080402",
    ")": "08040202020408", "*": "0004150e1504", "+": "0004041f0404", ",": "00000000000c0408",
    "-": "0000001f", ".": "00000000000c0c", "/": "00010204081000",
    "0": "0e11131519110e", "1": "040c040404040e", "2": "0e11010204081f", "3": "1f02040201110e",
    "4": "02060a121f0202", "5": "1f101e0101110e", "6": "0608101e11110e", "7": "1f010204080808",
    "8": "0e11110e11110e", "9": "0e11110f01020c", ":": "000c0c000c0c", ";": "000c0c000c0408",
    "<": "02040810080402", "=": "00001f001f", ">": "08040201020408", "?": "0e110102040004",
    "@": "0e11010d15150e", "A": "0e11111f111111", "B": "1e11111e11111e", "C": "0e11101010110e",
    "D": "1c12111111121c", "E": "1f10101e10101f", "F": "1f10101e101010", "G": "0e11101711110f",
    "H": "1111111f111111", "I": "0e04040404040e", "J": "0702020202120c", "K": "11121418141211",
    "L": "1010101010101f", "M": "111b1515111111", "N": "11111915131111", "O": "0e11111111110e",
    "P": "1e11111e101010", "Q": "0e11111115120d", "R": "1e11111e141211", "S": "0f10100e01011e",
    "T": "1f040404040404", "U": "1111111111110e", "V": "11111111110a04", "W": "1111111515150a",
    "X": "11110a040a1111", "Y": "1111110a040404", "Z": "1f01020408101f", "[": "0e08080808080e",
    "\\": "00100804020100", "]": "0e02020202020e", "^": "040a11", "_": "0000000000001f",
    "`": "080402", "a": "00000e010f110f", "b": "1010161911111e", "c": "00000e1010110e",
    "d": "01010d1311110f", "e": "00000e111f100e", "f": "0609081c080808", "g": "00000f1111110f010e",
    "h": "10101619111111", "i": "04000c0404040e", "j": "02000602020202120c", "k": "10101214181412",
    "l": "0c04040404040e", "m": "00001a15151111", "n": "00001619111111", "o": "00000e1111110e",
    "p": "00001e1111111e1010",
    "q": "00000f1111110f0101", "r": "00001619101010", "s": "00000e100e011e",
    "t": "08081c08080906", "u": "0000111111130d", "v": "00001111110a04", "w": "0000111115150a",
    "x": "0000110a040a11", "y": "0000111111110f010e", "z": "00001f0204081f", "{": "02040408040402",
    "|": "04040404040404", "}": "08040402040408", "~": "00000d1600",
    "…": "00000000000015", "·": "0000000404", "×": "00110a040a11", "µ": "00001111131d1010",
    "≤": "030c100c03001f",
}
PEN, BOLD = 0.47, 0.66  # half of a line's width
Line = tuple[float, float, float, float]


def rows_of(letter: str) -> list[int]:
    """The rows of a letter; of a box for those that are not here."""
    text = LETTERS.get(letter, "1f11111111111f")
    return [int(text[i:i + 2], 16) for i in range(0, len(text), 2)]


@functools.cache
def shape_of(letter: str, scale: float, pen: float = PEN) -> tuple[tuple[int, int, float], ...]:
    """The points of a picture that a letter covers, and how much of each; `scale` is the distance
    of the points of its rows."""
    lines = list(_lines(rows_of(letter)))
    covered = []
    for down in range(math.ceil(10 * scale)):
        for across in range(math.ceil(6 * scale)):
            x, y = (across + 0.5) / scale - 0.5, (down + 0.5) / scale - 0.5
            near = min((_distance(x, y, line) for line in lines), default=math.inf)
            share = min(1.0, (pen - near) * scale + 0.5)
            if share > 0.02:
                covered.append((across, down, share))
    return tuple(covered)


def _lines(rows: list[int]) -> Iterator[Line]:
    points = {(x, y) for y, row in enumerate(rows) for x in range(5) if row >> (4 - x) & 1}
    for x, y in points:
        yield x, y, x, y
        for dx, dy in ((1, 0), (0, 1), (1, 1), (-1, 1)):
            corner = dx and dy and {(x + dx, y), (x, y + dy)} & points  # joined there already
            if (x + dx, y + dy) in points and not corner:
                yield x, y, x + dx, y + dy


def _distance(x: float, y: float, line: Line) -> float:
    x1, y1, x2, y2 = line
    dx, dy = x2 - x1, y2 - y1
    along = max(0.0, min(1.0, ((x - x1) * dx + (y - y1) * dy) / ((dx * dx + dy * dy) or 1)))
    return math.hypot(x - x1 - along * dx, y - y1 - along * dy)
