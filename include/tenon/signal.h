#pragma once
// Signals: named parts of a program, and a YAML file that configures how they are compiled.
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
// Names that the file does not know change nothing, and so do all of them without a file.
#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "tenon/tensor.h"

namespace tn::signal {

/// When what is recorded in a region is compiled, as one plan.
struct Compile {
  bool wanted = true;            // false: never, whatever holds for the process
  std::string mode = "default";  // or "reduce-overhead", "max-autotune": see CompileSettings
  int64_t threshold = 1;         // runs; above 1 it is compiled in the background after so many
  friend bool operator==(const Compile&, const Compile&) = default;
};

/// How tensors are laid out over workers. Takes effect with workers.
struct Shard {
  std::optional<int64_t> axis;  // that is divided; nothing: every worker has all of it
  std::vector<int64_t> workers;
  bool replicated = false;
  friend bool operator==(const Shard&, const Shard&) = default;
};

/// What the file says of a name.
struct Settings {
  std::string name;
  std::optional<Compile> compile;  // nothing: as around the region
  std::optional<Shard> shard;
  std::string backward;  // "": not said
};

/// Loads a configuration in place of the former one. Errors name the file, the line and the key,
/// and leave the former configuration unchanged.
void load(const std::string& path);
/// The same from text; `name` for messages.
void load_text(std::string_view yaml, const std::string& name = "text");
/// Removes the configuration, that of TENON_CONFIG included.
void unload();
/// The current configuration, in the order of the file. Reads TENON_CONFIG if nothing was loaded.
std::vector<Settings> config();

/// Ops recorded on this thread from construction to destruction, nested regions excepted, form the
/// region `name`. A region is evaluated lazily, as one plan of its own. Inside a traced function it
/// is a name only.
class Context {
 public:
  /// `backward`: the signal of its derivatives, in place of what the file says.
  explicit Context(std::string_view name, std::string_view backward = {});
  /// Leaves the region and those that were entered in it and not left.
  ~Context();
  Context(const Context&) = delete;

 private:
  size_t outer_;  // number of regions around it
};

/// The same in two calls, which are on one thread.
void enter(std::string_view name, std::string_view backward = {});
/// Fails unless `name` is the region entered last.
void leave(std::string_view name);
/// The regions this thread is in, outermost first.
std::vector<std::string> entered();

/// `x`, laid out over workers as the file says for `name`.
Tensor tensor(const Tensor& x, std::string_view name);

}  // namespace tn::signal
