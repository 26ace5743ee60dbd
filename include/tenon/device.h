#pragma once
// Devices, on which tensors are stored and ops run.
#include <cstdint>
#include <source_location>
#include <string>
#include <string_view>
#include <vector>

namespace tn {

/// A device. Ops run on the device of their operands; `to` copies a tensor to another device.
struct Device {
  uint8_t kind = 0;  // 0: the CPU; others are numbered as they register
  uint8_t index = 0;

  constexpr Device() = default;  // the CPU
  constexpr Device(uint8_t kind_number, uint8_t number) : kind(kind_number), index(number) {}
  /// "cpu", "cuda" (the first), "cuda:1". Fails if there is no such device.
  Device(std::string_view name, std::source_location at = std::source_location::current());
  Device(const char* name, std::source_location at = std::source_location::current())
      : Device(name ? std::string_view(name) : std::string_view(), at) {}
  Device(const std::string& name, std::source_location at = std::source_location::current())
      : Device(std::string_view(name), at) {}

  /// Whether it is the host, which can read its memory directly.
  constexpr bool is_host() const { return kind == 0; }
  friend constexpr bool operator==(Device, Device) = default;
};

/// "cpu", "cuda:1".
std::string to_text(Device device);

/// The devices of this machine; the CPU is the first.
std::vector<Device> devices();

/// The device of new tensors without a `device` argument. TENON_DEVICE sets it at the start; the
/// default is the CPU.
Device default_device();
void set_default_device(Device device);

/// Sets the default device of this thread until the end of the scope.
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
