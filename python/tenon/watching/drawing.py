"""Timelines of recordings: lanes for record, compile, run, threads and memory."""

from __future__ import annotations

import zlib
from collections.abc import Sequence

from ..explanation.units import bytes_text, time_text
from .canvas import LETTER, Canvas, Color, Points, Shapes, fitting
from .recording import Event, Recording
from .summary import summary_of

WIDTH, LEFT, RIGHT = 1200, 96, 16
PLOT = WIDTH - LEFT - RIGHT
HEAD, AXIS, LEGEND, GAP = 58, 26, 16, 10
MOST_THREADS = 8

INK: Color = (29, 36, 48)
SOFT: Color = (93, 104, 120)
RULE: Color = (228, 232, 238)
GROUND: Color = (246, 248, 250)
MEMORY: Color = (150, 190, 175)
RECORD: Color = (122, 152, 190)
FAILED: Color = (190, 60, 70)
COLORS: Sequence[Color] = ((86, 140, 200), (226, 160, 66), (104, 172, 122), (176, 122, 180),
                           (214, 112, 98), (92, 172, 178), (158, 148, 84), (132, 132, 196))


def png(*recordings: Recording) -> bytes:
    """One below the other, over the same time."""
    canvas = Points(WIDTH, _height(recordings))
    _draw(canvas, recordings)
    return canvas.png()


def svg(*recordings: Recording) -> str:
    """The same."""
    canvas = Shapes(WIDTH, _height(recordings))
    _draw(canvas, recordings)
    return canvas.svg()


def html(recording: Recording) -> str:
    from .timeline_page import page

    return page([recording])


class Lane:
    """A row of the picture: its name and its events."""

    def __init__(self, name: str, height: int, events: list[Event]) -> None:
        self.name, self.height, self.events = name, height, events


def lanes_of(recording: Recording) -> list[Lane]:
    """Those that have something to show."""
    shares: dict[int, list[Event]] = {}
    for event in recording.of("share"):
        shares.setdefault(event.thread, []).append(event)
    lanes = [Lane("record", 34, recording.of("record")),
             Lane("compile", 20, recording.of("compile_complete", "compile_failed")),
             Lane("run", 20, recording.of("run")), Lane("steps", 20, recording.of("step")),
             *(Lane(f"thread {n}", 14, shares[n]) for n in sorted(shares)[:MOST_THREADS]),
             Lane("memory", 44, recording.of("memory"))]
    return [lane for lane in lanes if lane.events]


def _height(recordings: Sequence[Recording]) -> int:
    lanes = [lane.height + GAP for r in recordings for lane in lanes_of(r)]
    return sum(lanes) + (HEAD + AXIS + LEGEND) * len(recordings) + GAP


def _draw(canvas: Canvas, recordings: Sequence[Recording]) -> None:
    seconds = max(recording.seconds for recording in recordings) or 1e-9
    top = 0
    for recording in recordings:
        top = _draw_one(canvas, recording, top, PLOT / seconds)


def _draw_one(canvas: Canvas, recording: Recording, top: int, scale: float) -> int:
    rows = dict(summary_of(recording).rows())
    canvas.text(LEFT, top + 12, fitting(recording.title or "trace", PLOT, 2 * LETTER), INK, True)
    said = "   ".join(f"{name} {value}" for name, value in rows.items())
    missing = f"   the last {recording.missing:,} events are missing" if recording.missing else ""
    canvas.text(LEFT, top + 36, fitting(said + missing, PLOT), SOFT)
    top += HEAD
    end = top + sum(lane.height + GAP for lane in lanes_of(recording))
    _draw_axis(canvas, top, end, scale)
    for lane in lanes_of(recording):
        canvas.rect(LEFT, top, PLOT, lane.height, GROUND)
        draw = {"record": _draw_rates, "memory": _draw_memory}.get(lane.name, _draw_spans)
        most = draw(canvas, lane, top, scale, recording.seconds)
        middle = top + lane.height / 2 - (10 if most else 4)
        for line, (label, color) in enumerate([(lane.name, INK), (most, SOFT)]):
            canvas.text(LEFT - 10 - LETTER * len(label), middle + 12 * line, label, color)
        top += lane.height + GAP
    _draw_legend(canvas, recording, top + AXIS - 6)
    return top + AXIS + LEGEND


