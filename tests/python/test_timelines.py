"""Pictures and pages of recordings, and reading the logs they are drawn from."""

import json
import re
import struct
import xml.etree.ElementTree as ElementTree
import zlib

import pytest

import tenon as tn
from recordings import recorded, span, visualize
from tenon.watching import colors, log_reader, timeline_drawing, timeline_page
from tenon.watching.canvas import hex_of
from tenon.watching.glyphs import rows_of, shape_of
from tenon.watching.recording import Recording
from tenon.watching.recording_summary import covered, figures, summary_of
from tenon.watching.timeline_page import page


def test_instruction_logs_are_read_too(tmp_path):
    path = tmp_path / "log"
    path.write_text("  0.100s | #0010 | RECV       | CLIENT | BinaryOp | op=matmul\n"
                    "  1.500s | #0150 | COMPILE    | WORKER | Starting | sequence=abc123def456\n"
                    "  3.800s | #0151 | COMPILE    | WORKER | Complete | sequence=abc123def456\n"
                    "  3.801s | #0152 | RECV       | CLIENT | BinaryOp | op=matmul (COMPILED)\n")
    summary = summary_of(log_reader.read(path))
    assert (summary.ops, summary.compiled, summary.compilations) == (2, 0.5, 1)
    assert abs(summary.compiling - 2.3) < 1e-9
    assert (summary.runs, summary.running, summary.peak) == (None, None, None)
    assert set(figures(log_reader.read(path))) == {"time", "ops", "ops/s", "compiled",
                                                  "compilations", "compiling"}
    said = " ".join(ElementTree.fromstring(timeline_drawing.svg(log_reader.read(path))).itertext())
    assert "runs and memory are not known" in said and "interpreted" in said and "compiled" in said
    assert timeline_drawing.png(log_reader.read(path))


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
    width, height, data = pixels(timeline_drawing.png(recording))
    assert len(data) == height * (3 * width + 1) and len(set(data)) > 20
    names = " ".join(ElementTree.fromstring(timeline_drawing.svg(recording)).itertext())
    assert all(lane in names for lane in ("record", "compile", "run", "steps", "memory"))
    assert pixels(timeline_drawing.png(recording, recording))[1] > height


def test_memory_that_is_in_use_is_there_from_the_start(tmp_path):
    held = tn.ones((1 << 16,)).eval()
    first = recorded().events[0]
    assert first.kind == "memory" and first.began == 0 and first.value >= held.nbytes
    for ending in (".json", ".log"):
        with tn.profile(tmp_path / f"trace{ending}"):
            (held + 1).eval()
    (row,) = [e for e in json.loads((tmp_path / "trace.json").read_text())["traceEvents"]
              if e["name"] == "memory"][:1]
    assert row["ts"] == 0 and row["args"]["bytes"] >= held.nbytes
    line = (tmp_path / "trace.log").read_text().splitlines()[0]
    assert "MEMORY" in line and int(re.search(r"value=(\d+)", line)[1]) >= held.nbytes


def test_pictures_of_nothing_and_of_moments():
    empty = Recording([], 0.5)
    assert pixels(timeline_drawing.png(empty))
    assert "nothing was recorded" in timeline_drawing.svg(empty)
    assert "Nothing was recorded" in page([empty]) and "<canvas" not in page([empty])
    assert re.findall(r'"id": "(t\d)"', page([empty, recorded()])) == ["t1"]  # to be drawn
    one = Recording([span("run", 0.0, 0.0), span("memory", 0.0, 0.0, value=0)], 0.0)
    assert pixels(timeline_drawing.png(one)) and page([one])


def test_points_have_the_color_of_what_fills_them():
    events = [span("step", 0, 1e-4, name="sum"),
              *(span("step", 0.5, 4e-4, name="dot") for _ in range(3))]
    palette = colors.Palette([Recording(events, 1.0)])
    dot = hex_of(palette.op("dot"))
    assert dot != hex_of(palette.op("sum"))
    assert timeline_drawing.svg(Recording(events, 1.0)).count(dot) == 2  # the point and the legend


