"""Random numbers: equal to recorded ones, functions of the key alone, distributed as they say."""

import base64
import doctest
import json
import math
import pathlib
import threading

import numpy as np
import pytest

import tenon as tn
from op_harness import numpy_of

RECORD = json.loads((pathlib.Path(__file__).parents[1] / "data" / "random_jax.json").read_text())
random = tn.random
# Units in the last place by which functions of two libraries may differ, for float32 and float64;
# all else is exact. JAX's functions in 64 bits are off by that much: ours are tested below.
ULPS = {
    "normal": (4, 16),
    "truncated_normal": (8, 16),
    "gumbel": (4, 4),
    "laplace": (2, 256),
    "exponential": (2, 256),
    "gamma": (32, 64),
}
# Whose last step subtracts nearly equal numbers, so that errors are those of numbers about 1.
CANCELS = ("truncated_normal", "gumbel")


def recorded(draw):
    name = {"bfloat16": "uint16"}.get(draw["dtype"], draw["dtype"])
    return np.frombuffer(base64.b64decode(draw["bytes"]), name).reshape(draw["shape"])


def drawn(draw):
    keywords = dict(draw["keywords"])
    for name in ("logits", "p"):
        if isinstance(keywords.get(name), list):
            keywords[name] = tn.array(keywords[name])
    key, f = random.key(draw["seed"]), getattr(random, draw["name"])
    if count := keywords.pop("keys", 0):
        return tn.stack([f(**keywords, key=k) for k in random.split(key, count)])
    return f(**keywords, key=key)


def title(draw):
    return f"{draw['name']} {draw['keywords']} {draw['seed']}"


@pytest.mark.parametrize("draw", RECORD["draws"], ids=title)
def test_recorded_draws(draw):
    got, want = drawn(draw), recorded(draw)
    if draw["dtype"] == "bfloat16":
        got, want = numpy_of(got), (want.astype(np.uint32) << 16).view(np.float32)
    else:
        got = got.numpy()
    ulps = ULPS.get(draw["name"], (0, 0))[draw["dtype"] == "float64"]
    if draw["name"] == "uniform" and draw["keywords"].get("low") == 0.1:
        ulps = 1  # a product and a sum, fused by JAX
    if not ulps:
        assert got.astype(want.dtype).tolist() == want.tolist()
        return
    bits = {"float16": 10, "bfloat16": 7}.get(draw["dtype"]) or np.finfo(want.dtype).nmant
    for mine, theirs in [(got.real, want.real), (got.imag, want.imag)]:
        scale = np.maximum(np.abs(theirs), 1 if draw["name"] in CANCELS else 0)
        assert (np.abs(mine - theirs) <= ulps * scale * 2.0**-bits).all(), (mine, theirs)


def test_exponentials_are_accurate():
    u = random.uniform(shape=(1000,), dtype="float64", key=random.key(1)).numpy()
    want = np.array([-math.log1p(-x) for x in u])
    got = random.exponential((1000,), "float64", key=random.key(1)).numpy()
    assert (np.abs(got - want) <= 2 * np.spacing(want)).all()


def test_recorded_keys():
    for seed, key in zip(RECORD["seeds"], RECORD["keys"]):
        assert random.key(seed).tolist() == key
        random.seed(seed)
        assert random.state[0].tolist() == key
    assert random.key(tn.array([0, 7])).tolist() == [[0, 0], [0, 7]]
    assert random.key(tn.array([-1], dtype=tn.int32)).tolist() == [[0, 2**32 - 1]]


def bits(x):
    return numpy_of(x).tobytes()


def test_examples_in_the_documentation_run():
    assert doctest.testmod(random, extraglobs={"tn": tn}).failed == 0


