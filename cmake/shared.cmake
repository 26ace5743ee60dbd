# libtenon.so, linked from the objects of libtenon.a (docs/design/035-shared-library.md).

# The version of the ABI: in the name of libtenon.so, the version of its symbols, and, by a tag on
# the class Tensor, in the symbols themselves.
set(TENON_ABI ${PROJECT_VERSION_MAJOR}.${PROJECT_VERSION_MINOR})
file(STRINGS ${PROJECT_SOURCE_DIR}/include/tenon/tensor.h abi_tag REGEX "abi_tag")
if(NOT abi_tag MATCHES "\"v${PROJECT_VERSION_MAJOR}_${PROJECT_VERSION_MINOR}\"")
  message(FATAL_ERROR "The ABI has version ${TENON_ABI}, but tensor.h says: ${abi_tag}")
endif()

# Gives the declarations of include/tenon default visibility while the objects of the library are
# compiled: these see forwarding headers. The installed headers say nothing about visibility.
function(tenon_export_public_headers)
  set(folder ${PROJECT_BINARY_DIR}/exports)
  file(GLOB_RECURSE headers CONFIGURE_DEPENDS RELATIVE ${PROJECT_SOURCE_DIR}/include
       ${PROJECT_SOURCE_DIR}/include/tenon/*.h)
  foreach(header ${headers})
    file(CONFIGURE OUTPUT ${folder}/${header} CONTENT [[
#pragma once
#include "@PROJECT_SOURCE_DIR@/cmake/hidden_types.h"
#pragma GCC visibility push(default)
#include "@PROJECT_SOURCE_DIR@/include/@header@"
#pragma GCC visibility pop
]] @ONLY)
  endforeach()
  foreach(target ${ARGN})
    target_include_directories(${target} BEFORE PRIVATE ${folder})
  endforeach()
endfunction()

# What programs get from either library. A program with both would have two of every cache, so
# CMake refuses to link one.
function(tenon_set_interface target kind)
  target_compile_features(${target} PUBLIC cxx_std_20)
  target_include_directories(
    ${target} PUBLIC $<BUILD_INTERFACE:${PROJECT_SOURCE_DIR}/include>
                     $<INSTALL_INTERFACE:${CMAKE_INSTALL_INCLUDEDIR}>)
  set_target_properties(${target} PROPERTIES EXPORT_NAME ${kind} INTERFACE_TENON_LIBRARY ${kind}
                        COMPATIBLE_INTERFACE_STRING TENON_LIBRARY)
  add_library(tenon::${kind} ALIAS ${target})
endfunction()

function(tenon_add_shared)
  foreach(part tenon tenon_shared tenon_shared_small tenon_cold tenon_llvm tenon_level_v2
               tenon_level_v3 tenon_level_v4)
    list(APPEND objects $<TARGET_OBJECTS:${part}>)
  endforeach()
  add_library(tenon_so SHARED ${objects})
  tenon_set_interface(tenon_so shared)
  target_link_libraries(tenon_so PRIVATE ${TENON_LLVM_LIBRARIES} zstd::libzstd_static yaml-cpp
                                         Threads::Threads ${CMAKE_DL_LIBS})
  set(exports ${PROJECT_BINARY_DIR}/tenon.exports)
  configure_file(${PROJECT_SOURCE_DIR}/cmake/tenon.exports.in ${exports} @ONLY)
  target_link_options(tenon_so PRIVATE -Wl,--version-script=${exports} -Wl,-Bsymbolic-functions
                      -Wl,--as-needed $<$<CONFIG:Release>:-Wl,-z,defs,-s>)
  set_target_properties(tenon_so PROPERTIES OUTPUT_NAME tenon LINKER_LANGUAGE CXX
                        VERSION ${PROJECT_VERSION} SOVERSION ${TENON_ABI} LINK_DEPENDS ${exports})
endfunction()
