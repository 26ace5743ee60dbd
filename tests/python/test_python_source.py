"""Graphs written as Python files: the same results as here, from nothing but the target library."""

import inspect
import json
import os
import pathlib
import re
import subprocess
import sys

import numpy as np
import pytest

import tenon as tn
from op_harness import Call, numpy_of, varying

HERE = pathlib.Path(__file__).parent
PEERS = HERE.parent.parent / "build" / "peers" / "bin" / "python"
TARGETS = ["numpy", "torch", "jax"]
TOLERANCE = {
    "float16": 4e-3,
    "float32": 1e-5,
    "complex64": 1e-5,
    "float64": 1e-11,
    "complex128": 1e-11,
}
TYPES = [tn.float32, tn.int32, tn.bool, tn.uint8, tn.uint32, tn.int64, tn.float16, tn.float64,
         tn.complex64]
# What has no form, and why.
WITHOUT_FORM = {
    "random_gamma": "rejection, as many draws as it takes",
    "random_poisson": "rejection, as many draws as it takes",
}
# Factors that are unique up to signs, or in no particular order: what they multiply to is tested.
UP_TO_SIGNS = {"eig", "eigvals", "eigh", "svd", "qr"}
# By their texts: what no file can do, or no library.
EXPECTED = (
    "its shape depends on values",
    "numpy does not compute with bfloat16",
    "torch has no",  # of uint64
)
ENDS_THE_PROCESS = {"jax": "conv_transpose3d(f32[1,2,2,3,2]"}  # a check of XLA fails


def listed(result):
    return list(result) if isinstance(result, (list, tuple)) else [result]


class Case:
    """A function with arguments, and what it gives here."""

    def __init__(self, name, function, arguments):
        self.name, self.function, self.arguments = name, function, arguments
        self.compiled = tn.compile(function)
        self.want = [numpy_of(x) for x in listed(function(*arguments))]

    def text(self, target):
        if not self.arguments:
            self.compiled()
        return self.compiled.source(target, *self.arguments)


def run_cases(cases, target, folder):
    """Results by name of the cases that the target can write, and why others failed."""
    folder.mkdir(exist_ok=True)
    listed_cases, arrays, refused = [], {}, {}
    for number, case in enumerate(cases):
        try:
            text = case.text(target)
        except tn.Error as error:
            refused[case.name] = f"{type(error).__name__}: {error}"
            continue
        (folder / f"case{number}.py").write_text(text)
        names = [f"{number}/{i}" for i in range(len(case.arguments))]
        arrays.update({n: numpy_of(a) for n, a in zip(names, case.arguments)})
        function = re.findall(r"^def (\w+)\(", text, re.M)[-1]
        file = {"file": f"case{number}.py", "function": function}
        listed_cases.append({"name": case.name, "arguments": names, **file})
    (folder / "cases.json").write_text(json.dumps(listed_cases))
    np.savez(folder / "arguments.npz", **arrays)
    python = sys.executable if target == "numpy" else str(PEERS)
    command = [python, "-I", str(HERE / "source_runner.py"), target, str(folder)]
    done = subprocess.run(command, capture_output=True, text=True, env={"PATH": "/usr/bin"})
    assert done.returncode == 0, done.stderr[-2000:]
    errors = json.loads((folder / "errors.json").read_text())
    return np.load(folder / "results.npz"), errors, refused


def differences(case, results):
    """What is wrong with the results of a case; None: nothing."""
    for i, want in enumerate(case.want):
        key = f"{case.name}/{i}"
        if key not in results:
            return f"result {i} is missing"
        got = results[key]
        if got.dtype != want.dtype or got.shape != want.shape:
            return f"{got.dtype}{list(got.shape)}, not {want.dtype}{list(want.shape)}"
        tolerance = TOLERANCE.get(want.dtype.name, 0)
        if tolerance == 0:
            if not np.array_equal(got, want):
                return f"{got} and {want}"
        elif not np.allclose(got, want, rtol=tolerance, atol=tolerance, equal_nan=True):
            return f"{np.abs(got - want).max()} apart: {got} and {want}"
    return None


def need(target):
    if target != "numpy" and not PEERS.exists():
        pytest.skip(f"{target} is not installed")


