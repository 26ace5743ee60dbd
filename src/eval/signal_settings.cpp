#include "eval/signal_settings.h"

#include <algorithm>
#include <array>
#include <cctype>
#include <charconv>
#include <cstring>
#include <filesystem>
#include <fstream>

#include "base/error.h"
#include "eval/modes.h"
#include "eval/yaml.h"

namespace tn {

namespace {

using Yaml = YamlNode::Kind;

constexpr int64_t kMostWorkers = 65536;

/// A value, and how errors call it: "signal.load: config.yaml:3: forward.compile".
struct Value {
  std::string_view where;
  std::string path;
  YamlRef node;
  int line;

  [[noreturn]] void bad(std::string_view what, const Hint& hint = {},
                        int source_line = __builtin_LINE()) const {
    throw_user(ErrorSite::here().at(source_line), Fault::value,
               format("{}:{}: {}: {}", where, line, path, what), hint);
  }
  /// What was found, for "needs X, not Y".
  std::string found() const {
    switch (node->kind) {
      case Yaml::nothing:
        return "nothing";
      case Yaml::list:
        return "a list";
      case Yaml::map:
        return "a map";
      case Yaml::text:
        break;
    }
    std::string shown = node->text.substr(0, 40);
    while (!shown.empty() && shown.size() < node->text.size() &&
           (static_cast<unsigned char>(node->text[shown.size()]) & 0xc0) == 0x80)
      shown.pop_back();
    return format("'{}'{}", shown, shown.size() < node->text.size() ? "..." : "");
  }
  Value at(const YamlNode::Field& field) const {
    return {where, path.empty() ? field.key : path + "." + field.key, field.value, field.line};
  }
  /// Calls `take` with each field of a map, whose key is in `known`.
  template <size_t N, class F>
  void each_field(const std::array<std::string_view, N>& known, F&& take) const {
    for (const YamlNode::Field& field : node->fields) {
      Value value = at(field);
      if (std::ranges::find(known, field.key) != known.end()) {
        take(field.key, value);
        continue;
      }
      std::string_view nearest = nearest_name(field.key, known);
      value.bad(format("unknown key; there are {}", join(known, ", ")),
                {nearest.empty() ? "" : format("did you mean '{}'?", nearest)});
    }
  }

