"""`tenon opt`: graph text in, graph text out."""

import os
import pathlib
import subprocess

import pytest

TENON = pathlib.Path(__file__).parents[2] / "build/release/tenon"
GRAPH = """func @main(%x: f32[2,3]) {
  %0 = exp %x
  %1 = exp %x
  %2 = add %0, %1
  %3 = reshape %2 {shape=[6]}
  %4 = reshape %3 {shape=[2,3]}
  return %4
}
"""

pytestmark = pytest.mark.skipif(not TENON.exists(), reason="the command is not built")


def opt(*args, text=GRAPH):
    return subprocess.run([TENON, "opt", *args], input=text, capture_output=True, text=True)


def test_the_whole_pipeline_is_the_default():
    result = opt("-")
    assert result.returncode == 0
    assert result.stdout == (
        "func @main(%x: f32[2,3]) -> f32[2,3] {\n"
        "  %0 = exp %x : f32[2,3]\n"
        "  %1 = add %0, %0 : f32[2,3]\n"
        "  return %1\n"
        "}\n"
    )


def test_passes_are_chosen_and_left_out_by_name():
    assert opt("--pass", "cse", "-").stdout.count("exp") == 1
    assert opt("--pass", "cse").stdout.count("reshape") == 2
    assert opt("--off", "cse,dce", "-").stdout.count("exp") == 2


def test_what_comes_out_goes_in_again():
    once = opt("--pass", "canon").stdout
    assert opt("--pass", "canon", text=once).stdout == once


def test_the_list_names_every_pass_once_for_each_time_it_runs():
    names = [line.split()[0] for line in opt("--list").stdout.splitlines()]
    assert names[:2] == ["inline", "claim"] and "recompute" in names


@pytest.mark.parametrize(
    "args, text, message",
    [
        (["--pass", "fuld"], GRAPH, "pass: no pass named 'fuld'"),
        (["--off", "canons"], GRAPH, "did you mean 'canon'?"),
        ([], "func @main(%x: f32[2]) {\n  %0 = expp %x\n}\n", "line 2: there is no op 'expp'"),
        (["no/such/file.tn"], "", "cannot read no/such/file.tn"),
    ],
)
def test_errors_say_what_and_where(args, text, message):
    result = opt(*args, text=text)
    assert result.returncode == 1 and result.stdout == ""
    assert message in result.stderr


def test_output_that_cannot_be_written_is_an_error():
    with open("/dev/full", "w") as full:
        done = subprocess.run([TENON, "opt", "-"], input=GRAPH, stdout=full,
                              stderr=subprocess.PIPE, text=True)
    assert done.returncode == 1
    assert "the standard output: No space left on device" in done.stderr


def test_a_cache_that_cannot_be_made_is_an_error(tmp_path):
    place = tmp_path / "file"
    place.write_text("")
    env = os.environ | {"TENON_CACHE": "1", "TENON_CACHE_DIR": str(place)}
    done = subprocess.run([TENON, "cache", "clear"], env=env, capture_output=True, text=True)
    assert done.returncode == 1
    assert "no disk cache: " in done.stderr
