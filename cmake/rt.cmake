# libtenon_rt: what saved executables need to run. It is linked from the objects of the library
# less what compiles; the linker leaves out what nothing asks for. Two parts are compiled again, to
# be small: ops without the rules that only compiling asks for, and the interpreter for one level.
# Their objects come first, so that of templates which others have too, theirs are taken.
function(tenon_add_rt)
  set(ops ${sources})
  list(FILTER ops INCLUDE REGEX "/src/ops/")
  list(FILTER ops EXCLUDE REGEX "/(functions|op_table)\\.cpp$")
  set(loops ${ops}) # over elements: these stay fast
  list(FILTER loops INCLUDE REGEX "/(dot|joining|gather|rejection|scatter_kernel|window)\\.cpp$")
  list(REMOVE_ITEM ops ${loops})
  set(interpreter ${level_sources})
  list(FILTER interpreter INCLUDE REGEX "/interp_")

  add_library(tenon_rt_ops OBJECT ${ops})
  target_compile_definitions(tenon_rt_ops PRIVATE TENON_RUNTIME)
  target_compile_options(tenon_rt_ops PRIVATE $<$<CONFIG:Release>:-Os>)
  target_precompile_headers(tenon_rt_ops PRIVATE ${precompiled})
  add_library(tenon_rt_interpreter OBJECT ${interpreter})
  target_compile_definitions(tenon_rt_interpreter PRIVATE TN_LEVEL=v2)
  foreach(part tenon_rt_ops tenon_rt_interpreter)
    target_link_libraries(${part} PRIVATE tenon_private)
    target_include_directories(${part} PRIVATE ${PROJECT_SOURCE_DIR}/include)
    add_dependencies(${part} tenon_op_table)
  endforeach()

  set(shared "$<TARGET_OBJECTS:tenon>")
  set(shared "$<FILTER:${shared},INCLUDE,/src/(base|runtime|ir|loop|backend|compiler|executable)/>")
  set(shared "$<FILTER:${shared},EXCLUDE,/(set_maker|block_ops)\\.cpp>") # src/rt has its own
  foreach(level v2 v3 v4)
    list(APPEND shared "$<FILTER:$<TARGET_OBJECTS:tenon_level_${level}>,EXCLUDE,/interp_>")
  endforeach()

  add_library(tenon_rt SHARED $<TARGET_OBJECTS:tenon_rt_ops> $<TARGET_OBJECTS:tenon_rt_interpreter>
              ${ARGN} ${loops} ${shared})
  add_library(tenon::rt ALIAS tenon_rt)
  target_compile_definitions(tenon_rt PRIVATE TENON_RUNTIME)
  set_source_files_properties(${PROJECT_SOURCE_DIR}/src/rt/c_api.cpp PROPERTIES
                              COMPILE_DEFINITIONS TENON_VERSION="${PROJECT_VERSION}")
  target_include_directories(
    tenon_rt PUBLIC $<BUILD_INTERFACE:${PROJECT_SOURCE_DIR}/include>
                    $<INSTALL_INTERFACE:${CMAKE_INSTALL_INCLUDEDIR}>)
  target_precompile_headers(tenon_rt REUSE_FROM tenon)
  set(exports ${PROJECT_SOURCE_DIR}/cmake/rt.exports)
  target_link_libraries(tenon_rt PRIVATE $<BUILD_INTERFACE:tenon_private> zstd::libzstd_static
                                         Threads::Threads ${CMAKE_DL_LIBS})
  target_link_options(tenon_rt PRIVATE -Wl,--version-script=${exports} -Wl,-z,defs -Wl,--as-needed)
  set_target_properties(tenon_rt PROPERTIES EXPORT_NAME rt VERSION ${PROJECT_VERSION}
                        SOVERSION ${PROJECT_VERSION_MAJOR}.${PROJECT_VERSION_MINOR}
                        LINK_DEPENDS ${exports})
endfunction()
