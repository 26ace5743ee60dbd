#include "loop/interpreter_frame.h"

#include <cstdlib>
#include <cstring>
#include <new>

namespace tn::loop::machine {
namespace {

std::byte* allocate(int64_t bytes) {
  void* data = std::aligned_alloc(64, static_cast<size_t>((bytes + 63) / 64 * 64));
  if (!data) throw std::bad_alloc();
  return static_cast<std::byte*>(data);
}

// A run, its records of chunks and one task within it are three scopes; deeper ones do not occur
// but would only be slower.
struct ThreadMemory {
  static constexpr int kDepth = 4;
  std::byte* data[kDepth] = {};
  int64_t size[kDepth] = {};
  int depth = 0;
  ~ThreadMemory() {
    for (std::byte* block : data) std::free(block);
  }
};

thread_local ThreadMemory thread_memory;

}  // namespace

Scratch::Scratch(int64_t bytes) {
  ThreadMemory& memory = thread_memory;
  int level = memory.depth;
  if (level >= ThreadMemory::kDepth) {
    data = allocate(bytes + 64);
  } else if (memory.size[level] < bytes || !memory.data[level]) {
    std::byte* fresh = allocate(bytes + 64);
    std::free(memory.data[level]);
    memory.data[level] = data = fresh;
    memory.size[level] = bytes;
  } else {
    data = memory.data[level];
  }
  ++memory.depth;
}

Scratch::~Scratch() {
  if (--thread_memory.depth >= ThreadMemory::kDepth) std::free(data);
}

static int64_t slot_bytes(const BlockProgram& p) { return (p.slots() * 8 + 63) / 64 * 64; }

FrameScope::FrameScope(const BlockProgram& p, void* const* buffers, const Scalar* arguments)
    : memory_(slot_bytes(p) + p.frame_size + p.partial_size) {
  void** slots = reinterpret_cast<void**>(memory_.data);
  std::byte* base = memory_.data + slot_bytes(p);
  size_t constants = p.constant_slots.size();
  const void* first = static_cast<const void*>(p.constant_slots.data());
  if (constants > 0) std::memcpy(memory_.data, first, constants * sizeof(void*));
  for (size_t i = 0; i < p.register_slots.size(); ++i)
    slots[constants + i] = base + p.register_slots[i];
  frame = {&p, buffers, arguments, slots, base};
}

}  // namespace tn::loop::machine
