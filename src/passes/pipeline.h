#pragma once
// Which passes run, in which order, and how.
#include "passes/pass.h"

namespace tn {

/// The passes with `rounds` rounds of simplification, 1 to 3. A pass that would see what it left
/// unchanged is skipped, so further rounds end where nothing changes any more.
std::span<const Pass> pipeline(int rounds);

/// Runs `passes` in order, without those named in `off`, which may name other things too: fusions;
/// and without opt-in passes, unless `context.on` has them.
/// Composites that no pass was allowed to replace are left to the lowering.
Graph run_passes(const Graph& graph, PassContext& context, std::span<const Pass> passes,
                 std::span<const std::string> off = {});

/// Fails unless a pass has this name.
void check_pass_name(std::string_view name, std::span<const std::string_view> others = {});
/// Fails unless an opt-in pass has this name.
void check_asked_for(std::string_view name);

}  // namespace tn
