"""Tensors of a mesh of processes: between meshes, in collectives by hand, and with NaN."""

import re
import textwrap

import pytest

import tenon as tn
from test_distributed import launch, lines


def test_a_divided_tensor_goes_to_another_mesh(tmp_path):
    program = """
    rows, grid = tn.Mesh(data=4), tn.Mesh(stage=2, model=2)
    with rows:
        x = tn.shard(tn.arange(32.0).reshape(8, 4), "data")
        flags = tn.shard(tn.arange(8) % 3 == 0, "data")
    y = x.to(grid)
    say(tn.layout(y), y.sum().item(), flags.to(grid).numpy().tolist())
    with grid:
        say(tn.layout(tn.shard(y, (None, "model")).to(rows)))
    part = grid.at(stage=1)
    z = tn.place(tn.place(y, part), rows)
    say(tn.layout(z), z[:, 1].sum().item(), bool((z == y.to(rows)).all()))
    f = tn.compile(lambda x: (x * 2).to(grid).sum())
    say(f(x).item())
    """
    out = lines(tmp_path, program, workers=4)
    flags = [i % 3 == 0 for i in range(8)]
    for rank in range(4):
        assert [line for line in out if line.startswith(f"{rank} ")] == sorted([
            f"{rank} f32[8,4] @[-,-] 496.0 {flags}",
            f"{rank} f32[8,4] @[-,-]",
            f"{rank} f32[8,4] @[-,-] 120.0 True",
            f"{rank} 992.0",
        ])


def test_collectives_by_hand_refuse_what_lies_on_a_mesh(tmp_path):
    program = """
    with tn.Mesh(data=2):
        x = tn.shard(tn.arange(4.0), "data")
        for f in (dist.all_sum, dist.all_max, dist.all_gather, tn.nn.average_gradients):
            try:
                f(x)
            except tn.Error as error:
                say(str(error).replace("\\n", " "))
    """
    out = lines(tmp_path, program, workers=2)
    assert len(out) == 8
    for line in out:
        assert re.match(r"[01] a\w+: a tensor on a mesh is one tensor, which all workers hold "
                        r"together: f32\[4\]@mesh:0 .*hint: x\.sum\(\) and gradients", line)


def test_a_sum_of_bool_counts(tmp_path):
    program = """
    x = tn.array([True, rank == 0, False])
    for f in (dist.all_sum, lambda x: dist.sum_scatter(x[:2])):
        say(f(x).dtype, f(x).tolist())
    say(dist.all_max(x).tolist())
    """
    out = lines(tmp_path, program, workers=2)
    assert out == sorted(
        f"{r} {text}" for r in range(2)
        for text in ("int64 [2, 1, 0]", f"int64 [{2 - r}]", "[True, True, False]"))
    alone = tn.distributed.all_sum(tn.array([True, False]))
    assert (alone.dtype, alone.tolist()) == (tn.int64, [1, 0])


def test_numbers_in_a_tree_cannot_be_divided():
    with tn.Mesh(data=2):
        with pytest.raises(tn.Error, match="shard: a list is a tree of tensors, and a number in "
                                           "it cannot be divided: 1.5(.|\n)*tn.array") as raised:
            tn.shard([1.5, 2.5], "data")
        assert "tn.shard(tn.array(...), 'data')" in str(raised.value)
        assert [x.tolist() for x in tn.shard([1.5, tn.ones(2)], None)] == [1.5, [1.0, 1.0]]
        assert tn.shard(tn.array([1.5, 2.5]), "data").tolist() == [1.5, 2.5]


NANS = {
    "pending": ("""
        x = tn.shard(tn.arange(8.0) - 2, "data")
        y = (x * 2).log()  # here
        tn.eval(y)
        """, r"debug_nans: log\(f32\[8\]@mesh:0\) made NaN: 2 of 8 elements of .*, first at \[0\]: "
             r"log\(-4\) \(called at \S*program.py:(\d+)"),
    "compiled": ("""
        x = tn.shard(tn.arange(8.0), "data")
        @tn.compile
        def f(x):
            return (x - 7).sqrt() * 2  # here
        f(x)
        """, r"debug_nans: sqrt\(.*\) made NaN: 7 of 8 elements of .*, first at \[0\]: "
             r"sqrt\(-7\) \(called at \S*program.py:(\d+)"),
    "a sum": ("""
        x = tn.shard(tn.where(tn.arange(8) == 7, -1.0, 1.0), "data")
        x.log().sum().item()  # here
        """, r"debug_nans: log\(.*\) made NaN: 1 of 8 elements of .*, first at \[7\]: log\(-1\) "
             r"\(called at \S*program.py:(\d+)"),
    "given": ("""
        with tn.debug_nans(False):
            x = tn.shard(tn.array([1.0, 2.0, float("nan"), 4.0]), "data")
            tn.eval(x)
        tn.eval(x + 1)  # here
        """, r"debug_nans: add\(.*\) is given NaN: operand 0, 1 of 4 elements of .*, first at "
             r"\[2\] \(called at \S*program.py:(\d+)"),
    "a stage": ("""
        stage = mesh.at(data=1)
        x = tn.place(tn.arange(3.0) - 1, stage)
        tn.eval(x.log())  # here
        """, r"debug_nans: log\(.*\) made NaN: 1 of 3 elements of .*, first at \[0\]: log\(-1\) "
             r"\(called at \S*program.py:(\d+)"),
}


@pytest.mark.parametrize("case", NANS)
def test_nans_are_found_in_divided_tensors(tmp_path, case):
    program, text = NANS[case]
    program = textwrap.dedent("""
    def run(mesh):
        {}
    mesh = tn.Mesh(data=2)
    with mesh, tn.debug_nans():
        tn.eval(tn.shard(tn.arange(8.0), "data") * 2)  # without NaN
        try:
            run(mesh)
        except tn.Error as error:
            say(str(error).split("\\n")[0])
    """).format(textwrap.indent(textwrap.dedent(program), "    ").strip())
    out = lines(tmp_path, program, workers=2)
    assert [line[0] for line in out] == ["0", "1"]
    source = (tmp_path / "program.py").read_text().splitlines()
    for line in out:
        found = re.match(f"[01] (?:{text})", line)
        assert found, line
        if found[1]:
            assert source[int(found[1]) - 1].endswith("# here")


def test_nans_of_one_worker_in_collectives_by_hand(tmp_path):
    program = """
    with tn.debug_nans():
        total = dist.all_sum(tn.ones(2))
        try:
            tn.eval(total, tn.log(tn.array([1.0 - 2 * rank])))
        except tn.Error as error:
            say(str(error).split("\\n")[0])
    """
    code, out, errors = launch(tmp_path, program, 2)
    assert code == 0, errors
    assert out[0] == "0 debug_nans: a result of another worker has NaN"
    assert out[1].startswith("1 debug_nans: log(f32[1]) made NaN: 1 of 1 elements")
