#include "cli/compile_progress.h"

#include <unistd.h>

#include <chrono>
#include <cstdio>

#include "base/text.h"
#include "plan/backend.h"

namespace tn {

using namespace std::chrono_literals;

constexpr int kWidth = 30;
constexpr const char* kClearLine = "\r\x1b[K";

static void write_error(const std::string& text) {
  std::fputs(text.c_str(), stderr);
  std::fflush(stderr);
}

ProgressBar::ProgressBar(bool wanted) : wanted_(wanted && isatty(STDERR_FILENO)) {
  if (wanted_) thread_ = std::thread([this] { draw(); });
}

ProgressBar::~ProgressBar() {
  if (!wanted_) return;
  {
    std::lock_guard lock(mutex_);
    over_ = true;
  }
  end_.notify_all();
  thread_.join();
}

void ProgressBar::draw() {
  auto began = std::chrono::steady_clock::now();
  Target target = host_target();
  const CodeGenerator& generator = generator_of(target);
  auto made = [&] {
    KernelCacheStats stats = generator.cache_stats();
    return stats.compiled + stats.from_disk;
  };
  int64_t before = made();
  std::unique_lock lock(mutex_);
  if (end_.wait_for(lock, 1s, [&] { return over_; })) return;
  do {
    int64_t done = made() - before, all = done + generator.waiting();
    int filled = all ? static_cast<int>(kWidth * done / all) : 0;
    std::chrono::duration<double> took = std::chrono::steady_clock::now() - began;
    write_error(format("{}compiling [{:-<{}}] {} of {} kernels, {:.0f} s", kClearLine,
                       std::string(static_cast<size_t>(filled), '#'), kWidth, done, all,
                       took.count()));
  } while (!end_.wait_for(lock, 100ms, [&] { return over_; }));
  write_error(kClearLine);
}

}  // namespace tn
