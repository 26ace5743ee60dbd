#pragma once
// A driver that only tests have: memory of the heap that the host cannot use by mistake, and
// kernels that are functions of the host.
//
//     TENON_CUDA_MOCK=1    a device "cuda:0" without code of its own: the host interprets kernels
#include <atomic>
#include <functional>
#include <map>
#include <string>
#include <vector>

#include "backend/cuda/driver.h"

namespace tn::cuda {

/// Parameters in 8 bytes each, or one structure of so many.
struct MockKernel {
  size_t params;
  std::function<void(const uint64_t* params, int64_t blocks, int64_t threads)> run;
  bool takes_structure = false;
};

/// What the mock did, and what it shall do.
struct Mock {
  std::map<std::string, MockKernel> kernels;
  int version = 13000, devices = 1, major = 0, minor = 0;
  Result init = kSuccess, context = kSuccess, module = kSuccess;  // what these calls return
  size_t total_bytes = size_t{1} << 30;
  std::atomic<Result> broken = kSuccess;                 // what waiting and later calls return
  Result instantiate = kSuccess, set_params = kSuccess;  // what these calls return
  int launches_left = -1;                                // until one fails; -1: none does
  // Counted.
  int launches = 0, graph_launches = 0, graphs_built = 0, nodes_set = 0, allocations = 0,
      synchronized = 0;
  size_t allocated = 0;
  std::vector<std::string> log;           // names of kernels as they run
  std::vector<Stream> recorded, waiting;  // on which events were recorded, and which waited
};
Mock& mock();
const Driver& mock_driver();

/// While it is busy, no work is done: streams write no words. Then they write those that are due.
void set_mock_busy(bool busy);

/// Memory of the mock as the host's.
void* mock_memory(Address address);
/// Of a word that may be a number as well.
bool is_mock_address(uint64_t word);

}  // namespace tn::cuda
