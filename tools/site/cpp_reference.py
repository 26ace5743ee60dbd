"""Pages of the C++ interface, from the comments of the public headers."""
import re

NAME = re.compile(r"(?:class|struct|enum class|enum|concept|using)\s+(?:\[\[\w+\]\]\s*)?(\w+)")
CALL = re.compile(r"(\boperator\s*\S+?|\b(?!decltype\b)\w+)\s*\(")
OPENED = re.compile(r"(?!\s*(?:class|struct|union|enum)\b)(.*\)[^(){}=]*?)\s*\{.*$")
INITIALISED = re.compile(r"\s:\s\w+[({].*$")
FORWARD = re.compile(r"(class|struct) \w+;$")
SKIPPED = re.compile(
    r"#|namespace\b|extern \"C\"|\}  // (namespace|extern)|// clang-format|static_assert")


def pages(folder):
    """Path of the page -> text."""
    found = {}
    rows = []
    for path in sorted(folder.rglob("*.h")):
        name = path.relative_to(folder)
        page = str(name.with_suffix("")).replace("/", "-")
        lines = path.read_text().splitlines()
        summary = summary_of(lines)
        if path.name == "tenon.h":
            continue
        found[f"api/cpp/{page}.md"] = f"# tenon/{name}\n\n{summary}\n\n" + body(lines)
        rows.append(f"| [`tenon/{name}`]({page}.md) | {first_sentence(summary)} |")
    found["api/cpp/index.md"] = "\n".join([
        "# C++ interface", "",
        "`#include <tenon/tenon.h>` has all of it. Every name is in namespace `tn`.", "",
        "| header | |", "|---|---|", *rows, ""])
    return found


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
            out += ["```", ""]
        code = indented or (code and not line.strip())
        out.append(line[4:] if indented else line)
    return "\n".join(out + ["```"] * code)


def blocks(lines):
    """Paragraphs of a header, where a body in braces is never cut."""
    block, depth, begun = [], 0, False
    for line in lines:
        if depth == 0 and SKIPPED.match(line):
            begun = begun or line.startswith(("namespace", 'extern "C"'))
            if block:
                yield block
            block = []
            continue
        if not begun:
            continue
        code = re.sub(r'//.*|"(\\.|[^"\\])*"|\'.\'', "", line)
        depth += code.count("{") - code.count("}")
        if line.strip() or depth:
            block.append(line)
        elif block:
            yield block
            block = []
    if block:
        yield block


def declared(lines):
    """What a user needs of a declaration: no private part, no body of a function."""
    out, hidden, until = [], False, None
    for line in lines:
        if until:
            until = None if re.match(until, line) else until
            continue
        if re.match(r" (public|private|protected):", line):
            hidden = "public" not in line
        if hidden and not line.startswith("}"):
            continue
        indent = re.match(r" *", line)[0]
        opened = OPENED.match(line)
        if line.lstrip().startswith(": "):  # what a constructor initialises
            out[-1] += ";"
            until = None if line.endswith("}") else rf".*\}}$|{indent[4:]}\}}"
        elif " requires requires" in line or line.strip() == "{":
            out += [line.partition(" requires")[0] + ";"] * (line.strip() != "{")
            until = rf"{indent}\}}" if line.endswith("{") else None
        elif opened:
            out.append(INITIALISED.sub("", opened[1]) + ";")
            until = rf"{indent}\}}" if line.endswith("{") else None
        else:
            out.append(line)
    return out


def heading_of(lines):
    text = " ".join(line for line in lines if not line.startswith(("//", "template", "requires")))
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


def body(lines):
    """Each declaration with its comment; a heading for each new name."""
    out, last = [], None
    for comment, code in (entry for block in blocks(lines) for entry in entries(block)):
        shown = declared(code)
        if all(not line.strip() or line.startswith("//") or FORWARD.match(line) for line in shown):
            continue
        name = heading_of(shown)
        if name and name != last:
            out += [f"## `{name}`", ""]
            last = name
        out += [prose(comment), ""] * bool(comment) + ["```cpp", *shown, "```", ""]
    return "\n".join(out)
