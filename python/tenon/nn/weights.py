"""Parameters by their names: into files, out of files, and from those of other libraries."""

from __future__ import annotations

import os
import re
from collections.abc import Callable, Iterable, Iterator, Mapping
from typing import TYPE_CHECKING, Any, NamedTuple, TypeAlias

import tenon as tn

from .. import _core, files
from .._advice import nearest

if TYPE_CHECKING:
    from .module import Module

# What becomes of a name: another one, None to leave it out, or a name and a function of the tensor.
Target: TypeAlias = "str | None | tuple[str, Callable[[tn.Tensor], Any]]"
Renaming: TypeAlias = "Mapping[str, Target] | Callable[[str], Target]"


class Unmatched(NamedTuple):
    """Names that only the module has, and names that only what was loaded has."""

    missing_keys: list[str]
    unexpected_keys: list[str]


def saved(
    module: Module, names: str = "tenon", what: str = "save_weights"
) -> dict[str, tn.Tensor]:
    """Return the tensors of a module that files store: parameters and persistent buffers."""
    if names not in ("tenon", "torch"):
        _core._fail("value", f"{what}: names must be 'tenon' or 'torch', not {names!r}")
    left_out = set(_transient(module))
    kept = {n: x for n, x in all_named(module) if n not in left_out}
    if names == "tenon":
        return kept
    theirs = torch_names(module, kept)
    return {theirs[name]: x for name, x in kept.items()}


def all_named(module: Module) -> Iterator[tuple[str, tn.Tensor]]:
    """Parameters and buffers by path; those that are tied under each of their names."""
    return iter(_core._named_tensors(_core._parameters_of(module, frozen=True), ""))


def named_buffers(module: Module) -> Iterator[tuple[str, tn.Tensor]]:
    """`Module.named_buffers`."""
    named = dict(all_named(module))
    for path, part in _parts_of(module):
        for buffer in part.buffers:
            prefix = f"{path}{buffer}"
            for name, tensor in named.items():
                if name == prefix or name.startswith(f"{prefix}."):
                    yield name, tensor


def _transient(module: Module) -> Iterator[str]:
    return (f"{path}{name}" for path, part in _parts_of(module) for name in part._transient)


def _parts_of(value: Any, path: str = "") -> Iterator[tuple[str, Module]]:
    """The modules in `value` wherever they are, with the beginnings of their parameters' names."""
    from .module import Module

    if isinstance(value, Module):
        yield path, value
        inside: Iterable[tuple[Any, Any]] = vars(value).items()
    elif isinstance(value, dict):
        inside = value.items()
    elif isinstance(value, (list, tuple)):
        inside = enumerate(value)
    else:
        return
    for name, part in inside:
        yield from _parts_of(part, f"{path}{name}.")


def torch_names(module: Module, names: Iterable[str]) -> dict[str, str]:
    """PyTorch's names for ours: its `Sequential` has the layers themselves, ours a list of them."""
    from .containers import Sequential

    lists = [f"{path}layers." for path, part in _parts_of(module) if isinstance(part, Sequential)]
    lists.sort(key=len, reverse=True)  # inner ones first, so that the outer still are as they were
    theirs = {}
    for name in names:
        given = name
        for prefix in lists:
            if name.startswith(prefix):
                name = prefix.removesuffix("layers.") + name.removeprefix(prefix)
        theirs[given] = name
    return theirs


def save_weights(
    module: Module, path: files.Path, metadata: Mapping[str, str] | None, names: str
) -> None:
    """`Module.save_weights`."""
    weights = saved(module, names)
    if not files.path_of("save_weights", path).endswith(".npz"):
        files.save_safetensors(path, weights, metadata)
    elif metadata:
        _core._fail("value", "save_weights: an .npz file holds no metadata")
    else:
        files.savez(path, **weights)


def load_weights(
    module: Module,
    source: Any,
    strict: bool,
    mapping: Renaming | None,
    dtype: Any,
    verify: bool | None,
) -> None:
    """`Module.load_weights`."""
    what = "load_weights"
    if isinstance(source, (str, bytes, os.PathLike)):
        what = f"load_weights: {files.path_of(what, source)}"
        source = files.load(source, verify=verify)
    elif verify:
        _core._fail("value", "load_weights: verify=True is for files, and tensors were given")
    given = named(what, source)
    if mapping is not None:
        given = renamed(given, mapping)
    if dtype is not None:
        given = {n: x.astype(dtype) if _is_floating(x) else x for n, x in given.items()}
    load(module, given, strict, what, any_dtype=dtype is not None)


def named(what: str, source: Any) -> dict[str, tn.Tensor]:
    """Tensors by name, from a dict or pairs; `what` begins messages."""
    if isinstance(source, Mapping):
        source = source.items()
    if not isinstance(source, Iterable) or isinstance(source, tn.Tensor):
        _core._fail("type", f"{what}: a {type(source).__name__}, not tensors by name")
    given: dict[str, tn.Tensor] = {}
    for pair in source:
        if not isinstance(pair, (tuple, list)) or len(pair) != 2 or not isinstance(pair[0], str):
            _core._fail("type", f"{what}: not a name and a tensor: {pair!r}")
        name, tensor = pair
        if name in given:
            _core._fail("value", f"{what}: {name!r} is given twice")
        given |= files.tensors_by_name(what, {name: tensor})
    return given


