#include "backend/source/embedded_text.h"

#include <algorithm>

#include "base/error.h"

namespace tn::source {

std::string_view embedded_text(std::string_view name) {
  auto files = embedded_files();
  auto found = std::ranges::find(files, name, &EmbeddedFile::name);
  invariant(found != files.end(), "no embedded file {}", name);
  return found->text;
}

}  // namespace tn::source
