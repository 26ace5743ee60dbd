#pragma once
// The loader of generated object files: no linker, no undefined symbols.
#include <cstddef>
#include <memory>
#include <span>
#include <string>
#include <string_view>
#include <vector>

namespace tn {

/// The code of one ELF object in memory: written once, then only read and executed.
class Object {
 public:
  explicit Object(std::span<const std::byte> elf);
  ~Object();
  Object(const Object&) = delete;
  Object& operator=(const Object&) = delete;

  /// The address of a function; an internal error when there is none.
  void* find(std::string_view name) const;

 private:
  Object() = default;
  struct Symbol {
    std::string name;
    std::byte* address;
  };
  std::byte* pages_ = nullptr;
  size_t bytes_ = 0;
  std::vector<Symbol> functions_;
};

}  // namespace tn