def _is_floating(x: tn.Tensor) -> bool:
    return tn.isdtype(x.dtype, "real floating")


# Names ----------------------------------------------------------------------------------------


def renamed(given: Mapping[str, tn.Tensor], mapping: Renaming) -> dict[str, tn.Tensor]:
    """`given` under the names that `mapping` says."""
    if not callable(mapping) and not isinstance(mapping, Mapping):
        kind = type(mapping).__name__
        _core._fail("type", f"load_weights: mapping is a dict or a function, not {kind}")
    target_of = mapping if callable(mapping) else _Patterns(mapping)
    made: dict[str, tn.Tensor] = {}
    for name, tensor in given.items():
        for new, value in _placed(name, target_of(name), tensor):
            if new in made:
                _core._fail("value", f"load_weights: mapping: two weights become {new!r}")
            made[new] = value
    return made


def _placed(name: str, target: Target, tensor: tn.Tensor) -> Iterable[tuple[str, tn.Tensor]]:
    if target is None:
        return []
    if isinstance(target, str):
        return [(target, tensor)]
    if not (isinstance(target, tuple) and len(target) == 2 and callable(target[1])):
        text = f"a name, None, or (name, function), not {target!r}"
        _core._fail("type", f"load_weights: mapping: {name!r} becomes {text}")
    new, function = target
    made = function(tensor)
    several = made if isinstance(made, Mapping) else {"": made}
    for value in several.values():
        if not isinstance(value, tn.Tensor):
            text = f"the function returned a {type(value).__name__}, not a tensor"
            _core._fail("type", f"load_weights: mapping: {name!r}: {text}")
    return [(".".join(filter(None, (new, part))), value) for part, value in several.items()]


class _Patterns:
    """Names by patterns: parts between dots, where `*` is any one and `**` any number. A pattern is
    the beginning of a name; the longest that fits counts, and what comes after it stays.
    """

    def __init__(self, targets: Mapping[str, Target]) -> None:
        for pattern in targets:
            if not isinstance(pattern, str):
                _core._fail("type", f"load_weights: mapping: names are strings, not {pattern!r}")
        longest = sorted(targets, key=lambda p: (-len(_parts(p)), p.count("*")))
        self.targets = [(re.compile(_expression(p)), targets[p]) for p in longest]

    def __call__(self, name: str) -> Target:
        for expression, target in self.targets:
            match = expression.fullmatch(name)
            if match:
                return _filled(target, match)
        return name


def _parts(path: str) -> list[str]:
    return path.split(".") if path else []


def _expression(pattern: str) -> str:
    """Return a regular expression with a group for each star and for the rest of the name."""
    stars = {"*": r"([^.]+)\.", "**": r"(?:(.+)\.)?"}
    expression = "".join(stars.get(part, re.escape(part) + r"\.") for part in _parts(pattern))
    if expression.endswith(r"\."):  # a name may end there
        return expression[:-2] + r"(?:\.(.+))?"
    return expression + "(.+)"


def _filled(target: Target, match: re.Match[str]) -> Target:
    """`target` with what the stars stood for, and what comes after the pattern."""
    if isinstance(target, tuple) and len(target) == 2:
        return _filled(target[0], match), target[1]  # type: ignore[return-value]
    if not isinstance(target, str):
        return target
    *stars, rest = match.groups()
    found = iter(stars)
    filled = [next(found, part) if part in ("*", "**") else part for part in _parts(target)]
    return ".".join(filter(None, [*filled, rest]))


# Into a module --------------------------------------------------------------------------------


def load(
    module: Module,
    given: Mapping[str, tn.Tensor],
    strict: bool,
    what: str = "load_state_dict",
    any_dtype: bool = False,
) -> Unmatched:
    """Puts tensors in the places that their names say, all or none of them."""
    wanted = saved(module)
    given = _with_our_names(module, wanted, given)
    given = given | _tied(wanted, given)
    unmatched = Unmatched(
        [name for name in wanted if name not in given],
        [name for name in given if name not in wanted],
    )
    nothing_fits = len(unmatched.unexpected_keys) == len(given) > 0  # a prefix is missing, say
    problems = _unmatched_text(unmatched, wanted, given) if strict or nothing_fits else []
    for name, current in wanted.items():
        if name in given:
            problems += _difference(name, current, given[name], any_dtype)
    if problems:
        count = "1 problem" if len(problems) == 1 else f"{len(problems)} problems"
        text = f"{what}: {count} with the weights for {type(module).__name__}:"
        _core._fail("value", "\n    ".join([text, *problems]), _hint(problems, unmatched))
    made: dict[int, tn.Tensor] = {}  # by the former parameter: tied ones stay tied
    for name, current in wanted.items():
        if name in given and id(current) not in made:
            made[id(current)] = taken_over(_core._shard_like(given[name], current), current)
    module.update(tn.tree.map(lambda current: made.get(id(current), current), module.parameters()))
    return unmatched


