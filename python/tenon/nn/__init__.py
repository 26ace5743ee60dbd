"""Neural networks: modules, the functions they are made of, losses, and the optimizers.

    >>> model = tn.nn.Sequential(tn.nn.Linear(3, 8), tn.nn.relu, tn.nn.Linear(8, 1))
    >>> model(tn.zeros((5, 3))).shape
    (5, 1)
"""

from typing import TYPE_CHECKING

from .._core import (
    celu,
    elu,
    gelu,
    gelu_approx,
    gelu_fast_approx,
    gelu_tanh,
    glu,
    hard_shrink,
    hard_tanh,
    hardswish,
    leaky_relu,
    log_sigmoid,
    log_softmax,
    mish,
    prelu,
    relu,
    relu2,
    relu6,
    selu,
    sigmoid,
    silu,
    softmax,
    softmin,
    softplus,
    softshrink,
    softsign,
    step,
    tanh,
)
from . import init, layers, losses
from .checkpointed import checkpoint
from .containers import Identity, ModuleDict, ModuleList, Parameter, Sequential
from .layers import *  # noqa: F403
from .model_gradients import value_and_grad
from .module import Module
from .pipeline_stages import Pipeline, pipeline
from .pooling import Upsample
from .recurrent import GRU, LSTM, RNN
from .sharded_linear import AllToShardedLinear, ShardedToAllLinear, shard_linear
from .transformer import (
    Transformer,
    TransformerDecoder,
    TransformerDecoderLayer,
    TransformerEncoder,
    TransformerEncoderLayer,
)

# Optimizers are also found here. They import Module from here, so these follow it; and each comes
# from its own module, as `tenon.optim` imports this one first.
from ..optim.clipping import (  # isort: skip
    clip_grad_norm,
    clip_grad_norm_,
    clip_grad_value,
    clip_grad_value_,
)
from ..optim.lbfgs import LBFGS  # isort: skip
from ..optim.multi import MultiOptimizer  # isort: skip
from ..optim.optimizer import Optimizer  # isort: skip
from ..optim.optimizers import *  # isort: skip  # noqa: F403
from ..distributed import average_gradients
from .sharding import shard

from ..optim import clipping as utils  # isort: skip (PyTorch's nn.utils.clip_grad_norm_)
from ..optim import optimizers as _optimizers  # isort: skip

__all__ = [
    "AllToShardedLinear",
    "GRU",
    "LBFGS",
    "LSTM",
    "RNN",
    "Identity",
    "Module",
    "ModuleDict",
    "ModuleList",
    "MultiOptimizer",
    "Optimizer",
    "Parameter",
    "Pipeline",
    "Sequential",
    "ShardedToAllLinear",
    "Transformer",
    "TransformerDecoder",
    "TransformerDecoderLayer",
    "TransformerEncoder",
    "TransformerEncoderLayer",
    "Upsample",
    "celu",
    "checkpoint",
    "average_gradients",
    "pipeline",
    "shard",
    "clip_grad_norm",
    "clip_grad_norm_",
    "clip_grad_value",
    "clip_grad_value_",
    "elu",
    "gelu",
    "gelu_approx",
    "gelu_fast_approx",
    "gelu_tanh",
    "glu",
    "hard_shrink",
    "hard_tanh",
    "hardswish",
    "init",
    "leaky_relu",
    "log_sigmoid",
    "log_softmax",
    "losses",
    "mish",
    "prelu",
    "relu",
    "relu2",
    "relu6",
    "selu",
    "shard_linear",
    "sigmoid",
    "silu",
    "softmax",
    "softmin",
    "softplus",
    "softshrink",
    "softsign",
    "step",
    "tanh",
    "utils",
    "value_and_grad",
]
__all__ += _optimizers.__all__
__all__ += layers.__all__


if not TYPE_CHECKING:  # to type checkers it would say that every name exists

    def __getattr__(name: str) -> object:
        from .._advice import missing_name

        raise AttributeError(missing_name(name, globals(), __name__), name=name)
