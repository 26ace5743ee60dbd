"""The page: everything an Explanation knows, in one file that needs nothing else."""

from __future__ import annotations

from collections.abc import Callable
from html import escape
from typing import Any

from .document import KINDS, cards, document, key, place, table
from .graph_picture import made_by, picture
from .memory_chart import chart
from .units import bytes_text


def page(facts: Any) -> str:
    made = [(name, title, body) for name, title, section in SECTIONS if (body := section(facts))]
    links = "".join(f'<a href="#{name}">{title}</a>' for name, title, _ in made)
    body = "".join(f'<section id="{name}"><h2>{title}</h2>{text}</section>'
                   for name, title, text in made)
    return document(facts.function, "What the compiler made of it, and why.",
                    f"{cards(first_seen(facts))}<nav>{links}</nav>{body}")


def first_seen(facts: Any) -> list[tuple[object, str]]:
    kinds = [step.kind for step in facts.steps]
    moved = sum(step.bytes_read + step.bytes_written for step in facts.steps)
    memory = facts.memory
    return [
        (kinds.count("code"), "generated kernels"),
        (kinds.count("library"), "library calls"),
        (kinds.count("interpreted"), "interpreted kernels"),
        (bytes_text(memory.peak), "peak memory"),
        (bytes_text(moved), "read and written"),
        (len(facts.traces), "traces"),
    ]


def number(amount: int) -> str:
    return f'<td class="n" data-n="{amount}">{bytes_text(amount)}</td>'


def graph(facts: Any) -> str:
    drawn = picture(facts)
    remark = "lines: data, as thick as it is large; pick a step to see its own"
    return f'{key(remark)}<div class="frame">{drawn}</div>' if drawn else ""


def memory(facts: Any) -> str:
    report = facts.memory
    rows = (f"<tr>{number(live.bytes)}<td>{escape(live.name)}</td>"
            f"<td>{'result' if live.output else 'temporary'}</td>{place(live.place)}</tr>"
            for live in report.live)
    gaps = 100 * (1 - report.lower_bound / report.peak) if report.peak else 0
    text = (f"<p>{bytes_text(report.arena)} for temporaries, {bytes_text(report.outputs)} for "
            f"results, {bytes_text(report.constants)} of constants. No placement could do with "
            f"less than {bytes_text(report.lower_bound)}: {gaps:.1f}&#8201;% are lost to gaps.</p>")
    drawn = chart(facts)
    if not drawn:
        return ""
    largest = table("buffers", ["size", "made by", "what", "place"], rows)
    return (f'{text}<div class="frame">{drawn}</div>'
            f'<h3>The largest at step {report.step}</h3>{largest}')


def step_row(step: Any) -> str:
    ops = ", ".join(op.name for op in step.ops)
    return (f'<tr><td class="n">{step.step}</td><td>{escape(step.name)}</td>'
            f'<td><span class="kind {step.kind}">{KINDS[step.kind]}</span></td>'
            f"<td>{escape(ops)}</td><td>{escape(made_by(step))}</td>"
            f"{number(step.bytes_read)}{number(step.bytes_written)}{place(step.place)}</tr>")


def steps(facts: Any) -> str:
    heads = ["step", "name", "runs as", "ops", "makes", "reads", "writes", "place"]
    return table("steps-table", heads, map(step_row, facts.steps), filters=True) * bool(facts.steps)


def decisions(facts: Any) -> str:
    def row(d: Any) -> str:
        word = "made" if d.made else "refused"
        return (f"<tr><td>{escape(d.kind)}</td><td class={word}>{word}</td>"
                f"<td>{escape(d.what)}</td><td>{escape(d.reason)}</td>{place(d.place)}</tr>")

    heads = ["kind", "", "what", "why", "place"]
    if not facts.decisions:
        return ""
    return table("decisions-table", heads, map(row, facts.decisions), filters=True)


def traces(facts: Any) -> str:
    def item(text: str) -> str:
        first, *rest = text.split("\n")
        more = f"<pre>{escape(chr(10).join(rest))}</pre>" if rest else ""
        return f"<li>{escape(first)}{more}</li>"

    return f"<ol>{''.join(map(item, facts.traces))}</ol>" if facts.traces else ""


def sizes(facts: Any) -> str:
    if not facts.sizes:
        return ""
    rows = (f'<tr><td>{escape(s.symbol)}</td><td>{escape(s.path)}</td><td class="n">{s.value}</td>'
            "</tr>" for s in facts.sizes)
    held = "".join(f"<li>{escape(g)}</li>" for g in facts.guards)
    text = f"<p>It serves calls for which these hold:</p><ul>{held}</ul>" if held else ""
    return table("sizes-table", ["symbol", "where", "here"], rows) + text


PHASES = ("passes", "fusion", "lowering", "code", "memory")


def compilation(facts: Any) -> str:
    counts = facts.counts
    times = {phase: getattr(counts, f"{phase}_ms") for phase in PHASES}
    total = sum(times.values())
    if not total:
        return ""
    bars = "".join(f'<tr><td>{phase}</td><td class="n" data-n="{ms}">{ms:.2f} ms</td><td>'
                   f'<div class="share" style="width:{100 * ms / total:.1f}%"></div></td></tr>'
                   for phase, ms in times.items())
    return (f"<p>{counts.compiled} kernels compiled, {counts.from_disk} from disk, "
            f"{counts.from_memory} from memory, {counts.interpreted} interpreted; plans made: "
            f"{counts.plans}. In all {total:.2f} ms.</p>"
            + table("phases", ["phase", "time", "share"], [bars]))


def folded(title: str, text: str) -> str:
    return f"<details><summary>{title}</summary><pre>{escape(text)}</pre></details>" * bool(text)


def sources(facts: Any) -> str:
    parts = [folded("The graph, optimised", facts.graph)]
    for step in facts.steps:
        inner = folded("LoopIR", step.loops) + folded("Assembly", step.assembly)
        where = f' <span class="soft">{escape(step.place)}</span>' if step.place else ""
        title = f"{step.step} &#183; <b>{escape(step.name)}</b>{where}"
        if inner:
            parts.append(f"<details><summary>{title}</summary>{inner}</details>")
    return "".join(parts)


SECTIONS: list[tuple[str, str, Callable[[Any], str]]] = [
    ("graph", "Steps and data", graph),
    ("memory", "Memory", memory),
    ("steps", "What runs", steps),
    ("decisions", "Decisions", decisions),
    ("traces", "Traces", traces),
    ("sizes", "Sizes that vary", sizes),
    ("compilation", "Compilation", compilation),
    ("sources", "Sources", sources),
]
