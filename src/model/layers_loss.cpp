// Losses of "input" and "target".
#include "model/layer.h"
#include "tenon/nn/losses.h"

namespace tn::model {
namespace {

template <class F>
Block loss(std::string kind, std::string_view reduction, F f) {
  if (reduction != "none" && reduction != "mean" && reduction != "sum")
    fail("{}: reduction is 'none', 'mean' or 'sum', not '{}'", kind, reduction);
  return Layer(std::move(kind))
      .setting("reduction", reduction, std::string_view("mean"))
      .input("input", "...")
      .input("target", "...")
      .computes(reduction == "none" ? "..." : "",
                [f, reduction = std::string(reduction)](const BlockCall& call) {
                  return f(call.in[0], call.in[1], reduction);
                });
}

}  // namespace

Block MSELoss(std::string_view reduction) {
  return loss("MSELoss", reduction, [](const Tensor& x, const Tensor& y, std::string_view how) {
    return nn::mse_loss(x, y, how);
  });
}

Block L1Loss(std::string_view reduction) {
  return loss("L1Loss", reduction, [](const Tensor& x, const Tensor& y, std::string_view how) {
    return nn::l1_loss(x, y, how);
  });
}

Block HuberLoss(double delta, std::string_view reduction) {
  return loss("HuberLoss", reduction, [=](const Tensor& x, const Tensor& y, std::string_view how) {
    return nn::huber_loss(x, y, delta, how);
  });
}

Block BinaryCrossEntropy(std::string_view reduction) {
  return loss("BinaryCrossEntropy", reduction,
              [](const Tensor& x, const Tensor& y, std::string_view how) {
                return nn::binary_cross_entropy(x, y, how);
              });
}

}  // namespace tn::model
