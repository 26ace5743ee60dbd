"""A tour of tensors in the terminal: short sessions with their output, then times against NumPy.

Every line shown is executed. `--quick` uses small sizes for the timings.
"""

from __future__ import annotations

import ast
import pathlib
import sys
import time

import numpy as np

import tenon as tn
from terminal import Style

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parent.parent / "bench"))
import measure
import rivals

SESSIONS = [
    (
        "Tensors are lazy",
        "Calling an op records it. The value is computed when it is read.",
        """
x = tn.array([[1.0, 2.0, 3.0], [4.0, 5.0, 6.0]])
y = tn.tanh(x * 0.5) + 1
print(y.graph())
y
""",
    ),
    (
        "Broadcasting",
        "Shapes follow NumPy and the Python array API standard.",
        """
column = tn.array([[10.0], [20.0]])
x + column
x - x.mean(axis=0)
""",
    ),
    (
        "A reduction takes along what comes before it",
        "exp, the product and the sum are one loop: no array in between.",
        """
weights = tn.array([0.2, 0.3, 0.5])
total = (tn.exp(-x) * weights).sum(axis=1)
total
total.shape, total.dtype
""",
    ),
    (
        "Contractions by their indices",
        "",
        """
batch = tn.arange(12, dtype=tn.float32).reshape((2, 2, 3))
tn.einsum("bij,kj->bik", batch, x)
""",
    ),
    (
        "NumPy in and out",
        "",
        """
a = np.linspace(0, 1, 1000, dtype=np.float32)
t = tn.from_dlpack(a)  # shares memory; tn.asarray would copy
np.shares_memory(a, t.numpy())
np.round(np.asarray(tn.sqrt(t)[:4]), 4)
""",
    ),
    (
        "Updates: x.at[...] makes a new tensor, x[...] = v rebinds x",
        "",
        """
x.at[0, 1].set(-1)
tn.where(x > 2, x, 0)
x[x > 3]
""",
    ),
    (
        "Errors name the op, the types and the line of the call",
        "",
        """
x @ x
tn.softmax(x, axs=1)
tn.array([[1, 2], [3]])
""",
    ),
]


def play(source: str, names: dict[str, object], style: Style) -> None:
    """Shows and runs a session, statement by statement, as an interpreter would."""
    for statement in ast.parse(source, "demo").body:
        print(style.code(">>> " + (ast.get_source_segment(source, statement) or "")))
        try:
            if isinstance(statement, ast.Expr):
                value = eval(compile(ast.Expression(statement.value), "demo", "eval"), names)
                if value is not None:
                    print(repr(value))
            else:
                exec(compile(ast.Module([statement], []), "demo", "exec"), names)
        except tn.Error as error:
            print(style.bad(f"{type(error).__name__}: {error}"))


def compare(style: Style, quick: bool) -> None:
    """The table of times against NumPy."""
    scale, seconds = (64, 0.02) if quick else (1, 0.7)
    rows = []
    groups = (rivals.elementwise, rivals.reductions, lambda s: rivals.matmul(4 if quick else 1))
    for make in groups:
        for pair in make(scale):
            rivals.check(pair)
            rows.append((pair.name, *measure.interleave(pair.ours, pair.theirs, seconds, 3)))
    for call in rivals.calls():
        times = (measure.per_call(f, seconds / 2) for f in (call.ours, call.theirs))
        rows.append((call.name, *times))
    print(style.faint(f"{'':46}{'Tenon':>10}{'NumPy':>10}   NumPy / Tenon"))
    for name, ours, theirs in rows:
        ratio = theirs / ours
        bar = "#" * min(30, max(1, round(ratio * 2)))
        line = f"{name:46}{measure.time_text(ours):>10}{measure.time_text(theirs):>10}{ratio:8.2f}x"
        print(line, style.code(bar))
    facts = measure.machine()
    print(style.faint(f"\n{facts['cpu']}, {facts['threads']} threads, NumPy {facts['numpy']} as "
                      "installed. Medians of interleaved runs."))
    print(style.faint("`make bench` measures with more care and against NumPy's best settings."))


def main() -> None:
    quick = "--quick" in sys.argv[1:]
    style, began = Style(), time.perf_counter()
    print(style.title(f"Tenon {tn.__version__}") + "  write tensor code plainly; run it lazily\n")
    names: dict[str, object] = {"tn": tn, "np": np}
    for title, remark, source in SESSIONS:
        print(style.title(f"== {title}"))
        if remark:
            print(style.faint(remark))
        play(source.strip(), names, style)
        print()
    print(style.title("== Times against NumPy"))
    compare(style, quick)
    print(style.faint(f"{time.perf_counter() - began:.1f} s in all. Read on: README.md, "
                      "docs/tutorial/"))


if __name__ == "__main__":
    main()
