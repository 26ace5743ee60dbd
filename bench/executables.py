"""What saved executables cost: to load, to run, and at sizes they were not made for.

    executables.py load FILE        a process that loads GPT-2 small, as JSON; it ends when its
                                    standard input does
    executables.py peer NAME FILE   seconds that another library takes to load as many weights
"""

from __future__ import annotations

import json
import os
import pathlib
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import numpy as np

import gradients
import measure
import tenon as tn
from tenon import _core
from workloads import gpt
from workloads.workload import map_tree

HERE = pathlib.Path(__file__).resolve()
SIZES = (1, 2, 7, 16, 50, 128, 300, 512)
BEST = 128  # the size that dynamic executables are made for
LAYER = 1536  # width of a layer of the models of other libraries


@dataclass
class Loaded:
    """A process that loaded an executable and called it."""

    load: float  # seconds, to the start of the first call
    first: float  # seconds of that call
    later: float
    kernels: int  # compiled in this process
    resident: int = 0  # bytes of memory that it sees
    share: int = 0  # of these, what would be free if it ended, and its part of what is shared


def gpt_forward(quick: bool) -> tuple[Callable[..., Any], np.ndarray]:
    """GPT-2 small, its weights constant, and tokens for it."""
    weights, tokens = gpt.forward_inputs(quick)
    params = map_tree(tn.array, weights)
    return lambda tokens: gpt.forward(tn, params, tokens), tokens


def compiled_for(f: Callable[..., Any], *arrays: np.ndarray) -> tn.Executable:
    infos = [tn.InputInfo(a.shape, getattr(tn, a.dtype.name)) for a in arrays]
    return tn.compile(f, args=infos)


def load_here(path: str) -> tuple[Loaded, tn.Executable]:
    """Also what was loaded: while it lives, its weights are mapped."""
    began = time.perf_counter()
    f = tn.Executable.load(path)
    loaded = time.perf_counter()
    tokens = tn.zeros(f.input_infos["tokens"].shape, dtype=tn.int64)
    marks = [time.perf_counter()]
    for _ in range(3):
        tn.eval(f(tokens))
        marks.append(time.perf_counter())
    first, *later = np.diff(marks)
    return Loaded(loaded - began, first, min(later), _core._kernels_compiled()), f


def memory_here() -> dict[str, int]:
    rows = dict(line.split(":") for line in
                pathlib.Path("/proc/self/smaps_rollup").read_text().splitlines()[1:])
    size = lambda key: int(rows[key].split()[0]) * 1024
    return {"resident": size("Rss"), "share": size("Pss")}


def worker(*args: str) -> subprocess.Popen[str]:
    """Without the cache on disk: whatever is compiled counts."""
    paths = os.pathsep.join(os.path.abspath(p) for p in sys.path if p)
    return subprocess.Popen([sys.executable, str(HERE), *args], stdin=subprocess.PIPE,
                            stdout=subprocess.PIPE, text=True,
                            env=os.environ | {"PYTHONPATH": paths, "TENON_CACHE": "0"})


def load_twice(path: str) -> list[Loaded]:
    """Two processes at once. Memory is asked for when both have run."""
    workers = [worker("load", path) for _ in range(2)]
    made = [json.loads(w.stdout.readline()) for w in workers]
    for w in workers:
        print("memory", file=w.stdin, flush=True)
    memory = [json.loads(w.stdout.readline()) for w in workers]
    for w in workers:
        w.communicate()
    return [Loaded(**facts | more) for facts, more in zip(made, memory)]


@dataclass
class Saved:
    """A model of about 500 MB, saved."""

    weights: int  # bytes
    save: float  # seconds
    processes: list[Loaded]
    loaded: float  # seconds of a call, in turn with the next
    jitted: float
    peers: dict[str, float]  # seconds to load as many weights


def saved_gpt(quick: bool) -> Saved:
    f, tokens = gpt_forward(quick)
    named = lambda tokens: f(tokens)
    with tempfile.TemporaryDirectory() as folder:
        path = os.path.join(folder, "gpt.tnx")
        made = compiled_for(named, tokens)
        began = time.perf_counter()
        made.save(path)
        save = time.perf_counter() - began
        del made
        processes = [one for _ in range(1 if quick else 3) for one in load_twice(path)]
        loaded, jitted, x = tn.Executable.load(path), tn.compile(named), tn.array(tokens)
        times = measure.interleave(lambda: tn.eval(loaded(x)), lambda: tn.eval(jitted(x)),
                                   0.05 if quick else 6.0)
        weights = sum(a.nbytes for a in leaves_of(gpt.forward_inputs(quick)[0]))
        peers = peer_loads(folder, weights)
    return Saved(weights, save, processes, *times, peers)


def leaves_of(tree: Any) -> list[np.ndarray]:
    found: list[np.ndarray] = []
    map_tree(found.append, tree)
    return found


# Other libraries ------------------------------------------------------------------------------


def torch_file(torch: Any, path: str, layers: int) -> None:
    model = torch.nn.Sequential(*(torch.nn.Linear(LAYER, LAYER, bias=False)
                                  for _ in range(layers)))
    torch.export.save(torch.export.export(model, (torch.zeros(1, LAYER),)), path)


