"""Module: a function of tensors together with its parameters."""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterable, Iterator, Mapping
from functools import partial
from typing import Any, NoReturn, TypeAlias

import tenon as tn

from .. import _core, files
from .._advice import nearest
from ..module_changes import on_this_thread
from . import weights
from .calls import as_call
from .conversion import Convertible

Names: TypeAlias = "str | Collection[str]"


class Parameters(dict[str, Any]):
    """The parameters of a module by name, as a dict with a reference to the module.

    An optimizer that receives it updates the module.
    """

    def __init__(self, module: Module, parameters: dict[str, Any]) -> None:
        super().__init__(parameters)
        self.module = module


class AllParameters(Parameters):
    """The result of `parameters()`: iterating over it yields the tensors, as in PyTorch.

    The iteration omits buffers and yields each parameter once. It makes the trainable ones require
    gradients.

        >>> model = tn.nn.Sequential(tn.nn.Linear(2, 3), tn.nn.BatchNorm(3))
        >>> sum(p.numel() for p in model.parameters() if p.requires_grad)
        15
    """

    def __iter__(self) -> Iterator[tn.Tensor]:  # type: ignore[override]
        if not _core._is_tracing():
            for parameter in tn.tree.leaves(self.module.trainable_parameters()):
                parameter.requires_grad = True
        buffers = {id(tensor) for _, tensor in self.module.named_buffers()}
        each_once = {id(p): p for _, p in named_tensors(dict(self)) if id(p) not in buffers}
        return iter(each_once.values())

    def __next__(self) -> tn.Tensor:
        """Support `next(model.parameters())`, a PyTorch idiom to find a parameter's type."""
        self.going = vars(self).get("going") or iter(self)
        return next(self.going)


_core._tree_register_dict(Parameters)
_core._tree_register_dict(AllParameters)


