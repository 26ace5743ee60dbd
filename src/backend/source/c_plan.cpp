#include "backend/source/c_plan.h"

#include <algorithm>
#include <unordered_map>

#include "backend/source/c_dot.h"
#include "backend/source/c_printer.h"
#include "base/error.h"
#include "loop/step_source.h"

namespace tn::source {
namespace {

int64_t aligned(int64_t bytes) { return (bytes + 63) / 64 * 64; }

class PlanPrinter {
 public:
  PlanPrinter(const Plan& plan, Types in, Types out, std::string_view name)
      : plan_(plan), in_(in), out_(out), name_(name) {
    if (plan.scalars > 0)
      fail(Hint{"compile with the numbers as constants"},
           "c source: the plan takes {} numbers at run time", plan.scalars);
    place_blocks();
    place_constants();
  }

  CSource print() {
    for (const Step& step : plan_.steps) print_step(step);
    for (size_t i = 0; i < out_.size(); ++i) print_output(i);
    std::string arena = arena_ > 0 ? "  if (!arena) return 1;\n" : "  (void)arena;\n";
    if (in_.empty() && plan_.constants.empty()) arena += "  (void)inputs;\n";
    if (out_.empty()) arena += "  (void)outputs;\n";
    std::string run = format("{} {{\n{}{}  return 0;\n}}\n", signature(), arena, calls_);
    std::string source =
        format("#include \"{}.h\"\n\n{}\n{}{}", name_, c_prelude(), functions_, run);
    return {header(), std::move(source), std::move(constants_)};
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

  void place_constants() {
    for (size_t i = 0; i < plan_.constants.size(); ++i) {
      const Bound& constant = plan_.constants[i];
      constant_offset_.push_back(static_cast<int64_t>(constants_.size()));
      constants_.append(constant.buffer.data<const char>() + constant.offset,
                        static_cast<size_t>(bytes_read(plan_.inputs + static_cast<int32_t>(i))));
      constants_.resize(static_cast<size_t>(aligned(static_cast<int64_t>(constants_.size()))));
    }
  }

  /// How much of a constant anybody reads.
  int64_t bytes_read(int32_t buffer) const {
    int64_t bytes = 0;
    for (const Step& step : plan_.steps)
      for (size_t k = 0; k < step.buffers.size(); ++k)
        if (step.buffers[k] == buffer) bytes = std::max(bytes, bytes_read(source_of(step), k));
    for (size_t i = 0; i < plan_.outputs.size(); ++i)
      if (plan_.outputs[i].buffer == buffer)
        bytes = std::max(bytes, plan_.outputs[i].offset + out_[i]->bytes());
    return bytes;
  }

  static int64_t bytes_read(const StepSource& source, size_t place) {
    if (place < source.in.size()) {
      const Type& type = *source.in[place];
      if (source.at.empty()) return source.in[place]->bytes();
      const Strided& at = source.at[place];
      int64_t last = at.offset;
      for (int k = 0; k < type.rank(); ++k)
        last += std::max<int64_t>(at.strides[k], 0) * (type.shape[k].value() - 1);
      return (last + 1) * size_of(type.dtype);
    }
    size_t calls = source.in.size() + source.out.size();
    if (!source.kernel || place < calls) return 0;
    const loop::BufferParam& param = source.kernel->buffers[place - calls];
    return param.size.value() * size_of(param.type);
  }

  static const StepSource& source_of(const Step& step) {
    if (!step.source)
      fail(Hint{"compile with a report, and without bundles"}, "c source: step {} kept no source",
           step.name);
    return *step.source;
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
      offset += constant_offset_[static_cast<size_t>(buffer - plan_.inputs)];
      return at(format("inputs[{}]", plan_.inputs), offset, "tn_read_at");
    }
    size_t block = block_of(buffer);
    offset += spot_of(buffer).offset;
    if (int32_t output = block_output_[block]; output != kArena)
      return at(format("outputs[{}]", output), offset, "tn_at");
    return at("arena", offset + block_offset_[block], "tn_at");
  }

  /// The name of a function; equal ones are printed once.
  template <class F>
  std::string function_named(std::string_view stem, F&& print) {
    std::string& name = named_[print("f")];
    if (!name.empty()) return name;
    name = format("{}_{}", stem, named_.size());
    functions_ += print(name) + "\n";
    return name;
  }

  void print_call(std::string_view function, std::span<const int32_t> buffers) {
    std::vector<std::string> args;
    for (int32_t buffer : buffers) args.push_back(address(buffer));
    calls_ += format("  {}({});\n", function, join(args, ", "));
  }

  void print_step(const Step& step) {
    const StepSource& source = source_of(step);
    std::span<const int32_t> buffers = step.buffers;
    size_t library = source.in.size() + source.out.size();
    if (source.op) {
      if (source.op->name != "dot")
        unsupported(Hint{}, "c source: {} has no form in C", source.op->name);
      print_call(function_named("dot", [&](auto name) { return dot_c(source, name); }),
                 buffers.first(library));
    }
    if (source.kernel)  // what is behind its buffers is scratch memory, which C has no use for
      print_call(function_named(source.kernel->name,
                                [&](auto name) { return kernel_c(*source.kernel, name); }),
                 buffers.subspan(library, source.kernel->buffers.size()));
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

  std::string signature() const {
    return format("int {}_run(const void *const *inputs, void *const *outputs, void *arena)",
                  name_);
  }

  std::string header() const {
    std::string upper(name_), text;
    std::ranges::transform(upper, upper.begin(), [](unsigned char c) { return std::toupper(c); });
    text = format("#ifndef {0}_H\n#define {0}_H\n\n/* Compile with {1}\n", upper, kCFlags);
    for (int i = 0; i < plan_.inputs; ++i)
      text += format("   inputs[{}]: {}\n", i, *in_[static_cast<size_t>(i)]);
    if (!constants_.empty())
      text += format("   inputs[{}]: the {} bytes of constants\n", plan_.inputs, constants_.size());
    for (size_t i = 0; i < out_.size(); ++i) text += format("   outputs[{}]: {}\n", i, *out_[i]);
    text += format(
        "   arena: aligned to 64 bytes; calls at the same time need one each. */\n"
        "#define {}_ARENA_BYTES {}\n\n"
        "#ifdef __cplusplus\nextern \"C\"\n#endif\n{};\n\n#endif\n",
        upper, arena_, signature());
    return text;
  }

  const Plan& plan_;
  Types in_, out_;
  std::string name_;
  std::vector<int32_t> block_output_;  // the output whose memory it is, or kArena
  std::vector<int64_t> block_offset_, constant_offset_;
  int64_t arena_ = 0;
  std::unordered_map<std::string, std::string> named_;  // functions, by their text
  std::string functions_, calls_, constants_;
};

}  // namespace

CSource c_source(const Plan& plan, Types in, Types out, std::string_view name) {
  return PlanPrinter(plan, in, out, name).print();
}

}  // namespace tn::source