DRAWS = {
    "bits": lambda k: random.bits((3,), key=k),
    "uniform": lambda k: random.uniform(-1, 2, (2, 3), key=k),
    "normal": lambda k: random.normal((5,), "float64", key=k),
    "truncated_normal": lambda k: random.truncated_normal(-1, 1, (5,), key=k),
    "randint": lambda k: random.randint(0, 1000, (5,), key=k),
    "bernoulli": lambda k: random.bernoulli(0.4, (9,), key=k),
    "categorical": lambda k: random.categorical(tn.arange(4.0), shape=(5,), key=k),
    "gumbel": lambda k: random.gumbel((5,), key=k),
    "laplace": lambda k: random.laplace((5,), key=k),
    "exponential": lambda k: random.exponential((5,), key=k),
    "gamma": lambda k: random.gamma(tn.array([0.5, 1, 30]), (2, 3), key=k),
    "poisson": lambda k: random.poisson(tn.array([0.5, 3, 40]), (2, 3), key=k),
    "permutation": lambda k: random.permutation(20, key=k),
    "choice": lambda k: random.choice(tn.arange(9), (4,), replace=False, key=k),
    "split": lambda k: random.split(k, 3),
    "fold_in": lambda k: random.fold_in(k, 5),
    "dropout": lambda k: tn.dropout(tn.arange(8.0), k, p=0.3),
}


@pytest.mark.parametrize("name", DRAWS)
def test_mapped_over_keys_each_example_equals_the_single_draw(name):
    keys = random.split(random.key(3), 4)
    together = tn.vmap(DRAWS[name])(keys)
    alone = tn.stack([DRAWS[name](keys[i]) for i in range(4)])
    assert together.shape == alone.shape
    assert bits(together) == bits(alone)


def test_the_state_gives_all_examples_of_a_map_the_same_numbers():
    random.seed(0)
    out = tn.vmap(lambda x: x + random.uniform(shape=(2,)))(tn.zeros((3, 2)))
    assert (out.numpy() == out.numpy()[0]).all()


def test_bits_do_not_depend_on_the_number_of_threads():
    count, key = tn.num_threads(), random.key(11)
    whole = random.normal((300_000,), key=key).numpy()
    try:
        for threads in (1, 3):
            tn.set_num_threads(threads)
            assert (random.normal((300_000,), key=key).numpy() == whole).all()
    finally:
        tn.set_num_threads(count)
    # A prefix has the bits of the whole.
    assert (random.normal((1000,), key=key).numpy() == whole[:1000]).all()


def test_state_is_a_list_of_one_key_that_draws_replace():
    random.seed(5)
    assert len(random.state) == 1 and [k.tolist() for k in random.state] == [[0, 5]]
    a = random.uniform(shape=(3,))
    assert random.state[-1].tolist() != [0, 5]
    b = random.uniform(shape=(3,))
    assert a.tolist() != b.tolist()
    random.seed(5)
    assert random.uniform(shape=(3,)).tolist() == a.tolist()
    first, second = random.split(random.key(5))
    assert a.tolist() == random.uniform(shape=(3,), key=second).tolist()
    assert b.tolist() == random.uniform(shape=(3,), key=random.split(first)[1]).tolist()
    random.state[0] = random.key(5)
    assert random.uniform(shape=(3,)).tolist() == a.tolist()
    with pytest.raises(IndexError):
        random.state[1] = random.key(0)
    with pytest.raises(tn.Error, match="a key is u32"):
        random.state[0] = tn.zeros((2,))


def test_a_pending_state_is_split_in_the_graph():
    random.state[0] = random.key(1) + tn.array([0, 4], dtype=tn.uint32)
    first, second = random.split(random.key(5))
    assert random.uniform().item() == random.uniform(key=second).item()
    assert random.state[0].tolist() == first.tolist()


def test_many_draws_do_not_make_a_deep_graph():
    random.seed(0)
    for _ in range(1000):
        last = random.uniform()
    assert tn.graph_text(last).count("\n") < 20


def test_threads_have_their_own_state():
    random.seed(0)
    before, found = random.state[0].tolist(), []

    def work():
        random.seed(1)
        found.append(random.uniform().item())

    thread = threading.Thread(target=work)
    thread.start()
    thread.join()
    assert random.state[0].tolist() == before
    random.seed(1)
    assert random.uniform().item() == found[0]


