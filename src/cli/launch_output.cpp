#include "cli/launch_output.h"

#include <fcntl.h>
#include <poll.h>
#include <signal.h>
#include <stdlib.h>
#include <sys/ioctl.h>
#include <sys/stat.h>
#include <termios.h>
#include <unistd.h>

#include <cerrno>
#include <cstring>
#include <optional>
#include <utility>

#include "base/error.h"

namespace tn::workers {
namespace {

using Clock = std::chrono::steady_clock;
constexpr auto kPatience = std::chrono::milliseconds(50);  // with a line that is incomplete
constexpr size_t kLongest = size_t{1} << 20;               // of a line that is kept whole

struct Ends {
  int own, given;
};

Ends open_pipe() {
  int ends[2];
  if (pipe2(ends, O_CLOEXEC) != 0) fail("launch: cannot make a pipe: {}", std::strerror(errno));
  return {ends[0], ends[1]};
}

/// A terminal, so that programs print line by line and in colour as on that of the launcher, which
/// alone changes what it gets.
Ends open_terminal(int target) {
  int own = posix_openpt(O_RDWR | O_NOCTTY | O_CLOEXEC), given = -1;
  char name[128];
  if (own >= 0 && grantpt(own) == 0 && unlockpt(own) == 0 && !ptsname_r(own, name, sizeof name))
    given = open(name, O_RDWR | O_NOCTTY | O_CLOEXEC);
  if (given < 0) {
    if (own >= 0) close(own);
    return open_pipe();
  }
  termios mode;
  if (tcgetattr(given, &mode) == 0) {
    cfmakeraw(&mode);
    tcsetattr(given, TCSANOW, &mode);
  }
  winsize window;
  if (ioctl(target, TIOCGWINSZ, &window) == 0) ioctl(given, TIOCSWINSZ, &window);
  return {own, given};
}

/// How many bytes were written before a signal came; none: the reader is closed.
std::optional<size_t> write_all(int target, const char* data, size_t bytes) {
  size_t done = 0;
  while (done < bytes) {
    ssize_t written = write(target, data + done, bytes - done);
    if (written >= 0) {
      done += static_cast<size_t>(written);
    } else if (errno == EAGAIN) {
      pollfd ready = {target, POLLOUT, 0};
      if (poll(&ready, 1, -1) < 0) break;
    } else if (errno == EINTR) {
      break;
    } else {
      return std::nullopt;
    }
  }
  return done;
}

}  // namespace

LaunchOutput::LaunchOutput(LaunchOutput&& other) noexcept
    : target_(other.target_),
      own_(std::exchange(other.own_, -1)),
      given_(std::exchange(other.given_, -1)),
      rest_(std::move(other.rest_)),
      last_(other.last_) {}

LaunchOutput LaunchOutput::to(int target) {
  if (fcntl(target, F_GETFD) < 0) return {};  // the launcher has none
  Ends ends = isatty(target) ? open_terminal(target) : open_pipe();
  fcntl(ends.own, F_SETFL, fcntl(ends.own, F_GETFL) | O_NONBLOCK);
  LaunchOutput made;
  made.target_ = target, made.own_ = ends.own, made.given_ = ends.given;
  return made;
}

void LaunchOutput::close_given() {
  if (given_ >= 0) close(std::exchange(given_, -1));
}

void LaunchOutput::close_own() {
  close_given();
  if (own_ >= 0) close(std::exchange(own_, -1));
}

/// If the reader is closed, writes of the worker fail, as if it wrote there by itself.
void LaunchOutput::forward(size_t bytes) {
  std::optional<size_t> done = write_all(target_, rest_.data(), bytes);
  if (!done) close_own();
  rest_.erase(0, done.value_or(rest_.size()));
}

void LaunchOutput::read_on() {
  char buffer[1 << 16];
  while (own_ >= 0) {
    ssize_t got = read(own_, buffer, sizeof buffer);
    if (got < 0 && errno == EINTR) continue;
    if (got < 0 && errno == EAGAIN) return;
    if (got <= 0) {  // all have closed it
      forward(rest_.size());
      return close_own();
    }
    rest_.append(buffer, static_cast<size_t>(got));
    last_ = Clock::now();
    size_t end = rest_.rfind('\n');
    if (end != rest_.npos) forward(end + 1);
    if (rest_.size() > kLongest) forward(rest_.size());
    if (got < static_cast<ssize_t>(sizeof buffer)) return;  // others take turns
  }
}

void LaunchOutput::forward_late() {
  if (has_rest() && Clock::now() - last_ >= kPatience) forward(rest_.size());
}

void LaunchOutput::finish() {
  constexpr int kMost = 16;  // more than fits: what another process goes on to write there is lost
  for (int i = 0; i < kMost && own_ >= 0; ++i) {
    pollfd ready = {own_, POLLIN, 0};
    if (poll(&ready, 1, 0) <= 0 && errno != EINTR) break;
    read_on();
  }
  while (has_rest()) forward(rest_.size());
}

bool is_one_file(int a, int b) {
  struct stat first, second;
  return fstat(a, &first) == 0 && fstat(b, &second) == 0 && first.st_dev == second.st_dev &&
         first.st_ino == second.st_ino;
}

/// A handler, and not SIG_IGN, which workers would inherit.
BrokenPipesIgnored::BrokenPipesIgnored() : before_(signal(SIGPIPE, [](int) {})) {
  if (before_ == SIG_IGN) signal(SIGPIPE, SIG_IGN);
}

BrokenPipesIgnored::~BrokenPipesIgnored() { signal(SIGPIPE, before_); }

void forward_output(std::vector<LaunchOutput>& outputs, std::chrono::milliseconds most) {
  std::vector<pollfd> ready;
  for (const LaunchOutput& one : outputs) ready.push_back({one.own(), POLLIN, 0});
  poll(ready.data(), ready.size(), static_cast<int>(most.count()));
  for (size_t i = 0; i < outputs.size(); ++i) {
    if (ready[i].revents) outputs[i].read_on();
    outputs[i].forward_late();
  }
}

}  // namespace tn::workers
