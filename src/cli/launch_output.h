#pragma once
// What workers print. Their lines reach the output of the launcher whole, one after the other,
// where processes that wrote there by themselves would tear them into each other.
#include <chrono>
#include <string>
#include <vector>

namespace tn::workers {

/// The output of one worker, or of one of its two streams, until a line is complete.
class LaunchOutput {
 public:
  LaunchOutput() = default;
  LaunchOutput(LaunchOutput&& other) noexcept;
  LaunchOutput(const LaunchOutput&) = delete;
  ~LaunchOutput() { close_own(); }
  /// To this descriptor of the launcher: a terminal gets the output of terminals.
  static LaunchOutput to(int target);

  /// The side of the worker, while it is started; -1: it has the output of the launcher.
  int given() const { return given_; }
  void close_given();
  /// What to poll; -1 after the end.
  int own() const { return own_; }
  /// Forwards the complete lines of what has arrived.
  void read_on();
  /// Forwards the start of a line that the worker leaves incomplete, such as a prompt.
  void forward_late();
  bool has_rest() const { return !rest_.empty(); }
  /// Forwards all that has been written until now.
  void finish();

 private:
  void forward(size_t bytes);
  void close_own();

  int target_ = -1, own_ = -1, given_ = -1;
  std::string rest_;
  std::chrono::steady_clock::time_point last_ = {};  // when something arrived
};

/// Whether two descriptors are of one file, so that their order matters.
bool is_one_file(int a, int b);

/// While one lives, a reader of the launcher that goes away does not kill it.
class BrokenPipesIgnored {
 public:
  BrokenPipesIgnored();
  ~BrokenPipesIgnored();
  BrokenPipesIgnored(const BrokenPipesIgnored&) = delete;

 private:
  void (*before_)(int);
};

/// Waits for output, or a moment, and forwards what there is.
void forward_output(std::vector<LaunchOutput>& outputs, std::chrono::milliseconds most);

}  // namespace tn::workers
