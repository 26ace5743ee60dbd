#include "backend/llvm/llvm_session.h"

#include <llvm/Support/ErrorHandling.h>
#include <sys/mman.h>

#include <atomic>
#include <mutex>
#include <new>

#include "base/at_fork.h"
#include "base/error.h"

namespace tn::codegen {
namespace {

enum class State : uint8_t { fresh, ready, broken };
std::atomic<State> state = State::fresh;

/// Several threads compile at once, and the largest kernels measured took 5 MiB each.
constexpr size_t kRoom = size_t{32} << 20;

/// Asks for memory before LLVM does, where a refusal costs nothing. It is given back at once: other
/// threads may take it meanwhile, which the handlers are for.
void check_room() {
  void* room = mmap(nullptr, kRoom, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
  if (room == MAP_FAILED)
    fail(Fault::memory,
         "compile: not enough memory for the code generator: {} MiB are not available",
         kRoom >> 20);
  munmap(room, kRoom);
}

[[noreturn]] void on_bad_alloc(void*, const char*, bool) { throw std::bad_alloc(); }

[[noreturn]] void on_fatal_error(void*, const char* reason, bool) {
  throw_internal(format("LLVM: {}", reason));
}

/// Both throw: LLVM must not go on, and has unwind tables.
void install_handlers() {
  static const bool installed = [] {
    llvm::install_bad_alloc_error_handler(on_bad_alloc);
    llvm::install_fatal_error_handler(on_fatal_error);
    return true;
  }();
  (void)installed;
}

void call(FunctionRef<void()> work) {
  try {
    work();
  } catch (const std::bad_alloc&) {
    fail(Fault::memory, "compile: the code generator ran out of memory");
  }
}

}  // namespace

bool llvm_is_usable() { return state != State::broken; }

void llvm_has_started() { state = State::ready; }

void in_llvm(FunctionRef<void()> work) {
  install_handlers();
  check_room();
  if (state == State::ready) return call(work);
  // Rank: below the caches of kernels, which are not locked meanwhile.
  static auto& starting = guarded_at_fork(*new std::mutex, 10);
  std::unique_lock lock(starting);
  if (state == State::ready) {
    lock.unlock();
    return call(work);
  }
  if (state == State::broken)
    fail(Fault::memory, Hint{"restart the process"},
         "compile: the code generator ran out of memory when it started");
  try {
    work();
  } catch (const std::bad_alloc&) {
    state = State::broken;
    fail(Fault::memory, "compile: the code generator ran out of memory when it started");
  }
}

}  // namespace tn::codegen
