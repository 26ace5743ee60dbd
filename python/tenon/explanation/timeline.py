"""The steps of a profile over time, a row for each line of the user's program."""

from __future__ import annotations

import linecache
import re
from collections.abc import Iterator
from html import escape

from .document import cards, document, key, place, table
from .profiling import Profile, TimedLine
from .units import time_text

WIDTH, LEFT, RIGHT = 1080, 400, 120
ROW, TOP = 24, 30
MOST_ROWS = 24  # lines that take less share the last one
LETTERS = 52  # of a line of code


def line_of(where: str) -> tuple[str, int]:
    """The file and the number of a place like `train.py:31, in loss`."""
    match = re.match(r"(.*):(\d+)", where)
    return (match[1], int(match[2])) if match else ("", 0)


def code_at(where: str) -> str:
    """The text of the line at a place; the place where there is none."""
    text = linecache.getline(*line_of(where)).strip() or where or "steps of no line"
    return text if len(text) <= LETTERS else f"{text[:LETTERS - 1]}…"


def rows_of(profile: Profile) -> list[TimedLine]:
    """Return lines in program order; beyond a maximum, the fastest become one row."""
    lines = sorted(profile.lines(), key=lambda line: line_of(line.place))
    if len(lines) <= MOST_ROWS:
        return lines
    kept = sorted(lines, key=lambda line: -line.seconds)[:MOST_ROWS - 1]
    rest = [step for line in lines if line not in kept for step in line.steps]
    return [line for line in lines if line in kept] + [TimedLine("other lines", rest)]


def ticks(seconds: float) -> Iterator[float]:
    """Four to ten round times."""
    step = 10.0 ** -9
    while True:
        for factor in (1, 2, 5):
            if seconds / (step * factor) <= 10:
                yield from (n * step * factor for n in range(int(seconds / (step * factor)) + 1))
                return
        step *= 10


def timeline(profile: Profile) -> str:
    """A picture, as SVG; empty if nothing ran."""
    if not profile.steps:
        return ""
    rows = rows_of(profile)
    last = profile.steps[-1]
    first, end = profile.steps[0].began, last.began + last.seconds
    height = TOP + ROW * len(rows) + 8
    running = sum(step.seconds for step in profile.steps)

    def x(at: float) -> float:
        return LEFT + (WIDTH - LEFT - RIGHT) * (at - first) / (end - first)

    parts = [
        f'<path d="M{x(first + tick):.1f} {TOP - 8}V{height}" stroke="var(--line)"/>'
        f'<text class="soft" x="{x(first + tick):.1f}" y="{TOP - 14}" '
        f'text-anchor="middle">{time_text(tick) if tick else "0"}</text>'
        for tick in ticks(end - first)
    ]
    for i, row in enumerate(rows):
        y = TOP + ROW * i
        parts.append(f'<text class="mono" x="0" y="{y + 16}">'
                     f"{escape(code_at(row.place))}<title>{escape(row.place)}</title></text>"
                     f'<text class="soft" x="{WIDTH}" y="{y + 16}" text-anchor="end">'
                     f"{time_text(row.seconds)} · {100 * row.seconds / running:.0f} %</text>")
        for step in row.steps:
            hint = escape(f"{step.name}, {time_text(step.seconds)}\n{step.place}")
            width = max(1.0, x(step.began + step.seconds) - x(step.began))
            parts.append(f'<rect class="time {step.kind or "code"}" x="{x(step.began):.2f}" '
                         f'y="{y + 3}" width="{width:.2f}" height="{ROW - 6}" rx="1.5">'
                         f"<title>{hint}</title></rect>")
    return (f'<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 {WIDTH} {height}" '
            f'style="min-width:760px;width:100%">{"".join(parts)}</svg>')


def framed(profile: Profile) -> str:
    """The picture with what its colours mean, or nothing."""
    drawn = timeline(profile)
    colours = key() if any(step.kind for step in profile.steps) else ""
    return f'{colours}<div class="frame padded">{drawn}</div>' if drawn else ""


def page(profile: Profile) -> str:
    running = sum(step.seconds for step in profile.steps)
    shown = [(time_text(profile.seconds), "the call"), (time_text(running), "in steps"),
             (len(profile.steps), "steps"), (len(profile.lines()), "lines of the program")]
    rows = (f'<tr><td class="n" data-n="{line.seconds}">{time_text(line.seconds)}</td>'
            f'<td class="n">{100 * line.seconds / running:.1f} %</td>'
            f'<td class="n">{len(line.steps)}</td>'
            f"<td><code>{escape(code_at(line.place))}</code></td>{place(line.place)}</tr>"
            for line in sorted(profile.lines(), key=lambda line: -line.seconds))
    body = (f'{cards(shown)}<section id="timeline"><h2>Steps over time</h2>{framed(profile)}'
            '</section><section id="lines"><h2>Lines</h2>'
            + table("lines-table", ["time", "part", "steps", "line", "place"], rows) + "</section>")
    return document(profile.function, "How long its steps took, in one call.", body)
