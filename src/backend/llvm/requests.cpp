#include "backend/llvm/requests.h"

#include <bit>

#include "base/interrupt.h"
#include "base/text.h"
#include "loop/analysis.h"
#include "runtime/threads.h"

namespace tn::codegen {

std::string text_of(const KernelRequest& request) {
  std::string text = loop::to_text(*request.kernel);
  return text.substr(text.find('('));
}

std::string orders_of_sizes(const KernelRequest& request) {
  std::string text;
  for (Dim symbol : loop::symbols_in(*request.kernel))
    for (const Binding& b : request.sizes)
      if (symbol_name(b.symbol) == symbol_name(symbol))
        text += format(" {}~2^{}", symbol_name(symbol), std::bit_width(uint64_t(b.value)));
  return text;
}

std::vector<std::string> bytes_of_all(size_t count, FunctionRef<std::string(size_t)> make) {
  std::vector<std::string> bytes(count);
  parallel_for(static_cast<int64_t>(count), [&](int64_t k) {
    stop_if_asked();
    bytes[static_cast<size_t>(k)] = make(static_cast<size_t>(k));
  });
  return bytes;
}

}  // namespace tn::codegen
