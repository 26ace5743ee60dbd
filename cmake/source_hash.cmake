# Makes the definition of source_hash (backend/llvm/source_hash.h): a hash of the sources
# that decide what code a kernel becomes. Cached code is found again only by a library of equal
# sources. The build runs this file as a script (-D root=... -D out=...) whenever one changes.
set(hashed_folders include/tenon src/base src/runtime src/storage src/ir src/loop
    src/backend/llvm
    src/backend/cpu src/backend/cpu/codegen src/backend/cuda src/backend/cuda/codegen)

if(CMAKE_SCRIPT_MODE_FILE)
  foreach(folder ${hashed_folders})
    file(GLOB files RELATIVE ${root} ${root}/${folder}/*.h ${root}/${folder}/*.cpp)
    foreach(name ${files})
      file(SHA256 ${root}/${name} hash)
      string(APPEND all "${name} ${hash}\n")
    endforeach()
  endforeach()
  string(SHA256 hash "${all}")
  file(CONFIGURE OUTPUT ${out} CONTENT [[
#include "backend/llvm/source_hash.h"

namespace tn::codegen {
std::string_view source_hash() { return "@hash@"; }
}  // namespace tn::codegen
]] @ONLY)
  return()
endif()

function(tenon_add_source_hash target)
  foreach(folder ${hashed_folders})
    file(GLOB files CONFIGURE_DEPENDS ${PROJECT_SOURCE_DIR}/${folder}/*.h
         ${PROJECT_SOURCE_DIR}/${folder}/*.cpp)
    list(APPEND hashed ${files})
  endforeach()
  set(out ${PROJECT_BINARY_DIR}/source_hash.cpp)
  set(script ${PROJECT_SOURCE_DIR}/cmake/source_hash.cmake)
  add_custom_command(
    OUTPUT ${out}
    COMMAND ${CMAKE_COMMAND} -D root=${PROJECT_SOURCE_DIR} -D out=${out} -P ${script}
    DEPENDS ${hashed} ${script}
    COMMENT "Hashing the sources of the code generator")
  target_sources(${target} PRIVATE ${out})
endfunction()
