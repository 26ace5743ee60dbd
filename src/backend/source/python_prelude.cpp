#include "backend/source/python_prelude.h"

#include <algorithm>
#include <vector>

namespace tn::source {
namespace {

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
  std::span<const Helper> all = target == "numpy"   ? numpy_helpers()
                                : target == "torch" ? torch_helpers()
                                                    : jax_helpers();
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
