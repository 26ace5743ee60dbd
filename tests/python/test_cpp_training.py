"""Training in C++ has the bits of training in Python: initial weights, losses, final state."""

import functools

import numpy as np
import pytest

import tenon as tn
from cpp_programs import run_cpp

PROGRAM = r"""
#include <tenon/nn.h>
#include <tenon/optim.h>
#include <tenon/tenon.h>

#include <cstdio>

using namespace tn;

struct Net : nn::Module<Net> {
  nn::Conv2d conv{1, 4, 3, {.padding = 1}};
  nn::BatchNorm2d norm{4};
  nn::LayerNorm before{16};
  nn::MultiHeadAttention attention{16, 4};
  nn::Sequential head{nn::RMSNorm(16), nn::Linear(16, 16), tn::gelu, nn::Dropout(0.25),
                      nn::Linear(16, 10)};

  Tensor forward(const Tensor& x) {
    Tensor h = reshape(max_pool(relu(norm(conv(x))), 2), {x.shape()[0], 4, 16});
    return head(mean(h + attention(before(h), {.causal = true}), 1));
  }
  static void fields(auto& m, auto&& f) {
    f("conv", m.conv), f("norm", m.norm), f("before", m.before);
    f("attention", m.attention), f("head", m.head);
  }
};

int main() {
  random::seed(3);
  Net model;
  model.save_weights("initial.safetensors");
  nn::TensorMap data;
  for (auto& [name, tensor] : load_safetensors("data.safetensors").tensors) data[name] = tensor;
  optim::AdamW optimizer([](const Tensor& step) { return 0.01 / (1 + step); });
  auto step = compile(
      [&](const Tensor& x, const Tensor& y) {
        auto [loss, gradients] =
            nn::value_and_grad(model, [&] { return cross_entropy(model(x), y); })();
        optimizer.update(model, gradients);
        return loss;
      },
      std::tie(model, optimizer));
  random::seed(7);
  for (int i = 0; i < 5; ++i) std::printf("%a\n", step(data["x"], data["y"]).item<double>());
  model.save_weights("trained.safetensors");
  nn::TensorMap state = optimizer.state_dict();
  save_safetensors("state.safetensors", NamedTensors(state.begin(), state.end()));
}
"""


class Net(tn.nn.Module):
    def __init__(self):
        self.conv = tn.nn.Conv2d(1, 4, 3, padding=1)
        self.norm = tn.nn.BatchNorm2d(4)
        self.before = tn.nn.LayerNorm(16)
        self.attention = tn.nn.MultiHeadAttention(16, 4)
        self.head = tn.nn.Sequential(
            tn.nn.RMSNorm(16), tn.nn.Linear(16, 16), tn.gelu, tn.nn.Dropout(0.25),
            tn.nn.Linear(16, 10),
        )  # fmt: skip

    def forward(self, x):
        h = tn.reshape(tn.max_pool(tn.relu(self.norm(self.conv(x))), 2), (x.shape[0], 4, 16))
        return self.head(tn.mean(h + self.attention(self.before(h), causal=True), axis=1))


def train_in_python(x, y):
    """The losses, the model and the optimizer."""
    model = Net()
    optimizer = tn.optim.AdamW(lambda step: 0.01 / (1 + step))
    state = [model.state, optimizer.state, tn.random.state]

    @functools.partial(tn.compile, inputs=state, outputs=state)
    def step(x, y):
        loss_and_grad = tn.nn.value_and_grad(model, lambda: tn.cross_entropy(model(x), y))
        loss, gradients = loss_and_grad()
        optimizer.update(model, gradients)
        return loss

    tn.random.seed(7)
    return [step(x, y).item() for _ in range(5)], model, optimizer


def bits(tensors):
    return {name: (str(t.dtype), np.asarray(t).tobytes()) for name, t in tensors.items()}


@pytest.mark.compiles
def test_a_step_in_cpp_has_the_bits_of_one_in_python(tmp_path):
    tn.random.seed(0)
    x, y = tn.random.normal((16, 1, 8, 8)), tn.random.randint(0, 10, (16,))
    tn.save_safetensors(tmp_path / "data.safetensors", {"x": x, "y": y})
    printed = run_cpp(PROGRAM, tmp_path)

    tn.random.seed(3)
    assert bits(tn.load(tmp_path / "initial.safetensors")) == bits(Net().state_dict())
    tn.random.seed(3)
    losses, model, optimizer = train_in_python(x, y)
    assert [float.fromhex(line) for line in printed.split()] == losses
    assert bits(tn.load(tmp_path / "trained.safetensors")) == bits(model.state_dict())
    state = dict(tn.nn.module.named_tensors(optimizer.state))
    assert bits(tn.load(tmp_path / "state.safetensors")) == bits(state)
