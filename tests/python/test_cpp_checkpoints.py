"""Checkpoints of Python are read by C++, and the other way around."""

import numpy as np
import pytest

import tenon as tn
from cpp_programs import run_cpp

PROGRAM = """
#include <tenon/tenon.h>
#include <tenon/checkpoints.h>
#include <tenon/nn.h>
#include <tenon/optim.h>

int main() {
  tn::nn::Linear model(2, 1);
  tn::optim::Adam optimizer{model.parameters()};
  auto rest = tn::load_checkpoint("python", {{"model", model}, {"optimizer", optimizer}});
  tn::sum(model(tn::ones({1, 2}))).backward();
  optimizer.step();
  int64_t epoch = std::get<int64_t>(rest.at("epoch"));
  tn::save_checkpoint("cpp", {{"model", model}, {"optimizer", optimizer}, {"epoch", epoch + 1}});
}
"""


def step(model, optimizer):
    tn.sum(model(tn.ones((1, 2)))).backward()
    optimizer.step()
    optimizer.zero_grad()


@pytest.mark.compiles
def test_a_run_continues_in_the_other_language(tmp_path):
    model = tn.nn.Linear(2, 1)
    optimizer = tn.optim.Adam(model.parameters())
    step(model, optimizer)
    tn.save_checkpoint(tmp_path / "python", model=model, optimizer=optimizer, epoch=3)
    run_cpp(PROGRAM, tmp_path)
    step(model, optimizer)
    other = tn.nn.Linear(2, 1)
    second = tn.optim.Adam(other.parameters())
    rest = tn.load_checkpoint(tmp_path / "cpp", model=other, optimizer=second)
    assert rest == {"epoch": 4}
    for name, tensor in model.state_dict().items():
        np.testing.assert_array_equal(other.state_dict()[name], tensor)
    assert second.state["step"].item() == 2
    moments = second.state["moments"]["weight"]["m"]
    np.testing.assert_array_equal(moments, optimizer.state["moments"]["weight"]["m"])
