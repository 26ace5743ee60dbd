# Sources named *.level.cpp are compiled once per CPU level; the library chooses at start.
function(tenon_add_levels target)
  if(NOT ARGN)
    return()
  endif()
  foreach(level v2 v3 v4)
    set(name tenon_level_${level})
    add_library(${name} OBJECT ${ARGN})
    target_include_directories(${name} PRIVATE ${PROJECT_SOURCE_DIR}/include
                               ${PROJECT_SOURCE_DIR}/src)
    target_link_libraries(${name} PRIVATE fmt::fmt-header-only)
    target_compile_definitions(${name} PRIVATE TN_LEVEL=${level})
    # Not through tenon_private: its options would come last, and the baseline would win.
    target_compile_options(${name} PRIVATE ${TENON_FLAGS} $<$<CONFIG:Release>:-O3>)
    if(TENON_X86)
      target_compile_options(${name} PRIVATE -march=x86-64-${level}
                             $<$<STREQUAL:${level},v4>:-mprefer-vector-width=512>)
    endif()
    if(TARGET tenon_op_table)
      add_dependencies(${name} tenon_op_table)
    endif()
    target_sources(${target} PRIVATE $<TARGET_OBJECTS:${name}>)
  endforeach()
endfunction()
