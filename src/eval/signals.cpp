#include "eval/signals.h"

#include <algorithm>
#include <cstdlib>
#include <map>
#include <mutex>
#include <set>

#include "base/at_fork.h"
#include "base/debug_log.h"
#include "base/error.h"
#include "eval/region_layout.h"
#include "eval/signal_settings.h"
#include "ir/trace.h"
#include "runtime/device.h"
#include "tenon/mesh.h"

namespace tn {

namespace {

using signal::Settings;

constexpr size_t kMostStrangers = 1000;
constexpr std::string_view kShardNote =
    "shard: has no effect without workers; call tn.workers(n) or set TENON_NUM_WORKERS";
constexpr std::string_view kSomeNote =
    "shard: selecting a subset of workers is not supported yet; all workers of the mesh take part";

struct SignalEntry {
  Settings settings;
  uint64_t number;  // never used twice
};

/// Whether a slip of one letter makes `name` of `known`. Numbers are no slips: layer1, layer2.
bool is_misspelt(std::string_view name, std::string_view known) {
  if (std::min(name.size(), known.size()) < 4) return false;
  auto [a, b] = std::ranges::mismatch(name, known);
  auto rest = [](auto at, std::string_view of) { return std::string_view(at, of.end()); };
  std::string_view left = rest(a, name), right = rest(b, known);
  auto is_number = [](std::string_view s) { return !s.empty() && s[0] >= '0' && s[0] <= '9'; };
  if (is_number(left) || is_number(right)) return false;
  auto after = [](std::string_view s, size_t n) { return s.substr(std::min(n, s.size())); };
  bool swapped = left.size() > 1 && right.size() > 1 && left[0] == right[1] && left[1] == right[0];
  return (swapped && after(left, 2) == after(right, 2)) || after(left, 1) == after(right, 1) ||
         after(left, 1) == right || left == after(right, 1);
}

struct Configuration {
  std::mutex mutex;
  bool is_read = false;              // TENON_CONFIG, or what came in its place
  std::vector<SignalEntry> entries;  // in the order of the file
  std::map<std::string, size_t, std::less<>> places;
  std::set<std::string, std::less<>> strangers;  // names it does not know, that were told
  uint64_t numbers = 0;
  bool shard_is_reported = false;
  std::vector<std::string> notes;

