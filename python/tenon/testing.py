"""The samples of the op table, for tests over all ops."""

from __future__ import annotations

from dataclasses import dataclass, field

from . import _core


@dataclass(frozen=True)
class Sample:
    """One call to try: operand types, keyword values, and the range of the operands' elements."""

    op: str
    aliases: list[str]
    family: str
    recorded: bool
    arg_names: list[str]
    has_list: bool  # the last argument takes all remaining operands as a list
    results: int  # named results; 0: one tensor
    args: list[tuple[_core.DType, tuple[int, ...]]]
    keywords: dict[str, object] = field(hash=False)
    text: str
    gradient: str  # "by_rule", "zero" or "none"
    lo: float
    hi: float
    dtypes: list[_core.DType]  # what an elementwise op or a reduction accepts

    def __str__(self) -> str:
        return self.text

    @property
    def function(self) -> _core.Op:
        """The public function."""
        function: _core.Op = getattr(_core, self.op)
        return function

    def call(self, *operands: object) -> object:
        """Calls the function with `operands` in the order of `args`."""
        named = dict(zip(self.arg_names, operands))
        if self.has_list:
            named[self.arg_names[-1]] = list(operands[len(self.arg_names) - 1 :])
        return self.function(**named, **self.keywords)


def samples() -> list[Sample]:
    """Every sample of every op."""
    return [Sample(**row) for row in _core._samples()]


def op_names() -> list[str]:
    """Every op."""
    return _core._op_names()
