#pragma once
// A line on the terminal about a compilation that takes long.
#include <condition_variable>
#include <mutex>
#include <thread>

namespace tn {

/// From construction to destruction: when more than a second has passed, it shows on the standard
/// error, if that is a terminal, how many kernels are compiled, and goes away at the end.
class ProgressBar {
 public:
  explicit ProgressBar(bool wanted = true);
  ~ProgressBar();

 private:
  void draw();
  bool wanted_, over_ = false;
  std::mutex mutex_;
  std::condition_variable end_;
  std::thread thread_;
};

}  // namespace tn
