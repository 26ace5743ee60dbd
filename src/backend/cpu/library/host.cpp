// What the host does between other steps: printing, checking, waiting.
#include <algorithm>
#include <cstring>

#include "backend/cpu/library/cpu_library.h"
#include "base/error.h"
#include "ir/values_text.h"
#include "ops/effects.h"
#include "ops/op_decls.h"

namespace tn::cpu {
namespace {

using namespace ops;

/// `text` with operands [first, …) in place of `{}`; those that have no place follow.
std::string with_values(std::string_view text, const LibraryCall& call, size_t first,
                        bool anchored) {
  std::string out;
  for (size_t i = first; i + anchored < call.in_types.size(); ++i) {
    size_t at = text.find("{}");
    out += text.substr(0, at);
    text.remove_prefix(at == text.npos ? text.size() : at + 2);
    if (at == out.npos) out += out.empty() ? "" : " ";
    out += values_text(call.in_types[i], call.in[i]);
  }
  return out.append(text);
}

void run_print(const LibraryCall& call) {
  const auto& a = *static_cast<const PrintAttrs*>(call.attrs);
  if (print_line) print_line(with_values(a.text, call, 0, a.anchored));
}

void run_check(const LibraryCall& call) {
  const auto& a = *static_cast<const CheckAttrs*>(call.attrs);
  const auto* flags = static_cast<const bool*>(call.in[0]);
  if (std::all_of(flags, flags + call.in_types[0]->elements, [](bool b) { return b; })) return;
  std::string text = "check: " + with_values(a.text, call, 1, a.anchored);
  if (!a.place.empty()) text += format("\n  at {}", a.place);
  log_error_site(ErrorSite::here());
  throw UserError(Fault::value, text);  // at the place of the check, not of the call
}

void run_after(const LibraryCall& call) {
  std::memcpy(call.out[0], call.in[0], static_cast<size_t>(call.out_types[0]->bytes()));
}

constexpr LibraryKernel kEntriesHost[] = {
    {&ops::print, run_print},
    {&ops::check, run_check},
    {&ops::after, run_after},
};

}  // namespace

LibraryTable host_kernels() { return kEntriesHost; }

}  // namespace tn::cpu
