"""Recordings: profile("trace.json"), tenon.trace, tenon.visualize, tenon.top."""

import errno
import json
import os
import re
import signal
import socket
import subprocess
import sys
import threading
import time

import pytest

import tenon as tn
from processes import environment
from recordings import recorded, visualize
from tenon.scripts import top as top_script
from tenon.watching import Recorder, door, log_reader
from tenon.watching.recording_summary import summary_of

LOOP = """
import sys, time
import tenon as tn
x = tn.ones((64, 64))
tn.sum(tn.tanh(x @ x)).item()
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


def call(module, *arguments, **variables):
    return subprocess.run([sys.executable, "-m", module, *map(str, arguments)], text=True,
                          capture_output=True, env=environment(**variables), timeout=60)


def test_everything_that_happens_is_recorded():
    recording = recorded()
    kinds = {event.kind for event in recording.events}
    assert kinds >= {"record", "ops", "run", "step", "compile_starting", "compile_complete",
                     "memory"}
    assert {"matmul", "tanh", "sum"} <= {event.name for event in recording.of("record")}
    assert "matmul" in {event.name for event in recording.of("step")}
    assert not any("dot" in event.name for event in recording.events)
    assert [run.compiled for run in recording.of("run")] == [False, True]
    assert all("recordings.py" in event.place for event in recording.of("record"))
    assert all(0 <= event.began and event.end <= recording.seconds for event in recording.events)
    runs, steps = recording.of("run"), recording.of("step")
    assert sum(run.value for run in runs) == len(steps)
    assert all(any(r.began <= s.began and s.end <= r.end for r in runs) for s in steps)


def test_the_end_does_not_count_what_reading_the_events_takes():
    began = time.perf_counter()
    recorder = Recorder()
    recorder._recorder.stop()
    ended = time.perf_counter()
    time.sleep(0.1)
    assert recorder.stop().seconds <= ended - began


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


@pytest.mark.parametrize("path", ["none/trace.json", "file/trace.log", "folder.png"])
def test_profile_finds_out_at_the_start_what_cannot_be_written(tmp_path, path):
    (tmp_path / "file").write_text("")
    (tmp_path / "folder.png").mkdir()
    with pytest.raises(tn.InvalidValue, match="cannot be written: "), tn.profile(tmp_path / path):
        pytest.fail("it ran")


def test_profile_leaves_nothing_of_its_look_at_the_start(tmp_path):
    recording = tn.profile(tmp_path / "trace.svg")
    assert not list(tmp_path.iterdir())
    with recording:
        pass
    assert "nothing was recorded" in (tmp_path / "trace.svg").read_text()


def test_profile_is_of_functions_and_files():
    with pytest.raises(tn.InvalidType, match=r"a function or the name of a file, not 3 \(int\)"):
        tn.profile(3)


def test_pictures_have_the_name_of_their_file(tmp_path):
    with tn.profile(tmp_path / "third_epoch.svg"):
        tn.eval(tn.exp(tn.ones(3)))
    assert ">third_epoch<" in (tmp_path / "third_epoch.svg").read_text()


def test_logs_read_back(tmp_path):
    path = tmp_path / "trace_1.log"
    with tn.profile(path):  # which records the same as the recording inside
        recording = recorded()
    again = log_reader.read(path)
    assert again.title == "trace_1" and not again.missing and not again.plain
    one = [e._replace(began=0, seconds=0) for e in recording.events]
    two = [e._replace(began=0, seconds=0) for e in again.events][-len(one):]
    assert one == two and again.seconds > recording.seconds


def test_a_trace_that_was_cut_off_reads_back(tmp_path):
    path = tmp_path / "trace_1.log"
    with tn.profile(path):
        tn.exp(tn.ones(3)).tolist()
    text = path.read_text()
    whole = log_reader.read(path)
    path.write_text(text[:text.index("# @") - 10])  # as of a process that was killed
    cut = log_reader.read(path)
    assert len(cut.events) == len(whole.events) - 1 and not cut.plain


PROGRAM_OF_MANY_EVENTS = """
import resource, sys
import tenon as tn
from pathlib import Path
from tenon.watching.recording_file import RecordingFile
x = tn.ones(4)
tn.eval(x)
trace = RecordingFile(Path(sys.argv[1]))
before = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
for _ in range(60_000):
    tn.eval(x * 2)
