#include "backend/cuda/interpreter/bytecode_program.h"

#include <algorithm>
#include <bit>

#include "backend/cuda/interpreter/bytecode_lowering.h"
#include "loop/macros.h"
#include "loop/reduction_tree.h"

namespace tn::cuda {
namespace {

using bytecode::Where;
using loop::Kernel;
using loop::Op;

constexpr int64_t kMostNumber = (int64_t{1} << 31) - 4096;  // of points, and of elements of buffers
constexpr size_t kMostValues = 400;
constexpr int kMostThreads = 128, kFewestThreads = 32;
constexpr int64_t kMostShared = 48 << 10;  // always there

bool may_collide(const Kernel& kernel, const loop::Analysis& a) {
  loop::AxisSet wide = 0;
  for (size_t k = 0; k < kernel.axes.size(); ++k)
    if (kernel.axes[k].extent.value() > 1) wide |= loop::axis_bit(k);
  for (size_t i = 0; i < kernel.stores.size(); ++i) {
    const loop::Store& store = kernel.stores[i];
    if (store.scattered || store.combine != loop::Combine::set) return true;
    loop::AxisSet axes = a.stores[i].axes;
    if (axes & a.inner()) axes |= a.inner();
    if (axes & ~loop::axes_in(kernel, store.index) & wide) return true;
  }
  return false;
}

bool is_interpretable(const Kernel& kernel) {
  if (!loop::symbols_in(kernel).empty() || kernel.values.size() > kMostValues) return false;
  if (kernel.buffers.size() + static_cast<size_t>(kernel.arguments) > 64) return false;
  for (const loop::BufferParam& buffer : kernel.buffers)
    if (buffer.size.value() > kMostNumber) return false;
  loop::Analysis a = loop::analyse(kernel);
  return !a.scan && a.plain && !may_collide(kernel, a);
}

std::vector<Param> params_of(const Kernel& kernel, std::span<const uint64_t> words) {
  std::vector<Param> params;
  auto add = [&](Param::Kind kind, size_t index, DType type, uint64_t value) {
    params.push_back({kind, static_cast<int32_t>(index), type, static_cast<int64_t>(value)});
  };
  for (size_t i = 0; i < bytecode::kHeader; ++i) add(Param::Kind::value, 0, DType::i64, words[i]);
  for (size_t i = 0; i < kernel.buffers.size(); ++i) add(Param::Kind::buffer, i, DType::i64, 0);
  std::vector<DType> types(static_cast<size_t>(kernel.arguments), DType::f32);
  for (const loop::Value& v : kernel.values)
    if (v.op == Op::argument) types[static_cast<size_t>(v.a)] = v.type;
  for (size_t i = 0; i < types.size(); ++i) add(Param::Kind::scalar, i, types[i], 0);
  for (size_t i = params.size(); i < bytecode::kWords; ++i)
    add(Param::Kind::value, 0, DType::i64, i < words.size() ? words[i] : 0);
  return params;
}

/// An argument that is read as two types would need two words.
bool has_one_type_each(const Kernel& kernel) {
  std::vector<DType> types(static_cast<size_t>(kernel.arguments), DType::c128);
  for (const loop::Value& v : kernel.values) {
    if (v.op != Op::argument) continue;
    DType& known = types[static_cast<size_t>(v.a)];
    if (known != DType::c128 && known != v.type) return false;
    known = v.type;
  }
  return true;
}

void lower(const Kernel& kernel, const loop::Analysis& a, BytecodeLowering& to) {
  using bytecode::Code;
  bool rows = !a.inner_axes.empty();
  for (size_t i = 0; rows && i < kernel.values.size(); ++i)  // before anything is overwritten
    if (a.needed[i] && a.level[i] == 0 && kernel.values[i].op == Op::load &&
        !(kernel.values[i].axes & a.inner()))
      to.value(static_cast<loop::ValueId>(i));
  for (int level = 0; rows && level <= a.levels; ++level) to.sweep(level);
  if (rows) to.code.list.push_back({.code = Code::meet});  // what others read may be overwritten
  auto is_last = [&](size_t i) { return !(a.stores[i].axes & a.inner()); };
  for (size_t i = 0; i < kernel.stores.size(); ++i)
    if (is_last(i)) to.prepare(i);
  for (size_t i = 0; i < kernel.stores.size(); ++i)
    if (is_last(i)) to.store(i, rows ? Where::row : Where::point);
  to.code.list.push_back({.code = Code::end});
}

}  // namespace

std::optional<BytecodeProgram> bytecode_program(const Kernel& given) {
  if (!is_interpretable(given) || !has_one_type_each(given)) return {};
  Kernel kernel = loop::expand_math(given, [](const loop::Value& v) {
    return v.type == DType::f32 && !v.narrow && has_function(v.op);
  });
  if (kernel.values.size() > kMostValues) return {};
  loop::Analysis a = loop::analyse(kernel);
  BytecodeLowering lowering(kernel, a);
  int64_t points = lowering.extent_of(a.par_axes), extent = lowering.extent_of(a.inner_axes);
  bool rows = !a.inner_axes.empty();
  if (points > kMostNumber || extent > loop::kChunk || extent == 0) return {};
  lower(kernel, a, lowering);
  int registers = 0;
  std::vector<uint64_t> code = lowering.code.encode(registers);
  size_t begin = bytecode::kHeader + kernel.buffers.size() + static_cast<size_t>(kernel.arguments);
  if (!lowering.fits || code.empty() || begin + code.size() > bytecode::kWords) return {};
  int threads = kMostThreads;
  while (int64_t{registers} * threads * bytecode::kRegisterBytes > kMostShared) threads /= 2;
  if (threads < kFewestThreads) return {};
  int64_t group = 1;
  while (group < 16 && group * bytecode::kElements < extent) group *= 2;
  bytecode::Header header{static_cast<unsigned>(points), rows ? static_cast<unsigned>(extent) : 0};
  bytecode::Layout layout{static_cast<unsigned short>(begin), static_cast<unsigned short>(threads),
                          static_cast<unsigned short>(rows ? group : 0)};
  std::vector<uint64_t> words(begin);
  words[0] = std::bit_cast<uint64_t>(header), words[1] = std::bit_cast<uint64_t>(layout);
  words.insert(words.end(), code.begin(), code.end());
  int64_t each = rows ? threads / group : int64_t{threads} * bytecode::kElements;
  BytecodeProgram made;
  made.entry = {"interpret", (points + each - 1) / each, threads,
                int64_t{registers} * threads * bytecode::kRegisterBytes, params_of(kernel, words)};
  made.entry.is_packed = true;
  made.work = points * extent * static_cast<int64_t>(lowering.code.list.size());
  return made;
}

}  // namespace tn::cuda
