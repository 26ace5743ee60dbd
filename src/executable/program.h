#pragma once
// Program: an executable, which is a signature and the compiled graph behind it.
// It is made by the compiler or read from a file, and runs without the compiler.
#include <atomic>
#include <functional>
#include <mutex>
#include <optional>

#include "base/at_fork.h"
#include "compiler/compile_graph.h"
#include "executable/signature.h"
#include "runtime/device.h"
#include "storage/tnx.h"

namespace tn {

/// A constant of the traced graph: one of its last inputs.
struct NamedConstant {
  std::string name;  // of a parameter, "proj.weight"; or "c0", "c1", …
  TypeRef type;
  Bound value;
};

struct ProgramValue {
  TypeRef type;
  Bound value;
};

/// Where a program for a mesh runs. Its constants lie there, each worker has its blocks of them.
struct ProgramMesh {
  std::string text;  // "data=2, model=4"
  Device device;
  std::vector<std::string> divisions;  // by constant: "@[-,model] parameters(model)"
  std::vector<Bound> constants;
  std::shared_ptr<const tnx::File> file = {};  // that has their values; null if they are those here
};

class Program {
 public:
  /// The inputs of `graph` are the signature's tensors, then the constants; its outputs the
  /// signature's, then effects. Plans are made for sizes all over the ranges, so that no kernel is
  /// missing later.
  Program(Signature signature, Graph graph, std::vector<NamedConstant> constants,
          CompileOptions options);
  /// With kernels that were made before.
  Program(Signature signature, Graph graph, std::vector<NamedConstant> constants,
          CompileOptions options, std::vector<KernelSet> sets);
  /// For a mesh, which plans for the sizes and layouts of each call. It makes no kernels for files.
  Program(Signature signature, Graph graph, std::vector<NamedConstant> constants,
          CompileOptions options, ProgramMesh mesh);
  ~Program();

  const Signature& signature() const { return signature_; }
  const Graph& graph() const { return graph_; }
  /// Their values may be absent, where files hold them packed only; `options` has all of them.
  const std::vector<NamedConstant>& constants() const { return constants_; }
  /// What is saved: those with symbols, then that of the sizes at `opt` alone, where there is one.
  const std::vector<KernelSet>& sets() const { return sets_; }
  /// Null: it runs on one device.
  const ProgramMesh* mesh() const { return mesh_.get(); }
  struct Kernels {
    int64_t native = 0, interpreted = 0;
  };
  /// Of all sets; of a worker of a mesh, for sizes at `opt`.
  Kernels kernels() const;
  /// With the values of all constants, also of those that only kernels hold. Verifies weights.
  CompileOptions options() const;
  CompileCounts counts() const;

  /// Where the arguments are; single values of the host travel. Arguments in the order of the
  /// inputs that are tensors, sizes in that of those that are not.
  std::vector<ProgramValue> run(std::span<const ProgramValue> args,
                                std::span<const int64_t> sizes) const;
  /// The plan for these sizes, and what it was made from.
  Compilation compilation(std::span<const Binding> sizes) const;
  std::shared_ptr<const Plan> plan(std::span<const Binding> sizes) const {
    return compilation(sizes).plan;
  }
  /// The same for a device, whose target may be of another kind: then it is made of code of the
  /// file for that kind, or the graph is compiled.
  std::shared_ptr<const Plan> plan(std::span<const Binding> sizes, Device device) const;
  /// What such plans are made of. Fails if the file has no code for it and there is no compiler.
  std::shared_ptr<const CompiledGraph> code_on(Device device) const;
  /// Kernels for a target of another kind, for files. Fails where an op is computed by the host.
  const std::vector<KernelSet>& sets_for(const Target& target) const;

  /// Adds the sections of everything, with code for `targets`.
  void write(tnx::Writer& out, std::span<const Target> targets, bool debug) const;
  struct ReadOptions {
    bool trust = false;
    /// Whether checksums are compared: true, of the whole file before anything is made of it;
    /// false, only of the sections that are parsed. Not set: of the whole file, but large ones when
    /// their weights are first used, so that no result comes from weights that were not verified.
    std::optional<bool> verify = {};
    /// Where it is to run. Without a compiler, a file without code for it is an error.
    Device device = {};
  };
  /// From a file: code of the best target that runs here, if it is trusted; else from the
  /// graph, by the compiler, if there is one (see compiler/compiler.h); else the interpreter runs
  /// the kernels.
  static std::shared_ptr<const Program> read(std::shared_ptr<const tnx::File> file,
                                             const ReadOptions& options);
  /// Fails when the weights are not those that were written. Does nothing the second time.
  void verify_weights() const;
  /// What the above is to call, as it has not been done.
  void verify_with(std::function<void()> verify) const;

  std::string origin, target;                     // as in ExecutableStats
  std::vector<Target> targets = {host_target()};  // that files hold code for by default
  std::vector<std::string> places;  // by op of the graph: in the user's source; or none
  /// Code of the file for a device of this target; null where it has none.
  std::function<std::shared_ptr<const CompiledGraph>(const Target&)> of_file;
  std::vector<std::string> held = {};  // names of all targets that the file has code for

 private:
  /// What calls with arguments of some types need.
  struct Ready {
    std::vector<TypeRef> types;
    std::vector<int64_t> sizes;
    Device device;
    bool by_default = false;  // no argument says which device
    std::shared_ptr<const PlacedPlan> plan;
    std::vector<TypeRef> results;
    bool serves(std::span<const ProgramValue> args, std::span<const int64_t> values) const;
  };
  /// The graph at `opt`, without symbols.
  std::shared_ptr<const CompiledGraph> at_opt(std::vector<KernelSet> sets) const;
  std::shared_ptr<const Ready> ready(std::span<const ProgramValue> args,
                                     std::span<const int64_t> sizes) const;
  /// Where a call with arguments of these types runs; nothing if they do not say.
  std::optional<Device> device_for(std::span<const TypeRef> types) const;

  Signature signature_;
  Graph graph_;
  std::vector<NamedConstant> constants_;
  CompileOptions options_;
  std::shared_ptr<const CompiledGraph> code_;
  std::shared_ptr<const CompiledGraph> at_opt_;  // without symbols, where that gains; or null
  std::vector<KernelSet> sets_;                  // of all that is to be saved, whatever calls add
  std::unique_ptr<const ProgramMesh> mesh_;
  mutable std::function<void()> verify_;  // of the weights, until they are verified
  mutable std::atomic<bool> is_verified_ = true;
  struct Shared {
    std::mutex mutex;
    std::shared_ptr<const Ready> ready;  // of the last call
    DeviceCopies copies;                 // of constants
    std::vector<std::pair<Device, std::shared_ptr<const CompiledGraph>>> elsewhere;
    std::vector<KernelSet> other_sets;  // of another kind of device: what is saved
  };
  PerProcess<Shared> shared_;  // a child of fork has not the thread that verifies
};

}  // namespace tn
