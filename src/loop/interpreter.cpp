#include "loop/interpreter.h"

#include "loop/interpreter_lowering.h"

namespace tn::loop {

std::shared_ptr<const BlockProgram> prepare(const Kernel& kernel, std::span<const Binding> symbols,
                                            const PrepareOptions& options) {
  const BlockOps& ops = options.ops ? *options.ops : block_ops();
  BlockProgram program;
  if (!options.whole_values) {
    std::vector<machine::Box> boxes = machine::boxes_of(kernel, symbols);
    for (machine::Box& box : boxes) {
      machine::ProgramLowering lowering(kernel, symbols, std::move(box), ops, options);
      std::optional<BlockProgram> part = lowering.lower();
      if (part && boxes.size() == 1) return std::make_shared<const BlockProgram>(std::move(*part));
      if (part) program.boxes.push_back(std::move(*part));
    }
    if (!program.boxes.empty()) return std::make_shared<const BlockProgram>(std::move(program));
  }
  program.mode = BlockProgram::Mode::whole;
  program.whole = machine::prepare_whole(kernel, symbols, ops);
  return std::make_shared<const BlockProgram>(std::move(program));
}

static std::string_view name_of(machine::InstructionKind kind) {
  static constexpr std::string_view kNames[] = {"compute", "argument", "splat", "expand", "load",
                                                "load_at", "gather",   "aim",   "store",  "scatter",
                                                "iota",    "reduce",   "scan"};
  return kNames[static_cast<size_t>(kind)];
}

std::string to_text(const BlockProgram& p) {
  if (!p.boxes.empty()) {
    std::string text;
    for (const BlockProgram& box : p.boxes) text += to_text(box);
    return text;
  }
  static constexpr std::string_view kModes[] = {"flat", "rows", "columns", "whole"};
  static constexpr std::string_view kDomains[] = {"uniform", "row", "full"};
  std::string text =
      format("{} points {} extent {} tile {} step {} tasks {}{}{}\n",
             kModes[static_cast<size_t>(p.mode)], p.points, p.extent, p.tile, p.step, p.tasks,
             p.kept ? " kept" : "", p.sweep_in_parallel ? " sweeps in parallel" : "");
  for (const machine::Segment& segment : p.segments) {
    text += format("{}:\n", kDomains[static_cast<size_t>(segment.domain)]);
    for (machine::Range range : {segment.prologue, segment.body})
      for (int32_t i = range.first; i < range.last; ++i) {
        const machine::Instruction& instruction = p.instructions[static_cast<size_t>(i)];
        text += format("  s{} = {} s{} s{} s{} : {}\n", instruction.dst, name_of(instruction.kind),
                       instruction.a, instruction.b, instruction.c, instruction.type);
      }
  }
  return text;
}

}  // namespace tn::loop
