"""Evaluations of models beside the same functions under tn.compile: what the model's call costs.

    python bench/model_calls.py [--quick]
"""

from __future__ import annotations

import argparse
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import measure
import tenon as tn
from workloads.resnet import STAGES, forward, images, weights


@dataclass
class Compared:
    """An evaluation, in seconds."""

    name: str
    model: float
    function: float


def mlp(width: int) -> tn.Model:
    model = tn.Model("mlp")
    model |= tn.model.Linear(width)(input="input")
    model += tn.model.Relu()
    model += tn.model.Linear(10)
    return model


def cnn() -> tn.Model:
    model = tn.Model("cnn")
    model |= tn.model.Conv2d(3, 64, kernel_size=3)(input="input")
    model += tn.model.BatchNorm2d(64)(name="norm")
    model += tn.model.Relu()
    model += tn.model.Conv2d(64, 128, kernel_size=3)
    model += tn.model.GlobalAvgPool2d()
    model += tn.model.Linear(128, 10)
    return model


def resnet18() -> tn.Model:
    """With batch norm, which static inference takes into the convolutions."""
    blocks = tn.model
    model = tn.Model("resnet18")

    def conv(x: str, out: str, channels: int, kernel: int, stride: int = 1) -> None:
        nonlocal model
        padding = kernel // 2
        layer = blocks.Conv2d(channels, kernel_size=kernel, stride=stride, padding=padding)
        model |= layer(input=x)
        model += blocks.BatchNorm2d()(output=out)

    conv("input", "stem", 64, 7, 2)
    model += blocks.Relu()
    model += blocks.MaxPool2d(3, stride=2, padding=1)(output="x0")
    before = 64
    for i in range(8):
        channels, x = STAGES[i // 2], f"x{i}"
        stride = 1 if channels == before else 2
        conv(x, f"a{i}", channels, 3, stride)
        model |= blocks.Relu()(input=f"a{i}", output=f"r{i}")
        conv(f"r{i}", f"b{i}", channels, 3)
        if stride == 2:
            conv(x, f"s{i}", channels, 1, 2)
        model |= blocks.Add()(x1=f"b{i}", x2=f"s{i}" if stride == 2 else x, output=f"sum{i}")
        model |= blocks.Relu()(input=f"sum{i}", output=f"x{i + 1}")
        before = channels
    model |= blocks.GlobalAvgPool2d()(input="x8")
    model += blocks.Linear(1000)
    return model


def mlp_function(params: dict[str, tn.Tensor], data: dict[str, tn.Tensor]) -> Any:
    h = tn.relu(tn.linear(data["input"], params["linear.weight"], params["linear.bias"]))
    return {"output": tn.linear(h, params["linear_1.weight"], params["linear_1.bias"])}


def cnn_function(params: dict[str, tn.Tensor], data: dict[str, tn.Tensor]) -> Any:
    def along_channels(x: tn.Tensor) -> tn.Tensor:
        return x.reshape(1, -1, 1, 1)

    h = tn.conv2d(data["input"], params["conv2d.weight"])
    h = h + along_channels(params["conv2d.bias"])
    mean, var = h.mean((0, 2, 3)), tn.var(h, (0, 2, 3))
    h = tn.relu(tn.batch_norm(h, mean, var, params["norm.weight"], params["norm.bias"], axis=1))
    h = tn.conv2d(h, params["conv2d_1.weight"]) + along_channels(params["conv2d_1.bias"])
    return {"output": tn.linear(h.mean((2, 3)), params["linear.weight"], params["linear.bias"])}


def compared(
    name: str,
    model: tn.Model,
    function: Callable[..., Any],
    shape: list[int],
    seconds: float,
) -> Compared:
    physical = tn.compile(model, tn.CpuBackend(), shapes={"input": shape})
    params, data = physical.randomize_params(), {"input": tn.random.normal(shape)}
    tn.eval(params, data)
    compiled = tn.compile(function)
    # Short calls by the thousand, in turn: what one call costs is above the clock's steps.
    calls = 2000 if seconds > 0.05 and max(shape) <= 64 and len(shape) == 2 else 1

    def repeated(call: Callable[..., Any]) -> Callable[[], object]:
        return lambda: [tn.eval(call(params, data)) for _ in range(calls)]

    found = measure.interleave(repeated(physical.evaluate), repeated(compiled), seconds)
    return Compared(name, found[0] / calls, found[1] / calls)


def resnet(quick: bool, seconds: float) -> Compared:
    """Beside the same network with constant weights and no batch norm, under tn.compile."""
    image = images(1, quick)
    model = resnet18()
    shapes = {"input": list(image.shape)}
    params = tn.compile(model, shapes=shapes, inference=True).randomize_params()
    physical = tn.compile(
        model, tn.CpuBackend(), shapes=shapes, static_inference=True, params=params
    )
    constants = tn.tree.map(tn.array, weights())
    compiled = tn.compile(lambda x: forward(tn, constants, x))
    data = {"input": tn.array(image)}
    found = measure.interleave(
        lambda: tn.eval(physical.evaluate(params, data)),
        lambda: tn.eval(compiled(data["input"])),
        seconds,
    )
    return Compared("resnet18, static", *found)


def rows(quick: bool) -> list[Compared]:
    seconds = 0.05 if quick else 3.0
    small = compared("small mlp", mlp(16), mlp_function, [8, 16], seconds)
    large = compared("mlp", mlp(512), mlp_function, [64, 512], seconds)
    side = 16 if quick else 64
    image = compared("cnn", cnn(), cnn_function, [8, 3, side, side], seconds)
    return [small, large, image, resnet(quick, seconds)]


if __name__ == "__main__":
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--quick", action="store_true")
    for row in rows(parser.parse_args().quick):
        print(
            f"{row.name:18}model {measure.time_text(row.model):>9}   "
            f"function {measure.time_text(row.function):>9}   {row.model / row.function:5.3f} times"
        )
