#pragma once
// The instruction log: every op that is run and everything that is compiled, a line each.
//
//     0.100s | #0010 | RECV       | CLIENT | BinaryOp | op=matmul
//     1.500s | #0150 | COMPILE    | WORKER | Starting | sequence=abc123def456
//
// On meshes there are also what each worker runs, and the collectives it takes part in:
//
//     0.101s | #0011 | WORKER_SEND | WORKER worker_0 | WorkerBinaryOp | op=matmul 4.1KB
//     0.102s | #0012 | COLLECTIVE | WORKER worker_0 | AllReduce | 4.1KB | group=data took=0.391ms
//     0.102s | #0013 | WORKER_RECV | WORKER worker_0 | WorkerRun | 4.1KB ops=2 took=0.391ms
//
// Lines are made and written by the thread that collects events, so that a program hardly waits for
// them. A full file is moved to "path.1", in place of the one there.
#include <string>

#include "base/events.h"
#include "base/text.h"

namespace tn {

/// Starts what TENON_INSTRUCTION_LOG=path asks for; TENON_INSTRUCTION_LOG_MB (64) bounds the file.
void start_instruction_log();

/// Ends it and closes the file, for a process that starts those whose log it is.
void stop_instruction_log();

/// " | RECV       | CLIENT | BinaryOp | op=matmul"
std::string log_line(std::string_view op, int operands);

/// Turns events into the lines of the log.
class LogLines {
 public:
  LogLines();
  void add(const Event& event, std::string& text);

 private:
  void add_number(std::string& text);
  void add_ops(const Event& event, std::string& text);
  void add_worker_ops(const Event& event, std::string& text);
  void add_worker(const Event& event, std::string& text);
  const uint64_t before_;  // nanoseconds from the launch to the load of the library
  uint64_t number_ = 0;
  uint64_t milliseconds_ = ~uint64_t{0};  // of `time_`, the beginning of the last lines
  std::string time_;
};

}  // namespace tn
