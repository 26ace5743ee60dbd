#include "ir/place.h"

#include <string_view>

#include "base/text.h"

namespace tn {

Place (*resolve_host_place)(uint32_t id) = nullptr;

/// Whether a file is one of the library's own, or a header of the standard library that calls it:
/// no place of the user. Conversions of tensors cannot take a place and have that of their header.
static bool is_own(std::string_view file) {
  if (file.find("/include/c++/") != file.npos) return true;
  if (file.find("/include/tenon/") != file.npos) return true;
  constexpr std::string_view kHere = __FILE__;
  constexpr std::string_view kRoot = kHere.substr(0, kHere.rfind("src/ir/"));
  if (kRoot.empty() || !file.starts_with(kRoot)) return false;
  file.remove_prefix(kRoot.size());
  return file.starts_with("src/") || file.starts_with("python/src/") ||
         file.starts_with("include/");
}

Place resolve(Loc loc) {
  if (!loc) return {};
  if (loc.is_host()) return resolve_host_place ? resolve_host_place(loc.host_id()) : Place{};
  auto at = std::bit_cast<std::source_location>(loc.place());
  if (is_own(at.file_name())) return {};
  return {at.file_name(), at.function_name(), static_cast<int>(at.line())};
}

std::string to_text(Loc loc) {
  Place place = resolve(loc);
  if (place.file.empty()) return "";
  std::string text = format("{}:{}", place.file, place.line);
  return place.function.empty() ? text : text + ", in " + place.function;
}

std::string place_of_current_call() { return to_text(current_loc); }

bool is_current_call_cpp() {
  if (current_loc.is_host()) return false;
  return !resolve_host_place || !resolve(current_loc).file.empty();
}

}  // namespace tn
