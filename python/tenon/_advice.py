"""Messages for names that do not exist."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any

# Names that other libraries have for what is here under another one. What is nearest in letters to
# `long` is `log`.
_ELSEWHERE = {
    "tenon": {
        "DataLoader": "tn.data.batches(data, batch_size, key=...)",
        "GGMLBackend": "tn.CBackend, for deployment",
        "MlxBackend": "tn.CpuBackend",
        "autograd": "tn.grad(f)(x), or loss.backward()",
        "cuda": "tn.devices(), and x.to(device)",
        "double": "tn.float64",
        "float": "tn.float32",
        "from_numpy": "tn.asarray, or tn.from_dlpack to share memory",
        "func": "tn.grad, tn.vmap, tn.jvp ...",
        "functional": "tn.softmax ..., tn.nn.relu ... and tn.nn.losses",
        "half": "tn.float16",
        "inference_mode": "tn.no_grad",
        "int": "tn.int32",
        "jit": "tn.compile",
        "long": "tn.int64",
        "manual_seed": "tn.random.seed",
        "masked_fill": "tn.where(mask, value, x)",
        "mm": "tn.matmul",
        "norm": "tn.linalg.norm",
        "numpy": "tn itself",
        "as_tensor": "tn.asarray",
        "randint": "tn.random.randint",
        "randperm": "tn.random.permutation(n)",
        "set_grad_enabled": "tn.no_grad and tn.enable_grad",
        "tensor": "tn.array",
        "utils": "tn.data, tn.nn.utils and tn.checkpoint",
    },
    "tenon.amp": {"GradScaler": "tn.amp.LossScaler"},
    "tenon.data": {
        "DataLoader": "tn.data.batches(data, batch_size, key=...)",
        "Dataset": "any object with __len__ and __getitem__",
        "TensorDataset": "a tuple or dict of tensors",
    },
    "tenon.optim": {
        "EMA": "tn.tree.map(lambda a, p: 0.999 * a + 0.001 * p, averages, model.parameters())",
        "swa_utils": "tn.tree.map(lambda a, p: a + (p - a) / n, averages, model.parameters())",
    },
    "tenon.optim.lr_scheduler": {
        "SequentialLR": "optim.join_schedules(schedules, boundaries), as the learning rate",
    },
    "tenon.model": {
        "AbsoluteError": "L1(reduction=\"none\")",
        "Accuracy": "tn.model.block of a function",
        "Buffer": "Identity",
        "Convolution1D": "Conv1d",
        "Convolution2D": "Conv2d",
        "Cosine": "Cos",
        "KLDivergence": "KLDivLoss",
        "Layer": "Linear, and += an activation",
        "MLP": "tn.Model(Linear(64), Relu(), Linear(10))",
        "MatrixMultiply": "Matmul",
        "Randn": "RandomNormal",
        "Sine": "Sin",
        "SquaredError": "MSE(reduction=\"none\")",
        "ToTensor": "IOKey(value=...)",
    },
    "tenon.random": {
        "randperm": "tn.random.permutation(n)",
        "shuffle": "x = tn.random.permutation(x)",
    },
    "tenon.nn": {
        "CosineSimilarity": "nn.losses.cosine_similarity_loss(x1, x2, axis=1)",
        "Hardtanh": "nn.HardTanh",
        "MultiheadAttention": "nn.MultiHeadAttention",
        "ParameterList": "a plain list of tensors",
        "ParameterDict": "a plain dict of tensors",
        "cosine_similarity": "nn.losses.cosine_similarity_loss(x1, x2, axis=1)",
        "functional": "tn.softmax ..., nn.relu ... and nn.losses",
    },
    "tenon.nn.init": {
        "kaiming_normal_": "layer.weight = nn.init.he_normal()(layer.weight)",
        "kaiming_uniform_": "layer.weight = nn.init.he_uniform()(layer.weight)",
        "normal_": "layer.weight = nn.init.normal()(layer.weight)",
        "ones_": "layer.weight = tn.ones_like(layer.weight)",
        "uniform_": "layer.weight = nn.init.uniform()(layer.weight)",
        "xavier_normal_": "layer.weight = nn.init.glorot_normal()(layer.weight)",
        "xavier_uniform_": "layer.weight = nn.init.glorot_uniform()(layer.weight)",
        "zeros_": "layer.weight = tn.zeros_like(layer.weight)",
    },
}


def public_name(frame: Any) -> str:
    """Return the public name of the function that runs in a frame of the package.

    It is "" for an internal function and for a transform: an error there is about an op of the
    function that is transformed.
    """
    code, home = frame.f_code, frame.f_globals.get("__name__", "")
    if home == "tenon.transforms":
        return ""
    import tenon

    part = home.partition(".")[2].partition(".")[0]
    known = part in tenon._PARTS or tenon._LATER.get(code.co_name) == part
    known = known or hasattr(vars(tenon).get(code.co_name), "__code__")
    is_function = code.co_qualname == code.co_name and not code.co_name.startswith("_")
    return code.co_name if known and is_function else ""


def missing_name(name: str, known: Iterable[str], module: str = "tenon") -> str:
    """The text of the AttributeError, with what the name is here, or the nearest one.

    Give the error its `name` too: Python adds a proposal of its own to those without one.
    """
    text = f"module {module!r} has no attribute {name!r}"
    if here := _ELSEWHERE.get(module, {}).get(name):
        return f"{text}; here: {here}"
    if name.startswith("_"):
        return text
    near = nearest(name, (n for n in known if not n.startswith("_")))
    return f"{text}; did you mean {near!r}?" if near else text


def nearest(word: str, known: Iterable[str]) -> str | None:
    """The name that differs from `word` in the fewest letters, if those are few of its letters;
    else the shortest one that begins with it."""
    names = list(known)
    best, limit = None, max(1, (len(word) + 2) // 4)
    for name in names:
        if abs(len(name) - len(word)) <= limit and (edits := _edits(word, name)) <= limit:
            best, limit = name, edits - 1
    longer = [name for name in names if len(word) > 2 and name.startswith(word)]
    return best or min(longer, key=len, default=None)


def _edits(a: str, b: str) -> int:
    """The number of letters to insert, delete or replace."""
    row = list(range(len(b) + 1))
    for i, x in enumerate(a, 1):
        corner, row[0] = row[0], i
        for j, y in enumerate(b, 1):
            corner, row[j] = row[j], min(row[j] + 1, row[j - 1] + 1, corner + (x != y))
    return row[-1]