def check(cases, target, folder, allowed=lambda case: False):
    need(target)
    results, errors, refused = run_cases(cases, target, folder)
    failed = refused | errors
    skipped = {n for n, text in failed.items() if any(e in text for e in EXPECTED)}
    wrong = {n: e for n, e in failed.items() if n not in skipped}
    for case in cases:
        if case.name not in failed and (found := differences(case, results)):
            wrong[case.name] = found
    by_name = {c.name: c for c in cases}
    wrong = {n: e for n, e in wrong.items() if not allowed(by_name[n])}
    assert not wrong, f"{len(wrong)} of {len(cases)}:\n" + "\n".join(
        f"{n}: {e[:300]}" for n, e in wrong.items()
    )


def sample_cases(target):
    seen = set()
    for sample in tn.testing.samples():
        if target == "jax" and sample.op in seen:
            continue  # it compiles every op for every shape
        seen.add(sample.op)
        every = sample.family in ("elementwise", "reduction") and varying(sample)
        types = [tn.float32, tn.int32] if target == "jax" else TYPES
        for dtype in types if every else [tn.float32]:
            if every and dtype not in sample.dtypes:
                continue
            if sample.text.startswith(ENDS_THE_PROCESS.get(target, "-")):
                continue
            call = Call(sample, dtype)
            try:
                yield Case(f"{sample.text} {dtype.name}", sample.call, call.operands())
            except (tn.Error, TypeError):
                continue  # the value decides the shape, or the op does not take the type


@pytest.mark.parametrize("target", TARGETS)
def test_every_sample_of_every_op(target, tmp_path):
    def allowed(case):
        op = case.name.split("(")[0]
        return op in WITHOUT_FORM or op in UP_TO_SIGNS

    check(list(sample_cases(target)), target, tmp_path / target, allowed)


def normal(*shape, seed=0):
    rng = np.random.default_rng(seed + sum(shape))
    return tn.asarray(rng.standard_normal(shape).astype(np.float32) * 0.5)


def mlp(x, w1, b1, w2, b2):
    hidden = tn.relu(x @ w1 + b1)
    return hidden @ w2 + b2


def cnn(x, kernel, scale, shift, weight, bias):
    features = tn.conv2d(x, kernel, padding=1)
    centred = features - tn.mean(features, axis=(0, 2, 3), keepdims=True)
    variance = tn.mean(centred * centred, axis=(0, 2, 3), keepdims=True)
    normed = centred * tn.rsqrt(variance + 1e-5) * scale[:, None, None] + shift[:, None, None]
    pooled = tn.max_pool(tn.relu(normed), kernel_size=2)
    return tn.mean(pooled, axis=(2, 3)) @ weight + bias


def attention(x, wq, wk, wv, wo):
    def heads(y):
        return y.reshape(y.shape[0], y.shape[1], 2, -1).transpose(0, 2, 1, 3)

    q, k, v = heads(x @ wq), heads(x @ wk), heads(x @ wv)
    mixed = tn.scaled_dot_product_attention(q, k, v, is_causal=True)
    return mixed.transpose(0, 2, 1, 3).reshape(x.shape) @ wo


def gradient_of(f):
    """Cotangents of all arguments, of the mean of the squared results."""

    def loss(*args):
        return tn.mean(tn.square(f(*args)))

    def gradients(*args):
        value, grads = tn.value_and_grad(loss, argnums=tuple(range(len(args))))(*args)
        return (value, *grads)

    gradients.__name__ = f"{f.__name__}_gradients"
    gradients.__signature__ = inspect.signature(f)
    return gradients


MODELS = {
    mlp: [normal(8, 5), normal(5, 16), normal(16), normal(16, 3), normal(3)],
    cnn: [normal(2, 3, 8, 8), normal(4, 3, 3, 3), normal(4), normal(4), normal(4, 5), normal(5)],
    attention: [normal(2, 6, 8), *(normal(8, 8, seed=i) for i in range(4))],
}


def layer_cases():
    """Layers of nn as functions of their parameters and inputs, forwards and backwards."""
    tn.random.seed(0)
    nn = tn.nn
    tokens = tn.asarray(np.arange(12).reshape(2, 6) % 7)
    layers = {
        "embedding": (nn.Embedding(7, 4), tokens),
        "lstm": (nn.LSTM(4, 5), normal(2, 6, 4)),
        "gru": (nn.GRU(4, 5), normal(2, 6, 4)),
        "encoder": (nn.TransformerEncoderLayer(8, 2, 16), normal(2, 6, 8)),
        "batch_norm": (nn.BatchNorm(4), normal(6, 4)),
        "group_norm": (nn.GroupNorm(2, 4), normal(2, 4, 3, 3)),
        "rms_norm": (nn.RMSNorm(8), normal(2, 6, 8)),
        "avg_pool": (nn.AvgPool2d(2), normal(2, 3, 6, 6)),
        "conv_transpose": (nn.ConvTranspose2d(3, 4, 3, stride=2), normal(2, 3, 5, 5)),
        "gelu": (nn.GELU(), normal(3, 4)),
        "rope": (nn.RoPE(8), normal(2, 2, 6, 8)),
    }
    for name, (layer, x) in layers.items():
        layer.eval()
        leaves, structure = tn.tree.flatten(layer)
        leaves = [tn.asarray(leaf) for leaf in leaves]

        def forward(x, *leaves, structure=structure):
            made = tn.tree.unflatten(structure, leaves)(x)
            return made[0] if isinstance(made, tuple) else made

        yield Case(name, forward, [x, *leaves])
        if all(leaf.dtype == tn.float32 for leaf in leaves) and leaves and name != "embedding":
            yield Case(f"{name} gradients", gradient_of(forward), [x, *leaves])


