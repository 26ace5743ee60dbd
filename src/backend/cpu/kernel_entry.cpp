#include "backend/cpu/kernel_entry.h"

#include <llvm/Config/llvm-config.h>

#include <cstring>

#include "backend/cpu/source_hash.h"
#include "base/error.h"
#include "runtime/disk_cache.h"

namespace tn::cpu {
namespace {

class Writer {
 public:
  std::string bytes;

  template <class T>
  void operator()(const T& number) {
    static_assert(std::is_arithmetic_v<T> || std::is_enum_v<T>);
    bytes.append(reinterpret_cast<const char*>(&number), sizeof number);
  }
  void operator()(const SizeStep& step) {
    (*this)(step.kind);
    (*this)(step.number);
  }
  void operator()(const SizeProgram& program) { (*this)(program.steps); }
  void operator()(const std::string& text) { (*this)(std::string_view(text)); }
  void operator()(std::string_view text) {
    (*this)(text.size());
    bytes.append(text);
  }
  template <class T>
  void operator()(const std::vector<T>& list) {
    (*this)(list.size());
    for (const T& element : list) (*this)(element);
  }
};

/// Reads what Writer wrote, in the same order. Past the end all is 0 and `whole` is false.
class Reader {
 public:
  explicit Reader(std::string_view bytes) : rest_(bytes) {}
  bool whole = true;

  template <class T>
  void operator()(T& number) {
    static_assert(std::is_arithmetic_v<T> || std::is_enum_v<T>);
    std::string_view bytes = take(sizeof number);
    if (whole) std::memcpy(&number, bytes.data(), sizeof number);
  }
  void operator()(SizeStep& step) {
    (*this)(step.kind);
    (*this)(step.number);
  }
  void operator()(SizeProgram& program) { (*this)(program.steps); }
  void operator()(std::string& text) { text = take(count()); }
  void operator()(std::string_view& text) { text = take(count()); }
  template <class T>
  void operator()(std::vector<T>& list) {
    list.resize(count());
    for (T& element : list) (*this)(element);
  }

 private:
  std::string_view take(size_t size) {
    whole = whole && size <= rest_.size();
    std::string_view taken = rest_.substr(0, whole ? size : 0);
    rest_.remove_prefix(taken.size());
    return taken;
  }
  /// Of the elements that follow, each a byte or more.
  size_t count() {
    size_t number = 0;
    (*this)(number);
    whole = whole && number <= rest_.size();
    return whole ? number : 0;
  }
  std::string_view rest_;
};

/// The one list of what an entry holds. All fields by name: a new one does not compile until it is
/// thought of. `flag` is `divided` as a byte: not every byte is a bool.
template <class Visit, class Numbers, class Flag, class Text>
void visit_parts(Visit& visit, Numbers& numbers, Flag& flag, Text& object) {
  auto& [symbols, units, finish_units, points, scratch_bytes, streamed_bytes, partial_bytes,
         point_nanoseconds, divided, argument_types] = numbers;
  (void)divided;
  visit(symbols);
  visit(units);
  visit(finish_units);
  visit(points);
  visit(scratch_bytes);
  visit(streamed_bytes);
  visit(partial_bytes);
  visit(point_nanoseconds);
  visit(flag);
  visit(argument_types);
  visit(object);
}

bool is_sound(const KernelNumbers& n) {
  for (const SizeProgram* program :
       {&n.units, &n.finish_units, &n.points, &n.scratch_bytes, &n.streamed_bytes})
    if (!program->is_sound(n.symbols.size())) return false;
  for (DType type : n.argument_types)
    if (static_cast<int>(type) >= kDTypes) return false;
  return true;
}

std::string disk_key(std::string_view key) {
  return format("kernel {} {}\n{}", source_hash(), LLVM_VERSION_STRING, key);
}

}  // namespace

std::string kernel_to_bytes(const KernelNumbers& numbers, std::string_view object) {
  Writer writer;
  uint8_t divided = numbers.divided;
  visit_parts(writer, numbers, divided, object);
  return std::move(writer.bytes);
}

std::shared_ptr<const KernelCode> kernel_from_bytes(std::string_view bytes) {
  Reader reader(bytes);
  KernelNumbers numbers;
  uint8_t divided = 0;
  std::string_view object;
  visit_parts(reader, numbers, divided, object);
  if (!reader.whole || !is_sound(numbers)) return nullptr;
  numbers.divided = divided != 0;
  try {
    return std::make_shared<const KernelCode>(std::as_bytes(std::span(object)), std::move(numbers));
  } catch (const std::exception&) {  // the loader refuses the object
    return nullptr;
  }
}

std::shared_ptr<const KernelCode> load_kernel(std::string_view key) {
  DiskCache& disk = DiskCache::shared();
  std::string entry = disk_key(key);
  std::optional<std::string> bytes = disk.get(entry);
  if (!bytes) return nullptr;
  std::shared_ptr<const KernelCode> code = kernel_from_bytes(*bytes);
  if (!code) disk.remove(entry);
  return code;
}

void save_kernel(std::string_view key, const KernelNumbers& numbers, std::string_view object) {
  DiskCache::shared().put(disk_key(key), kernel_to_bytes(numbers, object));
}

}  // namespace tn::cpu
