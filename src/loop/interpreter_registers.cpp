// Registers: slots get memory for as long as an instruction may still read them.
#include <algorithm>
#include <cstdint>

#include "loop/interpreter_lowering.h"

namespace tn::loop::machine {

// Uniform instructions are found while later segments are emitted, but run first.
void ProgramLowering::place_uniforms() {
  int32_t count = static_cast<int32_t>(uniform_.size());
  program_.instructions.insert(program_.instructions.begin(), uniform_.begin(), uniform_.end());
  for (Segment& segment : program_.segments)
    for (Range* range : {&segment.prologue, &segment.body}) {
      range->first += count;
      range->last += count;
    }
  program_.segments[0].prologue = {};
  program_.segments[0].body = {0, count};
}

// What is made before the body of a segment stays until its end: the body may run many times.
void ProgramLowering::touch(int32_t slot, int32_t instruction, Segment& segment) {
  if (slot == kNone) return;
  SlotPlan& plan = slots_[static_cast<size_t>(slot)];
  if (plan.constant >= 0) return;
  if (plan.first < 0) plan.first = instruction;
  plan.last = std::max(plan.last, instruction);
  if (plan.first < segment.body.first && instruction >= segment.body.first) {
    plan.last = std::max(plan.last, segment.body.last - 1);
    if (std::find(segment.imports.begin(), segment.imports.end(), slot) == segment.imports.end())
      segment.imports.push_back(slot);
  }
  if (plan.home != kNone) touch(plan.home, instruction, segment);
}

void ProgramLowering::find_lives() {
  int32_t end = static_cast<int32_t>(program_.instructions.size());
  for (Segment& segment : program_.segments)
    for (Range range : {segment.prologue, segment.body})
      for (int32_t i = range.first; i < range.last; ++i) {
        const Instruction& instruction = program_.instructions[static_cast<size_t>(i)];
        bool operands = instruction.kind != InstructionKind::argument &&
                        instruction.kind != InstructionKind::load &&
                        instruction.kind != InstructionKind::iota &&
                        instruction.kind != InstructionKind::aim;
        if (operands)
          for (int32_t slot : {instruction.a, instruction.b, instruction.c})
            if (slot != 0) touch(slot, i, segment);
        touch(instruction.mask, i, segment);
        if (instruction.dst != 0) touch(instruction.dst, i, segment);
        if (segment.domain == Domain::uniform && instruction.dst != 0)
          slots_[static_cast<size_t>(instruction.dst)].last = end;
        if (segment.domain == Domain::uniform && instruction.home != 0)
          slots_[static_cast<size_t>(instruction.home)].last = end;
      }
}

void ProgramLowering::give_registers() {
  place_uniforms();
  find_lives();
  struct Free {
    int64_t size, bytes, offset;
  };
  std::vector<Free> free;
  std::vector<int32_t> live;
  std::vector<int64_t> offsets(slots_.size(), 0);
  int64_t top = 64;  // slot 0
  auto release = [&](int32_t limit) {
    std::erase_if(live, [&](int32_t slot) {
      const SlotPlan& plan = slots_[static_cast<size_t>(slot)];
      if (plan.last > limit) return false;
      free.push_back({plan.size, plan.bytes, offsets[static_cast<size_t>(slot)]});
      return true;
    });
  };
  std::vector<std::pair<int32_t, int32_t>> starts;  // instructions, and slots that begin at them
  starts.reserve(slots_.size());
  for (size_t s = 1; s < slots_.size(); ++s)
    if (slots_[s].bytes > 0 && slots_[s].first >= 0)
      starts.emplace_back(slots_[s].first, static_cast<int32_t>(s));
  std::sort(starts.begin(), starts.end());
  auto next = starts.begin();
  for (size_t i = 0; i < program_.instructions.size(); ++i) {
    // An elementwise instruction may write over an operand that ends with it.
    bool in_place = program_.instructions[i].kind == InstructionKind::compute;
    release(static_cast<int32_t>(i) - (in_place ? 0 : 1));
    for (; next != starts.end() && next->first == static_cast<int32_t>(i); ++next) {
      int32_t s = next->second;
      const SlotPlan& plan = slots_[static_cast<size_t>(s)];
      auto fits = [&](const Free& f) { return f.size == plan.size && f.bytes == plan.bytes; };
      auto found = std::find_if(free.rbegin(), free.rend(), fits);
      if (found != free.rend()) {
        offsets[static_cast<size_t>(s)] = found->offset;
        free.erase(std::next(found).base());
      } else {
        offsets[static_cast<size_t>(s)] = top;
        top += plan.bytes + 64;  // registers one page apart would alias in the load buffers
      }
      live.push_back(s);
    }
  }
  program_.frame_size = top;
  give_accumulators();
  renumber();
  for (size_t s = 0; s < slots_.size(); ++s)
    if (slots_[s].constant < 0) program_.register_slots.push_back(offsets[s]);
}

void ProgramLowering::give_accumulators() {
  bool rows = program_.mode == Mode::rows;
  int64_t width = rows && !program_.kept ? 1 : program_.tile;
  auto reserve = [&](int64_t bytes) {
    int64_t at = program_.frame_size;
    program_.frame_size += (bytes + 63) / 64 * 64;
    return at;
  };
  for (Reducer& r : program_.reducers) {
    if (rows && program_.kept) {  // reduced at once; scans carry one element per row
      r.chunk = reserve(r.result == kNone ? width * r.size : 0);
      continue;
    }
    int64_t lanes = r.arg ? 1 : kLanes;
    r.chunk = reserve(lanes * width * r.size);
    r.total = reserve(lanes * width * r.size);
    r.index = reserve(r.arg ? width * 16 : 0);
    r.copy = reserve(program_.direct ? width * r.size : 0);
    r.partial = program_.partial_size;
    program_.partial_size += (width * (r.size + (r.arg ? 8 : 0)) + 8 + 63) / 64 * 64;
  }
}

// Constants come first, because they need no frame.
void ProgramLowering::renumber() {
  program_.constants.resize(constant_bytes_.size() + 64);
  auto address = reinterpret_cast<uintptr_t>(program_.constants.data());
  std::byte* base = program_.constants.data() + (64 - address % 64) % 64;
  std::copy(constant_bytes_.begin(), constant_bytes_.end(), base);
  std::vector<int32_t> number(slots_.size());
  for (size_t s = 0; s < slots_.size(); ++s)
    if (slots_[s].constant >= 0) {
      number[s] = static_cast<int32_t>(program_.constant_slots.size());
      program_.constant_slots.push_back(base + slots_[s].constant);
    }
  int32_t next = static_cast<int32_t>(program_.constant_slots.size());
  for (size_t s = 0; s < slots_.size(); ++s)
    if (slots_[s].constant < 0) number[s] = next++;
  auto at = [&](int32_t& slot) {
    if (slot != kNone) slot = number[static_cast<size_t>(slot)];
  };
  for (Instruction& instruction : program_.instructions) {
    if (instruction.kind != InstructionKind::argument) at(instruction.a);
    for (int32_t* slot :
         {&instruction.dst, &instruction.b, &instruction.c, &instruction.home, &instruction.mask})
      at(*slot);
  }
  for (Reducer& r : program_.reducers) at(r.result);
  for (Segment& segment : program_.segments)
    for (int32_t& slot : segment.imports) at(slot);
}

}  // namespace tn::loop::machine
