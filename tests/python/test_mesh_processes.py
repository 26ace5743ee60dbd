"""Tensors of a mesh of processes: between meshes, in collectives by hand, and with NaN."""

from test_distributed import lines


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
