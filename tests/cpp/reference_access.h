#pragma once
// Reads one element through views by plain arithmetic, to check compositions against.
#include <doctest/doctest.h>

#include <optional>
#include <vector>

#include "loop/refine.h"

namespace tn::loop {

struct Element {
  int32_t buffer;
  int64_t index;
  friend bool operator==(const Element&, const Element&) = default;
};

/// An Access with its sizes known.
class ReferenceAccess {
 public:
  ReferenceAccess(PolyTable& t, const Access& access, std::span<const Binding> bindings)
      : access_(access) {
    for (PolyId p : access.shape) shape_.push_back(t.constant_of(t.bind(p, bindings)));
    lo_ = t.constant_of(t.bind(access.lo, bindings));
    for (const Access& operand : access.operands) operands_.emplace_back(t, operand, bindings);
  }

  const std::vector<int64_t>& shape() const { return shape_; }

  std::optional<Element> at(std::vector<int64_t> index) const {
    using Kind = Access::Kind;
    if (access_.kind == Kind::buffer) {
      int64_t flat = 0;
      for (size_t k = 0; k < index.size(); ++k) {
        REQUIRE(index[k] >= 0);
        REQUIRE(index[k] < shape_[k]);
        flat = flat * shape_[k] + index[k];
      }
      return Element{access_.buffer, flat};
    }
    size_t axis = static_cast<size_t>(access_.axis);
    const std::vector<int64_t>& from = operands_[0].shape_;
    switch (access_.kind) {
      case Kind::permute: {
        std::vector<int64_t> moved(index.size());
        for (size_t k = 0; k < index.size(); ++k)
          moved[static_cast<size_t>(access_.perm[k])] = index[k];
        index = moved;
        break;
      }
      case Kind::broadcast: {
        std::vector<int64_t> last(index.end() - static_cast<ptrdiff_t>(from.size()), index.end());
        for (size_t k = 0; k < last.size(); ++k)
          if (from[k] == 1) last[k] = 0;
        index = last;
        break;
      }
      case Kind::slice:
        index[axis] = lo_ + access_.step * index[axis];
        break;
      case Kind::reverse:
        index[axis] = from[axis] - 1 - index[axis];
        break;
      case Kind::reshape: {
        int64_t flat = 0;
        for (size_t k = 0; k < index.size(); ++k) flat = flat * shape_[k] + index[k];
        index.assign(from.size(), 0);
        for (size_t k = from.size(); k-- > 0; flat /= from[k]) index[k] = flat % from[k];
        break;
      }
      case Kind::window:
        index[axis] = access_.step * index[axis] + access_.dilation * index.back();
        index.pop_back();
        break;
      case Kind::pad:
        index[axis] -= lo_;
        if (index[axis] < 0 || index[axis] >= from[axis]) return std::nullopt;
        break;
      case Kind::dilate:
        if (index[axis] % access_.step != 0) return std::nullopt;
        index[axis] /= access_.step;
        break;
      default:
        for (const ReferenceAccess& piece : operands_) {
          if (index[axis] < piece.shape_[axis]) return piece.at(index);
          index[axis] -= piece.shape_[axis];
        }
        return std::nullopt;
    }
    return operands_[0].at(index);
  }

 private:
  const Access& access_;
  std::vector<int64_t> shape_;
  int64_t lo_ = 0;
  std::vector<ReferenceAccess> operands_;
};

/// Visits every point of the refined loops; returns how many were compared.
int64_t check_against_reference(PolyTable& t, const Refinement& refined,
                                const std::vector<Access>& accesses,
                                const std::vector<std::vector<size_t>>& roots,
                                std::span<const Binding> bindings);

}  // namespace tn::loop
