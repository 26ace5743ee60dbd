"""An example in Python and C++ becomes two tabs. languages.js switches all pages between them."""
from docutils import nodes

OUTPUT = ("text", "")


def make_tabs(app, doctree):
    """Of each Python block with C++ behind it. Output behind both, where Python has none of its
    own, is that of both and stays below the tabs."""
    if not app.env.docname.startswith("docs/tutorial/"):
        return
    for first in list(doctree.findall(is_python)):
        blocks = blocks_from(first)
        python, cpp = taken(blocks, "python"), taken(blocks, "cpp")
        if not cpp:
            continue
        if len(python) == 1 and language_of(cpp[-1]) in OUTPUT:
            cpp.pop()
        parent, place = first.parent, first.parent.index(first)
        for block in python + cpp:
            parent.remove(block)
        tabs = [nodes.container("", *python, classes=["python"]),
                nodes.container("", *cpp, classes=["cpp"])]
        parent.insert(place, nodes.container("", *tabs, classes=["languages"]))


def language_of(block):
    return block.get("language", "")


def is_python(node):
    return isinstance(node, nodes.literal_block) and language_of(node) == "python"


def blocks_from(block):
    """This block of code and those directly behind it."""
    found = []
    for node in block.parent.children[block.parent.index(block):]:
        if not isinstance(node, nodes.literal_block):
            break
        found.append(node)
    return found


def taken(blocks, language):
    """Blocks in a language from the front of a list, each with the output behind it."""
    found = []
    while blocks and (language_of(blocks[0]) == language
                      or (found and language_of(blocks[0]) in OUTPUT)):
        found.append(blocks.pop(0))
    return found
