"""Programs as C files: compiled without a warning, the bits of this compiler, products apart."""

import os
import pathlib
import re
import subprocess
import sys

import numpy as np
import pytest

import tenon as tn
from op_harness import TYPES, Call, bits_of, is_float, varying
from tenon.model import c_backend

STRICT = ("-O1", "-march=native", "-Wall", "-Wextra", "-Werror")
QUICK = ("-O0", *STRICT[1:])
# Sums in another order than the runtime's.
CLOSE = {"conv_weights", "scaled_dot_product_attention", "einsum"}
# Calls of LAPACK and of Fourier transforms, draws that try again, products of complex numbers.
REFUSED = {
    "cholesky", "eig", "eigh", "eigvals", "eigvalsh", "fft_axis", "lu_factor", "prod", "qr",
    "random_gamma", "random_poisson", "svd", "svdvals", "triangular_solve",
}
SAMPLES = [s for s in tn.testing.samples() if s.family not in ("elementwise", "reduction")]


def ahead(f, operands, **options):
    infos = [tn.InputInfo(x.shape, x.dtype) for x in operands]
    return tn.compile(f, args=infos, **options)


def as_list(result):
    return list(result) if isinstance(result, (list, tuple)) else [result]


def text_of(executable, name="f"):
    return tn._core._c_source([(name, executable._program)])


def types_of(sample):
    """Some of the element types, others for every sample."""
    if sample.family != "general" or not varying(sample):
        return [tn.float32]
    return [tn.float32, *TYPES[len(sample.text) % 3::3]]


def check(expected, actual, close, where):
    for want, got in zip(expected, actual, strict=True):
        if close and is_float(want.dtype):
            wide = (tn.complex128 if want.dtype.name.startswith("complex") else tn.float64)
            limit = 1e-5 if want.dtype in (tn.float32, tn.float64) else 2e-2
            np.testing.assert_allclose(got.astype(wide).numpy(), want.astype(wide).numpy(),
                                       rtol=limit, atol=limit, err_msg=where)
        else:
            assert bits_of(got) == bits_of(want), where


def test_every_op_of_the_table():
    refused, cases = set(), []
    for sample in SAMPLES:
        for dtype in types_of(sample):
            call = Call(sample, dtype)
            operands = call.operands()
            try:
                made = ahead(lambda *xs, call=call: call.run(list(xs)), operands,
                             optimization_level=0)
                expected = as_list(made(*operands))
                text_of(made)
            except TypeError:
                continue
            except tn.Unsupported as error:
                refused.add(str(error))
                continue
            except ValueError:  # it needs values to be recorded
                continue
            cases.append((sample, dtype, made, operands, expected))
    assert len(cases) > 350
    for error in refused:
        op = re.match(r"c source: (\w+) has no form in C", error)
        assert op and (op[1] in REFUSED or "complex elements" in error), error
    names = [(f"f{i}", made._program) for i, (_, _, made, _, _) in enumerate(cases)]
    text, constants = tn._core._c_source(names)
    for i, (sample, dtype, _, operands, expected) in enumerate(cases):
        run = c_backend.build(text, constants, f"f{i}", QUICK)
        close = sample.op in CLOSE
        check(expected, run(operands), close, f"{sample} with {dtype.name}")


def standard(seed, *shape):
    made = np.random.default_rng(seed).standard_normal(shape) / max(1, np.prod(shape[1:])) ** 0.5
    return tn.asarray(made.astype("f4"))


def norm(x, axes, scale, shift):
    centred = x - x.mean(axes, keepdims=True)
    return centred * tn.rsqrt((centred**2).mean(axes, keepdims=True) + 1e-5) * scale + shift


def cnn(x, w1, scale, shift, w2, w3, b3):
    """That of the document: convolutions, batch norm, relu, global average pooling, linear."""
    h = norm(tn.conv2d(x, w1), (0, 2, 3), scale, shift)
    h = tn.conv2d(tn.relu(h), w2, stride=2, padding=1)
    return h.mean((2, 3)) @ w3.T + b3


