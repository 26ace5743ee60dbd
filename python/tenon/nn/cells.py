"""Recurrent cells: one time step of a recurrent layer, for explicit loops."""

from __future__ import annotations

from typing import Any

import tenon as tn

from .checks import check_shape, check_sizes, refuse
from .description import described
from .module import Module
from .recurrent import Nonlinearity, States, gru_step, lstm_step, nonlinearity_of


class _Cell(Module):
    """What cells share: parameters, and the state before the first position."""

    gates: int  # of a class: the rows of its weights, in units of hidden_size
    states: int = 1  # of a class: the tensors in its state

    def __init__(self, input_size: int, hidden_size: int, bias: bool = True) -> None:
        check_sizes(self, input_size=input_size, hidden_size=hidden_size)
        self.input_size = input_size
        self.hidden_size = hidden_size
        rows, bound = self.gates * hidden_size, hidden_size**-0.5
        self.weight_ih = tn.random.uniform(-bound, bound, (rows, input_size))
        self.weight_hh = tn.random.uniform(-bound, bound, (rows, hidden_size))
        self.bias_ih = tn.random.uniform(-bound, bound, (rows,)) if bias else None
        self.bias_hh = tn.random.uniform(-bound, bound, (rows,)) if bias else None

    def _next(self, x: tn.Tensor, state: Any) -> States:
        check_shape(self, x, ..., self.input_size)
        before = self._before(x, state)
        inputs = tn.linear(x, self.weight_ih, self.bias_ih)
        return self._step(inputs, tn.linear(before[0], self.weight_hh, self.bias_hh), before)

    def _before(self, x: tn.Tensor, state: Any) -> States:
        if state is None:
            dtype = tn.result_type(x, self.weight_ih)
            return (tn.zeros((*x.shape[:-1], self.hidden_size), dtype),) * self.states
        parts = (state,) if self.states == 1 else state
        if not isinstance(parts, (tuple, list)) or len(parts) != self.states:
            refuse(self, f"a state is {self.states} tensors, given a {type(state).__name__}")
        for part in parts:
            check_shape(self, part, *x.shape[:-1], self.hidden_size)
        return tuple(parts)

    def _step(self, inputs: tn.Tensor, recurrent: tn.Tensor, state: States) -> States:
        """The next state. `inputs` and `recurrent` are linear in the input and in the output."""
        raise NotImplementedError

    def describe(self) -> str:
        text = described(self, f"{self.input_size} -> {self.hidden_size}")
        return text if self.bias_ih is not None else f"{text}, bias=False"


class RNNCell(_Cell):
    """The next `h` of an `RNN` from `x`, [..., input_size], and `h`, zeros by default.

    Parameters have PyTorch's names: `weight_ih`, `weight_hh`, `bias_ih`, `bias_hh`.

        >>> cell, h = tn.nn.RNNCell(3, 8), None
        >>> for x in tn.zeros((5, 2, 3)):
        ...     h = cell(x, h)
        >>> h.shape
        (2, 8)
    """

    gates = 1

    def __init__(
        self,
        input_size: int,
        hidden_size: int,
        bias: bool = True,
        nonlinearity: Nonlinearity = tn.tanh,
    ) -> None:
        super().__init__(input_size, hidden_size, bias)
        self.nonlinearity = nonlinearity_of(self, nonlinearity)

    def forward(self, x: tn.Tensor, state: tn.Tensor | None = None) -> tn.Tensor:
        return self._next(x, state)[0]

    def _step(self, inputs: tn.Tensor, recurrent: tn.Tensor, state: States) -> States:
        return (self.nonlinearity(inputs + recurrent),)


class GRUCell(_Cell):
    """The next `h` of a `GRU` from `x`, [..., input_size], and `h`, zeros by default.

        >>> tn.nn.GRUCell(3, 8)(tn.zeros((2, 3))).shape
        (2, 8)
    """

    gates = 3

    def forward(self, x: tn.Tensor, state: tn.Tensor | None = None) -> tn.Tensor:
        return self._next(x, state)[0]

    def _step(self, inputs: tn.Tensor, recurrent: tn.Tensor, state: States) -> States:
        return gru_step(inputs, recurrent, state)


class LSTMCell(_Cell):
    """The next `(h, c)` of an `LSTM` from `x`, [..., input_size], and the pair, zeros by default.

        >>> h, c = tn.nn.LSTMCell(3, 8)(tn.zeros((2, 3)))
        >>> h.shape, c.shape
        ((2, 8), (2, 8))
    """

    gates = 4
    states = 2

    def forward(self, x: tn.Tensor, state: Any = None) -> States:
        return self._next(x, state)

    def _step(self, inputs: tn.Tensor, recurrent: tn.Tensor, state: States) -> States:
        return lstm_step(inputs, recurrent, state)
