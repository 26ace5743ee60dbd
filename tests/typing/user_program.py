"""A program as a user would write it. mypy and pyright check it, both in strict mode.

`assert_type` states what a type checker infers. Each `type: ignore` marks a mistake that it has to
report: both checkers fail when one of these comments is unnecessary.
"""

from __future__ import annotations

from typing import Any, assert_type

import tenon as tn
from tenon import nn, optim
from tenon.executables import Executable


@tn.compile
def scaled(x: tn.Tensor, by: float = 2.0) -> tn.Tensor:
    return x * by


@tn.compile(mode="reduce-overhead")
def shifted(x: tn.Tensor) -> tn.Tensor:
    return x + 1


class Scaler:
    @tn.compile
    def scaled(self, x: tn.Tensor) -> tn.Tensor:
        return x * 2


class Regression(nn.Module):
    def __init__(self, features: int) -> None:
        super().__init__()
        self.linear = nn.Linear(features, 1)

    def forward(self, x: tn.Tensor) -> tn.Tensor:
        made: tn.Tensor = self.linear(x)
        return made


def functions() -> None:
    assert_type(scaled(tn.ones(3), by=3.0), tn.Tensor)
    assert_type(shifted(tn.ones(3)), tn.Tensor)
    assert_type(Scaler().scaled(tn.ones(3)), tn.Tensor)
    assert_type(tn.vmap(scaled)(tn.ones((2, 3)), 3.0), tn.Tensor)
    assert_type(tn.checkpoint(scaled)(tn.ones(3)), tn.Tensor)
    assert_type(tn.compile(nn.Linear(2, 3)), nn.Linear)
    info = tn.InputInfo((3,), tn.float32)
    assert_type(tn.compile(shifted, args=[info]), Executable)
    assert_type(tn.compile(shifted, args=[info], mesh=tn.Mesh(data=1)), Executable)


def tensors() -> None:
    x = tn.ones((2, 3))
    assert_type(x.max(dim=1).indices, tn.Tensor)
    assert_type(x.max(axis=1), tn.Tensor)
    assert_type(x.sum(dim=1, keepdim=True), tn.Tensor)
    assert_type(tn.mean(x, dim=0), tn.Tensor)
    assert_type(x.gather(1, tn.zeros((2, 1), tn.int64)), tn.Tensor)
    assert_type(x.transpose(1, 0).cpu().contiguous(), tn.Tensor)
    assert_type(tn.transpose(x, 1, 0), tn.Tensor)
    assert_type(tn.fft.fft2(x), tn.Tensor)
    assert_type(tn.dot(tn.ones(2), tn.ones(2)), tn.Tensor)
    assert_type(tn.ones(2).dot(tn.ones(2)).to(dtype=tn.float64), tn.Tensor)
    assert_type(tn.ones(()).item(), Any)
    value: float = tn.ones(()).item()
    assert value == 1.0


def devices() -> None:
    assert_type(tn.zeros((2, 3), device="cpu", requires_grad=True).device, tn.Device)
    assert_type(tn.full((2,), 1.0, device=tn.Device("cpu")), tn.Tensor)
    assert_type(tn.randn(2, 3, device=tn.cpu).to("cpu", tn.float64), tn.Tensor)
    assert_type(tn.random.key(0, device="cpu"), tn.Tensor)
    assert_type(nn.Linear(2, 3).to("cpu", tn.float64), nn.Linear)
    assert tn.ones(2).device == "cpu"
    with tn.device("cpu") as place:
        assert_type(place.type, str)


def training() -> None:
    model = Regression(2)
    optimizer = optim.Adam(model.parameters(), lr=0.1)
    assert_type(optimizer, optim.Adam)
    assert_type(optim.SGD(0.1), optim.SGD)
    x = tn.random.normal((8, 2))
    loss = nn.losses.mse_loss(model(x), x[:, :1])
    loss.backward()
    optimizer.step()


def mistakes() -> None:
    """Never called."""
    scaled(tn.ones(3), by="three")  # type: ignore
    scaled()  # type: ignore
    tn.compile(scaled, mod="default")  # type: ignore
    tn.grad(scaled)(tn.ones(3), too="many")  # type: ignore
    tn.sofmax(tn.ones(3))  # type: ignore
    nn.Linnear(2, 3)  # type: ignore
    tn.linalg.qrr(tn.ones((2, 2)))  # type: ignore


if __name__ == "__main__":
    functions()
    tensors()
    devices()
    training()
