// Losses of "input" and "target".
#include "model/layer.h"
#include "tenon/nn/losses.h"
#include "tenon/ops.h"

namespace tn::model {
namespace {

void check_reduction(std::string_view kind, std::string_view reduction) {
  if (reduction != "none" && reduction != "mean" && reduction != "sum")
    fail("{}: reduction is 'none', 'mean' or 'sum', not '{}'", kind, reduction);
}

/// Of an input and a target of one shape.
template <class F>
Block loss(std::string kind, std::string_view reduction, F f) {
  check_reduction(kind, reduction);
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

Block MSE(std::string_view reduction) {
  return loss("MSE", reduction, [](const Tensor& x, const Tensor& y, std::string_view how) {
    return nn::mse_loss(x, y, how);
  });
}

Block L1(std::string_view reduction) {
  return loss("L1", reduction, [](const Tensor& x, const Tensor& y, std::string_view how) {
    return nn::l1_loss(x, y, how);
  });
}

Block Huber(double delta, std::string_view reduction) {
  return loss("Huber", reduction, [=](const Tensor& x, const Tensor& y, std::string_view how) {
    return nn::huber_loss(x, y, delta, how);
  });
}

Block BinaryCrossEntropy(std::string_view reduction) {
  return loss("BinaryCrossEntropy", reduction,
              [](const Tensor& x, const Tensor& y, std::string_view how) {
                return nn::binary_cross_entropy(x, y, how);
              });
}

Block CrossEntropy(std::string_view reduction, double label_smoothing, int64_t axis) {
  check_reduction("CrossEntropy", reduction);
  // Classes are along the last axis, or along axis 1; of others the shapes are left to the op.
  std::string logits = axis == -1 ? "... classes" : axis == 1 ? "n classes ..." : "*";
  std::string classes = axis == -1 ? "..." : axis == 1 ? "n ..." : "*";
  return Layer("CrossEntropy")
      .setting("reduction", reduction, std::string_view("mean"))
      .setting("label_smoothing", label_smoothing, 0.0)
      .setting("axis", axis, int64_t{-1})
      .input("input", logits)
      .input("target", classes, DType::i64)
      .computes(reduction == "none" ? classes : "",
                [=, reduction = std::string(reduction)](const BlockCall& call) {
                  return cross_entropy(call.in[0], call.in[1], reduction, label_smoothing,
                                       static_cast<int>(axis));
                });
}

}  // namespace tn::model