def test_derivatives_go_through_parameters():
    key = random.key(0)
    u, n = random.uniform(shape=(4,), key=key).numpy(), random.normal((4,), key=key).numpy()

    def between(low, high):
        return random.uniform(low, high, (4,), key=key).sum()

    d_low, d_high = tn.grad(between, (0, 1))(tn.array(1.0), tn.array(3.0))
    np.testing.assert_allclose([d_low.item(), d_high.item()], [(1 - u).sum(), u.sum()], rtol=1e-6)

    def placed(loc, scale):
        return random.normal((4,), loc=loc, scale=scale, key=key).sum()

    d_loc, d_scale = tn.grad(placed, (0, 1))(tn.array(0.5), tn.array(2.0))
    np.testing.assert_allclose([d_loc.item(), d_scale.item()], [4, n.sum()], rtol=1e-6)


def test_gamma_refuses_derivatives():
    with pytest.raises(tn.Unsupported, match="random_gamma"):
        tn.grad(lambda a: random.gamma(a, key=random.key(0)))(tn.array(2.0))


def test_what_is_computed_again_has_the_same_bits():
    def loss(x, key):
        return (tn.dropout(tn.sin(x), key, p=0.5) * random.normal(x.shape, key=key)).sum()

    x, key = tn.linspace(-1.0, 1.0, 1000), random.key(6)
    def recomputed(x, key):
        return tn._core._checkpoint(lambda args: [loss(*args)], [x, key])[0]

    again = tn.grad(recomputed)(x, key)
    assert bits(again) == bits(tn.grad(loss)(x, key))


# Fixed keys: the bounds are those of one draw in a million, and do not move.
N = 100_000
NORMAL_CDF = np.vectorize(lambda x: 0.5 * math.erfc(-x / math.sqrt(2)))


def clipped_normal(x):
    a, b = NORMAL_CDF(-1), NORMAL_CDF(2)
    return (NORMAL_CDF(x) - a) / (b - a)


CONTINUOUS = {
    "uniform": (lambda k: random.uniform(2, 6, (N,), key=k), lambda x: (x - 2) / 4),
    "normal": (lambda k: random.normal((N,), key=k), NORMAL_CDF),
    "normal, placed": (
        lambda k: random.normal((N,), "float64", 1, 2, key=k),
        lambda x: NORMAL_CDF((x - 1) / 2),
    ),
    "truncated_normal": (lambda k: random.truncated_normal(-1, 2, (N,), key=k), clipped_normal),
    "gumbel": (lambda k: random.gumbel((N,), key=k), lambda x: np.exp(-np.exp(-x))),
    "laplace": (
        lambda k: random.laplace((N,), key=k),
        lambda x: np.where(x < 0, np.exp(x) / 2, 1 - np.exp(-x) / 2),
    ),
    "exponential": (
        lambda k: random.exponential((N,), scale=3, key=k),
        lambda x: 1 - np.exp(-x / 3),
    ),
}


@pytest.mark.parametrize("name", CONTINUOUS)
def test_distribution_functions(name):
    draw, cdf = CONTINUOUS[name]
    x = np.sort(numpy_of(draw(random.key(2026))).astype(np.float64))
    apart = np.abs(cdf(x) - (np.arange(N) + 0.5) / N).max()
    assert apart < 2.7 / math.sqrt(N)  # Kolmogorov: exp(-2 · 2.7²) · 2 = 1e-6


def chi_square(counts, expected):
    return ((counts - expected) ** 2 / expected).sum()


@pytest.mark.parametrize("low, high, dtype", [(0, 10, "int32"), (-3, 4, "int8"), (0, 256, "uint8")])
def test_integers_are_equally_likely(low, high, dtype):
    x = random.randint(low, high, (N,), dtype, key=random.key(9)).numpy().astype(int)
    assert x.min() == low and x.max() == high - 1
    n = high - low
    counts = np.bincount(x - low, minlength=n)
    assert chi_square(counts, N / n) < n + 7 * math.sqrt(2 * n)


