#include <algorithm>

#include "base/error.h"
#include "model/flat.h"

namespace tn::model {
namespace {

class Flattening {
 public:
  explicit Flattening(FlatModel& out) : out_(out) {}

  /// Puts the parts of `model` at the end; `outside` are the flat wires of some of its own. Returns
  /// those of all.
  Indexed<int> add(const ModelDef& model, const std::string& prefix,
                   const std::map<int, int>& outside, const std::map<int, std::string>& end_names) {
    Indexed<int> flat(model.wires.size(), -1);
    for (const auto& [inner, outer] : outside) flat[inner] = outer;
    for (size_t w = 0; w < model.wires.size(); ++w) {
      const Wire& wire = model.wires[w];
      if (wire.merged >= 0) continue;
      int& at = flat[w];
      if (at < 0) {
        at = static_cast<int>(out_.wires.size());
        auto named = end_names.find(static_cast<int>(w));
        const std::string& name = named == end_names.end() ? wire.name : named->second;
        out_.wires.push_back({.name = prefix + name, .role = Role::output, .readers = {}});
        out_.wires.back().loc = wire.loc;
      }
      FlatWire& made = out_.wires[at];
      made.shapes.insert(made.shapes.end(), wire.shapes.begin(), wire.shapes.end());
      made.types.insert(made.types.end(), wire.types.begin(), wire.types.end());
      if (wire.value.defined()) made.value = wire.value;
    }
    for (const Part& part : model.parts) {
      std::vector<int> wires;
      for (int w : part.wires) wires.push_back(w < 0 ? -1 : flat[model.root(w)]);
      if (auto* inner = std::get_if<1>(&part.block.def()))
        add_model(**inner, prefix + part.name + ".", wires);
      else
        add_block(part, prefix + part.name, wires);
    }
    return flat;
  }

 private:
  void add_model(const ModelDef& model, const std::string& prefix, const std::vector<int>& wires) {
    std::map<int, int> outside;
    std::vector<ModelDef::End> ends = model.ends();
    for (size_t t = 0; t < ends.size(); ++t)
      if (wires[t] >= 0) outside.emplace(ends[t].wire, wires[t]);
    add(model, prefix, outside, {});
  }

  void add_block(const Part& part, std::string path, const std::vector<int>& wires) {
    FlatBlock block{.path = std::move(path),
                    .def = std::get<0>(part.block.def()),
                    .in = {},
                    .out = {},
                    .loc = part.loc};
    auto b = static_cast<int>(out_.blocks.size());
    for (size_t t = 0; t < wires.size(); ++t) {
      const Terminal& terminal = part.terminals[t];
      bool output = terminal.role == Role::output;
      (output ? block.out : block.in).push_back(wires[t]);
      if (wires[t] < 0) continue;
      FlatWire& wire = out_.wires[wires[t]];
      if (output) {
        wire.writer = b;
        continue;
      }
      wire.role = std::min(wire.role, terminal.role);
      if (wire.drawn_by < 0 && terminal.initial) wire.drawn_by = b;
      wire.readers.push_back(b);
      if (terminal.role == Role::state && !std::ranges::count(out_.states, wires[t]))
        out_.states.push_back(wires[t]);
    }
    out_.blocks.push_back(std::move(block));
  }

  FlatModel& out_;
};

/// Puts the blocks into an order in which they can be computed, the given one where it is one.
class Ordering {
 public:
  explicit Ordering(FlatModel& model) : model_(model), state_(model.blocks.size()) {}

  void run() {
    for (size_t b = 0; b < model_.blocks.size(); ++b) visit(static_cast<int>(b));
    Indexed<int> new_of(order_.size());
    Indexed<FlatBlock> blocks;
    for (int b : order_) {
      new_of[b] = static_cast<int>(blocks.size());
      blocks.push_back(std::move(model_.blocks[b]));
    }
    model_.blocks = std::move(blocks);
    for (FlatWire& wire : model_.wires) {
      for (int* b : {&wire.writer, &wire.drawn_by})
        if (*b >= 0) *b = new_of[*b];
      for (int& b : wire.readers) b = new_of[b];
    }
  }

