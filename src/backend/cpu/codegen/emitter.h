#pragma once
// Emitter: the LLVM function of one scheduled kernel.
//
// Code is emitted on demand: asking for a value at a copy of the vector emits what it needs, each
// part once, in the outermost of three nested scopes that knows its axes. Nothing is left for later
// passes to hoist or to share.
#include <llvm/IR/Module.h>

#include <map>
#include <unordered_map>

#include "backend/cpu/codegen/schedule.h"
#include "backend/llvm/llvm_control.h"
#include "backend/llvm/llvm_ops.h"
#include "tenon/callback.h"

namespace tn::cpu {

using codegen::Ops;

using codegen::known;

class Emitter {
 public:
  Emitter(const Schedule& schedule, llvm::Module& module);

  /// Adds `body`, and `finish` for two phases.
  void emit();

  Dim scratch_bytes() const { return scratch_; }
  int64_t partial_bytes() const { return partials_; }
  Dim bypassing_bytes() const;

 private:
  using Value = llvm::Value;
  using ValueId = loop::ValueId;
  using Values = std::vector<Value*>;
  enum Scope : uint8_t { kCall, kUnit, kStep, kScopes };
  /// What a key of the values made in a scope stands for.
  enum class Made : uint8_t {
    value,
    splat,
    sum,
    pointer,
    offsets,
    condition,
    buffer,
    size,
    symbol,
    kept,
    apart,
    distance
  };

  // emitter.cpp: functions, units and the loops of each mode.
  void begin_function(const char* name);
  void end_function();
  Value* frame_field(int index, const char* name);
  void emit_body(const Callback<void(Value* unit)>& unit);
  void emit_tile();
  void flat_unit(Value* unit);
  void flat_range(Value* lo, Value* hi, Dim multiple);
  void flat_rest(Value* lo, Value* hi, Dim multiple);
  void tiled_range(Value* lo, Value* hi, Dim multiple);
  /// Whether the copies of this step lie along the tile axis.
  bool is_tiled() const { return s_.tile_axis >= 0 && copies_ > 1; }
  void row_unit(Value* unit);
  void column_unit(Value* unit);
  void place_unit(Value* unit);
  /// body(i, carried) gives the next carried; the loop runs from begin to end, at least once where
  /// `some`.
  using LoopBody = codegen::LoopBody;
  Values loop(Value* begin, Value* end, int64_t step, Values carried, bool some,
              const LoopBody& body);
  /// What `body` gives where the condition holds, else `otherwise`.
  Values when(Value* condition, const Values& otherwise, const Callback<Values()>& body);
  /// A step of `copies` vectors at `base` along the vector axis, the last `masked` of them cut.
  void begin_step(Value* base, int copies, const Values& masks);
  void emit_stores(bool in_sweep);

  // emit_reduce.cpp
  void row_sweep(size_t number);
  void row_partials(Value* unit);
  void finish_row(Value* row);
  Values row_chunk(Value* begin, Value* length, Values accs);
  Values row_step(Value* base, int64_t count, const Values& accs);
  Values row_rest(Value* base, Value* count, Values accs);
  Values chunk_totals(Value* begin);
  Values cut_row();
  int64_t record_bytes() const;
  llvm::Constant* identity(ValueId id, int part) const;
  Values identities();
  void accumulate(ValueId id, int copy, Value** accs);
  Values fold(const Values& accs);
  Values fold_lanes(ValueId id, Values lanes);
  Values fold_array(ValueId id, const Values& arrays, Value* count);
  void store_results(const Values& results, Value* base, Value* count, Value* at);
  Values fold_arrays(Value* base, Value* all, Value* first, Value* count);
  int parts(ValueId id) const;  // values of its accumulator: two with an index
  void place_inner(Value* flat);
  DType part_type(ValueId id, int part) const;
  Value* chunk_array(ValueId id, int part, Value* base, Value* count);
  void set_reduced(const Values& totals);
  Value* or_empty(ValueId id, Value* result);

  // emit_columns.cpp
  void column_sweep(size_t number);
  bool is_free(ValueId id) const;  // of order: kept in registers
  Values column_identities();
  void set_column_results(const Values& carried);
  Values column_step(Value* i, const Values& now);
  void accumulate_column(ValueId id, int copy, Value* i, Value** accs);
  void short_column_sweep();
  Value* lanes_for(Dim elements);
  Value* lanes_in_scratch(ValueId id, Value* count);
  void fill_lanes(Value* lanes, Value* count, ValueId id);
  void halve_lanes(Value* lanes, Value* count, ValueId id);
  Value* lane_place(Value* lanes, Value* lane, int copy, ValueId id);
  Value* load_lane(Value* place, ValueId id);
  void store_lane(Value* place, ValueId id, Value* x);
  void combine_lane(Value* lanes, Value* lane, int copy, ValueId id, Value* x);
  int accumulators(ValueId id) const { return is_vector(id) ? s_.copies : 1; }