  std::optional<bool> is_bool() const {
    if (node->kind != Yaml::text || node->quoted) return {};
    std::string word = node->text;
    std::ranges::transform(word, word.begin(), [](unsigned char c) { return std::tolower(c); });
    if (word == "true" || word == "yes" || word == "on") return true;
    if (word == "false" || word == "no" || word == "off") return false;
    return {};
  }
  bool to_bool() const {
    std::optional<bool> value = is_bool();
    if (!value) bad(format("needs true or false, not {}", found()));
    return *value;
  }
  int64_t to_int() const {
    int64_t value = 0;
    const char* end = node->text.data() + node->text.size();
    auto [stop, error] = std::from_chars(node->text.data(), end, value);
    if (node->kind != Yaml::text || node->quoted || error != std::errc{} || stop != end)
      bad(format("needs an integer, not {}", found()));
    return value;
  }
  std::string to_name() const {
    if (node->kind != Yaml::text) bad(format("needs the name of a signal, not {}", found()));
    check_name(node->text);
    return node->text;
  }
  void check_name(std::string_view name) const {
    if (name.empty()) bad("the name of a signal is empty");
    if (name.size() > kLongestName)
      bad(format("a name has at most {} bytes, not {}", kLongestName, name.size()));
  }
};

signal::Compile read_compile(const Value& value) {
  if (std::optional<bool> wanted = value.is_bool()) return {.wanted = *wanted};
  if (value.node->kind != Yaml::map)
    value.bad(format("needs true, false, or {{mode, threshold}}, not {}", value.found()));
  signal::Compile compile;
  constexpr std::array<std::string_view, 2> kKeys = {"mode", "threshold"};
  value.each_field(kKeys, [&](const std::string& key, const Value& field) {
    if (key == "threshold") {
      compile.threshold = field.to_int();
      if (compile.threshold < 1) field.bad(format("needs 1 or more, not {}", field.found()));
      return;
    }
    if (std::ranges::find(kModes, field.node->text) == kModes.end()) {
      std::string_view nearest = nearest_name(field.node->text, kModes);
      field.bad(format("needs {}, not {}", join(kModes, ", "), field.found()),
                {nearest.empty() ? "" : format("did you mean '{}'?", nearest)});
    }
    compile.mode = field.node->text;
  });
  return compile;
}

/// Nothing stands for all of them.
std::vector<int64_t> read_workers(const Value& value) {
  if (value.node->kind == Yaml::nothing) return {};
  if (value.node->kind != Yaml::list || value.node->items.empty())
    value.bad(format("needs a list of workers as [0, 1], not {}",
                     value.node->kind == Yaml::list ? "an empty one" : value.found()));
  std::vector<int64_t> workers;
  std::vector<bool> seen(kMostWorkers);
  for (const YamlRef& item : value.node->items) {
    Value worker{value.where, value.path, item, item->line};
    int64_t number = worker.to_int();
    if (number < 0 || number >= kMostWorkers)
      worker.bad(format("workers are numbered from 0 to {}: {}", kMostWorkers - 1, number));
    if (seen[static_cast<size_t>(number)]) worker.bad(format("worker {} is listed twice", number));
    seen[static_cast<size_t>(number)] = true;
    workers.push_back(number);
  }
  return workers;
}

signal::Shard read_shard(const Value& value) {
  if (value.node->kind != Yaml::map)
    value.bad(format("needs {{axis, workers, replicated}}, not {}", value.found()));
  signal::Shard shard;
  constexpr std::array<std::string_view, 3> kKeys = {"axis", "workers", "replicated"};
  value.each_field(kKeys, [&](const std::string& key, const Value& field) {
    if (key == "axis") shard.axis = field.to_int();
    if (key == "workers") shard.workers = read_workers(field);
    if (key == "replicated") shard.replicated = field.to_bool();
  });
  if (!shard.axis && !shard.replicated) value.bad("needs an axis, or replicated: true");
  return shard;
}

signal::Settings read_settings(const std::string& name, const Value& value) {
  value.check_name(name);
  if (value.node->kind != Yaml::map && value.node->kind != Yaml::nothing)
    value.bad(format("needs {{compile, shard, backward}}, not {}", value.found()));
  signal::Settings settings{.name = name, .compile = {}, .shard = {}, .backward = {}};
  constexpr std::array<std::string_view, 3> kKeys = {"compile", "shard", "backward"};
  value.each_field(kKeys, [&](const std::string& key, const Value& field) {
    if (key == "compile") settings.compile = read_compile(field);
    if (key == "shard") settings.shard = read_shard(field);
    if (key == "backward") settings.backward = field.to_name();
  });
  return settings;
}

}  // namespace

std::vector<signal::Settings> parse_signals(std::string_view yaml, std::string_view where) {
  YamlRef root = parse_yaml(yaml, where);
  Value file{where, {}, root, root->line};
  if (root->kind != Yaml::map && root->kind != Yaml::nothing)
    fail("{}:{}: needs a map from names of signals to settings, not {}", where, root->line,
         file.found());
  std::vector<signal::Settings> all;
  for (const YamlNode::Field& field : root->fields)
    all.push_back(read_settings(field.key, file.at(field)));
  return all;
}

std::vector<signal::Settings> read_signals(const std::string& path) {
  std::error_code error;
  auto status = std::filesystem::status(path, error);
  if (!std::filesystem::exists(status))
    fail("signal.load: {}: {}", path, error ? error.message() : "there is no such file");
  if (!std::filesystem::is_regular_file(status)) fail("signal.load: {}: not a file", path);
  std::ifstream file(path, std::ios::binary);
  std::string text(kYamlBytes + 1, '\0');
  file.read(text.data(), static_cast<std::streamsize>(text.size()));
  if (!file.is_open() || file.bad()) fail("signal.load: {}: {}", path, std::strerror(errno));
  text.resize(static_cast<size_t>(file.gcount()));
  return parse_signals(text, "signal.load: " + path);
}

}  // namespace tn
