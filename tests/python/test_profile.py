"""profile: the steps that run, with their times and the lines they come from."""

import doctest
import threading

import pytest

import tenon as tn
from tenon.explanation import profiling
from tenon.explanation.units import time_text
from test_explain import Page


def slow_loss(w, x):
    hidden = tn.tanh(x @ w)
    return tn.mean(hidden @ w.T)


@pytest.fixture
def arguments():
    return tn.ones((64, 32)), tn.ones((128, 64))


def test_steps_are_those_of_the_plan(arguments):
    compiled = tn.compile(slow_loss)
    want = compiled(*arguments)
    told = tn.profile(compiled)(*arguments)
    plan = compiled.show("plan")
    assert len(told.steps) == plan.count("step ")
    assert all(f"step {i}: {s.name} " in plan for i, s in enumerate(told.steps))
    assert told.result.item() == want.item()
    assert {s.kind for s in told.steps} <= {"code", "library"}
    assert all("test_profile.py" in s.place for s in told.steps)


def test_times_follow_each_other_and_fit_into_the_call(arguments):
    compiled = tn.compile(slow_loss)
    compiled(*arguments)
    told = tn.profile(compiled)(*arguments)
    ends = [s.began + s.seconds for s in told.steps]
    assert all(end <= after.began for end, after in zip(ends, told.steps[1:]))
    assert all(s.seconds > 0 for s in told.steps) and ends[-1] <= told.seconds


def test_lines_hold_every_step_once(arguments):
    told = tn.profile(tn.compile(tn.value_and_grad(slow_loss)))(*arguments)
    lines = told.lines()
    assert sum(len(line.steps) for line in lines) == len(told.steps)
    assert sum(line.seconds for line in lines) == pytest.approx(
        sum(step.seconds for step in told.steps)
    )


def test_what_is_not_compiled_is_told_too(arguments):
    told = tn.profile(slow_loss)(*arguments)
    assert told.steps and {s.kind for s in told.steps} == {""}


def test_the_median_of_several_calls(arguments):
    counted = []

    def count(w, x):
        counted.append(tn.sum(w @ x))
        return counted[-1]

    told = tn.profile(count, calls=5)(tn.ones((3, 2)), tn.ones((2, 3)))
    assert len(counted) == 5 and any(told.result is made for made in counted)
    with pytest.raises(tn.InvalidValue, match="profile: at least 1 call is needed, not 0"):
        tn.profile(count, calls=0)


def test_a_function_that_runs_nothing():
    told = tn.profile(lambda: "nothing")()
    assert told.steps == [] and told.result == "nothing"
    assert str(told).startswith("<lambda>: ")
    Page(told.html())


def test_loops_count_as_their_step():
    def powers(x):
        return tn.scan(lambda h, _: (tn.tanh(h * 1.5), h), x, None, length=20)[1]

    compiled = tn.compile(powers)
    compiled(tn.array(0.5))
    told = tn.profile(compiled)(tn.array(0.5))
    assert len(told.steps) == compiled.show("plan").count("step ")


def test_errors_pass_and_end_the_recording(arguments):
    def fails(w, x):
        tn.eval(w + 1)
        raise KeyError("mine")

    with pytest.raises(KeyError, match="mine"):
        tn.profile(fails)(*arguments)
    assert tn.profile(tn.profile(tn.exp))(tn.ones(3)).result.steps


def test_other_threads_are_not_told():
    def both(x):
        other = threading.Thread(target=lambda: tn.eval(tn.exp(x) + 2))
        other.start()
        other.join()
        return x * 3

    assert len(tn.profile(both)(tn.ones(3)).steps) == 1


def test_page_and_text(arguments, tmp_path):
    told = tn.profile(tn.compile(tn.value_and_grad(slow_loss)))(*arguments)
    assert "hidden = tn.tanh(x @ w)" in told.html()
    page = Page(told.save(tmp_path / "a.html").read_text())
    assert page.tags.count("svg") == 1 and page.tags.count("rect") == len(told.steps)
    assert told.save(tmp_path / "a.txt").read_text() == str(told)
    assert f"slow_loss: {time_text(told.seconds)}" in str(told)


def test_many_lines_share_the_last_row(tmp_path):
    body = "".join(f"    x = tn.sort(x + {i})\n" for i in range(40))
    source = tmp_path / "long.py"
    source.write_text(f"def long(x):\n{body}    return x\n")
    scope = {"tn": tn}
    exec(compile(source.read_text(), str(source), "exec"), scope)
    told = tn.profile(tn.compile(scope["long"]))(tn.arange(8.0))
    assert len(told.lines()) == 40
    assert "other lines" in told.html() and "x = tn.sort(x + " in told.html()


def test_examples_of_the_documentation():
    assert doctest.testmod(profiling, extraglobs={"tn": tn}).failed == 0


def test_steps_without_a_line():
    steps = [profiling.TimedStep("copy to the device", "", "", 0.0, 1e-6)]
    text = str(profiling.Profile("f", steps, 2e-6, None))
    assert text.endswith("copy to the device")
