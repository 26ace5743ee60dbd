#include "workers/thread_waits.h"

#include <algorithm>

#include "base/error.h"
#include "base/text.h"
#include "workers/thread_transport.h"
#include "workers/world_memory.h"

namespace tn::workers {
namespace {

using Doing = NotMet::Doing;

/// "worker 1", "workers 1, 3"
std::string names_of(const std::vector<int>& workers) {
  constexpr size_t kMost = 8;
  std::vector<std::string> names;
  for (int w : workers) names.push_back(format("{}", w));
  size_t more = names.size() > kMost ? names.size() - kMost : 0;
  if (more) names.resize(kMost), names.push_back(format("… ({} more)", more));
  return format("{} {}", workers.size() == 1 ? "worker" : "workers", join(names, ", "));
}

std::string_view verb(size_t count, std::string_view one, std::string_view many) {
  return count == 1 ? one : many;
}

}  // namespace

std::string text_of(const GroupMembers& members, const CollectiveCall& call) {
  constexpr std::string_view kSums[] = {"all_sum", "all_prod", "all_max", "all_min"};
  std::string text(call.kind == Collective::all_reduce ? kSums[static_cast<size_t>(call.fold)]
                                                       : name_of(call.kind));
  if (!members.name.empty()) text += format(" along '{}'", members.name);
  if (call.kind != Collective::barrier) text += format(" of {}", text_of(data_of(call)));
  return text;
}

NotMet::NotMet(std::string headline, std::vector<Worker> workers)
    : WorkerFailed(headline), headline_(std::move(headline)), workers_(std::move(workers)) {}

uint64_t NotMet::loc() const {
  auto first = std::ranges::find(workers_, Doing::waits, &Worker::doing);
  return first == workers_.end() ? 0 : first->loc;
}

std::string NotMet::text(FunctionRef<std::string(uint64_t loc)> place) const {
  std::string text = headline_;
  std::vector<int> by[3];
  for (const Worker& one : workers_) by[static_cast<size_t>(one.doing)].push_back(one.number);
  std::string_view between = ": ";
  auto add = [&](std::string part) { text += format("{}{}", std::exchange(between, "; "), part); };
  std::vector<bool> done(workers_.size());
  for (size_t i = 0; i < workers_.size(); ++i) {
    const Worker& first = workers_[i];
    if (first.doing != Doing::waits || done[i]) continue;
    std::vector<int> here;
    for (size_t k = i; k < workers_.size(); ++k) {
      const Worker& one = workers_[k];
      bool same = one.doing == Doing::waits && one.call == first.call && one.loc == first.loc &&
                  one.missing == first.missing;
      if (same) here.push_back(one.number), done[k] = true;
    }
    std::string line = place(first.loc);
    std::string made = format("{} {} {}", names_of(here),
                              first.missing.empty() ? verb(here.size(), "calls", "call")
                                                    : verb(here.size(), "waits in", "wait in"),
                              first.call);
    if (!line.empty()) made += format(" ({})", line);
    if (!first.missing.empty()) made += format(" for {}", names_of(first.missing));
    add(std::move(made));
  }
  if (const auto& ended = by[static_cast<size_t>(Doing::has_ended)]; !ended.empty())
    add(format("{} {} without it", names_of(ended), verb(ended.size(), "has ended", "have ended")));
  if (const auto& busy = by[static_cast<size_t>(Doing::computes)]; !busy.empty())
    add(format("{} {}", names_of(busy), verb(busy.size(), "computes", "compute")));
  return text;
}

void ThreadWaits::reset() {
  std::lock_guard lock(mutex_);
  std::ranges::fill(records_, Record());
  idle_ = 0;
}

void ThreadWaits::waits(int worker, const Gate& gate, uint32_t round, const GroupMembers& members,
                        const CollectiveCall& call) {
  std::lock_guard lock(mutex_);
  records_[static_cast<size_t>(worker)] = {Doing::waits, &gate, round, members, call};
  ++idle_;
}

void ThreadWaits::goes_on(int worker) {
  std::lock_guard lock(mutex_);
  records_[static_cast<size_t>(worker)] = Record();
  --idle_;
}

void ThreadWaits::has_ended(int worker) {
  std::lock_guard lock(mutex_);
  records_[static_cast<size_t>(worker)].doing = Doing::has_ended;
  ++idle_;
}

/// A worker whose round is complete, or stopped, is about to go on.
bool ThreadWaits::is_waiting(const Record& record) const {
  return record.doing == Doing::waits && record.gate->is_open(record.round);
}

std::vector<NotMet::Worker> ThreadWaits::report() const {
  std::vector<NotMet::Worker> list;
  auto is_at = [&](int worker, const Gate* gate) {
    const Record& there = records_[static_cast<size_t>(worker)];
    return there.gate == gate && is_waiting(there);
  };
  for (size_t w = 0; w < records_.size(); ++w) {
    const Record& record = records_[w];
    NotMet::Worker& one = list.emplace_back();
    one.number = static_cast<int>(w);
    if (record.doing == Doing::has_ended) one.doing = Doing::has_ended;
    if (!is_waiting(record)) continue;
    one.doing = Doing::waits, one.call = text_of(record.members, record.call);
    one.loc = record.call.loc;
    for (int k = 0; k < record.members.size; ++k)
      if (int other = record.members.first + k * record.members.step; !is_at(other, record.gate))
        one.missing.push_back(other);
  }
  return list;
}

void ThreadWaits::check_for_progress() const {
  std::lock_guard lock(mutex_);
  // Only a worker that computes can complete a round. So if none computes, and no round of those
  // who wait is complete now, none ever will be.
  if (idle_ < records_.size()) return;
  for (const Record& record : records_)
    if (record.doing == Doing::waits && !is_waiting(record)) return;
  log_error_site(ErrorSite::here());
  throw NotMet("workers wait for each other, and none can go on", report());
}

void ThreadWaits::fail_late(std::chrono::seconds time) const {
  std::lock_guard lock(mutex_);
  log_error_site(ErrorSite::here());
  throw NotMet(format("no progress for {} s", time.count()), report());
}

}  // namespace tn::workers
