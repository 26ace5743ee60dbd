#include "backend/source/c_plan.h"

#include <algorithm>
#include <set>
#include <unordered_map>

#include "backend/source/c_call.h"
#include "backend/source/c_expressions.h"
#include "backend/source/c_printer.h"
#include "base/error.h"
#include "ir/body.h"
#include "loop/lowering.h"
#include "plan/library.h"

namespace tn::source {
namespace {

int64_t aligned(int64_t bytes) { return (bytes + 63) / 64 * 64; }

/// "add f32[8,10], relu f32[8,10]": what the kernel of a step computes.
std::string ops_text(const Step& step) {
  std::vector<std::string> parts;
  const OpDef* called = step.call() ? step.call()->op : nullptr;
  for (const Step::Op& op : step.ops)
    if (op.op != called) parts.push_back(format("{} {}", op.op->name, *op.type));
  std::string text, line = "/* ";
  for (size_t i = 0; i < parts.size(); ++i) {
    std::string part = parts[i] + (i + 1 < parts.size() ? ", " : "");
    if (line.size() + part.size() > 96)
      text += line.substr(0, line.size() - 1) + "\n", line = "   ";
    line += part;
  }
  return parts.empty() ? "" : text + line + " */\n";
}

/// The user's lines that a step computes, without folders.
std::string places_text(const Step& step) {
  std::set<std::string> places;
  auto add = [&](Loc loc) {
    Place place = resolve(loc);
    if (place.line > 0)
      places.insert(format("{}:{}", place.file.substr(place.file.rfind('/') + 1), place.line));
  };
  for (const Step::Op& op : step.ops) add(op.loc);
  if (places.empty()) add(step.loc);
  if (places.empty()) return "";
  if (places.size() > 4) places.erase(std::next(places.begin(), 4), places.end());
  return format(" /* {} */", join(places, ", "));
}

/// What all functions of a file share.
class FilePrinter {
 public:
  explicit FilePrinter(const PlanOf& plan_of) : plan_of_(plan_of) {}

  /// The name of a function that `print` prints for a name; equal ones are printed once.
  template <class F>
  std::string function_named(std::string_view stem, const std::string& comment, F&& print) {
    std::string& name = named_[print("f")];
    if (!name.empty()) return name;
    name = format("{}_{}", stem, named_.size());
    functions += "\n" + comment + print(name);
    return name;
  }

  CBody print_body(const Graph& body);

  std::string functions, constants;

 private:
  const PlanOf& plan_of_;
  std::unordered_map<std::string, std::string> named_;  // functions, by their text
};

/// The calls of one plan.
class PlanPrinter {
 public:
  PlanPrinter(FilePrinter& file, const Plan& plan, Types out, bool embeds)
      : file_(file), plan_(plan), out_(out), embeds_(embeds) {
    invariant(plan.scalars == 0, "c source: the plan takes {} numbers at run time", plan.scalars);
    place_blocks();
    place_constants();
    scratch_at_ = arena_;
    for_each_part(plan_.steps, [&](const Step& step) { print_step(step); });
    for (size_t i = 0; i < out_.size(); ++i) print_output(i);
  }

  int64_t arena() const { return arena_; }
  /// Statements over `inputs`, `outputs` and `arena`.
  std::string text() const {
    std::string unused;
    auto has = [&](std::string_view name) { return calls_.find(name) != std::string::npos; };
    for (std::string_view name : {"inputs", "outputs", "arena"})
      if (!has(format("{}{}", name, name == "arena" ? "" : "[")))
        unused += format("  (void){};\n", name);
    return unused + calls_;
  }

 private:
  static constexpr int32_t kArena = -1;

  /// The memory of an output holds the block that ends as nothing but that output; the other blocks
  /// lie in the arena, one after the other.
  void place_blocks() {
    block_output_.assign(plan_.blocks.size(), kArena);
    std::vector<int> uses(plan_.blocks.size());
    for (const Plan::Output& out : plan_.outputs)
      if (out.buffer >= plan_.first_own()) ++uses[block_of(out.buffer)];
    for (size_t i = 0; i < plan_.outputs.size(); ++i) {
      const Plan::Output& out = plan_.outputs[i];
      if (out.buffer < plan_.first_own() || out.offset != 0) continue;
      size_t block = block_of(out.buffer);
      bool alone = uses[block] == 1 && spot_of(out.buffer).offset == 0;
      if (alone && plan_.blocks[block].bytes == out_[i]->bytes())
        block_output_[block] = static_cast<int32_t>(i);
    }
    for (size_t b = 0; b < plan_.blocks.size(); ++b) {
      block_offset_.push_back(arena_);
      if (block_output_[b] == kArena) arena_ += aligned(plan_.blocks[b].bytes);
    }
  }

