#pragma once
// Compiled kernels by what they compute: equal ones are compiled once.
#include <condition_variable>
#include <mutex>
#include <optional>
#include <string>
#include <unordered_set>

#include "base/at_fork.h"
#include "base/function_ref.h"
#include "base/recent.h"
#include "plan/backend.h"

namespace tn::codegen {

class KernelCache {
 public:
  using Kernel = std::shared_ptr<const tn::KernelCode>;
  struct Made {
    Kernel kernel;  // null, when there is no native form, is remembered too
    bool from_disk = false;
  };

  static KernelCache& shared();

  /// The kernels of `keys`; those that are missing come from `make(i)`, on all threads at once. A
  /// key that another thread is making is waited for. `counts` may be null.
  std::vector<Kernel> get(const std::vector<std::string>& keys, FunctionRef<Made(size_t)> make,
                          KernelCounts* counts);

  KernelCacheStats stats();
  /// Kernels that are requested and not compiled yet.
  int64_t waiting();
  void clear();

 private:
  const Kernel* find(const std::string& key);
  void publish(const std::string& key, const Made& made, double seconds, KernelCounts& counts);
  void withdraw(const std::string& key);
  std::optional<Kernel> wait_for(const std::string& key);

  static constexpr size_t kMostKernels = 2048;
  std::mutex mutex_;
  PerProcess<std::condition_variable> changed_;
  Recent<std::string, Kernel> kernels_;
  std::unordered_set<std::string> making_;  // keys of what some thread compiles
  KernelCacheStats stats_;
};

}  // namespace tn::codegen
