#include "observe/event_log.h"

#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <iterator>
#include <utility>

#include "base/text.h"
#include "ir/place.h"
#include "observe/launched_worker.h"

namespace tn {

namespace {

constexpr size_t kBlock = 1 << 16;
constexpr uint64_t kSecond = 1'000'000'000;

/// "RUN        | WORKER | Plan    "
std::string_view words_of(EventKind kind) {
  constexpr std::string_view kWords[] = {
      "RECV       | CLIENT | Record  ",  "RECV       | CLIENT | Flush   ",
      "RUN        | WORKER | Plan    ",  "RUN        | WORKER | Step    ",
      "COMPILE    | WORKER | Starting",  "COMPILE    | WORKER | Complete",
      "COMPILE    | WORKER | Failed  ",  "RUN        | THREAD | Share   ",
      "MEMORY     | WORKER | Active  ",  "WORKER_SEND | WORKER | Ops     ",
      "WORKER_RECV | WORKER | Run     ", "COLLECTIVE | WORKER | Call    "};
  return kWords[static_cast<size_t>(kind)];
}

/// The same with the worker: "RUN        | WORKER worker_2 | Plan    ".
std::string words_of(const Event& event) {
  std::string words(words_of(event.kind));
  if (event.worker >= 0) words.insert(words.rfind(" | "), format(" worker_{}", event.worker));
  return words;
}

bool is_compile(EventKind kind) {
  return kind == EventKind::compile_starting || kind == EventKind::compile_complete ||
         kind == EventKind::compile_failed;
}

/// A name fits one line, and its last letter is whole.
void add_name(std::string_view name, std::string& text) {
  auto is_inside = [](char c) { return (c & 0xc0) == 0x80; };
  if (name.size() == sizeof(Event::text)) {
    while (!name.empty() && is_inside(name.back())) name.remove_suffix(1);
    if (!name.empty() && (name.back() & 0x80)) name.remove_suffix(1);
  }
  std::ranges::transform(name, std::back_inserter(text),
                         [](char c) { return static_cast<unsigned char>(c) < ' ' ? ' ' : c; });
}

}  // namespace

EventLog::EventLog(int file, size_t most) : most_(most), process_(getpid()), file_(file) {
  start();
}

EventLog::~EventLog() { stop(); }

void EventLog::take(std::span<const Event> events) {
  if (written_ == 0 && !events.empty()) add_line(memory_);
  for (const Event& event : events) {
    if (written_ == most_ || error_) {
      ++missing_;
      continue;
    }
    add_line(completion_.complete(event));
    if (text_.size() >= kBlock) write();
  }
  write();
}

void EventLog::add_line(const Event& event) {
  uint64_t began = std::max(event.began, began_) - began_, end = began + event.nanoseconds;
  auto out = std::back_inserter(text_);
  format_to(out, "{:3}.{:03}s | #{:04} | {} | ", end / kSecond, end / 1'000'000 % 1000, ++written_,
            words_of(event));
  if (is_compile(event.kind)) format_to(out, "sequence={:012x} ", event.value >> 16);
  format_to(out, "value={} t={}.{:09} took={}.{:09} thread={}{} ", event.value, began / kSecond,
            began % kSecond, event.nanoseconds / kSecond, event.nanoseconds % kSecond, event.thread,
            event.compiled ? " (COMPILED)" : "");
  if (event.kind == EventKind::collective) add_collective(event);
  text_ += "name=";
  add_name(event.name(), text_);
  if (event.place)
    format_to(out, " at=@{}", places_.emplace(event.place, places_.size()).first->second);
  text_ += '\n';
}

void EventLog::add_collective(const Event& event) {
  format_to(std::back_inserter(text_), "waited={}.{:09} peers={},{},{} ", event.waited / kSecond,
            event.waited % kSecond, event.peers.first, event.peers.step, event.peers.count);
}

void EventLog::stop() {
  if (file_ < 0) return;
  Watcher::stop();
  if (process_ == getpid()) add_end();
  close(std::exchange(file_, -1));
}

void EventLog::add_end() {
  uint64_t seconds = event_time() - began_;
  std::vector<std::string> places(places_.size());
  for (auto [bits, number] : places_) places[number] = to_text(Loc{bits});
  for (size_t i = 0; i < places.size(); ++i) text_ += format("# @{} {}\n", i, places[i]);
  if (int worker = worker_of_process.load(); worker >= 0) {
    uint64_t began = time_since_launch(began_);
    text_ += format("# worker {}: {}.{:09} s after the launch\n", worker, began / kSecond,
                    began % kSecond);
  }
  text_ += format("# tenon trace: {}.{:09} s, {} events missing\n", seconds / kSecond,
                  seconds % kSecond, missing_);
  write();
}

void EventLog::write() {
  for (size_t at = 0; !error_ && at < text_.size();) {
    ssize_t count = ::write(file_, text_.data() + at, text_.size() - at);
    if (count >= 0)
      at += static_cast<size_t>(count);
    else if (errno != EINTR)
      error_ = errno;
  }
  text_.clear();
}

}  // namespace tn
