"""The table of note 38: Tenon on a GPU beside PyTorch, in one run (`make bench-cuda`).

    python bench/cuda/run.py [ROW...]    all rows of rows.py by default
    LIMIT=60           seconds that a row may take; one that takes longer is left out
    PEERS=0            without PyTorch
    TORCH_PYTHON=...   the Python that has PyTorch; python3 by default
    OUT=...            a folder for cuda.json
"""

import json
import os
import queue
import shutil
import subprocess
import sys
import tempfile
import threading
import time
from pathlib import Path

import rows as w

HERE = Path(__file__).resolve().parent
LIMIT = int(os.environ.get("LIMIT", 60))
WAYS = ("tenon", "torch", "torch.compile")


def lines_of(process):
    """Its lines, and None at the end."""
    lines = queue.Queue()

    def read():
        for line in process.stdout:
            lines.put(line)
        lines.put(None)

    threading.Thread(target=read, daemon=True).start()
    return lines


def collect(command, rows, results, env=None):
    """Runs rows in one process. A row that fails or hangs ends it: the others get a new one."""
    rows = list(rows)
    while rows:
        process = subprocess.Popen(
            [*command, *rows], stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True,
            cwd=HERE, env={**os.environ, **(env or {})},
        )
        lines = lines_of(process)
        began, text, has_failed = time.monotonic(), "", False
        while rows:
            try:
                line = lines.get(timeout=max(began + LIMIT + 20 - time.monotonic(), 0.1))
            except queue.Empty:
                print(f"{rows.pop(0)}: stopped after {LIMIT + 20} s", flush=True)
                break
            if line is None:
                print(f"{rows.pop(0)}: the process ended: {text}", flush=True)
                break
            if not line.startswith("ROW "):
                text = line.strip() or text
                print(f"    {line.rstrip()[:160]}", flush=True)
                continue
            what = json.loads(line[4:])
            if what.get("done"):
                began, rows = time.monotonic(), rows[1:]
                if has_failed:  # a device may be of no use any more
                    break
            else:
                has_failed = "error" in what
                results.append(what)
                print(json.dumps(what), flush=True)
        process.kill()
        process.wait()


def measure_first(rows, ours, theirs, results):
    """Each in a process of its own: with an empty folder for caches, then with what is there."""
    for row in ("first_gelu", "first_eager", "first_gpt2"):
        folder = tempfile.mkdtemp()
        env = {"TENON_CACHE_DIR": folder, "TORCHINDUCTOR_CACHE_DIR": f"{folder}/torch",
               "TRITON_CACHE_DIR": f"{folder}/triton"}
        for name in (row, f"{row}_disk"):
            if name in rows:
                collect(ours, [name], results, env)
        if theirs and row in rows:
            collect(theirs, [row], results, env)
        shutil.rmtree(folder, ignore_errors=True)


def table(results):
    """Lines of Markdown."""
    found = {(r["row"], r["way"]): r["us"] for r in results if "us" in r}
    yield "| us | Tenon | goal | torch | torch.compile |"
    yield "|---|---|---|---|---|"
    for name, row in w.ROWS.items():
        cells = [found.get((name, way)) for way in WAYS]
        if not any(cells):
            continue
        texts = [f"{cell:.1f}" if cell else "-" for cell in cells]
        copy = found.get((name, "copy"))  # a smaller one has the same fixed cost
        if copy and cells[0]:
            texts[0] += f" ({copy / cells[0]:.0%} of a copy)"
        goal = f"{row.goal:g}" if row.goal else f"{row.share:.0%} of a copy" if row.share else ""
        yield f"| {row.title} | {texts[0]} | {goal} | {texts[1]} | {texts[2]} |"


def main():
    rows = sys.argv[1:] or list(w.ROWS)
    unknown = [row for row in rows if row not in w.ROWS]
    if unknown:
        sys.exit(f"no such row: {', '.join(unknown)}; there are {', '.join(w.ROWS)}")
    ours = [sys.executable, "ours.py"]
    theirs = [os.environ.get("TORCH_PYTHON", "python3"), "peers.py"]
    if os.environ.get("PEERS") == "0" or not shutil.which(theirs[0]):
        theirs = None
    results = []
    elsewhere = ("tiny_waiting", "gpt2_step")  # measured with another row
    warm = [row for row in rows if not row.startswith("first_") and row not in elsewhere]
    collect(ours, warm, results)
    if theirs:
        collect(theirs, [row for row in warm if row != "exact"], results)
    measure_first(rows, ours, theirs, results)
    if out := os.environ.get("OUT"):
        (Path(out) / "cuda.json").write_text(json.dumps(results, indent=1))
    print("\n".join(table(results)))


if __name__ == "__main__":
    main()