class Module(Convertible):
    """The base class of layers and models.

    A tensor attribute is a parameter, unless its name begins with an underscore. Attributes may
    also be modules, and lists, tuples and dicts of modules or tensors. A class defines its
    computation in `forward` (or `__call__`):

        >>> class Gate(tn.nn.Module):
        ...     def __init__(self, dims):
        ...         self.scale = tn.ones(dims)
        ...         self.inner = tn.nn.Linear(dims, dims)
        ...     def forward(self, x):
        ...         return self.scale * tn.sigmoid(self.inner(x))
        >>> gate = Gate(2)
        >>> gate(tn.zeros((3, 2))).shape
        (3, 2)
        >>> gate
        Gate(scale=float32[2], inner=Linear(2 -> 2))

    Modules are trees: they can be arguments and results of transforms and compiled functions.
    Everything besides tensors is part of the tree structure. A gradient is a module whose
    parameters are the derivatives.
    """

    # Attributes of a module only where they differ from these, so that a model which was evaluated
    # or frozen and is trained again has the very state that its training step was compiled for.
    training = True
    _frozen: frozenset[str] = frozenset()
    _transient: frozenset[str] = frozenset()  # buffers that files do not hold

    # Of a class: names of tensors that are state and never trained, such as running statistics.
    buffers: Collection[str] = ()

    def __init_subclass__(cls, **kwargs: Any) -> None:
        super().__init_subclass__(**kwargs)
        if "__call__" in vars(cls):
            cls.__call__ = as_call(vars(cls)["__call__"])  # type: ignore[method-assign]

    def __setattr__(self, name: str, value: Any) -> None:
        traces = on_this_thread.under_way
        if traces:
            traces[-1].note(self, name, value)
        if not isinstance(value, (tn.Tensor, Module)):
            weights.check_stays_tensor(self, name, value)
        super().__setattr__(name, value)

    @as_call
    def __call__(self, *args: Any, **kwargs: Any) -> Any:
        return self.forward(*args, **kwargs)

    def forward(self, *args: Any, **kwargs: Any) -> Any:
        name = type(self).__name__
        _core._fail("type", f"{name}: the class defines neither forward nor __call__")

    @property
    def state(self) -> dict[str, Any]:
        """The attributes of the module, by name: assigning here assigns attributes.

        Pass it to `compile(inputs=..., outputs=...)`.
        """
        return vars(self)

    def parameters(self) -> AllParameters:
        """The parameters by name: nested dicts for modules, lists for lists.

            >>> tn.nn.Linear(2, 1).parameters().keys()
            dict_keys(['weight', 'bias'])

        Iterating yields all tensors except buffers:

            >>> [p.shape for p in tn.nn.Linear(2, 1).parameters()]
            [(1, 2), (1,)]
        """
        return AllParameters(self, _core._parameters_of(self, frozen=True))

    def trainable_parameters(self) -> Parameters:
        """The parameters that are not frozen, not buffers and not integers, in the same form.

        Setting `requires_grad` of a parameter to False also freezes it.
        """
        return Parameters(self, _core._parameters_of(self, frozen=False))

    def named_parameters(self) -> Iterator[tuple[str, tn.Tensor]]:
        """The parameters, each once and with its path: `layers.0.weight`. Buffers are not among
        them, and as in a loop over `parameters()` those that are trained require gradients."""
        each_once: set[int] = set()
        wanted = {id(parameter) for parameter in self.parameters()}
        for name, parameter in weights.all_named(self):
            if id(parameter) in wanted and id(parameter) not in each_once:
                each_once.add(id(parameter))
                yield name, parameter

    def register_buffer(
        self, name: str, tensor: tn.Tensor | None, persistent: bool = True
    ) -> None:
        """Makes `tensor` an attribute that is state but not trained.

        It is part of `state_dict()` if it is `persistent`. A class may also list its buffers in
        `buffers`.

            >>> layer = tn.nn.Linear(2, 1)
            >>> layer.register_buffer("mean", tn.zeros(2))
            >>> list(layer.state_dict()), list(layer.trainable_parameters())
            (['weight', 'bias', 'mean'], ['weight', 'bias'])
        """
        if not isinstance(name, str) or not name or "." in name or name.startswith("_"):
            text = f"a name has no dot and no underscore in front: {name!r}"
            _core._fail("value", f"register_buffer: {text}")
        if tensor is not None and not isinstance(tensor, tn.Tensor):
            _core._fail("type", f"register_buffer: {name} is a {type(tensor).__name__}, no tensor")
        if hasattr(self, name) and name not in self.buffers:
            _core._fail("value", f"register_buffer: {type(self).__name__} has {name!r} already")
        setattr(self, name, tensor)
        if name not in self.buffers:
            self._set("buffers", (*self.buffers, name))
        kept = self._transient - {name}
        self._set("_transient", kept if persistent else kept | {name})

    def named_buffers(self) -> Iterator[tuple[str, tn.Tensor]]:
        """The buffers (state that is not trained), each with its path."""
        return weights.named_buffers(self)

    def state_dict(self, names: str = "tenon") -> dict[str, tn.Tensor]:
        """The parameters and buffers by path, as stored in files.

        It is a snapshot: later optimizer steps do not change it. A `Sequential` has its layers in a
        list named `layers`; `names="torch"` uses PyTorch's names instead, so that PyTorch's modules
        can load them.

            >>> model = tn.nn.Sequential(tn.nn.Linear(2, 1))
            >>> list(model.state_dict()), list(model.state_dict(names="torch"))
            (['layers.0.weight', 'layers.0.bias'], ['0.weight', '0.bias'])
        """
        named = weights.saved(self, names, "state_dict")
        return {name: parameter.detach() for name, parameter in named.items()}

    def load_state_dict(
        self, state: Mapping[str, tn.Tensor], strict: bool = True
    ) -> weights.Unmatched:
        """Loads tensors by path: the `state_dict()` of a module, or that of a PyTorch module as
        NumPy arrays or tensors.

        Returns the missing and the unexpected names; if `strict`, they are an error.
        """
        return weights.load(self, weights.named("load_state_dict", state), strict)

    def save_weights(
        self,
        path: files.Path,
        metadata: Mapping[str, str] | None = None,
        names: str = "tenon",
    ) -> None:
        """Writes `state_dict(names)` to a safetensors file, or to an `.npz` file by its suffix.

        The file is written atomically. Some programs require `{"format": "pt"}` in the metadata.
        """
        weights.save_weights(self, path, metadata, names)

    def load_weights(
        self,
        source: files.Path | Mapping[str, tn.Tensor] | Iterable[tuple[str, tn.Tensor]],
        strict: bool = True,
        mapping: weights.Renaming | None = None,
        dtype: tn.DType | None = None,
        verify: bool | None = None,
    ) -> Module:
        """Loads weights by name: all of them, or none if some do not match.

        `source` is a file, the folder or index of several files, or named tensors. Names, shapes
        and types must match the module; without `strict`, missing and unexpected names are ignored,
        unless no name matches.

        `mapping` translates names: a function of a name, or a dict of patterns. A pattern matches
        the beginning of a name, up to a dot; `*` matches one part between dots, `**` any number of
        parts, and their matches are inserted in order. A name maps to another name, to None to skip
        the tensor, or to a pair of a name and a function of the tensor, which may return several
        named tensors:

            >>> model = tn.nn.Sequential(tn.nn.Linear(2, 1), tn.nn.Linear(1, 1))
            >>> other = {f"h.{i}.fc.weight": tn.ones((n, 1)) for i, n in enumerate([2, 1])}
            >>> mapping = {"h.*.fc": "layers.*", "h.*.fc.weight": ("layers.*.weight", tn.transpose)}
            >>> model.load_weights(other, strict=False, mapping=mapping).layers[0].weight
            tensor([[1., 1.]], dtype=float32)

        `dtype` converts floating-point weights. `verify` is that of `tn.load`: checksums are
        verified if a file has them, and `True` requires them.
        """
        weights.load_weights(self, source, strict, mapping, dtype, verify)
        return self

    def update(self, parameters: Any) -> Module:
        """Replaces parameters by those of `parameters`, a tree like `self.parameters()`.

        Names may be omitted.
        """
        _replace(self, parameters, type(self).__name__)
        return self

    def children(self) -> Iterator[Module]:
        """The direct submodules, each once, including those in lists and dicts."""
        return (module for _, module in self.named_children())

    def named_children(self) -> Iterator[tuple[str, Module]]:
        """The direct submodules, each with its path: `blocks.3`."""
        inside = [(name, value) for name, value in vars(self).items()]
        return _modules_in(inside, {id(self)}, deeper=False, index=".{}".format)

    def modules(self) -> list[Module]:
        """The module and all its submodules, each once."""
        return [module for _, module in self.named_modules()]

    def named_modules(self) -> Iterator[tuple[str, Module]]:
        """The module and all its submodules, each once, with their paths: `blocks.3.attn`."""
        return _modules_in([("", self)], set(), deeper=True, index=".{}".format)

    def apply(self, f: Callable[[tn.Tensor], tn.Tensor]) -> Module:
        """Replaces each parameter by `f` of it.

            >>> tn.nn.Linear(2, 1).apply(lambda w: w.astype(tn.float16)).weight.dtype
            tenon.float16
        """

        def changed(parameter: tn.Tensor) -> tn.Tensor:
            with tn.no_grad():
                made = f(parameter)
            if not isinstance(made, tn.Tensor):
                kind = type(made).__name__
                hint = "; for a function of modules there is apply_to_modules"
                _core._fail("type", f"apply: the function returned a {kind}, not a tensor{hint}")
            if made is parameter:
                return made
            watched = parameter.requires_grad or _core._refuses_grad(parameter)
            return weights.taken_over(made, parameter) if watched else made

        parameters = self.parameters()
        each_once = {id(p): p for p in tn.tree.leaves(parameters)}  # tied ones stay tied
        made = {at: changed(parameter) for at, parameter in each_once.items()}
        return self.update(tn.tree.map(lambda p: made[id(p)], parameters))

    def _move(self, place: tn.Device) -> None:
        self.apply(lambda w: w.to_device(place))
        for module in self.modules():
            for name, value in list(vars(module).items()):
                if name.startswith("_") and _holds_tensors(value):
                    setattr(module, name, tn.tree.map(partial(_moved, place), value))

    def apply_to_modules(self, f: Callable[[Module], Any]) -> Module:
        """Calls `f` with the module and with each of its submodules."""
        for module in self.modules():
            f(module)
        return self

    def train(self, mode: bool = True) -> Module:
        """Sets training mode, which modules such as `Dropout` read."""
        for module in self.modules():
            module._set("training", mode)
        return self

    def eval(self) -> Module:
        return self.train(False)

    def requires_grad_(self, requires_grad: bool = True) -> Module:
        """`unfreeze()` or `freeze()`, by PyTorch's name."""
        return self.unfreeze() if requires_grad else self.freeze()

    def zero_grad(self) -> None:
        """Discards the gradients stored by `backward()`, with or without an optimizer."""
        for _, tensor in weights.all_named(self):
            tensor.grad = None

    def freeze(self, *, recurse: bool = True, keys: Names | None = None) -> Module:
        """Excludes all parameters, or those named `keys`, from `trainable_parameters()`."""
        return self._mark(recurse, keys, trained=False)

    def unfreeze(self, *, recurse: bool = True, keys: Names | None = None) -> Module:
        """Makes all parameters, or those named `keys`, trainable again."""
        return self._mark(recurse, keys, trained=True)

    def _mark(self, recurse: bool, keys: Names | None, trained: bool) -> Module:
        keys = {keys} if isinstance(keys, str) else keys
        if keys is not None:
            self._check_marked(recurse, keys, "unfreeze" if trained else "freeze")
        for module in self.modules() if recurse else [self]:
            names = {name for name, value in vars(module).items() if _holds_tensors(value)}
            if keys is not None:
                names.intersection_update(keys)
            module._set("_frozen", module._frozen - names if trained else module._frozen | names)
            held = [vars(module)[name] for name in names]
            if not trained:
                _core._unwatch(held)
                continue
            for tensor in tn.tree.leaves(held):
                if isinstance(tensor, tn.Tensor) and _core._refuses_grad(tensor):
                    tensor.requires_grad = True
        return self

    def _check_marked(self, recurse: bool, keys: Names, call: str) -> None:
        """Fails for a name that no attribute with tensors has."""
        modules = self.modules() if recurse else [self]
        known = {n for m in modules for n, value in vars(m).items() if _holds_tensors(value)}
        for name in keys:
            if name in known:
                continue
            near = nearest(name, sorted(known))
            hint = f"did you mean {near!r}?" if near else f"there are {', '.join(sorted(known))}"
            if isinstance(vars(self).get(name), Module):
                hint = f"write model.{name}.{call}()"
            _core._fail("value", f"{call}: no attribute {name!r} holds a tensor", hint)

    def _set(self, name: str, value: Any) -> None:
        if value == getattr(type(self), name):
            vars(self).pop(name, None)
        else:
            setattr(self, name, value)

    def describe(self) -> str | None:
        """The text in parentheses of `repr`; None lists the tensors and options."""
        return None

    def __repr__(self) -> str:
        try:
            return self._shown()
        except RecursionError:
            _refuse_endless(self)

    def _shown(self) -> str:
        shown = {n: v for n, v in vars(self).items() if n != "buffers" and not n.startswith("_")}
        own = self.describe()
        if own is not None:
            shown = {n: v for n, v in shown.items() if _holds_modules(v)}
        parts = [own] if own else []
        parts += [f"{n}={_text(v)}" for n, v in shown.items()]
        return _call_text(type(self).__name__, parts)

    def _repr_html_(self) -> str:
        from ..notebook import module_html

        return module_html(self)

    def __tree_flatten__(self) -> tuple[dict[str, Any], type]:
        try:
            return {name: _as_tree(value) for name, value in vars(self).items()}, type(self)
        except RecursionError:
            _refuse_endless(self)

    @staticmethod
    def __tree_unflatten__(cls: type[Module], attributes: dict[str, Any]) -> Module:
        module = cls.__new__(cls)
        vars(module).update(attributes)
        return module