def onnx_file(onnx: Any, path: str, layers: int) -> None:
    rng, make = np.random.default_rng(0), onnx.helper
    names = [f"x{i}" for i in range(layers + 1)]
    weights = [onnx.numpy_helper.from_array(
        rng.standard_normal((LAYER, LAYER), dtype=np.float32), f"w{i}") for i in range(layers)]
    nodes = [make.make_node("MatMul", [names[i], f"w{i}"], [names[i + 1]]) for i in range(layers)]
    value = lambda name: make.make_tensor_value_info(name, onnx.TensorProto.FLOAT, [1, LAYER])
    graph = make.make_graph(nodes, "chain", [value(names[0])], [value(names[-1])], weights)
    opset = [make.make_opsetid("", 17)]
    onnx.save(make.make_model(graph, opset_imports=opset, ir_version=8), path)


def peer_loads(folder: str, weights: int) -> dict[str, float]:
    """Of the other libraries that are installed, each in a process of its own."""
    layers, found = max(1, weights // (4 * LAYER**2)), {}
    for name, library, write in (("torch.export", "torch", torch_file),
                                 ("ONNX Runtime", "onnx", onnx_file)):
        module = gradients.peer(library)
        if not module:
            continue
        path = os.path.join(folder, f"{library}.{'pt2' if library == 'torch' else 'onnx'}")
        write(module, path, layers)
        answer, _ = worker("peer", library, path).communicate()
        found[name] = float(answer)
        os.remove(path)
    return found


def peer_load_here(library: str, path: str) -> float:
    if library == "torch":
        import torch

        load = torch.export.load
    else:
        import onnxruntime

        load = onnxruntime.InferenceSession
    began = time.perf_counter()
    load(path)
    return time.perf_counter() - began


# GEGLU ----------------------------------------------------------------------------------------


class GEGLU(tn.nn.Module):
    def __init__(self, inputs: int, outputs: int) -> None:
        super().__init__()
        self.proj = tn.nn.Linear(inputs, 2 * outputs)

    def __call__(self, x: tn.Tensor) -> tn.Tensor:
        x, gate = tn.split(self.proj(x), 2, axis=-1)
        return x * tn.gelu(gate)


@dataclass
class Small:
    """The cost of the file of a small model."""

    save: float
    load: float
    overhead: int  # bytes beyond weights and code


def small_file() -> Small:
    f = tn.compile(GEGLU(2, 8), args=[tn.InputInfo(((1, 4, 16), 2), tn.float32)])
    with tempfile.TemporaryDirectory() as folder:
        path = os.path.join(folder, "geglu.tnx")
        save, load = measure.interleave(lambda: f.save(path), lambda: tn.Executable.load(path))
        command = [sys.executable, "-m", "tenon", "inspect", "--json", path]
        told = json.loads(subprocess.run(command, capture_output=True, check=True).stdout)
    kept = sum(s["bytes"] for s in told["sections"] if s["kind"] in ("weights", "code"))
    return Small(save, load, told["bytes"] - kept)


# Ranges ---------------------------------------------------------------------------------------


@dataclass
class AtSize:
    """A call of an executable for all sizes, and of one for this size."""

    name: str
    size: int
    dynamic: float
    fixed: float


def perceptron() -> tuple[Callable[..., Any], Callable[[Any], tuple]]:
    rng = np.random.default_rng(0)
    w1, w2 = (tn.array(rng.standard_normal(shape, dtype=np.float32) / 16)
              for shape in ((784, 256), (256, 10)))
    b1, b2 = tn.zeros(256), tn.zeros(10)
    return lambda x: tn.relu(x @ w1 + b1) @ w2 + b2, lambda n: (n, 784)


def gpt_block(quick: bool) -> tuple[Callable[..., Any], Callable[[Any], tuple]]:
    config = gpt.tiny(gpt.FORWARD) if quick else gpt.Config(1, 1, 1, 8)
    params = map_tree(tn.array, gpt.weights(config)["blocks"][0])
    block = gpt.block_of(tn)
    return lambda x: block(params, x), lambda n: (1, n, config.width)


def dynamic_range(quick: bool) -> list[AtSize]:
    rows = []
    for name, (f, shape) in (("MLP, batch", perceptron()), ("GPT block, length", gpt_block(quick))):
        most = 16 if quick else SIZES[-1]
        info = lambda n: tn.InputInfo(shape(n), tn.float32)
        dynamic = tn.compile(f, args=[info((1, min(BEST, most), most))])
        for size in [n for n in SIZES if n <= most]:
            fixed = tn.compile(f, args=[info(size)])
            x = tn.random.normal(shape(size))
            times = measure.interleave(lambda: tn.eval(dynamic(x)), lambda: tn.eval(fixed(x)),
                                       0.01 if quick else 0.7)
            rows.append(AtSize(name, size, *times))
    return rows


if __name__ == "__main__":
    if sys.argv[1] == "peer":
        print(peer_load_here(*sys.argv[2:]))
    else:
        facts, kept = load_here(sys.argv[2])
        print(json.dumps(vars(facts)), flush=True)
        sys.stdin.readline()
        print(json.dumps(memory_here()), flush=True)
        sys.stdin.read()
