"""Optimizer: the base of the optimizers."""

from __future__ import annotations

import warnings
from collections.abc import Callable, Iterable, Sequence
from itertools import chain
from typing import Any, Concatenate, NoReturn, TypeAlias, TypeVar

import tenon as tn

from .. import _core
from ..nn.module import Module, Parameters, hidden_parameters, named_tensors
from .parameter_group import ParameterGroup

Schedule = Callable[[tn.Tensor], "tn.Tensor | float"]
Rate: TypeAlias = "float | tn.Tensor | Schedule"
Decay: TypeAlias = "float | Callable[[str, tn.Tensor], float]"
Groups: TypeAlias = "list[tuple[Any, dict[str, Any]]]"
_Made = TypeVar("_Made")
Owners: TypeAlias = "dict[int, int]"  # the place of a group, by the id of a parameter


class _BothHabits(type):
    """Lets `Adam(model.parameters(), lr=0.1)` and `Adam(0.1)` both make an optimizer."""

    def __call__(
        cls: type[_Made], *args: Any, params: Any = None, lr: Any = None, **kwargs: Any
    ) -> _Made:
        if params is None and args and _are_parameters(args[0]):
            params, *args = args  # type: ignore[assignment]
        if lr is not None:
            kwargs["learning_rate"] = lr
        if kwargs.get("learning_rate", 0) is None:  # the default, as in MLX
            del kwargs["learning_rate"]
        groups = as_groups(params)
        if groups:
            kwargs |= dict(zip(cls.__init__.__code__.co_varnames[1:], args))
            args = ()
        made: Any = type.__call__(cls, *args, **{**kwargs, **(groups[0][1] if groups else {})})
        made._defaults = kwargs
        for i, (given, options) in enumerate(groups):
            made._add_group(given, options) if i else made.watch(given)
        whole: _Made = made
        return whole


def both_habits(
    init: Callable[Concatenate[_Made, ...], None],
) -> Callable[Concatenate[_Made, ...], None]:
    """`init`. Type checkers look at no metaclass: for them it takes what `_BothHabits` takes."""
    return init


def _are_parameters(given: Any) -> bool:
    if isinstance(given, (str, tn.Tensor)) or callable(given) and not isinstance(given, Module):
        return False
    if isinstance(given, (list, tuple)) and any(isinstance(item, Optimizer) for item in given):
        return False
    return isinstance(given, Module) or hasattr(given, "__iter__")


def as_groups(params: Any) -> Groups:
    """Parameters with the options of their own: PyTorch's dicts, or all without any."""
    if params is None:
        return []
    params = list(params) if _is_list(params) else [params]
    dicts = [isinstance(each, dict) and not isinstance(each, Parameters) for each in params]
    if not any(dicts):
        return [(params, {})]
    if not all(dicts) or not all("params" in each for each in params):
        hint = '[{"params": a.parameters(), "lr": 0.1}, {"params": b.parameters()}]'
        _core._fail("type", "parameter groups are dicts with params, and nothing else", hint)
    renamed = [{"learning_rate" if k == "lr" else k: v for k, v in g.items()} for g in params]
    return [(group.pop("params"), group) for group in renamed]


