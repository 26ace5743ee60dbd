"""`explain`: how the compiler compiled a function, as text and as an HTML page.

`profile` measures how long the compiled steps take.
"""

from __future__ import annotations

import functools
import os
from collections.abc import Callable
from html import escape
from pathlib import Path
from typing import Any

from .. import _core
from ..compilation import compiled_function
from ..files import path_of
from .profiling import Profile, profile

__all__ = ["Explanation", "Profile", "explain", "profile"]


class Explanation:
    """A report on how and why the compiler compiled a function as it did.

    `print` it, `save` it as a page, or display it in a notebook. `facts` holds the same as data:
    traces, sizes, guards, decisions, steps, buffers, memory.
    """

    def __init__(self, facts: _core._Explanation) -> None:
        self.facts = facts

    def __str__(self) -> str:
        return str(self.facts)

    def __repr__(self) -> str:
        return f"<explanation of {self.facts.function}: {len(self.facts.steps)} steps>"

    def html(self) -> str:
        """A self-contained HTML page: no network, no other files."""
        from .page import page

        return page(self.facts)

    def _repr_html_(self) -> str:
        return (f'<iframe srcdoc="{escape(self.html())}" style="width:100%;height:640px;border:0">'
                "</iframe>")

    def save(self, path: str | os.PathLike[str]) -> Path:
        """Writes the page, or the text if the name ends in ".txt"."""
        target = Path(path_of("Explanation.save", path))
        target.write_text(str(self) if target.suffix == ".txt" else self.html(), encoding="utf-8")
        return target


def explain(fun: Callable[..., Any]) -> Callable[..., Explanation]:
    """A function of the arguments of `fun` that explains its compilation for them.

    Nothing runs. A plain function is compiled first; for a compiled function, the earlier traces
    are listed too.

        >>> print(tn.explain(lambda x: tn.exp(x) + 1)(tn.zeros(3)))  # doctest: +ELLIPSIS
        <lambda>: 1 kernel, peak memory 12 bytes
        ...
        >>> tn.explain(gelu)(x).save("gelu.html")  # doctest: +SKIP
    """
    compiled = compiled_function(fun)

    def explained(*args: Any, **kwargs: Any) -> Explanation:
        facts = compiled._explain(*args, **kwargs)
        facts.function = getattr(fun, "__name__", type(fun).__name__)
        return Explanation(facts)

    return functools.update_wrapper(explained, fun)