said = trace.stop()
print((resource.getrusage(resource.RUSAGE_SELF).ru_maxrss - before) / 1024)
print(said)
"""


def test_ending_a_trace_takes_no_memory(tmp_path):
    path = tmp_path / "trace.log"
    done = subprocess.run([sys.executable, "-c", PROGRAM_OF_MANY_EVENTS, path], text=True,
                          capture_output=True, env=environment(), timeout=60)
    megabytes, said = done.stdout.splitlines()
    events = int(re.search(r"\(([\d,]+) events\)", said)[1].replace(",", ""))
    assert events >= 300_000 and path.stat().st_size > 30_000_000
    assert float(megabytes) < 40  # events alone are 30 MB, lines another 30


def test_trace_runs_a_script_and_visualize_draws_it(tmp_path, script, capsys):
    done = call("tenon.trace", "-s", 0.3, "--dir", tmp_path / "d", script, 0.6)
    assert done.returncode == 0, done.stderr
    [log] = (tmp_path / "d").glob("trace_*.log")
    assert done.stdout == "ready\n" and str(log) in done.stderr
    recording = log_reader.read(log)
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
    for seconds in ("0", "nan", "inf", "100000"):
        done = call("tenon.trace", "-s", seconds, tmp_path / "none.py")
        assert done.returncode == 2 and done.stderr.endswith(
            f"seconds above 0, at most 86400 (a day), not {seconds}\n")


def test_trace_says_when_nothing_was_recorded(tmp_path):
    script = tmp_path / "nothing.py"
    script.write_text("print('done')\n")
    done = call("tenon.trace", "--dir", tmp_path, script)
    assert done.returncode == 0 and done.stdout == "done\n"
    assert done.stderr == f"tenon.trace: nothing was recorded: {script} did not import tenon\n"
    script.write_text("import tenon\n")
    done = call("tenon.trace", "--dir", tmp_path, script)
    assert "nothing was recorded, as nothing was computed" in done.stderr


@pytest.mark.parametrize("command", [["-m", "loop", "0.1"], ["--", "loop.py", "0.1"]])
def test_trace_of_modules_and_after_dashes(tmp_path, script, command):
    path = os.pathsep.join([str(tmp_path), os.environ.get("PYTHONPATH", "")])
    done = subprocess.run([sys.executable, "-m", "tenon.scripts.trace", "-s", "5", *command],
                          env=environment(PYTHONPATH=path), cwd=tmp_path, text=True,
                          capture_output=True, timeout=60)
    assert done.returncode == 0 and done.stdout == "ready\n", done.stderr
    assert len(list(tmp_path.glob("trace_*.log"))) == 1


def test_trace_passes_signals_on(tmp_path, script):
    command = [sys.executable, "-m", "tenon.trace", "--dir", tmp_path, script, "60"]
    process = subprocess.Popen(command, stdout=subprocess.PIPE, env=environment())
    process.stdout.readline()

    def runs_written():
        try:
            return any(log_reader.read(log).of("run") for log in tmp_path.glob("trace_*.log"))
        except tn.InvalidValue:
            return False  # nothing yet

    while not runs_written():
        assert process.poll() is None  # the collector writes in the background
    process.terminate()
    assert process.wait(timeout=60) == 128 + signal.SIGTERM
    [log] = tmp_path.glob("trace_*.log")  # what was done until then
    assert log_reader.read(log).of("run")


@pytest.mark.parametrize("value", ["abc", "5", "nan:/tmp", "-1:/tmp", "1:/dev/null/d", "0:/tmp"])
def test_variables_that_make_no_sense_are_said_in_a_line(value):
    done = subprocess.run([sys.executable, "-c", "import tenon as tn; print(tn.ones(1).item())"],
                          env=environment(TENON_TRACE=value), text=True, capture_output=True)
    assert done.returncode == 0 and done.stdout == "1.0\n"
    assert re.fullmatch(r"tenon.trace: TENON_TRACE.*: nothing is recorded\n", done.stderr)


def test_children_of_fork_leave_the_trace_alone(tmp_path):
    program = """
