"""A file of each version of the format, which must load and give the same values forever.

Code in a file computes what it did when the file was saved. Where it is rebuilt, math functions are
those of the library: gelu was shortened after version 1.0 of the format ("rebuilt" has its values).
"""

import json
import pathlib

import pytest

import tenon as tn

FILES = sorted(pathlib.Path(__file__).parents[1].glob("data/executable-*.tnx"))


def test_there_is_one():
    assert FILES


@pytest.mark.parametrize("trust", [False, True])
@pytest.mark.parametrize("path", FILES, ids=lambda path: path.stem)
def test_values_are_those_recorded(path, trust):
    executable = tn.Executable.load(path, trust=trust)
    for case in json.loads(path.with_suffix(".json").read_text()):
        results = executable(tn.array(case["x"], dtype=tn.float32))
        recorded = case["results"] if trust else case.get("rebuilt", case["results"])
        assert [y.tolist() for y in results] == recorded


def test_the_code_of_the_newest_runs_where_it_is_trusted():
    assert tn.Executable.load(FILES[-1], trust=True).stats().origin == "loaded"
    assert tn.Executable.load(FILES[-1]).stats().origin.startswith("rebuilt: ")


@pytest.mark.parametrize("path", FILES, ids=lambda path: path.stem)
def test_other_sizes_are_refused(path):
    executable = tn.Executable.load(path)
    with pytest.raises(ValueError, match="17"):
        executable(tn.ones((17, 4)))
