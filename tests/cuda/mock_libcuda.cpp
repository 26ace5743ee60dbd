// The mock of the driver as a library, libcuda.so.1: what programs with libtenon_rt find by dlopen
// where LD_LIBRARY_PATH has its folder. It has one kernel, that of x * 2 + 1 on 4 elements.
//
//     MOCK_MAJOR=9 MOCK_DEVICES=0 MOCK_VERSION=11080 MOCK_BYTES=64    of the GPU and the driver
#include <algorithm>
#include <cstdlib>

#include "backend/cuda/mock/mock_driver.h"

using namespace tn::cuda;

// The loader calls the resolver of a name when the name is looked for.
#define TN_EXPORT(name, params)                                                     \
  extern "C" decltype(Driver::name) resolve_##name() { return mock_driver().name; } \
  extern "C" [[gnu::visibility("default")]] Result name params                      \
      __attribute__((ifunc("resolve_" #name)));
TN_DRIVER_FUNCTIONS(TN_EXPORT)

namespace {

int number(const char* name, int otherwise) {
  const char* text = std::getenv(name);
  return text ? std::atoi(text) : otherwise;
}

float* floats_at(uint64_t address) { return static_cast<float*>(mock_memory(address)); }

[[maybe_unused]] const bool kReady = [] {
  Mock& made = mock();
  made.major = number("MOCK_MAJOR", 8);
  made.devices = number("MOCK_DEVICES", 1);
  made.version = number("MOCK_VERSION", 13000);
  made.total_bytes = static_cast<size_t>(number("MOCK_BYTES", 1 << 30));
  made.kernels["part0"] = {2, [](const uint64_t* p, int64_t, int64_t) {
                             for (int i = 0; i < 4; ++i)
                               floats_at(p[1])[i] = 2 * floats_at(p[0])[i] + 1;
                           }};
  return true;
}();

}  // namespace

// What tests ask it: how often a stream was made to wait for an event, and the host for the GPU.
extern "C" [[gnu::visibility("default")]] int64_t mock_waits(Stream stream) {
  return std::ranges::count(mock().waiting, stream);
}
extern "C" [[gnu::visibility("default")]] int64_t mock_synchronized() {
  return mock().synchronized;
}
