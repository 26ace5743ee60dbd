#pragma once
// From a kernel to instructions: which values are computed in which segment, and in which slots.
#include <map>
#include <optional>
#include <vector>

#include "loop/analysis.h"
#include "loop/interpreter_box.h"
#include "loop/interpreter_program.h"

namespace tn::loop::machine {

/// The place of a value at run time, before registers are given out.
struct SlotPlan {
  int64_t bytes = 0;              // 0: no register of its own
  int64_t size = 0;               // of an element
  int64_t constant = -1;          // offset in the constants
  int32_t home = kNone;           // the register that a load or an aimed store falls back to
  int32_t first = -1, last = -1;  // instructions of its life
};

class ProgramLowering {
 public:
  ProgramLowering(const Kernel& kernel, std::span<const Binding> symbols, Box box,
                  const BlockOps& ops, const PrepareOptions& options);
  /// Nothing when the kernel needs the general path.
  std::optional<BlockProgram> lower();

 private:
  // Analysis (interpreter_analysis.cpp).
  bool find_domains();
  bool combines_once() const;
  void find_rows();
  void find_pairs();
  ValueId whole_pair(const Store& first, const Store& second) const;
  void choose_mode();
  bool prefers_columns() const;
  bool reads_directly() const;
  void choose_sizes();
  bool only_copies(Range body) const;
  void widen_copies();
  void choose_tasks();
  Domain domain_of(AxisSet axes, int level) const;

  // Emission (interpreter_lowering.cpp).
  void emit_uniforms();
  void emit_rows(int level);
  void emit_sweep(int level);
  void emit_domain(Domain domain, int level);
  void emit_value(ValueId id);
  void emit_load(ValueId id);
  void emit_offsets();
  bool drop_rows(ValueId select);
  void emit_compute(ValueId id);
  void emit_cast(ValueId id);
  void emit_reduce(ValueId id);
  void emit_scan(ValueId id);
  void emit_store(const Store& store);
  void aim_last_store();
  void finish_segment();
  int32_t slot(ValueId id);
  int32_t zero_slot(DType type);
  int32_t own_slot(ValueId id);
  int64_t elements_in(Domain domain) const;
  int32_t new_slot(int64_t size, Domain domain);
  int32_t constant_slot(const Scalar& value, DType type);
  Instruction& push(InstructionKind kind, int32_t dst, DType type);
  int32_t compute(BlockFn fn, DType type, int32_t a, int32_t b = 0, int32_t c = 0);
  BlockFn function(Op op, DType type) const;
  int add_reducer(const Value& value, DType type);

  // Indices (interpreter_index.cpp).
  Linear linear(PolyId poly);
  Linear sum_of_terms(PolyId poly, bool with_values, bool wide);
  Linear zero() const { return {0, std::vector<int64_t>(extents_.size(), 0), {}}; }
  bool has_value(const Term& term) const;
  std::optional<Domain> domain_of_offset(PolyId index) const;
  void add_term(Linear& into, int64_t coef, const std::vector<AtomId>& atoms);
  Linear linear_atom(AtomId id);
  int32_t number_slot(const Linear& value);
  int32_t poly_slot(PolyId poly);
  int32_t mask_slot(MaskId mask);
  int32_t add_access(int32_t buffer, int64_t size, const Linear& index);
  Walk add_walk(const Linear& index, const std::vector<int>& axes);

  // Registers (interpreter_registers.cpp).
  void give_registers();
  void place_uniforms();
  void find_lives();
  void touch(int32_t slot, int32_t instruction, Segment& segment);
  void give_accumulators();
  void renumber();

  const Kernel& kernel_;
  BoxFacts facts_;
  const BlockOps& ops_;
  PrepareOptions options_;
  BlockProgram program_;

  Analysis a_;
  std::vector<int64_t> extents_;
  std::vector<Domain> domain_;
  int64_t capacity_ = 1;        // elements of a full register
  Mode by_index_ = Mode::flat;  // the inner axes are par axes that loaded indices do not vary along

  Domain current_ = Domain::uniform;
  std::vector<Instruction> body_, prologue_, uniform_;
  std::vector<Instruction>* emitting_ = nullptr;
  Segment segment_;
  std::vector<SlotPlan> slots_;
  std::vector<int32_t> computed_;     // value → slot in its own domain
  std::vector<bool> wide_, skipped_;  // loads of whole pairs; stores of their second halves
  std::vector<int32_t> offsets_;      // load → slot of the values in its index, in an outer domain
  std::map<ValueId, int32_t> splats_, expands_;
  std::map<PolyId, int32_t> poly_slots_;
  std::map<MaskId, int32_t> mask_slots_;
  std::map<std::array<uint64_t, 3>, int32_t> constants_;  // bits, size and how many
  std::vector<std::byte> constant_bytes_;
};

}  // namespace tn::loop::machine
