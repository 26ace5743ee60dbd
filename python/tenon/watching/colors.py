"""The colors of timelines: ops by rank, over all recordings of a picture."""

from __future__ import annotations

from collections.abc import Sequence

from .recording import Event, Recording

Color = tuple[int, int, int]

PAPER: Color = (255, 255, 255)
INK: Color = (29, 36, 48)
SOFT: Color = (93, 104, 120)
RULE: Color = (226, 230, 236)
GROUND: Color = (245, 247, 250)
THEME = {PAPER: "paper", INK: "ink", SOFT: "soft", RULE: "rule", GROUND: "ground"}
DARK: dict[str, Color] = {"paper": (21, 25, 32), "ink": (230, 234, 240), "soft": (150, 160, 175),
                          "rule": (48, 55, 66), "ground": (29, 34, 43)}

RECORD: Color = (122, 152, 190)
THREAD: Color = (128, 146, 172)
MEMORY: Color = (140, 190, 172)
RUN: Color = (160, 172, 190)  # of the interpreter
COMPILED: Color = (34, 128, 108)
MARK: Color = (196, 240, 226)  # a line in runs of compiled code, visible without color too
BLACK: Color = (12, 14, 20)  # not of the theme: boxes are the same in light and dark
WHITE: Color = (254, 254, 254)
COMPILE: Color = (222, 160, 52)
FAILED: Color = (196, 58, 66)
OTHER: Color = (170, 176, 186)
COLLECTIVE: Color = (176, 52, 122)
WAITING: Color = (240, 208, 226)
OPS: Sequence[Color] = (  # the first have most of the time
    (58, 114, 186), (232, 148, 58), (144, 94, 174), (86, 164, 96), (208, 88, 84), (58, 166, 176),
    (172, 144, 44), (218, 124, 172), (142, 104, 80), (104, 106, 196))


class Palette:
    """Ops that took most of the time, over all recordings, have colors of their own."""

    def __init__(self, recordings: Sequence[Recording]) -> None:
        times: dict[str, float] = {}
        for recording in recordings:
            for name, seconds in times_of(recording).items():
                times[name] = times.get(name, 0.0) + seconds
        self.ranked = sorted(times, key=lambda name: (-times[name], name))
        self._colors = dict(zip(self.ranked, OPS))

    def op(self, name: str) -> Color:
        return self._colors.get(name, OTHER)

    def of(self, event: Event) -> Color:
        if event.compiled and event.kind in ("run", "record"):
            return COMPILED
        kinds = {"run": RUN, "compile_failed": FAILED, "compile_complete": COMPILE,
                 "share": THREAD, "record": RECORD, "memory": MEMORY,
                 "collective": COLLECTIVE, "waiting": WAITING}
        if event.kind == "worker_run":
            return COMPILED if event.compiled else RUN
        return kinds.get(event.kind) or self.op(event.name)


def times_of(recording: Recording) -> dict[str, float]:
    """The seconds of each op."""
    times: dict[str, float] = {}
    for event in recording.of("step"):
        times[event.name] = times.get(event.name, 0.0) + event.seconds
    return times


def legend_of(recording: Recording, palette: Palette) -> list[tuple[str, list[tuple[str, Color]]]]:
    """Return the legend: for each lane, texts and colors."""
    rows: list[tuple[str, list[tuple[str, Color]]]] = []
    kind, lane, plain = ("record", "ops", RECORD) if recording.plain else ("run", "run", RUN)
    runs = {event.compiled for event in recording.of(kind)}
    if runs:
        rows.append((lane, [(text, color) for compiled, text, color in
                            ((False, "interpreted", plain), (True, "compiled", COMPILED))
                            if compiled in runs]))
    times = times_of(recording)
    total = sum(times.values())
    shown = [name for name in palette.ranked
             if times.get(name, 0.0) >= 0.005 * total and palette.op(name) != OTHER and total]
    if shown:
        steps = [(f"{name} {100 * times[name] / total:.0f} %", palette.op(name)) for name in shown]
        rest = 1 - sum(times[name] for name in shown) / total
        others = [(f"others {100 * rest:.0f} %", OTHER)] if rest >= 0.005 else []
        rows.append(("steps", [*steps, *others]))
    if recording.of("collective"):
        rows.append(("workers", [("collective", COLLECTIVE), ("waiting for others", WAITING)]))
    return rows


def ink_on(color: Color) -> Color:
    """Return the color of text on a box: black or white, whichever has more contrast."""
    r, g, b = ((part / 255) ** 2.2 for part in color)
    return BLACK if 0.2126 * r + 0.7152 * g + 0.0722 * b > 0.185 else WHITE
