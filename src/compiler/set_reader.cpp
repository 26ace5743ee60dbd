// Kernel sets from bytes. The order of what is read is that of set_writer.cpp.
#include <algorithm>

#include "base/bytes.h"
#include "compiler/set_bytes.h"
#include "compiler/set_format.h"
#include "ir/graph_read.h"
#include "ir/named_symbols.h"

namespace tn {
namespace {

constexpr int kMostNested = 64;  // graphs in graphs

class SetReader {
 public:
  SetReader(std::string_view plan, std::span<const std::string_view> code,
            std::span<const Bound> constants, bool stranger)
      : in_(plan), code_(code), constants_(constants), stranger_(stranger) {}

  std::vector<KernelSet> read(const CompileOptions& options) {
    must(in_.read<uint32_t>() == kSetFormat, "the sets have another format");
    in_(traced_);
    in_.list(kernels_, [&](ByteReader& r, Shared& k) {
      auto text = (r(k.form), r.read<std::string_view>());
      must(k.form <= KernelForm::tile, "a kernel has no form");
      k.kernel = std::make_shared<const loop::Kernel>(loop::parse_kernel(text));
    });
    must(code_.empty() || code_.size() == kernels_.size(), "code and kernels do not fit");
    for (size_t i = 0; i < code_.size(); ++i) {
      if (code_[i].empty()) continue;
      kernels_[i].code = backend_of(options.target).code_from_bytes(code_[i]);
      must(kernels_[i].code != nullptr, "the code of a kernel cannot be loaded");
    }
    std::vector<KernelSet> sets = read_sets(options, 0);
    must(in_.at_end(), "there is more than the sets");
    return sets;
  }

 private:
  struct Shared {
    KernelForm form = KernelForm::whole;
    std::shared_ptr<const loop::Kernel> kernel;
    std::shared_ptr<const KernelCode> code;
  };

  static void must(bool holds, std::string_view otherwise) { ByteReader::must(holds, otherwise); }
  static bool is_below(int64_t number, size_t end) {
    return number >= 0 && number < static_cast<int64_t>(end);
  }
  static void all_below(const std::vector<int32_t>& numbers, size_t end, std::string_view what) {
    for (int32_t n : numbers) must(is_below(n, end), what);
  }

  std::vector<KernelSet> read_sets(const CompileOptions& options, int depth) {
    must(depth < kMostNested, "graphs are nested too deep");
    std::vector<KernelSet> sets;
    in_.list(sets, [&](ByteReader&, KernelSet& set) { read_set(set, options, depth); });
    return sets;
  }

  void read_set(KernelSet& set, const CompileOptions& options, int depth) {
    set.options = options;
    in_(set.options.runtime_scalars);
    in_.list(set.sizes, [](ByteReader& r, Binding& b) {
      auto name = r.read<std::string_view>();
      auto lo = r.read<int64_t>(), hi = r.read<int64_t>();
      b.symbol = Dim::symbol(name, lo, hi);
      r(b.value);
    });
    std::vector<Dim> symbols;
    for (const Binding& b : set.sizes) symbols.push_back(b.symbol);
    NamedSymbols named(std::move(symbols));
    in_.list(set.guards, [](ByteReader& r, SizeGuard& g) {
      r(g.kind), r(g.holds);
      must(g.kind <= SizeGuard::Kind::at_least, "a guard has no kind");
      g.a = parse_dim(r.read<std::string_view>()), g.b = parse_dim(r.read<std::string_view>());
    });
    set.graph = stored_graph(set, in_.read<std::string_view>());
    read_constants(set);
    read_order(set);
    read_kernels(set);
    read_packed(set);
    read_bodies(set, depth);
  }

  Graph stored_graph(const KernelSet& set, std::string_view text) const {
    if (!stranger_) return read_graph(text);
    SizeHints hints(set.sizes);
    return parse_graph(text);
  }