def _with_our_names(
    module: Module, wanted: Mapping[str, tn.Tensor], given: Mapping[str, tn.Tensor]
) -> dict[str, tn.Tensor]:
    """`given`, where names of PyTorch's `Sequential` become ours. The number of batches that its
    `BatchNorm` has seen has no place here.
    """
    if all(name in wanted for name in given):
        return dict(given)
    ours = {theirs: name for name, theirs in torch_names(module, wanted).items()}
    made: dict[str, tn.Tensor] = {}
    for name, tensor in given.items():
        before, _, last = name.rpartition(".")
        statistics = f"{before}.running_mean" if before else "running_mean"
        known = statistics in given and (statistics in wanted or statistics in ours)
        if last == "num_batches_tracked" and known:
            continue
        new = name if name in wanted else ours.get(name, name)
        if new in made:
            _core._fail("value", f"load: {new!r} is given twice, as {name!r} too")
        made[new] = tensor
    return made


def taken_over(value: tn.Tensor, current: tn.Tensor) -> tn.Tensor:
    """`value` as a tensor of its own: others that hold it do not see what training does to it.

    One that requires a gradient stays the same object, which an optimizer may hold.
    """
    with tn.no_grad():
        own = tn.copy(value)
    if _core._refuses_grad(current):
        return own.requires_grad_(False)
    if not current.requires_grad:
        return own.requires_grad_(False) if _core._refuses_grad(current) else own
    if own.dtype != current.dtype:
        return own.requires_grad_()
    _core._rebind(current, own)
    return current


def _tied(
    wanted: Mapping[str, tn.Tensor], given: Mapping[str, tn.Tensor]
) -> dict[str, tn.Tensor]:
    """Return the first given tensor for all names of a tied parameter: files may have just one."""
    groups: dict[int, list[str]] = {}
    for name, tensor in wanted.items():
        groups.setdefault(id(tensor), []).append(name)
    tied: dict[str, tn.Tensor] = {}
    for names in groups.values():
        found = [given[name] for name in names if name in given]
        if found and len(names) > 1:
            tied |= dict.fromkeys(names, found[0])
    return tied


def _unmatched_text(
    unmatched: Unmatched, wanted: Mapping[str, tn.Tensor], given: Mapping[str, tn.Tensor]
) -> list[str]:
    missing, extra = unmatched
    lines = [f"missing: {n}, {_text(wanted[n])}{_like(n, missing, extra)}" for n in missing]
    lines += [f"extra: {n}, {_text(given[n])}{_like(n, extra, missing)}" for n in extra]
    return lines


def _like(name: str, names: list[str], others: list[str]) -> str:
    """The nearest of `others`, unless comparing all of them would take long."""
    few = len(names) * len(others) <= 2000
    near = nearest(name, others) if few else None
    return f" (like {near}?)" if near else ""


def _text(x: tn.Tensor) -> str:
    return f"{x.dtype.name}{list(x.shape)}"


def _difference(name: str, wanted: tn.Tensor, given: tn.Tensor, any_dtype: bool) -> list[str]:
    if wanted.shape != given.shape:
        turned = ", transposed" if wanted.shape == given.shape[::-1] else ""
        return [f"shape: {name} is {wanted.shape}, given {given.shape}{turned}"]
    both_floating = _is_floating(wanted) and _is_floating(given)
    if wanted.dtype != given.dtype and not (any_dtype and both_floating):
        return [f"dtype: {name} is {wanted.dtype.name}, given {given.dtype.name}"]
    return []


def _hint(problems: list[str], unmatched: Unmatched) -> str:
    kinds = {line.partition(":")[0] for line in problems}
    if kinds == {"dtype"}:
        return "dtype=... converts all weights to one type"
    if kinds <= {"missing", "extra"}:
        return _renaming_hint(*unmatched)
    if any(line.endswith("transposed") for line in problems):
        return "mapping={name: (name, tn.transpose)} transposes"
    return ""


def _renaming_hint(missing: list[str], extra: list[str]) -> str:
    for name in missing[:1]:
        for longer in extra:
            if longer.endswith(f".{name}"):
                return f"mapping={{{longer.removesuffix(f'.{name}')!r}: ''}} takes that off"
    for name in extra[:1]:
        for longer in missing:
            if longer.endswith(f".{name}"):
                return f"mapping={{'': {longer.removesuffix(f'.{name}')!r}}} puts that in front"
    return "mapping={old: new} renames; strict=False leaves them alone"


def check_stays_tensor(module: Any, name: str, value: Any) -> None:
    """Fails where a number or an array of another library replaces a parameter."""
    if not isinstance(value, (int, float, complex)) and not hasattr(type(value), "__array__"):
        return
    if not name.startswith("_") and isinstance(vars(module).get(name), _core.Tensor):
        text = f"{type(module).__name__}: {name} is a parameter, not a {type(value).__name__}"
        _core._fail("type", text, f"write {name} = tn.array(...), or delete the attribute first")
