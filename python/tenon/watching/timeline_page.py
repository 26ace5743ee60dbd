"""A timeline as one page that needs nothing else: zoom with the wheel, move by dragging."""

from __future__ import annotations

import json
from collections.abc import Sequence
from html import escape

from ..packaged_text import packaged_text
from .canvas import hex_of
from .colors import COLLECTIVE, COMPILED, DARK, MARK, THEME, Color, Palette, ink_on, legend_of
from .recording import Event, Recording
from .recording_summary import figures, gain, summary_of
from .timeline_drawing import MARK_BELOW, MARK_HEIGHT, lanes_of, notes_of
from .worker_lanes import meetings

MOST_SPANS = 60_000  # of a lane


def page(recordings: Sequence[Recording]) -> str:
    """One recording, or several over the same time with their figures beside each other."""
    palette, colors = Palette(recordings), _Colors()
    data = json.dumps([_data(i, recording, palette, colors)
                       for i, recording in enumerate(recordings) if lanes_of(recording)])
    script = data.replace("<", "\\u003c")  # no name ends the script
    values = {"COLORS": [hex_of(color) for color in colors.all],
              "INKS": [hex_of(ink_on(color)) for color in colors.all],
              "MARKED": colors.number(COMPILED), "MARK": hex_of(MARK),
              "COLLECTIVE": hex_of(COLLECTIVE), "MARK_BELOW": MARK_BELOW,
              "MARK_HEIGHT": MARK_HEIGHT}
    constants = "".join(f"const {name} = {json.dumps(value)};" for name, value in values.items())
    style = packaged_text("tenon.watching", "timeline_page.css")
    program = packaged_text("tenon.watching", "timeline_page.js")
    table = _table(recordings) if len(recordings) > 1 else ""
    parts = "".join(_part(i, recording, palette) for i, recording in enumerate(recordings))
    return (f'<!doctype html><html lang="en"><meta charset="utf-8"><meta name="color-scheme" '
            f'content="light dark"><title>Timeline</title><style>{_themes()}{style}</style><main>'
            f"<h1>Timeline</h1><p>Wheel: zoom. Drag: move. Double click: everything.</p>{table}"
            f"{parts}<div id=tip></div></main><script>{constants}const DATA = {script};{program}"
            f"</script></html>\n")


def _themes() -> str:
    light = "".join(f"--{name}:{hex_of(color)};" for color, name in THEME.items())
    dark = "".join(f"--{name}:{hex_of(color)};" for name, color in DARK.items())
    return f":root {{ {light} }} @media (prefers-color-scheme:dark) {{ :root {{ {dark} }} }}"


class _Colors:
    """The colors of a page, by number."""

    def __init__(self) -> None:
        self.all = [COMPILED]

    def number(self, color: Color) -> int:
        if color not in self.all:
            self.all.append(color)
        return self.all.index(color)


def _part(number: int, recording: Recording, palette: Palette) -> str:
    shown = "".join(f"<div><dt>{escape(name)}</dt><dd>{escape(value)}</dd></div>"
                    for name, value in figures(recording).items())
    notes = "".join(f"<p>{escape(note[0].upper() + note[1:])}.</p>" for note in notes_of(recording))
    title = escape(recording.title or "trace")
    canvas = (f'<canvas id="t{number}" role="img" aria-label="timeline of {title}"></canvas>'
              if lanes_of(recording) else "<p>Nothing was recorded.</p>")
    return (f"<h2>{title}</h2><dl class=figures>{shown}</dl>{notes}"
            f"{canvas}{_legend(recording, palette)}")


def _legend(recording: Recording, palette: Palette) -> str:
    rows = []
    for lane, entries in legend_of(recording, palette):
        texts = "".join(f'<span><i style="background:{_swatch(color)}"></i>{escape(text)}</span>'
                        for text, color in entries)
        rows.append(f"<div class=legend><b>{escape(lane)}</b>{texts}</div>")
    return "".join(rows)


def _swatch(color: Color) -> str:
    if color != COMPILED:
        return hex_of(color)
    return f"linear-gradient({hex_of(color)} 6px, {hex_of(MARK)} 6px 8px, {hex_of(color)} 8px)"


def _table(recordings: Sequence[Recording]) -> str:
    columns = [summary_of(recording).rows() for recording in recordings]
    heads = "".join(f"<th>{escape(recording.title or 'trace')}</th>" for recording in recordings)
    rows = "".join(f"<tr><td>{escape(name)}</td>"
                   + "".join(f"<td>{escape(column.get(name, '-'))}</td>" for column in columns)
                   + "</tr>" for name in columns[0])
    said = gain(*recordings) if len(recordings) == 2 else ""
    return f"<table><tr><th></th>{heads}</tr>{rows}</table>" + f"<p>{said}</p>" * bool(said)


def _data(number: int, recording: Recording, palette: Palette,
          colors: _Colors) -> dict[str, object]:
    """Spans are [began, seconds, name, color, place]; those of memory have bytes for a name."""
    names: dict[str, int] = {}

    def number_of(name: str) -> int:
        return names.setdefault(name, len(names))

    lanes: list[dict[str, object]] = []
    places: dict[int, int] = {}  # of workers
    for lane in lanes_of(recording):
        if lane.worker >= 0:
            places[lane.worker] = len(lanes)
        events = _most_telling(lane.events)
        spans = [[round(e.began, 9), round(e.seconds, 9), e.value] if e.kind == "memory" else
                 [round(e.began, 9), round(e.seconds, 9), number_of(e.name or e.kind),
                  colors.number(palette.of(e)), number_of(e.place) if e.place else -1]
                 for e in events]
        lanes.append({"name": lane.name, "kind": events[0].kind, "height": lane.height,
                      "spans": spans, "color": colors.number(palette.of(events[0])),
                      "each": len(lane.events) / len(events)})  # how many one stands for
    joined = [[round(meeting.time, 9), shown] for meeting in meetings(recording)
              if len(shown := [places[w] for w in meeting.workers if w in places]) > 1]
    return {"id": f"t{number}", "seconds": recording.seconds, "lanes": lanes, "names": list(names),
            "meetings": joined[:MOST_SPANS]}


def _most_telling(events: list[Event]) -> list[Event]:
    """The longest of too many; of moments, some from everywhere."""
    if len(events) <= MOST_SPANS:
        return events
    if events[0].kind in ("record", "memory"):
        return events[::len(events) // MOST_SPANS + 1]
    kept = sorted(events, key=lambda event: -event.seconds)[:MOST_SPANS]
    return sorted(kept, key=lambda event: event.began)
