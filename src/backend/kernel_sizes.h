#pragma once
// What the code of kernels has in common on all kinds of device: the values of its symbols, and
// programs of sizes as bytes.
#include <algorithm>
#include <span>
#include <string>
#include <vector>

#include "base/bytes.h"
#include "base/error.h"
#include "ir/dim.h"
#include "runtime/size_program.h"

namespace tn {

/// A value for each symbol; sizes of another process have the same names, not the same symbols.
inline std::vector<int64_t> values_of(std::span<const Dim> symbols,
                                      std::span<const std::string> names,
                                      std::span<const Binding> sizes) {
  std::vector<int64_t> values;
  for (size_t k = 0; k < symbols.size(); ++k) {
    auto named = [&](const Binding& b) { return symbol_name(b.symbol) == names[k]; };
    const Binding* found = find_symbol(sizes, symbols[k]);
    if (!found) found = std::to_address(std::find_if(sizes.begin(), sizes.end(), named));
    invariant(found != std::to_address(sizes.end()),
              "a kernel is run without a value of the size {}", names[k]);
    values.push_back(found->value);
  }
  return values;
}

struct KernelWriter : ByteWriter {
  using ByteWriter::operator();
  void operator()(const SizeProgram& program) {
    list(program.steps, [](ByteWriter& w, const SizeStep& s) { w(s.kind), w(s.number); });
  }
};

struct KernelReader : ByteReader {
  using ByteReader::ByteReader;
  using ByteReader::operator();
  void operator()(SizeProgram& program) {
    list(program.steps, [](ByteReader& r, SizeStep& s) { r(s.kind), r(s.number); });
  }
};

}  // namespace tn
