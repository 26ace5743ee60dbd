// Events: what is told arrives, once, in order, from every thread.
#include <doctest/doctest.h>

#include <thread>

#include "base/events.h"
#include "frontend/event_tape.h"
#include "frontend/instruction_log.h"

using namespace tn;

namespace {

struct Collected : Watcher {
  explicit Collected(EventKind kind) : Watcher({kind}) {}
  void take(std::span<const Event> told) override {
    for (const Event& event : told)
      if (wants(event)) events.push_back(event);
  }
  std::vector<Event> events;
};

void tell_number(uint64_t value) {
  Event event(EventKind::share, "work", event_time());
  event.value = value;
  tell(event);
}

}  // namespace

TEST_CASE("events: only kinds that somebody watches, only while somebody does") {
  CHECK(!has_watcher(EventKind::share));
  Collected shares(EventKind::share);
  shares.start();
  CHECK(has_watcher(EventKind::share));
  CHECK(!has_watcher(EventKind::memory));
  tell_number(7);
  shares.stop();
  CHECK(!has_watcher(EventKind::share));
  REQUIRE(shares.events.size() == 1);
  CHECK(shares.events[0].value == 7);
  CHECK(shares.events[0].name() == "work");
}

TEST_CASE("events: nothing is lost, and those of a thread keep their order") {
  constexpr uint64_t kThreads = 4, kEach = 20'000;  // some rings full
  Collected shares(EventKind::share);
  shares.start();
  std::vector<std::thread> threads;
  for (uint64_t t = 0; t < kThreads; ++t)
    threads.emplace_back([t] {
      for (uint64_t i = 0; i < kEach; ++i) tell_number(t * kEach + i);
    });
  for (std::thread& thread : threads) thread.join();
  shares.stop();
  REQUIRE(shares.events.size() == kThreads * kEach);
  std::vector<uint64_t> next(kThreads);
  for (const Event& event : shares.events)
    CHECK(event.value % kEach == next[event.value / kEach]++);
}

TEST_CASE("events: names are cut, compilations tell how they end") {
  Collected failed(EventKind::compile_failed), complete(EventKind::compile_complete);
  Collected starting(EventKind::compile_starting);
  for (Watcher* w : {&failed, &complete, &starting}) w->start();
  {
    CompileEvents outer(0xabc123def4560000, std::string(100, 'x'));
    CompileEvents inner(1, "part of it");
  }
  try {
    CompileEvents events(2, "f");
    throw 1;
  } catch (int) {
  }
  for (Watcher* w : {&failed, &complete, &starting}) w->stop();
  CHECK(starting.events.size() == 2);
  REQUIRE(complete.events.size() == 1);
  CHECK(complete.events[0].name() == std::string(56, 'x'));
  REQUIRE(failed.events.size() == 1);
  CHECK(failed.events[0].value == 2);
  std::string text;
  LogLines().add(complete.events[0], text);
  CHECK(text.ends_with("s | #0001 | COMPILE    | WORKER | Complete | sequence=abc123def456\n"));
}

TEST_CASE("events: a list of ops outlives the events that point to it") {
  EventTape tape(3);
  for (int i = 0; i < 5; ++i) {
    OpListRef list = make_op_list({{"exp", 1, 0, log_line("exp", 1)}, {"add", 2, 0, ""}});
    Event event(EventKind::ops, "", event_time());
    event.value = reinterpret_cast<uint64_t>(list.get());
    tell(event);
  }
  tape.stop();
  CHECK(tape.missing == 2);
  REQUIRE(tape.events.size() == 3);
  CHECK(tape.events[0].value == 2);
}
