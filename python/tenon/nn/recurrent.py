"""Recurrent layers: one loop over the positions of a sequence."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, TypeAlias

import tenon as tn

from .. import _core
from .checks import (
    check_counts,
    check_function,
    check_probability,
    check_shape,
    check_sizes,
    refuse,
)
from .description import described
from .module import Module

Nonlinearity: TypeAlias = "Callable[[tn.Tensor], tn.Tensor] | str"
States: TypeAlias = "tuple[tn.Tensor, ...]"


def nonlinearity_of(layer: Module, given: Nonlinearity) -> Callable[[tn.Tensor], tn.Tensor]:
    """A function, or one of PyTorch's names for them."""
    known = {"tanh": tn.tanh, "relu": tn.relu}
    function = known.get(given, given) if isinstance(given, str) else given
    check_function(layer, "nonlinearity", function)  # type: ignore[arg-type]
    return function  # type: ignore[return-value]


class _Recurrent(Module):
    """Base class of recurrent layers: parameters, stacking and directions.

    A subclass says in `_step` how the state at one position follows from the one before.
    """

    gates: int  # of a class: the rows of its weights, in units of hidden_size
    states: int = 1  # of a class: the tensors in its state; the first one is its output
    weight_ih_l0: tn.Tensor

    def __init__(
        self,
        input_size: int,
        hidden_size: int,
        num_layers: int = 1,
        bias: bool = True,
        dropout: float = 0.0,
        bidirectional: bool = False,
        *,
        batch_first: bool = True,
    ) -> None:
        check_sizes(self, input_size=input_size, hidden_size=hidden_size)
        check_counts(self, num_layers=num_layers)
        check_probability(self, "dropout", dropout)
        self.input_size = input_size
        self.hidden_size = hidden_size
        self.num_layers = num_layers
        self.dropout = dropout
        self.bidirectional = bidirectional
        self.batch_first = batch_first
        rows, bound = self.gates * hidden_size, hidden_size**-0.5
        for layer in range(num_layers):
            inputs = input_size if layer == 0 else hidden_size * (2 if bidirectional else 1)
            for suffix in self._suffixes(layer):
                shapes: dict[str, tuple[int, ...]] = {
                    "weight_ih": (rows, inputs),
                    "weight_hh": (rows, hidden_size),
                }
                if bias:
                    shapes |= {"bias_ih": (rows,), "bias_hh": (rows,)}
                for name, shape in shapes.items():
                    setattr(self, name + suffix, tn.random.uniform(-bound, bound, shape))

    def _suffixes(self, layer: int) -> list[str]:
        """The ends of the parameters' names: one for each direction."""
        return [f"_l{layer}", f"_l{layer}_reverse"][: 2 if self.bidirectional else 1]

    def forward(self, x: tn.Tensor, state: Any = None) -> tuple[tn.Tensor, Any]:
        if not self.batch_first and getattr(x, "ndim", 0) > 2:
            check_shape(self, x, "length", ..., self.input_size)
            y, state = self._whole(tn.moveaxis(x, 0, -2), state)
            return tn.moveaxis(y, -2, 0), state
        check_shape(self, x, ..., "length", self.input_size)
        return self._whole(x, state)

    def _whole(self, x: tn.Tensor, state: Any) -> tuple[tn.Tensor, Any]:
        """All layers and directions over [..., length, input_size]."""
        first = self._first_states(x, state)
        last: list[States] = []
        for layer in range(self.num_layers):
            if layer > 0 and self.training and self.dropout > 0:
                x = tn.dropout(x, p=self.dropout)
            outputs = []
            for suffix in self._suffixes(layer):
                output, end = self._run(x, [part[len(last)] for part in first], suffix)
                outputs.append(output)
                last.append(end)
            x = outputs[0] if len(outputs) == 1 else tn.concat(outputs, axis=-1)
        ends = tuple(tn.stack(parts) for parts in zip(*last))
        return x, ends if self.states > 1 else ends[0]

    def _first_states(self, x: tn.Tensor, state: Any) -> list[Any]:
        """Return the initial value of each part of the state, by layer and direction."""
        count = self.num_layers * (2 if self.bidirectional else 1)
        if state is None:
            dtype = tn.result_type(x, self.weight_ih_l0)
            zeros = tn.zeros((*x.shape[:-2], self.hidden_size), dtype)
            return [[zeros] * count] * self.states
        parts = [state]
        if self.states > 1:
            if not isinstance(state, (tuple, list)) or len(state) != self.states:
                kind = type(state).__name__
                refuse(self, f"a state is {self.states} tensors, given a {kind}")
            parts = list(state)
        for part in parts:
            check_shape(self, part, count, *x.shape[:-2], self.hidden_size)
        return parts

    def _run(
        self, x: tn.Tensor, state: list[tn.Tensor], suffix: str
    ) -> tuple[tn.Tensor, tuple[tn.Tensor, ...]]:
        """One direction of one layer: the outputs at all positions and the last state."""
        weight = {k: getattr(self, k + suffix) for k in ("weight_ih", "weight_hh")}
        bias = {k: getattr(self, k + suffix, None) for k in ("bias_ih", "bias_hh")}
        inputs = tn.linear(x, weight["weight_ih"], bias["bias_ih"])

        def body(state: Any, here: tn.Tensor) -> tuple[Any, tn.Tensor]:
            recurrent = tn.linear(state[0], weight["weight_hh"], bias["bias_hh"])
            new = self._step(here, recurrent, state)
            # The gates may be of another type, as in mixed precision.
            state = tuple(part.astype(old.dtype) for part, old in zip(new, state))
            return state, state[0]

        reverse = suffix.endswith("reverse")
        end, outputs = tn.scan(body, tuple(state), tn.moveaxis(inputs, -2, 0), reverse=reverse)
        return tn.moveaxis(outputs, 0, -2), end

    def _step(
        self, inputs: tn.Tensor, recurrent: tn.Tensor, state: tuple[tn.Tensor, ...]
    ) -> tuple[tn.Tensor, ...]:
        """The next state. `inputs` and `recurrent` are linear in the input and in the output."""
        raise NotImplementedError

    def describe(self) -> str:
        sizes = f"{self.input_size} -> {self.hidden_size}"
        usual = {"num_layers": 1, "dropout": 0.0, "bidirectional": False, "batch_first": True}
        return described(self, sizes, **usual)


