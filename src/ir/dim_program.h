#pragma once
// From sizes to the programs that evaluate them at run time.
#include <string>

#include "ir/dim.h"
#include "runtime/size_program.h"

namespace tn {

/// `symbols`: the names in the order of their values. A symbol that is not among them is an
/// internal error.
SizeProgram size_program(Dim size, std::span<const std::string> symbols);

}  // namespace tn