  void read_constants(KernelSet& set) {
    auto numbers = in_.read<std::vector<int32_t>>();
    all_below(numbers, constants_.size(), "a constant is missing");
    must(numbers.size() <= static_cast<size_t>(set.graph.inputs()), "more constants than inputs");
    set.options.constants.clear();
    size_t first = static_cast<size_t>(set.graph.inputs()) - numbers.size();
    for (size_t i = 0; i < numbers.size(); ++i) {
      const Bound& given = constants_[static_cast<size_t>(numbers[i])];
      TypeRef type = set.graph.types[first + i];
      must(type->elements >= 0, "a constant has no size");
      bool there = given.buffer && !given.is_absent();
      must(!there || given.offset + type->bytes() <= static_cast<int64_t>(given.buffer->bytes),
           "a constant is too short");
      set.options.constants.push_back(given.buffer ? given : absent_constant());
    }
  }

  void read_order(KernelSet& set) {
    size_t ops = set.graph.ops.size(), values = set.graph.types.size();
    in_.list(set.clusters, [&](ByteReader& r, FusedOps& c) {
      r(c.members), r(c.stores), r(c.rows), r(c.hero), r(c.sums);
      all_below(c.members, ops, "a cluster has an op that does not exist");
      all_below(c.stores, values, "a cluster stores a value that does not exist");
      all_below(c.rows, values, "a cluster reads a value that does not exist");
      must(c.hero == -1 || is_below(c.hero, ops), "a cluster has a hero that does not exist");
      must(c.sums == kNoVal || is_below(c.sums, values), "a cluster has sums that do not exist");
    });
    in_(set.order);
    for (int item : set.order)
      must(item >= 0 ? is_below(item, ops)
                     : is_below(~item, set.clusters.size()) &&
                           !set.clusters[static_cast<size_t>(~item)].members.empty(),
           "something runs that does not exist");
    auto library = in_.read<std::vector<int>>();
    all_below(library, ops, "a call of the library is no op");
    set.library.resize(ops);
    for (int op : library) {
      must(is_call(set.graph, set.graph.ops[static_cast<size_t>(op)], set.options),
           "an op has no call of the library");
      set.library[static_cast<size_t>(op)] = true;
    }
    in_(set.step_order);
    set.producer.assign(values, -1);
    for (size_t i = 0; i < ops; ++i) {
      const GraphOp& op = set.graph.ops[i];
      for (int k = 0; k < op.outs; ++k)
        set.producer[static_cast<size_t>(op.out + k)] = static_cast<int>(i);
    }
  }

  void read_kernels(KernelSet& set) {
    size_t ends[] = {set.clusters.size(), set.clusters.size(), set.graph.types.size(),
                     set.graph.ops.size()};
    for (auto count = in_.read<uint64_t>(); count > 0; --count) {
      auto use = in_.read<KernelUse>();
      auto number = in_.read<int>();
      auto shared = in_.read<int32_t>();
      must(use <= KernelUse::nest && is_below(number, ends[static_cast<size_t>(use)]),
           "a kernel is for nothing");
      std::shared_ptr<SharedKernel>& at = set.kernels[{use, number}];
      if (shared == -1) continue;
      must(is_below(shared, kernels_.size()), "a kernel does not exist");
      at = std::make_shared<SharedKernel>(read_kernel(set, kernels_[static_cast<size_t>(shared)]));
      must((use == KernelUse::tile) == (at->form == KernelForm::tile), "a kernel has another form");
    }
  }

  SharedKernel read_kernel(const KernelSet& set, const Shared& shared) {
    SharedKernel k{.kernel = shared.kernel, .form = shared.form};
    k.code = shared.code;
    in_(k.values), in_(k.scalars), in_(k.access.writes);
    in_.list(k.access.in_place, [](ByteReader& r, Step::Pair& p) { r(p.input), r(p.output); });
    size_t buffers = shared.kernel->buffers.size();
    must(k.values.size() == buffers, "a kernel has other buffers");
    all_below(k.values, set.graph.types.size(), "a kernel has a value that does not exist");
    must(k.scalars.size() == static_cast<size_t>(shared.kernel->arguments),
         "a kernel has other arguments");
    for (int32_t s : k.scalars)
      must(is_below(s < 0 ? ~s : s, static_cast<size_t>(set.options.runtime_scalars)),
           "a kernel has an argument that does not exist");
    all_below(k.access.writes, buffers, "a kernel writes what it does not have");
    for (const Step::Pair& p : k.access.in_place)
      must(is_below(p.input, buffers) && is_below(p.output, buffers),
           "a kernel works in a place that it does not have");
    return k;
  }

