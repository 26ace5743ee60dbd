"""Modules of `tenon.nn` and functions of tensors as blocks."""

from __future__ import annotations

import inspect
import threading
from collections.abc import Callable, Sequence
from dataclasses import replace
from typing import Any

import tenon as tn

from .. import _core, nn
from ..nn.weights import all_named
from .logical import Block, Terminal

_NEVER, _IN_TRAINING, _ALWAYS = range(3)  # when a block draws random numbers

#: Results of the layers that have several.
_RESULTS: dict[str, tuple[str, ...]] = {
    "LSTM": ("output", "hidden", "cell"),
    "LSTMCell": ("hidden", "cell"),
    "GRU": ("output", "hidden"),
    "RNN": ("output", "hidden"),
}


def block(
    of: nn.Module | Callable[..., Any],
    *,
    inputs: Sequence[str] | None = None,
    outputs: Sequence[str] | None = None,
    random: bool | None = None,
) -> Block:
    """A module, or a function of tensors, as a block.

    The inputs are the arguments without a default, or with the default None, up to the first
    option, and the output is `output`; other names may be given. Results in tuples and dicts are
    outputs in their order. The parameters of a module become parameters of the block, with their
    paths and current values; buffers become states, frozen parameters become constants. `random`
    marks functions that draw random numbers; for modules this is detected.

        >>> tn.model.block(tn.nn.Linear(3, 8))
        Linear(3 -> 8): input, weight, bias -> output
        >>> tn.model.block(lambda x, y: x * tn.exp(y))
        Function: input, y -> output
    """
    if isinstance(of, nn.Module):
        return _module_block(of, inputs, outputs, random)
    if not callable(of) or isinstance(of, type):
        kind = of.__name__ if isinstance(of, type) else type(of).__name__
        _core._fail("type", f"block: expected a module or a function of tensors, given {kind}")
    name = getattr(of, "__name__", "Function")
    kind = name if name.isidentifier() else "Function"
    terminals = _inputs(kind, of, inputs)
    results = list(outputs or ["output"])

    def compute(given: list[Any], training: bool, key: Any) -> list[Any]:
        return _results(kind, _called(kind, of, terminals, given, key, bool(random)), results)

    draws = _ALWAYS if random else _NEVER
    return Block(
        _core._make_block(kind, [*terminals, *_outputs(results)], {}, "", draws, compute)
    )


def _inputs(kind: str, f: Callable[..., Any], names: Sequence[str] | None) -> list[Terminal]:
    try:
        parameters = list(inspect.signature(f).parameters.values())
    except ValueError:  # of a function that is not written in Python
        if names is None:
            hint = "block(f, inputs=['a', 'b'])"
            _core._fail("value", f"block: the arguments of {kind} are not known; name them", hint)
        parameters = []
    if names is not None:
        _check_names(names)
        optional = {p.name for p in parameters if p.default is not p.empty}
        return [Terminal(name, optional=name in optional) for name in names]
    if any(p.kind is p.VAR_POSITIONAL for p in parameters):
        hint = "block(f, inputs=['a', 'b'])"
        _core._fail("value", f"block: {kind} takes any number of tensors; name them", hint)
    terminals: list[Terminal] = []
    for p in parameters:
        by_place = p.kind in (p.POSITIONAL_ONLY, p.POSITIONAL_OR_KEYWORD)
        if not by_place or not (p.default is p.empty or p.default is None):
            break  # options, and what comes behind them
        terminals.append(Terminal(p.name, optional=p.default is None))
    first = terminals[0] if terminals else None
    if first and (first.name == "x" or len(terminals) == 1):
        terminals[0] = replace(first, name="input")
    return terminals


def _check_names(names: Sequence[str]) -> None:
    for name in names:
        if not isinstance(name, str):
            _core._fail("type", f"block: a name is a string, not {name!r}")


def _outputs(names: Sequence[str]) -> list[Terminal]:
    _check_names(names)
    return [Terminal(name, "output") for name in names]


def _called(
    kind: str,
    _call: Callable[..., Any],  # errors of modules begin with the caller's name for them
    terminals: list[Terminal],
    given: list[Any],
    key: Any,
    random: bool,
) -> Any:
    """Return the result of `_call`, whose random numbers start from `key`."""
    arguments = list(given[: len(terminals)])
    while arguments and arguments[-1] is None:
        arguments.pop()
    before = tn.random.state[0]
    first = tn.random.key(0) if key is None else key
    tn.random.state[0] = first
    try:
        with tn.no_grad():  # derivatives are taken of the blocks, by their callers
            made = _call(*arguments)
        drew = key is None and tn.random.state[0].tolist() != first.tolist()
    finally:
        tn.random.state[0] = before
    if drew and not random:
        hint = "block(f, random=True)"
        _core._fail("value", f"{kind}: it draws random numbers, which must be declared", hint)
    return made


