#include "functions/compile_ahead.h"

#include <algorithm>
#include <cstring>
#include <map>

#include "base/error.h"
#include "compiler/memory_report.h"
#include "compiler/placing.h"
#include "eval/eval.h"
#include "functions/compiled.h"
#include "functions/mesh_programs.h"
#include "functions/plan_settings.h"
#include "functions/traced.h"
#include "ir/body.h"
#include "ir/interned.h"
#include "ir/rewrite.h"
#include "ops/op_decls.h"
#include "runtime/device.h"

namespace tn {
namespace {

using Range = InputSignature::Range;

/// Whether a symbol of sizes may be called so.
bool is_identifier(std::string_view name) {
  auto letter = [](char c) { return std::isalnum(static_cast<unsigned char>(c)) || c == '_'; };
  return !name.empty() && !std::isdigit(static_cast<unsigned char>(name[0])) &&
         std::ranges::all_of(name, letter) && name != "min" && name != "max";
}

/// Gives open sizes their symbols.
class Symbols {
 public:
  explicit Symbols(const std::vector<InputInfo>& inputs) {
    for (const InputInfo& in : inputs)
      for (const DimensionInfo& d : in.shape) taken_.push_back(d.name);
  }

  Dim symbol(const Range& r, const std::string& path) {
    if (r.name.empty()) return add(fresh(), r);
    auto [at, is_new] = named_.try_emplace(r.name, Named{r, path, {}});
    const Range& first = at->second.range;
    if (first.min != r.min || first.opt != r.opt || first.max != r.max)
      fail(
          "compile: dimension `{}` is ({}, {}, {}) in {} and ({}, {}, {}) in {}: one name has one "
          "range",
          r.name, first.min, first.opt, first.max, at->second.path, r.min, r.opt, r.max, path);
    if (!r.is_open()) return r.min;
    if (is_new) at->second.symbol = add(is_identifier(r.name) ? r.name : fresh(), r);
    return at->second.symbol;
  }
  std::vector<Binding> opt;

 private:
  struct Named {
    Range range;
    std::string path;
    Dim symbol;
  };
  std::string fresh() {
    std::string name;
    do name = format("s{}", next_++);
    while (std::ranges::count(taken_, name));
    return name;
  }
  Dim add(const std::string& name, const Range& r) {
    if (!r.is_open()) return r.min;
    Dim made = Dim::symbol(name, r.min, r.max);
    opt.push_back({made, r.opt});
    return made;
  }