@pytest.mark.parametrize("target", TARGETS)
def test_models_and_their_gradients(target, tmp_path):
    cases = []
    for f, arguments in MODELS.items():
        cases.append(Case(f.__name__, f, arguments))
        cases.append(Case(f"{f.__name__}_gradients", gradient_of(f), arguments))
    check(cases + list(layer_cases()), target, tmp_path / target)


GOLDEN = HERE.parent / "golden" / "source"
GOLDENS = [
    (mlp, "numpy"),
    (gradient_of(mlp), "numpy"),
    (cnn, "torch"),
    (gradient_of(cnn), "torch"),
    (attention, "numpy"),
    (attention, "jax"),
    (gradient_of(attention), "jax"),
]


@pytest.mark.parametrize("f, target", GOLDENS, ids=lambda x: getattr(x, "__name__", x))
def test_golden_files(f, target):
    arguments = next(a for g, a in MODELS.items() if f.__name__.startswith(g.__name__))
    text = tn.compile(f).source(target, *arguments) + "\n"
    path = GOLDEN / f"{f.__name__}_{target}.py"
    if os.environ.get("TENON_UPDATE_GOLDEN"):
        path.parent.mkdir(exist_ok=True)
        path.write_text(text)
    assert text == path.read_text(), f"{path.name}: TENON_UPDATE_GOLDEN=1 writes it again"


def test_open_sizes_come_from_shapes(tmp_path):
    f = tn.compile(lambda x, w: tn.concat([x @ w, tn.zeros((x.shape[0], 2))], axis=1) / x.shape[0])
    for rows in (3, 5):
        f(normal(rows, 4), normal(4, 2))
    text = f.source("numpy", normal(6, 4), normal(4, 2))
    assert ".shape[0]" in text
    scope = {}
    exec(text, scope)
    x, w = normal(9, 4), normal(4, 2)
    np.testing.assert_allclose(scope["main"](x.numpy(), w.numpy()), f(x, w).numpy(), rtol=1e-5)


def test_what_has_no_form_is_named():
    f = tn.compile(lambda key: tn.random.poisson(2.0, (3,), key=key))
    with pytest.raises(tn.Unsupported, match="random_poisson has no form for jax"):
        f.source("jax", tn.random.key(0))
    with pytest.raises(tn.Unsupported, match="numpy does not compute with bfloat16"):
        tn.compile(tn.exp).source("numpy", tn.zeros(3, dtype=tn.bfloat16))
    with pytest.raises(ValueError, match="names a target: numpy, torch or jax"):
        tn.compile(tn.exp).source("fortran", tn.zeros(3))




def test_constants_lie_beside_the_file(tmp_path):
    weight, bias = normal(4, 3), normal(3)

    def layer(x):
        return tn.tanh(x @ weight + bias)

    program = tn.compile(layer, args=[tn.InputInfo((2, 4), tn.float32)])
    assert "weight,  # f32[4, 3]" in program.source("numpy")  # alone, they are arguments
    text, constants = tn._core._python_source(
        [("layer", program._program)], "numpy", "layer.safetensors"
    )
    (tmp_path / "layer.py").write_text(text)
    (tmp_path / "layer.safetensors").write_bytes(constants)
    x = normal(2, 4)
    np.save(tmp_path / "x.npy", x.numpy())
    code = "import numpy as np, layer; np.save('y.npy', layer.layer(np.load('x.npy')))"
    code = f"import sys; sys.path.insert(0, {str(tmp_path)!r}); {code}"
    subprocess.run([sys.executable, "-I", "-c", code], cwd=tmp_path, check=True)
    np.testing.assert_allclose(np.load(tmp_path / "y.npy"), layer(x).numpy(), rtol=1e-5)