  /// Constants are bytes beside the file; those of bodies are numbers in it.
  void place_constants() {
    for (size_t i = 0; i < plan_.constants.size(); ++i) {
      const Bound& constant = plan_.constants[i];
      auto bytes = static_cast<size_t>(bytes_read(plan_.inputs + static_cast<int32_t>(i)));
      std::string data(HostView(constant).data(), bytes);
      data.resize(static_cast<size_t>(aligned(static_cast<int64_t>(bytes))));
      if (embeds_) {
        constant_name_.push_back(embedded(data));
      } else {
        constant_offset_.push_back(static_cast<int64_t>(file_.constants.size()));
        file_.constants += data;
      }
    }
  }

  std::string embedded(const std::string& data) {
    std::vector<std::string> words;
    for (size_t at = 0; at < data.size(); at += 8) {
      uint64_t word;
      std::memcpy(&word, data.data() + at, 8);
      words.push_back(format("{}UINT64_C({:#x})", at % 32 == 0 ? "\n  " : " ", word));
    }
    return file_.function_named("data", "", [&](std::string_view name) {
      return format("static const uint64_t {}[] = {{{}}};\n", name, join(words, ","));
    });
  }

  /// How much of a constant is read.
  int64_t bytes_read(int32_t buffer) const {
    int64_t bytes = 0;
    for_each_part(plan_.steps, [&](const Step& step) {
      for (size_t k = 0; k < step.buffers.size(); ++k)
        if (step.buffers[k] == buffer) bytes = std::max(bytes, bytes_read(step, k));
    });
    for (size_t i = 0; i < plan_.outputs.size(); ++i)
      if (plan_.outputs[i].buffer == buffer)
        bytes = std::max(bytes, plan_.outputs[i].offset + out_[i]->bytes());
    return bytes;
  }

  /// Where the operands of a call lie; none: they are row-major.
  static std::span<const Strided> places_of(const Step& step) {
    return step.library() ? std::span<const Strided>(step.library()->at)
                          : std::span<const Strided>();
  }

  static int64_t bytes_read(const Step& step, size_t place) {
    if (const CallStep* call = step.call()) {
      if (place < call->in.size()) {
        const Type& type = *call->in[place];
        std::span<const Strided> places = places_of(step);
        if (places.empty()) return call->in[place]->bytes();
        const Strided& at = places[place];
        int64_t last = at.offset;
        for (int k = 0; k < type.rank(); ++k)
          last += std::max<int64_t>(at.strides[k], 0) * (type.shape[k].value() - 1);
        return (last + 1) * size_of(type.dtype);
      }
      place -= call->in.size();
      if (place < call->out.size()) return 0;
      place -= call->out.size();
    }
    const KernelStep* kernel = step.kernel();
    if (!kernel || place >= kernel->kernel->buffers.size()) return 0;
    const loop::BufferParam& param = kernel->kernel->buffers[place];
    return param.size.value() * size_of(param.type);
  }

  const Spot& spot_of(int32_t buffer) const {
    return plan_.spots[static_cast<size_t>(buffer - plan_.first_own())];
  }
  size_t block_of(int32_t buffer) const { return static_cast<size_t>(spot_of(buffer).block); }

  /// A pointer to `offset` bytes behind the beginning of a buffer.
  std::string address(int32_t buffer, int64_t offset = 0) const {
    auto at = [](std::string base, int64_t bytes, std::string_view move) {
      return bytes == 0 ? base : format("{}({}, {})", move, base, bytes);
    };
    if (buffer < plan_.inputs) return at(format("inputs[{}]", buffer), offset, "tn_read_at");
    if (buffer < plan_.first_own()) {
      auto constant = static_cast<size_t>(buffer - plan_.inputs);
      if (embeds_) return at(constant_name_[constant], offset, "tn_read_at");
      offset += constant_offset_[constant];
      return at(format("inputs[{}]", plan_.inputs), offset, "tn_read_at");
    }
    size_t block = block_of(buffer);
    offset += spot_of(buffer).offset;
    if (int32_t output = block_output_[block]; output != kArena)
      return at(format("outputs[{}]", output), offset, "tn_at");
    return at("arena", offset + block_offset_[block], "tn_at");
  }

