"""Misuse of typed functions in C++ is a sentence of the compiler, in the words of the API."""

import os
import pathlib
import subprocess

import pytest

INCLUDE = pathlib.Path(__file__).parents[2] / "include"

# what a program does, and what the compiler says about it
MISUSES = {
    "struct Plain { tn::Tensor w; }; auto y = tn::grad([](Plain p) { return p.w; })(Plain());":
        "an argument, a result or a field is a tensor, a number, text",
    "auto y = tn::grad([](tn::Tensor x) { return x.item<float>(); })(tn::Tensor());":
        "the function returns a number, which depends on nothing",
    "auto y = tn::vmap([](auto a, auto b) { return a + b; })(tn::Tensor());":
        "the function cannot be called with arguments of these types",
    "int n = 0; auto y = tn::compile([n](tn::Tensor x) mutable { ++n; return x; })(tn::Tensor());":
        "the function changes itself: remove `mutable`",
    "tn::Tensor x; tn::grad([](tn::Tensor x, double s) { return x * s; }, tn::wrt<1>)(x, 2.0);":
        "a number is a constant: derivatives are with respect to tensors",
    "auto y = tn::compile([](tn::Tensor) {})(tn::Tensor());": "the function returns nothing",
    "auto y = tn::while_loop([](int i) { return i < 3; }, [](int i) { return i + 1; }, 0);":
        "the carry is a number, which is a constant",
    "tn::Tensor x; if (x == x) return 1;": "a tensor is no condition: write tn::all(x == y)",
    "tn::Tensor x; if (!x || x[0]) return 1;": "and x.defined() for whether there is a tensor",
    "tn::Tensor x; while (tn::any(x > 1) && x < 2) return 1;": "a tensor is no condition",
    "tn::Tensor x; tn::custom_function([](tn::Tensor x) { return x; })"
    ".vjp([](tn::Tensor ct) { return ct; })(x);":
        "a rule for vjp takes the arguments of the function, then the cotangent of its result",
    "tn::Tensor x; tn::custom_function([](tn::Tensor x) { return x; })"
    ".jvp([](tn::Tensor t) { return t; })(x);":
        "a rule for jvp takes the arguments of the function, then as many tangents",
    "tn::Tensor x; tn::custom_function([](tn::Tensor x) { return x; })"
    ".vmap([](tn::Tensor x) { return std::pair{x, true}; })(x);":
        "a rule for vmap takes the size of the batch, which arguments are batched",
    "tn::Tensor x; tn::scan([](tn::Tensor h, tn::Tensor x) { return h + x; }, x, x);":
        "the body returns the new carry and an output",
    "tn::Tensor x; tn::compile([](tn::Tensor& a) { a += 1; return a; })(x);":
        "a parameter is a reference that is not const, and changes to it would be lost",
    "tn::Tensor x; tn::grad([](auto& a) { a += 1; return tn::sum(a); })(x);":
        "a parameter is a reference that is not const, and changes to it would be lost",
    "tn::Tensor x; tn::compile([](tn::Tensor& a) { a += 1; return a; })(tn::sin(x));":
        "a parameter is a reference that is not const, and changes to it would be lost",
    "tn::Tensor x; auto [h, y] = tn::scan([](tn::Tensor h, int) { return h; }, x, x);":
        "the function cannot be called with arguments of these types",
    "tn::Tensor x; auto [h, y] = tn::scan([](tn::Tensor h) { return std::pair{1, h}; }, x, 3);":
        "the body returns a carry of another type than it is given",
    'auto f = tn::Executable::load<tn::Tensor>("f.tnx");':
        "the type of an executable is that of a function",
    "auto f = tn::compile_ahead<tn::Tensor>([](auto x) { return x; }, {{.shape = {2}}});":
        "the type of an executable is that of a function",
    "tn::nn::Linear m(2, 2); tn::compile([&](tn::Tensor x) { return m(x); }, m)(tn::Tensor());":
        "state that a compiled function changes is named in std::tie",
    "tn::nn::Linear m(2, 2); auto f = tn::compile([&](auto x) { return m(x); }, std::tuple{m});":
        "state that a compiled function changes is named in std::tie",
    "tn::Tensor x; tn::grad([](tn::Tensor a) { return a; }, 0)(x);":
        "arguments are chosen by tn::wrt: tn::grad(f, tn::wrt<0>)",
    "std::map<int, tn::Tensor> x; tn::grad([](std::map<int, tn::Tensor> a) { return a[0]; })(x);":
        "the keys of a map are text",
    "std::unordered_map<std::string, tn::Tensor> x; tn::tree::leaves(x);":
        "an unordered map has no order of its tensors: use std::map",
    "tn::tree::leaves(std::vector<bool>{true});": "std::vector<bool> does not hold its elements",
    "tn::Tensor x; tn::compile([](tn::Tensor a) { return std::vector{a[0], a[1]}; })(x);":
        "x[...] of a variable is no tensor yet: write tn::Tensor(x[0])",
    "tn::Tensor x; x[0][1] = x;": "of a temporary: write x[{0, 1}] = y",
    "tn::Tensor x; tn::sin(x) = x;": "of a temporary: write x[{0, 1}] = y",
    "const tn::Tensor x; x[0] = x;": "of a temporary: write x[{0, 1}] = y",
    'const tn::nn::Linear m(2, 1); tn::save_checkpoint("run", {{"model", m}});':
        "a part of a checkpoint is a model, an optimizer or a struct with fields, in a variable",
    'std::vector<double> all; tn::save_checkpoint("run", {{"all", all}});':
        "or a number, text or a tensor",
    "tn::Tensor x; tn::std(x, 0, true);": "correction is a number; keepdims comes after it",
    "tn::Tensor x; tn::allclose(x, x, 1e-3, true);": "atol is a number; equal_nan comes after it",
    "tn::Tensor x; tn::sum(x, true);": "bool",
    "tn::Tensor x; tn::max(x, 0.5);": "double",
}


@pytest.mark.parametrize("use, said", MISUSES.items(), ids=MISUSES.values())
def test_misuse_is_a_sentence(use: str, said: str, tmp_path: pathlib.Path) -> None:
    source = tmp_path / "misuse.cpp"
    headers = "#include <tenon/tenon.h>\n#include <map>\n#include <unordered_map>\n"
    if "nn::" in use or "checkpoint" in use:
        headers += "#include <tenon/checkpoints.h>\n#include <tenon/nn.h>\n"
    source.write_text(f"{headers}int main() {{ {use} }}\n")
    command = [os.environ.get("CXX", "c++"), "-std=c++20", "-fsyntax-only", f"-I{INCLUDE}", source]
    made = subprocess.run(command, capture_output=True, text=True)
    assert made.returncode != 0
    assert said in made.stderr
    if "returns nothing" in said:
        assert said in made.stderr.split("error: ")[1]  # errors that follow from it come later
    if any(call in use for call in ("scan", "load", "ahead", "std::tuple{m}", "(tn::sin(x))")):
        assert made.stderr.count("error: ") == 1
