"""What compiled functions promise about warnings, memory and compile time."""

import numpy as np
import pytest

import tenon as tn


def test_a_draw_without_a_key_warns():
    f = tn.compile(lambda x: x + tn.random.normal((3,)))
    with pytest.warns(UserWarning, match="without a key"):
        f(tn.zeros(3))


def test_off_takes_one_name_or_several():
    x = tn.arange(4.0)
    for off in ("fuse", ["fuse", "cse"]):
        assert tn.compile(lambda x: x + x, off=off)(x).tolist() == [0, 2, 4, 6]
    with pytest.raises(ValueError, match="no pass named"):
        tn.compile(lambda x: x, off="fsue")(x)


def test_sums_of_products_are_added_up_as_they_come():
    xs = [tn.ones((128, 128)) for _ in range(20)]

    def f(xs, w):
        total = 0
        for x in xs:
            total = total + tn.exp(x) @ w
        return total

    compiled = tn.compile(f)
    assert np.array_equal(compiled(xs, xs[0]).numpy(), f(xs, xs[0]).numpy())
    assert compiled.memory().peak <= 4 * xs[0].nbytes


def test_functions_of_angles_are_interpreted():
    # Their rare path must not be computed for every element.
    assert not tn.show(tn.compile(tn.sin), tn.ones(64), what="kernels").strip()


def test_save_says_how_to_make_an_executable():
    with pytest.raises(AttributeError, match=r"here: tn\.compile\(f, args=\[tn\.InputInfo\("):
        tn.compile(tn.exp).save("f.tnx")
