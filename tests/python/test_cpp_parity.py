"""Every public name of the package has a form in C++, or stands in a table with a reason.

The compiler decides what exists: a program has one using-declaration for each form.
"""

import pathlib
import re
import shutil
import subprocess
import types

import pytest

import cpp_forms
import tenon as tn

ROOT = pathlib.Path(__file__).resolve().parents[2]
HEADERS = """tenon nn optim checkpoints dtype_info loops model_blocks nn/init physical_model
    train_model tree_functions""".split()
# Of C++, which no name can be.
KEYWORDS = "bool delete double float int long short switch".split()
# What modules without `__all__` import for themselves.
IMPORTED = "Callable DType Device Literal Number Sequence Shape TYPE_CHECKING Tensor annotations"


def public_names(home):
    """Modules are listed on their own; what is an error to ask for only gives advice."""
    listed = getattr(home, "__all__", None)
    for name in listed or dir(home):
        value = getattr(home, name, None)
        hidden = name.startswith("_") or value is None or isinstance(value, types.ModuleType)
        if not hidden and (listed or not is_imported(home, name, value)):
            yield name


def is_imported(home, name, value):
    if home is tn or not isinstance(home, types.ModuleType):
        return False
    where = getattr(value, "__module__", None)
    return name in IMPORTED.split() or not str(where or "tenon").startswith("tenon")


def python_names():
    """Names as users write them after `tn.`."""
    for module in cpp_forms.NAMESPACES:
        home = tn
        for part in filter(None, module.split(".")):
            home = getattr(home, part)
        for name in public_names(home):
            yield f"{module}.{name}" if module else name


def block_names():
    """Blocks of ops, which C++ makes by the name of the op."""
    names = {name for name in dir(tn) if hasattr(tn, name)} | {*tn.testing.op_names()}
    return {"".join(part.capitalize() for part in name.split("_")) for name in names}


def forms_of(name, blocks):
    module, _, last = name.rpartition(".")
    if name in cpp_forms.FORMS:
        return [cpp_forms.FORMS[name]]
    forms = [f"{space}::{last}" for space in cpp_forms.NAMESPACES[module] if last not in KEYWORDS]
    if module == "model" and last in blocks:
        forms.append("tn::model::op_block")
    return forms


def missing(forms):
    """Those that the compiler does not find, as names or as members of Tensor."""
    source = "#include <limits>\n#include <numbers>\n"
    source += "".join(f"#include <tenon/{header}.h>\n" for header in HEADERS) + "#line 1\n"
    for i, form in enumerate(forms):
        is_member = form.startswith("tn::Tensor::")
        source += f"struct S{i} : tn::Tensor {{" if is_member else f"namespace n{i} {{"
        source += f" using {form}; }}{';' if is_member else ''}\n"
    command = f"c++ -std=c++20 -fsyntax-only -fmax-errors=0 -I{ROOT}/include -x c++ -".split()
    run = subprocess.run(command, input=source, capture_output=True, text=True)
    lines = {int(line) for line in re.findall(r"<stdin>:(\d+):\d+: error:", run.stderr)}
    assert bool(lines) == bool(run.returncode), run.stderr[-2000:]
    return {forms[line - 1] for line in lines}


@pytest.mark.skipif(not shutil.which("c++"), reason="needs a C++ compiler")
def test_names_without_a_form_in_cpp_are_listed():
    blocks = block_names()
    forms = {name: forms_of(name, blocks) for name in sorted(set(python_names()))}
    lost = missing(sorted({form for found in forms.values() for form in found}))
    without = {name for name, found in forms.items() if lost.issuperset(found)}
    listed = {name for names in cpp_forms.REASONS.values() for name in names}
    assert len(forms) > 1500
    assert not text(without - listed), "no C++ form, and no reason in cpp_forms.py"
    assert not text(listed - without), "listed without a form, and it has one or is gone"
    assert not text(cpp_forms.FORMS.keys() - forms.keys()), "forms of names that are gone"


def text(names):
    return " ".join(sorted(names))


@pytest.mark.parametrize("compiler", ["g++", "g++-14", "clang++-19"])
def test_the_example_compiles_without_a_warning(compiler):
    if not shutil.which(compiler):
        pytest.skip(f"needs {compiler}")
    options = "-std=c++20 -Wall -Wextra -Wpedantic -Wconversion -Werror -fsyntax-only".split()
    source = ROOT / "examples" / "cpp" / "typed.cpp"
    command = [compiler, *options, f"-I{ROOT}/include", str(source)]
    run = subprocess.run(command, capture_output=True, text=True)
    assert run.returncode == 0, run.stderr


def symbols(*command):
    lines = subprocess.run(command, capture_output=True, text=True, check=True).stdout.splitlines()
    return {line.split()[-1].split("@")[0] for line in lines if " T " in line}


def test_the_shared_library_exports_what_headers_declare(tmp_path):
    built = ROOT / "build" / "release"
    if not shutil.which("clang++-19") or not (built / "libtenon.so").exists():
        pytest.skip("needs clang++-19 and libtenon.so")
    headers = sorted(path.relative_to(ROOT / "include") for path in ROOT.glob("include/**/*.h"))
    source = tmp_path / "all.cpp"
    source.write_text("".join(f"#include <{path}>\n" for path in headers))
    dump = "-Xclang -ast-dump=json -Xclang -ast-dump-filter=tn".split()
    command = ["clang++-19", "-std=c++20", f"-I{ROOT}/include", "-fsyntax-only", *dump, str(source)]
    tree = subprocess.run(command, capture_output=True, text=True, check=True).stdout
    declared = set(re.findall(r'"mangledName": "(_Z[^"]*)"', tree))
    defined = symbols("nm", str(built / "libtenon.a"))
    exported = symbols("nm", "-D", "--defined-only", str(built / "libtenon.so"))
    assert len(declared & exported) > 1000
    assert not text((declared & defined) - exported)