class Optimizer(metaclass=_BothHabits):
    """Makes new parameters from parameters and gradients, one tensor at a time.

    There are two ways to use one:

        >>> model = tn.nn.Linear(2, 1)
        >>> optimizer = tn.optim.SGD(learning_rate=0.1)
        >>> grads = tn.tree.map(tn.ones_like, model.parameters())
        >>> optimizer.update(model, grads)

    with gradients that were computed before, or, made as `SGD(model.parameters(), lr=0.1)`, with
    those that `backward()` leaves in the parameters: `step()`, then `zero_grad()`.

    A class says in `apply_single` how, and in `init_single` what it remembers of a parameter.
    `state` holds the number of steps, the learning rate and what is remembered, by the parameter's
    name; it is what `compile(inputs=..., outputs=...)` takes. The learning rate may be a function
    of the number of steps before: see `optim.schedules`.

    `weight_decay` adds that much of the parameter to its gradient, or, in classes that are
    `decoupled`, takes `learning_rate * weight_decay` of it away. It may be a function of a
    parameter and its name, as in `lambda name, w: 0.1 if w.ndim > 1 else 0`.

    Parameters of less than float32 are updated in float32, where what is remembered stays too, and
    rounded once.

    Groups of parameters may have options of their own, as in PyTorch; `param_groups` has them:

        >>> head = tn.nn.Linear(1, 1)
        >>> groups = [{"params": model.parameters()}, {"params": head.parameters(), "lr": 0.5}]
        >>> [group["lr"] for group in tn.optim.SGD(groups, lr=0.25, momentum=0.9).param_groups]
        [0.25, 0.5]
    """

    decoupled = False
    # The groups after the first, each an optimizer of the same class with options of its own.
    _groups: Sequence[Optimizer] = ()
    _defaults: dict[str, Any] = {}

    @both_habits
    def __init__(self, learning_rate: Rate, weight_decay: Decay = 0.0) -> None:
        self.state: dict[str, Any] = {"step": tn.array(0, device="cpu"), "moments": {}}
        self.learning_rate = learning_rate
        if not callable(weight_decay):
            self._check_not_negative(weight_decay=weight_decay)
        self.weight_decay = weight_decay
        self._modules: list[Module] = []
        self._places: dict[str, int] = {}  # of groups, by the names of parameters seen there

    @property
    def learning_rate(self) -> tn.Tensor:
        rate: tn.Tensor = self.state["learning_rate"]
        return rate

    @learning_rate.setter
    def learning_rate(self, rate: Rate) -> None:
        for group in (self, *self._groups):
            group._change_rate(rate)

    def _change_rate(self, rate: Rate) -> None:
        """Sets that of this group alone."""
        if isinstance(rate, (int, float)):
            self._check_not_negative(learning_rate=rate)
        elif not callable(rate) and not hasattr(rate, "__float__"):
            kind = type(rate).__name__
            self._refuse(f"learning_rate is a number, a tensor or a function, not a {kind}", "type")
        self._schedule = rate if callable(rate) else None
        self._set_rate(rate(self.state["step"]) if callable(rate) else rate)

    @property
    def param_groups(self) -> list[ParameterGroup]:
        """The groups of parameters: `group["lr"] = 0.1` sets an option of one of them."""
        return [ParameterGroup(group) for group in (self, *self._groups)]

    def add_param_group(self, param_group: dict[str, Any]) -> None:
        """Adds parameters with options of their own: `{"params": ..., "lr": 0.1}`."""
        for given, options in as_groups([param_group]):
            self._add_group(given, options)

    def _add_group(self, parameters: Any, options: dict[str, Any]) -> None:
        group = type(self)(**{**self._defaults, **options})
        group.watch(parameters)
        known = {id(parameter) for _, parameter in self._watched()}
        for name, parameter in group._watched():
            if id(parameter) in known:
                self._refuse(f"{name} is in two groups of parameters")
        self._groups = [*self._groups, group]
        self.state["groups"] = [each.state for each in self._groups]

    def _set_rate(self, rate: float | tn.Tensor) -> None:
        place = self.state["step"].device
        self.state["learning_rate"] = tn.asarray(rate, dtype=tn.float32).to_device(place)

    @property
    def lr(self) -> tn.Tensor:
        """`learning_rate`, by PyTorch's name."""
        return self.learning_rate

    @lr.setter
    def lr(self, rate: Rate) -> None:
        self.learning_rate = rate

    def state_dict(self) -> dict[str, Any]:
        """`state`, to be kept: what the optimizer does later does not change it."""
        kept: dict[str, Any] = tn.tree.map(tn.Tensor.detach, self.state)
        return kept

    def load_state_dict(self, state: dict[str, Any]) -> None:
        """Goes on from what `state_dict()` of an optimizer of the same kind gave."""
        if not isinstance(state, dict) or state.keys() != self.state.keys():
            given = sorted(state) if isinstance(state, dict) else type(state).__name__
            self._refuse(f"load_state_dict: a state has {sorted(self.state)}, not {given}")
        tensors = dict(named_tensors(state))
        for name, known in named_tensors(self.state):
            if name in tensors and tensors[name].shape != known.shape:
                shapes = f"{known.shape}, given {tensors[name].shape}"
                self._refuse(f"load_state_dict: {name} is {shapes}")
        self._check_names(state)
        for name, known in self.state.get("moments", {}).items():
            others = state["moments"].get(name, known)
            if others.keys() != known.keys():
                kinds = f"{sorted(known)} are remembered of {name}, not {sorted(others)}"
                self._refuse(f"load_state_dict: {kinds}", hint="is it that of another optimizer?")
        _replace(self.state, tn.tree.map(_number_on_host, state))

    def _check_names(self, state: dict[str, Any]) -> None:
        """Fails where moments are those of parameters that the given modules do not have."""
        parameters = [module.parameters() for module in self._modules]
        known = {n for i, p in enumerate(parameters) for n, _ in named_tensors(p, str(i or ""))}
        given = state.get("moments", {}).keys() - {name for name, _ in self._own()}
        if self._modules and (others := sorted(given - known)):
            hint = "is it the state of an optimizer of another model?"
            here = f"the parameters are {', '.join(sorted(known))}"
            self._refuse(f"load_state_dict: {here}, not {', '.join(others)}", hint=hint)
        for group, of_group in zip(self._groups, state.get("groups", ())):
            group._check_names(of_group)

    def init_single(self, parameter: tn.Tensor, state: dict[str, Any]) -> None:
        """Puts into `state` what is to be remembered of a parameter before its first step."""

    def apply_single(
        self, gradient: tn.Tensor, parameter: tn.Tensor, state: dict[str, Any]
    ) -> tn.Tensor:
        """The new parameter; changes what is remembered of it."""
        self._refuse("the class does not define apply_single(gradient, parameter, state)", "type")

    def init(self, parameters: Any) -> None:
        """Remembers the parameters as before their first step.

        Otherwise that happens with the first gradient; a compiled step is then traced twice.
        """
        owners = self._owners()
        for name, parameter in named_tensors(parameters):
            owner = self._owner(name, parameter, owners) or self
            owner._moments(name, _at_least_float32(parameter))
        self._move_numbers(parameter for _, parameter in named_tensors(parameters))

    def update(self, model: Module, gradients: Any) -> None:
        """Puts new parameters into a model. `gradients` may leave some out."""
        if not isinstance(model, Module):
            kind, hint = type(model).__name__, "without a module there is apply_gradients"
            self._refuse(f"update: needs a module and gradients, not a {kind} first", "type", hint)
        if isinstance(gradients, Module):
            gradients = gradients.trainable_parameters()
        if not isinstance(gradients, dict):
            kind, hint = type(gradients).__name__, "loss, gradients = nn.value_and_grad(model, f)()"
            self._refuse(f"update: gradients are like parameters(), not a {kind}", "type", hint)
        model.update(self.apply_gradients(gradients, model.parameters()))

    def apply_gradients(self, gradients: Any, parameters: Any) -> Any:
        """New parameters, as a tree like `gradients`."""
        self._move_numbers(parameter for _, parameter in named_tensors(parameters))
        self._count_step()
        with tn.no_grad():
            return self._apply(gradients, parameters, (), self._owners())

    def watch(self, parameters: Any) -> None:
        """Makes these the parameters of `step`.

        They are a module or its parameters (those that are trainable), a tensor, or a list of such.
        """
        for given in list(parameters) if _is_list(parameters) else [parameters]:
            if isinstance(given, tn.Tensor):
                given.requires_grad = True
                self.state.setdefault("parameters", []).append(given)
                continue
            module = given.module if isinstance(given, Parameters) else given
            if not isinstance(module, Module):
                self._refuse(f"no parameters: {type(given).__name__}", "type", _hints(given))
            self._modules.append(module)
            for parameter in tn.tree.leaves(module.trainable_parameters()):
                parameter.requires_grad = True
        self.init(dict(self._own()))

    def step(self, closure: Callable[[], Any] | None = None) -> Any:
        """Improves the parameters that were given, by the gradients that `backward()` left there.

        Those without a gradient stay as they are. Outside of compiled functions the step has been
        computed when this returns. `closure` computes the loss and its gradients before; the loss
        is then what is returned.
        """
        loss = self._evaluated(closure) if closure else None
        watched = self._watched()
        if all(parameter.grad is None for _, parameter in watched):
            self._refuse(f"step: {self._why_nothing(len(watched))}")
        self._warn_of_computed(watched)
        self._move_numbers(parameter for _, parameter in watched)
        self._count_step()
        with tn.no_grad():
            for group in (self, *self._groups):
                for name, parameter in group._own():
                    if parameter.grad is not None:
                        made = group._applied(name, parameter.grad, parameter)
                        _core._rebind(parameter, made)
        # Loops of this habit ask for no values: what they record must not grow without bound.
        if not _core._is_tracing():
            tn.eval([parameter for _, parameter in watched], self.state)
        return loss

    def _evaluated(self, closure: Callable[[], Any]) -> Any:
        with tn.enable_grad():
            return closure()

    def _warn_of_computed(self, watched: list[tuple[str, tn.Tensor]]) -> None:
        for name, parameter in watched:
            if parameter.grad is None and not parameter.is_leaf:
                text = f"{name} was computed from tensors that require gradients, so it has none"
                hint = f"replace a parameter by a value of its own: {name} = (...).detach()"
                warnings.warn(f"{type(self).__name__}: step: {text}; {hint}", stacklevel=3)
                return

    def _why_nothing(self, count: int) -> str:
        hidden = [why for module in self._modules if (why := hidden_parameters(module))]
        if count == 0 and hidden:
            return f"the model {hidden[0]}"
        if count == 0:
            name = type(self).__name__
            return f"it was given no parameters; write {name}(model.parameters(), lr=...)"
        return f"none of {count} parameters has a gradient; call loss.backward() first"

    def zero_grad(self, set_to_none: bool = True) -> None:
        """Lets go of the gradients, which `backward()` would add to, or makes them zeros."""
        for _, parameter in self._watched():
            keeps = not set_to_none and parameter.grad is not None
            parameter.grad = tn.zeros_like(parameter) if keeps else None

    def _watched(self) -> list[tuple[str, tn.Tensor]]:
        """The parameters of `step`, of all groups; names are those within a group."""
        return [pair for group in (self, *self._groups) for pair in group._own()]

    def _owners(self) -> Owners:
        """The groups by the parameters they hold now, for `_owner`."""
        if not self._groups:
            return {}
        groups = enumerate((self, *self._groups))
        return {id(own): place for place, group in groups for _, own in group._own()}

    def _owner(self, name: str, parameter: tn.Tensor, owners: Owners) -> Optimizer | None:
        """The group of a parameter; None where there are several and none has it.

        What `apply_gradients` makes is in no group: there the name says which it was made from.
        """
        if not self._groups:
            return self
        if id(parameter) in owners:
            self._places[name] = owners[id(parameter)]
        elif name not in self._places:
            # A first group that was given no parameters is that of all the others.
            return None if self._own() else self
        return (self, *self._groups)[self._places[name]]

    def _own(self) -> list[tuple[str, tn.Tensor]]:
        """The parameters of the group; one with several names, tied, under the first."""
        named = [
            named_tensors(module.trainable_parameters(), str(i) if i else "")
            for i, module in enumerate(self._modules)
        ]
        named.append(named_tensors(self.state.get("parameters", [])))
        each: dict[int, tuple[str, tn.Tensor]] = {}
        for pair in chain.from_iterable(named):
            each.setdefault(id(pair[1]), pair)
        return list(each.values())

    def _count_step(self) -> None:
        for group in self._groups:
            group._count_step()
        if self._schedule:
            self._set_rate(self._schedule(self.state["step"]))
        self.state["step"] = self.state["step"] + 1

    def _move_numbers(self, parameters: Iterable[tn.Tensor]) -> None:
        """Keeps the number of steps and the learning rate where all parameters are: a compiled step
        then runs there as a whole. Parameters on several devices, or on a mesh, find them on the
        host.
        """
        places = {parameter.device for parameter in parameters}
        is_one = len(places) == 1 and next(iter(places)).kind != "mesh"
        place = places.pop() if is_one else tn.Device("cpu")
        for group in (self, *self._groups):
            for name in ("step", "learning_rate"):
                if group.state[name].device != place:
                    group.state[name] = group.state[name].to_device(place)

    def _apply(
        self, gradient: Any, parameter: Any, path: tuple[Any, ...], owners: Owners
    ) -> Any:
        if isinstance(gradient, dict) and isinstance(parameter, dict):
            for key in gradient.keys() - parameter.keys():
                self._refuse(f"a gradient for {_dotted((*path, key))}, which is no parameter")
            pairs = ((k, g, parameter[k]) for k, g in gradient.items())
            return {k: self._apply(g, p, (*path, k), owners) for k, g, p in pairs}
        if isinstance(gradient, (list, tuple)) and isinstance(parameter, (list, tuple)):
            if len(gradient) != len(parameter):
                counts = f"{len(gradient)} gradients for {len(parameter)} parameters"
                self._refuse(f"{counts} in {_dotted(path)}")
            numbered = enumerate(zip(gradient, parameter))
            return [self._apply(g, p, (*path, i), owners) for i, (g, p) in numbered]
        if not isinstance(gradient, tn.Tensor) or not isinstance(parameter, tn.Tensor):
            kinds = f"{type(gradient).__name__} for a {type(parameter).__name__}"
            self._refuse(f"the gradient of {_dotted(path)} is a {kinds}", "type")
        name = _dotted(path)
        owner = self._owner(name, parameter, owners)
        if owner is None:
            hint = "call optimizer.init(parameters) with those the groups were made of"
            self._refuse(f"{name or 'a parameter'} is in none of the groups", hint=hint)
        return owner._applied(name, gradient, parameter)

    def _applied(self, name: str, gradient: tn.Tensor, parameter: tn.Tensor) -> tn.Tensor:
        if gradient.shape != parameter.shape:
            shapes = f"{gradient.shape} for {parameter.shape}"
            self._refuse(f"the gradient of {name} has the wrong shape: {shapes}")
        wide = _at_least_float32(parameter)
        gradient = _as(gradient, wide.dtype)
        decay = self.weight_decay
        decay = decay(name, parameter) if callable(decay) else decay
        if decay and not self.decoupled:
            gradient = gradient + decay * wide
        remembered = self._moments(name, wide)
        try:
            made = self.apply_single(gradient, wide, remembered)
        except tn.Error:
            self._check_remembered(name, wide, remembered)
            raise
        if decay and self.decoupled:
            made = made - self.learning_rate * decay * wide
        return _as(made, parameter.dtype)

    def _check_remembered(self, name: str, parameter: tn.Tensor, known: dict[str, Any]) -> None:
        """An error if what is known is that of a parameter which was there before."""
        fresh: dict[str, Any] = {}
        self.init_single(parameter, fresh)
        for key, now in fresh.items():
            if key in known and known[key].shape != now.shape:
                shapes = f"{parameter.shape} now, and its {key!r} is {known[key].shape}"
                hint = "make a new optimizer when a layer was replaced"
                self._refuse(f"{name} is {shapes}", hint=hint)

    def _moments(self, name: str, parameter: tn.Tensor) -> dict[str, Any]:
        """Return the state of a parameter, which is given in at least float32."""
        known = self.state["moments"]
        if name not in known:
            fresh: dict[str, Any] = {}
            self.init_single(parameter, fresh)
            if not fresh:  # nothing to remember: the state stays as it is
                return fresh
            known[name] = fresh
        place = parameter.device
        if any(each.device != place for each in tn.tree.leaves(known[name])):
            known[name] = tn.tree.map(lambda each: each.to_device(place), known[name])
        state: dict[str, Any] = known[name]
        return state

    def _check_not_negative(self, **options: float) -> None:
        for name, value in options.items():
            if not value >= 0:
                self._refuse(f"{name} must be at least 0, not {value}")

    def __repr__(self) -> str:
        rates = [group.learning_rate for group in (self, *self._groups)]
        texts = ["traced" if _core._is_traced(rate) else f"{rate.item():g}" for rate in rates]
        text = texts[0] if len(texts) == 1 else f"[{', '.join(texts)}]"
        count = len(self._watched())
        of = f", {count} parameters" if count else ""
        return f"{type(self).__name__}(learning_rate={text}{of})"

    def _refuse(self, text: str, fault: str = "value", hint: str = "") -> NoReturn:
        _core._fail(fault, f"{type(self).__name__}: {text}", hint)


