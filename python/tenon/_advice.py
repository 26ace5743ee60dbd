"""Messages for names that do not exist."""

from __future__ import annotations

from collections.abc import Iterable


def missing_name(name: str, known: Iterable[str]) -> str:
    """The text of the AttributeError, with the nearest name when there is one."""
    import difflib

    near = difflib.get_close_matches(name, [n for n in known if not n.startswith("_")], n=1)
    hint = f"; did you mean {near[0]!r}?" if near else ""
    return f"module 'tenon' has no attribute {name!r}{hint}"
