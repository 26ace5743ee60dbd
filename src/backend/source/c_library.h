#pragma once
// The functions that printed ones call.
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "tenon/dtype.h"

namespace tn::source {

/// Text, and the names of which a file that needs it has one.
struct CPart {
  std::string text;
  std::vector<std::string> names;
};

inline constexpr DType kCTypes[] = {DType::b1,   DType::i8,     DType::i16,   DType::i32,
                                    DType::i64,  DType::u8,     DType::u16,   DType::u32,
                                    DType::u64,  DType::f32,    DType::f64,   DType::f16,
                                    DType::bf16, DType::f8e4m3, DType::f8e5m2};

/// `text` with `type` in the place of every `$`.
std::string c_typed(std::string_view text, DType type);
/// `text` with other words in the place of some.
std::string c_filled(std::string text, std::span<const std::pair<std::string, std::string>> words);
inline std::string c_filled(std::string text,
                            std::initializer_list<std::pair<std::string, std::string>> words) {
  return c_filled(std::move(text), std::span(words.begin(), words.size()));
}

/// Products and convolutions of every element type, in the order of their dependence.
std::vector<CPart> c_products();
/// Their plain loops, for types that no vectors serve.
std::vector<CPart> c_plain_products(DType type);
std::string_view c_meet();  // what these call
/// Orders of elements.
std::vector<CPart> c_orders();

}  // namespace tn::source
