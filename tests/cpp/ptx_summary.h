#pragma once
// What matters in the PTX of a kernel, in a few lines.
#include <map>
#include <sstream>
#include <string>

namespace tn {

/// Of each entry, how often the instructions occur that touch memory, meet other threads, divide or
/// round to bf16.
inline std::string ptx_summary(const std::string& ptx) {
  std::istringstream lines(ptx);
  std::string text, name;
  std::map<std::string, int> counts;
  auto finish = [&] {
    if (name.empty()) return;
    text += name + ":";
    for (const auto& [what, count] : counts) text += " " + what + " " + std::to_string(count);
    text += "\n";
    counts.clear();
  };
  for (std::string line; std::getline(lines, line);) {
    if (size_t at = line.find(".entry "); at != std::string::npos) {
      finish();
      name = line.substr(at + 7, line.find('(') - at - 7);
    }
    std::istringstream words(line);
    std::string word;
    words >> word;
    if (word.starts_with("@")) words >> word;
    for (const char* prefix :
         {"ld.global", "st.global", "ld.shared", "st.shared", "ld.local", "st.local", "bar.sync",
          "shfl", "div", "rem", "sqrt", "fma", "cvt.rn.bf16"})
      if (word.starts_with(prefix)) ++counts[word.substr(0, word.find(';'))];
  }
  finish();
  return text;
}

}  // namespace tn