  std::vector<std::string> taken_;
  std::map<std::string, Named> named_;
  int next_ = 0;
};

InputSignature signature_of(const InputInfo& info, size_t number, Symbols& symbols) {
  InputSignature made;
  made.name = info.name.empty() ? format("arg{}", number) : info.name;
  made.place = info.place;
  if (info.is_size && info.shape.size() != 1)
    fail("compile: the size `{}` has {} ranges, not 1", made.name, info.shape.size());
  Type type{info.dtype, {}};
  for (size_t k = 0; k < info.shape.size(); ++k) {
    const DimensionInfo& d = info.shape[k];
    std::string path = info.is_size ? made.name : format("{}.shape[{}]", made.name, k);
    if (d.min < 0 || d.min > d.opt || d.opt > d.max || d.max > Dim::kLargestSymbol)
      fail("compile: {} needs 0 <= min <= opt <= max, given ({}, {}, {})", path, d.min, d.opt,
           d.max);
    made.sizes.push_back({d.min, d.opt, d.max, d.name});
    type.shape.push_back(symbols.symbol(made.sizes.back(), path));
  }
  if (info.is_size)
    made.size = type.shape[0];
  else
    made.type = intern(type);
  return made;
}

/// "add at model.py:88"; the op is one of those recorded there.
std::string asked_by(const SizeGuard& guard, const Graph& graph) {
  Place place = resolve(guard.loc);
  if (place.file.empty()) return "";
  auto op =
      std::ranges::find(graph.ops, guard.loc.bits, [](const GraphOp& o) { return o.loc.bits; });
  std::string where = format("{}:{}", place.file, place.line);
  return op == graph.ops.end() ? where : format("{} at {}", op->op->name, where);
}

/// What to do where a guard does not hold on a whole range.
Hint advice(const Signature& signature, const SizeGuard& guard) {
  auto is_size = [&](Dim d) { return find_symbol(signature.opt, d) != nullptr; };
  bool is_number =
      guard.kind == SizeGuard::Kind::equal && guard.holds &&
      ((is_size(guard.a) && guard.b.is_const()) || (is_size(guard.b) && guard.a.is_const()));
  if (is_number)
    return {
        "use the size itself, x.shape[i], where it is a number, as after int, len and range; or "
        "narrow the range",
        "use the size itself, x.shape()[i], where it is a number, as after dim(i); or narrow "
        "the range"};
  return {"narrow the range so that one answer serves it, or make an executable for each"};
}

/// Assumptions must hold at the ends of the ranges; in between calls are checked.
void add_demand(Signature& signature, const SizeGuard& guard, std::string place) {
  constexpr std::pair<int64_t Range::*, std::string_view> kEnds[] = {{&Range::min, "min"},
                                                                     {&Range::max, "max"}};
  for (auto [end, name] : kEnds) {
    std::vector<Binding> sizes = signature.at(end);
    if (holds(guard, sizes)) continue;
    fail(advice(signature, guard), "{}(): {} holds at opt ({}) and not at {} ({}){}",
         signature.function, signature.text_of(guard), signature.values_text(guard, signature.opt),
         name, signature.values_text(guard, sizes),
         place.empty() ? "" : format(", required by {}", place));
  }
  signature.demands.push_back({guard, std::move(place)});
  signature.demands.back().guard.loc = {};
}

/// The line that makes a value; none of an input.
Loc made_at(const Graph& graph, Val v) {
  auto after = std::ranges::upper_bound(graph.ops, v, {}, &GraphOp::out);
  return v < graph.inputs() || after == graph.ops.begin() ? Loc() : (after - 1)->loc;
}

/// On a mesh sums of a tensor may have other bits than on the host.
void check_host(const std::string& function, const Graph& graph) {
  for (const GraphOp& op : graph.ops) {
    if (op.op == &ops::to_device) continue;
    for (TypeRef type : graph.in_types(op))
      if (type->rank() > 0 && type->device.is_host())
        fail(Hint{"move it there before, .to(mesh), or compute it outside of the function"},
             "{}(): an executable is for one mesh, and {} computes {} on the host{}", function,
             op.op->name, *graph.types[static_cast<size_t>(op.out)], called_at(op.loc));
  }
}

/// Executables run where their arguments are, or on a mesh. Tensors of the host travel there.
Graph anywhere(const std::string& function, const Graph& graph, Device here, const Mesh& mesh) {
  check_worker_functions(graph, mesh);
  bool is_on_mesh = !mesh.axes.empty();
  if (is_on_mesh) check_host(function, graph);
  for (Val v = 0; v < graph.values(); ++v) {
    TypeRef type = graph.types[static_cast<size_t>(v)];
    bool travels = type->rank() == 0 || (is_on_mesh && v < graph.inputs());
    if (type->device != here && !(travels && type->device.is_host()))
      fail(Hint{"compile under `with tn.device(...)` of what it uses, or move that",
                "compile under a tn::DeviceScope of what it uses, or move that"},
           "{}(): an executable is for one device, and this uses {} and {}{}", function,
           to_text(here), *type, called_at(made_at(graph, v)));
  }
  return without_devices(graph);
}

/// Memory of others may change later, and an executable does not: it takes a copy.
Bound kept(Bound value, TypeRef type, bool is_on_mesh) {
  if (is_on_mesh && !value.buffer->device.is_host()) return kept_on_mesh(value);
  if (!value.buffer->device.is_host()) return copy_to({}, value, value.bytes());
  if (!value.buffer->owner) return value;
  auto bytes = static_cast<size_t>(type->bytes());
  BufferRef own = allocate(bytes);
  if (bytes > 0) std::memcpy(own.data(), HostView(value).data(), bytes);
  return {std::move(own), 0};
}

/// Constants by the names they were given, or their numbers.
std::vector<NamedConstant> constants_of(const Tensors& leaves, const AheadSettings& settings) {
  std::vector<NamedConstant> made;
  for (const Tensor& leaf : leaves) {
    Bound value = bound_of(slot_of(leaf));
    auto is_it = [&](const auto& named) {
      const Slot& slot = slot_of(named.second);
      return slot.type == type_of(leaf) && slot.data == value.buffer.get() &&
             slot.offset == value.offset;
    };
    auto known = std::ranges::find_if(settings.constants, is_it);
    made.push_back({known == settings.constants.end() ? format("c{}", made.size()) : known->first,
                    on_device(type_of(leaf), {}),
                    kept(std::move(value), type_of(leaf), !settings.mesh.axes.empty())});
  }
  return made;
}

/// A name of a value in texts of graphs, none of `taken`.
std::string value_name(const std::string& name, std::vector<std::string>& taken) {
  std::string made = name;
  for (char& c : made)
    if (!std::isalnum(static_cast<unsigned char>(c))) c = '_';
  if (made.empty() || std::isdigit(static_cast<unsigned char>(made[0]))) made = "x" + made;
  while (std::ranges::count(taken, made)) made += "_";
  return taken.emplace_back(std::move(made));
}

void name_inputs(Graph& graph, const Signature& signature,
                 const std::vector<NamedConstant>& constants) {
  std::vector<std::string> names;
  for (const InputSignature& in : signature.inputs)
    if (in.type) value_name(in.name, names);
  for (const NamedConstant& c : constants) value_name(c.name, names);
  graph.input_names = std::move(names);
}

/// Files for meshes have no machine code: plans depend on the layouts of a call.
void check_mesh_settings(const AheadSettings& settings) {
  if (settings.plan.targets != PlanSettings().targets)
    fail(Hint{"leave it out: a file for a mesh is compiled where it is loaded"},
         "{}(): target_hardware does not apply to an executable for a mesh", settings.name);
}

void check_memory(const Program& program, int64_t limit, Effort effort) {
  if (!limit) return;
  const Signature& signature = program.signature();
  MemoryReport report = memory_report(*program.plan(signature.at(&Range::max)));
  if (report.peak > limit)
    fail(Fault::memory, Hint{"use a smaller max, or raise memory_limit"}, "{}(): {}",
         signature.function,
         over_limit_text(report, limit, effort, program.mesh() ? " of a worker" : ""));
}

std::shared_ptr<Program> made_program(Signature signature, Graph graph,
                                      std::vector<NamedConstant> constants, CompileOptions options,
                                      const AheadSettings& settings) {
  if (settings.mesh.axes.empty()) {
    auto program = std::make_shared<Program>(std::move(signature), std::move(graph),
                                             std::move(constants), std::move(options));
    program->targets = targets_named(settings.plan.targets, "target_hardware");
    auto at = std::ranges::find_if_not(program->targets, is_for_host);
    if (at != program->targets.end())
      program->sets_for(*at);  // what cannot be saved is an error now
    return program;
  }
  ProgramMesh mesh = program_mesh(settings.mesh, constants);
  auto program =
      std::make_shared<Program>(std::move(signature), std::move(graph), std::move(constants),
                                std::move(options), std::move(mesh));
  // What cannot be divided is an error now.
  memory_report(*program->plan(program->signature().opt));
  return program;
}

}  // namespace

std::shared_ptr<const Program> program_of(const SizedFunction& f,
                                          const std::vector<InputInfo>& inputs,
                                          const AheadSettings& settings) {
  LastingScope lasting;
  Signature signature;
  signature.function = settings.name;
  Symbols symbols(inputs);
  std::vector<TypeRef> types;
  std::vector<Dim> sizes;
  bool is_on_mesh = !settings.mesh.axes.empty();
  if (is_on_mesh) check_mesh_settings(settings);
  Device here = is_on_mesh ? device_of(settings.mesh) : current_device();
  DeviceScope scope(here);
  for (const InputInfo& info : inputs) {
    const InputSignature& in =
        signature.inputs.emplace_back(signature_of(info, signature.inputs.size(), symbols));
    in.type ? types.push_back(on_device(in.type, here)) : sizes.push_back(in.size);
  }
  signature.opt = std::move(symbols.opt);

  Traced traced =
      trace([&](const Tensors& params) { return f(params, sizes); }, types, signature.opt);
  if (traced.results == 0) fail("{}(): returns no tensor, expected 1 or more", settings.name);
  if (traced.bound)
    fail(Hint{"pass the value as an argument, or compile outside of the traced function"},
         "{}(): uses a value of a function that is being traced around it", settings.name);
  for (const SizeGuard& g : traced.guards) add_demand(signature, g, asked_by(g, traced.graph));
  Graph graph = anywhere(settings.name, substitute(traced.graph, solve(traced.guards).replacements),
                         here, settings.mesh);
  for (size_t i = 0; i < traced.results; ++i)
    signature.outputs.push_back(graph.types[static_cast<size_t>(graph.outputs[i])]);
  if (settings.surface) {
    Surface kept = settings.surface();
    signature.surface = std::move(kept.text);
    signature.output_names = std::move(kept.output_names);
  }
  signature.output_names.resize(traced.results);
  flush(traced.leaves);
  std::vector<NamedConstant> constants = constants_of(traced.leaves, settings);
  name_inputs(graph, signature, constants);
  CompileOptions options = options_of(settings.optimization_level, settings.plan);
  options.sizes = signature.opt;
  options.memory_limit = settings.memory_limit;

  HostUnlocked unlocked;
  std::shared_ptr<Program> program = made_program(
      std::move(signature), std::move(graph), std::move(constants), std::move(options), settings);
  program->origin = "compiled";
  for (const GraphOp& op : program->graph().ops) program->places.push_back(to_text(op.loc));
  check_memory(*program, settings.memory_limit, effort_of(settings.optimization_level));
  return program;
}

}  // namespace tn
