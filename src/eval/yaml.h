#pragma once
// YAML files as trees that know their lines. Files are not trusted: size, depth, and the number of
// aliases are bounded, keys are texts and unique. Aliases share what they stand for: a tree may be
// far larger than its file, so a reader looks up known keys and never visits the whole tree.
#include <cstdint>
#include <memory>
#include <string>
#include <string_view>
#include <vector>

namespace tn {

struct YamlNode;
using YamlRef = std::shared_ptr<const YamlNode>;

struct YamlNode {
  enum class Kind : uint8_t { nothing, text, list, map };
  Kind kind = Kind::nothing;
  int line = 0;
  bool quoted = false;  // a text in quotes is no number
  std::string text;
  struct Field {
    std::string key;
    int line;  // of the key
    YamlRef value;
  };
  std::vector<YamlRef> items;  // of a list
  std::vector<Field> fields;   // of a map, in order
};

inline constexpr size_t kYamlBytes = 1 << 20;
inline constexpr int kYamlDepth = 32, kYamlAliases = 100;

/// One document. Errors begin with `where`: "signal.load: config.yaml", and the line.
YamlRef parse_yaml(std::string_view text, std::string_view where);

}  // namespace tn
