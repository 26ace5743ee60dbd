"""Blocks by name: layers, every op of the table, every layer of `tenon.nn`."""

from __future__ import annotations

import functools
from collections.abc import Callable
from typing import Any, SupportsIndex

from .. import _core, nn
from .logical import Block
from .modules import block

#: Names that others have for what is here under another one.
_ELSEWHERE = {
    "BinaryCrossEntropy": "BCEWithLogitsLoss",
    "Cast": "Astype",
    "Huber": "HuberLoss",
    "L1": "L1Loss",
    "MSE": "MSELoss",
    "MatMul": "Matmul",
    "ScaledDotProduct": "ScaledDotProductAttention",
}


#: Tensors that an op takes, or gives, as a list.
MOST = 10_000


def capitals(op: str) -> str:
    """`BatchNorm` of `batch_norm`."""
    return _core._block_name(op)


@functools.cache
def _op_blocks() -> dict[str, tuple[str, bool, bool]]:
    """The op of each name, and whether it takes, and gives, a list of tensors."""
    return _core._op_blocks()


@functools.cache
def _layers() -> dict[str, Callable[..., Block]]:
    made = {name: _layer_maker(name, doc) for name, doc in _core._layer_docs().items()}
    return made | {"CrossEntropy": CrossEntropy}


def CrossEntropy(
    reduction: str = "mean", label_smoothing: float = 0.0, axis: int = -1
) -> Block:
    """`CrossEntropyLoss`, with the classes along the last axis of `input`.

        >>> tn.model.CrossEntropy()
        CrossEntropyLoss(axis=-1): input, target, weight -> output
    """
    options = {"reduction": reduction, "label_smoothing": label_smoothing, "axis": axis}
    return Block(_core._layer_block("CrossEntropyLoss", (), options))


def _layer_maker(name: str, doc: str) -> Callable[..., Block]:
    """Return a constructor of blocks for a layer of `tenon.nn`. Sizes to infer may be omitted."""

    def make(*sizes: Any, **options: Any) -> Block:
        return Block(_core._layer_block(name, sizes, options))

    make.__name__ = make.__qualname__ = name
    make.__doc__ = doc
    return make


@functools.cache
def _modules() -> dict[str, type[nn.Module]]:
    found = {name: getattr(nn, name) for name in nn.__all__}
    divided = (nn.AllToShardedLinear, nn.ShardedToAllLinear)  # of weights, for a group of workers
    no_layers = (nn.Module, nn.ModuleList, nn.ModuleDict, *divided)
    return {
        name: layer
        for name, layer in found.items()
        if isinstance(layer, type) and issubclass(layer, nn.Module) and layer not in no_layers
    }


@functools.cache
def block_names() -> tuple[str, ...]:
    return tuple(sorted({*_layers(), *_op_blocks(), *_modules(), *_ELSEWHERE}))


#: Layers that have the names of other ops: with parameters, or of nothing like them (`Eye`).
_LAYERS_NOT_OPS = {"BatchNorm", "Conv", "Identity"}
#: Ops that may have several axes, while the layers of their names have one.
_OPS_NOT_LAYERS = {"LogSoftmax", "Softmax"}


@functools.cache
def block_named(name: str) -> Callable[..., Block]:
    """Return the constructor of blocks with this name: `block_named("Softmax")(axis=-1)`."""
    name = _ELSEWHERE.get(name, name)
    if name in _layers() and name not in _OPS_NOT_LAYERS:
        return _layers()[name]
    if name in _op_blocks() and name not in _LAYERS_NOT_OPS:
        return _op_maker(name)
    if name in _modules():
        return _module_maker(name, _modules()[name])
    from .._advice import missing_name

    raise AttributeError(missing_name(name, block_names(), "tenon.model"), name=name)


def _op_maker(name: str) -> Callable[..., Block]:
    op, takes_list, _ = _op_blocks()[name]

    def make(*attributes: Any, count: int | None = None, **keywords: Any) -> Block:
        if takes_list and attributes and count is None:
            count, *attributes = attributes  # type: ignore[assignment]
        return op_block(op, count, keywords, tuple(attributes))

    make.__name__ = make.__qualname__ = name
    make.__doc__ = getattr(_core, op).__doc__
    return make


def op_block(
    op: str, count: int | None, keywords: dict[str, Any], attributes: tuple[Any, ...] = ()
) -> Block:
    """The block of an op with these attributes; operands among the keywords are constants."""
    texts = [_short(value) for value in attributes]
    texts += [f"{key}={_short(value)}" for key, value in keywords.items()]
    if count is None:
        _, _, gives_list = _op_blocks()[capitals(op)]
        count = _result_count(attributes, keywords) if gives_list else 0
    number = _size(op, "count", count)
    if number > MOST:
        _core._fail("value", f"{op}: count is at most {MOST}, not {number}")
    return Block(_core._op_block(op, number, ", ".join(texts), attributes, keywords))


def _size(layer: str, name: str, value: Any) -> int:
    if isinstance(value, bool) or not isinstance(value, SupportsIndex):
        _core._fail("type", f"{layer}: {name} must be an integer, not {value!r}")
    number = value.__index__()
    if abs(number) >= 2**63:
        _core._fail("value", f"{layer}: {name} does not fit 64 bits: {number}")
    return number


def _short(value: Any) -> str:
    if hasattr(value, "shape") and hasattr(value, "dtype"):
        return f"{value.dtype}{list(value.shape)}"
    return repr(value)


def _result_count(attributes: Any, keywords: dict[str, Any]) -> int:
    """Return the number of parts of `Split(3)` and `Split(indices=[1, 4])`; 0: unknown."""
    parts = keywords.get("sections", keywords.get("indices", attributes[0] if attributes else 0))
    if isinstance(parts, (list, tuple)):
        return len(parts) + 1
    return parts if isinstance(parts, int) else 0


def _module_maker(name: str, module: type[nn.Module]) -> Callable[..., Block]:
    @functools.wraps(module.__init__)
    def make(*args: Any, **kwargs: Any) -> Block:
        return block(module(*args, **kwargs))

    make.__name__ = make.__qualname__ = name
    make.__doc__ = module.__doc__
    return make
