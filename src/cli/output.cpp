#include "cli/output.h"

#include <CLI/CLI.hpp>
#include <cerrno>
#include <cstdio>
#include <cstring>
#include <filesystem>
#include <fstream>
#include <iterator>

#include "base/error.h"
#include "cli/cli.h"

namespace tn {

void write_out(std::string_view text) {
  bool written = std::fwrite(text.data(), 1, text.size(), stdout) == text.size();
  if (written && std::fflush(stdout) == 0) return;
  if (errno == EPIPE) throw CLI::RuntimeError(kBrokenPipe);
  fail("the standard output: {}", std::strerror(errno));
}

void write_json(const Json& json) {
  // Names and paths need not be UTF-8.
  write_out(json.dump(2, ' ', false, Json::error_handler_t::replace) + "\n");
}

/// Characters, of UTF-8.
static size_t width(std::string_view text) {
  return static_cast<size_t>(
      std::ranges::count_if(text, [](char c) { return (c & 0xc0) != 0x80; }));
}

std::string table(const std::vector<std::vector<std::string>>& rows) {
  std::vector<size_t> widths;
  for (const auto& row : rows)
    for (size_t i = 0; i < row.size(); ++i) {
      if (i == widths.size()) widths.push_back(0);
      widths[i] = std::max(widths[i], width(row[i]));
    }
  std::string text;
  for (const auto& row : rows) {
    for (size_t i = 0; i + 1 < row.size(); ++i)
      text += row[i] + std::string(widths[i] - width(row[i]) + 2, ' ');
    text += row.back();
    text.resize(text.find_last_not_of(' ') + 1);
    text += '\n';
  }
  return text;
}

std::string seconds_text(double seconds) {
  if (seconds >= 1) return format("{:.3g} s", seconds);
  if (seconds >= 1e-3) return format("{:.3g} ms", seconds * 1e3);
  if (seconds >= 1e-6) return format("{:.3g} µs", seconds * 1e6);
  return format("{:.3g} ns", seconds * 1e9);
}

std::string read_text(const std::string& path) {
  std::string source = path == "-" ? "/dev/stdin" : path;
  std::error_code ignored;
  if (std::filesystem::is_directory(source, ignored))  // a stream would open it
    fail(Hint{"give the name of a file in it"}, "{} is a directory", path);
  std::ifstream file(source, std::ios::binary);
  if (!file) fail("cannot read {}: {}", path, std::strerror(errno));
  return {std::istreambuf_iterator<char>(file), {}};
}

bool is_executable(const std::string& path) {
  constexpr std::string_view kMagic = "TENONX";
  std::string begin(kMagic.size(), '\0');
  return path != "-" && std::ifstream(path, std::ios::binary).read(begin.data(), kMagic.size()) &&
         begin == kMagic;
}

void write_text(const std::string& path, std::string_view text) {
  errno = 0;
  std::ofstream file(path, std::ios::binary);
  file << text;
  file.close();
  if (!file) fail("cannot write {}: {}", path, std::strerror(errno));
}

}  // namespace tn
