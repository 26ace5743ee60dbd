"""Timelines of recordings: lanes for record, compile, run, threads and memory."""

from __future__ import annotations

import itertools
from collections.abc import Sequence

from ..explanation.units import bytes_text, time_text
from .canvas import LETTER, TITLE, Canvas, Points, Shapes, fitting
from .colors import (
    COLLECTIVE,
    COMPILED,
    GROUND,
    INK,
    MARK,
    MEMORY,
    RECORD,
    RULE,
    SOFT,
    WAITING,
    Color,
    Palette,
    ink_on,
    legend_of,
)
from .recording import Event, Recording
from .recording_summary import figures, gain
from .worker_lanes import MOST_WORKERS, events_of_workers, meetings, workers_of

WIDTH, LEFT, RIGHT = 1200, 112, 20
PLOT = WIDTH - LEFT - RIGHT
HEAD, AXIS, LEGEND, GAP, NOTHING, NOTES = 66, 34, 18, 8, 48, 16
MOST_THREADS = 8
MOST_LINES = 400  # between workers
MARK_BELOW, MARK_HEIGHT = 6, 2  # of the line in runs of compiled code, from below


def png(*recordings: Recording) -> bytes:
    """One below the other, over the same time."""
    picture = Picture(recordings)
    canvas = Points(WIDTH, picture.height)
    picture.draw(canvas)
    return canvas.png()


def svg(*recordings: Recording) -> str:
    """The same."""
    picture = Picture(recordings)
    canvas = Shapes(WIDTH, picture.height)
    picture.draw(canvas)
    return canvas.svg()


class Lane:
    """A row of the picture: its name and its events."""

    def __init__(self, name: str, height: int, events: list[Event], worker: int = -1) -> None:
        self.name, self.height, self.events, self.worker = name, height, events, worker


def lanes_of(recording: Recording) -> list[Lane]:
    """Return the lanes that have something to show."""
    shares: dict[int, list[Event]] = {}
    for event in recording.of("share"):
        shares.setdefault(event.thread, []).append(event)
    workers = events_of_workers(recording)
    steps = [event for event in recording.of("step") if event.worker not in workers]
    lanes = [Lane("ops" if recording.plain else "record", 34, recording.of("record")),
             Lane("compile", 20, recording.of("compile_complete", "compile_failed")),
             Lane("run", 24, recording.of("run")), Lane("steps", 24, steps),
             *(Lane(f"worker {n}", 24, events, n) for n, events in workers.items()),
             *(Lane(f"thread {n}", 14, shares[n]) for n in sorted(shares)[:MOST_THREADS]),
             Lane("memory", 44, recording.of("memory"))]
    return [lane for lane in lanes if lane.events]


def notes_of(recording: Recording) -> list[str]:
    """Return notes about events and lanes that are not shown."""
    threads = len({event.thread for event in recording.of("share")})
    notes = []
    if recording.missing:
        notes.append(f"the last {recording.missing:,} events are missing")
    if threads > MOST_THREADS:
        notes.append(f"{MOST_THREADS} of {threads} threads are shown")
    if (workers := len(workers_of(recording))) > MOST_WORKERS:
        notes.append(f"{MOST_WORKERS} of {workers} workers are shown")
    if recording.plain:
        notes.append("an instruction log: runs and memory are not known")
    return notes


