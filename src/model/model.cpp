#include "tenon/model.h"

#include <algorithm>
#include <set>

#include "base/error.h"
#include "model/model_def.h"

namespace tn::model {
namespace {

bool is_output(const Terminal& t) { return t.role == Role::output; }

/// "BatchNorm2d" as "batch_norm2d".
std::string snake(std::string_view kind) {
  std::string text;
  for (size_t i = 0; i < kind.size(); ++i) {
    bool upper = kind[i] >= 'A' && kind[i] <= 'Z';
    bool after_lower = i > 0 && kind[i - 1] >= 'a' && kind[i - 1] <= 'z';
    bool before_lower = i > 0 && i + 1 < kind.size() && kind[i + 1] >= 'a' && kind[i + 1] <= 'z';
    if (upper && (after_lower || before_lower)) text += '_';
    text += upper ? static_cast<char>(kind[i] - 'A' + 'a') : kind[i];
  }
  return text.empty() ? "block" : text;
}

void check_name(std::string_view what, std::string_view name) {
  auto is_letter = [](char c) {
    return (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || c == '_' || c < 0;
  };
  auto is_part = [&](char c) { return is_letter(c) || (c >= '0' && c <= '9'); };
  if (name.empty() || !is_letter(name[0]) || !std::ranges::all_of(name, is_part))
    fail("Model: '{}' is not a valid name for a {}: use letters, digits and _", name, what);
}

[[noreturn]] void fail_unknown(const ModelDef& model, const std::string& name) {
  std::vector<std::string> known;
  for (const ModelDef::End& end : model.ends()) known.push_back(end.terminal.name);
  for (const auto& [path, w] : model.by_name) known.push_back(path);
  std::string_view near = nearest_name(name, known);
  fail(Hint{near.empty() ? "" : format("did you mean '{}'?", near)}, "{}: no connection '{}'",
       model.name, name);
}

/// Puts one block into a model.
class Addition {
 public:
  Addition(ModelDef& model, const Connected& block, bool chained)
      : model_(model),
        part_{.name = {}, .block = block.block, .terminals = block.block.terminals(), .wires = {}},
        given_(block),
        chained_(chained) {
    part_.loc = current_loc ? current_loc : Loc::of(block.place);
    part_.wires.assign(part_.terminals.size(), -1);
  }

  /// Fails before anything of the model has changed.
  void check() {
    if (!given_.name.empty()) {
      check_name("block", given_.name);
      if (model_.part_names.contains(given_.name))
        fail("Model: a block '{}' already exists", given_.name);
    }
    std::set<std::string> seen;
    for (const auto& [terminal, key] : given_.connections) {
      size_t t = terminal_named(terminal);
      if (!seen.insert(terminal).second)
        fail("{}: terminal '{}' is connected twice", part_.block.kind(), terminal);
      if (is_output(part_.terminals[t])) check_writable(key, terminal);
      if (key.name.empty() || model_.by_name.contains(key.name)) continue;
      if (key.name.find('.') != key.name.npos) fail_unknown(model_, key.name);
      check_name("connection", key.name);
    }
    if (chained_) check_chain();
  }

  void add() {
    part_.name = part_name();
    for (size_t t = 0; t < part_.terminals.size(); ++t) connect(t);
    model_.parts.push_back(std::move(part_));
  }

 private:
  size_t terminal_named(const std::string& name) const {
    std::vector<std::string> known;
    for (size_t t = 0; t < part_.terminals.size(); ++t) {
      if (part_.terminals[t].name == name) return t;
      known.push_back(part_.terminals[t].name);
    }
    std::string_view near = nearest_name(name, known);
    fail(Hint{near.empty() ? "" : format("did you mean '{}'?", near)},
         "{}: no terminal '{}'; it has {}", part_.block.kind(), name, join(known, ", "));
  }

  void check_writable(const IOKey& key, std::string_view terminal) const {
    if (key.value.defined())
      fail("{}: output '{}' cannot be given a value", part_.block.kind(), terminal);
    auto found = model_.by_name.find(key.name);
    if (key.name.empty() || found == model_.by_name.end()) return;
    const Wire& wire = model_.wire(found->second);
    if (wire.value.defined())
      fail("{}: '{}' is a constant and cannot be written", part_.block.kind(), key.name);
    if (wire.writer >= 0)
      fail(Hint{"give the output another name"}, "{}: '{}' is already written by {}",
           part_.block.kind(), key.name, described(model_.parts[wire.writer]));
  }

  void check_chain() const {
    if (model_.last_output >= 0 && chained_terminal() == part_.terminals.size())
      fail("{}: no unconnected input is left to read the last output", part_.block.kind());
  }

  size_t chained_terminal() const {
    auto is_free = [&](const Terminal& t) { return t.role == Role::input && !given(t.name); };
    return static_cast<size_t>(std::ranges::find_if(part_.terminals, is_free) -
                               part_.terminals.begin());
  }

  const IOKey* given(std::string_view terminal) const {
    for (const auto& [name, key] : given_.connections)
      if (name == terminal) return &key;
    return nullptr;
  }

  std::string part_name() {
    std::string base = given_.name.empty() ? snake(part_.block.kind()) : given_.name;
    int& wanted = model_.part_names[base];
    std::string name = base;
    while (wanted++ > 0) {
      name = format("{}_{}", base, wanted - 1);
      if (model_.part_names.emplace(name, 1).second) break;
    }
    return name;
  }

  void connect(size_t t) {
    const Terminal& terminal = part_.terminals[t];
    const IOKey* key = given(terminal.name);
    int w;
    if (!key && chained_ && model_.last_output >= 0 && t == chained_terminal())
      w = model_.last_output;
    else if (!key && terminal.optional)
      return;
    else
      w = wire_for(terminal, key ? *key : IOKey());
    part_.wires[t] = w;
    Wire& wire = model_.wire(w);
    if (is_output(terminal)) {
      wire.writer = static_cast<int>(model_.parts.size());
      model_.last_output = w;
    } else {
      ++wire.readers;
    }
  }

  /// Ends that are called "input" and "output" because they were not named may be read by that
  /// name.
  void adopt_end(const std::string& name) {
    if ((name != "input" && name != "output") || model_.by_name.contains(name)) return;
    for (const ModelDef::End& end : model_.ends()) {
      if (end.terminal.name != name) continue;
      Wire& wire = model_.wire(end.wire);
      wire.name = name, wire.named = true;
      model_.by_name.emplace(name, end.wire);
    }
  }

  int wire_for(const Terminal& terminal, const IOKey& key) {
    if (!is_output(terminal)) adopt_end(key.name);
    auto found = model_.by_name.find(key.name);
    int w = key.name.empty() || found == model_.by_name.end()
                ? static_cast<int>(model_.wires.size())
                : found->second;
    if (w == static_cast<int>(model_.wires.size())) {
      bool named = !key.name.empty();
      model_.wires.push_back(
          {.name = named ? key.name : format("{}.{}", part_.name, terminal.name), .named = named});
      model_.wires.back().loc = part_.loc;
      model_.by_name.emplace(model_.wires.back().name, w);
    }
    say(model_.wire(w), key);
    return w;
  }

 public:
  static void say(Wire& wire, const IOKey& key) {
    std::string by = format("IOKey '{}'", wire.name);
    if (key.shape) wire.shapes.push_back({*key.shape, by});
    if (key.type) wire.types.push_back({*key.type, by});
    if (key.value.defined()) wire.value = key.value;
    if (key.expose) wire.expose = key.expose;
  }

 private:
  ModelDef& model_;
  Part part_;
  const Connected& given_;
  bool chained_;
};

/// The role of a wire without a writer: that of data if one terminal takes it for data.
Role joined(Role a, Role b) { return std::min(a, b); }

}  // namespace

std::string_view to_text(Role role) {
  constexpr std::string_view names[] = {"input", "parameter", "state", "output"};
  return names[static_cast<size_t>(role)];
}

std::string described(const Part& part) { return format("{} '{}'", part.block.kind(), part.name); }

std::vector<ModelDef::End> ModelDef::ends() const {
  std::vector<End> ends;
  std::map<int, size_t> at;  // wire → its place among them
  auto only = [&](const Part& part, bool output) {
    int found = 0;
    for (size_t t = 0; t < part.terminals.size(); ++t)
      found +=
          part.wires[t] >= 0 && part.terminals[t].role == (output ? Role::output : Role::input);
    return found == 1;
  };
  for (size_t p = 0; p < parts.size(); ++p) {
    const Part& part = parts[p];
    for (size_t t = 0; t < part.terminals.size(); ++t) {
      if (part.wires[t] < 0) continue;
      const Terminal& terminal = part.terminals[t];
      int w = root(part.wires[t]);
      const Wire& wire = wires[w];
      bool output = is_output(terminal);
      if (output ? !wire.expose.value_or(wire.readers == 0)
                 : wire.writer >= 0 || wire.value.defined())
        continue;
      if (auto found = at.find(w); found != at.end()) {
        Terminal& known = ends[found->second].terminal;
        known.role = joined(known.role, terminal.role);
        if (!known.initial) known.initial = terminal.initial;
        continue;
      }
      at.emplace(w, ends.size());
      Terminal end = terminal;
      end.name = wire.name;
      end.shape = "*";
      end.optional = false;
      bool first = p == 0 && terminal.role == Role::input && only(part, false);
      bool last = output && p + 1 == parts.size() && only(part, true);
      if (!wire.named && first && !by_name.contains("input")) end.name = "input";
      if (!wire.named && last && !by_name.contains("output")) end.name = "output";
      ends.push_back({std::move(end), w});
    }
  }
  std::ranges::stable_partition(ends, [](const End& e) { return !is_output(e.terminal); });
  return ends;
}

/// Fails for an invalid block: a defect of its author.
static void check_block(const BlockDef& def) {
  std::set<std::string_view> names;
  bool outputs = false;
  for (const Terminal& t : def.terminals) {
    if (!names.insert(t.name).second) fail("{}: two terminals '{}'", def.kind, t.name);
    if (outputs && !is_output(t)) fail("{}: outputs come after other terminals", def.kind);
    outputs = outputs || is_output(t);
    bool drawn = t.role == Role::parameter || t.role == Role::state;
    if (drawn && !t.initial)
      fail("{}: the {} '{}' has no initial value", def.kind, to_text(t.role), t.name);
  }
  if (!outputs) fail("{}: a block needs an output", def.kind);
}

Block::Block(BlockDef def) {
  check_block(def);
  def_ = std::make_shared<const BlockDef>(std::move(def));
}

Block::Block(const Model& model) : def_(std::shared_ptr<const ModelDef>(model.def())) {}

std::string Block::kind() const {
  if (auto* block = std::get_if<0>(&def_)) return (*block)->kind;
  return std::get<1>(def_)->name;
}

std::string Block::called() const {
  auto* block = std::get_if<0>(&def_);
  bool plain = !block || (*block)->settings.empty();
  return plain ? kind() : format("{}({})", kind(), (*block)->settings);
}

std::vector<Terminal> Block::terminals() const {
  if (auto* block = std::get_if<0>(&def_)) return (*block)->terminals;
  std::vector<Terminal> terminals;
  for (ModelDef::End& end : std::get<1>(def_)->ends()) terminals.push_back(std::move(end.terminal));
  return terminals;
}

Connected Block::operator()(Connections connections, std::string name,
                            std::source_location at) const {
  return Connected(*this, std::move(connections), std::move(name), at);
}

Model::Model(std::string name) : def_(std::make_shared<ModelDef>()) {
  check_name("model", name);
  def_->name = std::move(name);
}

ModelDef& Model::own() {
  if (def_.use_count() > 1) def_ = std::make_shared<ModelDef>(*def_);
  return *def_;
}

Model& Model::add(const Connected& block, bool chained) {
  constexpr int kDeepest = 1000;  // each level takes some of the stack
  auto* inner = std::get_if<1>(&block.block.def());
  if (inner && (*inner)->parts.empty())
    fail("Model: the model '{}' has no blocks yet", (*inner)->name);
  int depth = inner ? (*inner)->depth + 1 : 1;
  if (depth > kDeepest) fail("Model: models are nested more than {} deep", kDeepest);
  Addition(*def_, block, chained).check();
  ModelDef& model = own();
  Addition(model, block, chained).add();
  model.depth = std::max(model.depth, depth);
  return *this;
}

Model& Model::operator|=(const Connected& block) { return add(block, false); }
Model& Model::operator+=(const Connected& block) { return add(block, true); }

Connected Model::operator()(Connections connections, std::string name,
                            std::source_location at) const {
  return Connected(Block(*this), std::move(connections), std::move(name), at);
}

static int wire_named(const ModelDef& model, const std::string& name) {
  auto found = model.by_name.find(name);
  if (found != model.by_name.end()) return model.root(found->second);
  for (const ModelDef::End& end : model.ends())
    if (end.terminal.name == name) return end.wire;
  fail_unknown(model, name);
}

Model& Model::merge(const std::vector<std::string>& names) {
  if (names.empty()) return *this;
  std::vector<int> roots;
  std::vector<std::string> written;
  for (const std::string& name : names) {
    int w = wire_named(*def_, name);
    if (std::ranges::count(roots, w)) continue;
    roots.push_back(w);
    const Wire& wire = def_->wire(w);
    if (wire.writer >= 0 || wire.value.defined()) written.push_back(name);
  }
  if (written.size() > 1)
    fail("Model: '{}' and '{}' both have values and cannot be merged", written[0], written[1]);
  ModelDef& model = own();
  Wire& first = model.wire(roots[0]);
  for (size_t i = 1; i < roots.size(); ++i) {
    Wire& other = model.wire(roots[i]);
    first.shapes.insert(first.shapes.end(), other.shapes.begin(), other.shapes.end());
    first.types.insert(first.types.end(), other.types.begin(), other.types.end());
    if (other.value.defined()) first.value = other.value;
    if (other.expose && !first.expose) first.expose = other.expose;
    if (other.writer >= 0) first.writer = other.writer;
    first.readers += other.readers;
    other.merged = roots[0];
  }
  return *this;
}

Model& Model::keep_ends() {
  ModelDef& model = own();
  for (const ModelDef::End& end : model.ends()) {
    Wire& wire = model.wire(end.wire);
    if (is_output(end.terminal)) wire.expose = true;
    if (wire.named || wire.name == end.terminal.name) continue;
    wire.name = end.terminal.name;
    wire.named = true;
    model.by_name.emplace(wire.name, end.wire);
  }
  return *this;
}

Model& Model::describe(const IOKey& key) {
  int w = wire_named(*def_, key.name);
  if (key.value.defined() && def_->wire(w).writer >= 0)
    fail("Model: '{}' is written by a block and cannot be given a value", key.name);
  Addition::say(own().wire(w), key);
  return *this;
}

const std::string& Model::name() const { return def_->name; }

int Model::find(const std::string& name) const { return wire_named(*def_, name); }

const std::string& Model::connection(int number) const { return def_->wire(number).name; }

std::string Model::key(int number) const {
  int w = def_->root(number);
  for (const ModelDef::End& end : def_->ends())
    if (end.wire == w) return end.terminal.name;
  return def_->wire(w).name;
}

const std::string& Model::last_block() const {
  if (def_->parts.empty()) fail("{}: the model has no blocks", def_->name);
  return def_->parts.back().name;
}

std::string Model::to_text() const {
  std::map<int, std::string> ends;
  for (const ModelDef::End& end : def_->ends()) ends.emplace(end.wire, end.terminal.name);
  auto names = [&](const Part& part, bool output) {
    std::vector<std::string> list;
    for (size_t t = 0; t < part.terminals.size(); ++t) {
      const Terminal& terminal = part.terminals[t];
      bool shown = output ? is_output(terminal) : terminal.role == Role::input;
      if (!shown || part.wires[t] < 0) continue;
      int w = def_->root(part.wires[t]);
      auto end = ends.find(w);
      list.push_back(end == ends.end() ? def_->wire(w).name : end->second);
    }
    return format("{}", join(list, ", "));
  };
  size_t name_width = 0, kind_width = 0;
  for (const Part& part : def_->parts) {
    name_width = std::max(name_width, part.name.size());
    kind_width = std::max(kind_width, part.block.called().size());
  }
  std::string text = format("Model '{}', {} block{}", def_->name, def_->parts.size(),
                            def_->parts.size() == 1 ? "" : "s");
  for (const Part& part : def_->parts)
    text += format("\n  {:{}}  {:{}}  {} -> {}", part.name, name_width, part.block.called(),
                   kind_width, names(part, false), names(part, true));
  return text;
}

std::vector<Terminal> Model::terminals() const { return Block(*this).terminals(); }

std::vector<std::string> Model::keys(Role role) const {
  std::vector<std::string> names;
  for (const Terminal& t : terminals())
    if (t.role == role) names.push_back(t.name);
  return names;
}

}  // namespace tn::model
