"""The command `tenon` and its surroundings: the cache, variables of the environment, the doctor."""

import json
import os
import re

import pytest

from command_line import ROOT, TENON, answer, refused, tenon

pytestmark = pytest.mark.skipif(not TENON.exists(), reason="the command is not built")

GRAPH = """func @poly(%x: f32[4,2]) {
  %0 = exp %x
  %1 = add %0, %x
  return %1
}
"""


def test_the_cache_is_shown_trimmed_and_cleared(tmp_path):
    (tmp_path / "poly.tn").write_text(GRAPH)
    env = {"TENON_CACHE": "1", "TENON_CACHE_DIR": str(tmp_path / "cache")}
    answer("show", "poly.tn", "--what", "kernels", cwd=tmp_path, env=env)
    before = json.loads(answer("cache", "--json", env=env))
    assert before["entries"] > 0 and before["bytes"] > 0
    assert str(tmp_path / "cache") in answer("cache", env=env)
    assert json.loads(answer("cache", "trim", "--json", env=env))["removed"] == 0
    assert json.loads(answer("cache", "clear", "--json", env=env))["removed"] == before["entries"]
    assert json.loads(answer("cache", "--json", env=env))["entries"] == 0
    assert "not a size: 5Q" in refused("cache", "trim", "--to", "5Q", env=env)


def test_a_cache_that_is_off_is_told():
    assert "switched off" in answer("cache", env={"TENON_CACHE": "0"})
    assert "switched off" in refused("cache", "clear", env={"TENON_CACHE": "0"})


def test_env_knows_every_variable_that_is_read():
    read = set()
    for path in (ROOT / "src").rglob("*.cpp"):
        if path.parts[-2] != "cli":
            names = r'(?:getenv|variable|environment_number)\("(TENON_\w+)"'
            read |= set(re.findall(names, path.read_text()))
    known = set(re.findall(r"^TENON_\w+", answer("env"), re.M))
    launcher = {"TENON_MPIRUN", "TENON_RESTART"}
    assert known == read | launcher | {"TENON_PYTHON", "TENON_TRACE", "TENON_WATCH"}


def test_env_and_doctor_tell_of_misspelled_variables():
    env = {"TENON_NUM_THREAD": "3"}
    text = "unknown environment variable TENON_NUM_THREAD; did you mean TENON_NUM_THREADS?"
    assert text in answer("env", env=env)
    found = {c["check"]: c for c in json.loads(answer("doctor", "--json", env=env))}
    assert found["variables"]["state"] == "poor"
    assert found["compiler"]["state"] == "ok"


def test_doctor_tells_of_a_user_without_a_home():
    names = ("HOME", "XDG_CACHE_HOME", "TENON_CACHE", "TENON_CACHE_DIR")
    said = answer("doctor", env=dict.fromkeys(names, ""))
    assert "no home for it" in said and "unset TENON_CACHE" not in said


def test_doctor_says_what_is_bad(tmp_path):
    (tmp_path / "open").mkdir()
    (tmp_path / "open").chmod(0o777)
    done = tenon("doctor", env={"TENON_CACHE": "1", "TENON_CACHE_DIR": str(tmp_path / "open")})
    assert done.returncode == 1
    assert "BAD" in done.stdout and "chmod 700" in done.stdout


def test_the_doctor_finds_what_a_variable_has_wrong():
    done = tenon("doctor", env=os.environ | {"TENON_NUM_THREADS": "abc"})
    assert "BAD" in done.stdout and "TENON_NUM_THREADS: not a positive number: abc" in done.stdout
    assert "executables" in done.stdout


def test_the_doctor_says_what_a_gpu_lacks():
    done = tenon("doctor", "--json", env=os.environ | {"TENON_DEVICE": "cuda:77"})
    found = {c["check"]: c for c in json.loads(done.stdout)}
    assert done.returncode == 1 and found["variables"]["state"] == "BAD"
    assert found["variables"]["found"].startswith("TENON_DEVICE: ")
    assert found["variables"]["advice"] == "unset TENON_DEVICE, or name one of tn.devices()"
    assert found["compiler"]["state"] == found["executables"]["state"] == "ok"
    if found["CUDA"]["found"].startswith("none: "):
        assert "525 or newer" in found["CUDA"]["advice"]