class RuleOptimizer(Optimizer):
    """An optimizer whose rule is a record of the core, and whose attributes are its options."""

    _rule: str  # the name of the record, in src/nn/optimizers/

    def _check(self) -> None:
        _core._check_rule(self)

    def init_single(self, parameter: tn.Tensor, state: dict[str, Any]) -> None:
        _core._init_rule(self, parameter, state)

    def apply_single(
        self, gradient: tn.Tensor, parameter: tn.Tensor, state: dict[str, Any]
    ) -> tn.Tensor:
        return _core._apply_rule(self, gradient, parameter, state)


def _hints(given: Any) -> str:
    """Return a hint for an argument that is not parameters."""
    if isinstance(given, dict):
        return "options by parameter: MultiOptimizer, or weight_decay as a function"
    if isinstance(given, str):  # list(model.trainable_parameters()) has the names
        return "give model.parameters(), or [a, b] of two models"
    return ""


def _at_least_float32(parameter: tn.Tensor) -> tn.Tensor:
    return _as(parameter, tn.result_type(parameter.dtype, tn.float32))


def _as(x: tn.Tensor, dtype: tn.DType) -> tn.Tensor:
    return x if x.dtype == dtype else x.astype(dtype)


def _dotted(path: tuple[Any, ...]) -> str:
    return ".".join(map(str, path))


def _number_on_host(value: Any) -> Any:
    return value.to_device("cpu") if isinstance(value, tn.Tensor) and value.ndim == 0 else value


def _replace(current: Any, new: Any) -> Any:
    """`new`, in the dicts, lists and parameters that others hold. What is divided stays divided."""
    if isinstance(current, dict) and isinstance(new, dict):
        values = {key: _replace(current.get(key), value) for key, value in new.items()}
        current.clear()
        current.update(values)
        return current
    if isinstance(current, list) and isinstance(new, list) and len(current) == len(new):
        current[:] = [_replace(c, n) for c, n in zip(current, new)]
        return current
    if isinstance(current, tn.Tensor) and current.device.kind == "mesh" and new.ndim > 0:
        new = _core._shard_like(new, current)
    if isinstance(current, tn.Tensor) and current.requires_grad:
        _core._rebind(current, new)
        return current
    return new


def _is_list(parameters: Any) -> bool:
    return not isinstance(parameters, (dict, Module, tn.Tensor)) and hasattr(parameters, "__iter__")
