# LLVM, linked statically and hidden. Only src/backend/llvm and the codegen folders of backends
# include it, so only those sources see its headers.
find_package(LLVM 19.1 REQUIRED CONFIG)
set(TENON_LLVM_COMPONENTS core support analysis scalaropts instcombine transformutils codegen target
                          mc object x86codegen x86desc x86info nvptxcodegen nvptxdesc nvptxinfo)
llvm_map_components_to_libnames(TENON_LLVM_LIBRARIES ${TENON_LLVM_COMPONENTS})

function(tenon_add_llvm target)
  add_library(tenon_llvm OBJECT ${ARGN})
  tenon_compile_in_groups(tenon_llvm)
  target_include_directories(tenon_llvm PRIVATE ${PROJECT_SOURCE_DIR}/include)
  target_include_directories(tenon_llvm SYSTEM PRIVATE ${LLVM_INCLUDE_DIRS})
  target_link_libraries(tenon_llvm PRIVATE tenon_private)
  target_precompile_headers(
    tenon_llvm PRIVATE <llvm/IR/IRBuilder.h> <llvm/IR/Module.h> <fmt/format.h> <functional>
    <memory> <optional> <span> <string> <unordered_map> <vector>)
  if(TARGET tenon_op_table)
    add_dependencies(tenon_llvm tenon_op_table)
  endif()
  tenon_add_source_hash(tenon_llvm)
  target_sources(${target} PRIVATE $<TARGET_OBJECTS:tenon_llvm>)
  target_link_libraries(${target} PUBLIC ${TENON_LLVM_LIBRARIES})
endfunction()
