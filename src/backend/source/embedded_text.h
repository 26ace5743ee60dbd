#pragma once
// Text of other languages that written files begin with. It lives in src/backend/source/text, and
// the build makes it part of the library (cmake/embedded_text.cmake).
#include <span>
#include <string_view>

namespace tn::source {

struct EmbeddedFile {
  std::string_view name, text;
};
std::span<const EmbeddedFile> embedded_files();

/// The text of the file of this name.
std::string_view embedded_text(std::string_view name);

}  // namespace tn::source