  void read_packed(KernelSet& set) {
    for (auto count = in_.read<uint64_t>(); count > 0; --count) {
      auto op = in_.read<int>();
      auto number = in_.read<int32_t>();
      PackedRight packed;
      in_(packed.layout), in_(packed.constant), in_(packed.traced);
      must(is_below(op, set.graph.ops.size()) && is_below(number, constants_.size()) &&
               is_below(packed.constant, set.options.constants.size()) && packed.traced < traced_,
           "a packed constant is of nothing");
      const Bound& given = constants_[static_cast<size_t>(number)];
      must(given.buffer && !given.is_absent() && given.offset == 0, "a packed constant is missing");
      packed.data = given.buffer;
      read_types(packed.in), read_types(packed.out);
      check_packed(set.graph, set.graph.ops[static_cast<size_t>(op)], packed);
      set.packed.emplace(op, std::move(packed));
    }
  }

  void read_types(std::vector<TypeRef>& types) {
    in_.list(types, [](ByteReader& r, TypeRef& type) {
      auto text = r.read<std::string_view>();
      std::optional<Type> found = parse_type(text);
      must(found && found->shape.is_const(), "a type is none");
      type = intern(*found);
    });
  }

  /// With where the operands lie.
  void check_packed(const Graph& graph, const GraphOp& op, PackedRight& packed) {
    std::vector<TypeRef> in = graph.in_types(op);
    must(in.size() >= 2 && packed.in.size() == in.size() && packed.in[1] == in[1] &&
             packed.in[0]->rank() == in[0]->rank() && packed.out.size() == 1,
         "a packed constant is of another op");
    in_.list(packed.at, [&](ByteReader& r, Strided& at) {
      size_t k = packed.at.size() - 1;
      must(k < in.size(), "a packed constant has too many operands");
      at.shape = packed.in[k]->shape;
      r(at.offset);
      auto strides = r.read<std::vector<int64_t>>();
      must(strides.size() == static_cast<size_t>(at.shape.rank()), "an operand has other axes");
      at.strides = Ints(strides.begin(), strides.end());
    });
    must(packed.at.size() == in.size(), "a packed constant has too few operands");
  }

  void read_bodies(KernelSet& set, int depth) {
    for (auto count = in_.read<uint64_t>(); count > 0; --count) {
      auto op = in_.read<int>();
      must(is_below(op, set.graph.ops.size()), "an op with graphs does not exist");
      std::vector<GraphRef> graphs = bodies_of(set.graph.ops[static_cast<size_t>(op)]);
      must(in_.read<uint64_t>() == graphs.size(), "an op has other graphs");
      CompileOptions options = set.options.of_bodies();
      for (GraphRef graph : graphs)
        set.bodies[op].push_back(
            std::make_shared<const CompiledGraph>(*graph, options, read_sets(options, depth + 1)));
    }
  }

  ByteReader in_;
  std::span<const std::string_view> code_;
  std::span<const Bound> constants_;
  bool stranger_;
  int32_t traced_ = 0;  // constants
  std::vector<Shared> kernels_;
};

}  // namespace

std::vector<KernelSet> sets_from_bytes(std::string_view plan,
                                       std::span<const std::string_view> code,
                                       std::span<const Bound> constants,
                                       const CompileOptions& options, bool stranger) {
  try {
    return SetReader(plan, code, constants, stranger).read(options);
  } catch (const InternalError& e) {  // LoopIR that means nothing
    fail("damaged: {}", e.what());
  }
}

}  // namespace tn