class Picture:
    """Recordings, one below the other."""

    def __init__(self, recordings: Sequence[Recording]) -> None:
        self._recordings = recordings
        self._palette = Palette(recordings)
        self._scale = PLOT / (max(recording.seconds for recording in recordings) or 1e-9)
        self.height = sum(map(self._height_of, recordings)) + GAP

    def _height_of(self, recording: Recording) -> int:
        lanes = sum(lane.height + GAP for lane in lanes_of(recording)) or NOTHING
        legend = LEGEND * len(self._legend_lines(recording))
        return _head_height(recording) + lanes + AXIS + legend + GAP

    def draw(self, canvas: Canvas) -> None:
        top = 0
        for number, recording in enumerate(self._recordings):
            compared = number == 1 and len(self._recordings) == 2
            said = gain(self._recordings[0], recording) if compared else ""
            self._draw_one(canvas, recording, top, said)
            top += self._height_of(recording)

    def _draw_one(self, canvas: Canvas, recording: Recording, top: int, said: str) -> None:
        _draw_head(canvas, recording, top, said)
        top += _head_height(recording)
        lanes = lanes_of(recording)
        bottom = top + (sum(lane.height + GAP for lane in lanes) or NOTHING)
        width = max(1.0, recording.seconds * self._scale)
        at = top
        for lane in lanes:
            canvas.rect(LEFT, at, width, lane.height, GROUND)
            at += lane.height + GAP
        if lanes:
            _draw_axis(canvas, top, bottom, self._scale)
        else:
            canvas.rect(LEFT, top, PLOT, NOTHING, GROUND)
            canvas.text(LEFT + 12, top + NOTHING / 2 - 4, "nothing was recorded", SOFT)
        first = top
        for lane in lanes:
            draw = {"record": self._draw_rates, "memory": self._draw_memory}.get(
                lane.events[0].kind, self._draw_spans)
            _draw_label(canvas, lane, top, draw(canvas, lane, top, recording.seconds))
            top += lane.height + GAP
        self._draw_meetings(canvas, recording, lanes, first)
        self._draw_legend(canvas, recording, bottom + AXIS)

    def _draw_meetings(self, canvas: Canvas, recording: Recording, lanes: list[Lane],
                       top: int) -> None:
        """A line through the workers of a collective where the last of them came, and a mark on
        each. Where lines would touch, the first stands for all."""
        tops: dict[int, int] = {}
        for lane in lanes:
            tops[lane.worker] = top
            top += lane.height + GAP
        drawn: set[tuple[int, tuple[int, ...]]] = set()
        for meeting in meetings(recording):
            shown = [worker for worker in meeting.workers if worker in tops and worker >= 0]
            x = int(meeting.time * self._scale) // 3 * 3
            if len(shown) < 2 or (x, tuple(shown)) in drawn or len(drawn) == MOST_LINES:
                continue
            drawn.add((x, tuple(shown)))
            first, last = tops[shown[0]], tops[shown[-1]]
            canvas.rect(LEFT + x, first + 4, 1, last - first + 16, COLLECTIVE)
            for worker in shown:
                canvas.rect(LEFT + x - 2, tops[worker] + 9, 5, 5, COLLECTIVE)

    def _legend_lines(self, recording: Recording) -> list[tuple[str, list[tuple[str, Color]]]]:
        """The legend in lines that fit, of which the first of a lane has its name."""
        lines: list[tuple[str, list[tuple[str, Color]]]] = []
        for name, entries in legend_of(recording, self._palette):
            room = 0.0
            for number, (text, color) in enumerate(entries):
                label = fitting(text, 40 * LETTER)
                if room < 15 + LETTER * len(label):
                    lines.append(("" if number else name, []))
                    room = PLOT
                lines[-1][1].append((label, color))
                room -= LETTER * len(label) + 36
        return lines

    def _draw_legend(self, canvas: Canvas, recording: Recording, top: int) -> None:
        for name, entries in self._legend_lines(recording):
            canvas.text(LEFT - 12 - LETTER * len(name), top, name, SOFT)
            x = float(LEFT)
            for label, color in entries:
                canvas.rect(x, top - 1, 10, 10, color)
                if color == COMPILED:
                    canvas.rect(x, top + 5, 10, MARK_HEIGHT, MARK)
                canvas.text(x + 15, top, label, SOFT)
                x += LETTER * len(label) + 36
            top += LEGEND

    def _draw_spans(self, canvas: Canvas, lane: Lane, top: int, seconds: float) -> str:
        """Spans with room get a box with their name; of others, how much of a point they fill, in
        the color of those that fill most of it."""
        filled: dict[int, dict[Color, float]] = {}
        wide = []
        for event in lane.events:
            if event.seconds * self._scale >= 2:
                wide.append(event)
            else:
                point = filled.setdefault(min(PLOT - 1, int(event.began * self._scale)), {})
                color = self._palette.of(event)
                point[color] = point.get(color, 0.0) + event.seconds * self._scale
        for column, shares in filled.items():
            most = max(shares, key=lambda color: shares[color])
            opacity = min(1.0, 0.35 + 0.65 * sum(shares.values()))
            self._draw_box(canvas, LEFT + column, top, 1, lane.height, most, opacity)
        for event in wide:
            x, width = LEFT + event.began * self._scale, event.seconds * self._scale
            color = self._palette.of(event)
            self._draw_box(canvas, x, top, width - 0.5, lane.height, color, 1.0)
            if color == WAITING:
                continue
            if label := fitting(event.name, width - 8):
                canvas.text(x + 4, top + lane.height / 2 - 4, label, ink_on(color))
        return ""

    @staticmethod
    def _draw_box(canvas: Canvas, x: float, top: int, width: float, height: int, color: Color,
                  opacity: float) -> None:
        canvas.rect(x, top, width, height, color, opacity)
        if color == COMPILED:
            canvas.rect(x, top + height - MARK_BELOW, width, MARK_HEIGHT, MARK)
        if color == WAITING:  # hatched, so that it is seen without color too
            for stripe in range(1, int(width), 4):
                canvas.rect(x + stripe, top, 1, height, COLLECTIVE, 0.45)

    def _draw_rates(self, canvas: Canvas, lane: Lane, top: int, seconds: float) -> str:
        """Draw the number of events for every two pixels, and return the highest rate."""
        counts: dict[int, int] = {}
        compiled: dict[int, int] = {}
        for event in lane.events:
            x = min(PLOT // 2 - 1, int(event.began * self._scale / 2))
            counts[x] = counts.get(x, 0) + 1
            compiled[x] = compiled.get(x, 0) + event.compiled
        most = max(counts.values())
        for x, count in counts.items():
            height = max(1.0, lane.height * count / most)
            color = COMPILED if 2 * compiled[x] > count else RECORD
            canvas.rect(LEFT + 2 * x, top + lane.height - height, 2, height, color)
        return f"≤ {count_text(most * self._scale / 2)}/s"

    def _draw_memory(self, canvas: Canvas, lane: Lane, top: int, seconds: float) -> str:
        """The highest value of each point, between them the last. Returns the highest of all."""
        most = max(max(event.value for event in lane.events), 1)
        highest: dict[int, int] = {}
        last: dict[int, int] = {}
        for event in lane.events:
            x = min(PLOT - 1, int(event.began * self._scale))
            highest[x] = max(highest.get(x, 0), event.value)
            last[x] = event.value
        now, values = lane.events[0].value, []
        for x in range(min(highest), int(min(PLOT, seconds * self._scale))):
            values.append(highest.get(x, now))
            now = last.get(x, now)
        x = LEFT + min(highest)
        for value, same in itertools.groupby(values):
            height, width = lane.height * value / most, len(list(same))
            if value:
                canvas.rect(x, top + lane.height - height, width, height, MEMORY)
            x += width
        return f"≤ {bytes_text(most)}"


def _head_height(recording: Recording) -> int:
    return HEAD + NOTES * bool(notes_of(recording))


def _draw_head(canvas: Canvas, recording: Recording, top: int, said: str) -> None:
    title = fitting(recording.title or "trace", PLOT - LETTER * len(said), TITLE * LETTER)
    canvas.text(LEFT, top + 16, title, INK, TITLE)
    if said:
        canvas.text(WIDTH - RIGHT - LETTER * len(said), top + 21, said, INK)
    x = float(LEFT)
    for name, value in figures(recording).items():
        if x + LETTER * len(f"{name} {value}") > WIDTH - RIGHT:
            break
        canvas.text(x, top + 40, name, SOFT)
        canvas.text(x + LETTER * (len(name) + 1), top + 40, value, INK)
        x += LETTER * (len(f"{name} {value}") + 3)
    canvas.text(LEFT, top + 40 + NOTES, fitting("; ".join(notes_of(recording)), PLOT), SOFT)


def _draw_label(canvas: Canvas, lane: Lane, top: int, most: str) -> None:
    middle = top + lane.height / 2 - (11 if most else 4)
    for line, (label, color) in enumerate([(lane.name, INK), (most, SOFT)]):
        canvas.text(LEFT - 12 - LETTER * len(label), middle + 14 * line, label, color)


def _draw_axis(canvas: Canvas, top: int, bottom: int, scale: float) -> None:
    step = next(s for s in _round_steps() if s * scale >= 90)
    for i in range(int(PLOT / (step * scale)) + 1):
        x = LEFT + i * step * scale
        canvas.rect(x, top - 4, 1, bottom - top + 4, RULE)
        label = time_text(i * step) if i else "0"
        canvas.text(min(x, WIDTH - LETTER * len(label) - 2), bottom + 4, label, SOFT)


def _round_steps() -> list[float]:
    return [m * 10.0 ** e for e in range(-9, 7) for m in (1, 2, 5)]


def count_text(count: float) -> str:
    """`62k`, with three figures."""
    for unit, scale in (("G", 1e9), ("M", 1e6), ("k", 1e3)):
        if count >= scale:
            return f"{count / scale:.3g}{unit}"
    return f"{count:.3g}"
