"""Random programs on random meshes; `make fuzz` runs more of them."""

import fuzz_mesh


def test_random_programs_on_random_meshes_give_the_bits_of_one_worker():
    assert fuzz_mesh.check(cases=80, seed=0) == []