def test_colors_are_by_rank_over_all_recordings():
    names = [f"op{i}" for i in range(len(colors.OPS))]
    one = Recording([span("step", 0, 1 + i, name=n) for i, n in enumerate(names)], 20.0)
    two = Recording([span("step", 0, 0.1, name="new"), span("step", 0, 90, name="op0")], 90.0)
    palette = colors.Palette([one, two])
    shown = [palette.op(name) for name in names]
    assert palette.ranked[0] == "op0" and palette.ranked[-1] == "new"
    assert len(set(shown)) == len(names) and palette.op("new") == colors.OTHER
    pictures = timeline_drawing.svg(one, two), page([one, two])
    assert all(hex_of(palette.op("op0")) in picture for picture in pictures)
    assert "others" not in dict(colors.legend_of(one, palette))


def test_legends_and_notes_have_room_for_everything():
    names = [f"a_rather_long_name_{i:02}" for i in range(15)]
    shares = [span("share", 0, 1, thread=i) for i in range(12)]
    steps = [span("step", 0, 1, name=name) for name in names]
    said = timeline_drawing.svg(Recording([*steps, *shares], 1.0, missing=7))
    assert all(f">{name} 7 %<" in said for name in names[:len(colors.OPS)])
    assert ">others 33 %<" in said and f">{names[-1]} " not in said
    assert ">the last 7 events are missing; 8 of 12 threads are shown<" in said


def test_compiled_runs_are_marked():
    runs = [span("run", 0, 1, name="a"), span("run", 1, 1, name="b", compiled=True)]
    for picture in (timeline_drawing.svg(Recording(runs, 2.0)), page([Recording(runs, 2.0)])):
        assert hex_of(colors.COMPILED) in picture and hex_of(colors.MARK) in picture
        assert "interpreted" in picture and "compiled" in picture
    plain = timeline_drawing.svg(Recording(runs[:1], 2.0))
    assert hex_of(colors.MARK) not in plain


def test_letters_on_boxes_read_well():
    def light(color):
        r, g, b = (c / 255 / 12.92 if c < 11 else ((c / 255 + 0.055) / 1.055) ** 2.4 for c in color)
        return 0.2126 * r + 0.7152 * g + 0.0722 * b

    for color in (*colors.OPS, colors.RUN, colors.COMPILED, colors.COMPILE, colors.FAILED):
        low, high = sorted((light(color), light(colors.ink_on(color))))
        assert (high + 0.05) / (low + 0.05) >= 4.5, color


def test_pictures_follow_the_readers_choice_of_light_or_dark():
    recording = Recording([span("run", 0, 1)], 1.0)
    for picture in (timeline_drawing.svg(recording), page([recording])):
        assert "prefers-color-scheme:dark" in picture and hex_of(colors.DARK["paper"]) in picture


def test_pages_hold_any_names():
    evil = Recording([span("run", 0, 1, name="</script><b>&\"'")], 1.0, 0, "<i>title")
    text = page([evil, evil])
    assert text.count("</script>") == 1 and "<i>" not in text and "http" not in text
    ElementTree.fromstring(timeline_drawing.svg(evil))


def test_pages_of_long_recordings_are_bounded(monkeypatch):
    monkeypatch.setattr(timeline_page, "MOST_SPANS", 10)
    moments = [span("record", i, 0.0) for i in range(95)]
    runs = [span("run", i, 0.1 + (i == 50)) for i in range(95)]
    recording = Recording([*moments, *runs], 95.0)
    data = timeline_page._data(0, recording, colors.Palette([recording]), timeline_page._Colors())
    assert data["lanes"][0]["each"] == 9.5
    record, run = (lane["spans"] for lane in data["lanes"])
    assert len(record) == 10 and record[-1][0] == 90
    assert len(run) == 10 and 50 in [began for began, *_ in run]
    assert sorted(run) == run


def test_letters_are_all_there():
    shapes = [tuple(rows_of(chr(code))) for code in range(32, 127)]
    assert len(set(shapes)) == 95
    assert all(row < 32 for shape in shapes for row in shape)
    assert all(shape_of(chr(code), 2.0) for code in range(33, 127)) and not shape_of(" ", 2.0)


def test_time_that_is_covered_counts_once():
    assert covered([span("run", 0, 2), span("run", 1, 2), span("run", 5, 1)]) == 4
