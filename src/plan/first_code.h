#pragma once
// Code that runs a kernel before it is compiled, on devices that have a prebuilt interpreter.
#include "plan/backend.h"

namespace tn {

/// An option of compilations (CompileOptions::on) of immediate evaluation: kernels of devices are
/// interpreted until they are compiled in the background.
inline constexpr std::string_view kInterpretFirst = "interpret-first";

/// Null: the kernel is to be compiled. Backends set it; null itself where none interprets.
inline std::shared_ptr<const KernelCode> (*first_code)(const KernelRequest& request,
                                                       const Target& target) = nullptr;

}  // namespace tn
