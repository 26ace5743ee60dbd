"""Signatures of ops for `inspect.signature`, made on demand."""

from __future__ import annotations

import inspect
import keyword


def make(rows: list[tuple[str, bool, object]]) -> inspect.Signature:
    """The signature for (name, required, default) in order."""
    params = []
    kind: inspect._ParameterKind = inspect.Parameter.POSITIONAL_OR_KEYWORD
    had_default = False
    for name, required, default in rows:
        if required and had_default:
            kind = inspect.Parameter.KEYWORD_ONLY
        had_default = had_default or not required
        given = inspect.Parameter.empty if required else default
        safe = name + "_" if keyword.iskeyword(name) else name
        params.append(inspect.Parameter(safe, kind, default=given))
    return inspect.Signature(params)
