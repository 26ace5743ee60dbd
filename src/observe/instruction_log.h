#pragma once
// The instruction log: every op that is run and everything that is compiled, a line each.
//
//     0.100s | #0010 | RECV       | CLIENT | BinaryOp | op=matmul
//     1.500s | #0150 | COMPILE    | WORKER | Starting | sequence=abc123def456
//
// Lines are made and written by the thread that collects events, so that a program hardly waits for
// them. A full file is moved to "path.1", in place of the one there.
#include <string>

#include "base/events.h"
#include "base/text.h"

namespace tn {

/// Starts what TENON_INSTRUCTION_LOG=path asks for; TENON_INSTRUCTION_LOG_MB (64) bounds the file.
void start_instruction_log();

/// " | RECV       | CLIENT | BinaryOp | op=matmul"
std::string log_line(std::string_view op, int operands);

/// Turns events into the lines of the log.
class LogLines {
 public:
  void add(const Event& event, std::string& text);

 private:
  void add_number(std::string& text);
  void add_ops(const Event& event, std::string& text);
  uint64_t number_ = 0;
  uint64_t milliseconds_ = ~uint64_t{0};  // of `time_`, the beginning of the last lines
  std::string time_;
};

}  // namespace tn