CNN = (standard(0, 2, 3, 19, 18), standard(1, 20, 3, 3, 3), standard(2, 1, 20, 1, 1),
       standard(3, 1, 20, 1, 1), standard(4, 17, 20, 3, 3), standard(5, 10, 17), standard(6, 10))


def block(x, q, k, v, o, up, down):
    """Attention and two layers, of a transformer."""
    h = norm(x, -1, 1.0, 0.0)
    h = tn.scaled_dot_product_attention(*((h @ w)[:, None] for w in (q, k, v)))[:, 0]
    x = x + h @ o
    return x + tn.gelu(norm(x, -1, 1.0, 0.0) @ up) @ down


BLOCK = (standard(0, 3, 21, 16), *(standard(i, 16, 16) for i in range(1, 5)),
         standard(5, 16, 48), standard(6, 48, 16))


def mlp(x, w1, b1, w2, b2):
    return tn.relu(x @ w1.T + b1) @ w2.T + b2


MLP = (standard(0, 33, 70), standard(1, 40, 70), standard(2, 40), standard(3, 5, 40),
       standard(4, 5))


def gradient(f, count):
    return tn.grad(lambda *args: (f(*args) ** 2).mean(), argnums=tuple(range(count)))


def results_of(f, operands, flags=STRICT, threads=1):
    made = ahead(f, operands)
    text, constants = text_of(made)
    run = c_backend.build(text, constants, flags=flags, threads=threads)
    return as_list(made(*operands)), run(list(operands))


@pytest.mark.parametrize("f, operands, exact",
                         [(cnn, CNN, True), (mlp, MLP, True), (block, BLOCK, False)])
def test_models(f, operands, exact):
    expected, actual = results_of(f, operands)
    check(expected, actual, not exact, f.__name__)
    expected, actual = results_of(gradient(f, len(operands)), operands)
    check(expected, actual, f is not mlp, f"gradient of {f.__name__}")


@pytest.mark.parametrize("flags", [
    ("-O3", "-march=x86-64-v3", "-Wall", "-Wextra", "-Werror"),
    ("-O2", "-Wall", "-Wextra", "-Werror"),  # without vectors of the machine
    ("-O2", "-DTN_PLAIN", "-Wall", "-Wextra", "-Werror"),
    ("-O1", "-fsanitize=undefined", "-fsanitize-undefined-trap-on-error"),
])
def test_other_ways_to_compile(flags):
    for f, operands in ((cnn, CNN), (gradient(cnn, len(CNN)), CNN), (mlp, MLP)):
        expected, actual = results_of(f, operands, flags)
        check(expected, actual, True, flags)


def test_threads_do_not_change_bits():
    for f, operands in ((cnn, CNN), (gradient(cnn, len(CNN)), CNN), (block, BLOCK)):
        _, one = results_of(f, operands)
        _, two = results_of(f, operands, threads=2)
        check(one, two, False, "threads")


@pytest.mark.parametrize("f, shapes", [
    (lambda x: tn.scan(lambda c, x: (c * 0.5 + x, c.sum()), tn.zeros(3), x), [(5, 3)]),
    (lambda x: tn.scan(lambda c, x: (c + x, c), tn.zeros(3), x, reverse=True), [(5, 3)]),
    (lambda x: tn.while_loop(lambda c: c[0] < 4, lambda c: (c[0] + 1, c[1] * x), (0, x)), [(3,)]),
    (lambda x, y: tn.cond(x.sum() > y.sum(), lambda: (x @ y.T, x), lambda: (y @ x.T, y)),
     [(4, 3), (4, 3)]),
    (tn.grad(lambda x: tn.scan(lambda c, x: (tn.tanh(c + x), c), tn.zeros(3), x)[0].sum()),
     [(6, 3)]),
])
def test_control_flow(f, shapes):
    operands = [standard(i, *shape) for i, shape in enumerate(shapes)]
    expected, actual = results_of(lambda *xs: tn.tree.leaves(f(*xs)), operands)
    check(expected, actual, False, "")


