"""What is said of the workers of a mesh: collectives in reports, pictures and counters."""

import json

import tenon as tn
from tenon.watching import Recorder, chrome, log_reader, timeline_page
from tenon.watching.recording import Event, Recording
from tenon.watching.worker_lanes import Meeting, events_of_workers, meetings


def step_on(mesh):
    with mesh:
        f = tn.compile(lambda x, w: tn.tanh(x @ w).sum(axis=0))
        x, w = tn.shard(tn.ones((16, 8)), "data"), tn.ones((8, 4))
        tn.eval(f(x, w))
    return f, x, w


def test_reports_have_the_bytes_of_collectives():
    f, x, w = step_on(tn.Mesh(data=4))
    text = f.show("sharding")
    assert "all_sum along data of f32[4]: 16B, a worker sends 24B (" in text
    assert "test_worker_watching.py:" in text.split("a worker sends 24B (")[1]
    assert "\n1 collective, a worker sends 24B\n" in text
    facts = f._explain(x, w)
    [one] = facts.collectives
    assert (one.name, one.axis, one.workers, one.bytes, one.sent) == ("all_sum", "data", 4, 16, 24)
    assert "mesh data=4" in facts.sharding and "collectives\n" in str(facts)
    from tenon.explanation.page import page

    made = page(facts)
    assert "<h2>Workers</h2>" in made and "1 collectives, in which a worker sends 24 B" in made
    assert "%x0: f32[16,8] @[data,-]" in made or "f32[16,8] @[data,-]" in made


def test_without_a_mesh_nothing_is_said():
    f = tn.compile(lambda x: tn.exp(x))
    facts = f._explain(tn.ones(3))
    assert facts.sharding == "" and facts.collectives == [] and "collectives" not in str(facts)


def test_only_those_of_a_group_meet():
    recorder = Recorder()
    with tn.Mesh(data=2, model=2):
        x = tn.shard(tn.ones((4, 4)), ("data", "model"))
        tn.eval(x.sum(axis=0), x.sum(axis=1))
    recording = recorder.stop()
    met = {tuple(meeting.workers) for meeting in meetings(recording)}
    assert met == {(0, 2), (1, 3), (0, 1), (2, 3)}
    page = timeline_page.page([recording])
    data = json.loads(page.split("const DATA = ")[1].split(";const LEFT")[0])
    assert len(data[0]["meetings"]) == len(meetings(recording))
    assert [lane["name"] for lane in data[0]["lanes"] if "worker" in lane["name"]] == [
        "worker 0", "worker 1", "worker 2", "worker 3"]
    rows = json.loads(b"".join(chrome.pieces(recording)))["traceEvents"]
    sums = [row for row in rows if row["name"] == "AllReduce data"]
    assert {row["tid"] for row in sums} == {5000, 5001, 5002, 5003}
    assert all(row["args"]["bytes"] > 0 for row in sums)


def test_lines_of_the_instruction_log_have_the_workers_of_a_group(tmp_path):
    import subprocess
    import sys

    from processes import environment

    log = tmp_path / "run.log"
    program = """
import tenon as tn
with tn.Mesh(data=2, model=2):
    x = tn.shard(tn.ones((4, 4)), ("data", "model"))
    tn.eval(x.sum(axis=0), x.sum(axis=1))
"""
    subprocess.run([sys.executable, "-c", program], check=True,
                   env=environment(TENON_INSTRUCTION_LOG=str(log)))
    recording = log_reader.read(log)
    met = {tuple(meeting.workers) for meeting in meetings(recording)}
    assert met == {(0, 2), (1, 3), (0, 1), (2, 3)}


def test_collectives_in_loops_are_counted():
    mesh = tn.Mesh(data=2)

    def f(x):
        def step(carry, _):
            return tn.distributed.all_sum(carry, axis="data") / 2, None

        x = tn.scan(step, x, None, length=5)[0]
        goes_on = lambda c: tn.distributed.all_max(c.sum(), axis="data") < 3
        return tn.while_loop(goes_on, lambda c: c + 1, x)

    g = tn.compile(tn.shard_map(f, mesh, in_specs=("data",), out_specs="data"))
    g(tn.ones(4))
    text = g.show("sharding")
    assert "all_sum along data of f32[2]: 8B, a worker sends 8B, 5 times (" in text
    assert "all_fold along data of f32[]: 4B, a worker sends 4B, in a round of while_loop (" in text
    assert "6 collectives, a worker sends 44B" in text


def call(worker, began, waited, name="AllReduce data", peers=(0, 1, 2)):
    return Event("collective", worker, began, 0.5, 8, False, name, "", worker, waited, peers)


def test_waiting_is_a_part_of_a_collective():
    early, late = call(0, 1.0, 0.4), call(1, 1.4, 0.0)
    recording = Recording([early, late], 2.0)
    assert meetings(recording) == [Meeting(1.4, [0, 1])]
    lanes = events_of_workers(recording)
    assert [(e.kind, round(e.began, 6), round(e.seconds, 6)) for e in lanes[0]] == [
        ("waiting", 1.0, 0.4), ("collective", 1.4, 0.1)]
    assert [e.kind for e in lanes[1]] == ["collective"]


def test_recordings_of_processes_are_joined():
    own = [Recording([call(rank, 1.0, 0.0)], 3.0, worker=rank, launched=5.0 + rank)
           for rank in range(2)]
    [both] = log_reader.joined(own)
    assert [(e.worker, e.began) for e in both.events] == [(0, 1.0), (1, 2.0)]
    assert both.seconds == 4.0
    assert log_reader.joined([own[0], own[0]]) == [own[0], own[0]]  # two runs
    assert log_reader.joined([own[0], Recording([], 1.0)]) == [own[0], Recording([], 1.0)]


def test_workers_are_counted_when_somebody_asks():
    tn.worker_stats()
    before = {one["worker"]: one for one in tn.worker_stats()}
    step_on(tn.Mesh(data=2))
    for one in tn.worker_stats()[:2]:
        old = before.get(one["worker"], dict.fromkeys(one, 0))
        assert one["runs"] > old["runs"] and one["collectives"] > old["collectives"]
        assert one["bytes"] >= old["bytes"] + 16
        assert one["running"] >= one["communicating"] >= one["waiting"] >= 0
