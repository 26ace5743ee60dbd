"""Pages of the C++ interface, from the comments of the public headers."""
import re

NAME = re.compile(r"(?:class|struct|enum class|enum|concept|using)\s+(?:\[\[.*?\]\]\s*)?(\w+)")
CALL = re.compile(r"(\boperator\s*\S+?|\b(?!decltype\b)\w+)\s*\(")
OPENED = re.compile(r"(?!\s*(?:class|struct|union|enum)\b)(.*\)[^(){}=]*?)\s*\{.*$")
INITIALISED = re.compile(r"\s:\s\w+[({].*$")
FORWARD = re.compile(r"(class|struct) \w+;$")
SKIPPED = re.compile(r"#|// clang-format|static_assert")
SPACE = re.compile(r"namespace ([\w:]+) \{|(extern \"C\") \{")
LIBRARY = "typed"  # the namespace that users do not need
MOST_FORMS = 4


def pages(folder):
    """Path of the page -> text."""
    found = {}
    rows = []
    for path in sorted(folder.rglob("*.h")):
        name = path.relative_to(folder)
        page = page_of(name)
        lines = path.read_text().splitlines()
        summary, text = summary_of(lines), body(lines)
        if path.name == "tenon.h" or (not text and f"namespace tn::{LIBRARY} {{" in lines):
            continue
        found[f"api/cpp/{page}.md"] = f"# tenon/{name}\n\n{summary}\n\n{text}"
        rows.append(f"| [`tenon/{name}`]({page}.md) | {first_sentence(summary)} |")
    found["api/cpp/index.md"] = "\n".join([
        "# C++ interface", "",
        "`#include <tenon/tenon.h>` has all of it. Every name is in namespace `tn`.", "",
        "| header | |", "|---|---|", *rows, ""])
    return found


def page_of(header):
    return str(header.with_suffix("")).replace("/", "-")


def python_forms(folder):
    """What the Python reference shows of C++: the name as Python writes it -> Markdown."""
    places, declarations = {}, {}
    for path in sorted(folder.rglob("*.h")):
        header = path.relative_to(folder)
        for space, heading, _, shown in declarations_of(path.read_text().splitlines()):
            link = f"[`tenon/{header}`](../cpp/{page_of(header)}.md#{(heading or '').lower()})"
            for lines in statements(shown):
                name = f"{space}::{heading_of(lines)}".replace("::", ".")
                is_type = NAME.match(" ".join(code_of(lines)))
                places.setdefault(name, []).append(link)
                declarations.setdefault(name, []).append([] if is_type else lines)
    return {name: form(declarations[name], places[name]) for name in places}


def statements(lines):
    """One declaration after the other."""
    found = [[]]
    for line in lines:
        begins = line and not line.startswith((" ", "}"))
        if begins and found[-1] and found[-1][-1].endswith((";", "}")):
            found.append([])
        found[-1].append(line)
    return found


def form(declarations, places):
    """Functions of few forms are shown, and anything else is named."""
    few = all(declarations) and len(declarations) <= MOST_FORMS
    code = ["```cpp", *(line for lines in declarations for line in lines), "```"] if few else []
    return "\n".join([*code, "", f"C++: {', '.join(dict.fromkeys(places))}", ""])


def first_sentence(text):
    return re.split(r"(?<=\.)\s", text.replace("\n", " "))[0].replace("|", "\\|")


def summary_of(lines):
    """The comment that a header begins with."""
    after = lines[lines.index("#pragma once") + 1:] if "#pragma once" in lines else lines
    taken = []
    for line in after:
        if not line.startswith("//"):
            break
        taken.append(line[2:].removeprefix(" "))
    return prose(taken)


def prose(lines):
    """Text of a comment: what is indented by four is code."""
    out, code = [], False
    for line in lines:
        indented = line.startswith("    ")
        if indented and not code:
            out += ["", "```cpp"]
        elif code and not indented and line.strip():
            while not out[-1]:
                out.pop()
            out += ["```", ""]
        code = indented or (code and not line.strip())
        out.append(line[4:] if indented else line)
    return "\n".join(out + ["```"] * code)


def blocks(lines):
    """The namespace and the lines of each paragraph of a header, where a body in braces is never
    cut."""
    block, depth, spaces = [], 0, []
    for line in [*lines, ""]:
        opened = depth == 0 and SPACE.match(line)
        closed = depth == 0 and spaces and line.startswith("}")
        code = re.sub(r'//.*|"(\\.|[^"\\])*"|\'.\'', "", line)
        if opened or closed or not spaces or (depth == 0 and SKIPPED.match(line)):
            line = ""
        else:
            depth += code.count("{") - code.count("}")
        if line.strip() or depth:
            block.append(line)
        elif block:
            if LIBRARY not in "::".join(spaces).split("::"):
                yield "::".join(spaces), block
            block = []
        if opened:
            spaces.append(opened[1] or "")
        elif closed:
            spaces.pop()


def declared(lines):
    """What a user needs of a declaration: no private part, no body of a function."""
    out, hidden, until, begin, is_new = [], False, None, "", True
    for line in lines:
        if until:
            until = None if re.match(until, line) else until
            is_new = True
            continue
        if re.match(r" (public|private|protected):", line):
            hidden = "public" not in line
        if hidden and not line.startswith("}"):
            continue
        indent = re.match(r" *", line)[0]
        begin = indent if is_new else begin  # of the declaration, which may have several lines
        is_new = not line.strip() or line.endswith((";", "{", "}", ":")) or "//" in line
        opened = OPENED.match(line)
        if line.lstrip().startswith(": "):  # what a constructor initialises
            out[-1] += ";"
            until = None if line.endswith("}") else rf".*\}}$|{indent[4:]}\}}"
        elif " requires requires" in line or line.strip() == "{":
            out += [line.partition(" requires")[0] + ";"] * (line.strip() != "{")
            until = rf"{begin}\}}" if line.endswith("{") else None
        elif opened:
            out.append(INITIALISED.sub("", opened[1]) + ";")
            until = rf"{begin}\}}" if line.endswith("{") else None
        else:
            out.append(line)
    return out


def code_of(lines):
    return [line for line in lines if not line.lstrip().startswith(("//", "template", "requires"))]


def heading_of(lines):
    text = " ".join(code_of(lines))
    named = NAME.match(text)
    called = named or CALL.search(without_arguments(text))
    return called[1].replace(" ", "") if called else None


def without_arguments(text):
    """Types without their template arguments."""
    shorter = re.sub(r"(?<=\w)<[^<>]*>", "", text)
    return text if shorter == text else without_arguments(shorter)


def entries(block):
    """The declarations of a paragraph, each with the comment above it."""
    comment, code = [], []
    for line in block:
        if line.startswith("///"):
            if code:
                yield comment, code
                comment, code = [], []
            comment.append(line[3:].removeprefix(" "))
        else:
            code.append(line)
    if code:
        yield comment, code


def declarations_of(lines):
    """Namespace, name, comment and lines of each declaration."""
    for space, block in blocks(lines):
        for comment, code in entries(block):
            shown = declared(code)
            if any(line.strip() and not line.startswith("//") and not FORWARD.match(line)
                   for line in shown):
                yield space, heading_of(shown), comment, shown


def body(lines):
    """Each declaration with its comment; a heading for each new name."""
    out, last = [], None
    for _, name, comment, shown in declarations_of(lines):
        if name and name != last:
            out += [f"## `{name}`", ""]
            last = name
        out += [prose(comment), ""] * bool(comment) + ["```cpp", *shown, "```", ""]
    return "\n".join(out)
