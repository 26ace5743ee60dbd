#pragma once
// Compiled kernels by what they compute: equal ones are compiled once.
#include <condition_variable>
#include <functional>
#include <list>
#include <mutex>
#include <string>
#include <unordered_map>

#include "backend/cpu/codegen.h"

namespace tn::cpu {

class KernelCache {
 public:
  using Kernel = std::shared_ptr<const KernelCode>;

  static KernelCache& shared();

  /// The kernels of `keys`; those that are missing come from `compile(i)`, on all threads at once.
  /// A key that another thread is compiling is waited for. `counts` may be null.
  std::vector<Kernel> get(const std::vector<std::string>& keys,
                          const std::function<Kernel(size_t)>& compile, KernelCounts* counts);

  KernelCacheStats stats();
  void clear();

 private:
  struct Entry {
    Kernel kernel;
    bool ready = false;
    std::list<std::string>::iterator recent;  // where ready
  };
  void publish(const std::string& key, Kernel kernel, double seconds);
  void withdraw(const std::string& key);

  static constexpr size_t kMostKernels = 2048;
  std::mutex mutex_;
  std::condition_variable changed_;
  std::unordered_map<std::string, Entry> entries_;
  std::list<std::string> recent_;  // the most recently used first
  KernelCacheStats stats_;
};

}  // namespace tn::cpu
