#include "loop/refine_kernel.h"

#include <algorithm>

#include "base/error.h"
#include "loop/analysis.h"
#include "loop/refine.h"

namespace tn::loop {
namespace {

class KernelRefiner {
 public:
  explicit KernelRefiner(Kernel kernel) : k_(std::move(kernel)) {}

  Kernel run() {
    PolyTable& t = k_.polys;
    std::vector<PolyId> roots;
    for (size_t i = 0; i < k_.axes.size(); ++i)
      roots.push_back(t.axis(static_cast<uint32_t>(i), t.from_dim(k_.axes[i].extent)));
    Refinement r = refine(t, roots, accesses());
    if (!r.within_caps) return std::move(k_);
    coalesce(t, r);
    set_axes(r);
    set_accesses(r.accesses);
    for (Value& v : k_.values) set_axes_of(v);
    verify(k_);
    return std::move(k_);
  }

 private:
  Access access(PolyId index, MaskId mask) const {
    Mask conditions;
    if (mask != kNone) conditions = k_.masks[static_cast<size_t>(mask)];
    return {std::move(conditions), index};
  }

  /// Stores first: their order decides the cuts where several would do.
  std::vector<Access> accesses() const {
    std::vector<Access> all;
    for (const Store& s : k_.stores) all.push_back(access(s.index, s.mask));
    for (const Value& v : k_.values)
      if (v.op == Op::load || v.op == Op::index) all.push_back(access(v.index, v.mask));
    return all;
  }

  MaskId mask_of(const Mask& conditions) {
    if (conditions.empty()) return kNone;
    auto found = std::find(masks_.begin(), masks_.end(), conditions);
    if (found != masks_.end()) return static_cast<MaskId>(found - masks_.begin());
    masks_.push_back(conditions);
    return static_cast<MaskId>(masks_.size()) - 1;
  }

  void set_axes(const Refinement& r) {
    std::vector<KernelAxis> axes;
    for (const LoopAxis& axis : r.axes) {
      AxisKind kind = k_.axes[axis.root].kind;
      if (kind == AxisKind::red) reduced_ |= AxisSet{1} << axes.size();
      axes.push_back({*k_.polys.to_dim(axis.extent), kind});
    }
    bool folds = std::any_of(k_.axes.begin(), k_.axes.end(),
                             [](const KernelAxis& a) { return a.kind == AxisKind::red; });
    if (folds && !reduced_) {  // one point only: there must still be something to fold
      reduced_ = AxisSet{1} << axes.size();
      axes.push_back({1, AxisKind::red});
    }
    k_.axes = std::move(axes);
  }

  void set_accesses(const std::vector<Access>& accesses) {
    size_t next = 0;
    std::vector<Store> stores;
    for (Store& s : k_.stores) {
      const Access& found = accesses[next++];
      if (found.never) continue;  // its mask never holds
      s.index = found.index, s.mask = mask_of(found.mask);
      stores.push_back(s);
    }
    for (Value& v : k_.values) {
      if (v.op != Op::load && v.op != Op::index) continue;
      const Access& found = accesses[next++];
      if (!found.never) {
        v.index = found.index, v.mask = mask_of(found.mask);
      } else {
        DType type = v.type;
        v = Value{.op = Op::constant, .type = type};
        v.literal = is_float(type) ? Scalar(0.0) : Scalar(int64_t{0});
      }
    }
    k_.stores = std::move(stores);
    k_.masks = std::move(masks_);
  }

  void set_axes_of(Value& v) {
    v.axes = 0;
    int operands = facts(v.op).operands;
    for (int i = 0; i < operands; ++i)
      v.axes |= k_.values[static_cast<size_t>(i == 0 ? v.a : i == 1 ? v.b : v.c)].axes;
    if (v.op == Op::load || v.op == Op::index) v.axes = axes_in(k_, v.index);
    if (v.op == Op::load) v.axes |= axes_in_mask(k_, v.mask);
    if (v.op == Op::reduce) v.over = reduced_, v.axes &= ~reduced_;
  }

  Kernel k_;
  std::vector<Mask> masks_;
  AxisSet reduced_ = 0;
};

}  // namespace

static bool is_linear(const PolyTable& t, PolyId poly) {
  for (const Term& term : t[poly].terms) {
    int axes = 0;
    for (AtomId id : t.atoms_of(term.mono)) {
      AtomKind kind = t.atom(id).kind;
      if (kind != AtomKind::axis && kind != AtomKind::symbol) return false;
      axes += kind == AtomKind::axis;
    }
    if (axes > 1) return false;
  }
  return true;
}

bool is_linear(const Kernel& kernel) {
  for (const Value& v : kernel.values)
    if ((v.op == Op::load || v.op == Op::index) && !is_linear(kernel.polys, v.index)) return false;
  for (const Store& s : kernel.stores)
    if (!is_linear(kernel.polys, s.index)) return false;
  for (const Mask& mask : kernel.masks)
    for (PolyId poly : mask)
      if (!is_linear(kernel.polys, poly)) return false;
  return true;
}

Kernel refined(Kernel kernel) {
  for (const Value& v : kernel.values)
    if (v.op == Op::scan) return kernel;
  return KernelRefiner(std::move(kernel)).run();
}

}  // namespace tn::loop
