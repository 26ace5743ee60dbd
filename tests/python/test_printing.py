"""How tensors look: NumPy's layout, apart from what is said below."""

import math

import numpy as np
import pytest

import tenon as tn


@pytest.fixture(autouse=True)
def default_options():
    yield
    tn.set_printoptions(profile="default")


def values(x):
    """The text between `tensor(` and the element type."""
    return repr(x).removeprefix("tensor(").rsplit(",", 1)[0]


def test_points_stand_below_each_other():
    x = tn.array([[1.0, 0.25], [-100.5, 3.0]])
    assert repr(x) == (
        "tensor([[   1.  ,    0.25],\n        [-100.5 ,    3.  ]], dtype=float32)"
    )


@pytest.mark.parametrize(
    "value, text",
    [
        (1.0, "1."),
        (1 / 3, "0.33333334"),
        (math.pi, "3.1415927"),
        (16777216.0, "16777216."),
        (0.012345679, "0.012345679"),
        (0.00012345679, "0.00012345679"),
        (1e-5, "1.e-05"),
        (-0.0, "-0."),
        (math.nan, "nan"),
        (-math.inf, "-inf"),
        (1e10, "1.e+10"),
    ],
)
def test_one_float(value, text):
    assert values(tn.array(value)) == text


def test_digits_are_those_of_the_element_type():
    tenth = {
        tn.float64: "0.1",
        tn.float32: "0.1",
        tn.float16: "0.1",
        tn.bfloat16: "0.1",
        tn.float8_e4m3: "0.1",
    }
    for dtype, text in tenth.items():
        assert values(tn.array(0.1, dtype=dtype)) == text
    assert values(tn.array(1 / 3, dtype=tn.float64)) == "0.33333333"
    assert values(tn.array(1 / 3, dtype=tn.bfloat16)) == "0.334"


def arrays():
    rng = np.random.default_rng(0)
    for turn in range(300):
        dtype = [np.float32, np.float64, np.float16][turn % 3]
        shape = tuple(rng.integers(1, 4, rng.integers(0, 4)))
        x = rng.standard_normal(shape) * 10.0 ** rng.integers(-4, 3)  # above, types differ
        x = np.round(x) if turn % 5 == 0 else x
        if turn % 7 == 0:
            x = np.where(rng.random(shape) < 0.3, rng.choice([np.nan, np.inf, -np.inf, 0]), x)
        yield np.asarray(x, dtype)
    yield np.array([[1 + 2j, -0.5j], [100, np.nan]], np.complex64)
    yield np.array([[1, -20], [300, 4]])
    yield np.array([True, False])
    yield np.array([2**64 - 1], np.uint64)
    yield np.arange(2401).reshape(7, 7, 7, 7)
    yield np.arange(10000)
    yield np.linspace(0, 1, 3000, dtype=np.float32).reshape(3, 1000)


def test_the_layout_is_numpys():
    tn.set_printoptions(precision=8, linewidth=math.inf)
    for x in arrays():
        want = np.array2string(x, separator=", ", prefix="tensor(", max_line_width=10**6)
        assert values(tn.array(x)) == want


def test_a_row_of_a_matrix_has_one_line():
    shown = repr(tn.reshape(tn.arange(200), (10, 20)))
    lines = shown.splitlines()
    assert len(lines) == 11 and lines[-1] == "       dtype=int64)"
    assert all(len(line) <= 80 for line in lines)
    assert lines[0].startswith("tensor([[  0,   1,   2,") and lines[0].endswith("18,  19],")
    assert "..." in lines[0]
    assert len(repr(tn.zeros((2, 3, 50))).splitlines()) == 2 * 3 + 2  # a blank one, the type
    tn.set_printoptions(linewidth=math.inf)
    assert "..." not in repr(tn.reshape(tn.arange(200), (10, 20)))


def test_a_row_that_just_fits():
    tn.set_printoptions(linewidth=30)
    assert repr(tn.zeros((2, 5))).splitlines()[0] == "tensor([[0., 0., 0., 0., 0.],"
    assert repr(tn.zeros((2, 6))).splitlines()[0] == "tensor([[0., 0., ..., 0., 0.],"
    tn.set_printoptions(linewidth=1)
    assert repr(tn.zeros((1, 6))).splitlines()[0] == "tensor([[0., ..., 0.]],"


def test_a_vector_goes_on_in_the_next_line():
    lines = repr(tn.arange(60)).splitlines()
    assert len(lines) > 1 and all(len(line) <= 80 for line in lines)
    assert all(line.startswith("        ") for line in lines[1:-1])


def test_the_type_has_a_line_of_its_own_where_it_does_not_fit():
    tn.set_printoptions(linewidth=24)
    assert repr(tn.array([1.0, 2.0, 3.0])) == "tensor([1., 2., 3.],\n       dtype=float32)"


def test_empty_tensors():
    assert repr(tn.zeros((0, 3))) == "tensor([], shape=[0,3], dtype=float32)"
    assert repr(tn.zeros(0)) == "tensor([], shape=[0], dtype=float32)"


def test_options():
    x = tn.array([3.14159265, 1e-6], dtype=tn.float64)
    tn.set_printoptions(precision=2)
    assert values(x) == "[3.14e+00, 1.00e-06]"
    tn.set_printoptions(suppress=True)
    assert values(x) == "[3.14, 0.  ]"
    tn.set_printoptions(sci_mode=True)
    assert values(tn.array([1.0, 20.0])) == "[1.e+00, 2.e+01]"
    tn.set_printoptions(sci_mode=False)
    assert values(tn.array([1e10, 1.0])) == "[10000000000.,           1.]"
    tn.set_printoptions(threshold=5, edgeitems=1)
    assert values(tn.arange(6)) == "[0, ..., 5]"
    assert values(tn.arange(5)) == "[0, 1, 2, 3, 4]"
    tn.set_printoptions(edgeitems=0)
    assert values(tn.arange(6)) == "[...]"
    assert values(tn.zeros((3, 4))) == "[...]"
    with tn.printoptions(threshold=math.inf, edgeitems=2**62):
        assert values(tn.arange(6)) == "[0, 1, 2, 3, 4, 5]"
    assert tn.get_printoptions()["edgeitems"] == 0
    tn.set_printoptions(profile="short")
    assert values(tn.array([math.pi])) == "[3.14]"
    tn.set_printoptions(profile="default")
    assert tn.get_printoptions() == {
        "precision": None,
        "threshold": 1000,
        "edgeitems": 3,
        "linewidth": 80,
        "suppress": False,
        "sci_mode": None,
    }


@pytest.mark.parametrize(
    "options, error",
    [
        ({"precision": -1}, tn.InvalidValue),
        ({"linewidth": 0}, tn.InvalidValue),
        ({"edgeitems": "3"}, tn.InvalidType),
        ({"threshold": math.nan}, tn.InvalidType),
        ({"profile": "tiny"}, tn.InvalidValue),
    ],
)
def test_options_that_make_no_sense(options, error):
    before = tn.get_printoptions()
    with pytest.raises(error, match="set_printoptions: "):
        tn.set_printoptions(**options)
    assert tn.get_printoptions() == before


def test_the_options_of_numpy_do_not_matter():
    with np.printoptions(precision=1):
        assert values(tn.array([0.25])) == "[0.25]"
