"""The HTML page of the demo: training curves and the timeline of a training step."""

from __future__ import annotations

import math
from collections.abc import Sequence
from html import escape
from pathlib import Path
from typing import TYPE_CHECKING

import tenon as tn
from tenon.explanation.document import cards, document
from tenon.explanation.timeline import framed
from tenon.explanation.units import time_text

if TYPE_CHECKING:
    from demo import Training

WIDTH, HEIGHT = 540, 260
LEFT, RIGHT, TOP, BOTTOM = 52, 14, 16, 34
MORE_CSS = """<style>.pair { display:grid; gap:16px;
  grid-template-columns:repeat(auto-fit, minmax(420px, 1fr)); } .pair h3 { margin-top:0; }
  path.curve { fill:none; stroke-width:1.8; } td.much { font-weight:600; }</style>"""


class Axes:
    """A chart with curves: `x` counts from 0, `y` lies between two bounds."""

    def __init__(self, count: int, low: float, high: float, logarithmic: bool = False) -> None:
        self.count = max(1, count - 1)
        self.scale = math.log10 if logarithmic else float
        self.low, self.high = self.scale(low), self.scale(high)
        self.parts: list[str] = []

    def x(self, i: float) -> float:
        return LEFT + (WIDTH - LEFT - RIGHT) * i / self.count

    def y(self, value: float) -> float:
        part = (self.scale(value) - self.low) / (self.high - self.low)
        return HEIGHT - BOTTOM - (HEIGHT - BOTTOM - TOP) * part

    def grid(self, values: Sequence[float], text: str) -> None:
        for value in values:
            y = self.y(value)
            self.parts.append(f'<path d="M{LEFT} {y:.1f}H{WIDTH - RIGHT}" stroke="var(--line)"/>'
                              f'<text class="soft" x="{LEFT - 8}" y="{y + 4:.1f}" '
                              f'text-anchor="end">{text.format(value)}</text>')

    def curve(self, values: Sequence[float], colour: str, opacity: float = 1) -> None:
        points = "L".join(f"{self.x(i):.1f} {self.y(v):.1f}" for i, v in enumerate(values))
        self.parts.append(f'<path class="curve" d="M{points}" stroke="var(--{colour})" '
                          f'opacity="{opacity}"/>')

    def label(self, i: float, text: str, anchor: str = "middle") -> None:
        self.parts.append(f'<text class="soft" x="{self.x(i):.1f}" y="{HEIGHT - BOTTOM + 20}" '
                          f'text-anchor="{anchor}">{escape(text)}</text>')

    def note(self, at: float, value: float, text: str, colour: str) -> None:
        self.parts.append(f'<text x="{self.x(at):.1f}" y="{self.y(value):.1f}" text-anchor="end" '
                          f'style="fill:var(--{colour})">{escape(text)}</text>')

    def svg(self) -> str:
        return (f'<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 {WIDTH} {HEIGHT}" '
                f'style="width:100%">{"".join(self.parts)}</svg>')


def smooth(values: Sequence[float], reach: int = 8) -> list[float]:
    """The moving average of the values."""
    around = [values[max(0, i - reach) : i + reach + 1] for i in range(len(values))]
    return [sum(near) / len(near) for near in around]


def losses_picture(losses: Sequence[float]) -> str:
    """The loss of every step and its moving average, on a logarithmic scale."""
    least, most = min(losses), max(losses)
    low, high = 10 ** math.floor(math.log10(least)), 10 ** math.ceil(math.log10(most))
    axes = Axes(len(losses), low, high, logarithmic=True)
    powers = range(round(math.log10(low)), round(math.log10(high)) + 1)
    axes.grid([10.0**power for power in powers], "{:g}")
    axes.curve(losses, "code", 0.3)
    axes.curve(smooth(losses), "code")
    axes.label(0, "step 0", "start")
    axes.label(len(losses) - 1, f"step {len(losses)}", "end")
    return axes.svg()


def accuracies_picture(accuracies: Sequence[tuple[float, float]]) -> str:
    """The accuracy after every epoch."""
    train, test = zip(*accuracies)
    # The first epoch may lie below the picture.
    low = max(0.0, math.floor(20 * sorted([*train, *test])[2]) / 20 - 0.05)
    axes = Axes(len(accuracies), low, 1.0)
    lines = 5
    axes.grid([low + (1 - low) * i / lines for i in range(lines + 1)], "{:.0%}")
    for values, colour in ((train, "library"), (test, "result")):
        axes.curve([max(low, value) for value in values], colour)
    last = len(accuracies) - 1
    axes.note(last, low + 0.2 * (1 - low), f"train {train[-1]:.1%}", "library")
    axes.note(last, low + 0.1 * (1 - low), f"test {test[-1]:.1%}", "result")
    axes.label(0, "epoch 1", "start")
    axes.label(last, f"epoch {len(accuracies)}", "end")
    return axes.svg()


def comparison(rows: Sequence[tuple[str, str, str, str]]) -> str:
    body = "".join(f'<tr><td>{escape(name)}</td><td class="n">{escape(eager)}</td>'
                   f'<td class="n much">{escape(compiled)}</td>'
                   f'<td class="soft">{escape(remark)}</td></tr>'
                   for name, eager, compiled, remark in rows)
    return ('<table><thead><tr><th></th><th class="n">eager</th><th class="n">compiled</th>'
            f"<th></th></tr></thead><tbody>{body}</tbody></table>")


def write_page(path: Path, rows: Sequence[tuple[str, str, str, str]], training: Training,
               told: tn.Profile, printed: str, right: float) -> Path:
    running = sum(step.seconds for step in told.steps)
    shown = [(f"{right:.1%}", "of the test images right, in C++"),
             (time_text(training.per_step), "a training step"),
             (len(told.steps), "steps in its plan"),
             (f"{len(training.losses)}", "training steps")]
    body = f"""{MORE_CSS}{cards(shown)}
<section><h2>Training</h2><div class="pair">
<div><h3>Loss</h3><div class="frame">{losses_picture(training.losses)}</div></div>
<div><h3>Accuracy</h3><div class="frame">{accuracies_picture(training.accuracies)}</div></div>
</div></section>
<section><h2>Eager and compiled</h2>{comparison(rows)}</section>
<section><h2>What a step does</h2>
<p>One call of the compiled step, the median of several: {time_text(told.seconds)}, of which
{time_text(running)} in the {len(told.steps)} steps below. Derivatives stand in the row of the line
they are derivatives of: forwards on the left, backwards on the right.</p>{framed(told)}</section>
<section><h2>In C++</h2><p>The saved executable, run by examples/cpp/classify.cpp:
{escape(printed)}.</p></section>"""
    remark = "A convolutional network, trained in Python and run in C++. Measured in this run."
    path.write_text(document("Handwritten digits", remark, body), encoding="utf-8")
    return path