 private:
  enum class State : uint8_t { unseen, open, done };
  struct Frame {
    int block;
    size_t next = 0;  // of its inputs
  };

  void visit(int first) {
    if (state_[first] != State::unseen) return;
    std::vector<Frame> path{{first}};
    state_[first] = State::open;
    while (!path.empty()) {
      Frame& frame = path.back();
      const FlatBlock& block = model_.blocks[frame.block];
      if (frame.next == block.in.size()) {
        state_[frame.block] = State::done;
        order_.push_back(frame.block);
        path.pop_back();
        continue;
      }
      int wire = block.in[frame.next++];
      int writer = wire < 0 ? -1 : model_.wires[wire].writer;
      if (writer < 0 || state_[writer] == State::done) continue;
      if (state_[writer] == State::open) fail_cycle(path, writer);
      state_[writer] = State::open;
      path.push_back({writer});
    }
  }

  [[noreturn]] void fail_cycle(const std::vector<Frame>& path, int from) const {
    std::vector<std::string> names;
    bool inside = false;
    for (const Frame& frame : path) {
      inside = inside || frame.block == from;
      if (inside) names.push_back(model_.blocks[frame.block].path);
    }
    std::ranges::reverse(names);
    names.push_back(names.front());
    fail(Hint{"an output can be read only by blocks that it does not depend on"},
         "{}: blocks depend on themselves: {}", model_.name, join(names, " -> "));
  }

  FlatModel& model_;
  Indexed<State> state_;
  std::vector<int> order_;
};

std::string wire_names(const FlatModel& model, const std::vector<int>& wires) {
  std::vector<std::string> names;
  for (int w : wires) names.push_back(w < 0 ? "-" : model.wires[w].name);
  return fmt::format("{}", join(names, ", "));
}

}  // namespace

bool FlatBlock::draws(bool training) const {
  if (def->draws != Draws::without_key) return def->draws == Draws::in_training && training;
  for (size_t t = 0; t < in.size(); ++t)  // outputs come behind
    if (def->terminals[t].name == "key") return in[t] < 0;
  return true;
}

std::string FlatBlock::described() const { return format("{} '{}'", def->kind, path); }

int FlatModel::find(std::string_view name) const {
  auto found = std::ranges::find(wires, name, &FlatWire::name);
  return found == wires.end() ? -1 : static_cast<int>(found - wires.begin());
}

std::vector<std::string> FlatModel::names() const {
  std::vector<std::string> all;
  for (const FlatWire& wire : wires) all.push_back(wire.name);
  return all;
}

FlatModel flatten(const Model& model) {
  const ModelDef& def = *model.def();
  if (def.parts.empty())
    fail(Hint{"add some: model += Linear(10)"}, "{}: the model has no blocks", def.name);
  FlatModel flat;
  flat.name = def.name;
  std::vector<ModelDef::End> ends = def.ends();
  std::map<int, std::string> end_names;
  for (const ModelDef::End& end : ends) end_names.emplace(end.wire, end.terminal.name);
  Indexed<int> wires = Flattening(flat).add(def, "", {}, end_names);
  Ordering(flat).run();
  for (const ModelDef::End& end : ends) {
    int w = wires[end.wire];
    (end.terminal.role == Role::output ? flat.outputs : flat.open).push_back(w);
  }
  return flat;
}

std::string blocks_text(const FlatModel& model) {
  std::string text;
  for (const FlatBlock& block : model.blocks) {
    std::string settings = block.def->settings.empty() ? "" : format("({})", block.def->settings);
    text += format("{} = {}{}: {} -> {}\n", block.path, block.def->kind, settings,
                   wire_names(model, block.in), wire_names(model, block.out));
  }
  return text;
}

std::string terminals_text(const FlatModel& model) {
  std::string text;
  for (const FlatWire& wire : model.wires) {
    std::string source = wire.writer >= 0       ? format("by {}", model.blocks[wire.writer].path)
                         : wire.value.defined() ? "constant"
                                                : std::string(to_text(wire.role));
    text += format("{}: {}, read by {}\n", wire.name, source, wire.readers.size());
  }
  return text;
}

}  // namespace tn::model
