#pragma once
// Devices: where tensors lie and ops run.
#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

namespace tn {

/// One device of this machine. Ops run where their operands lie; `to` copies a tensor to another.
struct Device {
  uint8_t kind = 0;  // 0: the CPU; others are numbered as they register
  uint8_t index = 0;

  constexpr Device() = default;  // the CPU
  constexpr Device(uint8_t kind_number, uint8_t number) : kind(kind_number), index(number) {}
  /// "cpu", "cuda" (the first), "cuda:1". Fails where there is no such device.
  Device(std::string_view name);
  Device(const char* name) : Device(std::string_view(name)) {}
  Device(const std::string& name) : Device(std::string_view(name)) {}

  /// Whether the host can read its memory and computes on it.
  constexpr bool is_host() const { return kind == 0; }
  friend constexpr bool operator==(Device, Device) = default;
};

/// "cpu", "cuda:1".
std::string to_text(Device device);

/// Those of this machine; the CPU is the first.
std::vector<Device> devices();

/// Where tensors are made that nothing else places. TENON_DEVICE names it at the start; otherwise
/// it is the CPU.
Device default_device();
void set_default_device(Device device);

/// The default device of this thread, until the scope ends.
class DeviceScope {
 public:
  explicit DeviceScope(Device device);
  ~DeviceScope();
  DeviceScope(const DeviceScope&) = delete;
  DeviceScope& operator=(const DeviceScope&) = delete;

 private:
  int before_;
};

}  // namespace tn
