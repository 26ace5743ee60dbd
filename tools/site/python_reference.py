"""Pages of the Python interface, from the docstrings and signatures of the package."""
import inspect
import re
import textwrap
import types

import tenon as tn

MODULES = (
    "nn nn.losses nn.init optim data random linalg fft amp model tree memory signal testing"
).split()
PAGES = ["tenon", "tensor", *(name.replace(".", "-") for name in MODULES)]
OPS = "[op reference](../../docs/ops/README.md)"
EMPTY = inspect.Parameter.empty
MEMBER = "~~~{{rubric}} `{}`\n:class: member\n~~~"
NATIVE = re.compile(r"\A\w*(\(.*\)( -> .*)?)(\n+|$)")  # what nanobind writes above a docstring


def pages(cpp=types.MappingProxyType({})):
    """Path of the page -> text. `cpp` has the C++ forms of names."""
    found = {"api/python/tenon.md": top_page(cpp), "api/python/tensor.md": tensor_page()}
    rows = ["| [`tenon`](tenon.md) | Functions and classes that are not ops |",
            "| [`tenon.Tensor`](tensor.md) | Properties and methods of tensors |"]
    for name in MODULES:
        module = module_named(name)
        page = name.replace(".", "-")
        found[f"api/python/{page}.md"] = module_page(name, module, cpp)
        rows.append(f"| [`tenon.{name}`]({page}.md) | {first_line(module)} |")
    found["api/python/index.md"] = "\n".join([
        "# Python interface", "",
        f"`import tenon as tn`. Ops have an {OPS} of their own.", "",
        "| module | |", "|---|---|", *rows, ""])
    return found


def module_named(name):
    module = tn
    for part in name.split("."):
        module = getattr(module, part)
    return module


def first_line(thing):
    return (inspect.getdoc(thing) or "").partition("\n")[0].replace("|", "\\|")


def is_op(thing):
    return type(thing).__name__ == "Op"


def public(module):
    names = getattr(module, "__all__", None) or [n for n in dir(module) if not n.startswith("_")]
    for name in sorted(names, key=str.lower):
        thing = getattr(module, name)
        if callable(thing) and not isinstance(thing, types.ModuleType):
            yield name, thing


def top_page(cpp):
    """What is in `tenon` itself, without the ops and without what a module's page has."""
    elsewhere = ("tenon.nn", "tenon.model", "tenon.random", "tenon.optim")
    types_of_elements = sorted(n for n in dir(tn) if isinstance(getattr(tn, n), type(tn.float32)))
    listed = ", ".join(f"`tn.{name}`" for name in types_of_elements)
    parts = ["# tenon", "", f"Element types: {listed}.", ""]
    for name, thing in public(tn):
        home = str(getattr(thing, "__module__", ""))
        if not is_op(thing) and thing is not tn.Tensor and not home.startswith(elsewhere):
            parts.append(entry(f"tn.{name}", thing, cpp.get(f"tn.{name}", "")))
    return "\n".join(parts)


def tensor_page():
    """Properties and methods; those that are ops by their names."""
    own, ops = [], []
    for name in sorted(n for n in dir(tn.Tensor) if not n.startswith("_")):
        if hasattr(tn.Tensor, name):  # names of other libraries are there only for their errors
            (ops if is_op(getattr(tn, name, None)) else own).append(name)
    parts = ["# tenon.Tensor", "", inspect.getdoc(tn.Tensor), "", "## Properties and methods", ""]
    parts += [entry(f"Tensor.{name}", inspect.getattr_static(tn.Tensor, name)) for name in own]
    listed = ", ".join(f"`{name}`" for name in ops)
    text = f"These ops are methods, described in the {OPS}. The tensor is the first operand"
    return "\n".join([*parts, "", "## Ops as methods", "", f"{text}: {listed}.", ""])


