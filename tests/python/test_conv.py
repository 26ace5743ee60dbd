"""Convolutions and pooling beyond the samples of the op table: many configurations against direct
loops, layouts, adjoints, batching, and what the errors say."""

import numpy as np
import pytest

import flat
import tenon as tn
from reference_conv import avg_pool, conv, conv_layer, conv_transpose, max_pool, window_fold


def randoms(rng, *shapes):
    return [rng.normal(size=shape) for shape in shapes]


def configuration(seed):
    """Operands and attributes of a convolution; some have no result."""
    rng = np.random.default_rng(seed)
    axes, groups, channels, out = (int(rng.integers(1, 4)) for _ in range(4))
    extents, kernel = rng.integers(1, 8, axes), rng.integers(1, 4, axes)
    numbers = {
        "stride": rng.integers(1, 4, axes).tolist(),
        "padding": rng.integers(-1, 4, 2 * axes).tolist(),
        "input_dilation": rng.integers(1, 4, axes).tolist(),
        "kernel_dilation": rng.integers(1, 4, axes).tolist(),
        "groups": groups,
    }
    x, w = randoms(
        rng,
        (int(rng.integers(0, 4)), groups * channels, *extents),
        (groups * out, channels, *kernel),
    )
    return rng, x, w, numbers


def fits(x, w, numbers):
    """Whether the kernel fits into the padded input."""
    sides = np.reshape(numbers["padding"], (-1, 2)).sum(1)
    extents = (np.array(x.shape[2:]) - 1) * numbers["input_dilation"] + 1 + sides
    return (extents >= (np.array(w.shape[2:]) - 1) * numbers["kernel_dilation"] + 1).all()


CONFIGURATIONS = [c for c in map(configuration, range(60)) if fits(*c[1:])]


def test_values_of_random_configurations():
    for _, x, w, numbers in CONFIGURATIONS:
        got = tn.conv(tn.asarray(x), tn.asarray(w), **numbers).numpy()
        np.testing.assert_allclose(got, conv(x, w, **numbers), atol=1e-12, err_msg=str(numbers))


def test_adjoints_of_random_configurations():
    """<ct, conv(x', w)> = <x̄, x'> for every x', and so for the kernel."""
    for rng, x, w, numbers in CONFIGURATIONS:
        want = conv(x, w, **numbers)
        ct, other_x, other_w = randoms(rng, want.shape, x.shape, w.shape)
        operands = [tn.asarray(x), tn.asarray(w)]
        f = lambda given: [tn.conv(*given, **numbers)]
        of_x, of_w = flat.vjp(f, operands, [tn.asarray(ct)])[1]
        np.testing.assert_allclose(
            [(of_x.numpy() * other_x).sum(), (of_w.numpy() * other_w).sum()],
            [(ct * conv(other_x, w, **numbers)).sum(), (ct * conv(x, other_w, **numbers)).sum()],
            atol=1e-9,
            err_msg=str(numbers),
        )


@pytest.mark.parametrize("batched", [(True, False), (False, True), (True, True)])
def test_batches_are_stacks_of_examples(batched):
    for rng, x, w, numbers in CONFIGURATIONS[:20]:
        given = [
            rng.normal(size=(3, *of.shape)) if many else of for of, many in zip((x, w), batched)
        ]
        f = lambda v: [tn.conv(*v, **numbers)]
        axes = [0 if many else None for many in batched]
        got = flat.vmap(f, [tn.asarray(v) for v in given], axes)[0].numpy()
        examples = [
            conv(*(v[i] if many else v for v, many in zip(given, batched)), **numbers)
            for i in range(3)
        ]
        np.testing.assert_allclose(got, np.stack(examples), atol=1e-12, err_msg=str(numbers))


