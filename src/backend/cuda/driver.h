#pragma once
// The CUDA driver (libcuda.so.1): own declarations of what is used of it, found when a CUDA device
// is first named. Nothing of the CUDA toolkit is needed to build; tests compare with cuda.h where
// there is one.
#include <cstddef>
#include <cstdint>
#include <string>
#include <string_view>
#include <type_traits>

namespace tn::cuda {

using Result = int;  // 0: success
using DeviceNumber = int;
using Address = unsigned long long;  // CUdeviceptr
using Context = struct ContextOfDriver*;
using Module = struct ModuleOfDriver*;
using Function = struct FunctionOfDriver*;
using Stream = struct StreamOfDriver*;
using EventHandle = struct EventOfDriver*;
using Graph = struct GraphOfDriver*;
using GraphNode = struct GraphNodeOfDriver*;
using GraphExec = struct GraphExecOfDriver*;
using MemoryPool = struct MemoryPoolOfDriver*;

/// CUDA_KERNEL_NODE_PARAMS_v2.
struct KernelNode {
  Function function = nullptr;
  unsigned grid[3] = {1, 1, 1}, block[3] = {1, 1, 1};
  unsigned shared_bytes = 0;
  void** params = nullptr;
  void** extra = nullptr;
  void* kernel = nullptr;
  Context context = nullptr;
};

// Values of the driver's enumerations.
inline constexpr Result kSuccess = 0, kOutOfMemory = 2, kNotReady = 600;
inline constexpr int kMultiprocessors = 16, kMajor = 75, kMinor = 76, kMostSharedBytes = 97;
inline constexpr int kThreadsOfEach = 39, kSharedBytesOfEach = 81, kRegistersOfEach = 82;
inline constexpr int kFunctionRegisters = 4;
inline constexpr int kFunctionSharedShare = 9;   // CU_FUNC_ATTRIBUTE_PREFERRED_..._CARVEOUT
inline constexpr int kFunctionSharedBytes = 8;   // CU_FUNC_ATTRIBUTE_MAX_DYNAMIC_SHARED_SIZE
inline constexpr int kPoolReleaseThreshold = 4;  // CU_MEMPOOL_ATTR_RELEASE_THRESHOLD
inline constexpr unsigned kStreamNonBlocking = 1, kEventWithTiming = 0, kEventNoTiming = 2;
inline constexpr unsigned kWaitGreaterOrEqual = 0;  // of numbers that overflow
inline constexpr int kCaptureRelaxed = 2;
inline constexpr int kJitErrorLog = 5, kJitErrorLogBytes = 6;

// Each function as the library exports it, with the parameters of that version.
#define TN_DRIVER_FUNCTIONS(X)                                                                 \
  X(cuInit, (unsigned))                                                                        \
  X(cuDriverGetVersion, (int*))                                                                \
  X(cuGetErrorName, (Result, const char**))                                                    \
  X(cuGetErrorString, (Result, const char**))                                                  \
  X(cuDeviceGetCount, (int*))                                                                  \
  X(cuDeviceGet, (DeviceNumber*, int))                                                         \
  X(cuDeviceGetName, (char*, int, DeviceNumber))                                               \
  X(cuDeviceGetAttribute, (int*, int, DeviceNumber))                                           \
  X(cuDeviceTotalMem_v2, (size_t*, DeviceNumber))                                              \
  X(cuDeviceGetDefaultMemPool, (MemoryPool*, DeviceNumber))                                    \
  X(cuDevicePrimaryCtxRetain, (Context*, DeviceNumber))                                        \
  X(cuCtxSetCurrent, (Context))                                                                \
  X(cuCtxGetCurrent, (Context*))                                                               \
  X(cuCtxSynchronize, ())                                                                      \
  X(cuMemGetInfo_v2, (size_t*, size_t*))                                                       \
  X(cuMemPoolSetAttribute, (MemoryPool, int, void*))                                           \
  X(cuMemPoolTrimTo, (MemoryPool, size_t))                                                     \
  X(cuMemAllocAsync, (Address*, size_t, Stream))                                               \
  X(cuMemFreeAsync, (Address, Stream))                                                         \
  X(cuMemHostAlloc, (void**, size_t, unsigned))                                                \
  X(cuMemFreeHost, (void*))                                                                    \
  X(cuMemcpyHtoDAsync_v2, (Address, const void*, size_t, Stream))                              \
  X(cuMemcpyDtoHAsync_v2, (void*, Address, size_t, Stream))                                    \
  X(cuMemcpyDtoDAsync_v2, (Address, Address, size_t, Stream))                                  \
  X(cuMemsetD8Async, (Address, unsigned char, size_t, Stream))                                 \
  X(cuMemsetD16Async, (Address, unsigned short, size_t, Stream))                               \
  X(cuMemsetD32Async, (Address, unsigned, size_t, Stream))                                     \
  X(cuStreamCreate, (Stream*, unsigned))                                                       \
  X(cuStreamQuery, (Stream))                                                                   \
  X(cuStreamSynchronize, (Stream))                                                             \
  X(cuStreamWaitEvent, (Stream, EventHandle, unsigned))                                        \
  X(cuStreamWaitValue32_v2, (Stream, Address, uint32_t, unsigned))                             \
  X(cuStreamWriteValue32_v2, (Stream, Address, uint32_t, unsigned))                            \
  X(cuStreamBeginCapture_v2, (Stream, int))                                                    \
  X(cuStreamEndCapture, (Stream, Graph*))                                                      \
  X(cuEventCreate, (EventHandle*, unsigned))                                                   \
  X(cuEventRecord, (EventHandle, Stream))                                                      \
  X(cuEventSynchronize, (EventHandle))                                                         \
  X(cuEventElapsedTime, (float*, EventHandle, EventHandle))                                    \
  X(cuEventDestroy_v2, (EventHandle))                                                          \
  X(cuModuleLoadDataEx, (Module*, const void*, unsigned, int*, void**))                        \
  X(cuModuleUnload, (Module))                                                                  \
  X(cuModuleGetFunction, (Function*, Module, const char*))                                     \
  X(cuFuncGetAttribute, (int*, int, Function))                                                 \
  X(cuFuncSetAttribute, (Function, int, int))                                                  \
  X(cuLaunchKernel, (Function, unsigned, unsigned, unsigned, unsigned, unsigned, unsigned,     \
                     unsigned, Stream, void**, void**))                                        \
  X(cuGraphCreate, (Graph*, unsigned))                                                         \
  X(cuGraphDestroy, (Graph))                                                                   \
  X(cuGraphAddEmptyNode, (GraphNode*, Graph, const GraphNode*, size_t))                        \
  X(cuGraphAddKernelNode_v2, (GraphNode*, Graph, const GraphNode*, size_t, const KernelNode*)) \
  X(cuGraphAddChildGraphNode, (GraphNode*, Graph, const GraphNode*, size_t, Graph))            \
  X(cuGraphInstantiateWithFlags, (GraphExec*, Graph, unsigned long long))                      \
  X(cuGraphExecKernelNodeSetParams_v2, (GraphExec, GraphNode, const KernelNode*))              \
  X(cuGraphExecChildGraphNodeSetParams, (GraphExec, GraphNode, Graph))                         \
  X(cuGraphLaunch, (GraphExec, Stream))                                                        \
  X(cuGraphExecDestroy, (GraphExec))

/// The functions of the driver. Tests replace them.
struct Driver {
#define TN_MEMBER(name, params) std::add_pointer_t<Result params> name = nullptr;
  TN_DRIVER_FUNCTIONS(TN_MEMBER)
#undef TN_MEMBER

