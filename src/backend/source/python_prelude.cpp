#include "backend/source/python_prelude.h"

#include <algorithm>
#include <span>
#include <vector>

#include "backend/source/embedded_text.h"
#include "backend/source/python_text.h"
#include "base/text.h"

namespace tn::source {
namespace {

/// One function of a prelude; its name begins with an underscore. Without text it is NumPy's, with
/// the other library for `np`.
struct Helper {
  std::string_view name, text;
};

/// A prelude is a Python file of functions, and of lines that import some of NumPy's.
std::vector<Helper> helpers_of(std::string_view prelude) {
  constexpr std::string_view kDef = "def ", kImport = "from numpy_prelude import ";
  std::vector<Helper> helpers;
  const char* open = nullptr;  // where the function begins whose end is looked for
  const char* last = nullptr;  // the end of its last line that is not empty
  auto close = [&] {
    if (open) helpers.back().text = {open, last};
    open = nullptr;
  };
  while (!prelude.empty()) {
    std::string_view line = prelude.substr(0, prelude.find('\n'));
    prelude.remove_prefix(std::min(prelude.size(), line.size() + 1));
    if (line.starts_with(kDef)) {
      close();
      helpers.push_back({line.substr(kDef.size(), line.find('(') - kDef.size()), {}});
      open = line.data();
    } else if (line.starts_with(kImport)) {
      close();
      for (std::string_view names = line.substr(kImport.size()); !names.empty();) {
        std::string_view name = names.substr(0, names.find(", "));
        helpers.push_back({name, {}});
        names.remove_prefix(std::min(names.size(), name.size() + 2));
      }
    }
    if (!line.empty()) last = line.data() + line.size() + 1;
  }
  close();
  return helpers;
}

std::span<const Helper> numpy_helpers() {
  static const std::vector<Helper> helpers = helpers_of(embedded_text("numpy_prelude.py"));
  return helpers;
}

/// Whether `text` calls or names `name`.
bool names(std::string_view text, std::string_view name) {
  for (size_t at = text.find(name); at != text.npos; at = text.find(name, at + 1)) {
    char before = at ? text[at - 1] : ' ';
    size_t end = at + name.size();
    char after = end < text.size() ? text[end] : ' ';
    if (!is_word(before) && before != '.' && !is_word(after)) return true;
  }
  return false;
}

/// NumPy's `_sort` with `jnp.` for `np.`.
std::string as_numpy(std::string_view name, std::string_view library) {
  auto all = numpy_helpers();
  std::string text(std::ranges::find(all, name, &Helper::name)->text);
  for (size_t at = 0; (at = text.find("np.", at)) != text.npos; at += library.size() + 1)
    text.replace(at, 2, library);
  return text;
}

}  // namespace

std::string helpers_for(std::string_view target, std::string_view text) {
  std::vector<Helper> all = helpers_of(embedded_text(format("{}_prelude.py", target)));
  std::vector<std::string> texts;
  for (const Helper& h : all)
    texts.push_back(h.text.empty() ? as_numpy(h.name, target == "torch" ? "torch" : "jnp")
                                   : std::string(h.text));
  std::vector<bool> used(all.size());
  for (bool more = true; more;) {
    more = false;
    for (size_t i = 0; i < all.size(); ++i) {
      if (used[i]) continue;
      bool needed = names(text, all[i].name);
      for (size_t k = 0; k < all.size(); ++k) needed |= used[k] && names(texts[k], all[i].name);
      more |= needed, used[i] = needed;
    }
  }
  std::string made;
  for (size_t i = 0; i < all.size(); ++i)
    if (used[i]) made += "\n\n" + texts[i];
  if (made.starts_with('\n')) made.erase(0, 1);
  return made;
}

}  // namespace tn::source
