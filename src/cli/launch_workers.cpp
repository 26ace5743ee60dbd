// A worker that fails makes the calls of all others fail, which names it. Those that do not end by
// themselves are terminated, then killed. Workers die with their launcher.
#include "cli/launch_workers.h"

#include <fcntl.h>
#include <signal.h>
#include <sys/prctl.h>
#include <sys/wait.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <chrono>
#include <cstdlib>
#include <cstring>
#include <optional>
#include <span>
#include <thread>

#include "base/error.h"
#include "cli/launch_output.h"
#include "workers/shared_transport.h"

extern char** environ;

namespace tn::workers {
namespace {

using Clock = std::chrono::steady_clock;
constexpr auto kGrace = std::chrono::seconds(5);  // to end by itself, then after SIGTERM
constexpr int kCannotStart = 127;                 // as a shell says it

const Clock::time_point kLaunched = Clock::now();  // the times of logs count from here

volatile sig_atomic_t signal_received = 0;
void remember(int signal) { signal_received = signal; }

/// While one lives, signals that ask this process to end are only remembered.
class SignalsRemembered {
 public:
  SignalsRemembered() {
    signal_received = 0;
    struct sigaction action = {};
    action.sa_handler = remember;
    for (size_t i = 0; i < std::size(kSignals); ++i) sigaction(kSignals[i], &action, &before_[i]);
  }
  ~SignalsRemembered() {
    for (size_t i = 0; i < std::size(kSignals); ++i) sigaction(kSignals[i], &before_[i], nullptr);
  }
  SignalsRemembered(const SignalsRemembered&) = delete;

 private:
  static constexpr int kSignals[] = {SIGINT, SIGTERM, SIGHUP};
  struct sigaction before_[std::size(kSignals)];
};

/// The environment of a worker; strings that the child only reads.
std::vector<std::string> environment_of(int rank, const LaunchRequest& request, int file,
                                        int restart) {
  std::vector<std::string> variables;
  for (char** entry = environ; *entry; ++entry) {
    std::string_view text = *entry;
    std::string_view name = text.substr(0, text.find('='));
    constexpr std::string_view kOwn[] = {"TENON_RANK",         "TENON_SIZE",
                                         "TENON_WORLD_MEMORY", "TENON_RESTART",
                                         "TENON_LAUNCH_TIME",  "TENON_WORKER_PROCESS"};
    if (!std::ranges::count(kOwn, name)) variables.emplace_back(text);
  }
  auto add = [&](const char* name, int value) {
    variables.push_back(format("{}={}", name, value));
  };
  add("TENON_RANK", rank), add("TENON_SIZE", request.size), add("TENON_WORLD_MEMORY", file);
  add("TENON_RESTART", restart);
  variables.push_back(format("TENON_LAUNCH_TIME={}", kLaunched.time_since_epoch().count()));
  int cores = static_cast<int>(std::thread::hardware_concurrency());
  int threads = request.threads ? request.threads : std::max(1, cores / request.size);
  if (request.threads || !std::getenv("TENON_NUM_THREADS")) add("TENON_NUM_THREADS", threads);
  return variables;
}

std::vector<char*> pointers_to(const std::vector<std::string>& texts) {
  std::vector<char*> pointers;
  for (const std::string& text : texts) pointers.push_back(const_cast<char*>(text.c_str()));
  pointers.push_back(nullptr);
  return pointers;
}

class Launch {
 public:
  Launch(const LaunchRequest& request, int restart, void (*report)(const std::string&))
      : request_(request),
        restart_(restart),
        report_(report),
        memory_(WorldMemory::make(request.size)) {}

  int run() {
    BrokenPipesIgnored ignored;
    if (request_.size > 1)
      for (int rank = 0; rank < request_.size; ++rank) open_outputs();
    for (int rank = 0; rank < request_.size; ++rank) start(rank);
    while (running_ > 0) {
      pass_signal_on();
      if (!reap()) forward_output(outputs_, std::chrono::milliseconds(5));
      if (deadline_ && Clock::now() > *deadline_) end_harder();
    }
    return code_;
  }

  /// Whether a restart may help: a worker failed, and the user did not end it.
  bool may_restart() const { return code_ != 0 && code_ != kCannotStart && !is_stopping_; }
  /// That ended before the launcher had to end them.
  int lost() const { return lost_; }

