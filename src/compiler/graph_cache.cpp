#include "compiler/graph_cache.h"

#include <algorithm>

#include "base/at_fork.h"
#include "base/recent.h"
#include "ir/node.h"

namespace tn {
namespace {

/// What makes compiled graphs differ, as bytes. Ops, types, attributes and symbols are interned:
/// their addresses stand for them.
class Key {
 public:
  std::string bytes;

  template <class T>
  void add(const T& value) {
    static_assert(std::is_scalar_v<T>);
    bytes.append(reinterpret_cast<const char*>(&value), sizeof value);
  }
  void add(const Scalar& s) {
    add(s.kind);
    add(s.integer);
    add(s.real);
    add(s.imag);
  }
  void add(const GraphOp& op) {
    add(op.op);
    add(op.attrs);
    add(op.ins);
    add(op.outs);
    if (op.op == &scalar_leaf) add(op.scalar);
  }
  void add(const Bound& b) {
    add(b.buffer.get());
    add(b.offset);
  }
  void add(const Target& target) {
    add(target.kind);
    add(target.arch);
  }
  void add(const std::string& text) {
    add(text.size());
    bytes += text;
  }
  template <class T>
  void add(const std::vector<T>& list) {
    add(list.size());
    for (const T& element : list) add(element);
  }
  void add(const std::vector<bool>& list) {
    add(list.size());
    for (bool element : list) add(element);
  }
};

std::string key_of(const Graph& graph, const CompileOptions& options) {
  Key key;
  key.add(graph.inputs());
  key.add(graph.types);
  key.add(graph.ops);
  key.add(graph.operands);
  key.add(graph.outputs);
  // All fields by name: a new one does not compile until it is handled here. Size hints only
  // steer.
  const auto& [effort, runtime_scalars, constants, donated, sizes, off, memory_limit, on, planning,
               one_thread, checks_indices, is_function, target, products] = options;
  (void)sizes;
  key.add(effort);
  key.add(runtime_scalars);
  key.add(constants);
  key.add(donated);
  key.add(off);
  key.add(memory_limit);
  key.add(on);
  key.add(planning);
  key.add(one_thread);
  key.add(checks_indices);
  key.add(is_function);
  key.add(target);
  key.add(products);
  return std::move(key.bytes);
}

class GraphCache {
 public:
  using Compiled = std::shared_ptr<const CompiledGraph>;

  static GraphCache& shared() {
    static GraphCache& only = *[] {
      auto* made = new GraphCache;
      guarded_at_fork(made->mutex_, 11);
      return made;
    }();
    return only;
  }

  /// Compiles without the lock, so that other threads find theirs meanwhile. When two compile the
  /// same graph, both get the one that was first.
  Compiled get(const Graph& graph, const CompileOptions& options) {
    std::string key = key_of(graph, options);
    {
      std::lock_guard lock(mutex_);
      if (Compiled found = find(key)) return found;
    }
    auto made = std::make_shared<const CompiledGraph>(graph, options);
    std::vector<Compiled> dropped;  // destroyed when the lock is free again
    std::lock_guard lock(mutex_);
    if (Compiled found = find(key)) return found;
    ++stats_.made;
    size_t bytes = key.size();
    if (entries_.add(std::move(key), {made, options.constants.empty() ? made : nullptr}))
      bytes_ += bytes;
    while (entries_.size() > 1 && (entries_.size() > kMostGraphs || bytes_ > kMostBytes))
      dropped.push_back(drop_last());
    return made;
  }

  GraphCacheStats stats() {
    std::lock_guard lock(mutex_);
    GraphCacheStats stats = stats_;
    for (const auto& [key, entry] : entries_) stats.kept += entry.kept != nullptr;
    return stats;
  }

  void clear() {
    std::vector<Compiled> dropped;
    std::lock_guard lock(mutex_);
    while (entries_.size() > 0) dropped.push_back(drop_last());
  }

 private:
  struct Entry {
    std::weak_ptr<const CompiledGraph> graph;
    Compiled kept;  // null with constants
  };

  /// Under the lock.
  Compiled find(const std::string& key) {
    const Entry* known = entries_.find(key);
    Compiled found = known ? known->graph.lock() : nullptr;
    stats_.hits += found != nullptr;
    return found;
  }
  Compiled drop_last() {
    auto [key, entry] = entries_.take_last();
    bytes_ -= key.size();
    return std::move(entry.kept);
  }

  // Keys grow with graphs, about 60 bytes for an op.
  static constexpr size_t kMostGraphs = 512, kMostBytes = 4 << 20;
  std::mutex mutex_;
  Recent<std::string, Entry> entries_;
  size_t bytes_ = 0;  // of keys
  GraphCacheStats stats_;
};

}  // namespace

std::shared_ptr<const CompiledGraph> compiled_graph(const Graph& graph,
                                                    const CompileOptions& options) {
  // What others own may change after it was folded into a plan: each trace has it as it is then.
  auto foreign = [](const Bound& b) { return b.buffer && b.buffer->owner; };
  if (std::ranges::any_of(options.constants, foreign))
    return std::make_shared<const CompiledGraph>(graph, options);
  return GraphCache::shared().get(graph, options);
}

GraphCacheStats graph_cache_stats() { return GraphCache::shared().stats(); }

void clear_graph_cache() { GraphCache::shared().clear(); }

}  // namespace tn
