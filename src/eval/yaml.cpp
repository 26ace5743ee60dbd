#include "eval/yaml.h"

#include <yaml-cpp/eventhandler.h>
#include <yaml-cpp/exceptions.h>
#include <yaml-cpp/parser.h>

#include <algorithm>
#include <map>
#include <sstream>

#include "base/error.h"

namespace tn {

namespace {

using Yaml = YamlNode::Kind;

/// Builds the tree from what the parser meets, and stops it as soon as a bound is passed.
class Builder : public YAML::EventHandler {
 public:
  explicit Builder(std::string_view where) : where_(where) {}

  YamlRef root() const { return root_ ? root_ : std::make_shared<YamlNode>(); }

  void OnDocumentStart(const YAML::Mark& mark) override {
    if (root_) bad(mark, "more than one document");
  }
  void OnDocumentEnd() override {}

  void OnNull(const YAML::Mark& mark, YAML::anchor_t anchor) override {
    add(mark, made(mark, Yaml::nothing, anchor));
  }
  void OnScalar(const YAML::Mark& mark, const std::string& tag, YAML::anchor_t anchor,
                const std::string& value) override {
    auto node = made(mark, Yaml::text, anchor);
    node->text = value, node->quoted = tag == "!";
    check_tag(mark, tag);
    add(mark, node);
  }
  void OnAlias(const YAML::Mark& mark, YAML::anchor_t anchor) override {
    if (++aliases_ > kYamlAliases) bad(mark, format("more than {} aliases", kYamlAliases));
    YamlRef target = anchors_[anchor];
    for (const Open& open : open_)
      if (open.node == target) bad(mark, "an alias refers to a node that contains it");
    add(mark, target);
  }
  void OnSequenceStart(const YAML::Mark& mark, const std::string& tag, YAML::anchor_t anchor,
                       YAML::EmitterStyle::value) override {
    begin(mark, tag, anchor, Yaml::list);
  }
  void OnMapStart(const YAML::Mark& mark, const std::string& tag, YAML::anchor_t anchor,
                  YAML::EmitterStyle::value) override {
    begin(mark, tag, anchor, Yaml::map);
  }
  void OnSequenceEnd() override { open_.pop_back(); }
  void OnMapEnd() override { open_.pop_back(); }

 private:
  struct Open {
    std::shared_ptr<YamlNode> node;
    std::map<std::string, int> lines;                        // of the keys so far
    const std::pair<const std::string, int>* key = nullptr;  // whose value comes next
  };

  [[noreturn]] void bad(const YAML::Mark& mark, std::string_view what,
                        int source_line = __builtin_LINE()) const {
    throw_user(ErrorSite::here().at(source_line), Fault::value,
               format("{}:{}: {}", where_, mark.line + 1, what), {});
  }
  void check_tag(const YAML::Mark& mark, const std::string& tag) const {
    if (!tag.empty() && tag != "?" && tag != "!") bad(mark, "tags (!) are not supported");
  }
  std::shared_ptr<YamlNode> made(const YAML::Mark& mark, Yaml kind, YAML::anchor_t anchor) {
    auto node = std::make_shared<YamlNode>();
    node->kind = kind, node->line = mark.line + 1;
    if (anchor) anchors_[anchor] = node;
    return node;
  }
  void begin(const YAML::Mark& mark, const std::string& tag, YAML::anchor_t anchor, Yaml kind) {
    if (open_.size() == kYamlDepth) bad(mark, format("nested deeper than {}", kYamlDepth));
    check_tag(mark, tag);
    auto node = made(mark, kind, anchor);
    add(mark, node);
    open_.push_back({.node = node, .lines = {}});
  }
  void add(const YAML::Mark& mark, const YamlRef& node) {
    if (open_.empty()) {
      root_ = node;
      return;
    }
    Open& open = open_.back();
    if (open.node->kind == Yaml::list) {
      open.node->items.push_back(node);
    } else if (open.key) {
      open.node->fields.push_back({open.key->first, open.key->second, node});
      open.key = nullptr;
    } else {
      if (node->kind != Yaml::text) bad(mark, "a key must be text");
      auto [at, is_new] = open.lines.emplace(node->text, mark.line + 1);
      if (!is_new) bad(mark, format("{}: duplicate key, first in line {}", node->text, at->second));
      open.key = &*at;
    }
  }

  const std::string_view where_;
  YamlRef root_;
  std::vector<Open> open_;
  std::map<YAML::anchor_t, YamlRef> anchors_;
  int aliases_ = 0;
};

/// The first byte that is not UTF-8, or the length.
size_t valid_utf8(std::string_view text) {
  size_t i = 0;
  while (i < text.size()) {
    auto lead = static_cast<unsigned char>(text[i]);
    size_t more = lead < 0x80 ? 0 : lead < 0xc2 ? 9 : lead < 0xe0 ? 1 : lead < 0xf0 ? 2 : 3;
    if (lead > 0xf4 || i + more >= text.size()) return i;
    uint32_t code = lead & (0x7fu >> more);
    for (size_t k = 1; k <= more; ++k) {
      auto next = static_cast<unsigned char>(text[i + k]);
      if ((next & 0xc0) != 0x80) return i;
      code = code << 6 | (next & 0x3f);
    }
    bool is_long = (more == 2 && code < 0x800) || (more == 3 && code < 0x10000);
    if (is_long || code > 0x10ffff || (code >= 0xd800 && code < 0xe000)) return i;
    i += more + 1;
  }
  return i;
}

}  // namespace

YamlRef parse_yaml(std::string_view text, std::string_view where) {
  if (text.size() > kYamlBytes)
    fail("{}: {} bytes, the maximum is {}", where, text.size(), kYamlBytes);
  size_t valid = valid_utf8(text);
  if (size_t zero = text.find('\0'); zero < valid) valid = zero;
  if (valid < text.size()) {
    auto line = 1 + std::count(text.begin(), text.begin() + static_cast<ptrdiff_t>(valid), '\n');
    fail("{}:{}: not text: byte {:#04x}", where, line, static_cast<unsigned char>(text[valid]));
  }
  std::istringstream stream{std::string(text)};
  Builder builder(where);
  try {
    YAML::Parser parser(stream);
    while (parser.HandleNextDocument(builder)) {
    }
  } catch (const YAML::Exception& error) {
    fail("{}:{}: not YAML: {}", where, error.mark.line + 1, error.msg);
  }
  return builder.root();
}

}  // namespace tn