_core._register_module(Module)


def hidden_parameters(model: Module) -> str:
    """Return why a module with tensors has no parameters, or ""."""
    for path, module in model.named_modules():
        for name, value in vars(module).items():
            inside = isinstance(value, Module) and value.parameters()
            if name.startswith("_") and (inside or _holds_tensors(value)):
                place = f"{path}.{name}" if path else name
                return f"has no parameters: the name of `{place}` begins with an underscore"
    return ""


def modules_by_place(module: Module) -> Iterator[tuple[str, Module]]:
    """`named_modules()` with paths as one would write them in Python: `blocks[3].attn`."""
    return _modules_in([("", module)], set(), deeper=True, index="[{!r}]".format)


def _modules_in(
    rest: list[tuple[str, Any]], found: set[int], deeper: bool, index: Callable[[Any], str]
) -> Iterator[tuple[str, Module]]:
    """Modules in attributes, lists and dicts, each once and with its path; `deeper`: theirs too."""
    rest.reverse()
    while rest:
        path, value = rest.pop()
        inside: list[tuple[str, Any]] = []
        if isinstance(value, (Module, dict, list, tuple)):
            if id(value) in found:  # a list may hold itself
                continue
            found.add(id(value))
        if isinstance(value, Module):
            yield path, value
            dot = "." if path else ""
            own = vars(value).items() if deeper else ()
            inside = [(f"{path}{dot}{name}", v) for name, v in own]
        elif isinstance(value, dict):
            inside = [(path + index(key), v) for key, v in value.items()]
        elif isinstance(value, (list, tuple)):
            inside = [(path + index(i), v) for i, v in enumerate(value)]
        rest.extend(reversed(inside))


