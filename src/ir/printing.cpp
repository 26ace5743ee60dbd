#include "tenon/printing.h"

#include <mutex>

#include "base/error.h"

namespace tn {

static std::mutex mutex;
static PrintOptions current;

PrintOptions print_options() {
  std::lock_guard lock(mutex);
  return current;
}

PrintOptions set_print_options(const PrintOptions& options) {
  auto check = [](std::string_view name, int64_t value, int64_t least) {
    if (value < least) fail("set_printoptions: {} is a number from {} on: {}", name, least, value);
  };
  check("precision", options.precision ? *options.precision : 0, 0);
  check("threshold", options.threshold, 0);
  check("edgeitems", options.edgeitems, 0);
  check("linewidth", options.linewidth, 1);
  std::lock_guard lock(mutex);
  return std::exchange(current, options);
}

}  // namespace tn
