#include "model/infer.h"

#include <algorithm>
#include <charconv>
#include <unordered_map>

#include "base/error.h"
#include "ir/dtype.h"
#include "ir/interned.h"
#include "model/unify.h"

namespace tn::model {
namespace {

/// Names of sizes and what "..." is, in the shapes of one block or of one user.
struct Scope {
  std::map<std::string, SizeId, std::less<>> sizes = {};
  AxesId axes = -1;
};

std::vector<std::string_view> words(std::string_view text) {
  std::vector<std::string_view> found;
  while (!text.empty()) {
    size_t end = std::min(text.find_first_of(" ,"), text.size());
    if (end > 0) found.push_back(text.substr(0, end));
    text.remove_prefix(std::min(end + 1, text.size()));
  }
  return found;
}

class Inference {
 public:
  Inference(const FlatModel& flat, const InferenceRequest& request)
      : flat_(flat),
        request_(request),
        dtypes_(flat.wires.size()),
        shaped_by_(flat.wires.size()),
        typed_by_(flat.wires.size()),
        usual_(flat.wires.size()) {
    for (size_t w = 0; w < flat.wires.size(); ++w) shapes_.push_back(sizes_.anything());
  }

  void run(Resolved& resolved) {
    say_all();
    std::vector<size_t> waiting(flat_.blocks.size());
    for (size_t b = 0; b < waiting.size(); ++b) waiting[b] = b;
    sweep(waiting);
    leave_open();
    sweep(waiting);
    resolved.types = types();
    resolved.sizes = hints_;
  }

 private:
  // What is said ------------------------------------------------------------------------------

  void say_all() {
    check_keys(request_.shapes, "shapes");
    check_keys(request_.types, "types");
    for (size_t w = 0; w < flat_.wires.size(); ++w) {
      const FlatWire& wire = flat_.wires[w];
      for (const auto& [text, by] : wire.shapes) say(w, read(text, model_scope_, by), by);
      for (const auto& [type, by] : wire.types) say(w, type, by);
      if (!wire.value.defined()) continue;
      say(w, sizes_.of(wire.value.shape()), "its value");
      say(w, wire.value.dtype(), "its value");
    }
    for (const auto& [name, text] : request_.shapes)
      say(index_of(name), read(text, model_scope_, "shapes"), "shapes");
    for (const auto& [name, type] : request_.types) say(index_of(name), type, "types");
    for (size_t b = 0; b < flat_.blocks.size(); ++b) say(b);
    for (auto block = flat_.blocks.rbegin(); block != flat_.blocks.rend(); ++block) expect(*block);
  }

  void say(size_t b) {
    const FlatBlock& block = flat_.blocks[b];
    Scope scope;
    for (const auto& [name, size] : block.def->sizes) scope.sizes.emplace(name, sizes_.size(size));
    std::string by = block.described();
    size_t in = 0, out = 0;
    for (const Terminal& terminal : block.def->terminals) {
      int w = terminal.role == Role::output ? block.out[out++] : block.in[in++];
      if (w < 0) continue;
      auto at = static_cast<size_t>(w);
      if (terminal.shape != "*") say(at, read(terminal.shape, scope, by), by);
      if (terminal.type) say(at, *terminal.type, by);
      if (terminal.usual && !usual_[at]) usual_[at] = terminal.usual;
    }
    for (const Multiple& m : block.def->multiples)
      multiples_.push_back({b, &m, size_named(m.whole, scope), size_named(m.part, scope)});
  }

  /// The type that is said of a result is that of what it is computed from, where nothing is said
  /// of that.
  void expect(const FlatBlock& block) {
    if (!block.def->same_type || block.out.size() != 1) return;
    auto out = static_cast<size_t>(block.out[0]);
    std::optional<DType> type = dtypes_[out] ? dtypes_[out] : usual_[out];
    if (!type || !is_float(*type)) return;
    for (int w : block.in) {
      if (w < 0 || flat_.wires[w].role == Role::state) continue;
      std::optional<DType>& usual = usual_[w];
      if (!usual) usual = type;
    }
  }

  SizeId size_named(std::string_view name, Scope& scope) {
    auto [at, is_new] = scope.sizes.try_emplace(std::string(name), -1);
    if (is_new) at->second = sizes_.any_size();
    return at->second;
  }

  void say(size_t w, const Sizes& sizes, const std::string& by) {
    std::string& before = shaped_by_[w];
    if (!sizes_.unify(shapes_[w], sizes))
      fail("{}: shapes of '{}' do not agree: {} says {}, but it is {} by {}", flat_.name,
           flat_.wires[w].name, by, sizes_.text(sizes), sizes_.text(shapes_[w]), before);
    bool listed = before.ends_with(by) || before.size() > kMostSaid;
    if (!listed) before += before.empty() ? by : format(", {}", by);
  }

