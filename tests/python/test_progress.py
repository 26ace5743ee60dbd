"""The progress bar: what it draws, how often, and what is left of it."""

from __future__ import annotations

import doctest
import io
import sys

import pytest

import tenon as tn
from tenon import progress_bar


class Terminal(io.StringIO):
    def isatty(self):
        return True


class Clock:
    def __init__(self):
        self.now = 100.0

    def monotonic(self):
        return self.now


@pytest.fixture
def clock(monkeypatch):
    made = Clock()
    monkeypatch.setattr(progress_bar, "time", made)
    return made


@pytest.fixture
def plain(monkeypatch):
    """As if rich were not installed."""
    monkeypatch.setitem(sys.modules, "rich", None)
    monkeypatch.setitem(sys.modules, "rich.console", None)


def drawings(terminal):
    return [line.split("\x1b")[0] for line in terminal.getvalue().split("\r") if line]


def test_a_line_has_steps_values_rate_memory_and_time_left(plain, clock):
    terminal = Terminal()
    with tn.Progress(400, "train", file=terminal) as bar:
        for _ in range(200):
            clock.now += 0.05
            bar.update(loss=tn.array(0.123456), epoch=1)
    start, end = drawings(terminal)[-1].split("]")
    assert start == "train [############............"
    count, loss, epoch, rate, memory, left = end.strip("\n").strip().split("  ")
    assert (count, loss, epoch, rate, left) == (
        "200/400", "loss 0.1235", "epoch 1", "20 steps/s", "0:10 left"
    )  # fmt: skip
    assert memory.endswith("B")
    assert terminal.getvalue().endswith("\n")


def test_values_are_computed_only_when_they_are_drawn(plain, clock):
    losses = []
    terminal = Terminal()
    with tn.Progress(100, file=terminal) as bar:
        for step in range(100):
            clock.now += 0.01
            losses.append(tn.array(1.0) + step)
            bar.update(loss=losses[-1])
    is_pending = ["add" in tn.graph_text(loss) for loss in losses]
    assert len(drawings(terminal)) == 6 and is_pending.count(False) == 6


def test_without_a_total(plain, clock):
    terminal = Terminal()
    bar = tn.progress(iter(range(3)), file=terminal)
    for _ in bar:
        clock.now += 1
        bar.show(loss="low")
    assert drawings(terminal)[-1].startswith("3 steps  loss low  ")
    assert "[" not in drawings(terminal)[-1]


def test_an_iterable_is_counted(plain):
    terminal = Terminal()
    loader = tn.data.batches(tn.arange(10), 3)
    assert len(list(tn.progress(loader, file=terminal))) == 4
    assert "4/4" in drawings(terminal)[-1]
    endless = tn.data.batches(tn.arange(10), 3, epochs=None)
    assert tn.progress(endless, file=terminal).total is None


@pytest.mark.parametrize("error", [RuntimeError, KeyboardInterrupt])
def test_an_error_leaves_no_line(plain, error):
    terminal = Terminal()
    with pytest.raises(error):
        with tn.Progress(3, file=terminal) as bar:
            bar.update()
            raise error
    assert terminal.getvalue().endswith("\r\x1b[K")
    with pytest.raises(error):
        for _ in tn.progress(range(3), file=terminal):
            raise error
    assert "\n" not in terminal.getvalue()


def test_elsewhere_than_on_a_terminal_it_is_silent():
    file = io.StringIO()
    for _ in tn.progress(range(3), file=file):
        pass
    with tn.Progress(3, file=file) as bar:
        bar.update(loss=tn.array(1.0))
    with tn.Progress(3, file=Terminal(), disable=True) as bar:
        bar.update()
    assert file.getvalue() == "" and bar.steps == 1


def test_a_terminal_that_is_gone_does_not_stop_the_loop(plain):
    terminal = Terminal()
    with tn.Progress(3, file=terminal) as bar:
        terminal.close()
        bar.update()


def test_with_rich(monkeypatch):
    rich = pytest.importorskip("rich", reason="drawn by rich where it is installed")
    monkeypatch.delenv("TERM", raising=False)
    monkeypatch.setenv("TERM", "xterm")
    terminal = Terminal()
    assert rich
    with tn.Progress(2, "train", file=terminal) as bar:
        bar.update(loss=tn.array(0.5))
        bar.update(loss=tn.array(0.25))
    assert "loss 0.25" in terminal.getvalue() and "2/2" in terminal.getvalue()
    before = len(terminal.getvalue())
    with pytest.raises(KeyboardInterrupt):
        with tn.Progress(2, "train", file=terminal) as bar:
            bar.update(loss=tn.array(0.5))
            raise KeyboardInterrupt
    assert terminal.getvalue()[before:].rstrip().endswith("\x1b[2K")


def test_examples_in_the_documentation():
    assert doctest.testmod(progress_bar, extraglobs={"tn": tn}).failed == 0