def _draw_legend(canvas: Canvas, recording: Recording, top: int) -> None:
    """The steps that took longest."""
    times: dict[str, float] = {}
    for event in recording.of("step"):
        times[event.name] = times.get(event.name, 0.0) + event.seconds
    total, x = sum(times.values()), float(LEFT)
    for name, seconds in sorted(times.items(), key=lambda item: -item[1]):
        label = f"{fitting(name, 30 * LETTER)} {100 * seconds / (total or 1):.0f} %"
        if x + LETTER * len(label) > WIDTH - RIGHT or seconds < 0.01 * total:
            break
        canvas.rect(x, top, 8, 8, color_of(Event("step", 0, 0, 0, 0, False, name, "")))
        canvas.text(x + 13, top, label, SOFT)
        x += LETTER * len(label) + 32


def _draw_axis(canvas: Canvas, top: int, bottom: int, scale: float) -> None:
    step = next(s for s in _round_steps() if s * scale >= 90)
    for i in range(int(PLOT / (step * scale)) + 1):
        x = LEFT + i * step * scale
        canvas.rect(x, top - 4, 1, bottom - top, RULE)
        label = time_text(i * step) if i else "0"
        canvas.text(min(x, WIDTH - LETTER * len(label) - 2), bottom, label, SOFT)


def _round_steps() -> list[float]:
    return [m * 10.0 ** e for e in range(-9, 7) for m in (1, 2, 5)]


def color_of(event: Event) -> Color:
    """The same for equal names, in all pictures."""
    if event.kind == "compile_failed":
        return FAILED
    return COLORS[zlib.crc32(event.name.encode()) % len(COLORS)]


def _mixed(color: Color, share: float) -> Color:
    share = min(1.0, 0.15 + 0.85 * share)
    r, g, b = (round(base + (c - base) * share) for c, base in zip(color, GROUND))
    return r, g, b


def _draw_spans(canvas: Canvas, lane: Lane, top: int, scale: float, seconds: float) -> str:
    """Spans with room get a box with their name; of others, how much of a point they fill, in the
    color of those that fill most of it."""
    filled: dict[int, dict[Color, float]] = {}
    wide = []
    for event in lane.events:
        if event.seconds * scale >= 2:
            wide.append(event)
        else:
            point = filled.setdefault(min(PLOT, int(event.began * scale)), {})
            color = color_of(event)
            point[color] = point.get(color, 0.0) + event.seconds * scale
    for x, shares in filled.items():
        most = max(shares, key=lambda color: shares[color])
        canvas.rect(LEFT + x, top, 1, lane.height, _mixed(most, sum(shares.values())))
    for event in wide:
        x, width = LEFT + event.began * scale, event.seconds * scale
        canvas.rect(x, top, width - 0.5, lane.height, color_of(event))
        if label := fitting(event.name, width - 6):
            canvas.text(x + 3, top + lane.height / 2 - 4, label, (255, 255, 255))
    return ""


def _draw_rates(canvas: Canvas, lane: Lane, top: int, scale: float, seconds: float) -> str:
    """How many happened in each stretch of two points. Returns the highest rate."""
    counts: dict[int, int] = {}
    for event in lane.events:
        x = int(event.began * scale / 2)
        counts[x] = counts.get(x, 0) + 1
    most = max(counts.values())
    for x, count in counts.items():
        height = max(1.0, lane.height * count / most)
        canvas.rect(LEFT + 2 * x, top + lane.height - height, 2, height, RECORD)
    return f"<= {most / (2 / scale):,.0f}/s"


def _draw_memory(canvas: Canvas, lane: Lane, top: int, scale: float, seconds: float) -> str:
    """The highest value of each point, between them the last. Returns the highest of all."""
    most = max(max(event.value for event in lane.events), 1)
    highest: dict[int, int] = {}
    last: dict[int, int] = {}
    for event in lane.events:
        x = min(PLOT - 1, int(event.began * scale))
        highest[x] = max(highest.get(x, 0), event.value)
        last[x] = event.value
    now = lane.events[0].value
    for x in range(min(highest), int(min(PLOT, seconds * scale))):
        height = lane.height * highest.get(x, now) / most
        if height:
            canvas.rect(LEFT + x, top + lane.height - height, 1, height, MEMORY)
        now = last.get(x, now)
    return f"<= {bytes_text(most)}"
