"""Recordings: profile("trace.json"), tenon.trace, tenon.visualize, tenon.top."""

import json
import os
import re
import signal
import struct
import subprocess
import sys
import time
import xml.etree.ElementTree as ElementTree
import zlib

import pytest

import tenon as tn
from tenon.watching import Recorder, drawing, timeline_page, trace_log, visualize_command
from tenon.watching.glyphs import rows_of
from tenon.watching.recording import Event, Recording
from tenon.watching.summary import covered, summary_of
from tenon.watching.timeline_page import page

LOOP = """
import sys, time
import tenon as tn
x = tn.ones((64, 64))
print("ready", flush=True)
end = time.time() + float(sys.argv[1])
while time.time() < end:
    tn.sum(tn.tanh(x @ x)).item()
"""


@pytest.fixture
def script(tmp_path):
    path = tmp_path / "loop.py"
    path.write_text(LOOP)
    return str(path)


def call(module, *arguments, **environment):
    return subprocess.run([sys.executable, "-m", module, *map(str, arguments)], text=True,
                          capture_output=True, env={**os.environ, **environment}, timeout=60)


def visualize(*arguments):
    return visualize_command.main([str(argument) for argument in arguments])


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


def test_everything_that_happens_is_recorded():
    recording = recorded()
    kinds = {event.kind for event in recording.events}
    assert kinds >= {"record", "ops", "run", "step", "compile_starting", "compile_complete",
                     "memory"}
    assert {"dot", "tanh", "sum"} <= {event.name for event in recording.of("record")}
    assert all("test_tracing.py" in event.place for event in recording.of("record"))
    assert all(0 <= event.began and event.end <= recording.seconds for event in recording.events)
    runs, steps = recording.of("run"), recording.of("step")
    assert sum(run.value for run in runs) == len(steps)
    assert all(any(r.began <= s.began and s.end <= r.end for r in runs) for s in steps)


def test_the_end_does_not_count_what_reading_the_events_takes(monkeypatch):
    recorder = Recorder()
    tape = recorder._tape

    class Slow:
        missing = 0

        def stop(self):
            time.sleep(0.3)
            return tape.stop()

    monkeypatch.setattr(recorder, "_tape", Slow())
    assert recorder.stop().seconds < 0.25


def test_nothing_is_recorded_before_and_after():
    assert not Recorder().stop().events
    tn.exp(tn.ones(3)).tolist()
    assert not Recorder().stop().events


def check_chrome(text):
    """What https://ui.perfetto.dev asks of a trace."""
    trace = json.loads(text)
    lanes = {}
    for event in trace["traceEvents"]:
        assert isinstance(event["name"], str) and event["ph"] in "XiCM" and event["pid"] == 1
        if event["ph"] == "M":
            lanes[event.get("tid")] = event["args"]["name"]
            continue
        assert event["ts"] >= 0
        if event["ph"] == "X":
            assert event["dur"] >= 0 and event["tid"] in lanes
        if event["ph"] == "i":
            assert event["s"] == "t" and event["tid"] in lanes
        if event["ph"] == "C":
            assert isinstance(event["args"]["bytes"], int)
    return set(lanes.values())


def test_profile_writes_a_trace_for_chrome(tmp_path):
    path = tmp_path / "trace.json"
    with tn.profile(path):
        tn.eval(tn.compile(lambda a: tn.sin(a) * 3)(tn.ones(5)), tn.exp(tn.ones(4)))
    assert {"record", "compile", "run"} <= check_chrome(path.read_text())


def test_profile_writes_what_was_done_before_an_error(tmp_path):
    with pytest.raises(ZeroDivisionError), tn.profile(str(tmp_path / "trace.json")):
        tn.exp(tn.ones(3)).tolist()
        1 / 0
    assert "exp" in (tmp_path / "trace.json").read_text()


def test_profile_refuses_other_names_at_once(tmp_path):
    with pytest.raises(tn.InvalidValue, match="a name that ends in .html, .json") as error:
        with tn.profile(tmp_path / "trace.txt"):
            pytest.fail("it ran")
    assert f"at {__file__}:" in str(error.value)  # not a line of contextlib


