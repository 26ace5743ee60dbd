# Writes the table of optimizers: every record of src/nn/optimizers/*.cpp, in order.
set(optimizer_table ${PROJECT_BINARY_DIR}/optimizer_table.cpp)
set(record "^extern constinit const OptimizerDef ([a-z0-9_]+) = .*")
file(GLOB optimizer_sources CONFIGURE_DEPENDS ${PROJECT_SOURCE_DIR}/src/nn/optimizers/*.cpp)
set_property(DIRECTORY APPEND PROPERTY CMAKE_CONFIGURE_DEPENDS ${optimizer_sources})
foreach(source ${optimizer_sources})
  file(STRINGS ${source} names REGEX ${record})
  list(TRANSFORM names REPLACE ${record} "\\1")
  foreach(name ${names})
    string(APPEND optimizers_declared "extern const OptimizerDef ${name};\n")
    string(APPEND optimizers_listed "    &${name},\n")
  endforeach()
endforeach()
file(CONFIGURE OUTPUT ${optimizer_table} CONTENT [[
#include "nn/optimizer_def.h"

namespace tn::optim {

@optimizers_declared@
static constexpr const OptimizerDef* kTable[] = {
@optimizers_listed@};

std::span<const OptimizerDef* const> optimizer_table() { return kTable; }

}  // namespace tn::optim
]] @ONLY)