 private:
  void start(int rank) {
    std::vector<std::string> variables = environment_of(rank, request_, memory_->file(), restart_);
    std::vector<char*> words = pointers_to(request_.command), names = pointers_to(variables);
    int out = given_output(rank, STDOUT_FILENO), errors = given_output(rank, STDERR_FILENO);
    pid_t launcher = getpid(), child = fork();
    if (child < 0) {
      int error = errno;
      for (pid_t other : children_)
        if (other) kill(other, SIGKILL), waitpid(other, nullptr, 0);
      fail("launch: cannot start worker {}: {}", rank, std::strerror(error));
    }
    if (child == 0) {  // only calls that are safe between fork and exec
      prctl(PR_SET_PDEATHSIG, SIGKILL);
      bool is_alone = getppid() != launcher;
      if (is_alone || fcntl(memory_->file(), F_SETFD, 0) < 0) _exit(kCannotStart);
      if (out >= 0) dup2(out, STDOUT_FILENO);
      if (errors >= 0) dup2(errors, STDERR_FILENO);
      execvpe(words[0], words.data(), names.data());
      _exit(kCannotStart);
    }
    children_.push_back(child);
    for (LaunchOutput& output : outputs_of(rank)) output.close_given();
    ++running_;
  }

  /// Of one worker: one for both streams, if they are one file.
  void open_outputs() {
    outputs_.push_back(LaunchOutput::to(STDOUT_FILENO));
    if (!is_joined_) outputs_.push_back(LaunchOutput::to(STDERR_FILENO));
  }
  std::span<LaunchOutput> outputs_of(int rank) {
    if (outputs_.empty()) return {};
    size_t each = is_joined_ ? 1 : 2;
    return std::span(outputs_).subspan(static_cast<size_t>(rank) * each, each);
  }
  int given_output(int rank, int stream) {
    std::span<LaunchOutput> own = outputs_of(rank);
    if (own.empty()) return -1;
    return (stream == STDOUT_FILENO ? own.front() : own.back()).given();
  }

  void pass_signal_on() {
    int signal = signal_received;
    if (!signal) return;
    signal_received = 0;
    if (code_ == 0) code_ = 128 + signal;
    is_stopping_ = true;
    // A terminal sends SIGINT to the workers as well.
    if (signal != SIGINT)
      for (pid_t child : children_)
        if (child) kill(child, signal);
    set_deadline();
  }

  void set_deadline() {
    if (!deadline_) deadline_ = Clock::now() + kGrace;
  }

  void end_harder() {
    for (pid_t child : children_)
      if (child) kill(child, is_terminated_ ? SIGKILL : SIGTERM);
    is_terminated_ = true;
    deadline_ = Clock::now() + kGrace;
  }

  /// Whether a worker has ended.
  bool reap() {
    for (int rank = 0; rank < request_.size; ++rank) {
      pid_t& child = children_[static_cast<size_t>(rank)];
      int status = 0;
      if (!child || waitpid(child, &status, WNOHANG) <= 0) continue;
      child = 0, --running_;
      for (LaunchOutput& output : outputs_of(rank)) output.finish();
      ended(rank, status);
      return true;
    }
    return false;
  }

  void ended(int rank, int status) {
    WorkerRecord& record = memory_->record(rank);
    bool is_well = WIFEXITED(status) && WEXITSTATUS(status) == 0;
    if (!is_well) failed(rank, status);  // first, so that the others report it
    record.ended = 1;
    wake(record.arrived);
  }

  void failed(int rank, int status) {
    WorkerRecord& record = memory_->record(rank);
    std::string how = WIFSIGNALED(status) ? format("was killed by signal {}", WTERMSIG(status))
                      : WEXITSTATUS(status) == kCannotStart
                          ? format("could not start {}", request_.command[0])
                          : format("ended with code {}", WEXITSTATUS(status));
    std::string text = format("worker {} {}{}", rank, how, whereabouts(record));
    // Those that end because of the first one are not lost.
    if (WIFSIGNALED(status) && !is_terminated_) ++lost_;
    memory_->fail_all(text);
    if (code_ == 0) {
      code_ = WIFSIGNALED(status) ? 128 + WTERMSIG(status) : WEXITSTATUS(status);
      if (!is_stopping_) report_(text);
    }
    set_deadline();
  }

  const LaunchRequest& request_;
  int restart_, lost_ = 0;
  void (*report_)(const std::string&);
  std::shared_ptr<WorldMemory> memory_;
  std::vector<pid_t> children_;
  const bool is_joined_ = is_one_file(STDOUT_FILENO, STDERR_FILENO);
  std::vector<LaunchOutput> outputs_;
  int running_ = 0, code_ = 0;
  bool is_stopping_ = false, is_terminated_ = false;
  std::optional<Clock::time_point> deadline_;
};

}  // namespace

int launch(const LaunchRequest& given, void (*report)(const std::string&)) {
  SignalsRemembered signals;
  LaunchRequest request = given;
  for (int restart = 0;; ++restart) {
    Launch launch(request, restart, report);
    int code = launch.run();
    if (restart == request.restarts || !launch.may_restart()) return code;
    request.size = std::max(request.least, request.size - launch.lost());
    report(
        format("restart {} of {}, with {} workers", restart + 1, request.restarts, request.size));
  }
}

}  // namespace tn::workers