  void print_call(std::string_view function, std::span<const int32_t> buffers, int64_t scratch,
                  std::string_view comment) {
    std::vector<std::string> args;
    for (int32_t buffer : buffers) args.push_back(address(buffer));
    if (scratch > 0) args.push_back(format("tn_at(arena, {})", scratch_at_));
    arena_ = std::max(arena_, scratch_at_ + aligned(scratch));
    calls_ += format("  {}({});{}\n", function, join(args, ", "), comment);
  }

  void print_step(const Step& step) {
    const CallStep* call = step.call();
    const KernelStep* kernel = step.kernel();
    bool checked = step.library() && step.library()->kernel->only_checks;
    invariant(call || kernel, "c source: step {} has no form in C", step.name);
    std::span<const int32_t> buffers = step.buffers;
    size_t library = call ? call->in.size() + call->out.size() : 0;
    std::string ops = ops_text(step), places = places_text(step);
    if (call && !(checked && kernel)) {
      auto [name, scratch] = library_function(*call, places_of(step));
      print_call(name, buffers.first(library), scratch, kernel ? "" : places);
    }
    if (kernel)  // what is behind its buffers is scratch memory, which C has no use for
      print_call(file_.function_named(
                     kernel->kernel->name, ops,
                     [&](std::string_view name) { return kernel_c(*kernel->kernel, name); }),
                 buffers.subspan(library, kernel->kernel->buffers.size()), 0, places);
  }

  struct Library {
    std::string name;
    int64_t scratch;
  };

  /// What the spelling of the op says, as a function. Without one its own loops are printed.
  Library library_function(const CallStep& source, std::span<const Strided> places) {
    const OpDef& op = *source.op;
    const void* attrs = source.attrs ? source.attrs->data : nullptr;
    std::vector<std::string> types, results;
    for (TypeRef type : source.in) types.push_back(format("{}", *type));
    for (TypeRef type : source.out) results.push_back(format("{}", *type));
    std::string comment =
        format("/* {} of {}: {} */\n", op.name, join(types, ", "), join(results, ", "));
    const CSpelling* spelling = c_spelling(op);
    if (!spelling && op.rules->lower) {
      loop::Lowering nest(std::string(op.name), source.in, source.out);
      op.rules->lower(attrs, nest);
      loop::Kernel kernel = nest.b.finish();
      auto print = [&](std::string_view name) { return kernel_c(kernel, name); };
      return {file_.function_named(op.name, comment, print), 0};
    }
    if (!spelling)
      unsupported(Hint{}, "c source: {} has no form in C: {}", op.name,
                  op.module == "linalg" || op.module == "fft"
                      ? "it needs a library that C files do not have"
                      : "it is not implemented");
    std::vector<Strided> at(places.begin(), places.end());
    if (at.empty())
      for (TypeRef type : source.in) at.push_back(Strided::row_major(type->shape));
    std::vector<CBody> bodies = bodies_of(source);
    CCall call{op, source.in, source.out, at, bodies};
    std::string body = spelling->write(attrs, call);
    auto has = [&](const std::string& name) { return body.find(name) != std::string::npos; };
    std::vector<std::string> params;
    std::string unused;
    auto add = [&](Types types, std::string_view access, char letter) {
      for (size_t i = 0; i < types.size(); ++i) {
        std::string name = format("{}{}", letter, i);
        params.push_back(format("{}{} *{}", access, c_type(types[i]->dtype), name));
        if (!has(name)) unused += format("  (void){};\n", name);
      }
    };
    add(source.in, "const ", 'x');
    add(source.out, "", 'y');
    if (call.scratch > 0) params.push_back("void *scratch");
    std::string name = file_.function_named(op.name, comment, [&](auto function) {
      return format("static void {}({}) {{\n{}{}}}\n", function, join(params, ", "), unused, body);
    });
    return {name, call.scratch};
  }

  std::vector<CBody> bodies_of(const CallStep& source) {
    std::vector<CBody> bodies;
    for (GraphRef body : tn::bodies_of(source.attrs)) bodies.push_back(file_.print_body(*body));
    return bodies;
  }

