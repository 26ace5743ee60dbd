"""Recordings for tests to look at."""

import tenon as tn
from tenon.scripts import visualize as visualize_script
from tenon.watching import Recorder
from tenon.watching.recording import Event


def visualize(*arguments):
    return visualize_script.main([str(argument) for argument in arguments])


def recorded():
    x = tn.ones((64, 64))
    tn.eval(x)
    recorder = Recorder()
    compiled = tn.compile(lambda a: tn.exp(a) + 1)
    tn.eval(compiled(tn.sum(tn.tanh(x @ x))))
    return recorder.stop()


def span(kind, began, seconds, value=1, name="f", **more):
    return Event(kind, more.get("thread", 0), began, seconds, value, more.get("compiled", False),
                 name, more.get("place", ""))
