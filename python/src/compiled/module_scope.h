#pragma once
// Which module a trace is in, so that its kernels can be named after it.
#include <cstdint>
#include <string>

namespace tn::python {

/// What is recorded on this thread from here on was called in the module of this path
/// ("blocks[0]"). Returns what leave_module() needs.
uint32_t enter_module(const std::string& path);
void leave_module(uint32_t outer);

}  // namespace tn::python
