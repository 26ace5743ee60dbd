#include "base/error.h"

#include <fcntl.h>
#include <sys/resource.h>
#include <unistd.h>

#include <cstdio>
#include <cstdlib>

#include "tenon/callback.h"
#include "tenon/shared_ptr.h"

namespace tn {

std::string (*user_place)() = nullptr;
bool (*user_writes_cpp)() = nullptr;

static std::string with_place_and_hint(std::string text, const Hint& hint) {
  if (user_place)
    if (std::string place = user_place(); !place.empty()) text += "\n  at " + place;
  bool has_cpp = !hint.cpp.empty() && (!user_writes_cpp || user_writes_cpp());
  const std::string& advice = has_cpp ? hint.cpp : hint.text;
  if (!advice.empty()) text += "\n  hint: " + advice;
  return text;
}

void fail_moved_from() {
  fail(Fault::type, "a function that was moved from is used: it holds nothing");
}
void fail_empty_callback() { fail(Fault::type, "an empty tn::Callback was called"); }

static const char* const kSites = std::getenv("TENON_ERROR_SITES");

void log_error_site(std::string_view site) noexcept {
  if (!kSites) return;
  int file = open(kSites, O_WRONLY | O_APPEND | O_CREAT | O_CLOEXEC, 0666);
  if (file < 0) return;
  // A process with a limit of the size of files would get a signal for a log beyond it.
  rlimit limit{};
  bool is_limited = getrlimit(RLIMIT_FSIZE, &limit) == 0 && limit.rlim_cur != RLIM_INFINITY;
  if (!is_limited) dprintf(file, "%.*s\n", static_cast<int>(site.size()), site.data());
  close(file);
}

void log_error_site(ErrorSite site) noexcept {
  char digits[17];
  std::snprintf(digits, sizeof digits, "%016llx", static_cast<unsigned long long>(site.id));
  log_error_site(std::string_view(digits, 16));
}

void throw_user(ErrorSite site, Fault fault, std::string text, const Hint& hint) {
  log_error_site(site);
  throw UserError(fault, with_place_and_hint(std::move(text), hint));
}

void throw_unsupported(ErrorSite site, std::string text, const Hint& hint) {
  log_error_site(site);
  throw Unsupported(with_place_and_hint(std::move(text), hint));
}

void throw_internal(std::string text) {
  throw InternalError(
      "internal error: " + with_place_and_hint(std::move(text), {}) +
      "\n  this is a defect of tenon; please report it with the program that shows it");
}

}  // namespace tn