import os, sys
import tenon as tn
x = tn.ones(3)
tn.exp(x).tolist()
if not (child := os.fork()):
    tn.sin(x).tolist()
    sys.exit(0)
os.waitpid(child, 0)
tn.cos(x).tolist()
"""
    done = subprocess.run([sys.executable, "-c", program], text=True, capture_output=True,
                          env=environment(TENON_TRACE=f"60:{tmp_path}", PYTHONWARNINGS="ignore"))
    [log] = tmp_path.iterdir()
    assert done.returncode == 0 and done.stderr.count("\n") == 1
    names = [step.name for step in log_reader.read(log).of("step")]
    assert "exp" in names and "cos" in names and "sin" not in names
    assert log.read_text().count("# tenon trace:") == 1


def test_a_folder_that_is_gone_is_said(tmp_path):
    program = f"""
import shutil
import tenon as tn
shutil.rmtree({str(tmp_path / 'd')!r})
tn.exp(tn.ones(3)).tolist()
"""
    done = subprocess.run([sys.executable, "-c", program], text=True, capture_output=True,
                          env=environment(TENON_TRACE=f"60:{tmp_path / 'd'}"))
    assert done.returncode == 0 and "was removed while it was written" in done.stderr
    assert done.stderr.count("\n") == 1


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
    variables = environment(TENON_WATCH="1", XDG_RUNTIME_DIR=str(runtime), TENON_AUTO_COMPILE="1")
    process = subprocess.Popen([sys.executable, script, "60"], stdout=subprocess.PIPE,
                               env=variables)
    try:
        process.stdout.readline()
        yield process.pid, {"XDG_RUNTIME_DIR": str(runtime)}
    finally:
        process.kill()
        process.wait()


def test_trace_of_a_process_that_runs(tmp_path, watched):
    pid, variables = watched
    for arguments in (["--pid", pid], []):
        target = tmp_path / f"d{len(arguments)}"
        done = call("tenon.trace", *arguments, "-s", 0.3, "--dir", target, **variables)
        assert done.returncode == 0, done.stderr
        recording = log_reader.read(target / f"trace_{pid}.log")
        assert recording.of("run") and recording.of("record")


def test_top_shows_what_a_process_does(watched):
    pid, variables = watched
    done = call("tenon.top", pid, "-n", 2, "-d", 0.2, **variables)
    assert done.returncode == 0, done.stderr
    heads = re.findall(rf"process {pid}   ([\d,]+) ops/s   (\d+) % compiled", done.stdout)
    assert len(heads) == 2 and all(int(rate.replace(",", "")) > 0 for rate, _ in heads)
    assert "matmul -> tanh -> sum" in done.stdout
    assert max(map(len, done.stdout.splitlines())) <= 80


def test_top_fits_the_terminal(monkeypatch):
    paths = [{"hash": "abc123def456", "count": 1_234_567_890, "status": "compiling",
              "speedup": 12.3, "sequence": " -> ".join(["bitwise_right_shift"] * 8)}]
    now = {"pid": 4_000_000, "time": 2.0, "ops": 123_456_789, "compiled_ops": 1, "runs": 999_999,
           "active": 2**40, "peak": 2**40, "cached": 2**40, "threads": 128, "paths": paths}
    before = {**now, "time": 1.0, "ops": 0, "compiled_ops": 0, "runs": 0}
    for columns in (80, 120):
        monkeypatch.setenv("COLUMNS", str(columns))
        shown = top_script.table(before, now)
        assert max(map(len, shown.splitlines())) <= columns
        assert "bitwise_right_shift ..." in shown


def test_traces_end_when_whoever_asked_is_gone(tmp_path, watched):
    pid, variables = watched
    process = subprocess.Popen([sys.executable, "-m", "tenon.trace", "--pid", str(pid), "-s", "60",
                                "--dir", tmp_path], env=environment(**variables))
    log = tmp_path / f"trace_{pid}.log"
    wait_until(lambda: log.exists() and log.stat().st_size)
    process.kill()
    process.wait()
    wait_until(lambda: log.read_text().endswith(" events missing\n"))
    assert log_reader.read(log).seconds < 30


def wait_until(true):
    while not true():
        time.sleep(0.02)


@pytest.fixture
def sockets(tmp_path, monkeypatch):
    monkeypatch.setenv("XDG_RUNTIME_DIR", str(tmp_path))
    return door.folder()


def test_only_doors_where_nobody_listens_are_removed(sockets):
    with socket.socket(socket.AF_UNIX) as left_behind:
        left_behind.bind(str(sockets / "1.sock"))
    with socket.socket(socket.AF_UNIX) as listener:
        listener.bind(str(sockets / "4194999.sock"))  # a process that cannot be seen from here
        listener.listen()
        assert door.running() == [4194999]
    assert [path.name for path in sockets.iterdir()] == ["4194999.sock"]


def test_the_door_of_another_process_is_left_alone(sockets):
    with socket.socket(socket.AF_UNIX) as listener:
        listener.bind(str(sockets / f"{os.getpid()}.sock"))
        listener.listen()
        with pytest.warns(UserWarning, match="belongs to a process of another container"):
            door.open_door()
        assert door.running() == [os.getpid()]


def test_the_door_stays_open_when_files_run_out():
    listener = FailingListener()
    with pytest.raises(SystemExit):
        door._serve(listener)
    assert listener.calls == 3


class FailingListener:
    calls = 0

    def accept(self):
        self.calls += 1
        raise OSError(errno.EMFILE, "Too many open files") if self.calls < 3 else SystemExit


def test_only_the_user_can_reach_a_process(watched):
    pid, variables = watched
    [folder] = os.scandir(variables["XDG_RUNTIME_DIR"])
    assert folder.stat().st_mode & 0o777 == 0o700
    os.chmod(folder.path, 0o755)
    done = call("tenon.top", pid, **variables)
    assert done.returncode == 2 and "must be accessible to this user only" in done.stderr


def test_processes_that_cannot_be_watched(tmp_path, watched):
    pid, variables = watched
    done = call("tenon.trace", "--pid", os.getpid(), "-s", 0.1, "--dir", tmp_path, **variables)
    assert done.returncode == 2 and "was not started with TENON_WATCH=1" in done.stderr
    os.kill(pid, signal.SIGKILL)
    os.waitpid(pid, 0)
    done = call("tenon.top", **variables)
    assert done.returncode == 2 and "no process to watch" in done.stderr


def answering(listener, answer):
    """Takes a request and answers it; an empty answer closes the connection."""
    caller, _ = listener.accept()
    with caller:
        caller.recv(4096)
        caller.sendall(answer)


def test_a_process_that_gives_no_answer(sockets):
    with socket.socket(socket.AF_UNIX) as listener:
        listener.bind(str(sockets / "7.sock"))
        listener.listen()
        with pytest.raises(door.DoorError, match="^process 7 does not answer$"):
            door.Door(7).ask({"do": "top"}, seconds=0.01)
        listener.accept()[0].close()
        thread = threading.Thread(target=answering, args=(listener, b""))
        thread.start()
        with pytest.raises(door.DoorError, match="^process 7 exited or does not support"):
            door.Door(7).ask({"do": "nothing"})
        thread.join()


def test_commands_without_a_process(sockets, capsys):
    from tenon.scripts import trace

    assert top_script.main([]) == 2
    assert capsys.readouterr().err.startswith("tenon.top: no process to watch: start a program")
    assert trace.main(["-s", "1"]) == 2
    assert capsys.readouterr().err.startswith("tenon.trace: no process to record: give a script")


def test_a_folder_for_doors_that_cannot_be_made(tmp_path, monkeypatch):
    monkeypatch.setenv("XDG_RUNTIME_DIR", str(tmp_path / "none"))
    with pytest.raises(door.DoorError, match="No such file or directory"):
        door.folder()


def test_the_name_of_an_op_stays_its_own():
    import tenon.trace  # noqa: F401  (a command by the name of an op)

    assert tn.trace(tn.ones((3, 3))).item() == 3
