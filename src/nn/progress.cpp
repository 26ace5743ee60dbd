#include "tenon/progress.h"

#include <unistd.h>

#include <chrono>
#include <cstdio>

#include "base/text.h"
#include "tenon/mesh.h"

namespace tn {

namespace {

constexpr double kSecondsBetween = 0.2;
constexpr int64_t kWidth = 24;

double now() {
  return std::chrono::duration<double>(std::chrono::steady_clock::now().time_since_epoch()).count();
}

void write(const std::string& text) {
  std::fwrite(text.data(), 1, text.size(), stderr);
  std::fflush(stderr);
}

}  // namespace

Progress::Progress(int64_t total, std::string description)
    : total_(total),
      description_(std::move(description)),
      is_shown_(isatty(fileno(stderr)) != 0),
      began_(now()) {}

Progress::~Progress() {
  if (!is_shown_) return;
  try {
    draw();
  } catch (...) {  // a value that cannot be computed has been reported elsewhere
  }
  write("\n");
}

void Progress::update(int64_t steps) {
  steps_ += steps;
  if (!is_shown_ || now() < next_) return;
  draw();
  next_ = now() + kSecondsBetween;
}

void Progress::show(const std::string& name, const Tensor& value) {
  if (is_mesh(value.device())) value.eval();  // its processes do not draw at the same steps
  if (is_shown_) name_ = name, value_ = value;
}

void Progress::draw() {
  double rate = static_cast<double>(steps_) / std::max(now() - began_, 1e-9);
  int64_t filled = total_ > 0 ? std::min(steps_, total_) * kWidth / total_ : 0;
  std::string line = format("\r{}{}[{}{}] {}/{}", description_, description_.empty() ? "" : " ",
                            std::string(static_cast<size_t>(filled), '='),
                            std::string(static_cast<size_t>(kWidth - filled), ' '), steps_, total_);
  if (value_.defined()) line += format("  {} {:.4g}", name_, value_.item<double>());
  write(line + format("  {:.3g} steps/s\033[K", rate));
}

}  // namespace tn
