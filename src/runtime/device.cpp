#include "runtime/device.h"

#include <atomic>
#include <charconv>
#include <cstdlib>
#include <cstring>

#include "base/at_fork.h"
#include "base/error.h"

namespace tn {
namespace {

constexpr int kMostKinds = 8;
constinit std::atomic<DeviceRuntime*> kinds[kMostKinds] = {};  // the CPU has none

uint16_t bits_of(Device device) { return static_cast<uint16_t>(device.kind << 8 | device.index); }
Device device_from(uint16_t bits) {
  return {static_cast<uint8_t>(bits >> 8), static_cast<uint8_t>(bits)};
}

int count_of(int kind) { return kind == 0 ? 1 : kinds[kind].load()->count(); }

[[gnu::cold]] std::vector<std::string> names() {
  std::vector<std::string> all;
  for (Device device : devices()) all.push_back(to_text(device));
  return all;
}

/// The bits of a device once it is known. Errors in TENON_DEVICE are raised where it is first used.
std::atomic<int> chosen = -1;
constinit thread_local int scoped = -1;

}  // namespace

constinit std::atomic<Device (*)()> other_default_device = nullptr;

void register_devices(DeviceRuntime& runtime) {
  for (int kind = 1; kind < kMostKinds; ++kind) {
    DeviceRuntime* none = nullptr;
    if (kinds[kind].compare_exchange_strong(none, &runtime)) return;
  }
  throw_internal("too many kinds of devices");
}

DeviceRuntime& runtime_of(Device device) {
  DeviceRuntime* its = device.kind < kMostKinds ? kinds[device.kind].load() : nullptr;
  if (!its) fail("device: there are no devices of kind {}", device.kind);
  return *its;
}

bool plans_itself(Device device) { return !device.is_host() && runtime_of(device).plans_itself(); }

bool works_beside_others(Device device) {
  return !device.is_host() && runtime_of(device).works_beside_others(device);
}

std::string DeviceRuntime::name(Device device) const {
  return format("{}:{}", kind(), device.index);
}

std::shared_ptr<const DevicePart> DeviceRuntime::part(Device, const Graph&, const CompileOptions&) {
  throw_internal("a device that plans its parts makes them");
}

bool DeviceRuntime::is_usable() const {
  int first = generation_.load();
  return first < 0 || first == fork_generation();
}

DeviceRuntime& usable_runtime(Device device) {
  DeviceRuntime& runtime = runtime_of(device);
  int unused = -1;
  runtime.generation_.compare_exchange_strong(unused, fork_generation());
  if (!runtime.is_usable())
    unsupported(Hint{"start processes by spawn, or fork before the device is used"},
                "{}: a child of fork cannot use a device of its parent", to_text(device));
  return runtime;
}

[[gnu::cold]] Device device_named(std::string_view name, std::string_view who) {
  std::string_view wanted = name.substr(0, name.find(':'));
  for (int k = 0; k < kMostKinds; ++k) {
    if (k > 0 && !kinds[k]) break;
    if (wanted != (k == 0 ? "cpu" : kinds[k].load()->kind())) continue;
    unsigned number = 0;
    std::string_view digits = name.substr(std::min(wanted.size() + 1, name.size()));
    auto [end, error] = std::from_chars(digits.data(), digits.data() + digits.size(), number);
    bool is_number = error == std::errc() && end == digits.data() + digits.size();
    if (!is_number && name.size() > wanted.size()) {
      for (int i = 0; i < count_of(k); ++i)
        if (Device one(static_cast<uint8_t>(k), static_cast<uint8_t>(i)); to_text(one) == name)
          return one;
      break;
    }
    if (k > 0 && count_of(k) == 0)
      fail(Hint{format("the devices are {}", join(names(), ", "))}, "{}: {}: {}", who, name,
           kinds[k].load()->why_none());
    if (number >= static_cast<unsigned>(count_of(k))) break;
    return {static_cast<uint8_t>(k), static_cast<uint8_t>(number)};
  }
  fail(Hint{format("the devices are {}", join(names(), ", "))}, "{}: no such device: '{}'", who,
       name);
}

std::string to_text(Device device) {
  return device.is_host() ? "cpu" : runtime_of(device).name(device);
}

[[gnu::cold]] std::vector<Device> devices() {
  std::vector<Device> all;
  for (int k = 0; k < kMostKinds; ++k) {
    DeviceRuntime* runtime = kinds[k].load();
    if (k > 0 && (!runtime || runtime->plans_itself())) continue;  // a mesh is several devices
    for (int i = 0; i < count_of(k); ++i)
      all.emplace_back(static_cast<uint8_t>(k), static_cast<uint8_t>(i));
  }
  return all;
}

Device default_device() {
  int bits = chosen.load(std::memory_order_relaxed);
  if (bits >= 0) return device_from(static_cast<uint16_t>(bits));
  const char* name = std::getenv("TENON_DEVICE");
  auto other = other_default_device.load();
  Device device;
  if (name && *name)
    device = device_named(name, "TENON_DEVICE");
  else if (other)
    device = other();
  set_default_device(device);
  return device;
}

void set_default_device(Device device) { chosen = bits_of(device); }

Device current_device() {
  return scoped >= 0 ? device_from(static_cast<uint16_t>(scoped)) : default_device();
}

DeviceScope::DeviceScope(Device device) : before_(std::exchange(scoped, bits_of(device))) {}
DeviceScope::~DeviceScope() { scoped = before_; }

void synchronize_devices() {
  for (auto& kind : kinds)
    if (DeviceRuntime* runtime = kind.load(); runtime && runtime->is_usable())
      runtime->synchronize();
}

BufferRef allocate(size_t bytes, Device device) {
  if (device.is_host()) return allocate(bytes);
  DeviceRuntime& runtime = usable_runtime(device);
  try {
    return runtime.allocate(device, bytes);
  } catch (const UserError&) {  // work under way holds memory
    runtime.synchronize();
  }
  return runtime.allocate(device, bytes);
}

MemoryUse memory_use(Device device) {
  if (!device.is_host())
    if (MemoryUse its = usable_runtime(device).memory(device); its.limit > 0) return its;
  return {active_memory(), peak_memory(), cache_memory(), memory_limit()};
}
size_t set_memory_limit(size_t bytes, Device device) {
  if (device.is_host()) return set_memory_limit(bytes);
  return usable_runtime(device).set_memory_limit(device, bytes);
}
void reset_peak_memory(Device device) {
  if (device.is_host()) return reset_peak_memory();
  usable_runtime(device).reset_peak_memory(device);
}
void clear_cache(Device device) {
  if (device.is_host()) return clear_cache();
  usable_runtime(device).clear_cache(device);
}

Bound copy_to(Device device, const Bound& value, size_t bytes) {
  Device from = value.buffer->device;
  if (from == device) return value;
  bool is_direct = !from.is_host() && usable_runtime(from).copies_directly(from, device);
  if (!from.is_host() && !device.is_host() && !is_direct)
    return copy_to(device, copy_to({}, value, bytes), bytes);
  if (from.is_host() && is_borrowed(*value.buffer)) {  // it may change or go before it is read
    BufferRef own = allocate(bytes);
    if (bytes) std::memcpy(own.data(), HostView(value, bytes).data(), bytes);
    return copy_to(device, {std::move(own), 0}, bytes);
  }
  Bound made{allocate(bytes, device), 0};
  DeviceRuntime& runtime = usable_runtime(device.is_host() ? from : device);
  runtime.copy(value, made, bytes);
  return made;
}

void wait_for(const Bound& value) {
  const Buffer& buffer = *value.buffer;
  if (!buffer.device.is_host()) usable_runtime(buffer.device).wait(buffer);
}

void DeviceCopies::add(const Bound& value, const Bound& copy, size_t bytes) {
  std::lock_guard lock(mutex_);
  made_.push_back({value, copy, bytes});
}

Bound DeviceCopies::at(Device device, const Bound& value, size_t bytes) {
  if (value.is_absent() || value.buffer->device == device) return value;
  std::lock_guard lock(mutex_);
  for (const Copy& made : made_)
    if (made.value.buffer == value.buffer && made.value.offset == value.offset &&
        made.bytes >= bytes && made.copy.buffer->device == device)
      return made.copy;
  return made_.emplace_back(Copy{value, copy_to(device, value, bytes), bytes}).copy;
}

void HostView::fetch(size_t bytes) {
  const Buffer& buffer = *value_.buffer;
  DeviceRuntime& runtime = usable_runtime(buffer.device);
  runtime.wait(buffer);  // which throws what made it fail
  bytes = std::min(bytes, buffer.bytes - static_cast<size_t>(value_.offset));
  value_ = copy_to({}, value_, bytes);
}

}  // namespace tn
