"""Training: a model with losses and an optimizer."""

from __future__ import annotations

import functools
from collections.abc import Callable, Mapping
from typing import Any, NamedTuple

import tenon as tn

from .. import _core
from .backends import CpuBackend, CudaBackend, InterpreterBackend
from .evaluation import RANDOM_KEY
from .logical import Block, IOKey, Model, Terminal
from .on_device import put
from .physical import PhysicalModel

LOSS = "loss"


class TrainModel(Model):
    """A copy of a model to which losses, metrics and an optimizer are attached.

        >>> from tenon.model import Linear, MSE
        >>> model = tn.Model()
        >>> model |= Linear(1)
        >>> training = tn.TrainModel(model, tn.optim.SGD(0.1))
        >>> _ = training.add_loss(MSE(), input="output", target="y")
        >>> physical = tn.compile(training, shapes={"input": [8, 2]})
        >>> params = physical.randomize_params()
        >>> step = physical.step(params, {"input": tn.ones((8, 2)), "y": tn.zeros((8, 1))})
        >>> sorted(step.params)
        ['linear.bias', 'linear.weight']
    """

    def __init__(self, model: Model, optimizer: tn.optim.Optimizer | None = None) -> None:
        if not isinstance(model, Model):
            _core._fail("type", f"TrainModel: expected a Model, not {type(model).__name__}")
        if optimizer is not None and not isinstance(optimizer, tn.optim.Optimizer):
            text = f"TrainModel: expected an optimizer, not {optimizer!r}"
            _core._fail("type", text, "tn.optim.Adam(0.001)")
        self._core = model._core._copy()
        self._core._keep_ends()
        self.optimizer = optimizer
        self._losses: list[tuple[str, float]] = []

    def add_loss(
        self,
        loss: Block | Model,
        *,
        weight: float = 1.0,
        key: str | None = None,
        **connections: Any,
    ) -> str:
        """Adds a loss block; the weighted sum of all losses is minimised.

        The loss is an output under its key, by default `loss_0` and so on; the sum is the output
        "loss". Returns the key.
        """
        name = f"{LOSS}_{len(self._losses)}" if key is None else key
        if name == LOSS:
            _core._fail("value", f"add_loss: {LOSS!r} is the name of the sum of all losses")
        self.add_metric(loss, name, **connections)
        self._losses = [*self._losses, (name, float(weight))]  # copies share the former list
        return name

    def add_metric(self, metric: Block | Model, key: str, **connections: Any) -> str:
        """Adds a block whose output is an output of the model, under `key`. Returns the key."""
        self.add(metric, **connections, output=IOKey(key, expose=True))
        return key

    def _physical(self, *made: Any) -> PhysicalTrainModel:
        physical = PhysicalTrainModel(self.name, *made)
        physical.optimizer = self.optimizer
        return physical

    def _completed(self) -> Model:
        """Return the model with the sum of its losses."""
        if not self._losses:
            _core._fail("value", "TrainModel: there is no loss", "add one: add_loss(MSE(), ...)")
        names = [f"x{i}" for i in range(len(self._losses))]
        terminals = [Terminal(name, shape="") for name in names]
        weights = [weight for _, weight in self._losses]

        def total(given: list[tn.Tensor], training: bool, key: Any) -> list[tn.Tensor]:
            parts = [x if w == 1 else x * w for x, w in zip(given, weights)]
            return [sum(parts[1:], start=parts[0])]

        made = Model(self.name)
        made._core = self._core._copy()
        made |= Block.of("Loss", [*terminals, Terminal("output", "output", "")], total)(
            **{name: key for name, (key, _) in zip(names, self._losses)},
            output=IOKey(LOSS, expose=True),
        )
        return made


class Step(NamedTuple):
    """The result of a training step: everything that the next step needs."""

    loss: tn.Tensor
    outputs: dict[str, tn.Tensor]
    params: dict[str, tn.Tensor]
    state: dict[str, tn.Tensor]


class PhysicalTrainModel(PhysicalModel):
    """A physical model that knows how it is trained."""

    optimizer: tn.optim.Optimizer | None = None

    def step(
        self,
        params: Mapping[str, Any],
        data: Mapping[str, Any],
        state: Mapping[str, Any] | None = None,
    ) -> Step:
        """One optimizer step: the loss before the step, and the new parameters and state.

        The optimizer holds its own state. Without `state` the running statistics start from their
        initial values.
        """
        if self.optimizer is None:
            hint = "TrainModel(model, tn.optim.Adam(0.001))"
            _core._fail("value", "step: the model has no optimizer", hint)
        if state is None and RANDOM_KEY in self._functions.states:  # or all steps drew the same
            text = f"step: {self.name} draws random numbers and has no key"
            _core._fail("value", text, "give state=model.initial_state(seed) or of a step")
        given = [dict(params), dict(data), self.initial_state() if state is None else dict(state)]
        step = self._compiled_step(self.optimizer)
        if not isinstance(self.backend, CudaBackend):
            return Step(*step(*given))
        with tn.device(self.backend.device):
            return Step(*step(*(put(self.backend.device, values) for values in given)))

    def _compiled_step(self, optimizer: tn.optim.Optimizer) -> Callable[..., Any]:
        """One function where the library computes everything; found again for this optimizer."""
        if self._steps is None or self._steps[0] is not optimizer:
            run: Callable[..., Any] = functools.partial(self._step, optimizer)
            if isinstance(self.backend, (CpuBackend, CudaBackend, InterpreterBackend)):
                out = ["donate_argnums"]
                if isinstance(self.backend, CudaBackend):  # targets are those of files
                    out.append("target_hardware")
                said = {n: x for n, x in self._options.compiler.items() if n not in out}
                run = tn.compile(run, inputs=optimizer.state, outputs=optimizer.state, **said)
            self._steps = (optimizer, run)
        return self._steps[1]

    _steps: tuple[tn.optim.Optimizer, Callable[..., Any]] | None = None

    def _step(
        self, optimizer: tn.optim.Optimizer, params: Any, data: Any, state: Any
    ) -> tuple[Any, ...]:
        seed = {LOSS: tn.ones((), self.get_types()[LOSS], device="cpu")}
        outputs, gradients, left = self.evaluate(
            params, data, output_gradients=seed, state=state
        )
        trained = {name: params[name] for name in gradients if name in params}  # not data
        new = optimizer.apply_gradients({name: gradients[name] for name in trained}, trained)
        return outputs[LOSS], outputs, {**params, **new}, left