  /// Who wrote or described a connection.
  std::string said_by(const FlatWire& wire) const {
    if (wire.writer >= 0) return format(", written by {}", flat_.blocks[wire.writer].described());
    if (!wire.readers.empty())
      return format(", read by {}", flat_.blocks[wire.readers[0]].described());
    return "";
  }

  void say(size_t w, DType type, const std::string& by) {
    std::optional<DType>& known = dtypes_[w];
    if (known && *known != type)
      fail(Fault::type, Hint{"put a Cast between them, or set another type in types"},
           "{}: type mismatch at '{}': {} says {}, {} says {}", flat_.name, flat_.wires[w].name, by,
           name_of(type), typed_by_[w], name_of(*known));
    if (known) return;
    known = type;
    typed_by_[w] = by;
  }

  template <class Map>
  void check_keys(const Map& said, std::string_view what) const {
    for (const auto& [name, value] : said) {
      if (flat_.find(name) >= 0) continue;
      std::vector<std::string> names = flat_.names();
      std::string_view near = nearest_name(name, names);
      fail(Hint{near.empty() ? format("inputs are {}", join(open_names(), ", "))
                             : format("did you mean '{}'?", near)},
           "{}: no connection '{}', named in {}", flat_.name, name, what);
    }
  }

  std::vector<std::string> open_names() const {
    std::vector<std::string> names;
    for (int w : flat_.open) names.push_back(flat_.wires[w].name);
    return names;
  }

  size_t index_of(const std::string& name) const { return static_cast<size_t>(flat_.find(name)); }

  Sizes read(std::string_view text, Scope& scope, const std::string& by) {
    Sizes sizes;
    for (std::string_view word : words(text)) {
      std::vector<SizeId>& list = sizes.rest < 0 ? sizes.front : sizes.back;
      int64_t number = 0;
      auto [end, error] = std::from_chars(word.data(), word.data() + word.size(), number);
      if (word == "...") {
        if (sizes.rest >= 0) fail("{}: {}: two '...' in the shape [{}]", flat_.name, by, text);
        if (scope.axes < 0) scope.axes = sizes_.any_axes();
        sizes.rest = scope.axes;
      } else if (word == "_") {
        list.push_back(sizes_.any_size());
      } else if (error == std::errc() && end == word.data() + word.size()) {
        if (number < 0) fail("{}: {}: invalid size {}", flat_.name, by, number);
        list.push_back(sizes_.size(number));
      } else {
        list.push_back(size_named(word, scope));
      }
    }
    return sizes;
  }

  // What follows ------------------------------------------------------------------------------

  /// Infers the results of blocks whose operands are known, until no more are.
  void sweep(std::vector<size_t>& waiting) {
    auto left = [&] { return waiting.size() + multiples_.size(); };
    for (size_t before = left() + 1; left() < before;) {
      before = left();
      std::erase_if(multiples_, [&](const KnownMultiple& m) { return settle(m); });
      std::erase_if(waiting, [&](size_t b) { return infer_block(flat_.blocks[b]); });
    }
  }

  struct KnownMultiple {
    size_t block;
    const Multiple* said;
    SizeId whole, part;
  };

  /// Finds one of the sizes by the other; false where neither is known.
  bool settle(const KnownMultiple& m) {
    std::optional<Dim> whole = sizes_.value(m.whole), part = sizes_.value(m.part);
    int64_t times = m.said->times;
    if (!whole && !part) return false;
    if (!part && whole->is_const() && whole->value() % times == 0)
      part = whole->value() / times, sizes_.unify(m.part, sizes_.size(*part));
    if (!part || !sizes_.unify(m.whole, sizes_.size(*part * times)))
      fail("{}: '{}' is {}, which is no multiple of {}{}", flat_.blocks[m.block].described(),
           m.said->whole, *whole, times, part ? format(": '{}' is {}", m.said->part, *part) : "");
    return true;
  }

  bool infer_block(const FlatBlock& block) {
    std::vector<TypeRef> in;
    for (int w : block.in) {
      TypeRef type = w < 0 ? nullptr : type_of(static_cast<size_t>(w));
      if (w >= 0 && !type) return false;
      in.push_back(type);
    }
    const std::vector<TypeRef>& out = results(block, in);
    std::string by = block.described();
    for (size_t i = 0; i < block.out.size(); ++i) {
      auto w = static_cast<size_t>(block.out[i]);
      say(w, sizes_.of(out[i]->shape), by);
      say(w, out[i]->dtype, by);
    }
    return true;
  }