def test_constants_are_beside_the_file():
    w = standard(0, 6, 4)
    made = ahead(lambda x: x @ w + tn.arange(4), [tn.ones((3, 6))])
    text, constants = text_of(made)
    assert len(constants) >= w.nbytes and "bytes of constants" in text
    x = standard(1, 3, 6)
    check([made(x)], c_backend.build(text, constants)([x]), False, "")


def test_several_functions_share_a_file():
    forward, backward = ahead(mlp, MLP), ahead(gradient(mlp, 5), MLP)
    text, constants = tn._core._c_source(
        [("forward", forward._program), ("backward", backward._program)])
    check([forward(*MLP)], c_backend.build(text, constants, "forward")(list(MLP)), False, "")
    check(backward(*MLP), c_backend.build(text, constants, "backward")(list(MLP)), False, "")
    with pytest.raises(ValueError, match="no function 'other': forward, backward"):
        c_backend.build(text, constants, "other")


def test_calls_are_checked():
    made = ahead(mlp, MLP)
    run = c_backend.build(*text_of(made))
    with pytest.raises(TypeError, match="5 inputs, not 1"):
        run([MLP[0]])
    with pytest.raises(TypeError, match=r"input 0 is f32\[33,70\], not f32\[2\]"):
        run([tn.ones(2), *MLP[1:]])


def test_what_has_no_form_is_named():
    with pytest.raises(tn.Unsupported, match="cholesky has no form in C"):
        text_of(ahead(tn.linalg.cholesky, [tn.eye(3)]))


@pytest.mark.parametrize("level", [0, 3])
def test_prints_and_checks_are_left_out(level):
    def f(x):
        tn.print("x is {}", x)
        tn.check(tn.all(x < 2), "too large")
        return x * 2

    made = ahead(f, [tn.ones(3)], optimization_level=level)
    check([made(tn.ones(3))], c_backend.build(*text_of(made))([tn.ones(3)]), False, "")


def test_without_a_compiler(monkeypatch):
    monkeypatch.setenv("CC", "no-such-compiler")
    with pytest.raises(ValueError, match="no C compiler: no-such-compiler not found; install"):
        c_backend.compile_c("int x;")


def test_a_file_that_does_not_compile():
    with pytest.raises(ValueError, match="failed:\n.*error"):
        c_backend.compile_c("int x = ;")


CACHED = """
import subprocess, sys
import tenon as tn
from tenon.model import c_backend

compiled = []
run = subprocess.run
def counting(command, *args, **options):
    compiled.append("-shared" in command)
    return run(command, *args, **options)
c_backend.subprocess.run = counting
text, constants = tn._core._c_source([("f", tn.compile(
    lambda x: 2 * x, args=[tn.InputInfo((3,), tn.float32)])._program)])
f = c_backend.build(text, constants, flags=("-O0",))
print(f([tn.array([1.0, 2.0, 3.0])])[0].tolist(), sum(compiled))
"""


def kept_libraries(folder):
    return [p for p in folder.glob("v*/*/*") if b"C library " in p.read_bytes()]


def run_cached(folder):
    environment = os.environ | {"TENON_CACHE_DIR": str(folder)}
    environment.pop("TENON_CACHE", None)
    done = subprocess.run([sys.executable, "-c", CACHED], env=environment, capture_output=True,
                          text=True)
    assert done.returncode == 0, (done.returncode, done.stderr)
    assert not list(folder.glob("tenon-c-*"))  # rooms are cleaned
    return done.stdout.strip()


