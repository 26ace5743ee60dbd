"""A chart of the memory that each step of a plan needs."""

from __future__ import annotations

from html import escape
from typing import Any

from .units import bytes_text

WIDTH, HEIGHT = 1080, 300
LEFT, RIGHT, TOP, BOTTOM = 76, 16, 30, 34


def nice_step(most: float) -> float:
    """A power of two that divides the axis into three to six parts."""
    step = 1.0
    while most / step > 6:
        step *= 2
    return step


def chart(facts: Any) -> str:
    needed = list(facts.memory.needed)
    if not needed:
        return ""
    most = max(max(needed), facts.memory.peak, 1)
    inner, floor = WIDTH - LEFT - RIGHT, HEIGHT - BOTTOM
    each = inner / len(needed)

    def y(amount: float) -> float:
        return float(floor - (floor - TOP) * amount / most)

    kinds = {step.step: step for step in facts.steps}
    parts = []
    tick = step = nice_step(most)
    while tick <= most:
        parts.append(f'<path d="M{LEFT} {y(tick):.1f}H{WIDTH - RIGHT}" stroke="var(--line)"/>'
                     f'<text class="soft" x="{LEFT - 8}" y="{y(tick) + 4:.1f}" text-anchor="end">'
                     f"{bytes_text(tick)}</text>")
        tick += step
    for i, amount in enumerate(needed):
        step_facts = kinds.get(i)
        kind, name = (step_facts.kind, step_facts.name) if step_facts else ("library", "")
        place = f"\n{step_facts.place}" if step_facts and step_facts.place else ""
        hint = escape(f"step {i}: {name}\n{bytes_text(amount)}{place}")
        parts.append(f'<rect class="bar {kind}" x="{LEFT + i * each:.2f}" y="{y(amount):.1f}" '
                     f'width="{each:.2f}" height="{max(0.0, floor - y(amount)):.1f}">'
                     f"<title>{hint}</title></rect>")
    parts += [level(y(facts.memory.peak), f"allocated {bytes_text(facts.memory.peak)}"),
              mark(facts, LEFT + (facts.memory.step + 0.5) * each, y(max(needed)), max(needed))]
    for i in sorted({0, len(needed) // 2, len(needed) - 1}):
        parts.append(f'<text class="soft" x="{LEFT + (i + 0.5) * each:.1f}" y="{floor + 20}" '
                     f'text-anchor="middle">step {i}</text>')
    return (f'<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 {WIDTH} {HEIGHT}" '
            f'style="min-width:560px;width:100%">{"".join(parts)}</svg>')


def level(y: float, text: str) -> str:
    return (f'<line x1="{LEFT}" x2="{WIDTH - RIGHT}" y1="{y:.1f}" y2="{y:.1f}" '
            'stroke="var(--ink)" stroke-dasharray="5 4"/>'
            f'<text x="{LEFT + 4}" y="{y - 7:.1f}">{text}</text>')


def mark(facts: Any, x: float, y: float, amount: int) -> str:
    """The step that needs most."""
    left = x > WIDTH * 0.6
    return (f'<circle cx="{x:.1f}" cy="{y:.1f}" r="4.5" fill="var(--interpreted)"/>'
            f'<text x="{x + (-9 if left else 9):.1f}" y="{y + 18:.1f}" font-weight="600" '
            f'text-anchor="{"end" if left else "start"}">most: {bytes_text(amount)} at step '
            f"{facts.memory.step}, {escape(facts.memory.step_name)}</text>")