def test_pictures_have_the_name_of_their_file(tmp_path):
    with tn.profile(tmp_path / "third_epoch.svg"):
        tn.eval(tn.exp(tn.ones(3)))
    assert ">third_epoch<" in (tmp_path / "third_epoch.svg").read_text()


def test_logs_read_back(tmp_path):
    recording = recorded()
    path = tmp_path / "trace_1.log"
    path.write_text(trace_log.text(recording))
    again = trace_log.read(path)
    assert again.title == "trace_1" and len(again.events) == len(recording.events)
    for one, two in zip(recording.events, again.events):
        assert one._replace(began=0, seconds=0) == two._replace(began=0, seconds=0)
        assert abs(one.began - two.began) < 1e-8 and abs(one.seconds - two.seconds) < 1e-8


def test_instruction_logs_are_read_too(tmp_path):
    path = tmp_path / "log"
    path.write_text("  0.100s | #0010 | RECV       | CLIENT | BinaryOp | op=matmul\n"
                    "  1.500s | #0150 | COMPILE    | WORKER | Starting | sequence=abc123def456\n"
                    "  3.800s | #0151 | COMPILE    | WORKER | Complete | sequence=abc123def456\n"
                    "  3.801s | #0152 | RECV       | CLIENT | BinaryOp | op=matmul (COMPILED)\n")
    summary = summary_of(trace_log.read(path))
    assert (summary.ops, summary.compiled, summary.compilations) == (2, 0.5, 1)
    assert abs(summary.compiling - 2.3) < 1e-9
    assert drawing.png(trace_log.read(path))


def test_what_is_not_a_trace_is_refused(tmp_path, capsys):
    path = tmp_path / "notes.log"
    path.write_text("milk, bread\n")
    assert visualize(path, "--output", tmp_path / "t.png") == 2
    said = capsys.readouterr().err
    assert "notes.log:1: not a line of a trace" in said and said.count("\n") == 1
    assert visualize(tmp_path / "none.log") == 2
    assert "none.log: No such file or directory" in capsys.readouterr().err
    with pytest.raises(SystemExit):
        visualize(path, "--output", "t.gif")
    assert ".png, .svg, .html" in capsys.readouterr().err


@pytest.mark.parametrize("line", [
    "# tenon trace: 1.2.3 s, 0 events missing",
    "  9.9.9s | #0001 | RECV       | CLIENT | UnaryOp  | op=exp",
    "  0.100s | #0001 | COMPILE    | WORKER | Complete | sequence=none",
    "  0.100s | #0001 | RUN        | WORKER | Plan     | cut off",
    "  0.100s | #0001 | RUN        | WORKER | Step     | value=1 t=1.1.1 took=9 thread=1 name=x",
    f"  0.100s | #0001 | RUN        | WORKER | Step     | value=1 t=1 took={9**60} thread=1 name=x",
    f"  0.100s | #0001 | RUN        | WORKER | Step     | value={'9' * 5000} t=1 took=1 thread=1 n",
])
def test_damaged_lines_are_refused(tmp_path, capsys, line):
    path = tmp_path / "damaged.log"
    path.write_text(line + "\n")
    assert visualize(path, "--output", tmp_path / "t.png") == 2
    assert "damaged.log:1: not a line of a trace" in capsys.readouterr().err


def test_steps_that_took_no_time_are_drawn(tmp_path):
    path = tmp_path / "fast.log"
    path.write_text("  0.000s | #0001 | RUN        | WORKER | Step     | "
                    "value=1 t=0 took=0 thread=0 name=x\n")
    assert visualize(path, "--output", tmp_path / "t.png") == 0


def pixels(png):
    """Width, height and the raw rows of a picture."""
    assert png.startswith(b"\x89PNG\r\n\x1a\n")
    at, data, size = 8, b"", None
    while at < len(png):
        length, kind = struct.unpack(">I4s", png[at:at + 8])
        body = png[at + 8:at + 8 + length]
        assert struct.unpack(">I", png[at + 8 + length:at + 12 + length])[0] == zlib.crc32(
            kind + body)
        size = struct.unpack(">II", body[:8]) if kind == b"IHDR" else size
        data += body if kind == b"IDAT" else b""
        at += 12 + length
    return *size, zlib.decompress(data)


