#include "base/environment_number.h"

#include <cstdlib>

#include "base/debug_log.h"

namespace tn {

int64_t environment_number(const char* name, int64_t least, int64_t otherwise) {
  const char* text = std::getenv(name);
  if (!text || !*text) return otherwise;
  char* end = nullptr;
  long long value = std::strtoll(text, &end, 10);
  if (end != text && *end == 0 && value >= least) return value;
  write_debug_line(format("[COMPILE] {}={} is ignored: it needs {}", name, text,
                          least ? "a number, 1 or more" : "1, or 0"));
  return otherwise;
}

}  // namespace tn