def test_categories_and_choices_follow_their_probabilities():
    p = np.array([0.1, 0.2, 0.3, 0.4])
    for x in (
        random.categorical(tn.log(tn.array(p)), shape=(N,), key=random.key(1)),
        random.choice(4, (N,), p=tn.array(p), key=random.key(2)),
    ):
        assert chi_square(np.bincount(x.numpy(), minlength=4), N * p) < 40
    kept = tn.dropout(tn.ones((N,)), random.key(3), p=0.2).numpy()
    assert sorted(set(kept.tolist())) == [0, 1.25]
    assert abs(kept.mean() - 1) < 5 * math.sqrt(0.25 / N)


@pytest.mark.parametrize("rate", [0.7, 5.0, 10.0, 60.0])
def test_counts_follow_their_rate(rate):
    x = random.poisson(rate, (N,), key=random.key(1)).numpy()
    k = np.arange(200)
    p = np.exp(k * math.log(rate) - rate - np.array([math.lgamma(i + 1.0) for i in k]))
    often = p * N > 10
    counts = np.bincount(x, minlength=200)[often]
    n = often.sum()
    assert chi_square(counts, p[often] * N) < n + 7 * math.sqrt(2 * n)
    assert abs(x.mean() - rate) < 5 * math.sqrt(rate / N)


@pytest.mark.parametrize("a", [0.2, 1.0, 3.5, 100.0])
def test_moments_of_gamma(a):
    for dtype in ("float32", "float64"):
        x = random.gamma(a, (N,), dtype, key=random.key(8)).numpy().astype(np.float64)
        assert (x >= 0).all()
        assert abs(x.mean() - a) < 5 * math.sqrt(a / N)
        spread = math.sqrt((2 * a * a + 6 * a) / N)  # of the variance
        assert abs(x.var() - a) < 5 * spread


def test_permutations_are_equally_likely_and_complete():
    keys = random.split(random.key(4), 6000)
    x = tn.vmap(lambda k: random.permutation(3, key=k))(keys).numpy()
    counts = np.bincount(x[:, 0] * 3 + x[:, 1], minlength=9)
    assert chi_square(counts[counts > 0], 1000) < 40 and (counts > 0).sum() == 6
    rows = random.permutation(tn.arange(12).reshape((6, 2)), key=random.key(0)).numpy()
    assert (rows[:, 1] == rows[:, 0] + 1).all() and sorted(rows[:, 0]) == [0, 2, 4, 6, 8, 10]
    lines = random.permutation(tn.arange(12).reshape((2, 6)), 1, True, random.key(0)).numpy()
    assert (np.sort(lines, 1) == np.arange(12).reshape(2, 6)).all()


def test_shapes_types_and_edges():
    key = random.key(0)
    assert random.uniform(shape=3, key=key).shape == (3,)
    assert random.uniform(shape=(0, 2), key=key).shape == (0, 2)
    assert random.uniform(key=key).shape == () and random.uniform(key=key).dtype == tn.float32
    assert tn.rand(2, 3).shape == (2, 3) and tn.randn(4, dtype="float16").dtype == tn.float16
    assert random.categorical(tn.zeros((2, 5)), num_samples=7, key=key).shape == (2, 7)
    assert random.categorical(tn.zeros((2, 5)), axis=0, key=key).shape == (5,)
    assert random.bernoulli(tn.array([0.0, 1.0]), key=key).tolist() == [False, True]
    assert random.choice(tn.zeros((2, 5)), (3, 4), axis=1, key=key).shape == (2, 3, 4)
    assert random.choice(tn.zeros((0,)), (0,), key=key).shape == (0,)
    assert random.permutation(0, key=key).shape == (0,)
    low, high = tn.array([0, 10, 5]), tn.array([5, 11, 5])
    x = random.randint(low, high, (100, 3), key=key).numpy()
    assert (x[:, 0] < 5).all() and (x[:, 1] == 10).all() and (x[:, 2] == 5).all()
    x = tn.arange(4.0)
    assert tn.dropout(x, p=0.0).tolist() == x.tolist()
    assert tn.dropout(x, p=1.0).tolist() == [0, 0, 0, 0]