def test_pictures(tmp_path):
    recording = recorded()
    width, height, data = pixels(drawing.png(recording))
    assert len(data) == height * (3 * width + 1) and len(set(data)) > 20
    names = " ".join(ElementTree.fromstring(drawing.svg(recording)).itertext())
    assert all(lane in names for lane in ("record", "compile", "run", "steps", "memory"))
    assert pixels(drawing.png(recording, recording))[1] > height


def test_pictures_of_nothing_and_of_moments():
    assert pixels(drawing.png(Recording([], 0.0)))
    one = Recording([span("run", 0.0, 0.0), span("memory", 0.0, 0.0, value=0)], 0.0)
    assert pixels(drawing.png(one)) and page([one])


def test_points_have_the_color_of_what_fills_them():
    events = [span("step", 0, 1e-4, name="sum"),
              *(span("step", 0.5, 4e-4, name="dot") for _ in range(3))]
    dot = "#%02x%02x%02x" % drawing.color_of(events[1])
    assert dot != "#%02x%02x%02x" % drawing.color_of(events[0])
    assert drawing.svg(Recording(events, 1.0)).count(dot) == 2  # the point and the legend


def test_pages_hold_any_names():
    evil = Recording([span("run", 0, 1, name="</script><b>&\"'")], 1.0, 0, "<i>title")
    text = page([evil, evil])
    assert text.count("</script>") == 1 and "<i>" not in text and "http" not in text
    ElementTree.fromstring(drawing.svg(evil))


def test_pages_of_long_recordings_are_bounded(monkeypatch):
    monkeypatch.setattr(timeline_page, "MOST_SPANS", 10)
    moments = [span("record", i, 0.0) for i in range(95)]
    runs = [span("run", i, 0.1 + (i == 50)) for i in range(95)]
    data = timeline_page._data(0, Recording([*moments, *runs], 95.0))
    record, run = (lane["spans"] for lane in data["lanes"])
    assert len(record) == 10 and record[-1][0] == 90
    assert len(run) == 10 and 50 in [began for began, *_ in run]
    assert sorted(run) == run


def test_letters_are_all_there():
    shapes = [tuple(rows_of(chr(code))) for code in range(32, 127)]
    assert len(set(shapes)) == 95
    assert all(row < 32 for shape in shapes for row in shape)


def test_time_that_is_covered_counts_once():
    assert covered([span("run", 0, 2), span("run", 1, 2), span("run", 5, 1)]) == 4


def test_trace_runs_a_script_and_visualize_draws_it(tmp_path, script, capsys):
    done = call("tenon.trace", "-s", 0.3, "--dir", tmp_path / "d", script, 0.6)
    assert done.returncode == 0, done.stderr
    [log] = (tmp_path / "d").glob("trace_*.log")
    assert done.stdout == "ready\n" and str(log) in done.stderr
    recording = trace_log.read(log)
    assert recording.seconds > 0.25 and summary_of(recording).ops > 10
    assert call("tenon.visualize", log, "--output", tmp_path / "t.png").returncode == 0
    for name in ("t.svg", "t.html"):
        assert visualize(log, "--output", tmp_path / name) == 0
    assert all((tmp_path / f"t.{kind}").stat().st_size > 1000 for kind in ("png", "svg", "html"))
    capsys.readouterr()
    assert visualize("--compare", log, log, "--output", tmp_path / "c.html") == 0
    said = capsys.readouterr().out
    assert "1.00x the ops a second of before" in said and "compiled" in said


def test_trace_of_a_script_that_fails_is_written(tmp_path):
    script = tmp_path / "fails.py"
    script.write_text("import tenon as tn\ntn.exp(tn.ones(3)).tolist()\nraise SystemExit(3)\n")
    done = call("tenon.trace", "--dir", tmp_path, script)
    assert done.returncode == 3 and len(list(tmp_path.glob("trace_*.log"))) == 1


