#include "ir/place.h"

#include <string_view>

#include "base/text.h"

namespace tn {

Place (*resolve_host_place)(uint32_t id) = nullptr;

Place resolve(Loc loc) {
  if (!loc) return {};
  if (loc.is_host()) return resolve_host_place ? resolve_host_place(loc.host_id()) : Place{};
  auto at = std::bit_cast<std::source_location>(loc.bits);
  return {at.file_name(), at.function_name(), static_cast<int>(at.line())};
}

std::string to_text(Loc loc) {
  Place place = resolve(loc);
  if (place.file.empty()) return "";
  std::string text = format("{}:{}", place.file, place.line);
  return place.function.empty() ? text : text + ", in " + place.function;
}

std::string place_of_current_call() { return to_text(current_loc); }

}  // namespace tn
