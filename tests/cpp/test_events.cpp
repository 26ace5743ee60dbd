// Events: what is told arrives, once, in order, from every thread.
#include <doctest/doctest.h>
#include <fcntl.h>

#include <algorithm>
#include <thread>

#include "base/events.h"
#include "files.h"
#include "observe/event_log.h"
#include "observe/event_recorder.h"
#include "observe/instruction_log.h"

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
  post(event);
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
  } catch (int) {  // only the event is of interest
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

namespace {

void tell_step(uint64_t began, uint64_t nanoseconds, std::string_view name) {
  Event event(EventKind::step, name, began);
  event.nanoseconds = nanoseconds;
  post(event);
}

void tell_ops_of_flush(bool compiled) {
  OpListRef list = make_op_list({{"exp", 1, 0, log_line("exp", 1)}});
  Event event(EventKind::ops, "", event_time());
  event.value = reinterpret_cast<uint64_t>(list.get());
  event.compiled = compiled;
  post(event);
}

}  // namespace

TEST_CASE("events: steps of this thread, without those inside of them") {
  StepRecorder recorder;
  tell_step(10, 5, "before");
  tell_step(22, 3, "inside");
  tell_step(26, 2, "inside");
  tell_step(20, 10, "loop");
  tell_step(30, 5, "after");
  std::thread([] { tell_step(40, 5, "elsewhere"); }).join();
  recorder.stop();
  std::string names;
  for (const Event& step : recorder.steps) names += std::string(step.name()) + " ";
  CHECK(names == "before loop after ");
}

TEST_CASE("events: recorders say what people call ops, and which runs were compiled") {
  EventRecorder recorder(100);
  tell_step(1, 1, "dot");
  tell_ops_of_flush(true);
  post(Event(EventKind::run, "dot, exp, dot", event_time()));
  post(Event(EventKind::run, "maximum, " + std::string(60, 'b'), event_time()));
  recorder.stop();
  REQUIRE(recorder.events.size() == 5);
  CHECK(recorder.events[0].kind == EventKind::memory);  // in use when the recording began
  CHECK(recorder.events[1].name() == "matmul");
  CHECK(!recorder.events[1].compiled);
  CHECK(recorder.events[3].name() == "matmul, exp, matmul");
  CHECK(recorder.events[3].compiled);
  CHECK(recorder.events[4].name() == "maximum ...");
}

TEST_CASE("events: a trace is written as it goes, up to a bound") {
  Folder folder;
  std::string path = folder.path + "/trace.log";
  EventLog log(open(path.c_str(), O_WRONLY | O_CREAT, 0600), 3);
  for (int i = 0; i < 4; ++i) tell_number(7);
  Event placed(EventKind::step, "a\nb", event_time());
  post(placed);
  log.stop();
  CHECK(log.written() == 3);
  CHECK(log.missing() == 3);  // one line says how much memory was in use at the beginning
  std::string text = slurp(path);
  CHECK(text.find("s | #0002 | RUN        | THREAD | Share    | value=7 t=0.0") != text.npos);
  CHECK(text.ends_with(" s, 3 events missing\n"));
  CHECK(std::ranges::count(text, '\n') == 4);
}

TEST_CASE("events: a trace that cannot be written says so") {
  EventLog log(open("/dev/full", O_WRONLY), 10);
  tell_number(1);
  log.stop();
  CHECK(log.error() == ENOSPC);
}

TEST_CASE("events: a list of ops outlives the events that point to it") {
  EventRecorder recorder(3);
  for (int i = 0; i < 5; ++i) {
    OpListRef list = make_op_list({{"exp", 1, 0, log_line("exp", 1)}, {"add", 2, 0, ""}});
    Event event(EventKind::ops, "", event_time());
    event.value = reinterpret_cast<uint64_t>(list.get());
    post(event);
  }
  recorder.stop();
  CHECK(recorder.missing == 3);
  REQUIRE(recorder.events.size() == 3);
  CHECK(recorder.events[1].value == 2);
}

TEST_CASE("events: those of workers have their lines in the log") {
  Event sum(EventKind::collective, "AllReduce data", 5'000'000);
  sum.nanoseconds = 402'000, sum.waited = 113'000, sum.value = 802'816, sum.worker = 2;
  Event run(EventKind::worker_run, "13 ops", 4'000'000);
  run.nanoseconds = 2'871'000, run.value = 4, run.worker = 1, run.compiled = true;
  OpListRef list = make_op_list({{"dot", 2, 0, {}, 32'768}});
  Event sent(EventKind::worker_ops, "", 3'000'000);
  sent.value = reinterpret_cast<uint64_t>(list.get()), sent.worker = 0;
  LogLines lines;
  std::string text;
  for (const Event& event : {sent, sum, run}) lines.add(event, text);
  CHECK(text ==
        "  0.003s | #0001 | WORKER_SEND | WORKER worker_0 | WorkerBinaryOp | op=matmul 33KB\n"
        "  0.005s | #0002 | COLLECTIVE | WORKER worker_2 | AllReduce | 803KB | group=data "
        "took=0.402ms waited=0.113ms\n"
        "  0.006s | #0003 | WORKER_RECV | WORKER worker_1 | WorkerRun | 4B ops=13 took=2.871ms "
        "(COMPILED)\n");
}
