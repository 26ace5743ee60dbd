#pragma once
// Text of other languages that written files are made of. It lives in src/backend/source/text, and
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
/// The part of a file from below "//// section NAME", and comments like it, to the next such line.
std::string_view embedded_section(std::string_view file, std::string_view name);

}  // namespace tn::source
