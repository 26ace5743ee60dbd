// Programs from files.
#include <algorithm>
#include <map>
#include <ranges>

#include "base/error.h"
#include "compiler/compiler.h"
#include "compiler/set_bytes.h"
#include "compiler/set_format.h"
#include "executable/file_sections.h"
#include "executable/program.h"
#include "executable/program_mesh.h"
#include "ir/interned.h"
#include "ir/rewrite.h"
#include "runtime/device.h"
#include "storage/seal.h"

namespace tn {

constinit const MeshPrograms* mesh_programs = nullptr;

namespace {

using Section = tnx::Kind;

/// Files up to this size are verified when they are loaded, which takes less than a millisecond.
constexpr uint64_t kVerifiedAtOnce = uint64_t{4} << 20;

/// Reads a section; what is wrong with it is said with its name.
template <class F>
auto parsed(const tnx::File& file, std::string_view section, const std::string& bytes, F&& parse) {
  try {
    ByteReader in(bytes);
    auto made = parse(in);
    ByteReader::must(in.at_end(), "it goes on behind its end");
    return made;
  } catch (const UserError& e) {  // not `fail`: the place is in it already
    throw UserError(e.fault(), format("load: {}: section {}: {}", file.name(), section, e.what()));
  }
}

TypeRef read_type(ByteReader& in) {
  auto text = in.read<std::string_view>();
  std::optional<Type> type = parse_type(text);
  ByteReader::must(type && text.empty() && type->shape.is_const(), "a constant has no type");
  return intern(*type);
}

bool has_set_format(std::string_view plan) {
  return plan.size() >= sizeof kSetFormat && ByteReader(plan).read<uint32_t>() == kSetFormat;
}

struct Constants {
  std::vector<NamedConstant> named;  // of the traced graph
  std::vector<uint64_t> places;      // of all, among the weights
  std::vector<Bound> all;            // their values, then those that sets need besides
};

Constants read_constants(ByteReader& in, const tnx::File& file) {
  Constants made;
  in.list(made.named, [](ByteReader& r, NamedConstant& c) {
    r(c.name);
    c.type = read_type(r);
  });
  in.list(made.all, [&](ByteReader& r, Bound& value) {
    auto bytes = r.read<int64_t>();
    uint64_t place = made.places.emplace_back(r.read<uint64_t>());
    value = bytes ? Bound{file.weights(place, static_cast<uint64_t>(bytes)), 0} : absent_constant();
  });
  ByteReader::must(made.all.size() >= made.named.size(), "constants have no places");
  for (size_t i = 0; i < made.named.size(); ++i) {
    const Bound& at = made.all[i];
    auto bytes = static_cast<size_t>(made.named[i].type->bytes());
    ByteReader::must(at.is_absent() || at.buffer.bytes() == bytes,
                     "a constant has another number of bytes");
    if (made.named[i].type->bytes() == 0) made.all[i] = {allocate(0), 0};
    made.named[i].value = made.all[i];
  }
  return made;
}

/// A size that the file's graph takes for granted is checked at every call.
void demand(Signature& signature, const SizeGuard& guard) {
  Tri known =
      guard.kind == SizeGuard::Kind::equal ? equal(guard.a, guard.b) : at_least(guard.a, guard.b);
  if (known == (guard.holds ? Tri::yes : Tri::no)) return;
  auto same = [&](const SizeDemand& d) {
    return d.guard.kind == guard.kind && identical(d.guard.a, guard.a) &&
           identical(d.guard.b, guard.b) && d.guard.holds == guard.holds;
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
  std::vector<Binding> hints = signature.opt;
  std::vector<Replacement> ranges;  // the text knows symbols by name only
  for (const Binding& b : signature.opt) {
    ranges.push_back({Dim::symbol(symbol_name(b.symbol)), b.symbol});
    hints.push_back({ranges.back().symbol, b.value});
  }
  SizeHints sizes(std::move(hints));
  Graph graph = substitute(parse_graph(text), ranges);
  for (SizeGuard g : sizes.guards) {
    g.a = substitute(g.a, ranges), g.b = substitute(g.b, ranges), g.loc = {};
    demand(signature, g);
  }
  join_signature(graph, signature, constants);
  return graph;
}

using Digests = std::map<std::string, std::string>;

/// A section that is executed; without digests the caller trusts the file.
std::string executed(const tnx::File& file, Section kind, const std::string& name,
                     const std::optional<Digests>& digests) {
  std::string bytes = file.read(kind, name);
  if (digests) {
    auto found = digests->find(name);
    if (found == digests->end() || found->second != sha256(bytes))
      fail("load: {}: section {} {}: its seal does not match the contents", file.name(),
           kind == Section::code ? "code" : "plan", name);
  }
  return bytes;
}

std::vector<std::string> kernels_in(const tnx::File& file, const std::string& bytes) {
  return parsed(file, "code", bytes,
                [](ByteReader& in) { return in.read<std::vector<std::string>>(); });
}

/// The best target that a file has code for and a device of target `device` runs.
std::optional<Target> best_for(const tnx::File& file, const Target& device) {
  const Backend& backend = backend_of(device);
  for (const TargetName& known : backend.names() | std::views::reverse)
    if (!known.is_product && backend.serves(known.target, device) &&
        file.has(Section::code, known.name))
      return known.target;
  return {};
}

/// Names of all targets that a file has code for.
std::vector<std::string> held_by(const tnx::File& file) {
  std::vector<std::string> names;
  for (const tnx::SectionInfo& s : file.sections())
    if (s.kind == Section::code && s.name != kLibraryCode) names.push_back(s.name);
  return names;
}

/// Code for devices other than the CPU, which is read when one is first used.
struct CodeElsewhere {
  std::shared_ptr<const tnx::File> file;
  std::vector<Bound> constants;  // of the file
  CompileOptions options;
  Graph graph;
  std::optional<Digests> digests;

  std::shared_ptr<const CompiledGraph> operator()(const Target& device) const {
    std::optional<Target> target = best_for(*file, device);
    std::string name = target ? std::string(name_of(*target)) : "";
    std::string plan;
    if (target) plan = executed(*file, Section::plan, kOtherPlan, digests);
    if (!has_set_format(plan)) return nullptr;
    LastingScope lasting;
    std::vector<std::string> code =
        kernels_in(*file, executed(*file, Section::code, name, digests));
    if (file->has(Section::code, kLibraryCode)) {
      std::string bytes = executed(*file, Section::code, kLibraryCode, digests);
      bool is_known = parsed(*file, "code", "", [&](ByteReader&) {
        return backend_of(device).take_library_code(bytes);
      });
      if (!is_known && compiler) return nullptr;
      if (!is_known)
        fail(Hint{"save it again with this version"},
             "load: {}: another version of tenon wrote its library kernels for {}", file->name(),
             name);
    }
    CompileOptions its = options;
    its.target = *target;
    its.effort = std::max(its.effort, Effort::e1);
    its.checks_indices = false;
    std::vector<std::string_view> views(code.begin(), code.end());
    std::vector<KernelSet> sets = parsed(*file, "plan", "", [&](ByteReader&) {
      return sets_from_bytes(plan, views, constants, its, false);
    });
    return std::make_shared<const CompiledGraph>(graph, std::move(its), std::move(sets));
  }
};

/// One file being read.
class ProgramReader {
 public:
  ProgramReader(std::shared_ptr<const tnx::File> file, const Program::ReadOptions& how)
      : shared_(std::move(file)),
        file_(*shared_),
        device_(how.device),
        trust_(how.trust),
        verify_(how.verify.value_or(true)),
        at_once_(how.verify.value_or(file_.bytes() <= kVerifiedAtOnce)) {}

  /// Whether the weights are still to be verified when `read` has returned.
  bool is_unverified() const { return verify_ && !at_once_; }

  std::shared_ptr<Program> read() {
    if (at_once_) file_.verify();
    meta_ = file_.read(Section::meta), listed_ = file_.read(Section::constants);
    signature_ = parsed(file_, "meta", meta_, [&](ByteReader& in) { return signature(in); });
    options_.sizes = signature_.opt;
    constants_ = parsed(file_, "constants", listed_,
                        [&](ByteReader& in) { return read_constants(in, file_); });
    if (file_.has(Section::mesh)) return on_mesh();
    if (file_.has(Section::plan)) plan_ = file_.read(Section::plan);
    if (!has_set_format(plan_)) plan_.clear();  // another version wrote it: the graph is enough
    std::optional<Target> target = best_for(file_, options_.target);
    bool is_elsewhere = plan_.empty() && file_.has(Section::plan, kOtherPlan);
    std::string why = is_elsewhere ? format("it has code for {} only", join(held_by(file_), ", "))
                      : plan_.empty() ? "it has no kernels that this tenon knows"
                      : !is_trusted() ? "this user's machine did not write it, and trust was not "
                                        "given"
                      : !target       ? format("it has no code for {}", name_of(host_target()))
                                      : "";
    if (compiler && !why.empty()) return rebuilt(why);
    bool is_for_gpu = !device_.is_host() && file_.has(Section::plan, kOtherPlan);
    if (is_elsewhere && !is_for_gpu && is_trusted())
      fail(Hint{"load it on a GPU, or with the whole library"}, "load: {}: {}", file_.name(), why);
    if ((plan_.empty() && !is_for_gpu) || !is_trusted())
      fail(Hint{"load it with the whole library, or with TENON_RT_TRUST if you trust who wrote it"},
           "load: {}: {}, and the runtime has no compiler", file_.name(), why);
    return loaded(target);
  }

  /// Of the program that was read.
  void add_elsewhere(Program& program) {
    program.held = held_by(file_);
    if (!file_.has(Section::plan, kOtherPlan) || !is_trusted()) return;
    CompileOptions options = options_;
    for (const NamedConstant& c : program.constants()) options.constants.push_back(c.value);
    program.of_file = CodeElsewhere{shared_, constants_.all, std::move(options), program.graph(),
                                    trust_ ? std::nullopt : digests_};
    if (device_.is_host()) return;
    if (auto best = best_for(file_, runtime_of(device_).target(device_)))
      program.target = name_of(*best);
  }

 private:
  Signature signature(ByteReader& in) {
    Signature made = read_signature(in);
    options_.products = Products::highest;
    auto effort = in.read<uint8_t>();
    ByteReader::must(effort <= static_cast<uint8_t>(Effort::e2), "there is no such effort");
    options_.effort = static_cast<Effort>(effort);
    in(options_.off);
    if (!in.at_end()) in(options_.memory_limit);
    if (in.at_end()) return made;
    auto planning = in.read<uint8_t>();
    ByteReader::must(planning <= static_cast<uint8_t>(MemoryPlanning::none),
                     "there is no such way to plan memory");
    options_.memory_planning = static_cast<MemoryPlanning>(planning);
    in(options_.one_thread), in(options_.on);
    if (in.at_end()) return made;
    auto products = in.read<uint8_t>();
    ByteReader::must(products <= static_cast<uint8_t>(Products::exact),
                     "there is no such precision of products");
    options_.products = static_cast<Products>(products);
    return made;
  }

  /// By the caller, or by the seal, which has a digest of the code of each target.
  bool is_trusted() {
    if (trust_ || digests_) return true;
    if (!file_.has(Section::seal)) return false;
    std::string bytes = file_.read(Section::seal);
    return parsed(file_, "seal", bytes, [&](ByteReader& in) {
      Digests digests;
      ByteWriter sealed;
      sealed(meta_), sealed(listed_), sealed(plan_);
      for (auto count = in.read<uint64_t>(); count > 0; --count) {
        auto target = in.read<std::string>();
        digests[target] = in.read<std::string>();
      }
      auto seal = in.read<std::string>();
      size_t listed = bytes.size() - seal.size() - sizeof(uint64_t);
      bool fits = seal_fits(sealed.bytes + bytes.substr(0, listed), seal);
      if (fits) digests_ = std::move(digests);
      return fits;
    });
  }

  std::vector<std::string> code_of(const Target& target) {
    std::string bytes = executed(file_, Section::code, std::string(name_of(target)),
                                 trust_ ? std::nullopt : digests_);
    return kernels_in(file_, bytes);
  }

  std::vector<KernelSet> sets(const std::vector<std::string>& code) {
    std::vector<std::string_view> views(code.begin(), code.end());
    return parsed(file_, "plan", "", [&](ByteReader&) {
      return sets_from_bytes(plan_, views, constants_.all, options_, !is_trusted());
    });
  }

  /// Constants of the traced graph, also those that the file has packed only.
  std::vector<Bound> restored(const Graph& traced) {
    std::vector<Bound> values;
    for (const NamedConstant& c : constants_.named) values.push_back(c.value);
    if (plan_.empty()) return values;
    std::vector<KernelSet> made = sets({});
    return parsed(file_, "plan", "", [&](ByteReader&) {
      restore_constants(traced, made, values);
      return values;
    });
  }

  Graph graph() {
    std::string text = file_.read(Section::graph);
    return parsed(file_, "graph", "",
                  [&](ByteReader&) { return read_graph(text, signature_, constants_.named); });
  }

  std::vector<std::string> places() {
    if (!file_.has(Section::debug)) return {};
    return parsed(file_, "debug", file_.read(Section::debug),
                  [](ByteReader& in) { return in.read<std::vector<std::string>>(); });
  }

  std::shared_ptr<Program> loaded(std::optional<Target> target) {
    std::vector<KernelSet> made;
    if (!plan_.empty())  // else it has code for GPUs only
      made = sets(target ? code_of(*target) : std::vector<std::string>());
    // Without a compiler nothing reads it.
    Graph traced = compiler ? graph() : Graph();
    auto program =
        std::make_shared<Program>(std::move(signature_), std::move(traced),
                                  std::move(constants_.named), options_, std::move(made));
    program->origin = "loaded";
    program->places = places();
    program->target = target ? name_of(*target) : "interpreter";
    return program;
  }

  std::shared_ptr<Program> on_mesh() {
    if (!mesh_programs)
      fail(Hint{"load it with the whole library, or compile it without mesh="},
           "load: {} is for a mesh of workers, and the runtime runs on one device", file_.name());
    Graph traced = graph();
    auto program = mesh_programs->read({shared_, std::move(signature_), std::move(traced),
                                        std::move(constants_.named), std::move(constants_.places),
                                        options_, is_unverified()});
    program->places = places();
    return program;
  }

  std::shared_ptr<Program> rebuilt(const std::string& why) {
    if (is_unverified()) file_.verify();  // compiling computes with constants
    at_once_ = true;
    Graph traced = graph();
    std::vector<Bound> values = restored(traced);
    for (size_t i = 0; i < values.size(); ++i) constants_.named[i].value = std::move(values[i]);
    auto program = parsed(file_, "graph", "", [&](ByteReader&) {
      return std::make_shared<Program>(std::move(signature_), std::move(traced),
                                       std::move(constants_.named), options_);
    });
    program->places = places();
    bool is_interpreted = program->options().effort == Effort::e0;  // there is nothing to rebuild
    program->origin = is_interpreted ? "loaded" : format("rebuilt: {}", why);
    return program;
  }

  const std::shared_ptr<const tnx::File> shared_;
  const tnx::File& file_;
  const Device device_;
  const bool trust_, verify_;
  bool at_once_;  // verified before anything is made of the file
  std::string meta_, listed_, plan_;
  Signature signature_;
  CompileOptions options_;
  Constants constants_;
  std::optional<Digests> digests_;  // once the seal was found to fit
};

}  // namespace

std::shared_ptr<const Program> Program::read(std::shared_ptr<const tnx::File> file,
                                             const ReadOptions& options) {
  LastingScope lasting;
  ProgramReader reader(file, options);
  std::shared_ptr<Program> program = reader.read();
  if (program->mesh()) return program;
  reader.add_elsewhere(*program);
  if (reader.is_unverified()) program->verify_with([file] { file->verify(); });
  if (!compiler && !options.device.is_host()) program->code_on(options.device);  // or it says why
  return program;
}

}  // namespace tn
