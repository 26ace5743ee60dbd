#include "workers/circular_waits.h"

#include <algorithm>

#include "base/text.h"

namespace tn::workers {
namespace {

using Clock = std::chrono::steady_clock;
constexpr auto kGrace = std::chrono::seconds(1);

// The bits of a wait, from the lowest: the other worker, plus one; the number of the wait; looks.
constexpr int kWorkerBits = 16, kNumberBits = 24;
constexpr uint64_t kLook = uint64_t{1} << (kWorkerBits + kNumberBits);

int other_of(uint64_t wait) { return static_cast<int>(wait % (1 << kWorkerBits)) - 1; }
uint64_t identity(uint64_t wait) { return wait % kLook; }
uint64_t looks(uint64_t wait) { return wait / kLook; }

}  // namespace

ShownWait::ShownWait(const WorldMemory& world, int self, int other) : world_(world), self_(self) {
  static std::atomic<uint64_t> waits = 0;
  uint64_t number = waits++ % (1 << kNumberBits);
  world_.record(self).waits = number << kWorkerBits | static_cast<uint64_t>(other + 1);
}

ShownWait::~ShownWait() { world_.record(self_).waits = 0; }

/// From this worker to itself, or empty. Where several threads of a process make calls, one may
/// complete what another waits for.
std::vector<ShownWait::Seen> ShownWait::chain() const {
  std::vector<Seen> chain;
  for (int worker = self_; std::ssize(chain) < world_.size();) {
    const WorkerRecord& record = world_.record(worker);
    chain.push_back({worker, record.waits.load()});
    worker = other_of(chain.back().wait);
    if (worker < 0 || record.threads > 1) return {};
    if (worker == self_) return chain;
  }
  return {};
}

/// Each worker of the chain has looked in vain after all of them were seen to wait, and waits
/// still. So all waited at one moment, and only one of them could have ended the wait of another.
bool ShownWait::is_circular() {
  world_.record(self_).waits += kLook;
  std::vector<Seen> now = chain();
  auto is_same = [](const Seen& a, const Seen& b) {
    return a.worker == b.worker && identity(a.wait) == identity(b.wait);
  };
  if (!std::ranges::equal(now, seen_, is_same)) {
    seen_ = std::move(now), since_ = Clock::now();
    return false;
  }
  if (now.empty() || Clock::now() - since_ < kGrace) return false;
  auto has_looked = [](const Seen& before, const Seen& later) {
    return looks(later.wait) >= looks(before.wait) + 2;
  };
  return std::ranges::equal(seen_, now, has_looked);
}

std::string ShownWait::text() const {
  constexpr size_t kMost = 4;
  std::vector<std::string> waits;
  for (const Seen& one : seen_) {
    const WorkerRecord& record = world_.record(one.worker);
    int other = world_.record(other_of(one.wait)).number;
    waits.push_back(
        format("worker {} waits{} for worker {}", record.number, whereabouts(record), other));
  }
  std::ranges::rotate(waits, std::ranges::min_element(waits));  // the same, whoever finds it
  if (waits.size() > kMost) waits.resize(kMost), waits.push_back("…");
  return format(
      "workers wait for each other, and none can go on: {}. All workers must make the same calls "
      "in the same order: what lies on a mesh of processes is evaluated, gathered and saved by all",
      join(waits, "; "));
}

}  // namespace tn::workers