class _Constant:
    """A value of a tree that is part of the structure, not a leaf: neither a tree nor a tensor."""

    def __init__(self, value: Any) -> None:
        self.value = value

    def __tree_flatten__(self) -> tuple[None, Any]:
        return None, self.value

    @staticmethod
    def __tree_unflatten__(value: Any, _: None) -> Any:
        return value


def _as_tree(value: Any) -> Any:
    """`value` with constants for its leaves that are no tensors."""
    if isinstance(value, (tn.Tensor, Module)):
        return value
    if type(value) in (list, tuple):
        return type(value)([_as_tree(v) for v in value])
    if type(value) is dict:
        return {k: _as_tree(v) for k, v in value.items()}
    return _Constant(value) if tn.tree.structure(value) == _LEAF else value


_LEAF = tn.tree.structure(0)


def _refuse_endless(module: Module) -> NoReturn:
    text = f"{type(module).__name__}: an attribute holds itself, or is nested too deeply"
    raise _core.InvalidValue(text) from None


def _holds_modules(value: Any) -> bool:
    if isinstance(value, dict):
        value = list(value.values())
    if isinstance(value, (list, tuple)):
        return any(_holds_modules(v) for v in value)
    return isinstance(value, Module)


def named_tensors(tree: Any, path: str = "") -> Iterator[tuple[str, tn.Tensor]]:
    """The tensors of nested dicts and lists, each with its path: `blocks.3.weight`."""
    return iter(_core._named_tensors(tree, path))


