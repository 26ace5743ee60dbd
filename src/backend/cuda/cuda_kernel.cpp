#include "backend/cuda/cuda_kernel.h"

#include <algorithm>

#include "backend/kernel_sizes.h"
#include "base/error.h"
#include "base/integers.h"

namespace tn::cuda {

static constexpr int64_t kRoomAlignment = 256;

KernelCode::KernelCode(KernelNumbers numbers, std::string image)
    : numbers_(std::move(numbers)),
      image_(std::make_shared<const KernelImage>(KernelImage{std::move(image)})) {
  for (const std::string& name : numbers_.symbols) symbols_.push_back(Dim::symbol(name));
  if (numbers_.symbols.empty()) fixed_ = made_for({});
}

std::shared_ptr<const BoundKernel> KernelCode::bind(std::span<const Binding> sizes) const {
  if (fixed_) return fixed_;
  std::vector<int64_t> values = values_of(symbols_, numbers_.symbols, sizes);
  return made_for(values);
}

std::shared_ptr<const CudaKernel> KernelCode::made_for(std::span<const int64_t> sizes) const {
  auto kernel = std::make_shared<CudaKernel>();
  kernel->image = image_;
  kernel->is_one_phase = numbers_.entries.size() == 1;
  std::vector<int64_t> rooms;
  for (const SizeProgram& room : numbers_.rooms) {
    rooms.push_back(kernel->room_bytes);
    kernel->room_bytes += round_up(room.at(sizes), kRoomAlignment);
  }
  for (const EntryCode& code : numbers_.entries) {
    Entry entry{code.name, code.blocks.at(sizes), code.threads, code.shared_bytes, code.params};
    for (Param& param : entry.params) {
      if (param.kind == Param::Kind::value) param.value = sizes[static_cast<size_t>(param.index)];
      if (param.kind == Param::Kind::room) param.value = rooms[static_cast<size_t>(param.index)];
    }
    kernel->entries.push_back(std::move(entry));
  }
  return kernel;
}

namespace {

/// The one list of what the bytes hold.
template <class Visit, class Numbers, class Text>
void visit_parts(Visit& visit, Numbers& numbers, Text& image) {
  auto& [symbols, entries, rooms] = numbers;
  visit(symbols);
  visit.list(entries, [&](auto&, auto& entry) {
    auto& [name, blocks, threads, shared_bytes, params] = entry;
    visit(name), visit(blocks), visit(threads), visit(shared_bytes);
    visit.list(params, [&](auto&, auto& param) {
      visit(param.kind), visit(param.index), visit(param.type);
    });
  });
  visit.list(rooms, [&](auto&, auto& room) { visit(room); });
  visit(image);
}

bool is_sound(const KernelNumbers& n) {
  auto within = [](int32_t index, size_t count) {
    return index >= 0 && static_cast<size_t>(index) < count;
  };
  for (const SizeProgram& room : n.rooms)
    if (!room.is_sound(n.symbols.size())) return false;
  for (const EntryCode& entry : n.entries) {
    if (!entry.blocks.is_sound(n.symbols.size()) || entry.threads < 1 || entry.threads > 1024 ||
        entry.shared_bytes < 0)
      return false;
    for (const Param& param : entry.params) {
      using Kind = Param::Kind;
      if (param.kind > Kind::room || static_cast<int>(param.type) >= kDTypes || param.index < 0)
        return false;
      if (param.kind == Kind::value && !within(param.index, n.symbols.size())) return false;
      if (param.kind == Kind::room && !within(param.index, n.rooms.size())) return false;
    }
  }
  return true;
}

}  // namespace

std::string kernel_to_bytes(const KernelNumbers& numbers, std::string_view image) {
  KernelWriter writer;
  visit_parts(writer, numbers, image);
  return std::move(writer.bytes);
}

std::shared_ptr<const KernelCode> kernel_from_bytes(std::string_view bytes) {
  try {
    KernelReader reader(bytes);
    KernelNumbers numbers;
    std::string_view image;
    visit_parts(reader, numbers, image);
    if (!is_sound(numbers)) return nullptr;
    return std::make_shared<const KernelCode>(std::move(numbers), std::string(image));
  } catch (const std::bad_alloc&) {
    throw;
  } catch (const UserError& e) {  // they end too early
    if (e.fault() == Fault::memory) throw;
    return nullptr;
  } catch (const std::exception&) {
    return nullptr;
  }
}

}  // namespace tn::cuda
