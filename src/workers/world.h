#pragma once
// The workers of this program, found in the environment that a launcher sets.
#include <string>

#include "runtime/transport.h"

namespace tn::workers {

/// The name of the group of all workers.
inline constexpr std::string_view kWorld = "world";

/// Gives the CPU its kernels of collectives, which the runtime library is without.
void install_kernels();

/// A group by its name. That of all workers is made at the first call; without a launcher there is
/// one worker.
Transport& group(std::string_view name);
/// Null: there is none.
Transport* find_group(std::string_view name);

/// Splits a group and returns the name of the part that this worker belongs to. Parts get equal
/// names on all of their workers.
std::string split_group(std::string_view parent, int color, int key);

}  // namespace tn::workers
