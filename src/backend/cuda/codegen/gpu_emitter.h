#pragma once
// Emitter: the function of one part of a kernel, as one thread runs it.
//
// A thread computes several elements at a time. Code is emitted on demand: asking for a value at an
// element emits what it needs, each part once. Values that do not vary along the axes in which
// elements differ are shared by them.
#include <unordered_map>

#include "backend/cuda/codegen/gpu_threads.h"
#include "backend/llvm/llvm_control.h"
#include "backend/llvm/llvm_ops.h"
#include "backend/llvm/machine.h"
#include "tenon/callback.h"

namespace tn::cuda {

class Emitter {
 public:
  Emitter(const Schedule& schedule, const Part& part, llvm::Module& module,
          const codegen::Machine& machine);

  /// Adds the function, and says how it is launched.
  EntryCode emit(const std::string& name);

 private:
  using Value = llvm::Value;
  using Type = llvm::Type;
  using Values = codegen::Values;
  using ValueId = loop::ValueId;
  using Made = std::unordered_map<uint64_t, Value*>;

  // emitter.cpp
  EntryCode begin(const std::string& name);
  void add_param(EntryCode& entry, Param::Kind kind, int index, DType type, bool written);
  void flat();
  void place_vector(Value* unit, size_t first, Value* guard);
  void walk();
  void tiles();
  void set_tile(Value* across, Value* along, bool transposed);
  void walk_step(Value* i);
  Values walk_carries() const;
  /// Sets the places of `axes` to the digits of a flat position.
  void place(Value* flat, const std::vector<int>& axes, Values& at);
  void set_elements(size_t count);
  /// As codegen::loop and codegen::when; what is made inside is forgotten after it.
  Values loop(Value* begin, Value* end, int64_t step, Values carried,
              const codegen::LoopBody& body);
  void when(Value* condition, const Callback<void()>& body);
  Value* both(Value* a, Value* b) { return a && b ? b_.CreateAnd(a, b) : a ? a : b; }

  // emit_rows.cpp
  void rows();
  void row_sweep(size_t number);
  Values row_range(Value* begin, Value* end);
  Values row_chunks();
  void set_row(Value* base, Value* end);
  Values fold_group(const Values& accs);
  Values fold_group(ValueId id, Values slots, Values indices);
  Values fold_block();
  Values fold_block(ValueId id);
  Values fold_block_freely(ValueId id);
  Values fold_block_in_order(ValueId id);
  Value* fold_lane(ValueId id);
  void load_row();
  void store_chunk(const Values& totals, Value* unit, Value* guard);
  size_t row_elements() const;

  // emit_reduce.cpp
  struct Pair {
    Value *x, *index;  // the index of arg reductions
  };
  bool is_indexed(ValueId id) const { return p_.value(id).monoid >= loop::Monoid::argmax; }
  int parts(ValueId id) const { return is_indexed(id) ? 2 : 1; }
  DType part_type(ValueId id, int part) const;
  llvm::Constant* identity(ValueId id, int part) const;
  Values identities(size_t slots) const;
  Pair joined(ValueId id, Pair a, Pair b);
  /// The same where the order of zeros does not matter.
  Pair joined_freely(ValueId id, Pair a, Pair b);
  Pair element(ValueId id, size_t e);
  void accumulate(ValueId id, size_t e, Value** acc, size_t slots);
  /// The thread's elements, in all reductions of the sweep: `slots` accumulators for each part.
  void accumulate_sweep(Values& accs, size_t slots);
  Pair shuffle_joined(ValueId id, Pair a, int mask, Value* lower);
  void add_chunk(Values& outer, const Values& totals, const Values& here);
  void set_results(const Values& totals, size_t elements);
  void hoist(size_t sweep);
  Value* shared_place(int64_t offset, Value* index, DType type);
  Value* shared_load(int64_t offset, Value* index, DType type);
  void shared_store(int64_t offset, Value* index, DType type, Value* x);

  // emit_columns.cpp
  void columns();
  void column_sweep(size_t number);
  Values column_range(Value* begin, Value* end);
  void set_columns(Value* base, Value* end);
  Values fold_columns(const Values& accs);

  // emit_values.cpp
  Value* value(ValueId id, size_t e);
  Value* compute(ValueId id, size_t e);
  Value* compute_scan(ValueId id);
  bool is_share(const loop::Value& v) const;
  Value* needs_division(const Values& xs, Value* sum);
  Value* share(ValueId id, size_t e);
  Value* float_remainder(DType type, Value* x, Value* y);
  size_t canonical(loop::AxisSet axes, size_t e) const;
  Value* once(int what, uint64_t id, size_t e, const Callback<Value*()>& make);

  // emit_index.cpp
  Value* position(PolyId poly, size_t e);
  Value* term_value(const Term& term, size_t e, Type* type);
  Value* atom_value(AtomId id, size_t e, Type* type);
  Value* divided(const Atom& atom, size_t e);
  Value* size(Dim size, Type* type);
  Value* symbol(std::string_view name);
  Value* as(Value* x, Type* type) { return b_.CreateSExtOrTrunc(x, type); }
  Value* number(Type* type, int64_t x) { return llvm::ConstantInt::getSigned(type, x); }
  /// Of numbers below `count`, with room to count a little further.
  Type* index_type(Dim count) const;

  // emit_memory.cpp
  bool is_contiguous(PolyId index, loop::MaskId mask) const;
  Value* load(ValueId id, size_t e);
  Value* load_element(const loop::Value& v, size_t e);
  Values load_vector(const loop::Value& v, size_t e, bool streamed);
  void load_cut_vectors();
  Value* buffer(int number);
  Value* pointer(int buffer, PolyId index, size_t e);
  std::optional<int64_t> apart_from_first(PolyId index, size_t e) const;
  Value* mask(loop::MaskId id, size_t e);
  void emit_stores(bool inside, Value* guard);
  /// The stores behind the sweeps, of one thread of a group: the others have loaded before.
  void emit_last_stores(int group, Value* guard);
  void store(const loop::Store& store, loop::AxisSet axes, Value* guard);
  void store_element(const loop::Store& store, size_t e, Value* guard);
  void store_vector(const loop::Store& store, size_t e);
  Values packed(const Values& elements, DType type);
  void flush_stores();

  const Schedule& s_;
  const Part& p_;
  llvm::IRBuilder<> b_;
  codegen::Ops ops_;
  Threads threads_;
  std::vector<int> buffer_param_, argument_param_, symbol_param_;
  std::vector<Threads::Memory> memory_;  // by parameter

  Made made_;
  std::vector<Values> at_;                        // by element, by axis
  Values par_at_;                                 // rows, columns: by axis
  Values inner_;                                  // by element: the flat position along the sweep
  Values valid_;                                  // by element; null: always
  Value* full_ = nullptr;                         // flat: no vector of this thread is cut
  loop::AxisSet lane_axes_ = 0, group_axes_ = 0;  // in which elements of a vector, vectors differ
  Value *lane_ = nullptr, *active_ = nullptr;     // rows: of its group; columns: of the tree
  Value* row_ = nullptr;                          // rows: the place of the par axes, flat
  bool warps_are_read_ = false;                   // results of warps, maybe still by some threads
  size_t sweep_ = 0;
  std::vector<ValueId> scans_;
  std::unordered_map<ValueId, Value*> carry_;
  struct Pending {
    Value* guard;
    Callback<void()> emit;
  };
  std::vector<Pending> pending_;
};

}  // namespace tn::cuda