def _holds_tensors(value: Any) -> bool:
    """Whether there are tensors in `value`, those of modules aside."""
    if isinstance(value, dict):
        value = list(value.values())
    if isinstance(value, (list, tuple)):
        return any(_holds_tensors(v) for v in value)
    return isinstance(value, tn.Tensor)


def _moved(place: tn.Device, value: Any) -> Any:
    return value.to_device(place) if isinstance(value, tn.Tensor) else value


def _replace(current: Any, new: Any, path: str) -> Any:
    """`current` with the tensors of `new` in it; what can be changed is."""
    if isinstance(new, Module):
        new = new.parameters()
    if isinstance(current, Module):
        _replace(vars(current), new, path)
    elif isinstance(new, dict) and isinstance(current, dict):
        for name, value in new.items():
            if name not in current:
                _core._fail("value", f"update: {path} has no {name!r}")
            current[name] = _replace(current[name], value, f"{path}.{name}")
    elif isinstance(new, (list, tuple)) and isinstance(current, (list, tuple)):
        if len(new) != len(current):
            _core._fail("value", f"update: {len(new)} values for {len(current)} in {path}")
        items = [_replace(c, n, f"{path}[{i}]") for i, (c, n) in enumerate(zip(current, new))]
        if isinstance(current, tuple):
            return tuple(items)
        current[:] = items
    elif isinstance(new, tn.Tensor) and not isinstance(current, (dict, list, tuple)):
        return new
    elif new != {}:  # which stands in lists for what has no parameters
        kinds = f"a {type(current).__name__}, not {type(new).__name__}"
        _core._fail("type", f"update: {path} is {kinds}")
    return current


def _text(value: Any) -> str:
    if isinstance(value, tn.Tensor):
        return f"{value.dtype.name}{list(value.shape)}"
    if isinstance(value, dict):
        return _call_text("dict", [f"{k}={_text(v)}" for k, v in value.items()])
    if isinstance(value, (list, tuple)):
        return _call_text("", [_text(v) for v in value], "[]")
    return getattr(value, "__name__", None) or repr(value)  # which may show the module again


def _call_text(name: str, parts: list[str], brackets: str = "()") -> str:
    """`name(a, b)`, with every part on its own line if that is long."""
    short = f"{name}{brackets[0]}{', '.join(parts)}{brackets[1]}"
    if len(short) <= 60 and "\n" not in short:
        return short
    lines = "".join(f"  {part},\n".replace("\n", "\n  ").rstrip(" ") for part in parts)
    return f"{name}{brackets[0]}\n{lines}{brackets[1]}"
