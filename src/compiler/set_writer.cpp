// Kernel sets to bytes. The order of what is written is that of set_reader.cpp.
#include <algorithm>
#include <cstring>

#include "base/bytes.h"
#include "compiler/set_bytes.h"
#include "compiler/set_format.h"
#include "plan/library.h"

namespace tn {
namespace {

class SetWriter {
 public:
  explicit SetWriter(std::span<const Bound> constants)
      : traced_(constants.begin(), constants.end()) {
    out_.read.resize(traced_.size());
  }

  SetBytes write(const SetsOfKind& first, const SetsOfKind& other) {
    if (!first.targets.empty()) write_kind(first, out_.plan, out_.code);
    if (!other.targets.empty()) write_kind(other, out_.other_plan, out_.other_code);
    return std::move(out_);
  }

 private:
  void write_kind(const SetsOfKind& kind, std::string& bytes,
                  std::vector<std::vector<std::string>>& code) {
    kernels_.clear();
    ByteWriter body;
    write_sets(body, kind.sets);
    ByteWriter plan;
    plan(kSetFormat);
    plan(static_cast<int32_t>(traced_.size()));
    plan.list(kernels_, [](ByteWriter& w, const Unique& k) { w(k.form), w(k.text); });
    bytes = std::move(plan.bytes) + body.bytes;
    std::vector<KernelRequest> requests;
    for (const Unique& k : kernels_) requests.push_back({k.kernel.get(), k.form, k.sizes});
    for (const Target& target : kind.targets)
      code.push_back(generator_of(target).compile_to_bytes(requests, target));
  }

  /// Kernels that compute the same are one.
  struct Unique {
    KernelForm form;
    std::string text;
    std::shared_ptr<const loop::Kernel> kernel;
    std::vector<Binding> sizes;
  };

  void write_sets(ByteWriter& w, std::span<const KernelSet> sets) {
    w(static_cast<uint64_t>(sets.size()));
    for (const KernelSet& set : sets) write_set(w, set);
  }

  void write_set(ByteWriter& w, const KernelSet& set) {
    w(set.options.runtime_scalars);
    w.list(set.sizes, [](ByteWriter& w, const Binding& b) {
      auto [lo, hi] = bounds(b.symbol);
      w(symbol_name(b.symbol)), w(lo), w(hi), w(b.value);
    });
    w.list(set.guards, [](ByteWriter& w, const SizeGuard& g) {
      w(g.kind), w(g.holds), w(to_text(g.a)), w(to_text(g.b));
    });
    w(to_text(set.graph));
    std::vector<int32_t> numbers;
    const std::vector<Bound>& constants = set.options.constants;
    size_t first = static_cast<size_t>(set.graph.inputs()) - constants.size();
    for (size_t i = 0; i < constants.size(); ++i)
      numbers.push_back(number_of(constants[i], set.graph.types[first + i]));
    w(numbers);
    mark_read(set, numbers);
    w.list(set.clusters, [](ByteWriter& w, const FusedOps& c) {
      w(c.members), w(c.stores), w(c.rows), w(c.hero), w(c.sums);
    });
    w(set.order);
    std::vector<int> library;
    for (size_t op = 0; op < set.library.size(); ++op)
      if (set.library[op]) library.push_back(static_cast<int>(op));
    w(library);
    w(set.step_order);
    write_kernels(w, set);
    write_packed(w, set, numbers);
    w(static_cast<uint64_t>(set.bodies.size()));
    for (const auto& [op, bodies] : set.bodies) {
      w(op), w(static_cast<uint64_t>(bodies.size()));
      for (const auto& body : bodies) write_sets(w, body->sets());
    }
  }

  void write_kernels(ByteWriter& w, const KernelSet& set) {
    w(static_cast<uint64_t>(set.kernels.size()));
    for (const auto& [of, kernel] : set.kernels) {
      w(of.first), w(of.second);
      w(kernel ? unique(*kernel, set.sizes) : -1);
      if (!kernel) continue;
      w(kernel->values), w(kernel->scalars), w(kernel->access.writes);
      w.list(kernel->access.in_place,
             [](ByteWriter& w, const Step::Pair& p) { w(p.input), w(p.output); });
    }
  }

  int32_t unique(const SharedKernel& kernel, const std::vector<Binding>& sizes) {
    std::string text = loop::to_text(*kernel.kernel);
    for (size_t i = 0; i < kernels_.size(); ++i)
      if (kernels_[i].form == kernel.form && kernels_[i].text == text)
        return static_cast<int32_t>(i);
    kernels_.push_back({kernel.form, std::move(text), kernel.kernel, sizes});
    return static_cast<int32_t>(kernels_.size()) - 1;
  }

