#include "base/error.h"

namespace tn {

std::string (*user_place)() = nullptr;

static std::string with_place_and_hint(std::string text, const Hint& hint) {
  if (user_place)
    if (std::string place = user_place(); !place.empty()) text += "\n  at " + place;
  if (!hint.text.empty()) text += "\n  hint: " + hint.text;
  return text;
}

void throw_user(Fault fault, std::string text, const Hint& hint) {
  throw UserError(fault, with_place_and_hint(std::move(text), hint));
}

void throw_unsupported(std::string text, const Hint& hint) {
  throw Unsupported(with_place_and_hint(std::move(text), hint));
}

void throw_internal(std::string text) {
  throw InternalError(
      "internal error: " + with_place_and_hint(std::move(text), {}) +
      "\n  this is a defect of tenon; please report it with the program that shows it");
}

}  // namespace tn
