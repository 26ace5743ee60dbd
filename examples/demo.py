"""Trains a small convolutional network on handwritten digits, and runs it from C++.

Run `make demo`. The network is trained twice from the same initial state, eagerly and with its step
compiled to one plan. Then it is saved as an executable, which a C++ program runs without Python.
All reported numbers are measured during the run; an HTML page shows them as charts. `--quick`
trains for fewer epochs.
"""

from __future__ import annotations

import argparse
import atexit
import os
import shutil
import statistics
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable
from dataclasses import dataclass, field
from pathlib import Path

# An empty cache folder, so that the first call really compiles.
os.environ["TENON_CACHE_DIR"] = cache = tempfile.mkdtemp(prefix="tenon-demo-")
atexit.register(shutil.rmtree, cache, ignore_errors=True)

import numpy as np

import tenon as tn
from demo_page import write_page
from digits import Digits, load_digits
from tenon import nn, optim
from tenon.explanation.units import bytes_text, time_text
from terminal import Style, sparkline

ROOT = Path(__file__).resolve().parent.parent
BATCH, EPOCHS, WANTED = 64, 20, 0.97
style = Style()


class ConvNet(nn.Module):
    """Three convolutions, the last two of which halve the image, and a linear layer."""

    def __init__(self) -> None:
        self.conv1, self.norm1 = nn.Conv2d(1, 16, 3, padding=1), nn.BatchNorm2d(16)
        self.conv2, self.norm2 = nn.Conv2d(16, 32, 3, stride=2, padding=1), nn.BatchNorm2d(32)
        self.conv3, self.norm3 = nn.Conv2d(32, 64, 3, stride=2, padding=1), nn.BatchNorm2d(64)
        self.head = nn.Linear(64, 10)

    def forward(self, x: tn.Tensor) -> tn.Tensor:
        x = nn.gelu(self.norm1(self.conv1(x)))
        x = nn.gelu(self.norm2(self.conv2(x)))
        x = nn.gelu(self.norm3(self.conv3(x)))
        return self.head(tn.mean(x, axis=(2, 3)))


@dataclass
class Training:
    """A trained network, and the measurements of its training."""

    model: ConvNet
    step: Callable[[tn.Tensor, tn.Tensor], tn.Tensor]
    losses: list[float] = field(default_factory=list)  # of every step
    seconds: list[float] = field(default_factory=list)
    accuracies: list[tuple[float, float]] = field(default_factory=list)  # train and test, by epoch
    peak: int = 0  # bytes, the parameters and the batch included

    @property
    def per_step(self) -> float:
        return statistics.median(self.seconds[1:])


def accuracy(model: ConvNet, digits: Digits) -> float:
    model.eval()
    right = tn.argmax(model(digits.images), axis=1) == digits.labels
    model.train()
    return tn.mean(right.astype(tn.float32)).item()


