#include "backend/cpu/codegen/emitter.h"

#include <llvm/IR/IntrinsicsX86.h>

#include "base/error.h"

namespace tn::cpu {

using loop::AxisSet;

Emitter::Emitter(const Schedule& schedule, llvm::Module& module)
    : s_(schedule),
      module_(module),
      b_(module.getContext()),
      ops_(b_, schedule.level >= CpuLevel::v3) {
  axis_.assign(s_.extents.size(), nullptr);
  kept_at_.resize(s_.kernel.values.size());
}

void Emitter::emit() {
  if (s_.form == KernelForm::tile) return emit_tile();
  begin_function("body");
  emit_body([&](Value* unit) {
    if (s_.mode == Mode::flat) return flat_unit(unit);
    if (s_.mode == Mode::columns) return column_unit(unit);
    if (s_.two_phases) return row_partials(unit);
    row_unit(unit);
  });
  end_function();
  if (!s_.two_phases) return;
  begin_function("finish");
  emit_body([&](Value* row) { finish_row(row); });
  end_function();
}

void Emitter::begin_function(const char* name) {
  llvm::LLVMContext& context = module_.getContext();
  auto* type = llvm::FunctionType::get(b_.getVoidTy(),
                                       {b_.getPtrTy(), b_.getInt64Ty(), b_.getInt64Ty()}, false);
  function_ = llvm::Function::Create(type, llvm::Function::ExternalLinkage, name, module_);
  function_->addFnAttr(llvm::Attribute::NoUnwind);
  std::string width = std::to_string(s_.vector_bits);
  function_->addFnAttr("prefer-vector-width", width);
  function_->addFnAttr("min-legal-vector-width", width);
  auto* entry = llvm::BasicBlock::Create(context, "entry", function_);
  b_.SetInsertPoint(entry);
  for (auto& made : made_) made.clear();
  for (auto& home : home_) home = nullptr;
  kept_ready_.assign(s_.kernel.values.size(), false);
  scratch_base_ = frame_field(2, "scratch");
  partial_base_ = frame_field(3, "partials");
  allow_bypass();
}

void Emitter::end_function() {
  // Stores past the caches are ordered with nothing else.
  if (bypass_) b_.CreateIntrinsic(llvm::Intrinsic::x86_sse_sfence, {}, {});
  b_.CreateRetVoid();
}

llvm::Value* Emitter::frame_field(int index, const char* name) {
  Value* at = b_.CreateConstInBoundsGEP1_64(b_.getPtrTy(), function_->getArg(0),
                                            static_cast<uint64_t>(index));
  return b_.CreateLoad(b_.getPtrTy(), at, name);
}

void Emitter::emit_body(const Callback<void(Value*)>& unit) {
  home_[kCall] = b_.GetInsertBlock();
  loop(function_->getArg(1), function_->getArg(2), 1, {}, false, [&](Value* i, const Values&) {
    forget(kUnit);
    home_[kUnit] = nullptr;
    unit(i);
    return Values{};
  });
  home_[kCall] = nullptr;
}

Emitter::Values Emitter::loop(Value* begin, Value* end, int64_t step, Values carried, bool some,
                              const LoopBody& body) {
  return codegen::loop(b_, begin, end, step, std::move(carried), some, body);
}

Emitter::Values Emitter::when(Value* condition, const Values& otherwise,
                              const Callback<Values()>& body) {
  return codegen::when(b_, condition, otherwise, body);
}

// A unit is a place of the outer par axes and, innermost, a block along the vector axis.
void Emitter::place_unit(Value* unit) {
  std::vector<UnitAxis> axes = unit_axes(s_);
  auto is_one = [](const UnitAxis& axis) { return bounds(axis.count).hi <= 1; };
  while (!axes.empty() && is_one(axes.back())) {
    axis_[static_cast<size_t>(axes.back().axis)] = number(0);
    axes.pop_back();
  }
  Value* rest = unit;
  for (size_t k = 0; k < axes.size(); ++k) {
    Value* place = rest;  // outermost
    if (is_one(axes[k])) {
      place = number(0);
    } else if (k + 1 < axes.size()) {
      place = b_.CreateURem(rest, size(axes[k].count));
      rest = b_.CreateUDiv(rest, size(axes[k].count));
    }
    axis_[static_cast<size_t>(axes[k].axis)] = b_.CreateMul(place, number(axes[k].step));
  }
}

void Emitter::begin_step(Value* base, int copies, const Values& masks) {
  forget(kStep);
  if (base && s_.vector_axis >= 0) axis_[static_cast<size_t>(s_.vector_axis)] = base;
  copies_ = copies;
  masks_ = masks;
  masks_.resize(static_cast<size_t>(copies), nullptr);
}

void Emitter::emit_stores(bool in_sweep) {
  for (size_t i = 0; i < s_.kernel.stores.size(); ++i) {
    if (!s_.inner.empty() && s_.stored_in_sweep[i] != in_sweep) continue;
    for (int copy = 0; copy < copies_; ++copy) store(s_.kernel.stores[i], copy);
  }
  flush_stores();
}

void Emitter::flat_unit(Value* unit) {
  place_unit(unit);
  if (s_.vector_axis < 0 || s_.lanes == 1) {
    home_[kUnit] = nullptr;
    begin_step(nullptr, 1, {});
    return emit_stores(true);
  }
  Value* lo = axis_[static_cast<size_t>(s_.vector_axis)];
  Dim extent = s_.vector_extent();
  Value* hi = size(extent);
  bool several = at_least(s_.block, extent) != Tri::yes;
  if (several) hi = smaller(b_.CreateAdd(lo, number(s_.block)), hi);
  bool whole = s_.block % s_.step() == 0;
  Dim multiple = several && !whole ? Dim(1) : extent;
  if (s_.tile_axis >= 0) return tiled_range(lo, hi, multiple);
  flat_range(lo, hi, multiple);
}

/// The elements [lo, hi) of the vector axis; `multiple` is a number that divides hi - lo.
void Emitter::flat_range(Value* lo, Value* hi, Dim multiple) {
  int64_t step = s_.step();
  Value* whole = hi;
  if (!divides(step, multiple)) {
    Value* steps = b_.CreateUDiv(b_.CreateSub(hi, lo), number(step));
    whole = b_.CreateAdd(lo, b_.CreateMul(steps, number(step)));
  }
  home_[kUnit] = b_.GetInsertBlock();
  loop(lo, whole, step, {}, false, [&](Value* i, const Values&) {
    begin_step(i, s_.copies, {});
    emit_stores(true);
    return Values{};
  });
  if (!divides(step, multiple)) flat_rest(whole, hi, multiple);
}

/// Single vectors, the last of which may be cut.
void Emitter::flat_rest(Value* lo, Value* hi, Dim multiple) {
  loop(lo, hi, s_.lanes, {}, false, [&](Value* i, const Values&) {
    bool cut = !divides(s_.lanes, multiple);
    begin_step(i, 1, {cut ? first_lanes(b_.CreateSub(hi, i), 0) : nullptr});
    emit_stores(true);
    return Values{};
  });
}

/// As `flat_range`, for the places of a tile: whole tiles, then what is left of each place.
void Emitter::tiled_range(Value* lo, Value* hi, Dim multiple) {
  Value*& place = axis_[static_cast<size_t>(s_.tile_axis)];
  Dim extent = s_.extents[static_cast<size_t>(s_.tile_axis)];
  Value *first = place, *last = b_.CreateAdd(first, number(s_.lanes));
  Value* whole = b_.CreateAdd(lo, b_.CreateAnd(b_.CreateSub(hi, lo), number(-s_.lanes)));
  if (!divides(s_.lanes, extent)) {
    whole = b_.CreateSelect(b_.CreateICmpSLE(last, size(extent)), whole, lo);
    last = smaller(last, size(extent));
  }
  last = b_.CreateSelect(b_.CreateICmpSLT(whole, hi), last, first);
  home_[kUnit] = b_.GetInsertBlock();
  loop(lo, whole, s_.lanes, {}, false, [&](Value* i, const Values&) {
    begin_step(i, s_.copies, {});
    emit_stores(true);
    return Values{};
  });
  if (divides(s_.lanes, extent) && divides(s_.lanes, multiple)) return;
  loop(first, last, 1, {}, false, [&](Value* i, const Values&) {
    forget(kUnit);
    place = i;
    home_[kUnit] = b_.GetInsertBlock();
    flat_rest(whole, hi, multiple);
    return Values{};
  });
}

void Emitter::emit_tile() {
  begin_function("body");
  Value* tile = frame_field(4, "tile");
  Value* ranges[5];
  for (uint64_t k = 0; k < 5; ++k)
    ranges[k] =
        b_.CreateLoad(b_.getInt64Ty(), b_.CreateConstInBoundsGEP1_64(b_.getInt64Ty(), tile, k));
  axis_[0] = ranges[0];
  home_[kCall] = b_.GetInsertBlock();
  loop(ranges[1], ranges[2], 1, {}, false, [&](Value* row, const Values&) {
    forget(kUnit);
    axis_[1] = row;
    flat_range(ranges[3], ranges[4], 1);
    return Values{};
  });
  home_[kCall] = nullptr;
  end_function();
}

void Emitter::row_unit(Value* unit) {
  place_unit(unit);
  forget(kStep);
  std::fill(kept_ready_.begin(), kept_ready_.end(), false);
  for (size_t k = 0; k < s_.sweeps.size(); ++k) row_sweep(k);
  home_[kUnit] = nullptr;
  begin_step(nullptr, 1, {});
  emit_stores(false);
}

}  // namespace tn::cpu
