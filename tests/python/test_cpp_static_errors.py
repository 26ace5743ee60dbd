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
}


@pytest.mark.parametrize("use, said", MISUSES.items(), ids=MISUSES.values())
def test_misuse_is_a_sentence(use: str, said: str, tmp_path: pathlib.Path) -> None:
    source = tmp_path / "misuse.cpp"
    source.write_text(f"#include <tenon/tenon.h>\nint main() {{ {use} }}\n")
    command = [os.environ.get("CXX", "c++"), "-std=c++20", "-fsyntax-only", f"-I{INCLUDE}", source]
    made = subprocess.run(command, capture_output=True, text=True)
    assert made.returncode != 0
    assert said in made.stderr
    if "returns nothing" in said:
        assert said in made.stderr.split("error: ")[1]  # errors that follow from it come later
