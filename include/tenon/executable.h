#pragma once
// Executables: functions compiled ahead of time for described inputs. They can be called, saved to
// one file, and loaded from it.
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "tenon/callback.h"
#include "tenon/compile_settings.h"
#include "tenon/mesh.h"
#include "tenon/shared_ptr.h"
#include "tenon/typed.h"

namespace tn {

template <class Signature>
class ExecutableOf;

/// A size of an input: fixed, or any in [min, max] with best speed at `opt`. Sizes with one name
/// are equal in every call.
struct DimensionInfo {
  int64_t min = 1, opt = 1, max = 1;
  std::string name = {};

  DimensionInfo(int64_t size) : min(size), opt(size), max(size) {}
  DimensionInfo(int64_t least, int64_t best, int64_t most, std::string called = {})
      : min(least), opt(best), max(most), name(std::move(called)) {}
};

/// A run-time input: a tensor, or (`is_size`) a size, described by its only dimension.
struct InputInfo {
  std::vector<DimensionInfo> shape;
  DType dtype = DType::f32;
  std::string name = {};  // "x", "data.b.list[1]"; empty: "arg0", "arg1", …
  bool is_size = false;
  std::string place = {};  // where it was declared, "train.py:14": for messages
};

/// A run-time input that is a size.
InputInfo size_input(DimensionInfo size, std::string name = {});

struct OutputInfo {
  std::string shape;  // "[s0, 16]"
  DType dtype = DType::f32;
  std::string name = {};
};

/// Data that a binding of another language stores with an executable.
struct Surface {
  std::string text;                            // comes back as Executable::surface()
  std::vector<std::string> output_names = {};  // none, or one a result
};

struct AheadSettings {
  int optimization_level = 3;
  std::string name = "main";  // of the function, for messages
  /// Constants by name: a tensor that the function closes over is found in the file by it.
  std::vector<std::pair<std::string, Tensor>> constants = {};
  /// Memory budget of a call in bytes, without its arguments. Values are rematerialised until a
  /// plan fits; a plan that does not fit at `max` is an error. 0: unlimited.
  int64_t memory_limit = 0;
  PlanSettings plan = {};
  /// Where it runs: a mesh of workers, over which constants stay divided as they are. No axes: on
  /// the device of its arguments, undivided, even if it uses tensors of a mesh.
  Mesh mesh = {};
  /// Called once the function is traced, when the structure of the results is known.
  Callback<Surface()> surface = {};
};

struct SaveSettings {
  /// Targets to store machine code for, as PlanSettings::targets; none: the target of compilation.
  std::vector<std::string> targets = {};
  bool debug = true;  // keep the places in the user's source
};

struct LoadSettings {
  /// Runs machine code from the file even if another machine or user wrote it.
  bool trust = false;
  /// Whether checksums are compared. true: of the whole file, now. false: only of parts that are
  /// parsed, never of weights. Not set: of the whole file, now if it is small, otherwise when the
  /// weights are first used; no result comes from weights that were not verified.
  std::optional<bool> verify = {};
};

/// Statistics of an executable.
struct ExecutableStats {
  int64_t calls = 0, plans = 0, kernels = 0, interpreted = 0;
  int64_t kernels_compiled = 0;  // since it was made or loaded
  std::string target = {};       // the CPU level of the code that runs
  std::string origin = {};       // "compiled", "loaded", "rebuilt: <why>"
  std::string mesh = {};         // "data=2, model=4"; "": it runs on one device
};

/// Copies share everything; calls may come from any thread.
class Executable {
 public:
  /// `args` in the order of tensor inputs, `sizes` in the order of size inputs.
  Tensors operator()(const Tensors& args, const std::vector<int64_t>& sizes = {},
                     std::source_location at = std::source_location::current()) const;

  // Valid while a copy of the executable lives; of a temporary they are copies.
  const std::string& name() const&;
  std::string name() && { return std::as_const(*this).name(); }
  const std::vector<InputInfo>& inputs() const&;
  std::vector<InputInfo> inputs() && { return std::as_const(*this).inputs(); }
  const std::vector<OutputInfo>& outputs() const&;
  std::vector<OutputInfo> outputs() && { return std::as_const(*this).outputs(); }
  const std::string& surface() const&;
  std::string surface() && { return std::as_const(*this).surface(); }
  /// Bytes of a run for the sizes at `max`, besides arguments.
  int64_t peak_bytes() const;
  std::string memory() const;  // the report, at `opt`
  /// "c": one C file; fails where sizes are open. "numpy", "torch", "jax": one Python file, with
  /// constants as the last parameters of its function.
  std::string source(std::string_view language) const;
  /// As CompiledFunction::show.
  std::string show(std::string_view stage) const;
  ExecutableStats stats() const;
  /// Signature, ranges, results, target.
  std::string to_text() const;

  void save(const std::string& path, const SaveSettings& settings = {},
            std::source_location at = std::source_location::current()) const;
  static Executable load(const std::string& path, const LoadSettings& settings = {},
                         std::source_location at = std::source_location::current());
  /// As a typed function. Fails when the file takes or gives another number of tensors.
  ///
  ///     auto f = tn::Executable::load<tn::Tensor(tn::Tensor, tn::Tensor)>("f.tnx");
  ///     tn::Tensor z = f(x, y);
  template <class Signature>
  static ExecutableOf<Signature> load(const std::string& path, const LoadSettings& settings = {},
                                      std::source_location at = std::source_location::current()) {
    flat::Place here(at);
    return ExecutableOf<Signature>(load(path, settings));
  }

  struct State;  // functions/executable.h
  explicit Executable(SharedPtr<State> state) : state_(std::move(state)) {}
  const SharedPtr<State>& state() const { return state_; }

 private:
  SharedPtr<State> state_;
};

/// With inputs that are sizes.
using SizedFunction = Callback<Tensors(const Tensors& args, const std::vector<Dim>& sizes)>;

namespace flat {

/// `f` is called once, with parameters like `inputs`.
Executable compile_ahead(const Function& f, const std::vector<InputInfo>& inputs,
                         const AheadSettings& settings = {});
Executable compile_ahead_sized(const SizedFunction& f, const std::vector<InputInfo>& inputs,
                               const AheadSettings& settings = {});

}  // namespace flat

}  // namespace tn

#include "tenon/typed_executable.h"
