# libtenon_rt: what saved executables need to run. Its sources are the library's, and folders decide
# how they get there. It has no compiler (src/compiler/compiler.h) and no code generator, so the
# linker leaves out all that only they ask for.

# Objects that both libraries are linked from; the second list is compiled to be small.
set(rt_shared base runtime storage ops backend/cpu backend/cpu/library backend/cpu/kernels)
set(rt_shared_small plan compiler executable backend)
# Compiled again, to be small: recording, the interpreter and launches on GPUs are hot in the
# library and not there.
set(rt_small ir loop backend/cuda)

# Those of some paths that lie in one of these folders of src.
function(tenon_in_folders found folders)
  foreach(path ${ARGN})
    get_filename_component(folder ${path} DIRECTORY)
    file(RELATIVE_PATH folder ${PROJECT_SOURCE_DIR}/src ${folder})
    if(folder IN_LIST folders)
      list(APPEND inside ${path})
    endif()
  endforeach()
  set(${found} ${inside} PARENT_SCOPE)
endfunction()

# Moves those of `rest` that lie in one of these folders of src to `taken`.
function(tenon_take_sources taken rest folders)
  set(all ${${rest}})
  tenon_in_folders(inside "${folders}" ${all})
  list(REMOVE_ITEM all ${inside})
  set(${taken} ${inside} PARENT_SCOPE)
  set(${rest} ${all} PARENT_SCOPE)
endfunction()

function(tenon_add_rt)
  tenon_in_folders(small "${rt_small}" ${sources})
  # The interpreter serves the few kernels that have no code: one level of it is enough. At that
  # level, of processors without AVX2, only products and convolutions are worth their size.
  set(small_at_v2 "/(interp_.*|attention_rows|fourier_transform|rank_fold)\\.level\\.cpp")
  set(lowest ${level_sources})
  list(FILTER lowest INCLUDE REGEX ${small_at_v2})

  add_library(tenon_rt_small OBJECT ${small})
  target_precompile_headers(tenon_rt_small REUSE_FROM tenon_shared_small)
  tenon_compile_in_groups(tenon_rt_small)
  add_library(tenon_rt_v2 OBJECT ${lowest})
  target_compile_definitions(tenon_rt_v2 PRIVATE TN_LEVEL=v2)
  set_target_properties(tenon_rt_v2 PROPERTIES UNITY_BUILD OFF)
  foreach(part tenon_rt_small tenon_rt_v2)
    target_link_libraries(${part} PRIVATE tenon_private)
    target_compile_options(${part} PRIVATE $<$<CONFIG:Release>:-Os>)
    target_include_directories(${part} PRIVATE ${PROJECT_SOURCE_DIR}/include)
    add_dependencies(${part} tenon_op_table)
    # First, so that of templates which others have too, theirs are taken.
    list(APPEND objects $<TARGET_OBJECTS:${part}>)
  endforeach()
  list(APPEND objects $<TARGET_OBJECTS:tenon_shared_small> $<TARGET_OBJECTS:tenon_shared>
       $<TARGET_OBJECTS:tenon_level_v3>
       $<TARGET_OBJECTS:tenon_level_v4>
       "$<FILTER:$<TARGET_OBJECTS:tenon_level_v2>,EXCLUDE,${small_at_v2}>")

  add_library(tenon_rt SHARED ${objects} ${rt_prebuilt} ${ARGN})
  add_library(tenon::rt ALIAS tenon_rt)
  set_source_files_properties(${PROJECT_SOURCE_DIR}/src/c_api/c_api.cpp PROPERTIES
                              COMPILE_DEFINITIONS TENON_VERSION="${PROJECT_VERSION}")
  target_compile_options(tenon_rt PRIVATE $<$<CONFIG:Release>:-Os>)
  target_include_directories(
    tenon_rt PUBLIC $<BUILD_INTERFACE:${PROJECT_SOURCE_DIR}/include>
                    $<INSTALL_INTERFACE:${CMAKE_INSTALL_INCLUDEDIR}>)
  target_precompile_headers(tenon_rt REUSE_FROM tenon_shared_small)
  set(exports ${PROJECT_SOURCE_DIR}/cmake/rt.exports)
  target_link_libraries(tenon_rt PRIVATE $<BUILD_INTERFACE:tenon_private> zstd::libzstd_static
                                         Threads::Threads ${CMAKE_DL_LIBS})
  target_link_options(tenon_rt PRIVATE -Wl,--version-script=${exports} -Wl,--as-needed
                      $<$<CONFIG:Release>:-Wl,-z,defs,-s>)
  if(MOLD_PROGRAM)
    target_link_options(tenon_rt PRIVATE $<$<CONFIG:Release>:-Wl,--icf=all>)
  endif()
  set_target_properties(tenon_rt PROPERTIES EXPORT_NAME rt VERSION ${PROJECT_VERSION}
                        SOVERSION ${PROJECT_VERSION_MAJOR}.${PROJECT_VERSION_MINOR}
                        LINK_DEPENDS ${exports})
endfunction()
