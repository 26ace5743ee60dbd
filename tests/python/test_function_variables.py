"""Names that functions read, decoded from their code, against what `dis` reads."""

import dis
import pathlib

import pytest

import tenon
from tenon.function_variables import _read_in, inner_code

MODULES = sorted(pathlib.Path(tenon.__file__).parent.rglob("*.py"))


def read_by_dis(code):
    found, before = set(), ""
    for now in dis.get_instructions(code):
        if now.opname == "EXTENDED_ARG":
            continue
        if now.opname in ("LOAD_GLOBAL", "LOAD_NAME"):
            before = now.argval
        elif now.opname in ("LOAD_ATTR", "LOAD_METHOD") and before:
            before = f"{before}.{now.argval}"
        else:
            before = ""
        found.add(before)
    return found.union(*map(read_by_dis, inner_code(code)))


@pytest.mark.parametrize("module", MODULES[::8], ids=lambda path: path.stem)
def test_reads_of_a_module(module):
    code = compile(module.read_text(), str(module), "exec")
    assert _read_in(code) == read_by_dis(code)


def test_names_beyond_the_255th_need_longer_arguments():
    names = [f"name{i}.part{i}" for i in range(400)]
    code = compile("\n".join(names), "long", "exec")
    assert _read_in(code) >= set(names)