  /// Null where the shape, or what a block gives, is not known yet.
  TypeRef type_of(size_t w) {
    std::optional<Shape> shape = sizes_.shape(shapes_[w]);
    if (!shape) return nullptr;
    if (!dtypes_[w] && flat_.wires[w].writer >= 0) return nullptr;
    return intern(dtypes_[w].value_or(usual_[w].value_or(request_.precision)), *shape);
  }

  /// Remembered: deep models have many blocks of one kind.
  const std::vector<TypeRef>& results(const FlatBlock& block, const std::vector<TypeRef>& in) {
    auto& known = known_[block.def.get()];
    for (const auto& [operands, results] : known)
      if (operands == in) return results;
    Traced made = traced(block, in, request_.training, hints_);
    std::vector<TypeRef> results;
    for (size_t i = 0; i < made.results; ++i)
      results.push_back(made.graph.types[static_cast<size_t>(made.graph.outputs[i])]);
    return known.emplace_back(in, std::move(results)).second;
  }

  // What is left open -------------------------------------------------------------------------

  /// Sizes of data that nothing determines become symbols, unless parameters have them too.
  void leave_open() {
    std::vector<SizeId> fixed;
    for (int w : flat_.open) {
      if (flat_.wires[w].role == Role::input) continue;
      Sizes sizes = sizes_.resolved(shapes_[w]);
      for (const std::vector<SizeId>* ids : {&sizes.front, &sizes.back})
        for (SizeId id : *ids)
          if (!sizes_.value(id)) fixed.push_back(id);
    }
    auto is_open = [&](SizeId id) {
      return !sizes_.value(id) &&
             std::ranges::none_of(fixed, [&](SizeId f) { return sizes_.is_same(f, id); });
    };
    for (int w : flat_.open) {
      const FlatWire& wire = flat_.wires[w];
      if (wire.role != Role::input) continue;
      Sizes sizes = sizes_.resolved(shapes_[w]);
      bool knows_axes = !sizes.front.empty() || !sizes.back.empty();
      if (sizes.rest >= 0 && !knows_axes) continue;
      if (request_.static_shapes) refuse_open(w, sizes);
      if (sizes.rest >= 0) {
        // Leading axes that nothing determines are one, the batch; behind known ones are none.
        Sizes axes;
        if (sizes.front.empty()) axes.front = {sizes_.any_size()};
        if (!sizes_.unify({.front = {}, .rest = sizes.rest, .back = {}}, axes))
          fail_unknown(static_cast<size_t>(w));
        sizes = sizes_.resolved(sizes);
      }
      for (size_t axis = 0; axis < sizes.front.size(); ++axis)
        if (is_open(sizes.front[axis])) open(wire, axis, sizes.front[axis]);
    }
  }

  void open(const FlatWire& wire, size_t axis, SizeId id) {
    std::string name = format("{}_{}", wire.name, axis);
    for (const auto& [given, size] : model_scope_.sizes)
      if (sizes_.is_same(size, id)) name = given;
    std::ranges::replace(name, '.', '_');
    Dim symbol = Dim::symbol(name);
    sizes_.unify(id, sizes_.size(symbol));
    hints_.push_back({symbol, kFirstHint + kApart * std::ssize(hints_)});
  }

  void refuse_open(int w, const Sizes& sizes) const {
    bool known =
        sizes.rest < 0 &&
        std::ranges::all_of(sizes.front, [&](SizeId id) { return sizes_.value(id).has_value(); });
    if (known) return;
    fail(Hint{format("give all its sizes: shapes={{\"{}\": [...]}}", flat_.wires[w].name),
              format("give all its sizes: .shapes = {{{{\"{}\", {{...}}}}}}", flat_.wires[w].name)},
         "{}: static_shapes is set, but the shape of '{}' is not fully known: {}", flat_.name,
         flat_.wires[w].name, sizes_.text(sizes));
  }

  Indexed<TypeRef> types() {
    Indexed<TypeRef> types;
    for (size_t w = 0; w < flat_.wires.size(); ++w) {
      types.push_back(type_of(w));
      if (!types.back() && is_first_unknown(w)) fail_unknown(w);
    }
    for (int w : flat_.open) {
      const FlatWire& wire = flat_.wires[w];
      const Shape& shape = types[w]->shape;
      if (wire.role == Role::input || std::ranges::all_of(shape, &Dim::is_const)) continue;
      fail(Hint{"give more sizes of it, or of the data, in shapes"},
           "{}: the shape of the {} '{}'{} depends on unknown sizes: {}", flat_.name,
           to_text(wire.role), wire.name, said_by(wire), to_text(shape));
    }
    return types;
  }

