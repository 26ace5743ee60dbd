"""ResNet-18 forward on 224x224 images, batch normalisation folded into the convolutions."""

from __future__ import annotations

import numpy as np

from workloads.layers import layers_of
from workloads.workload import Goal, Work, Workload

STAGES = (64, 128, 256, 512)


def weights():
    rng = np.random.default_rng(0)

    def conv(n: int, m: int, k: int):
        scale = np.float32((2 / (n * k * k)) ** 0.5)
        return {"w": scale * rng.standard_normal((m, n, k, k), dtype=np.float32),
                "b": 0.1 * rng.standard_normal(m, dtype=np.float32)}

    blocks, n = [], 64
    for m in STAGES:
        for _ in range(2):
            block = {"conv1": conv(n, m, 3), "conv2": conv(m, m, 3)}
            if n != m:
                block["shortcut"] = conv(n, m, 1)
            blocks.append(block)
            n = m
    head = {"w": rng.standard_normal((512, 1000), dtype=np.float32) / np.float32(512**0.5),
            "b": np.zeros(1000, np.float32)}
    return {"stem": conv(3, 64, 7), "blocks": blocks, "head": head}


def images(batch: int, quick: bool) -> np.ndarray:
    side = 32 if quick else 224
    return np.random.default_rng(1).standard_normal((batch, 3, side, side), dtype=np.float32)


def forward(lib, params, x):
    layers = layers_of(lib)

    def conv(p, x, stride=1):
        return layers.conv2d(x, p["w"], p["b"], stride, p["w"].shape[-1] // 2)

    x = layers.max_pool(layers.relu(conv(params["stem"], x, 2)))
    for block in params["blocks"]:
        stride = 2 if "shortcut" in block else 1
        shortcut = conv(block["shortcut"], x, 2) if "shortcut" in block else x
        y = layers.relu(conv(block["conv1"], x, stride))
        x = layers.relu(conv(block["conv2"], y) + shortcut)
    return x.mean((2, 3)) @ params["head"]["w"] + params["head"]["b"]


def onnx_model(params, x: np.ndarray) -> bytes:
    """The same network as an ONNX file."""
    import onnx
    from onnx import helper, numpy_helper

    nodes, constants = [], []

    def constant(array: np.ndarray) -> str:
        constants.append(numpy_helper.from_array(array, f"c{len(constants)}"))
        return constants[-1].name

    def node(op: str, *inputs: str, **attributes) -> str:
        nodes.append(helper.make_node(op, inputs, [f"v{len(nodes)}"], **attributes))
        return nodes[-1].output[0]

    def conv(p, x: str, stride: int = 1) -> str:
        k = p["w"].shape[-1]
        return node("Conv", x, constant(p["w"]), constant(p["b"]), kernel_shape=[k, k],
                    strides=[stride] * 2, pads=[k // 2] * 4)

    y = node("Relu", conv(params["stem"], "x", 2))
    y = node("MaxPool", y, kernel_shape=[3, 3], strides=[2, 2], pads=[1] * 4)
    for block in params["blocks"]:
        stride = 2 if "shortcut" in block else 1
        shortcut = conv(block["shortcut"], y, 2) if "shortcut" in block else y
        y = node("Relu", conv(block["conv1"], y, stride))
        y = node("Relu", node("Add", conv(block["conv2"], y), shortcut))
    y = node("Flatten", node("GlobalAveragePool", y))
    y = node("Gemm", y, constant(params["head"]["w"]), constant(params["head"]["b"]))
    floats = onnx.TensorProto.FLOAT
    graph = helper.make_graph(
        nodes, "resnet18", [helper.make_tensor_value_info("x", floats, x.shape)],
        [helper.make_tensor_value_info(y, floats, [x.shape[0], 1000])], constants)
    opset = [helper.make_opsetid("", 17)]
    return helper.make_model(graph, opset_imports=opset, ir_version=9).SerializeToString()


MULTIPLY_ADDS = 1.814e9  # of one image
VERSIONS = {"tenon": forward, "torch": forward, "jax": forward,
            "onnxruntime": lambda onnxruntime, params, x: onnx_model(params, x)}

WORKLOADS = [
    Workload(
        f"resnet_{batch}", f"ResNet-18 forward, batch {batch}",
        lambda quick, batch=batch: (weights(), images(batch, quick)), VERSIONS,
        Work(multiply_adds=batch * MULTIPLY_ADDS), Goal(0.9, "onnxruntime"), kind="model",
        tolerance=1e-2, rivals=("torch frozen",),
    )
    for batch in (1, 8)
]
