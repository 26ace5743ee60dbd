#pragma once
// Meshes as devices.
#include <memory>
#include <vector>

#include "mesh/mesh_part.h"
#include "mesh/processes.h"
#include "runtime/device.h"

namespace tn::mesh {

class MeshRuntime final : public DeviceRuntime {
 public:
  std::string_view kind() const override { return "mesh"; }
  std::string name(Device device) const override;
  int count() const override;
  Target target(Device device) const override;
  BufferRef allocate(Device device, size_t bytes) override;
  void copy(const Bound& from, const Bound& to, size_t bytes) override;
  void wait(const Buffer& buffer) override;
  void synchronize() override {}  // runs are over when they return
  void run(const std::shared_ptr<const PlacedPlan>& placed, std::span<const Bound> inputs,
           const Scalar* scalars, std::span<Bound> outputs, bool*) override;
  bool claims(const OpDef& op, Types in) const override;
  bool takes_host_tensors() const override { return true; }
  bool plans_itself() const override { return true; }
  bool copies_directly(Device from, Device to) const override;
  bool works_beside_others(Device device) const override;
  bool is_readable(const Buffer& buffer) const override;
  std::shared_ptr<const DevicePart> part(Device device, const Graph& graph,
                                         const CompileOptions& options) override;
  void plan(const PlacedPlan& placed, std::span<const Bound> inputs,
            std::span<Bound> outputs) override;
  Bound outline(Device device, const Bound& value) const override;

  /// The number of a mesh, which is made if there is none that is equal.
  int number_of(const Mesh& mesh);
  MeshWorld& world(Device device) const;
  bool owns(Device device) const;

 private:
  std::shared_ptr<const WorkerPlan> plan_of(const PlacedPlan& placed,
                                            std::span<const Bound> inputs);

  mutable std::mutex mutex_;
  std::vector<std::unique_ptr<MeshWorld>> worlds_;
};

/// The only one, registered at the first call.
MeshRuntime& runtime();
/// The kind of its devices.
uint8_t kind_number();

}  // namespace tn::mesh