@pytest.mark.parametrize(
    "x, w, numbers",
    [
        ((2, 96, 20, 20), (40, 96, 3, 3), {"padding": 1}),  # several tiles and depths
        ((1, 8, 90, 70), (200, 8, 2, 2), {"stride": 2}),  # several parts of the channels out
        ((3, 16, 30), (16, 1, 5), {"groups": 16}),  # one channel for each group
        ((2, 12, 9, 9), (18, 4, 1, 1), {"groups": 3}),  # no patches
        ((2, 3, 50, 40), (4, 3, 45, 33), {}),  # kernels longer than results
        ((0, 3, 5, 5), (4, 3, 3, 3), {}),
        ((2, 0, 5, 5), (4, 0, 3, 3), {}),
    ],
)
def test_values_of_larger_shapes(x, w, numbers):
    x, w = randoms(np.random.default_rng(0), x, w)
    want = conv(x, w, **numbers)
    got = tn.conv(tn.asarray(x), tn.asarray(w), **numbers).numpy()
    np.testing.assert_allclose(got, want, atol=1e-10)
    single = tn.conv(tn.asarray(x.astype("f4")), tn.asarray(w.astype("f4")), **numbers).numpy()
    np.testing.assert_allclose(single, want, atol=1e-3)


def test_bits_do_not_depend_on_threads_or_the_batch():
    given = randoms(np.random.default_rng(0), (4, 64, 30, 30), (70, 64, 3, 3))
    x, w = (v.astype("f4") for v in given)
    together = tn.conv(tn.asarray(x), tn.asarray(w)).numpy()
    threads = tn.num_threads()
    try:
        for count in (1, 3):
            tn.set_num_threads(count)
            again = tn.conv(tn.asarray(x), tn.asarray(w)).numpy()
            assert again.tobytes() == together.tobytes()
    finally:
        tn.set_num_threads(threads)
    alone = tn.conv(tn.asarray(x[2:3]), tn.asarray(w)).numpy()
    assert alone.tobytes() == together[2:3].tobytes()


@pytest.mark.parametrize("dtype", ["float16", "bfloat16"])
def test_narrow_floats_are_rounded_once(dtype):
    """Ones are counted exactly where a narrow sum would stop growing."""
    x, w = tn.ones((1, 50, 9, 9)).astype(dtype), tn.ones((2, 50, 9, 9)).astype(dtype)
    got = tn.conv(x, w).astype("float32").numpy()
    assert (got == np.float32(tn.asarray(4050.0).astype(dtype).astype("float32").numpy())).all()


