#include "observe/instruction_log.h"

#include <fcntl.h>
#include <sys/file.h>
#include <unistd.h>

#include <algorithm>
#include <charconv>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <utility>

#include "base/at_fork.h"
#include "base/debug_log.h"
#include "base/environment_number.h"
#include "observe/launched_worker.h"
#include "observe/op_events.h"
#include "sharding/traffic.h"

namespace tn {

namespace {

constexpr int64_t kDefaultMegabytes = 64, kMostMegabytes = int64_t{1} << 40;
constexpr size_t kNumberDigits = 4;  // of a line's number, at least

/// "  0.100s | #"
std::string time_text(uint64_t time) {
  return format("{:3}.{:03}s | #", time / 1'000'000'000, time / 1'000'000 % 1000);
}

std::string_view command_of(int operands) {
  constexpr std::string_view kCommands[] = {"CreateOp", "UnaryOp ", "BinaryOp", "TernaryOp"};
  auto n = static_cast<size_t>(operands);
  return n < std::size(kCommands) ? kCommands[n] : "NaryOp  ";
}

std::string_view stage_of(EventKind kind) {
  if (kind == EventKind::compile_starting) return "Starting";
  return kind == EventKind::compile_complete ? "Complete" : "Failed  ";
}

class InstructionLog : public Watcher {
 public:
  InstructionLog(std::string path, size_t most)
      : Watcher({EventKind::ops, EventKind::compile_starting, EventKind::compile_complete,
                 EventKind::compile_failed, EventKind::worker_ops, EventKind::worker_run,
                 EventKind::collective}),
        path_(std::move(path)),
        most_(most) {
    open();
  }
  bool is_open() const { return file_ >= 0; }
  void close() {
    if (is_open()) ::close(std::exchange(file_, -1));
  }

  void take(std::span<const Event> events) override {
    for (const Event& event : events) {
      if (!wants(event)) continue;
      lines_.add(event, text_);
      if (text_.size() >= kBlock) write();
    }
    write();
  }

 private:
  static constexpr size_t kBlock = 1 << 16;

  void open() {
    file_ = ::open(path_.c_str(), O_WRONLY | O_CREAT | O_CLOEXEC, 0666);
    written_ = 0;
    if (file_ < 0) return give_up(std::strerror(errno));
    // Programs that the program starts have the same environment: the file stays its own.
    if (flock(file_, LOCK_EX | LOCK_NB) && errno == EWOULDBLOCK)
      return give_up("it is the log of another process");
    if (ftruncate(file_, 0) && errno != EINVAL) give_up(std::strerror(errno));  // EINVAL: a pipe
  }

  /// No caller could catch an error, and the program must not end because of its log.
  void give_up(std::string_view why) {
    write_debug_line(format(
        "[LOG] TENON_INSTRUCTION_LOG: cannot write {}: {}; nothing more is logged", path_, why));
    close();
  }

  void write() {
    if (written_ + text_.size() > most_ && written_) rotate();
    for (size_t at = 0; is_open() && at < text_.size();) {
      ssize_t count = ::write(file_, text_.data() + at, text_.size() - at);
      if (count >= 0)
        at += static_cast<size_t>(count), written_ += static_cast<size_t>(count);
      else if (errno != EINTR)
        give_up(std::strerror(errno));
    }
    text_.clear();
  }

  void rotate() {
    if (!is_open()) return;
    close();
    std::rename(path_.c_str(), (path_ + ".1").c_str());
    open();
  }

  const std::string path_;
  const size_t most_;
  int file_ = -1;
  size_t written_ = 0;
  std::string text_;
  LogLines lines_;
};

InstructionLog* log_of_process = nullptr;  // lives as long as the process

}  // namespace

std::string log_line(std::string_view op, int operands) {
  int worker = worker_of_process.load();
  std::string who = worker < 0 ? std::string() : format(" worker_{}", worker);
  return format(" | RECV       | CLIENT{} | {} | op={}", who, command_of(operands), op);
}

LogLines::LogLines() : before_(time_since_launch(0)) {}

void LogLines::add_number(std::string& text) {
  char digits[20];
  auto end = std::to_chars(digits, digits + sizeof digits, ++number_).ptr;
  auto count = static_cast<size_t>(end - digits);
  if (count < kNumberDigits) text.append(kNumberDigits - count, '0');
  text.append(digits, count);
}

/// Most lines by far are made here.
void LogLines::add_ops(const Event& event, std::string& text) {
  uint64_t began = before_ + event.began, milliseconds = began / 1'000'000;
  if (milliseconds != std::exchange(milliseconds_, milliseconds)) time_ = time_text(began);
  std::string_view end = event.compiled ? " (COMPILED)\n" : "\n";
  for (const OpList::Op& op : event.ops().ops) {
    text += time_;
    add_number(text);
    text += op.line;
    text += end;
  }
}

/// "WORKER_SEND | WORKER worker_0 | WorkerBinaryOp | op=matmul 4.1KB", an op each.
void LogLines::add_worker_ops(const Event& event, std::string& text) {
  std::string time = time_text(before_ + event.began);
  for (const OpList::Op& op : event.ops().ops) {
    text += time;
    add_number(text);
    text += format(" | WORKER_SEND | WORKER worker_{} | Worker{} | op={} {}{}\n", event.worker,
                   command_of(op.operands), called_names(op.name), sharding::short_bytes(op.bytes),
                   event.compiled ? " (COMPILED)" : "");
  }
}

/// The workers of a group: the first, the step between them, how many. Meshes have several groups
/// along an axis.
static std::string peers_text(const Peers& peers) {
  if (peers.first < 0) return "";
  return format(" peers={},{},{}", peers.first, peers.step, peers.count);
}

void LogLines::add_worker(const Event& event, std::string& text) {
  auto bytes = sharding::short_bytes(static_cast<int64_t>(event.value));
  auto milliseconds = [](uint64_t ns) {
    return format("{:.3f}ms", 1e-6 * static_cast<double>(ns));
  };
  std::string_view name = event.name(), command = name.substr(0, name.find(' '));
  std::string_view rest = name.substr(std::min(name.size(), command.size() + 1));
  if (event.kind == EventKind::worker_run)
    text += format(" | WORKER_RECV | WORKER worker_{} | WorkerRun | {} ops={} took={}{}\n",
                   event.worker, bytes, command, milliseconds(event.nanoseconds),
                   event.compiled ? " (COMPILED)" : "");
  else
    text += format(" | COLLECTIVE | WORKER worker_{} | {} | {} | group={} took={} waited={}{}\n",
                   std::max(event.worker, 0), command, bytes, rest, milliseconds(event.nanoseconds),
                   milliseconds(event.waited), peers_text(event.peers));
}

void LogLines::add(const Event& event, std::string& text) {
  if (event.kind == EventKind::ops) return add_ops(event, text);
  if (event.kind == EventKind::worker_ops) return add_worker_ops(event, text);
  text += time_text(before_ + event.began + event.nanoseconds);
  add_number(text);
  if (event.kind == EventKind::worker_run || event.kind == EventKind::collective)
    return add_worker(event, text);
  bool said = event.kind == EventKind::compile_failed && event.name_length;
  text += format(" | COMPILE    | WORKER | {} | sequence={:012x}{}{}\n", stage_of(event.kind),
                 event.value >> 16, said ? " " : "", said ? event.name() : "");
}

void start_instruction_log() {
  find_worker_of_process();
  const char* given = std::getenv("TENON_INSTRUCTION_LOG");
  if (!given || !*given || log_of_process) return;
  // Processes cannot share a file. Times are those since the launch: `sort -n log*` joins them.
  int worker = worker_of_process.load();
  std::string path = worker > 0 ? format("{}.worker_{}", given, worker) : given;
  int64_t most = environment_number("TENON_INSTRUCTION_LOG_MB", 1, kDefaultMegabytes);
  log_of_process =
      new InstructionLog(path, static_cast<size_t>(std::min(most, kMostMegabytes)) << 20);
  if (!log_of_process->is_open()) return;
  log_of_process->start();
  in_child_after_fork([] { log_of_process->close(); });  // or it would keep the file open
  std::atexit([] { log_of_process->stop(); });
}

void stop_instruction_log() {
  if (!log_of_process || !log_of_process->is_open()) return;
  log_of_process->stop();
  log_of_process->close();
}

}  // namespace tn