def test_trace_of_no_script(tmp_path):
    done = call("tenon.trace", "--dir", tmp_path / "d", tmp_path / "none.py")
    assert done.returncode == 2 and "no such script" in done.stderr
    assert not (tmp_path / "d").exists()
    done = call("tenon.trace", "--pid", os.getpid(), tmp_path / "none.py")
    assert done.returncode == 2 and "one of them is recorded" in done.stderr
    for seconds in ("0", "nan", "inf"):
        done = call("tenon.trace", "-s", seconds, tmp_path / "none.py")
        assert done.returncode == 2 and f"seconds above 0, not {seconds}" in done.stderr


def test_top_without_a_place_for_sockets(tmp_path):
    done = call("tenon.top", XDG_RUNTIME_DIR=tmp_path / "none")
    assert done.returncode == 2 and done.stderr.endswith("No such file or directory\n")
    assert done.stderr.count("\n") == 1


def test_trace_into_what_is_no_folder(tmp_path, script):
    (tmp_path / "f").write_text("")
    done = call("tenon.trace", "--dir", tmp_path / "f", script, 0)
    assert done.returncode == 2 and done.stderr.endswith("f: File exists\n")
    assert done.stderr.count("\n") == 1


@pytest.fixture
def watched(tmp_path, script):
    """A process that runs and may be watched."""
    runtime = tmp_path / "run"
    runtime.mkdir()
    environment = {"TENON_WATCH": "1", "XDG_RUNTIME_DIR": str(runtime), "TENON_AUTO_COMPILE": "1"}
    process = subprocess.Popen([sys.executable, script, "60"], stdout=subprocess.PIPE,
                               env={**os.environ, **environment})
    try:
        process.stdout.readline()
        yield process.pid, {"XDG_RUNTIME_DIR": str(runtime)}
    finally:
        process.kill()
        process.wait()


def test_trace_of_a_process_that_runs(tmp_path, watched):
    pid, environment = watched
    for arguments in (["--pid", pid], []):
        target = tmp_path / f"d{len(arguments)}"
        done = call("tenon.trace", *arguments, "-s", 0.3, "--dir", target, **environment)
        assert done.returncode == 0, done.stderr
        recording = trace_log.read(target / f"trace_{pid}.log")
        assert recording.of("run") and recording.of("record")


def test_top_shows_what_a_process_does(watched):
    pid, environment = watched
    time.sleep(0.3)
    done = call("tenon.top", pid, "-n", 2, "-d", 0.2, **environment)
    assert done.returncode == 0, done.stderr
    heads = re.findall(rf"process {pid}   ([\d,]+) ops/s   (\d+) % compiled", done.stdout)
    assert len(heads) == 2 and all(int(rate.replace(",", "")) > 0 for rate, _ in heads)
    assert "matmul -> tanh -> sum" in done.stdout


def test_only_the_user_can_reach_a_process(watched):
    pid, environment = watched
    [folder] = os.scandir(environment["XDG_RUNTIME_DIR"])
    assert folder.stat().st_mode & 0o777 == 0o700
    os.chmod(folder.path, 0o755)
    done = call("tenon.top", pid, **environment)
    assert done.returncode == 2 and "is not a folder of this user alone" in done.stderr


def test_processes_that_cannot_be_watched(tmp_path, watched):
    pid, environment = watched
    done = call("tenon.trace", "--pid", os.getpid(), "-s", 0.1, "--dir", tmp_path, **environment)
    assert done.returncode == 2 and "was not started with TENON_WATCH=1" in done.stderr
    os.kill(pid, signal.SIGKILL)
    os.waitpid(pid, 0)
    done = call("tenon.top", **environment)
    assert done.returncode == 2 and "no process to watch" in done.stderr


def test_the_name_of_an_op_stays_its_own():
    import tenon.trace  # noqa: F401  (a command by the name of an op)

    assert tn.trace(tn.ones((3, 3))).item() == 3
