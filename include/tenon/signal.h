#pragma once
// Signals: named regions of a program, and a YAML file that configures them.
//
//     forward:
//       compile: true              # or false, or {mode: max-autotune, threshold: 3}
//       shard: {axis: 0, workers: [0, 1]}
//       backward: gradients        # the signal of its derivatives; its own where none is named
//
//     tn::signal::load("config.yaml");  // or TENON_CONFIG=config.yaml in the environment
//     {
//       tn::signal::Context region("forward");
//       loss = model(x);
//     }
//
// Names that are not in the file have no effect.
#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "tenon/tensor.h"

namespace tn::signal {

/// When the ops of a region are compiled, as one plan.
struct Compile {
  bool wanted = true;            // false: never, overriding the process
  std::string mode = "default";  // or "reduce-overhead", "max-autotune": see CompileSettings
  int64_t threshold = 1;         // runs; above 1 it is compiled in the background after so many
  friend bool operator==(const Compile&, const Compile&) = default;
};

/// How the tensors that are made in a region, and the data that enters it, are divided among the
/// workers. Parameters stay as they are. No effect without workers.
struct Shard {
  std::optional<int64_t> axis;   // that is divided; nothing: every worker has all of it
  std::vector<int64_t> workers;  // none: all
  bool replicated = false;       // every worker has all of it, whatever the axis
  friend bool operator==(const Shard&, const Shard&) = default;
};

/// The configuration of a name.
struct Settings {
  std::string name;
  std::optional<Compile> compile;  // none: as the enclosing region
  std::optional<Shard> shard;
  std::string backward;  // "": not given
};

/// Loads a configuration, replacing the current one. Errors name the file, the line and the key,
/// and leave the current configuration unchanged.
void load(const std::string& path);
/// The same from text; `name` for messages.
void load_text(std::string_view yaml, const std::string& name = "text");
/// Clears the configuration and overrides TENON_CONFIG.
void unload();
/// The current configuration, in the order of the file. Reads TENON_CONFIG if nothing was loaded.
std::vector<Settings> config();

/// The ops recorded on this thread during its lifetime, except those of nested regions, form the
/// region `name`. It is evaluated separately, as one plan, when its values are needed. In traced
/// functions it is only a name.
class Context {
 public:
  /// `backward`: the signal of its derivatives, which overrides the file.
  explicit Context(std::string_view name, std::string_view backward = {});
  /// Leaves the region and all regions entered inside it.
  ~Context();
  Context(const Context&) = delete;

 private:
  size_t outer_;  // number of regions around it
};

/// The same as two calls, on one thread.
void enter(std::string_view name, std::string_view backward = {});
/// Fails unless `name` is the innermost region.
void leave(std::string_view name);
/// The active regions of this thread, outermost first.
std::vector<std::string> entered();

/// `x`, divided among the workers as configured for `name`.
Tensor tensor(const Tensor& x, std::string_view name);

}  // namespace tn::signal
