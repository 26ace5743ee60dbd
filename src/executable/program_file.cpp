// Programs in files: which sections there are, and what is in them.
#include <algorithm>
#include <map>

#include "base/error.h"
#include "executable/program.h"
#include "ir/rewrite.h"

namespace tn {
namespace {

using Section = tnx::Kind;

/// What a section of constants says of one.
struct StoredConstant {
  std::string name;
  TypeRef type = nullptr;
  uint64_t place = 0;  // in the section of weights
};

/// Gives each constant its place among the weights; memory that several share is there once.
class Weights {
 public:
  size_t add(const Bound& value, int64_t bytes) {
    const void* data = value.buffer.data<std::byte>() + value.offset;
    auto [at, is_new] = numbers_.try_emplace({data, bytes}, pieces_.size());
    if (is_new) pieces_.push_back({data, static_cast<size_t>(bytes)});
    return at->second;
  }
  std::vector<uint64_t> write(tnx::Writer& out) { return out.add_weights(std::move(pieces_)); }

 private:
  std::map<std::pair<const void*, int64_t>, size_t> numbers_;
  std::vector<tnx::Piece> pieces_;
};

Signature without_places(Signature signature) {
  for (InputSignature& in : signature.inputs) in.place.clear();
  for (SizeDemand& d : signature.demands) d.place.clear();
  return signature;
}

std::string meta_bytes(const Signature& signature, const CompileOptions& options) {
  ByteWriter meta;
  write(meta, signature);
  meta(options.effort), meta(options.off);
  return std::move(meta.bytes);
}

std::string places_bytes(const Graph& graph) {
  ByteWriter places;
  places.list(graph.ops, [](ByteWriter& w, const GraphOp& op) { w(to_text(op.loc)); });
  return std::move(places.bytes);
}

/// Reads a section; what is wrong with it is said with its name.
template <class F>
auto parsed(const tnx::File& file, std::string_view section, const std::string& bytes, F&& parse) {
  try {
    ByteReader in(bytes);
    auto made = parse(in);
    ByteReader::must(in.at_end(), "it goes on behind its end");
    return made;
  } catch (const UserError& e) {
    fail("load: {}: section {}: {}", file.name(), section, e.what());
  }
}

TypeRef read_type(ByteReader& in) {
  auto text = in.read<std::string_view>();
  std::optional<Type> type = parse_type(text);
  ByteReader::must(type && text.empty() && type->shape.is_const(), "a constant has no type");
  return intern(*type);
}

std::vector<NamedConstant> read_constants(ByteReader& in, const tnx::File& file) {
  std::vector<StoredConstant> stored;
  in.list(stored, [](ByteReader& r, StoredConstant& c) {
    r(c.name);
    c.type = read_type(r);
    r(c.place);
  });
  std::vector<NamedConstant> made;
  for (StoredConstant& c : stored) {
    BufferRef value = c.type->bytes()
                          ? file.weights(c.place, static_cast<uint64_t>(c.type->bytes()))
                          : allocate(0);
    made.push_back({std::move(c.name), c.type, {std::move(value), 0}});
  }
  return made;
}

/// A size that the file's graph takes for granted is checked at every call.
void demand(Signature& signature, const SizeGuard& guard) {
  Tri known =
      guard.kind == SizeGuard::Kind::equal ? equal(guard.a, guard.b) : at_least(guard.a, guard.b);
  if (known == (guard.holds ? Tri::yes : Tri::no)) return;
  auto same = [&](const SizeDemand& d) {
    return d.guard.kind == guard.kind && d.guard.a == guard.a && d.guard.b == guard.b &&
           d.guard.holds == guard.holds;
  };
  if (std::ranges::any_of(signature.demands, same)) return;
  ByteReader::must(holds(guard, signature.opt), "the graph does not fit the sizes");
  signature.demands.push_back({guard, ""});
}

/// Inputs and outputs of the graph must be those of the signature. Where an input's size is written
/// differently, calls are checked for it.
void join_signature(const Graph& graph, Signature& signature,
                    const std::vector<NamedConstant>& constants) {
  std::vector<TypeRef> wanted;
  for (const InputSignature& in : signature.inputs)
    if (in.type) wanted.push_back(in.type);
  for (const NamedConstant& c : constants) wanted.push_back(c.type);
  ByteReader::must(wanted.size() == static_cast<size_t>(graph.inputs()),
                   "the graph has other inputs than the signature");
  for (size_t i = 0; i < wanted.size(); ++i) {
    TypeRef have = graph.types[i];
    ByteReader::must(have->dtype == wanted[i]->dtype && have->rank() == wanted[i]->rank(),
                     "an input of the graph has another type than in the signature");
    for (int k = 0; k < have->rank(); ++k)
      demand(signature, {SizeGuard::Kind::equal, wanted[i]->shape[k], have->shape[k], true, {}});
  }
  ByteReader::must(graph.outputs.size() >= signature.outputs.size(),
                   "the graph has fewer results than the signature");
  for (size_t i = 0; i < signature.outputs.size(); ++i)
    ByteReader::must(graph.types[static_cast<size_t>(graph.outputs[i])] == signature.outputs[i],
                     "a result of the graph has another type than in the signature");
}

/// The traced graph, as strange as a user's text: what inference takes for granted about sizes
/// becomes a demand.
Graph read_graph(std::string_view text, Signature& signature,
                 const std::vector<NamedConstant>& constants) {
  std::vector<Binding> at_hand = signature.opt;
  std::vector<Replacement> ranges;  // the text knows symbols by name only
  for (const Binding& b : signature.opt) {
    ranges.push_back({Dim::symbol(symbol_name(b.symbol)), b.symbol});
    at_hand.push_back({ranges.back().symbol, b.value});
  }
  SizesAtHand sizes(std::move(at_hand));
  Graph graph = substitute(parse_graph(text), ranges);
  for (SizeGuard g : sizes.guards) {
    g.a = substitute(g.a, ranges), g.b = substitute(g.b, ranges), g.loc = {};
    demand(signature, g);
  }
  join_signature(graph, signature, constants);
  return graph;
}

}  // namespace

std::string_view name_of(CpuLevel level) {
  constexpr std::string_view kNames[] = {"x86-64-v2", "x86-64-v3", "x86-64-v4"};
  return kNames[static_cast<size_t>(level)];
}

void Program::write(tnx::Writer& out, std::span<const CpuLevel> targets, bool debug) const {
  (void)targets;  // until kernel sets have bytes
  Weights weights;
  std::vector<size_t> pieces;
  for (const NamedConstant& c : constants_)
    pieces.push_back(c.type->bytes() ? weights.add(c.value, c.type->bytes()) : 0);
  out.add(Section::meta, "", meta_bytes(debug ? signature_ : without_places(signature_), options_));
  out.add(Section::graph, "", to_text(graph_));
  std::vector<uint64_t> places = weights.write(out);
  ByteWriter list;
  list.list(constants_, [&](ByteWriter& w, const NamedConstant& c) {
    w(c.name), w(to_text(*c.type));
    w(c.type->bytes() ? places[pieces[static_cast<size_t>(&c - constants_.data())]] : 0);
  });
  out.add(Section::constants, "", std::move(list.bytes));
  if (debug) out.add(Section::debug, "", places_bytes(graph_));
}

std::shared_ptr<const Program> Program::read(std::shared_ptr<const tnx::File> file,
                                             const ReadOptions&) {
  CompileOptions options;
  Signature signature = parsed(*file, "meta", file->read(Section::meta), [&](ByteReader& in) {
    Signature made = read_signature(in);
    auto effort = in.read<uint8_t>();
    ByteReader::must(effort <= static_cast<uint8_t>(Effort::e2), "there is no such effort");
    options.effort = static_cast<Effort>(effort);
    in(options.off);
    return made;
  });
  options.sizes = signature.opt;
  std::vector<NamedConstant> constants =
      parsed(*file, "constants", file->read(Section::constants),
             [&](ByteReader& in) { return read_constants(in, *file); });
  std::string text = file->read(Section::graph);
  Graph graph = parsed(*file, "graph", "",
                       [&](ByteReader&) { return read_graph(text, signature, constants); });
  auto made = std::make_shared<Program>(std::move(signature), std::move(graph),
                                        std::move(constants), std::move(options));
  made->origin = "rebuilt: no machine code in the file";
  made->target = name_of(cpu_level());
  made->plan(made->signature().opt);
  return made;
}

}  // namespace tn