  void write_packed(ByteWriter& w, const KernelSet& set, const std::vector<int32_t>& numbers) {
    w(static_cast<uint64_t>(set.packed.size()));
    auto type = [](ByteWriter& w, TypeRef t) { w(to_text(*t)); };
    for (const auto& [op, packed] : set.packed) {
      bool whole = can_unpack(set, op);
      int32_t of = numbers[static_cast<size_t>(packed.constant)];
      w(op), w(number_of(packed, whole ? of : -1)), w(packed.layout), w(packed.constant);
      w(whole && of < static_cast<int32_t>(traced_.size()) ? of : -1);
      w.list(packed.in, type), w.list(packed.out, type);
      w.list(packed.at, [](ByteWriter& w, const Strided& at) {
        w(at.offset);
        w(std::vector<int64_t>(at.strides.begin(), at.strides.end()));
      });
    }
  }

  static bool is_same(const Bound& a, const Bound& b) {
    return a.buffer == b.buffer && a.offset == b.offset;
  }

  /// Of a constant of the traced graph, or one that passes computed.
  int32_t number_of(const Bound& constant, TypeRef type) {
    for (size_t i = 0; i < traced_.size(); ++i)
      if (is_same(traced_[i], constant)) return static_cast<int32_t>(i);
    for (size_t i = 0; i < out_.constants.size(); ++i)
      if (is_same(out_.constants[i].value, constant)) return number_at(i);
    return add({.value = constant, .bytes = type->bytes()});
  }

  /// The same operand of several ops or sets is packed once for each, and kept once.
  int32_t number_of(const PackedRight& packed, int32_t of) {
    auto bytes = static_cast<int64_t>(packed.data.bytes());
    for (size_t i = 0; i < out_.constants.size(); ++i) {
      const SetConstant& c = out_.constants[i];
      if (c.kind == SetConstant::Kind::packed && c.of == of && c.bytes == bytes &&
          c.layout == packed.layout &&
          !std::memcmp(HostView(c.value).data(), packed.data.data(), packed.data.bytes()))
        return number_at(i);
    }
    return add({SetConstant::Kind::packed, {packed.data, 0}, bytes, of, packed.layout});
  }

  int32_t number_at(size_t place) const { return static_cast<int32_t>(traced_.size() + place); }
  int32_t add(SetConstant constant) {
    out_.constants.push_back(std::move(constant));
    out_.read.push_back(out_.constants.back().kind == SetConstant::Kind::packed);
    return number_at(out_.constants.size() - 1);
  }

  /// A constant is not read as it lies when only products that have it packed take it, or views
  /// that lead to them.
  void mark_read(const KernelSet& set, const std::vector<int32_t>& numbers) {
    const Graph& g = set.graph;
    int first = g.inputs() - static_cast<int>(numbers.size());
    std::vector<Val> root(g.types.size());
    for (size_t v = 0; v < root.size(); ++v) root[v] = static_cast<Val>(v);
    auto mark = [&](Val v) {
      int place = root[static_cast<size_t>(v)] - first;
      if (place >= 0 && place < static_cast<int>(numbers.size()))
        out_.read[static_cast<size_t>(numbers[static_cast<size_t>(place)])] = true;
    };
    for (size_t i = 0; i < g.ops.size(); ++i) {
      const GraphOp& op = g.ops[i];
      std::span<const Val> in = g.in(op);
      if (op.op->view) {
        root[static_cast<size_t>(op.out)] = root[static_cast<size_t>(in[0])];
        continue;
      }
      bool packed = set.packed.contains(static_cast<int>(i));
      for (size_t k = 0; k < in.size(); ++k)
        if (k != 1 || !packed) mark(in[k]);
    }
    for (Val v : g.outputs) mark(v);
  }

  std::vector<Bound> traced_;
  std::vector<Unique> kernels_;
  SetBytes out_;
};

}  // namespace

SetBytes to_bytes(std::span<const KernelSet> sets, std::span<const Bound> constants,
                  std::span<const Target> targets, const SetsOfKind& other) {
  return SetWriter(constants).write({sets, targets}, other);
}

std::vector<const LibraryKernel*> library_kernels_of(std::span<const KernelSet> sets,
                                                     const Target& target) {
  std::vector<const LibraryKernel*> found;
  for (const KernelSet& set : sets) {
    for (const GraphOp& op : set.graph.ops) {
      const LibraryKernel* kernel = library_kernel(*op.op, set.graph.in_types(op), target);
      if (kernel && !std::ranges::count(found, kernel)) found.push_back(kernel);
    }
    for (const auto& [op, bodies] : set.bodies)
      for (const auto& body : bodies)
        for (const LibraryKernel* kernel : library_kernels_of(body->sets(), target))
          if (!std::ranges::count(found, kernel)) found.push_back(kernel);
  }
  return found;
}

}  // namespace tn