def module_page(name, module, cpp):
    parts = [f"# tenon.{name}", "", docstring(module), ""]
    ops, named = [], {}
    described = {inspect.getdoc(op) for op in vars(tn).values() if is_op(op)}
    for short, thing in public(module):
        native = type(thing).__name__ == "nb_func"
        if is_op(thing) or inspect.getdoc(thing) in described:
            ops.append(short)
        elif native or str(getattr(thing, "__module__", "")).startswith(f"tenon.{name}"):
            named.setdefault(thing, []).append(f"tn.{name}.{short}")
    for thing, (first, *others) in named.items():
        also = ", ".join(f"`{other}`" for other in others)
        parts += [entry(first, thing, cpp.get(first, ""))] + [f"Also {also}.\n"] * bool(others)
    if ops:
        listed = ", ".join(f"`{short}`" for short in ops)
        parts += ["", f"These names are in the {OPS}: {listed}.", ""]
    return "\n".join(parts)


def entry(name, thing, cpp="", heading="## `{}`"):
    """An object with its signatures, its docstring and, of a class, its members."""
    signature = "" if is_property(thing) else signature_of(thing)
    parts = [heading.format(name), ""]
    if signature:
        parts += ["```python", *wrapped(name, signature), "```"]
    parts += [cpp, "", docstring(thing), ""]
    if inspect.isclass(thing):
        parts += [entry(f"{name.rpartition('.')[2]}.{short}", inner, heading=MEMBER)
                  for short, inner in members(thing)]
    return "\n".join(parts)


def wrapped(name, signature):
    """The lines of a signature; a long one has a parameter a line."""
    whole = name + signature
    if len(whole) <= 84:
        return [whole]
    inside, arrow, result = signature.rpartition(" -> ")
    inside = inside if arrow else signature
    parts, depth, begin = [], 0, 1
    for found in re.finditer(r"'[^']*'|[][(){},]", inside):
        token, at = found[0], found.start()
        depth += (token in "([{") - (token in ")]}")
        if (token == "," and depth == 1) or depth == 0:
            parts.append("    " + inside[begin:at].strip() + ",")
            begin = at + 1
    return [name + "(", *parts, ")" + arrow + result * bool(arrow)]


def is_property(thing):
    return inspect.isdatadescriptor(thing) or type(thing).__name__ == "cached_property"


def members(cls):
    """Public members that the class itself defines and documents."""
    for name, thing in sorted(vars(cls).items()):
        inner = getattr(thing, "__func__", thing)
        if not name.startswith("_") and not inspect.isclass(inner) and docstring(inner):
            if callable(inner) or is_property(inner):
                yield name, inner


def signature_of(thing):
    """Parameters and result, as one would write them."""
    written = NATIVE.match(inspect.getdoc(thing) or "")
    if written:
        return own_names(written[1].replace("(self, ", "(").replace("(self)", "()"))
    try:
        signature = inspect.signature(thing)
    except (TypeError, ValueError):
        return ""
    parameters = [p.replace(default=p.default if p.default is EMPTY else Text(shown(p.default)),
                            annotation=p.annotation if p.annotation is EMPTY else Text(
                                annotation(p.annotation)))
                  for p in signature.parameters.values() if p.name != "self"]
    result = signature.return_annotation
    arrow = "" if result in (EMPTY, None, "None") else f" -> {annotation(result)}"
    return own_names(str(inspect.Signature(parameters)) + arrow)


def own_names(text):
    """Types of the package by the names that users know."""
    return re.sub(r"\b(tenon\.)?_core\.|\btenon\.(?=Tensor)|\b_(?=Tensor\b)", "", text)


class Text(str):
    """Prints without quotes."""

    __repr__ = str.__str__


def annotation(given):
    return given if isinstance(given, str) else inspect.formatannotation(given)


def shown(value):
    text = repr(value)
    return "..." if text.startswith("<") or len(text) > 60 else text


def docstring(thing):
    """Markdown: sessions, formulas and what is indented become blocks of code."""
    text = NATIVE.sub("", inspect.getdoc(thing) or "", count=1)
    paragraphs = re.split(r"\n\s*\n", text)
    return "\n\n".join(map(fenced, paragraphs, ["", *paragraphs]))


def fenced(paragraph, before):
    """Indentation alone does not tell: Python removes it where the whole text has it."""
    lines = paragraph.splitlines()
    formulas = before.endswith(":") and all(" = " in line for line in lines)
    if paragraph.lstrip().startswith(">>>"):
        language = "pycon"
    elif lines and (formulas or all(line.startswith("    ") for line in lines)):
        language = "text"
    else:
        return paragraph
    return f"```{language}\n{textwrap.dedent(paragraph)}\n```"