  /// The oldest that has all of them, and what it is called by its users.
  static constexpr int kOldestVersion = 12000;
  static constexpr int kOldestRelease = 525;
};

/// The driver of this machine, loaded and initialised on first use, or why there is none: "no
/// NVIDIA driver was found (libcuda.so.1 is missing)".
struct LoadedDriver {
  const Driver* table = nullptr;
  std::string fault;
  int version = 0;  // 13000: of CUDA
  int devices = 0;
};
const LoadedDriver& driver_of_machine();

/// Takes this table for the machine's from now on; nothing may have asked for it before. For
/// tests. Null: as if there were none.
void replace_driver(const Driver* table);

/// "CUDA_ERROR_ILLEGAL_ADDRESS: an illegal memory access was encountered".
std::string text_of(const Driver& driver, Result result);
/// Throws InternalError unless the call succeeded.
void check(const Driver& driver, Result result, std::string_view what);

/// A library of the CUDA toolkit: one that the process has, that of a Python package, or that of
/// the system. `names` in the order to try, as "libcublasLt.so.13"; `folder` of the packages, as
/// "cublas". Null: there is none; `path` gets where it was found.
void* find_library(const char* const* names, size_t count, std::string_view folder,
                   std::string* path = nullptr);

}  // namespace tn::cuda