def test_compiled_files_are_kept_and_damaged_ones_made_again(tmp_path):
    assert run_cached(tmp_path) == "[2.0, 4.0, 6.0] 1"
    assert run_cached(tmp_path) == "[2.0, 4.0, 6.0] 0"
    [library] = kept_libraries(tmp_path)
    whole = library.read_bytes()
    flipped = bytearray(whole)
    flipped[len(whole) // 2] ^= 1
    for damaged in (b"", whole[: len(whole) // 2], whole[:-1], bytes(flipped), whole + b"0"):
        library.write_bytes(damaged)
        assert run_cached(tmp_path) == "[2.0, 4.0, 6.0] 1"
        assert library.read_bytes() == whole
    assert run_cached(tmp_path) == "[2.0, 4.0, 6.0] 0"


def test_libraries_of_others_are_not_run(tmp_path):
    assert run_cached(tmp_path) == "[2.0, 4.0, 6.0] 1"
    [library] = kept_libraries(tmp_path)
    library.chmod(0o666)
    assert run_cached(tmp_path) == "[2.0, 4.0, 6.0] 1"
    tmp_path.chmod(0o777)
    assert run_cached(tmp_path) == "[2.0, 4.0, 6.0] 1"


def test_the_file_needs_nothing_else(tmp_path):
    """Compiled by hand and called by another program."""
    text, _ = text_of(ahead(lambda x: tn.exp(x).sum(), [tn.ones(4)]), "model")
    (tmp_path / "model.c").write_text(text)
    (tmp_path / "main.c").write_text("""
#include <stdio.h>
int model_run(const void *const *inputs, void *const *outputs, void *arena);
int main(void) {
  float x[4] = {0, 0, 0, 0}, y = 0;
  static _Alignas(64) char arena[4096];
  const void *inputs[] = {x};
  void *outputs[] = {&y};
  if (model_run(inputs, outputs, arena)) return 1;
  printf("%g", y);
  return 0;
}
""")
    command = [*c_backend.compiler(), "-O3", "main.c", "model.c", "-lm", "-o", "program"]
    subprocess.run(command, cwd=tmp_path, check=True)
    assert subprocess.run(["./program"], cwd=tmp_path, capture_output=True).stdout == b"4"


GOLDEN = pathlib.Path(__file__).parents[1] / "golden" / "c"


@pytest.mark.parametrize("name, f, operands", [
    ("mlp", mlp, MLP), ("cnn", cnn, CNN)])
def test_how_files_read(name, f, operands):
    text = re.sub(r"test_c_files\.py:\d+", "test_c_files.py", text_of(ahead(f, operands), name)[0])
    path = GOLDEN / f"{name}.c"
    if os.environ.get("TENON_UPDATE_GOLDEN"):
        path.parent.mkdir(exist_ok=True)
        path.write_text(text)
    assert text == path.read_text()


def test_docstrings():
    import doctest

    assert doctest.testmod(c_backend, extraglobs={"tn": tn}).failed == 0




def test_names_of_arguments_do_not_leave_their_comment():
    name = "*/ int evil(void) { return 1; } /*"
    double = tn.compile(lambda x: 2 * x[name], args=[{name: tn.InputInfo((3,), tn.float32)}])
    assert "*/ int evil" not in double.source("c")
    with pytest.raises(ValueError, match="'a b' is no name for a function of C"):
        tn._core._c_source([("a b", double._program)])


def test_names_are_names_in_python_files():
    def scale(_erf, json):
        return tn.erf(_erf) * json

    scale.__name__ = 'f():\n    pass\nraise SystemExit\ndef g'
    x = tn.InputInfo((3,), tn.float32)
    text = tn.compile(scale, args=[x, x]).source("numpy")
    names = {}
    exec(text, names)
    made = next(f for name, f in names.items() if name.startswith("f_pass"))
    given = np.float32([0.5, -1.0, 2.0])
    want = (tn.erf(tn.array(given)) * tn.array(given)).numpy()
    np.testing.assert_allclose(made(given, given), want, 1e-6)


def test_children_of_fork_do_not_wait_for_threads():
    code = """
import os, signal
import tenon as tn
from tenon.model import c_backend
x = tn.ones((512, 512))
f = tn.compile(lambda x: x @ x, args=[tn.InputInfo((512, 512), tn.float32)])
run = c_backend.build(*tn._core._c_source([("square", f._program)]), threads=2)
run([x])
child = os.fork()
if child == 0:
    signal.alarm(20)
    os._exit(int(run([x])[0][0, 0].item() != 512))
assert os.waitpid(child, 0)[1] == 0
"""
    subprocess.run([sys.executable, "-c", code], check=True, timeout=60)
