#pragma once
// The workers of a mesh: threads of this process, or one in each process of a launcher. Processes
// that have no worker of a part of a mesh know what lies there, but hold nothing of it.
#include <memory>
#include <mutex>
#include <vector>

#include "base/function_ref.h"
#include "ir/mesh_layout.h"
#include "mesh/mesh_value.h"
#include "workers/local_groups.h"
#include "workers/thread_transport.h"

namespace tn::mesh {

class MeshWorld {
 public:
  /// `rank`: of this process among those of the launcher; -1: workers are threads. `whole`: the
  /// mesh that it is a part of, or null.
  MeshWorld(Mesh mesh, std::string name, int rank, MeshWorld* whole);

  const Mesh& mesh() const { return mesh_; }
  /// "mesh:0", and of its parts "mesh:0.at(stage=1)", as in the user's program.
  const std::string& name() const { return name_; }
  bool is_threads() const { return rank_ < 0; }
  /// Workers that run in this process, and the number in the mesh of the first.
  int here() const { return is_threads() ? static_cast<int>(mesh_.workers()) : first_ >= 0; }
  int first() const { return first_; }

  /// The only one that is equal.
  const Division* intern(Division division);
  const Division* whole() const { return whole_; }

  /// Runs `work(i)` for each worker here, at once. One run at a time. If one fails, the others
  /// stop, and its error is thrown. `given`: to the worker of this process.
  void run(const workers::RunOrigins& origins, FunctionRef<void(int worker)> work);

 private:
  using Groups = std::vector<workers::LocalGroup>;
  void make_threads();
  void make_processes();
  void take_groups(const MeshWorld& whole);
  void stop_all();

  Mesh mesh_;
  std::string name_;
  int rank_, first_;
  std::mutex mutex_;  // of `divisions_`
  std::vector<std::unique_ptr<Division>> divisions_;
  const Division* whole_;
  workers::ThreadWaits waits_;  // of threads
  std::vector<std::unique_ptr<workers::ThreadGroup>> meetings_;
  std::vector<std::unique_ptr<workers::Transport>> transports_;
  std::vector<Groups> groups_;  // of each worker here, one for each axis
};

/// The value is nowhere in this process. Fails as `who`.
[[noreturn]] void fail_not_here(std::string_view who, const MeshWorld& world);

/// The number of the worker that this thread runs a plan for; -1: none.
int current_worker();

}  // namespace tn::mesh
