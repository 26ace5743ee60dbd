#pragma once
// What a kind of device does for the library. The CPU is built in; others register themselves.
#include <atomic>
#include <memory>
#include <mutex>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "runtime/buffer.h"
#include "tenon/memory.h"
#include "tenon/shape.h"

namespace tn {

struct OpDef;
struct PlacedPlan;
struct Target;
struct InternedType;
struct Graph;
struct CompileOptions;

/// A part of a graph that its device plans itself, when it knows how the inputs of a run lie there.
class DevicePart {
 public:
  virtual ~DevicePart() = default;
};

/// Devices of one kind. A device executes work asynchronously, in the order of submission; `ready`
/// of a buffer is the work it waits for.
class DeviceRuntime {
 public:
  virtual ~DeviceRuntime() = default;
  virtual std::string_view kind() const = 0;  // "cuda"
  /// "cuda:1"; `device_named` finds a device of this name.
  virtual std::string name(Device device) const;
  virtual int count() const = 0;
  /// What plans for it are made for.
  virtual Target target(Device device) const = 0;
  virtual BufferRef allocate(Device device, size_t bytes) = 0;
  /// Copies from memory of the host, asynchronously; or to it, synchronously.
  virtual void copy(const Bound& from, const Bound& to, size_t bytes) = 0;
  /// Waits for the work that writes a buffer; throws what made that work fail.
  virtual void wait(const Buffer& buffer) = 0;
  /// Waits for all submitted work. Failures are reported to the readers of the results.
  virtual void synchronize() = 0;
  /// Submits a plan to its device. Returns at once, with result buffers to wait for. Where it
  /// throws, `overwritten`, which may be null, says whether donated inputs may have been written.
  virtual void run(const std::shared_ptr<const PlacedPlan>& placed, std::span<const Bound> inputs,
                   const Scalar* scalars, std::span<Bound> outputs, bool* overwritten) = 0;
  /// Whether its library has kernels for an op that is not a loop nest. Others run on the host.
  virtual bool claims(const OpDef& op, std::span<const InternedType* const> in) const = 0;

  /// Why there are none of the kind, for messages; "" where there are, or none are expected.
  virtual std::string why_none() const { return ""; }
  /// Memory of a device; that of kinds without a pool of their own counts as the host's.
  virtual MemoryUse memory(Device) { return {}; }
  virtual size_t set_memory_limit(Device, size_t) { return 0; }
  virtual void reset_peak_memory(Device) {}
  virtual void clear_cache(Device) {}
  /// Whether tensors of the host may be operands beside its own: they are copied there.
  virtual bool takes_host_tensors() const { return false; }
  /// Whether `copy` goes between two devices. Others copy through the host.
  virtual bool copies_directly(Device, Device) const { return false; }
  /// Whether the device works while others do, so that what it computes is cut into more parts:
  /// each begins as soon as what it reads of others is there.
  virtual bool works_beside_others(Device) const { return false; }
  /// Whether this process can read all of a buffer by itself.
  virtual bool is_readable(const Buffer&) const { return true; }
  /// Whether it plans its parts itself.
  virtual bool plans_itself() const { return false; }
  /// Such a part, of constant sizes; the constants of the options are among its inputs.
  virtual std::shared_ptr<const DevicePart> part(Device device, const Graph& graph,
                                                 const CompileOptions& options);
  /// The plan of such a part for a run with these inputs, and how its results will lie. Fails where
  /// the run would be refused. Inputs and results may be without data.
  virtual void plan(const PlacedPlan&, std::span<const Bound>, std::span<Bound>) {}
  /// A value without data that lies as a copy of `value` on such a device would.
  virtual Bound outline(Device, const Bound& value) const { return value; }

  /// Whether this process may use it: a child of fork may not if its parent did.
  bool is_usable() const;

 private:
  friend DeviceRuntime& usable_runtime(Device device);
  std::atomic<int> generation_ = -1;  // of the process that used it first
};

/// Kinds register once, at load.
/// The device that a user names. Fails as `who`.
Device device_named(std::string_view name, std::string_view who);

void register_devices(DeviceRuntime& runtime);
/// Of a device that is not the host's.
DeviceRuntime& runtime_of(Device device);
/// The same, to give it work. An error in a child of fork whose parent has used such devices.
DeviceRuntime& usable_runtime(Device device);

/// What its runtime says. The host does neither.
bool plans_itself(Device device);
bool works_beside_others(Device device);

/// Waits for the work of all devices.
void synchronize_devices();

/// Memory of a device.
BufferRef allocate(size_t bytes, Device device);
/// A value copied to a device.
Bound copy_to(Device device, const Bound& value, size_t bytes);
/// The number of the run of a plan with parts on this thread, if parts work beside each other; else
/// 0. Processes count the same runs: a message that a failed run has left belongs to no later one.
extern thread_local uint64_t run_of_parts;

/// Until a value is there: what clocks need. Throws what made it fail.
void wait_for(const Bound& value);

/// Copies of values on devices, each made once. Threads may share it.
class DeviceCopies {
 public:
  Bound at(Device device, const Bound& value, size_t bytes);
  /// One that is there.
  void add(const Bound& value, const Bound& copy, size_t bytes);

 private:
  struct Copy {
    Bound value, copy;
    size_t bytes;
  };
  std::mutex mutex_;
  std::vector<Copy> made_;
};

/// Called once, where TENON_DEVICE is not set: a default device that the environment asks for.
extern std::atomic<Device (*)()> other_default_device;

/// Where what has no operands is made now: the scope's of this thread, or the default.
Device current_device();

}  // namespace tn