  /// What has no writer, or a block all of whose operands are known.
  bool is_first_unknown(size_t w) {
    const FlatWire& wire = flat_.wires[w];
    if (wire.writer < 0) return true;
    const FlatBlock& block = flat_.blocks[wire.writer];
    return std::ranges::all_of(block.in,
                               [&](int i) { return i < 0 || type_of(static_cast<size_t>(i)); });
  }

  [[noreturn]] void fail_unknown(size_t w) const {
    const FlatWire& wire = flat_.wires[w];
    std::string hint = format("give its shape: shapes={{\"{}\": [...]}}", wire.name);
    std::vector<std::string> data;
    for (int i : flat_.open)
      if (flat_.wires[i].role == Role::input && i != static_cast<int>(w) &&
          !sizes_.shape(shapes_[i]))
        data.push_back(format("'{}'", flat_.wires[i].name));
    if (wire.role != Role::input && !data.empty())
      hint += format(", or that of {}", join(data, ", "));
    fail(Hint{hint}, "{}: cannot infer shape for '{}'{}; known is {}", flat_.name, wire.name,
         said_by(wire), sizes_.text(shapes_[w]));
  }

  // Values to try open sizes with: large enough for windows, even, and no two the same.
  static constexpr int64_t kFirstHint = 64, kApart = 8;

  static constexpr size_t kMostSaid = 100;  // letters: a weight may be read by a thousand blocks

  const FlatModel& flat_;
  const InferenceRequest& request_;
  Unifier sizes_;
  Scope model_scope_;
  Indexed<Sizes> shapes_;
  Indexed<std::optional<DType>> dtypes_;
  Indexed<std::string> shaped_by_, typed_by_;  // who said something
  Indexed<std::optional<DType>> usual_;        // of data and parameters of which nothing is said
  std::vector<KnownMultiple> multiples_;       // of which nothing is known yet
  std::vector<Binding> hints_;
  using Known = std::vector<std::pair<std::vector<TypeRef>, std::vector<TypeRef>>>;
  std::unordered_map<const BlockDef*, Known> known_;
};

/// Ops recorded inside are at `loc`, on every thread.
struct At {
  Loc outer;
  explicit At(Loc loc) : outer(std::exchange(current_loc, loc)) {}
  ~At() { current_loc = outer; }
};

}  // namespace

std::vector<TypeRef> Resolved::open_types() const {
  std::vector<TypeRef> open;
  for (int w : flat.open) open.push_back(types[w]);
  return open;
}

std::vector<TypeRef> Resolved::operand_types(const FlatBlock& block) const {
  std::vector<TypeRef> in;
  for (int w : block.in) in.push_back(w < 0 ? nullptr : types[w]);
  return in;
}

Traced traced(const FlatBlock& block, std::span<const TypeRef> in, bool training,
              std::span<const Binding> sizes) {
  std::vector<TypeRef> given;
  for (TypeRef type : in)
    if (type) given.push_back(type);
  bool random = block.draws(training);
  if (random) given.push_back(intern(DType::u32, {2}));
  auto run = [&](const Tensors& params) {
    Tensors all;
    size_t next = 0;
    for (TypeRef type : in) all.push_back(type ? params[next++] : Tensor());
    return compute(block, all, training, random ? params[next] : Tensor());
  };
  return trace(run, given, sizes);
}

Tensors compute(const FlatBlock& block, const Tensors& in, bool training, const Tensor& key) {
  At at(block.loc);
  auto gives = [](const Terminal& t) { return t.role == Role::output || t.role == Role::state; };
  auto wanted = std::ranges::count_if(block.def->terminals, gives);
  try {
    Tensors out = block.def->compute({in, training, key});
    if (std::ssize(out) != wanted)
      fail("it gave {} tensors for its {} outputs and states", out.size(), wanted);
    return out;
  } catch (const UserError& error) {
    throw UserError(error.fault(), format("{}: {}", block.described(), error.what()));
  }
}

Resolved infer(FlatModel flat, const InferenceRequest& request) {
  LastingScope lasting;  // the model is kept
  Resolved resolved;
  resolved.flat = std::move(flat);
  resolved.training = request.training;
  Inference(resolved.flat, request).run(resolved);
  return resolved;
}

std::string shapes_text(const Resolved& model) {
  std::string text;
  for (size_t w = 0; w < model.types.size(); ++w)
    text += format("{}: {}\n", model.flat.wires[w].name, to_text(model.types[w]->shape));
  return text;
}

std::string types_text(const Resolved& model) {
  std::string text;
  for (size_t w = 0; w < model.types.size(); ++w)
    text += format("{}: {}\n", model.flat.wires[w].name, name_of(model.types[w]->dtype));
  return text;
}

}  // namespace tn::model