class RNN(_Recurrent):
    """`h = nonlinearity(W_ih x + b_ih + W_hh h + b_hh)` at each position of [..., length, input].

    Returns `h` of the last layer at all positions, [..., length, hidden_size], and the last `h` of
    all layers and directions, [num_layers * directions, ..., hidden_size]. `state` has the latter
    shape, and is zero by default. With `bidirectional`, half of the features are computed from the
    end. With `batch_first=False`, PyTorch's default, the length comes first: [length, ..., input].
    Parameters have PyTorch's names and shapes: `weight_ih_l0` ... `bias_hh_l1_reverse`.

        >>> outputs, last = tn.nn.RNN(3, 8)(tn.zeros((2, 5, 3)))
        >>> outputs.shape, last.shape
        ((2, 5, 8), (1, 2, 8))
    """

    gates = 1

    def __init__(
        self,
        input_size: int,
        hidden_size: int,
        num_layers: int = 1,
        bias: bool = True,
        dropout: float = 0.0,
        bidirectional: bool = False,
        nonlinearity: Nonlinearity = tn.tanh,
        *,
        batch_first: bool = True,
    ) -> None:
        options = (num_layers, bias, dropout, bidirectional)
        super().__init__(input_size, hidden_size, *options, batch_first=batch_first)
        self.nonlinearity = nonlinearity_of(self, nonlinearity)

    def _step(
        self, inputs: tn.Tensor, recurrent: tn.Tensor, state: tuple[tn.Tensor, ...]
    ) -> tuple[tn.Tensor, ...]:
        return (self.nonlinearity(inputs + recurrent),)


class GRU(_Recurrent):
    """Gated recurrent units: `h = (1 - z) * n + z * h` at each position of [..., length, input].

    `r` and `z` are sigmoids of linear functions of `x` and `h`, and
    `n = tanh(W_in x + b_in + r * (W_hn h + b_hn))`; the weights hold the rows of r, z and n in
    this order. Arguments, results and names are those of `RNN`.

        >>> outputs, last = tn.nn.GRU(3, 8, num_layers=2)(tn.zeros((2, 5, 3)))
        >>> outputs.shape, last.shape
        ((2, 5, 8), (2, 2, 8))
    """

    gates = 3

    def _step(
        self, inputs: tn.Tensor, recurrent: tn.Tensor, state: tuple[tn.Tensor, ...]
    ) -> tuple[tn.Tensor, ...]:
        return tuple(_core._recurrent_step("GRU", [inputs, recurrent, *state]))


class LSTM(_Recurrent):
    """Long short-term memory: `c = f * c + i * g` and `h = o * tanh(c)` at each position.

    `i`, `f` and `o` are sigmoids and `g` is the tanh of linear functions of `x` and `h`; the
    weights hold the rows of i, f, g and o in this order. The state is the pair of `h` and `c`.
    Other arguments, results and names are those of `RNN`.

        >>> outputs, (h, c) = tn.nn.LSTM(3, 8, bidirectional=True)(tn.zeros((2, 5, 3)))
        >>> outputs.shape, c.shape
        ((2, 5, 16), (2, 2, 8))
    """

    gates = 4
    states = 2

    def _step(
        self, inputs: tn.Tensor, recurrent: tn.Tensor, state: tuple[tn.Tensor, ...]
    ) -> tuple[tn.Tensor, ...]:
        return tuple(_core._recurrent_step("LSTM", [inputs, recurrent, *state]))
