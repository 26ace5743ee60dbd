#pragma once
// Library kernels in two steps, between which others run: workers show each other their operands,
// and complete the results.
#include "plan/library.h"

namespace tn {

/// Both kernels take the same operands and results, and behind the results a ticket, room that
/// lasts from one to the other. Ops with equal attributes can be joined: the kernels take several
/// operands of one element type, and make as many results of the same types. A result may be its
/// operand.
struct SplitForm {
  static constexpr int64_t kTicketBytes = 64;
  LibraryKernel start, wait;
  void (*abandon)(const LibraryCall& call);  // instead of `wait`, if the run fails
};

/// Of an op on the host, or null. Set where such kernels are installed (workers/world.h).
using FindSplitForm = const SplitForm* (*)(const OpDef& op);
inline constinit FindSplitForm split_form = nullptr;

}  // namespace tn
