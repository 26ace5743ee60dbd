#include "tenon/printing.h"

#include <mutex>

#include "base/at_fork.h"
#include "base/error.h"

namespace tn {

struct Printing {
  std::mutex mutex;
  PrintOptions options;
};
static Printing& printing_now() {
  static auto& only = guarded_for_process<Printing>(kInnermost);
  return only;
}

PrintOptions print_options() {
  std::lock_guard lock(printing_now().mutex);
  return printing_now().options;
}

PrintOptions set_print_options(const PrintOptions& options) {
  auto check = [](std::string_view name, int64_t value, int64_t least) {
    if (value < least) fail("set_printoptions: {} must be at least {}: {}", name, least, value);
  };
  check("precision", options.precision ? *options.precision : 0, 0);
  check("threshold", options.threshold, 0);
  check("edgeitems", options.edgeitems, 0);
  check("linewidth", options.linewidth, 1);
  std::lock_guard lock(printing_now().mutex);
  return std::exchange(printing_now().options, options);
}

}  // namespace tn
