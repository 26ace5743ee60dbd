"""Recordings for tests to look at."""

import itertools

import tenon as tn
from tenon.scripts import visualize as visualize_script
from tenon.watching import Recorder
from tenon.watching.recording import Event

NUMBERS = itertools.count(3)


def visualize(*arguments):
    return visualize_script.main([str(argument) for argument in arguments])


def recorded():
    x = tn.ones((64, 64))
    tn.eval(x)
    recorder = Recorder()
    number = next(NUMBERS)  # each is a function that was not compiled before
    compiled = tn.compile(lambda a: tn.exp(a) + tn.arange(number))
    tn.eval(compiled(tn.sum(tn.tanh(x @ x))))
    return recorder.stop()


def span(kind, began, seconds, value=1, name="f", **more):
    return Event(kind, more.get("thread", 0), began, seconds, value, more.get("compiled", False),
                 name, more.get("place", ""))
