# Keeps src/ops/op_decls.h and the parts of the op table equal to the ops found in
# src/ops/*.cpp, and the table of layers in src/nn equal to those of src/nn/layers/*.cpp.
set(collect_ops ${PROJECT_SOURCE_DIR}/tools/collect_ops.py)
set(ops_folder ${PROJECT_SOURCE_DIR}/src/ops)
set(nn_folder ${PROJECT_SOURCE_DIR}/src/nn)
file(GLOB op_sources CONFIGURE_DEPENDS ${ops_folder}/*.cpp ${nn_folder}/layers/*.cpp)
set(op_tables ${ops_folder}/graph_ops.cpp ${ops_folder}/named_ops.cpp ${ops_folder}/op_rules.cpp)
list(REMOVE_ITEM op_sources ${op_tables})

# Once while configuring, so that the files exist when sources are globbed.
if(op_sources)
  execute_process(COMMAND ${Python_EXECUTABLE} ${collect_ops} COMMAND_ERROR_IS_FATAL ANY)
endif()

# A new op changes the table and nothing else.
set_source_files_properties(${op_tables} PROPERTIES SKIP_UNITY_BUILD_INCLUSION ON)

# And before each compilation in which an op file changed.
function(tenon_collect_ops target)
  if(NOT op_sources)
    return()
  endif()
  set(stamp ${PROJECT_BINARY_DIR}/op_table.stamp)
  add_custom_command(
    OUTPUT ${stamp}
    BYPRODUCTS ${ops_folder}/op_decls.h ${op_tables} ${nn_folder}/layer_decls.h
               ${nn_folder}/layer_table.cpp
    COMMAND ${Python_EXECUTABLE} ${collect_ops}
    COMMAND ${CMAKE_COMMAND} -E touch ${stamp}
    DEPENDS ${op_sources} ${collect_ops}
    COMMENT "Collecting ops")
  add_custom_target(tenon_op_table DEPENDS ${stamp})
  add_dependencies(${target} tenon_op_table)
endfunction()