  void print_output(size_t i) {
    const Plan::Output& out = plan_.outputs[i];
    int64_t bytes = out_[i]->bytes();
    bool there = out.buffer >= plan_.first_own() &&
                 block_output_[block_of(out.buffer)] == static_cast<int32_t>(i);
    if (!there && bytes > 0)
      calls_ +=
          format("  memcpy(outputs[{}], {}, {});\n", i, address(out.buffer, out.offset), bytes);
  }

  FilePrinter& file_;
  const Plan& plan_;
  Types out_;
  bool embeds_;
  std::vector<int32_t> block_output_;  // the output whose memory it is, or kArena
  std::vector<int64_t> block_offset_, constant_offset_;
  std::vector<std::string> constant_name_;
  int64_t arena_ = 0, scratch_at_ = 0;
  std::string calls_;
};

CBody FilePrinter::print_body(const Graph& body) {
  std::shared_ptr<const Plan> plan = plan_of_(body);
  std::vector<TypeRef> out;
  for (Val v : body.outputs) out.push_back(body.types[static_cast<size_t>(v)]);
  PlanPrinter printer(*this, *plan, out, true);
  std::string name = function_named("body", "", [&](std::string_view function) {
    return format(
        "static void {}(const void *const *inputs, void *const *outputs, void *arena) {{\n{}}}\n",
        function, printer.text());
  });
  return {name, printer.arena()};
}

std::string signature(std::string_view name) {
  return format("int {}_run(const void *const *inputs, void *const *outputs, void *arena)", name);
}

std::string upper(std::string_view name) {
  std::string text(name);
  std::ranges::transform(text, text.begin(), [](unsigned char c) { return std::toupper(c); });
  return text;
}

/// A name in a comment, which it does not end.
std::string commented(std::string name) {
  for (size_t at = 0; (at = name.find("*/", at)) != name.npos;) name.insert(at + 1, " ");
  return name;
}

void check_name(std::string_view name) {
  auto is_word = [](unsigned char c) { return std::isalnum(c) || c == '_'; };
  bool starts = !name.empty() && !std::isdigit(static_cast<unsigned char>(name[0]));
  if (!starts || !std::ranges::all_of(name, is_word))
    fail("c source: '{}' is no name for a function of C", name);
}

std::string declaration(const CFunction& f, int64_t arena, size_t constants) {
  std::string text = format("/* {}\n", f.name);
  for (size_t i = 0; i < f.in.size(); ++i)
    text += format("   inputs[{}]: {}{}\n", i, *f.in[i],
                   i < f.input_names.size() ? " " + commented(f.input_names[i]) : "");
  if (!f.plan->constants.empty())
    text += format("   inputs[{}]: the {} bytes of constants\n", f.in.size(), constants);
  for (size_t i = 0; i < f.out.size(); ++i) text += format("   outputs[{}]: {}\n", i, *f.out[i]);
  return text + format(
                    "   arena: aligned to 64 bytes; calls at the same time need one each. */\n"
                    "#define {}_ARENA_BYTES {}\n{};\n",
                    upper(f.name), arena, signature(f.name));
}

}  // namespace

CSource c_source(std::span<const CFunction> functions, const PlanOf& plan_of) {
  FilePrinter file(plan_of);
  std::string declarations, runs;
  for (const CFunction& f : functions) {
    check_name(f.name);
    PlanPrinter plan(file, *f.plan, f.out, false);
    std::string check = plan.arena() > 0 ? "  if (!arena) return 1;\n" : "";
    runs += format("\n{} {{\n{}{}  return 0;\n}}\n", signature(f.name), check, plan.text());
    declarations += declaration(f, plan.arena(), file.constants.size()) + "\n";
  }
  std::string guard = functions.empty() ? "TENON_H" : upper(functions[0].name) + "_H";
  std::string header = format(
      "/* C11 without dependencies. Compile with\n   {2}\n   and -fopenmp to use several threads. "
      "*/\n"
      "#ifndef {0}\n#define {0}\n\n#ifdef __cplusplus\nextern \"C\" {{\n#endif\n{1}"
      "#ifdef __cplusplus\n}}\n#endif\n#endif\n",
      guard, declarations, kCFlags);
  std::string body = file.functions + runs;
  return {header, header + "\n" + c_prelude(body) + body, std::move(file.constants)};
}

}  // namespace tn::source
