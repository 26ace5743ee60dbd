#pragma once
// From PTX to machine code of a GPU.
#include <string>
#include <string_view>

namespace tn::cuda {

/// The cubin for an architecture ("sm_90" is 90), by nvJitLink if there is one, else by a ptxas
/// process. "" where neither is there: the driver takes PTX too, one kernel at a time. Fails where
/// an assembler refuses the text. Any number of threads may call it.
std::string assemble(std::string_view ptx, int architecture);

/// By this program. "" where there is no room for its files.
std::string run_ptxas(const std::string& program, std::string_view ptx, int architecture);

/// What assembles here, for keys of caches and for readers: "nvJitLink 13.0", "ptxas 13.0",
/// "driver".
const std::string& assembler_name();

}  // namespace tn::cuda
