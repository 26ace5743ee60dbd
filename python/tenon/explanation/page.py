"""The page: everything an Explanation knows, in one file that needs nothing else."""

from __future__ import annotations

from collections.abc import Callable
from html import escape
from typing import Any

from .document import KINDS, cards, document, key, place, table
from .graph_picture import made_by, picture
from .groups import MOST_BOXES, Group, flat, tree
from .memory_chart import chart
from .units import bytes_text

MOST_STEPS = 24  # that are shown at first


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
    if not facts.steps:
        return ""
    colours = key("lines: data, as thick as it is large; pick a box to see its own")
    whole = f'<div class="frame">{picture(facts)}</div>'
    if len(facts.steps) <= MOST_STEPS:
        return colours + whole
    groups = flat(tree(facts))
    first = f'<div class="frame">{picture(facts, groups)}</div>' * (len(groups) <= MOST_BOXES)
    return colours + first + folded_html(f"Every step and its data ({len(facts.steps)})", whole)


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
            + folded_html(f"The largest buffers at step {report.step}", largest))


def source_of(step: Any) -> str:
    """A step with its sources."""
    kind = f'<span class="kind {step.kind}">{KINDS[step.kind]}</span>'
    moved = f"{bytes_text(step.bytes_read)} read, {bytes_text(step.bytes_written)} written"
    ops = ", ".join(op.name for op in step.ops)
    head = (f"<b>{escape(step.name)}</b>{kind}<span>{escape(made_by(step))}</span>"
            f'<span class="soft">step {step.step}, {moved}</span>')
    listed = f'<p class="ops soft">{escape(ops)}</p>' * (len(step.ops) > 1)
    inner = listed + folded("LoopIR", step.loops) + folded("Assembly", step.assembly)
    if not inner:
        return f'<div class="step">{head}</div>'
    return f'<details class="step"><summary>{head}</summary>{inner}</details>'


def layer(group: Group, most: int) -> str:
    """A group as a row that opens."""
    count = sum(1 for _ in group.all_steps())
    title = escape(group.title)
    name = f'<span class="place">{title}</span>' if group.is_line else f"<b>{title}</b>"
    share = 100 * group.bytes / max(1, most)
    counted = f"{count} step{'s' * (count != 1)}"
    row = (f'<span class="name">{name}</span><span class="n">{counted}</span>'
           f'<span class="n">{bytes_text(group.bytes)}</span>'
           f'<span class="of"><i class="share" style="width:{share:.1f}%"></i></span>')
    inner = "".join(layer(g, most) for g in group.inside.values())
    inner += "".join(map(source_of, group.steps))
    return (f'<details class="layer"{" open" * group.is_open}><summary>{row}</summary>'
            f"{inner}</details>")


def layers(facts: Any) -> str:
    if not facts.steps:
        return ""
    root = tree(facts)
    groups = list(root.inside.values())
    if len(flat(root)) == 1:
        groups[0].is_open = True
    most = max(group.bytes for group in groups)
    text = "<p>Bars: bytes read and written. Open a row for what is inside, down to the code.</p>"
    return text + "".join(layer(group, most) for group in groups)


def step_row(step: Any) -> str:
    ops = ", ".join(op.name for op in step.ops)
    return (f'<tr><td class="n">{step.step}</td><td>{escape(step.name)}</td>'
            f'<td><span class="kind {step.kind}">{KINDS[step.kind]}</span></td>'
            f"<td>{escape(ops)}</td><td>{escape(made_by(step))}</td>"
            f"{number(step.bytes_read)}{number(step.bytes_written)}{place(step.place)}</tr>")


def steps(facts: Any) -> str:
    if not facts.steps:
        return ""
    heads = ["step", "name", "runs as", "ops", "makes", "reads", "writes", "place"]
    made = table("steps-table", heads, map(step_row, facts.steps), filters=True)
    count = len(facts.steps)
    return made if count <= MOST_STEPS else folded_html(f"A table of all {count} steps", made)


def decisions(facts: Any) -> str:
    """Return decisions grouped by kind, because a pass decides the same thing at many places."""
    kinds: dict[str, list[Any]] = {}
    for decision in facts.decisions:
        kinds.setdefault(decision.kind, []).append(decision)

    def row(d: Any) -> str:
        word = "made" if d.made else "refused"
        return (f"<tr><td class={word}>{word}</td>"
                f"<td>{escape(d.what)}</td><td>{escape(d.reason)}</td>{place(d.place)}</tr>")

    parts: list[str] = []
    for kind, of_kind in kinds.items():
        refused = sum(not d.made for d in of_kind)
        counts = f'<span class="made">{len(of_kind) - refused} made</span>'
        if refused:
            counts += f' <span class="refused">{refused} refused</span>'
        name = f"decisions-{len(parts)}"
        rows = table(name, ["", "what", "why", "place"], map(row, of_kind), len(of_kind) > 12)
        few = len(facts.decisions) <= 8
        parts.append(folded_html(f"<b>{escape(kind)}</b> {counts}", rows, few))
    return "".join(parts)


def workers(facts: Any) -> str:
    """The collectives of a worker, and the layouts that they follow from."""
    if not facts.sharding:
        return ""
    rows = (f'<tr><td>{escape(c.name)}</td><td>{escape(c.axis)}</td><td class="n">{c.workers}</td>'
            f"<td>{escape(c.type)}</td>{number(c.bytes)}{number(c.sent)}"
            f"<td>{c.times} {escape(c.where)}</td>{place(c.place)}</tr>"
            for c in facts.collectives)
    heads = ["collective", "along", "workers", "makes", "size", "a worker sends", "times", "place"]
    sent = sum(c.sent * c.times for c in facts.collectives)
    text = (f"<p>{sum(c.times for c in facts.collectives)} collectives, in which a worker sends "
            f"{bytes_text(sent)}.</p>")
    listed = table("collectives", heads, rows, len(facts.collectives) > 12)
    return (text + listed * bool(facts.collectives)
            + folded("Layouts, decisions and the graph of a worker", facts.sharding))


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


def folded_html(title: str, body: str, is_open: bool = False) -> str:
    """`title` and `body` are HTML."""
    return (f'<details{" open" * is_open}><summary>{title}</summary>'
            f'<div class="inside">{body}</div></details>')


def sources(facts: Any) -> str:
    return folded("The graph, optimised", facts.graph)


SECTIONS: list[tuple[str, str, Callable[[Any], str]]] = [
    ("memory", "Memory", memory),
    ("workers", "Workers", workers),
    ("decisions", "Decisions", decisions),
    ("layers", "What runs, by layer and line", layers),
    ("graph", "Data between them", graph),
    ("steps", "Steps", steps),
    ("traces", "Traces", traces),
    ("sizes", "Sizes that vary", sizes),
    ("compilation", "Compilation", compilation),
    ("sources", "Sources", sources),
]
