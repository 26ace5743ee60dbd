#include "backend/source/embedded_text.h"

#include <algorithm>

#include "base/error.h"
#include "base/text.h"

namespace tn::source {

std::string_view embedded_text(std::string_view name) {
  auto files = embedded_files();
  auto found = std::ranges::find(files, name, &EmbeddedFile::name);
  invariant(found != files.end(), "no embedded file {}", name);
  return found->text;
}

std::string_view embedded_section(std::string_view file, std::string_view name) {
  constexpr std::string_view kMark = "////";
  std::string_view text = embedded_text(file);
  size_t at = text.find(format("\n{} section {}\n", kMark, name));
  invariant(at != text.npos, "no section {} in the embedded file {}", name, file);
  text.remove_prefix(at + 1);
  while (text.starts_with(kMark)) text.remove_prefix(text.find('\n') + 1);
  return text.substr(0, text.find(format("\n{}", kMark)));
}

}  // namespace tn::source
