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
                 EventKind::compile_failed}),
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
  return format(" | RECV       | CLIENT | {} | op={}", command_of(operands), op);
}

void LogLines::add_number(std::string& text) {
  char digits[20];
  auto end = std::to_chars(digits, digits + sizeof digits, ++number_).ptr;
  auto count = static_cast<size_t>(end - digits);
  if (count < kNumberDigits) text.append(kNumberDigits - count, '0');
  text.append(digits, count);
}

/// Most lines by far are made here.
void LogLines::add_ops(const Event& event, std::string& text) {
  uint64_t milliseconds = event.began / 1'000'000;
  if (milliseconds != std::exchange(milliseconds_, milliseconds)) time_ = time_text(event.began);
  std::string_view end = event.compiled ? " (COMPILED)\n" : "\n";
  for (const OpList::Op& op : event.ops().ops) {
    text += time_;
    add_number(text);
    text += op.line;
    text += end;
  }
}

void LogLines::add(const Event& event, std::string& text) {
  if (event.kind == EventKind::ops) return add_ops(event, text);
  text += time_text(event.began + event.nanoseconds);
  add_number(text);
  bool said = event.kind == EventKind::compile_failed && event.name_length;
  text += format(" | COMPILE    | WORKER | {} | sequence={:012x}{}{}\n", stage_of(event.kind),
                 event.value >> 16, said ? " " : "", said ? event.name() : "");
}

void start_instruction_log() {
  const char* path = std::getenv("TENON_INSTRUCTION_LOG");
  if (!path || !*path || log_of_process) return;
  int64_t most = environment_number("TENON_INSTRUCTION_LOG_MB", 1, kDefaultMegabytes);
  log_of_process =
      new InstructionLog(path, static_cast<size_t>(std::min(most, kMostMegabytes)) << 20);
  if (!log_of_process->is_open()) return;
  log_of_process->start();
  in_child_after_fork([] { log_of_process->close(); });  // or it would keep the file open
  std::atexit([] { log_of_process->stop(); });
}

}  // namespace tn