@pytest.mark.parametrize("axes", [1, 2, 3])
def test_transposed_is_the_adjoint_of_the_convolution(axes):
    rng = np.random.default_rng(axes)
    for stride, padding, dilation, groups in [(1, 0, 1, 1), (2, 1, 1, 2), (3, 2, 2, 1)]:
        kernel, extent = (3,) * axes, 8
        x, w = randoms(rng, (2, 4, *(extent,) * axes), (6, 4 // groups, *kernel))
        numbers = {"stride": stride, "padding": padding, "dilation": dilation, "groups": groups}
        y = getattr(tn, f"conv{axes}d")(tn.asarray(x), tn.asarray(w), **numbers)
        ct = rng.normal(size=y.shape)
        f = lambda v: [getattr(tn, f"conv{axes}d")(v[0], tn.asarray(w), **numbers)]
        of_x = flat.vjp(f, [tn.asarray(x)], [tn.asarray(ct)])[1][0].numpy()
        left = extent - ((y.shape[-1] - 1) * stride - 2 * padding + dilation * 2 + 1)
        transposed = getattr(tn, f"conv_transpose{axes}d")
        got = transposed(tn.asarray(ct), tn.asarray(w), output_padding=left, **numbers).numpy()
        np.testing.assert_allclose(got, of_x, atol=1e-12)
        want = conv_transpose(ct, w, None, stride, padding, left, groups, dilation)
        np.testing.assert_allclose(got, want, atol=1e-12)


def test_same_padding_keeps_extents():
    x, w = randoms(np.random.default_rng(0), (1, 2, 7, 10), (3, 2, 3, 4))
    y = tn.conv2d(tn.asarray(x), tn.asarray(w), padding_mode="same")
    assert y.shape == (1, 3, 7, 10)
    np.testing.assert_allclose(y.numpy(), conv_layer(x, w, padding_mode="same"), atol=1e-12)
    y = tn.conv2d(tn.asarray(x), tn.asarray(w), stride=(2, 3), padding_mode="same")
    assert y.shape == (1, 3, 4, 4)


def test_layouts_agree():
    given = randoms(np.random.default_rng(0), (2, 4, 6, 5), (6, 2, 3, 3), (6,))
    x, w, b = map(tn.asarray, given)
    first = tn.conv2d(x, w, b, 2, 1, 1, 2)
    last = tn.conv2d(
        x.permute_dims(0, 2, 3, 1), w.permute_dims(0, 2, 3, 1), b, 2, 1, 1, 2, channels_last=True
    )
    np.testing.assert_array_equal(first.numpy(), last.permute_dims(0, 3, 1, 2).numpy())


def test_pools_of_several_shapes():
    rng = np.random.default_rng(0)
    for size, stride, padding in [(2, None, 0), (3, 2, 1), (3, 1, 2), (2, 3, 1)]:
        (x,) = randoms(rng, (2, 3, 7, 8))
        given = {"kernel_size": size, "stride": stride, "padding": padding}
        got = tn.max_pool(tn.asarray(x), **given).numpy()
        np.testing.assert_array_equal(got, max_pool(x, **given))
        for counted in (True, False):
            got = tn.avg_pool(tn.asarray(x), count_include_pad=counted, **given).numpy()
            want = avg_pool(x, count_include_pad=counted, **given)
            np.testing.assert_allclose(got, want, atol=1e-14)


def test_gradients_of_pools():
    """The largest element of a window gets its cotangent, equal ones share it."""
    x = tn.asarray(np.array([[[1.0, 3.0, 2.0, 5.0, 5.0, 4.0]]]))
    ct = tn.asarray(np.array([[[1.0, 10.0, 100.0]]]))
    gradient = lambda f: flat.vjp(lambda v: [f(v[0], 2)], [x], [ct])[1][0].numpy().ravel()
    np.testing.assert_array_equal(gradient(tn.max_pool), [0, 1, 0, 10, 100, 0])
    np.testing.assert_array_equal(gradient(tn.avg_pool), [0.5, 0.5, 5, 5, 50, 50])
    tied = tn.asarray(np.array([[[2.0, 2.0, 1.0, 0.0]]]))
    ct = tn.asarray(np.array([[[1.0, 1.0]]]))
    of_x = flat.vjp(lambda v: [tn.max_pool(v[0], 2)], [tied], [ct])[1][0].numpy().ravel()
    np.testing.assert_array_equal(of_x, [0.5, 0.5, 1, 0])


def test_narrow_windows_are_folded_in_float32():
    x = tn.full((1, 600, 600), 1 / 512).astype("float16")
    got = tn.window_fold(x, 1199).astype("float32").numpy()
    want = window_fold(np.full((1, 600, 600), 1 / 512), 1199)
    np.testing.assert_array_equal(got, want.astype(np.float16).astype(np.float32))


ERRORS = [
    (lambda x, w: tn.conv2d(x, w[:, :2]), "conv2d: x has 3 channels, the kernel takes 2"),
    (lambda x, w: tn.conv2d(x, w, groups=2), "2 groups do not divide 3 channels into 4"),
    (lambda x, w: tn.conv2d(x, w, groups=0), "groups must be 1 or more: 0"),
    (lambda x, w: tn.conv2d(x[:, :, :2], w), "the kernel is larger than the padded input: 3 and 2"),
    (lambda x, w: tn.conv2d(x[0], w), r"x is \[batch, channels, height, width\]"),
    (lambda x, w: tn.conv1d(x, w), r"x is \[batch, channels, length\]"),
    (lambda x, w: tn.conv2d(x[0], w, channels_last=True), r"x is \[batch, height, width, chan"),
    (lambda x, w: tn.conv2d(x, w, stride=0), "conv2d: stride must be 1 or more: 0"),
    (lambda x, w: tn.conv2d(x, w, stride=(1, 1, 1)), "stride has 3 numbers for 2 spatial axes"),
    (lambda x, w: tn.conv2d(x, w, padding=(1, 1, 1)), "padding has 3 numbers for 2 spatial axes"),
    (lambda x, w: tn.conv2d(x, w, dilation=-1), "dilation must be 1 or more: -1"),
    (lambda x, w: tn.conv2d(x, w, padding=2**40), "padding is too wide"),
    (lambda x, w: tn.conv2d(x, w, tn.zeros((3,))), r"bias must have the shape \[4\]"),
    (lambda x, w: tn.conv2d(x, w[:, :, :0]), "the kernel is empty"),
    (lambda x, w: tn.conv(x[0], w), r"conv: x is \[batch, channels, 1 to 3 spatial axes\]"),
    (lambda x, w: tn.conv_transpose2d(x, w), "conv_transpose2d: x has 3 channels"),
    (lambda x, w: tn.conv_transpose2d(x, w[:3], groups=2), "2 groups do not divide the 3 channels"),
    (lambda x, w: tn.conv_transpose2d(x, w[:3], output_padding=1), "output_padding must be small"),
    (lambda x, w: tn.conv_transpose2d(x[:, :, :1], w[:3], padding=2), "leaves no results"),
    (lambda x, w: tn.convolve(x, w), "both operands have one axis"),
    (lambda x, w: tn.convolve(tn.zeros((0,)), tn.zeros((3,))), "an operand is empty"),
    (lambda x, w: tn.max_pool(x, 7), "max_pool: the kernel is larger than the padded input"),
    (lambda x, w: tn.max_pool(x, 2, padding=2), "padding must be at least 0 and smaller"),
    (lambda x, w: tn.max_pool(x[0, 0], 2), r"x is \[batch, channels, spatial axes ...\]"),
    (lambda x, w: tn.avg_pool(x, (2, 2, 2)), "kernel_size has 3 numbers for 2 spatial axes"),
    (lambda x, w: tn.window(x, (1, 1, 1, 1)), "windows over 4 trailing axes, of 1 to 3"),
    (lambda x, w: tn.window_fold(x, 9), "window_fold: 9 elements have 4 windows of 6, not 5"),
]


@pytest.mark.parametrize("call, words", ERRORS)
def test_errors_say_what_is_wrong(call, words):
    with pytest.raises(ValueError, match=words):
        call(tn.zeros((2, 3, 5, 6)), tn.zeros((4, 3, 3, 3)))


def small_network(params, x):
    """Two layers, pooling, a residual and the mean over all places."""
    y = tn.relu(tn.conv2d(x, params[0], params[1], stride=2, padding=1))
    y = tn.max_pool(y, 3, stride=2, padding=1)
    y = tn.relu(tn.conv2d(y, params[2], padding=1) + y)
    return tn.mean(y, (2, 3))


def small_network_arguments():
    rng = np.random.default_rng(3)
    shapes = [(20, 3, 3, 3), (20,), (20, 20, 3, 3), (2, 3, 17, 18)]
    *params, x = (tn.array(rng.standard_normal(s, dtype=np.float32)) for s in shapes)
    return params, x


@pytest.mark.parametrize("off", [(), ("layout",)])
def test_compiled_networks_have_the_bits_of_uncompiled_ones(off):
    params, x = small_network_arguments()
    f = tn.compile(small_network, off=off)
    assert f(params, x).numpy().tobytes() == small_network(params, x).numpy().tobytes()


def test_compiled_gradients_of_networks_are_those_of_uncompiled_ones():
    params, x = small_network_arguments()
    gradients = tn.grad(lambda params: tn.sum(tn.square(small_network(params, x))))
    for got, want in zip(tn.compile(gradients)(params), gradients(params)):
        np.testing.assert_allclose(got.numpy(), want.numpy(), rtol=1e-4, atol=1e-4)


def test_constant_weights_are_packed_once():
    params, x = small_network_arguments()
    f = tn.compile(lambda x: small_network(params, x))
    assert f(x).numpy().tobytes() == small_network(params, x).numpy().tobytes()