  // emit_values.cpp
  Value* value(ValueId id, int copy);
  Value* vector(ValueId id, int copy);
  Value* compute(ValueId id, int copy);
  Value* compute_scan(ValueId id, int copy);
  Value* argument(const loop::Value& v);
  Scope scope_of(loop::AxisSet axes) const;
  Scope scope_of(ValueId id) const;
  bool is_vector(loop::AxisSet axes) const;
  /// Which copy of a value over `axes` serves `copy`.
  int copy_of(loop::AxisSet axes, int copy) const;
  bool is_vector(ValueId id) const { return is_vector(s_.value(id).axes); }
  Value* splat(Value* x) { return s_.lanes > 1 ? b_.CreateVectorSplat(lanes(), x) : x; }
  Value* widened(Value* x) { return x->getType()->isVectorTy() ? x : splat(x); }
  llvm::Type* vector_of(llvm::Type* element) const;
  unsigned lanes() const { return static_cast<unsigned>(s_.lanes); }
  Value* number(int64_t x) { return b_.getInt64(static_cast<uint64_t>(x)); }
  Value* iota(llvm::Type* element, int64_t first, int64_t step);
  /// Of `count` elements, those that the lanes from `first` on hold.
  Value* first_lanes(Value* count, int64_t first);

  // emit_memory.cpp
  Value* load(ValueId id, int copy);
  Value* load_element(ValueId id, int copy);
  Value* load_tile(ValueId id, int copy);
  Value* load_apart(const loop::Value& v, int copy, int64_t step);
  /// In elements: to the place `count` further along an axis in which the index is linear.
  Value* distance(PolyId index, int axis, int64_t count);
  /// Where a copy of an access begins.
  Value* copy_place(int buffer, PolyId index, int copy);
  void store(const loop::Store& store, int copy);
  void store_element(const loop::Store& store, int copy);
  void store_vector(const loop::Store& store, int copy);
  Value* combined(const loop::Store& store, Value* old, Value* x);
  void prefetch(int axis, int64_t ahead);
  void flush_stores();
  void store_lanes_in_order(const loop::Store& store, int copy, Value* x, Value* mask);
  Value* kept_place(ValueId id, int copy);
  Value* buffer(int number);
  Value* pointer(int buffer, PolyId index);
  Value* places(int buffer, PolyId index, int copy);
  Value* mask(loop::MaskId id, int copy);
  Value* both(Value* a, Value* b);
  std::optional<int64_t> stride(PolyId poly) const;
  bool may_bypass(const loop::Store& store) const;
  void allow_bypass();
  bool has_symbol(const Term& term) const;

  // emit_index.cpp
  Value* position(PolyId poly);
  Value* positions(PolyId poly, int copy);
  Value* term_value(const Term& term);
  Value* term_values(const Term& term, int copy);
  Value* atom_value(AtomId id);
  Value* atom_values(AtomId id, int copy);
  Value* apply(AtomKind kind, const Atom& atom, Value* x, Value* y);
  Value* divided(bool quotient, Value* x, Value* y);
  Value* near_quotients(bool quotient, Value* first, int64_t divisor, int64_t step, int copy);
  Value* near_division(const Atom& atom, int copy);
  Value* stride_value(PolyId poly, int axis);
  Value* size(Dim size);
  Value* symbol(std::string_view name);
  Value* smaller(Value* a, Value* b);
  Value* larger(Value* a, Value* b);
  Value* axis_values(int axis, int copy);
  Scope scope_of(const Term& term) const;

  /// Emits at the end of the home of `scope` while it lives.
  class In {
   public:
    In(Emitter& emitter, Scope scope);
    ~In() { b_.restoreIP(saved_); }

   private:
    llvm::IRBuilder<>& b_;
    llvm::IRBuilder<>::InsertPoint saved_;
  };
  Value* once(Scope scope, Made what, uint64_t id, int copy, const Callback<Value*()>& make);
  void forget(Scope scope) { made_[scope].clear(); }
  Dim take_scratch(Dim bytes);

  const Schedule& s_;
  llvm::Module& module_;
  llvm::IRBuilder<> b_;
  Ops ops_;
  llvm::Function* function_ = nullptr;
  llvm::BasicBlock* home_[kScopes] = {};  // null: where code is being emitted
  std::unordered_map<uint64_t, Value*> made_[kScopes];
  Values axis_;             // the place of the step; along the vector axis, of its first lane
  Value* inner_ = nullptr;  // rows: the flat position along the sweep
  Values masks_;            // of the copies; null: all lanes
  int copies_ = 1;
  Value *scratch_base_ = nullptr, *partial_base_ = nullptr, *bypass_ = nullptr;
  std::vector<bool> kept_ready_;
  std::vector<std::optional<Dim>> kept_at_;
  std::map<std::pair<ValueId, int>, Values> lanes_;  // short columns: by reduction and copy
  std::map<ValueId, Values> carries_;                // of scans
  std::unordered_map<ValueId, Value*> lanes_at_;     // columns: in scratch
  struct Pending {
    Value *x, *place, *mask;  // `place` is a vector where a stride is not 1
    llvm::Align align;
    bool bypass;
  };
  std::vector<Pending> pending_;
  size_t sweep_ = 0;
  Dim scratch_ = 0;
  int64_t partials_ = 0;
};

}  // namespace tn::cpu
