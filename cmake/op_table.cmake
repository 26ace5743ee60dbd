# Keeps src/ops/op_decls.h and the op tables of the library and its runtime equal to the ops found
# in src/ops/*.cpp.
set(collect_ops ${PROJECT_SOURCE_DIR}/tools/collect_ops.py)
set(ops_folder ${PROJECT_SOURCE_DIR}/src/ops)
file(GLOB op_sources CONFIGURE_DEPENDS ${ops_folder}/*.cpp)
list(REMOVE_ITEM op_sources ${ops_folder}/op_table.cpp "")

# Once while configuring, so that both files exist when sources are globbed.
if(op_sources)
  execute_process(COMMAND ${Python_EXECUTABLE} ${collect_ops} COMMAND_ERROR_IS_FATAL ANY)
endif()

# A new op changes the table and nothing else.
set_source_files_properties(${ops_folder}/op_table.cpp PROPERTIES SKIP_UNITY_BUILD_INCLUSION ON)

# And before each compilation in which an op file changed.
function(tenon_collect_ops target)
  if(NOT op_sources)
    return()
  endif()
  set(stamp ${PROJECT_BINARY_DIR}/op_table.stamp)
  add_custom_command(
    OUTPUT ${stamp}
    BYPRODUCTS ${ops_folder}/op_decls.h ${ops_folder}/op_table.cpp
               ${PROJECT_SOURCE_DIR}/src/rt/op_table.cpp
    COMMAND ${Python_EXECUTABLE} ${collect_ops}
    COMMAND ${CMAKE_COMMAND} -E touch ${stamp}
    DEPENDS ${op_sources} ${collect_ops}
    COMMENT "Collecting ops")
  add_custom_target(tenon_op_table DEPENDS ${stamp})
  add_dependencies(${target} tenon_op_table)
endfunction()