def _results(kind: str, made: Any, names: Sequence[str]) -> list[Any]:
    tensors = tn.tree.leaves(made)
    if len(tensors) != len(names):
        hint = "name them: block(f, outputs=['a', 'b'])"
        _core._fail("value", f"{kind}: it returns {len(tensors)} tensors for {list(names)}", hint)
    return tensors


# Modules -------------------------------------------------------------------------------------


def _module_block(
    module: nn.Module,
    inputs: Sequence[str] | None,
    outputs: Sequence[str] | None,
    random: bool | None,
) -> Block:
    kind = type(module).__name__
    wrapped = _Wrapped(module, _is_random(module) if random is None else random)
    wrapped.inputs = _inputs(kind, _function_of(module), inputs)
    wrapped.outputs = list(outputs or _RESULTS.get(kind, ("output",)))
    terminals = [*wrapped.inputs, *wrapped.terminals(), *_outputs(wrapped.outputs)]
    settings = module.describe() or ""
    draws = _IN_TRAINING if wrapped.random else _NEVER
    return Block(_core._make_block(kind, terminals, {}, settings, draws, wrapped.compute))


def _function_of(module: nn.Module) -> Callable[..., Any]:
    """Return the callable whose signature names the module's arguments."""
    if type(module).forward is not nn.Module.forward:
        return module.forward
    called: Callable[..., Any] = type(module).__call__.__get__(module)
    return called


def _is_random(module: nn.Module) -> bool:
    def draws(part: Any) -> bool:
        p = part.p if isinstance(part, nn.Dropout) else getattr(part, "dropout", 0)
        return isinstance(p, (int, float)) and p > 0

    return any(draws(part) for part in module.modules())


class _Wrapped:
    """A copy of a module that runs with other tensors in the places of its own."""

    def __init__(self, module: nn.Module, random: bool) -> None:
        copies: dict[int, tn.Tensor] = {}  # tied tensors stay tied
        self.module = tn.tree.map(lambda x: copies.setdefault(id(x), x.detach()), module)
        self.kind = type(module).__name__
        self.random = random
        self.inputs: list[Terminal] = []
        self.outputs: list[str] = []
        self._lock = threading.Lock()  # a module holds one set of tensors at a time
        leaves, self._structure = tn.tree.flatten(dict(self.module.parameters()))
        paths = [path for path, _ in all_named(self.module)]
        trainable = tn.tree.leaves(dict(module.trainable_parameters()))
        trained = {id(copies[id(p)]) for p in trainable}
        buffers = {path for path, _ in self.module.named_buffers()}
        self._leaves = leaves
        self._places: dict[int, int] = {}  # id of a tensor -> its place among the terminals
        self._parameters: list[tuple[str, tn.Tensor]] = []
        self._states: list[tuple[str, int]] = []  # with the leaf
        for is_state in (False, True):
            for leaf, (path, tensor) in enumerate(zip(paths, leaves)):
                wanted = path in buffers if is_state else id(tensor) in trained
                if not wanted or id(tensor) in self._places:
                    continue  # frozen ones are constants, tied ones one terminal
                self._places[id(tensor)] = len(self._places)
                if is_state:
                    self._states.append((path, leaf))
                else:
                    self._parameters.append((path, tensor))

    def terminals(self) -> list[Terminal]:
        parameters = [self._terminal(p, "parameter", t) for p, t in self._parameters]
        return parameters + [self._terminal(p, "state", self._leaves[i]) for p, i in self._states]

    def _terminal(self, path: str, role: str, tensor: tn.Tensor) -> Terminal:
        def initial(shape: Any, dtype: Any, key: Any) -> tn.Tensor:
            return tensor.astype(dtype)

        shape = " ".join(map(str, tensor.shape))
        return Terminal(path, role, shape, None, initial)

    def compute(self, given: list[Any], training: bool, key: Any) -> list[Any]:
        values = given[len(self.inputs) :]
        places = self._places
        with self._lock:
            modes = [(part, part.training) for part in self.module.modules()]
            try:
                self._put([values[places[id(x)]] if id(x) in places else x for x in self._leaves])
                if not training:
                    self.module.eval()
                made = _called(self.kind, self.module, self.inputs, given, key, self.random)
                now = tn.tree.leaves(dict(self.module.parameters()))
            finally:
                self._put(self._leaves)
                for part, mode in modes:
                    part._set("training", mode)
        return [*_results(self.kind, made, self.outputs), *(now[leaf] for _, leaf in self._states)]

    def _put(self, leaves: list[Any]) -> None:
        self.module.update(tn.tree.unflatten(self._structure, leaves))
