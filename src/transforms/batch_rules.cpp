// vmap of one op: the batch is axis 0 of batched operands and of every result.
#include <cstdio>
#include <cstdlib>
#include <mutex>
#include <set>

#include "ir/interned.h"
#include "ops/control_flow.h"
#include "ops/op_decls.h"
#include "ops/shapes.h"
#include "tenon/ops.h"
#include "transforms/derivative.h"
#include "transforms/sweep.h"

namespace tn {

namespace {

/// Elementwise operands broadcast from the right, so unit axes go between the batch and the rest.
Tensors batch_elementwise(const OpDef& op, const void* attrs, Tensors in,
                          const std::vector<bool>& batched) {
  int rank = 0;
  for (size_t k = 0; k < in.size(); ++k) rank = std::max(rank, in[k].rank() - batched[k]);
  for (size_t k = 0; k < in.size(); ++k) {
    int missing = rank - (in[k].rank() - 1);
    if (!batched[k] || missing == 0) continue;
    Shape shape = in[k].shape();
    for (int i = 0; i < missing; ++i) shape.insert(1, Dim(1));
    in[k] = tn::reshape(in[k], shape);
  }
  return emit_all(op, in, attrs);
}

/// Axes move up by one, orders keep the batch first, shapes grow by it.
void shift_attrs(const AttrKind& kind, void* attrs, Dim size) {
  for (const Field& f : list_fields(kind, attrs).items) {
    if (f.set && !*f.set) continue;
    if (f.kind == FieldKind::axis) {
      ++static_cast<Axis*>(f.at)->i;
    } else if (f.kind == FieldKind::axes) {
      for (Axis& a : *static_cast<Axes*>(f.at)) ++a.i;
    } else if (f.kind == FieldKind::perm) {
      auto& perm = *static_cast<Perm*>(f.at);
      for (Axis& a : perm) ++a.i;
      perm.insert(0, Axis(0));
    } else if (f.kind == FieldKind::shape) {
      static_cast<Shape*>(f.at)->insert(0, size);
    }
  }
}

Tensors batch_aligned(const OpDef& op, const void* attrs, Tensors in,
                      const std::vector<bool>& batched, Dim size) {
  for (size_t k = 0; k < in.size(); ++k)
    if (!batched[k]) in[k] = ops::with_batch(in[k], size);
  if (op.attrs->fields == 0) return emit_all(op, in, nullptr);
  AttrBuffer shifted(*op.attrs, attrs);
  shift_attrs(*op.attrs, shifted.data, size);
  return emit_all(op, in, shifted.data);
}

TypeRef example_type(const Tensor& x, bool batched) {
  return batched ? intern(ops::slice_type(*type_of(x))) : type_of(x);
}

/// A composite is batched through its body.
Tensors batch_body(const OpDef& op, const void* attrs, const Tensors& in,
                   const std::vector<bool>& batched, Dim size) {
  Tensors params;
  std::vector<Batched> given;
  for (size_t k = 0; k < in.size(); ++k) {
    RecordScope scope;
    params.push_back(make_param(example_type(in[k], batched[k])));
    given.push_back({in[k], batched[k]});
  }
  Tensors args = params;
  args.resize(std::max(args.size(), static_cast<size_t>(op.args.size())));
  Tensors out = op.rules->body(attrs, args), result;
  for (Batched& b : sweep_batch(tape_of(params, out), std::move(given), out, size))
    result.push_back(b.batched ? b.value : ops::with_batch(b.value, size));
  return result;
}

}  // namespace

/// With TENON_DEBUG set, says once for every op that examples go one by one.
static void report_loop(const OpDef& op) {
  static const bool wanted = std::getenv("TENON_DEBUG") != nullptr;
  if (!wanted) return;
  static std::mutex mutex;
  static auto& reported = *new std::set<const OpDef*>;
  std::lock_guard lock(mutex);
  if (!reported.insert(&op).second) return;
  std::fputs(format("tenon: vmap runs {} one example after the other\n", op.name).c_str(), stderr);
}

Tensors batch_by_scan(const OpDef& op, const void* attrs, const Tensors& in,
                      const std::vector<bool>& batched, Dim size) {
  report_loop(op);
  Graph step;  // slices of batched operands, then the others
  Tensors operands;
  std::vector<Val> given(in.size());
  std::vector<TypeRef> types;
  ops::ScanAttrs scan;
  scan.length = size;
  for (bool slices : {true, false})
    for (size_t k = 0; k < in.size(); ++k) {
      if (batched[k] != slices) continue;
      given[k] = step.add_input("x", example_type(in[k], slices));
      operands.push_back(in[k]);
      scan.xs += slices;
    }
  types.reserve(given.size());
  for (Val v : given) types.push_back(step.types[static_cast<size_t>(v)]);
  const Attrs* interned = intern(*op.attrs, attrs);
  Types out = infer_types(op, interned, types);
  Val first = step.add(op, interned, given, out, current_loc);
  for (Val v = first; v < step.values(); ++v) step.outputs.push_back(v);
  scan.body = intern(std::move(step));
  return emit_all(ops::scan, operands, &scan);
}

Tensors batch_of(const OpDef& op, const void* attrs, const Tensors& in,
                 const std::vector<bool>& batched, Dim size) {
  DeviceScope inside(device_of(in));
  if (op.rules->batch_rule) return op.rules->batch_rule(attrs, {in, batched, size});
  if (op.batch == Batch::aligned || op.family == Family::reduction || op.family == Family::movement)
    return batch_aligned(op, attrs, in, batched, size);
  if (op.is_elementwise()) return batch_elementwise(op, attrs, in, batched);
  if (op.rules->body) return batch_body(op, attrs, in, batched, size);
  return batch_by_scan(op, attrs, in, batched, size);
}

}  // namespace tn