def train(data: tuple[Digits, Digits], epochs: int, compiled: bool) -> Training:
    tn.random.seed(0)
    before = tn.memory.active_memory()
    model = ConvNet()
    optimizer = optim.AdamW(optim.cosine_decay(4e-3, epochs * (data[0].size // BATCH)))
    optimizer.init(model.trainable_parameters())
    state = [model.state, optimizer.state]

    def loss_of(model: ConvNet, images: tn.Tensor, labels: tn.Tensor) -> tn.Tensor:
        return nn.losses.cross_entropy(model(images), labels, reduction="mean")

    def step(images: tn.Tensor, labels: tn.Tensor) -> tn.Tensor:
        loss, gradients = nn.value_and_grad(model, loss_of)(model, images, labels)
        optimizer.update(model, gradients)
        return loss

    run = Training(model, tn.compile(step, inputs=state, outputs=state) if compiled else step)
    batches = data[0].batches(BATCH, epochs=1)
    for _ in range(epochs):
        tn.memory.reset_peak_memory()
        for batch in batches:
            tn.eval(batch)  # which is not a part of the step
            began = time.perf_counter()
            loss = run.step(*batch)
            tn.eval(loss, state)
            run.seconds.append(time.perf_counter() - began)
            run.losses.append(loss.item())
        run.peak = max(run.peak, tn.memory.peak_memory() - before)
        run.accuracies.append((accuracy(model, data[0]), accuracy(model, data[1])))
    return run


def say(head: str, text: str) -> None:
    print(f"  {style.code(f'{head:<11}')} {text}", flush=True)


def table(eager: Training, compiled: Training) -> list[tuple[str, str, str, str]]:
    """The rows of the comparison: eager, compiled, a remark."""
    kernels = compiled.step.stats().kernel_compiles
    same = sum(a == b for a, b in zip(eager.losses, compiled.losses))
    bits = "all with the same bits" if same == len(eager.losses) else f"{same} with the same bits"
    runs = (eager, compiled)
    return [
        ("time per step", *(time_text(r.per_step) for r in runs),
         f"{eager.per_step / compiled.per_step:.2f}x as fast"),
        ("first call", *(time_text(r.seconds[0]) for r in runs), f"{kernels} kernels compiled"),
        ("peak memory", *(bytes_text(r.peak) for r in runs), ""),
        ("last loss", *(f"{r.losses[-1]:.4f}" for r in runs),
         f"{len(eager.losses)} losses, {bits}"),
        ("test accuracy", *(f"{100 * r.accuracies[-1][1]:.1f} %" for r in runs), ""),
    ]


def print_table(rows: list[tuple[str, str, str, str]]) -> None:
    print("\n  " + style.faint(f"{'':16}{'eager':>12}{'compiled':>12}"))
    for name, eager, compiled, remark in rows:
        print(f"  {name:16}{eager:>12}{style.strong(f'{compiled:>12}')}   {style.faint(remark)}")
    print()


def deploy(model: ConvNet, folder: Path) -> tuple[Path, tn.Executable]:
    """Saves the network as one file, for batches of 1 to 512 images."""
    model.eval()
    images = tn.InputInfo(shape=((1, BATCH, 512), 1, 8, 8), dtype=tn.float32)
    executable = tn.compile(model, args=[images])
    path = folder / "digits.tnx"
    executable.save(path)
    return path, executable


def build_classifier(folder: Path) -> Path:
    """Builds examples/cpp/classify.cpp with the runtime of the build tree."""
    build = Path(tn.__file__).absolute().parents[2]
    program = folder / "classify"
    command = ["g++", "-std=c++20", "-O1", f"-I{ROOT / 'include'}",
               str(ROOT / "examples" / "cpp" / "classify.cpp"), f"-L{build}", "-ltenon_rt",
               f"-Wl,-rpath,{build}", "-o", str(program)]
    subprocess.run(command, check=True)
    return program


def run_in_cpp(program: Path, model: Path, images: np.ndarray) -> tuple[np.ndarray, str]:
    """Runs the program; its scores and its output."""
    files = [model.with_name(name) for name in ("images", "scores")]
    images.tofile(files[0])
    command = [str(path) for path in (program, model, *files)]
    done = subprocess.run(command, check=True, capture_output=True, text=True)
    return np.fromfile(files[1], np.float32).reshape(len(images), -1), done.stdout.strip()


def take_to_cpp(model: ConvNet, digits: Digits, folder: Path) -> tuple[str, float, bool]:
    """The output of the program, its accuracy, and whether its scores equal Python's."""
    path, executable = deploy(model, folder)
    say("executable", f"{path.name}, {bytes_text(path.stat().st_size)}, for 1 to 512 images")
    scores, printed = run_in_cpp(build_classifier(folder), path, digits.images.numpy())
    say("C++", f"classify.cpp: {printed}")
    same = all(np.array_equal(scores, f(digits.images).numpy()) for f in (executable, model))
    say("equality", f"{scores.size} scores of C++ and Python "
        + ("have the same bits" if same else style.bad("differ")))
    return printed, float(np.mean(scores.argmax(1) == digits.labels.numpy())), same


def running_elsewhere() -> int:
    """The number of other processes and threads that currently compete for the processor."""
    try:
        return int(Path("/proc/loadavg").read_text().split()[3].split("/")[0]) - 1
    except OSError:
        return 0


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--quick", action="store_true", help="train for 4 epochs")
    parser.add_argument("--out", type=Path, default=ROOT / "build" / "demo", help="folder")
    options = parser.parse_args()
    began, epochs = time.perf_counter(), 4 if options.quick else EPOCHS
    options.out.mkdir(parents=True, exist_ok=True)

    data = load_digits()
    print(style.title(f"\n  Tenon {tn.__version__}") + "  handwritten digits, from Python to C++\n")
    say("data", f"{data[0].size} images to train on and {data[1].size} to test, 8 x 8 pixels")
    if others := running_elsewhere():
        say("note", style.bad(f"{others} other processes are running: times will be too long"))
    runs = []
    for name in ("eager", "compiled"):
        start = time.perf_counter()
        runs.append(train(data, epochs, name == "compiled"))
        took = time.perf_counter() - start
        losses, right = runs[-1].losses, runs[-1].accuracies[-1][1]
        say(name, f"{sparkline(np.log(losses))}  {len(losses)} steps in {took:.1f} s, "
                  f"{100 * right:.1f} % of the test images right")
    eager, compiled = runs
    rows = table(eager, compiled)
    print_table(rows)

    printed, right, same = take_to_cpp(compiled.model, data[1], options.out)
    compiled.model.train()
    batch = next(iter(data[0].batches(BATCH)))
    told = tn.profile(compiled.step, calls=31)(*batch)  # last, since it trains on
    page = write_page(options.out / "index.html", rows, compiled, told, printed, right)
    say("page", str(page))
    print(style.faint(f"\n  {time.perf_counter() - began:.1f} s in all. Read on: README.md, "
                      "docs/tutorial/18-a-residual-network.md\n"))
    if not same or right < WANTED and not options.quick:
        print(style.bad(f"demo: {100 * right:.1f} % right in C++; {100 * WANTED:.0f} % and the "
                        "same bits are wanted"), file=sys.stderr)
        return 1
    return 0


if __name__ == "__main__":
    sys.exit(main())
