#pragma once
// Backend: all that depends on the kind of device that code is for. One folder of src/backend each.
#include <memory>
#include <span>
#include <string>
#include <vector>

#include "ir/dim.h"
#include "ir/opdef.h"
#include "plan/plan.h"
#include "plan/target.h"

namespace tn {

/// How the loops of a kernel are driven.
enum class KernelForm : uint8_t {
  whole,  // all points, in units that threads claim
  tile,   // axes 0, 1, 2 are batch, row and column; a call covers a range of each
};

/// The code of one kernel, for any values of the symbols in its sizes.
class KernelCode {
 public:
  virtual ~KernelCode() = default;
  /// Ready to run with these sizes; bindings of further symbols may be among them. Microseconds:
  /// nothing is compiled. Without symbols it is always the same object.
  virtual std::shared_ptr<const BoundKernel> bind(std::span<const Binding> sizes = {}) const = 0;
};

/// A name of a target.
struct TargetName {
  std::string_view name;
  Target target;
  bool is_product = false;  // "zen4": hardware that the target stands for, not the target's own
};

class Backend {
 public:
  /// Every target of the kind by its own name, the lowest first, and by those of products.
  virtual std::span<const TargetName> names() const = 0;
  /// The highest target that this machine runs.
  virtual Target here() const = 0;
  virtual bool runs(const Target& target) const = 0;
  /// Whether a device of target `device` runs code that was made for `code`.
  virtual bool serves(const Target& code, const Target& device) const { return code <= device; }
  /// Why files cannot hold code for a target of the kind; "": they can.
  virtual std::string why_not_in_files(const Target&) const { return ""; }
  virtual const TargetCosts& costs(const Target& target) const = 0;
  /// Null for bytes that the code generator did not make.
  virtual std::shared_ptr<const KernelCode> code_from_bytes(std::string_view bytes) const = 0;
  /// The kernel for an op on operands of these types; null: there is none.
  virtual const LibraryKernel* library_kernel(const OpDef& op, Types in,
                                              const Target& target) const = 0;
  /// Whether its kernels of composites give the bits of the CPU, as Products::exact demands.
  virtual bool has_exact_composites() const { return false; }
  /// What libtenon_rt does not have of these kernels: files bring it. "": it has all of them.
  virtual std::string library_code(std::span<const LibraryKernel* const>) const { return ""; }
  /// Takes such bytes for calls on its devices. False: another version wrote them.
  virtual bool take_library_code(std::string_view) const { return true; }

 protected:
  ~Backend() = default;
};

/// Of all kinds of device that are part of the library (backend/backend_list.cpp).
std::vector<const Backend*> backends();
using GetBackend = const Backend& (*)();
/// Kinds but the CPU register once, at load.
void register_backend(DeviceKind kind, GetBackend get);
const Backend& backend_of(const Target& target);

struct KernelRequest {
  const loop::Kernel* kernel;
  KernelForm form = KernelForm::whole;
  /// Likely values of its symbols. They steer how the work is laid out, never the results; the
  /// code serves all values.
  std::span<const Binding> sizes = {};
};

/// Where the kernels of one request came from.
struct KernelCounts {
  int64_t compiled = 0, from_memory = 0, from_disk = 0;
  double seconds = 0;  // spent compiling, summed over threads
};

/// Counters of the cache of kernels, since the start of the process.
struct KernelCacheStats {
  int64_t hits = 0, compiled = 0, from_disk = 0, kept = 0;
  double seconds = 0;  // spent compiling, summed over threads
};

/// What makes the code of kernels. It is apart from Backend because the runtime library is without:
/// it reads code from files.
class CodeGenerator {
 public:
  /// The code of every kernel, equal ones compiled once and misses in parallel. The bits of the
  /// results are those of the interpreter. Null where the kernel has no native form: the
  /// interpreter runs it. `counts` are added to.
  virtual std::vector<std::shared_ptr<const KernelCode>> compile(
      std::span<const KernelRequest> requests, const Target& target,
      KernelCounts* counts) const = 0;
  /// The same as bytes for Backend::code_from_bytes, on any machine. The result is not cached and
  /// does not depend on other requests. "" where the kernel has no native form.
  virtual std::vector<std::string> compile_to_bytes(std::span<const KernelRequest> requests,
                                                    const Target& target) const = 0;
  /// Why a kernel has no native form; "" where it has one.
  virtual std::string why_interpreted(const KernelRequest& request, const Target& target) const = 0;
  /// For readers: the compiler's own representation after its passes, and assembly.
  virtual std::string ir(const KernelRequest& request, const Target& target) const = 0;
  virtual std::string assembly(const KernelRequest& request, const Target& target) const = 0;
  /// A version that changes whenever a kernel may become other code: part of the keys of disk
  /// caches.
  virtual std::string_view version() const = 0;
  virtual KernelCacheStats cache_stats() const = 0;
  /// Kernels that are requested and not compiled yet.
  virtual int64_t waiting() const = 0;

 protected:
  ~CodeGenerator() = default;
};

const CodeGenerator& generator_of(const Target& target);

}  // namespace tn
