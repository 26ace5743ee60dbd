#include "functions/executable.h"

#include <algorithm>
#include <charconv>
#include <cstring>

#include "backend/source/c_plan.h"
#include "backend/source/python_source.h"
#include "base/error.h"
#include "compiler/memory_report.h"
#include "compiler/placing.h"
#include "eval/bad_values.h"
#include "eval/eval.h"
#include "functions/compile_ahead.h"
#include "functions/mesh_programs.h"
#include "functions/traced.h"
#include "ir/dtype.h"
#include "ir/interned.h"
#include "ir/place.h"
#include "ir/rewrite.h"
#include "ir/trace.h"
#include "ir/watch.h"
#include "observe/stage_text.h"
#include "runtime/device.h"
#include "tenon/files.h"
#include "tenon/nn/visit.h"
#include "transforms/tape.h"

namespace tn {

using Range = InputSignature::Range;

InputInfo size_input(DimensionInfo size, std::string name) {
  return {
      .shape = {std::move(size)}, .dtype = DType::i64, .name = std::move(name), .is_size = true};
}

static InputInfo info_of(const InputSignature& in) {
  InputInfo made{.shape = {},
                 .dtype = in.type ? in.type->dtype : DType::i64,
                 .name = in.name,
                 .is_size = !in.type,
                 .place = in.place};
  for (const Range& r : in.sizes) made.shape.emplace_back(r.min, r.opt, r.max, r.name);
  return made;
}

/// "[s0, 16]"
static std::string shape_text(const Shape& shape) {
  std::vector<std::string> sizes;
  for (Dim d : shape) sizes.push_back(to_text(d));
  return format("[{}]", join(sizes, ", "));
}

Executable::State::State(std::shared_ptr<const Program> made)
    : program(std::move(made)), before(program->counts()) {
  const Signature& signature = program->signature();
  for (const InputSignature& in : signature.inputs) inputs.push_back(info_of(in));
  for (size_t i = 0; i < signature.outputs.size(); ++i)
    outputs.push_back({shape_text(signature.outputs[i]->shape), signature.outputs[i]->dtype,
                       signature.output_names[i]});
}

static void look_at(const Program& program, std::span<const ProgramValue> args,
                    std::span<const int64_t> sizes, std::span<const ProgramValue> results) {
  std::vector<TypeRef> types;
  std::vector<Bound> in, out;
  Device there = program.mesh() ? program.mesh()->device : Device();
  for (const ProgramValue& arg : args) {
    types.push_back(on_device(arg.type, {}));
    in.push_back(copy_to(there, arg.value, arg.value.bytes()));
  }
  for (const ProgramValue& result : results) out.push_back(result.value);
  std::vector<Binding> values = program.signature().check(types, sizes);
  Graph graph = substitute(program.graph(), replacements(values));
  graph.outputs.resize(out.size());  // without effects
  if (program.mesh()) graph = placed_on(graph, there);
  check_values({graph, program.options(), in}, out);
}

Tensors Executable::operator()(const Tensors& args, const std::vector<int64_t>& sizes,
                               std::source_location at) const {
  LocScope scope(at);
  const Program& program = *state_->program;
  check_given(args, program.signature().function, "argument");
  if (Trace::tracing() || std::ranges::any_of(args, is_watched)) [[unlikely]]
    fail(Hint{"call the function that was compiled instead"},
         "{}(): an executable cannot run inside grad, vmap or compile: it needs values",
         program.signature().function);
  flush(args);
  RecordScope record;
  HostUnlocked unlocked;
  std::vector<ProgramValue> in;
  in.reserve(args.size());
  for (const Tensor& t : args) in.push_back({type_of(t), bound_of(slot_of(t))});
  std::vector<ProgramValue> out = program.run(in, sizes);
  if (is_looking()) look_at(program, in, sizes, out);
  state_->calls.fetch_add(1, std::memory_order_relaxed);
  Tensors results;
  results.reserve(out.size());
  for (ProgramValue& r : out)
    results.push_back(make_data(std::move(r.value.buffer), r.value.offset, r.type));
  if (lead_to_leaves(args)) mark_blocked(results);
  return results;
}

const std::string& Executable::name() const& { return state_->program->signature().function; }
const std::string& Executable::surface() const& { return state_->program->signature().surface; }
const std::vector<InputInfo>& Executable::inputs() const& { return state_->inputs; }
const std::vector<OutputInfo>& Executable::outputs() const& { return state_->outputs; }

int64_t Executable::peak_bytes() const {
  const Program& program = *state_->program;
  return memory_report(*program.plan(program.signature().at(&Range::max))).peak;
}

std::string Executable::memory() const {
  const Program& program = *state_->program;
  return tn::to_text(memory_report(*program.plan(program.signature().opt)));
}

/// Plans whose steps say what they do. Composites are their ops, and convolutions stay in the order
/// of the user's axes, which is the one that is fast in C.
static std::shared_ptr<const Plan> plan_for_c(const Graph& graph, CompileOptions options) {
  for (const char* pass : {"bundle", "claim", "layout"}) options.off.push_back(pass);
  return compile(graph, options);
}

static void check_has_source(const Program& program) {
  if (!program.mesh()) return;
  fail(Hint{"compile it without mesh=", "compile it without a mesh among its settings"},
       "source: {}() is for the mesh {}, and source text is for one device",
       program.signature().function, program.mesh()->text);
}

/// The graph of an executable as it is written, without effects.
static Graph graph_for_source(const Program& program) {
  Graph graph = program.graph();
  graph.outputs.resize(program.signature().outputs.size());
  return graph_for_source(graph);
}

source::CSource c_source(std::span<const NamedExecutable> functions) {
  std::vector<source::CFunction> made;
  for (const auto& [name, f] : functions) {
    const Program& program = *f.state()->program;
    const Signature& signature = program.signature();
    check_has_source(program);
    if (!signature.opt.empty())
      fail(Hint{"compile with fixed sizes"},
           "source: {}() has symbolic sizes, which C source does not support", signature.function);
    bool has_effects = program.graph().outputs.size() > signature.outputs.size();
    Graph graph = has_effects ? graph_for_source(program) : program.graph();
    std::shared_ptr<const Plan> plan = plan_for_c(graph, program.options());
    const std::vector<TypeRef>& types = graph.types;
    std::vector<std::string> names;
    for (const InputSignature& input : signature.inputs)
      if (input.type) names.push_back(input.name);
    made.push_back({name,
                    plan,
                    {types.begin(), types.begin() + plan->inputs},
                    signature.outputs,
                    std::move(names)});
  }
  Effort effort =
      functions.empty() ? Effort::e2 : functions[0].f.state()->program->options().effort;
  return source::c_source(made,
                          [&](const Graph& body) { return plan_for_c(body, {.effort = effort}); });
}

/// Whether two tensors have the same elements. Constants that a file holds only packed are unpacked
/// for each function, so equal memory is not enough of a test.
static bool is_same_constant(const Tensor& a, const Tensor& b) {
  return type_of(a) == type_of(b) &&
         (a.data() == b.data() || !std::memcmp(a.data(), b.data(), static_cast<size_t>(a.bytes())));
}

PythonFiles python_files(std::span<const NamedExecutable> functions, std::string_view target,
                         std::string_view file) {
  std::vector<Graph> graphs;
  std::vector<source::Function> written;
  source::Constants constants;
  NamedTensors tensors;
  graphs.reserve(functions.size());
  for (const auto& [name, f] : functions) {
    const Program& program = *f.state()->program;
    check_has_source(program);
    program.verify_weights();
    Graph& graph = graphs.emplace_back(graph_for_source(program));
    std::vector<Bound> values = file.empty() ? std::vector<Bound>() : program.options().constants;
    size_t first = graph.input_names.size() - program.constants().size();
    for (size_t i = 0; i < values.size(); ++i) {
      TypeRef type = program.constants()[i].type;
      Tensor value = make_data(std::move(values[i].buffer), values[i].offset, type);
      std::string& input = graph.input_names[first + i];
      auto known = [&] {
        return std::ranges::find(tensors, input, &NamedTensors::value_type::first);
      };
      while (known() != tensors.end() && !is_same_constant(known()->second, value)) input += "_";
      if (known() == tensors.end()) tensors.push_back({input, value});
      constants.inputs.push_back(input);
    }
    source::Function& function = written.emplace_back(source::Function{name, &graph});
    function.results = program.signature().output_names;
  }
  if (!tensors.empty()) constants.file = file;
  return {source::python_source(written, target, constants),
          tensors.empty() ? "" : safetensors_bytes(tensors)};
}

std::string Executable::source(std::string_view language) const {
  if (is_source_target(language)) {
    NamedExecutable one[] = {{name(), *this}};
    return python_files(one, language, "").text;
  }
  if (language != "c")
    fail("source: no language \"{}\": there are c, {}", language,
         join(source::source_targets(), ", "));
  NamedExecutable one[] = {{"tenon", *this}};
  return c_source(one).source;
}

std::string Executable::show(std::string_view stage) const {
  const Program& program = *state_->program;
  HostUnlocked unlocked;
  if (is_source_target(stage)) check_has_source(program);
  if (is_source_target(stage))
    return python_text(substitute(program.graph(), replacements(program.signature().opt)),
                       program.options(), stage);
  return stage_text(program.graph(), stage,
                    [&] { return program.compilation(program.signature().opt); });
}

ExecutableStats Executable::stats() const {
  const Program& program = *state_->program;
  CompileCounts now = program.counts();
  Program::Kernels kernels = program.kernels();
  return {.calls = state_->calls,
          .plans = now.plans,
          .kernels = kernels.native,
          .interpreted = kernels.interpreted,
          .kernels_compiled = now.compiled - state_->before.compiled,
          .target = program.target,
          .origin = program.origin,
          .mesh = program.mesh() ? program.mesh()->text : ""};
}

/// "1 to 16, best at 8"
static std::string range_text(const DimensionInfo& d) {
  return format("{} to {}, best at {}", d.min, d.max, d.opt);
}

std::string Executable::to_text() const {
  const Signature& signature = state_->program->signature();
  std::vector<std::string> in, out;
  std::string ranges;
  for (const InputSignature& input : signature.inputs) {
    in.push_back(input.type ? format("{}: {}{}", input.name, info(input.type->dtype).name,
                                     shape_text(input.type->shape))
                            : format("{}: size", input.name));
    for (size_t k = 0; k < input.sizes.size(); ++k)
      if (input.sizes[k].is_open())
        ranges += format("\n  {} = {}: {}", input.path(k), tn::to_text(input.dim(k)),
                         range_text(info_of(input).shape[k]));
  }
  for (TypeRef type : signature.outputs)
    out.push_back(format("{}{}", info(type->dtype).name, shape_text(type->shape)));
  std::string text =
      format("{}({}) -> {}{}", signature.function, join(in, ", "), join(out, ", "), ranges);
  for (const SizeDemand& d : signature.demands)
    text += format("\n  {}{}", signature.text_of(d.guard),
                   d.place.empty() ? "" : format(", required by {}", d.place));
  const Program& program = *state_->program;
  if (program.mesh())  // kernels are made when the layouts of a call are known
    return text + format("\n  on the mesh {}, {}", program.mesh()->text, program.origin);
  ExecutableStats s = stats();
  return text + format("\n  {} {} for {}, {}", s.kernels, s.kernels == 1 ? "kernel" : "kernels",
                       s.target, s.origin);
}

Executable flat::compile_ahead_sized(const SizedFunction& f, const std::vector<InputInfo>& inputs,
                                     const AheadSettings& settings) {
  return Executable(SharedPtr<Executable::State>::make(program_of(f, inputs, settings)));
}

Executable flat::compile_ahead(const Function& f, const std::vector<InputInfo>& inputs,
                               const AheadSettings& settings) {
  if (std::ranges::any_of(inputs, &InputInfo::is_size))
    fail("compile_ahead: inputs that are sizes need compile_ahead_sized");
  return compile_ahead_sized([&f](const Tensors& args, const std::vector<Dim>&) { return f(args); },
                             inputs, settings);
}

void typed::check_counts(const Executable& executable, int64_t inputs, int64_t outputs) {
  auto check = [&](std::string_view what, size_t has, int64_t wanted) {
    if (wanted >= 0 && has != static_cast<size_t>(wanted))
      fail(Fault::type, "load: {} has {} {}, and the signature {}", executable.name(), has, what,
           wanted);
  };
  check("inputs", executable.inputs().size(), inputs);
  check("outputs", executable.outputs().size(), outputs);
}

// Inputs and outputs by name -------------------------------------------------------------------

Tensors typed::inputs_by_name(const Executable& executable, const ByName& given) {
  const std::vector<InputInfo>& inputs = executable.inputs();
  std::vector<std::string> names;
  for (const InputInfo& input : inputs)
    if (!input.is_size) names.push_back(input.name);
  for (const auto& [name, tensor] : given)
    if (!std::ranges::count(names, name))
      fail(Hint{format("its inputs are {}", join(names, ", "))}, "{}(): there is no input '{}'",
           executable.name(), name);
  Tensors in_order;
  for (const std::string& name : names) {
    auto found = given.find(name);
    if (found == given.end()) fail("{}(): the input '{}' is missing", executable.name(), name);
    in_order.push_back(found->second);
  }
  return in_order;
}

typed::ByName typed::inputs_by_name(const std::vector<InputInfo>& inputs, const Tensors& given) {
  ByName named;
  for (size_t i = 0; i < inputs.size(); ++i) {
    if (inputs[i].name.empty())
      fail(Hint{"the keys of the map are the names: {.shape = {2}, .name = \"x\"}"},
           "compile_ahead: input {} has no name", i);
    if (!named.emplace(inputs[i].name, given[i]).second)
      fail("compile_ahead: two inputs are called {}", inputs[i].name);
  }
  return named;
}

typed::ByName typed::outputs_by_name(const Executable& executable, Tensors made) {
  ByName named;
  for (size_t i = 0; i < made.size(); ++i)
    named.emplace(executable.outputs()[i].name, std::move(made[i]));
  return named;
}

void typed::check_named_outputs(const Executable& executable) {
  const std::vector<OutputInfo>& outputs = executable.outputs();
  for (size_t i = 0; i < outputs.size(); ++i)
    if (outputs[i].name.empty())
      fail(Fault::type, Hint{"a signature with tn::Tensors as its result takes any file"},
           "load: output {} of {} has no name", i, executable.name());
}

std::vector<std::string> typed::output_names(const Callback<void(tree::Visitor&)>& result) {
  struct Names final : tree::Visitor {
    std::vector<std::string> all;
    void tensor(const tree::Slot& slot) override {
      if (!slot.is_absent()) all.push_back(slot.path.dotted());
    }
  } names;
  result(names);
  return std::move(names.all);
}

// Settings in arguments ------------------------------------------------------------------------

namespace {

constexpr std::string_view kSettings = "c++ settings";

/// The path of word `number`.
struct FindingWord final : tree::Visitor {
  size_t number;
  std::string found = {};
  explicit FindingWord(size_t wanted) : number(wanted) {}
  void module(const tree::Path& path, nn::ModuleBase&, VisitModule*) override {
    setting({.outer = &path, .name = "training"}, 0);
  }
  void setting(const tree::Path& path, uint64_t) override {
    if (number-- == 0) found = path.accessed();
  }
};

/// The path in `tree` of the first word that differs; "": none.
std::string first_difference(const std::vector<uint64_t>& a,
                             const Callback<void(tree::Visitor&)>& tree) {
  typed::Settings b;
  tree(b);
  if (a == b.words) return "";
  auto [at, other] = std::ranges::mismatch(a, b.words);
  FindingWord finding(static_cast<size_t>(other - b.words.begin()));
  tree(finding);
  return finding.found.empty() ? "the number of settings" : finding.found;
}

}  // namespace

void typed::Settings::module(const tree::Path&, nn::ModuleBase& module, VisitModule*) {
  words.push_back(module.training);
}
void typed::Settings::setting(const tree::Path&, uint64_t bits) { words.push_back(bits); }

std::string typed::text_of(const Settings& settings) {
  std::string text(kSettings);
  for (uint64_t word : settings.words) text += format(" {:x}", word);
  return text;
}

std::vector<uint64_t> typed::settings_in(const std::string& surface) {
  std::vector<uint64_t> words;
  if (!surface.starts_with(kSettings)) return words;
  const char* at = surface.data() + kSettings.size();
  const char* end = surface.data() + surface.size();
  while (at != end && *at == ' ') {
    auto [after, error] = std::from_chars(at + 1, end, words.emplace_back(), 16);
    if (error != std::errc()) fail("load: the settings of arguments in the file are damaged");
    at = after;
  }
  return words;
}

void typed::check_settings(const std::vector<uint64_t>& made,
                           const Callback<void(tree::Visitor&)>& arguments) {
  if (std::string path = first_difference(made, arguments); !path.empty())
    fail(Hint{"settings are those of default-constructed arguments: close over another value, or "
              "make it a tensor"},
         "executable: {} is not what the function was compiled with", path);
}

void typed::check_result(const Callback<void(tree::Visitor&)>& result,
                         const Callback<void(tree::Visitor&)>& fresh) {
  Settings of_fresh;
  fresh(of_fresh);
  if (std::string path = first_difference(of_fresh.words, result); !path.empty())
    fail(Hint{"return tensors, in a tuple, a pair, an array or a struct"},
         "compile_ahead: an executable returns tensors only, and {} is something else", path);
}

void typed::InputNames::tensor(const tree::Slot& slot) {
  constexpr std::string_view kWord = "argument ";
  all.push_back("arg" + slot.path.accessed().substr(kWord.size()));
}

void typed::name_inputs(std::vector<InputInfo>& inputs, const std::vector<std::string>& names) {
  if (inputs.size() != names.size())
    fail("compile_ahead: {} inputs are described, and the function takes {} tensors", inputs.size(),
         names.size());
  for (size_t i = 0; i < inputs.size(); ++i)
    if (inputs[i].name.empty()) inputs[i].name = names[i];
}

void Executable::save(const std::string& path, const SaveSettings& settings,
                      std::source_location at) const {
  LocScope scope(at);
  HostUnlocked unlocked;
  tnx::Writer out;
  if (state_->program->mesh() && !settings.targets.empty())
    fail(Hint{"leave targets out: it is compiled where it is loaded"},
         "save: the file of an executable for a mesh holds no machine code: {}()", name());
  check_can_be_saved(*state_->program);
  std::vector<Target> targets =
      settings.targets.empty() ? state_->program->targets : targets_named(settings.targets, "save");
  state_->program->write(out, targets, settings.debug);
  out.save(path);
}

Executable Executable::load(const std::string& path, const LoadSettings& settings,
                            std::source_location at) {
  LocScope scope(at);
  HostUnlocked unlocked;
  return Executable(SharedPtr<Executable::State>::make(
      Program::read(tnx::File::open(path), {.trust = settings.trust, .verify = settings.verify})));
}

}  // namespace tn
