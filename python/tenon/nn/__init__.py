"""Neural networks: modules, the functions they are made of, losses, and the optimizers.

    >>> model = tn.nn.Sequential(tn.nn.Linear(3, 8), tn.nn.relu, tn.nn.Linear(8, 1))
    >>> model(tn.zeros((5, 3))).shape
    (5, 1)
"""

from typing import TYPE_CHECKING

from . import init, layers, losses
from .activations import (
    CELU,
    ELU,
    GELU,
    GLU,
    SELU,
    HardShrink,
    Hardswish,
    HardTanh,
    LeakyReLU,
    LogSigmoid,
    LogSoftmax,
    Mish,
    PReLU,
    ReLU,
    ReLU2,
    ReLU6,
    Sigmoid,
    SiLU,
    Softmax,
    Softmin,
    Softplus,
    Softshrink,
    Softsign,
    Step,
    Tanh,
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
from .adaptive_pooling import (
    AdaptiveAvgPool1d,
    AdaptiveAvgPool2d,
    AdaptiveAvgPool3d,
    AdaptiveMaxPool1d,
    AdaptiveMaxPool2d,
    AdaptiveMaxPool3d,
)
from .attention import MultiHeadAttention
from .cells import GRUCell, LSTMCell, RNNCell
from .checkpointed import checkpoint
from .containers import Identity, ModuleDict, ModuleList, Parameter, Sequential
from .layers import *  # noqa: F403
from .loss_modules import (
    BCELoss,
    BCEWithLogitsLoss,
    CrossEntropyLoss,
    GaussianNLLLoss,
    HuberLoss,
    KLDivLoss,
    L1Loss,
    MarginRankingLoss,
    MSELoss,
    NLLLoss,
    SmoothL1Loss,
    TripletMarginLoss,
)
from .module import Module, value_and_grad
from .padding import (
    CircularPad1d,
    CircularPad2d,
    CircularPad3d,
    ConstantPad1d,
    ConstantPad2d,
    ConstantPad3d,
    ReflectionPad1d,
    ReflectionPad2d,
    ReflectionPad3d,
    ReplicationPad1d,
    ReplicationPad2d,
    ReplicationPad3d,
    ZeroPad1d,
    ZeroPad2d,
    ZeroPad3d,
)
from .pooling import Upsample
from .positional import ALiBi, RoPE, SinusoidalPositionalEncoding
from .recurrent import GRU, LSTM, RNN
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
from ..optim import clipping as utils  # isort: skip (PyTorch's nn.utils.clip_grad_norm_)
from ..optim import optimizers as _optimizers  # isort: skip

__all__ = [
    "CELU",
    "ELU",
    "GELU",
    "GLU",
    "GRU",
    "LBFGS",
    "LSTM",
    "RNN",
    "SELU",
    "ALiBi",
    "AdaptiveAvgPool1d",
    "AdaptiveAvgPool2d",
    "AdaptiveAvgPool3d",
    "AdaptiveMaxPool1d",
    "AdaptiveMaxPool2d",
    "AdaptiveMaxPool3d",
    "BCELoss",
    "BCEWithLogitsLoss",
    "CircularPad1d",
    "CircularPad2d",
    "CircularPad3d",
    "ConstantPad1d",
    "ConstantPad2d",
    "ConstantPad3d",
    "CrossEntropyLoss",
    "GRUCell",
    "GaussianNLLLoss",
    "HardShrink",
    "HardTanh",
    "Hardswish",
    "HuberLoss",
    "Identity",
    "KLDivLoss",
    "L1Loss",
    "LSTMCell",
    "LeakyReLU",
    "LogSigmoid",
    "LogSoftmax",
    "MSELoss",
    "MarginRankingLoss",
    "Mish",
    "Module",
    "ModuleDict",
    "ModuleList",
    "MultiHeadAttention",
    "MultiOptimizer",
    "NLLLoss",
    "Optimizer",
    "PReLU",
    "Parameter",
    "RNNCell",
    "ReLU",
    "ReLU2",
    "ReLU6",
    "ReflectionPad1d",
    "ReflectionPad2d",
    "ReflectionPad3d",
    "ReplicationPad1d",
    "ReplicationPad2d",
    "ReplicationPad3d",
    "RoPE",
    "Sequential",
    "SiLU",
    "Sigmoid",
    "SinusoidalPositionalEncoding",
    "SmoothL1Loss",
    "Softmax",
    "Softmin",
    "Softplus",
    "Softshrink",
    "Softsign",
    "Step",
    "Tanh",
    "Transformer",
    "TransformerDecoder",
    "TransformerDecoderLayer",
    "TransformerEncoder",
    "TransformerEncoderLayer",
    "TripletMarginLoss",
    "Upsample",
    "ZeroPad1d",
    "ZeroPad2d",
    "ZeroPad3d",
    "celu",
    "checkpoint",
    "average_gradients",
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
