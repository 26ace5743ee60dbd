#include "compiler/kernel_table.h"

#include <algorithm>
#include <bit>

#include "base/hash.h"

namespace tn {

namespace {

class KeyWriter {
 public:
  KeyWriter(const Graph& graph, KernelUse use, std::vector<int32_t>& numbers)
      : graph_(graph), numbers_(numbers) {
    numbers_.resize(graph.types.size(), kNoNumber);
    add(static_cast<uint64_t>(use));
  }

  void add(uint64_t word) { key_.words.push_back(word); }
  void add(const void* pointer) { add(reinterpret_cast<uint64_t>(pointer)); }
  void add_value(Val v) {
    int32_t& number = numbers_[static_cast<size_t>(v)];
    if (number != kNoNumber) return add(static_cast<uint64_t>(number));
    number = static_cast<int32_t>(key_.values.size());
    key_.values.push_back(v);
    add(static_cast<uint64_t>(number));
    add(graph_.types[static_cast<size_t>(v)]);
  }
  void add_read(Val v, const Home& home) {
    add_value(v);
    add(static_cast<uint64_t>(home.kind));
    if (home.kind == Home::Kind::argument) return add_argument(home.argument);
    if (home.kind == Home::Kind::constant) return add_number(home.value);
    add_value(home.owner);
    add(static_cast<uint64_t>(home.at.offset));
    for (int i = 0; i < home.at.shape.rank(); ++i) {
      add(static_cast<uint64_t>(home.at.shape[i].raw));
      add(static_cast<uint64_t>(home.at.strides[i]));
    }
  }
  void add_op(const GraphOp& op) {
    add(op.op);
    add(op.attrs);
    for (Val v : graph_.in(op)) add_value(v);
    for (int i = 0; i < op.outs; ++i) add_value(op.out + i);
  }
  KernelKey finish() {
    for (Val v : key_.values) numbers_[static_cast<size_t>(v)] = kNoNumber;
    return std::move(key_);
  }

 private:
  static constexpr int32_t kNoNumber = -1;

  void add_argument(int32_t argument) {
    auto at = std::ranges::find(key_.arguments, argument);
    add(static_cast<uint64_t>(at - key_.arguments.begin()));
    if (at == key_.arguments.end()) key_.arguments.push_back(argument);
  }
  void add_number(const Scalar& number) {
    add(static_cast<uint64_t>(number.kind));
    add(static_cast<uint64_t>(number.integer));
    add(std::bit_cast<uint64_t>(number.real));
    add(std::bit_cast<uint64_t>(number.imag));
  }

  const Graph& graph_;
  std::vector<int32_t>& numbers_;
  KernelKey key_;
};

}  // namespace

size_t KernelTable::Hash::operator()(const std::vector<uint64_t>& words) const {
  return hash_bytes(words.data(), words.size() * sizeof(uint64_t));
}

KernelKey KernelTable::key_of(const Graph& graph, const Cluster& cluster,
                              std::span<const Home> homes) {
  KeyWriter key(graph, KernelUse::cluster, numbers_);
  key.add(cluster.reads.size() << 1 | cluster.folds);
  for (Val v : cluster.reads) key.add_read(v, homes[static_cast<size_t>(v)]);
  for (int m : cluster.members) {
    const GraphOp& op = graph.ops[static_cast<size_t>(m)];
    key.add_op(op);
    key.add(cluster.stores.count(op.out));
  }
  return key.finish();
}

KernelKey KernelTable::key_of(const Graph& graph, Val copied, std::span<const Home> homes) {
  KeyWriter key(graph, KernelUse::copy, numbers_);
  key.add_read(copied, homes[static_cast<size_t>(copied)]);
  return key.finish();
}

KernelKey KernelTable::key_of(const Graph& graph, const GraphOp& op) {
  KeyWriter key(graph, KernelUse::nest, numbers_);
  key.add_op(op);
  return key.finish();
}

std::shared_ptr<SharedKernel> KernelTable::get(KernelKey key,
                                               FunctionRef<std::shared_ptr<SharedKernel>()> build) {
  auto known = entries_.find(key.words);
  if (known == entries_.end()) {
    std::shared_ptr<SharedKernel> made = build();
    entries_.emplace(std::move(key.words), entry_of(*made, key));
    return made;
  }
  const Entry& entry = known->second;
  auto made =
      std::make_shared<SharedKernel>(SharedKernel{.kernel = entry.kernel, .access = entry.access});
  for (int32_t n : entry.values) made->values.push_back(key.values[static_cast<size_t>(n)]);
  for (int32_t n : entry.scalars) {
    int32_t argument = key.arguments[static_cast<size_t>(n < 0 ? ~n : n)];
    made->scalars.push_back(n < 0 ? ~argument : argument);
  }
  return made;
}

KernelTable::Entry KernelTable::entry_of(const SharedKernel& made, const KernelKey& key) {
  auto number = [](const auto& list, int32_t item) {
    return static_cast<int32_t>(std::ranges::find(list, item) - list.begin());
  };
  Entry entry{made.kernel, made.access};
  for (Val v : made.values) entry.values.push_back(number(key.values, v));
  for (int32_t s : made.scalars) {
    int32_t n = number(key.arguments, s < 0 ? ~s : s);
    entry.scalars.push_back(s < 0 ? ~n : n);
  }
  return entry;
}

}  // namespace tn
