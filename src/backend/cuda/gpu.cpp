#include "backend/cuda/gpu.h"

#include <algorithm>
#include <chrono>
#include <cstring>
#include <thread>

#include "backend/cuda/cuda_backend.h"
#include "backend/cuda/step_times.h"
#include "base/at_fork.h"
#include "base/error.h"
#include "base/interrupt.h"
#include "runtime/device.h"

namespace tn::cuda {

Gpu::Gpu(const Driver& table, int number)
    : driver(table), index(number), generation_(fork_generation()) {
  DeviceNumber device = 0;
  check(driver, driver.cuDeviceGet(&device, index), "cuDeviceGet");
  char text[256] = "";
  check(driver, driver.cuDeviceGetName(text, sizeof text, device), "cuDeviceGetName");
  name = text;
  target = target_of_device(driver, index);
  auto ask = [&](int what) {
    int value = 0;
    check(driver, driver.cuDeviceGetAttribute(&value, what, device), "cuDeviceGetAttribute");
    return value;
  };
  multiprocessors = ask(kMultiprocessors);
  threads_of_each = ask(kThreadsOfEach), registers_of_each = ask(kRegistersOfEach);
  shared_bytes_of_each = ask(kSharedBytesOfEach);
  check(driver, driver.cuDeviceTotalMem_v2(&total_bytes, device), "cuDeviceTotalMem");
  Result made = driver.cuDevicePrimaryCtxRetain(&context_, device);
  if (made == kOutOfMemory)
    fail(Fault::memory, "cuda:{}: no memory is left on {} for a context", index, name);
  check(driver, made, "cuDevicePrimaryCtxRetain");
  enter();
  check(driver, driver.cuStreamCreate(&stream, kStreamNonBlocking), "cuStreamCreate");
  check(driver, driver.cuStreamCreate(&capturing, kStreamNonBlocking), "cuStreamCreate");
  check(driver, driver.cuStreamCreate(&copying, kStreamNonBlocking), "cuStreamCreate");
  constexpr size_t kLine = 128;  // bytes apart, so that waits do not disturb each other
  void* words = nullptr;
  check(driver, driver.cuMemHostAlloc(&words, 2 * kLine, 0), "cuMemHostAlloc");
  work_.begin(driver, stream, words);
  copying_.begin(driver, copying, static_cast<char*>(words) + kLine);
  for (const Progress* its : {&work_, &copying_}) {  // a driver that refuses says so now
    Result marked = its->mark(Progress::kFirst);
    if (marked != kSuccess) driver.cuMemFreeHost(words);
    check(driver, marked, "cuStreamWriteValue32");
  }
  MemoryPool pool_of_driver = nullptr;
  uint64_t all = UINT64_MAX;  // what is freed stays with the process
  if (driver.cuDeviceGetDefaultMemPool(&pool_of_driver, device) == kSuccess)
    driver.cuMemPoolSetAttribute(pool_of_driver, kPoolReleaseThreshold, &all);
  pool.guard();
  staging_.guard();
  guarded_at_fork(mutex_, kInnermost - 3);
}

bool Gpu::is_own_process() const { return generation_ == fork_generation(); }

void Gpu::require_own_process() const {
  if (!is_own_process())
    unsupported(Hint{"start processes by spawn, or fork before the device is used"},
                "cuda:{}: a child of fork cannot use a device of its parent", index);
}

void Gpu::enter() const {
  thread_local Context entered = nullptr;
  if (entered == context_) {  // others, such as torch, may have changed it since then
    Context now = nullptr;
    if (driver.cuCtxGetCurrent(&now) == kSuccess && now == context_) return;
  }
  check(driver, driver.cuCtxSetCurrent(context_), "cuCtxSetCurrent");
  entered = context_;
}

uint64_t Gpu::give(const std::function<void(Stream)>& submit, std::function<std::string()> what) {
  require_own_process();
  enter();
  if (borrowed_count_.load(std::memory_order_relaxed) > 0) release_done();
  for (;;) {  // each holds memory until it is done
    uint64_t oldest;
    std::list<Work> over;  // let go of without the lock
    {
      std::lock_guard lock(mutex_);
      if (!broken_.empty()) throw_internal(broken_);
      over = take_done();
      if (done() + kMostAhead > given_) {
        try {
          submit(stream);
        } catch (const InternalError&) {  // of this work, or of what was before?
          under_way_.push_back({given_ + 1, what});
          require_running(work_);
          under_way_.pop_back();
          throw;
        }
        under_way_.push_back({++given_, std::move(what)});
        uint64_t number = given_;
        submitted_.store(number, std::memory_order_release);
        // Work submitted within a few microseconds shares a mark. A wait for work that has none
        // yet makes one.
        constexpr uint64_t kMostUnmarked = 4;
        constexpr auto kSharedTime = std::chrono::microseconds(10);
        if (number - marked_.load(std::memory_order_relaxed) >= kMostUnmarked ||
            std::chrono::steady_clock::now() - last_mark_ > kSharedTime)
          mark();
        return number;
      }
      oldest = given_ + 1 - kMostAhead;
    }
    wait(oldest);
  }
}

/// Behind all work. Under the lock.
void Gpu::mark() {
  Result result = work_.mark(given_);
  marked_.store(given_, std::memory_order_release);
  last_mark_ = std::chrono::steady_clock::now();
  if (result != kSuccess) fail_broken(result);
}

/// Under the lock.
void Gpu::mark_for(uint64_t number) {
  if (!broken_.empty()) throw_internal(broken_);
  if (marked_.load(std::memory_order_relaxed) < number) mark();
}

/// Under the lock. What it returns is let go of without: names of work own plans, and these may own
/// memory of others, which `release_later` gives back.
std::list<Gpu::Work> Gpu::take_done() {
  auto is_done = [last = done()](const Work& work) { return work.number <= last; };
  std::list<Work> over;
  over.splice(over.begin(), under_way_, under_way_.begin(),
              std::ranges::find_if_not(under_way_, is_done));
  return over;
}

/// Asks the driver, which takes longer than to look at what is done. Under the lock.
void Gpu::require_running(const Progress& progress) {
  if (!broken_.empty()) throw_internal(broken_);
  Result result = progress.ask();
  if (result != kSuccess && result != kNotReady) fail_broken(result);
}

/// A failed kernel ends the context: nothing runs there any more. Under the lock.
void Gpu::fail_broken(Result result) {
  if (!broken_.empty()) throw_internal(broken_);  // another thread has found out first
  std::string suspects;
  int named = 0, others = 0;
  for (const Work& work : under_way_) {
    if (work.number <= done()) continue;
    if (named == 3)
      ++others;
    else
      suspects += format("{}{}", named++ ? "; or " : "", work.what());
  }
  if (others > 0) suspects += format("; or one of {} that were submitted later", others);
  broken_ = format(
      "cuda:{}: {}: work on the device failed and it cannot be used any more: {}\n  hint: "
      "TENON_CUDA_SYNC=1 waits for every step and names the one that fails",
      index, text_of(driver, result), suspects.empty() ? "nothing was under way" : suspects);
  throw_internal(broken_);
}

void Gpu::wait(uint64_t number) {
  if (number == 0 || is_done(number)) return;
  require_own_process();
  enter();
  bool is_copy = number & kCopyBit;
  if (!is_copy && marked_.load(std::memory_order_acquire) < number) {
    std::lock_guard lock(mutex_);
    mark_for(number);
  }
  using Clock = std::chrono::steady_clock;
  constexpr auto kSpin = std::chrono::milliseconds(2), kSlice = std::chrono::milliseconds(50);
  constexpr auto kTrust = std::chrono::microseconds(200);  // that work goes on
  Clock::time_point began = Clock::now(), asked_gpu = began, asked_user = began;
  while (!is_done(number)) {
    Clock::time_point now = Clock::now();
    if (now - asked_gpu >= kTrust) {  // but not while another thread submits
      std::unique_lock lock(mutex_, std::try_to_lock);
      if (lock) require_running(is_copy ? copying_ : work_);
      asked_gpu = now;
    }
    if (now - began < kSpin) continue;
    std::this_thread::sleep_for(std::chrono::microseconds(50));
    if (now - asked_user < kSlice) continue;
    asked_user = now;
    stop_if_asked();
  }
  std::list<Work> over;  // let go of without the lock
  if (std::unique_lock lock(mutex_, std::try_to_lock); lock) over = take_done();
  if (borrowed_count_.load(std::memory_order_relaxed) > 0) release_done();
}

void Gpu::wait_for_all() {
  uint64_t last, copy;
  {
    std::lock_guard lock(mutex_);
    last = given_, copy = copies_;
  }
  wait(last);
  wait(kCopyBit | copy);
}

/// Single values travel with the command: the engine for copies would have to be waited for.
void Gpu::set(Address to, const void* value, size_t bytes, Stream on) const {
  uint32_t words[2] = {};
  std::memcpy(words, value, bytes);
  if (bytes == 1)
    check(driver, driver.cuMemsetD8Async(to, static_cast<uint8_t>(words[0]), 1, on), "cuMemsetD8");
  if (bytes == 2)
    check(driver, driver.cuMemsetD16Async(to, static_cast<uint16_t>(words[0]), 1, on),
          "cuMemsetD16");
  for (size_t k = 0; k < bytes / 4; ++k)
    check(driver, driver.cuMemsetD32Async(to + 4 * k, words[k], 1, on), "cuMemsetD32");
}

uint64_t Gpu::copy_in(Address to, const void* from, size_t bytes) {
  CopyTime time("copy to the device", bytes);
  bool is_number = bytes == 1 || bytes == 2 || bytes == 4 || bytes == 8;
  if (is_number && to % bytes == 0)
    return give([&](Stream on) { set(to, from, bytes, on); },
                [] { return "a copy of a number to the device"; });
  uint64_t number = 0;
  size_t at = 0;
  do {
    size_t some = std::min(bytes - at, Staging::kPieceBytes);
    Staging::Piece piece = staging_.take();
    std::memcpy(piece.at, static_cast<const char*>(from) + at, some);
    number = give(
        [&](Stream on) {
          if (some == 0) return;
          check(driver, driver.cuMemcpyHtoDAsync_v2(to + at, piece.at, some, on), "cuMemcpyHtoD");
        },
        [bytes] { return format("a copy of {} bytes to the device", bytes); });
    piece.work = number;
    at += some;
  } while (at < bytes);
  return number;
}

void Gpu::copy_out(void* to, Address from, size_t bytes) {
  CopyTime time("copy to the host", bytes);
  struct Part {
    Staging::Piece piece;
    size_t at, bytes;
  };
  std::deque<Part> parts;
  auto finish = [&] {
    Part part = std::move(parts.front());
    parts.pop_front();
    wait(part.piece.work);
    std::memcpy(static_cast<char*>(to) + part.at, part.piece.at, part.bytes);
  };
  for (size_t at = 0; at < bytes;) {
    if (parts.size() + 1 == Staging::kUsualPieces) finish();
    Part part{staging_.take(), at, std::min(bytes - at, Staging::kPieceBytes)};
    part.piece.work = give(
        [&](Stream on) {
          check(driver, driver.cuMemcpyDtoHAsync_v2(part.piece.at, from + part.at, part.bytes, on),
                "cuMemcpyDtoH");
        },
        [bytes] { return format("a copy of {} bytes to the host", bytes); });
    at += part.bytes;
    parts.push_back(std::move(part));
  }
  while (!parts.empty()) finish();
}

uint64_t Gpu::copy_within(Address to, Address from, size_t bytes) {
  if (bytes == 0) return 0;
  return give(
      [&](Stream on) {
        check(driver, driver.cuMemcpyDtoDAsync_v2(to, from, bytes, on), "cuMemcpyDtoD");
      },
      [bytes] { return format("a copy of {} bytes", bytes); });
}

void Staging::guard() { guarded_at_fork(mutex_, kInnermost - 4); }

Staging::Piece Staging::take() {
  gpu_.require_own_process();
  {
    std::unique_lock lock(mutex_);
    bool waits = !free_.empty() && !gpu_.is_done(free_.front().second);
    if (!free_.empty() && !(waits && pieces_ < kUsualPieces)) {
      Piece piece(*this, free_.front().first, free_.front().second);
      free_.pop_front();
      lock.unlock();
      gpu_.wait(piece.work);
      return piece;
    }
  }
  void* made = nullptr;
  gpu_.enter();
  check(gpu_.driver, gpu_.driver.cuMemHostAlloc(&made, kPieceBytes, 0), "cuMemHostAlloc");
  std::lock_guard lock(mutex_);
  ++pieces_;
  return {*this, static_cast<char*>(made), 0};
}

void Staging::give_back(char* at, uint64_t work) {
  std::lock_guard lock(mutex_);
  free_.emplace_back(at, work);
}

}  // namespace tn::cuda
