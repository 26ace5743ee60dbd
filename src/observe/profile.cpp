#include "tenon/profile.h"

#include <algorithm>
#include <map>

#include "base/error.h"
#include "ir/place.h"
#include "observe/event_recorder.h"
#include "workers/worker_watch.h"

namespace tn {
namespace {

double seconds_of(uint64_t nanoseconds) { return 1e-9 * static_cast<double>(nanoseconds); }

Profile timed(const Callback<void()>& f) {
  uint64_t began = event_time();
  StepRecorder recorder;
  f();
  recorder.stop();
  Profile profile{.steps = {}, .seconds = seconds_of(event_time() - began)};
  for (const Event& e : recorder.steps)
    profile.steps.push_back({std::string(e.name()), to_text(Loc{e.place}),
                             seconds_of(std::max(e.began, began) - began),
                             seconds_of(e.nanoseconds)});
  return profile;
}

std::string time_text(double seconds) {
  if (seconds < 1e-3) return format("{:.1f} us", seconds * 1e6);
  return seconds < 1 ? format("{:.2f} ms", seconds * 1e3) : format("{:.2f} s", seconds);
}

}  // namespace

std::string Profile::to_string() const {
  std::map<std::string_view, double> by_place;
  double running = 0;
  for (const TimedStep& step : steps) by_place[step.place] += step.seconds, running += step.seconds;
  std::vector<std::pair<std::string_view, double>> lines(by_place.begin(), by_place.end());
  std::ranges::sort(lines, std::greater(), [](const auto& line) { return line.second; });
  std::string text = format("{}, {} of it in {} step{}\n", time_text(seconds), time_text(running),
                            steps.size(), steps.size() == 1 ? "" : "s");
  for (const auto& [place, took] : lines) {
    std::string names;
    for (const TimedStep& step : steps)
      if (step.place == place && names.find(step.name) == names.npos)
        names += (names.empty() ? "" : ", ") + step.name;
    text += format("{:5.1f} % {:>10}  {}  ({})\n", running > 0 ? 100 * took / running : 0,
                   time_text(took), names, place);
  }
  return text;
}

Profile profile(const Callback<void()>& f, int calls, std::source_location at) {
  if (calls < 1) {
    LocScope scope(at);
    fail("profile: at least 1 call is needed, not {}", calls);
  }
  std::vector<Profile> made;
  for (int i = 0; i < calls; ++i) made.push_back(timed(f));
  auto middle = made.begin() + calls / 2;
  std::ranges::nth_element(made, middle, {}, &Profile::seconds);
  return std::move(*middle);
}

std::vector<WorkerStats> worker_stats() {
  workers::workers_are_counted = true;
  auto seconds = [](const std::atomic<uint64_t>& ns) { return 1e-9 * static_cast<double>(ns); };
  std::vector<WorkerStats> list;
  for (const workers::WorkerTotals& own : workers::worker_totals())
    if (own.number >= 0)
      list.push_back({own.number, own.runs, own.collectives, own.bytes, seconds(own.running),
                      seconds(own.communicating), seconds(own.waiting)});
  return list;
}

}  // namespace tn