  void use(std::vector<Settings> all);
  void read_environment();
  const SignalEntry* find(std::string_view name);
  void warn(std::string note);
  void note_workers(const signal::Shard& shard);
};

Configuration& configuration() {
  static auto& only = guarded_for_process<Configuration>(11);
  return only;
}

void Configuration::use(std::vector<Settings> all) {
  is_read = true;
  entries.clear(), places.clear(), strangers.clear();
  for (Settings& settings : all) {
    places[settings.name] = entries.size();
    if (settings.shard && !shard_is_reported) note_workers(*settings.shard);
    entries.push_back({std::move(settings), ++numbers});
  }
  for (const SignalEntry& entry : entries)
    if (!entry.settings.backward.empty()) find(entry.settings.backward);
}

/// Reports once what a configuration file cannot check.
void Configuration::note_workers(const signal::Shard& shard) {
  Device device = current_device();
  auto named = static_cast<int64_t>(shard.workers.size());
  bool has_mesh = is_mesh(device);
  if (has_mesh && (named == 0 || named == mesh_of(device).workers())) return;
  shard_is_reported = true;
  warn(std::string(has_mesh ? kSomeNote : kShardNote));
}

void Configuration::warn(std::string note) {
  debug_compile("{}", note);
  notes.push_back(std::move(note));
}

void Configuration::read_environment() {
  if (is_read) return;
  const char* path = std::getenv("TENON_CONFIG");
  use(path && *path ? read_signals(path) : std::vector<Settings>());
}

const SignalEntry* Configuration::find(std::string_view name) {
  read_environment();
  if (auto at = places.find(name); at != places.end()) return &entries[at->second];
  bool is_new =
      !entries.empty() && strangers.size() < kMostStrangers && strangers.emplace(name).second;
  if (!is_new) return nullptr;
  std::string note = format("signal '{}' is not in the configuration: it changes nothing", name);
  auto like = std::ranges::find_if(places, [&](auto& p) { return is_misspelt(name, p.first); });
  if (like == places.end())
    debug_compile("{}", note);  // as is meant to be: programs name more than files do
  else
    warn(format("{}; did you mean '{}'?", note, like->first));
  return nullptr;
}

std::atomic<uint64_t> passages = 0;

/// A passage through the context `name`, or null where it says no more than what is around.
RegionRef make_region(std::string_view name, std::string_view backward, const RegionRef& around) {
  Configuration& all = configuration();
  std::lock_guard lock(all.mutex);
  const SignalEntry* entry = all.find(name);
  if (backward.empty() && entry) backward = entry->settings.backward;
  if (!backward.empty()) all.find(backward);  // says so where it is misspelt
  bool is_plan = entry && (entry->settings.compile || entry->settings.shard);
  if (!is_plan && backward.empty()) return nullptr;
  auto region = std::make_shared<SignalRegion>();
  if (const SignalRegion* outer = as_signal(around)) {
    region->name = outer->name, region->compile = outer->compile, region->shard = outer->shard;
    region->plan = outer->plan, region->settings = outer->settings;
  }
  if (is_plan) {
    const Settings& own = entry->settings;
    region->name = own.name, region->plan = ++passages, region->settings = entry->number;
    if (own.compile) region->compile = own.compile;
    if (own.shard) region->shard = own.shard;
  }
  region->backward = backward;
  return region;
}

bool is_configured(std::string_view name) {
  std::lock_guard lock(configuration().mutex);
  return configuration().places.contains(name);
}

struct Frame {
  std::string name;
  RegionRef before, region;  // region: null where it changes nothing
};
thread_local std::vector<Frame> frames;

void leave_last() {
  if (frames.back().region) exchange_region(std::move(frames.back().before));
  frames.pop_back();
}

}  // namespace

RegionRef SignalRegion::of_derivatives() const {
  if (!backward.empty()) return make_region(backward, {}, nullptr);
  bool is_open =
      std::ranges::any_of(frames, [&](const Frame& f) { return f.region.get() == this; });
  if (is_open || !plan) return nullptr;
  if (is_configured("backward")) return make_region("backward", {}, nullptr);
  auto region = std::make_shared<SignalRegion>(*this);
  region->plan = ++passages;
  return region;
}

std::vector<std::string> take_signal_notes() {
  std::lock_guard lock(configuration().mutex);
  return std::exchange(configuration().notes, {});
}

namespace signal {

void load(const std::string& path) {
  std::vector<Settings> all = read_signals(path);
  std::lock_guard lock(configuration().mutex);
  configuration().use(std::move(all));
}

void load_text(std::string_view yaml, const std::string& name) {
  std::vector<Settings> all = parse_signals(yaml, "signal.load: " + name);
  std::lock_guard lock(configuration().mutex);
  configuration().use(std::move(all));
}

void unload() {
  std::lock_guard lock(configuration().mutex);
  configuration().use({});
}

std::vector<Settings> config() {
  std::lock_guard lock(configuration().mutex);
  configuration().read_environment();
  std::vector<Settings> all;
  for (const SignalEntry& entry : configuration().entries) all.push_back(entry.settings);
  return all;
}

void enter(std::string_view name, std::string_view backward) {
  if (name.empty()) fail("signal.enter: the name of a signal is empty");
  if (std::max(name.size(), backward.size()) > kLongestName)
    fail("signal.enter: a name has at most {} bytes, not {}", kLongestName,
         std::max(name.size(), backward.size()));
  Frame frame{std::string(name), current_region(), nullptr};
  RegionRef region = make_region(name, backward, frame.before);
  if (!Trace::tracing()) frame.region = region;
  frames.push_back(frame);
  if (frame.region) exchange_region(std::move(region));
}

void leave(std::string_view name) {
  if (std::ranges::find(frames, name, &Frame::name) == frames.end())
    fail("signal.exit: '{}' was not entered on this thread", name);
  if (frames.back().name != name)
    fail("signal.exit: '{}' was entered after '{}' and not left", frames.back().name, name);
  leave_last();
}

std::vector<std::string> entered() {
  std::vector<std::string> names;
  for (const Frame& frame : frames) names.push_back(frame.name);
  return names;
}

Context::Context(std::string_view name, std::string_view backward) : outer_(frames.size()) {
  enter(name, backward);
}

Context::~Context() {
  while (frames.size() > outer_) leave_last();
}

Tensor tensor(const Tensor& x, std::string_view name) {
  type_of(x);  // fails for a null one
  if (name.empty()) fail("signal.tensor: the name of a signal is empty");
  std::optional<Shard> shard;
  {
    std::lock_guard lock(configuration().mutex);
    if (const SignalEntry* entry = configuration().find(name)) shard = entry->settings.shard;
  }
  return shard ? as_said(x, *shard) : x;
}

}  // namespace signal
}  // namespace tn