ERRORS = [
    (lambda: random.uniform(key=tn.zeros((2,))), "a key is u32[2]: f32[2]", TypeError),
    (lambda: random.normal((2,), loc=random.key(0)), "loc is a key: u32[2]", TypeError),
    (lambda: random.uniform(key=tn.zeros((3,), dtype="uint32")), "a key is u32[2]", ValueError),
    (lambda: random.uniform(key=random.split(random.key(0))), "needs one key", ValueError),
    (lambda: random.uniform(shape=(-1,)), "negative", ValueError),
    (lambda: random.uniform(dtype="int32"), "element type i32", TypeError),
    (lambda: random.uniform(tn.zeros((3,))), "low does not broadcast to shape []", ValueError),
    (lambda: random.bits(dtype="int32"), "bits are unsigned", TypeError),
    (lambda: random.bernoulli(1.5), "p must lie in [0, 1]: 1.5", ValueError),
    (lambda: random.randint(3, 3), "low must be less than high: 3 and 3", ValueError),
    (lambda: random.randint(0, 300, dtype="uint8"), "does not fit u8", ValueError),
    (lambda: random.randint(0, 10, dtype="float32"), "element type f32", TypeError),
    (lambda: random.choice(3, (5,), replace=False), "5 draws without replacement", ValueError),
    (lambda: random.choice(0, (5,)), "nothing to choose from", ValueError),
    (lambda: random.choice(3, p=tn.ones((2,))), "one probability per element", ValueError),
    (lambda: random.permutation(-1), "negative: -1", ValueError),
    (lambda: random.permutation(tn.zeros((2,)), axis=1), "axis", IndexError),
    (lambda: random.categorical(tn.zeros((2, 0))), "no class", ValueError),
    (lambda: random.categorical(tn.zeros((2, 3)), shape=(3,)), "broadcast", ValueError),
    (lambda: tn.dropout(tn.zeros((2,)), p=2.0), "p must lie in [0, 1]: 2", ValueError),
    (lambda: random.key(1.5), "key: element type f32", TypeError),
    (lambda: random.gamma(-1.0), "a must not be negative: -1", ValueError),
    (lambda: random.gamma(1.0, dtype="float16"), "draws f32 or f64: f16", TypeError),
    (lambda: random.poisson(-1.0), "lam must not be negative: -1", ValueError),
]


@pytest.mark.parametrize("call, text, kind", ERRORS, ids=[e[1] for e in ERRORS])
def test_mistakes_are_named(call, text, kind):
    with pytest.raises(kind) as caught:
        call()
    assert text in str(caught.value)


@pytest.mark.parametrize(
    "draw",
    [
        lambda k: random.normal(k, (3,)),
        lambda k: random.uniform(k, (3,)),
        lambda k: random.randint(k, 0, 10, (3,)),
        lambda k: random.bernoulli(k, 0.5),
    ],
)
def test_a_key_in_the_first_place_is_told_where_it_goes(draw):
    with pytest.raises(tn.Error, match="a key is given by name: key=key"):
        draw(random.key(0))


def test_randint_with_one_bound():
    key = tn.random.key(3)
    wanted = tn.random.randint(0, 10, (4,), key=key).tolist()
    assert tn.random.randint(10, (4,), key=key).tolist() == wanted
    assert tn.random.randint(10, shape=(4,), key=key).tolist() == wanted
    assert 0 <= tn.random.randint(10).item() < 10


def test_names_of_other_libraries_have_hints():
    with pytest.raises(AttributeError, match=r"here: tn\.tree\.map\(lambda a, p: 0\.999 \* a"):
        tn.optim.EMA
    with pytest.raises(AttributeError, match=r"here: tn\.random\.permutation\(n\)"):
        tn.random.randperm
    with pytest.raises(AttributeError, match="did you mean 'uniform'"):
        tn.random.unifrom
