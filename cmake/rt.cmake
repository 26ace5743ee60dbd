# libtenon_rt: what saved executables need to run. It is linked from the objects of the library
# less what compiles; the linker leaves out what nothing asks for. Compiled again, to be small, are
# ops, without the rules that only compiling asks for; what is cold; the interpreter, for one level.
# Their objects come first, so that of templates which others have too, theirs are taken.

# What reads files and writes texts, what makes plans and computes sizes, what prepares kernels for
# the interpreter, and what calls LAPACK.
set(read "(set|tnx)_reader|input_file|program_read|kernel_parse|signature|signature_bytes")
set(text "(graph|attrs|kernel|index|poly|values|plan)_text|element|element_texts|printing")
string(APPEND text "|memory_report|linalg|verify")
string(APPEND read "|kernel_bytes|kernel_code|backend|object|program|targets|dim_program")
set(plan "lower_fused|plan_builder|kernel_set|memory|placement|step_order|bundle|compile")
set(size "graph|dim|poly|poly_divmod|poly_range|poly_rewrite|sizes|substitute|index|refine|attrs")
string(APPEND plan "|interpreter_(lowering|analysis|index)|macro_functions|macro_pool")
string(APPEND plan "|builder|opdef")
set(cold_files "/(${read}|${text}|${plan}|${size})\\.cpp$")

# Moves what both libraries are linked from out of `rest`.
function(tenon_split_sources shared rest)
  set(all ${${rest}})
  set(both ${all})
  list(FILTER both INCLUDE REGEX "/src/(base|runtime|ir|loop|plan|backend|compiler|executable)/")
  list(FILTER both EXCLUDE REGEX "/backend/source/")
  list(FILTER both EXCLUDE REGEX ${cold_files})
  list(REMOVE_ITEM all ${both})
  set(${shared} ${both} PARENT_SCOPE)
  set(${rest} ${all} PARENT_SCOPE)
endfunction()

function(tenon_add_rt)
  set(ops ${sources})
  list(FILTER ops INCLUDE REGEX "/src/ops/")
  list(FILTER ops EXCLUDE REGEX "/functions\\.cpp$")
  set(loops ${ops}) # over elements: these stay fast
  list(FILTER loops INCLUDE REGEX "/(dot|joining|gather|rejection|scatter_kernel|window)\\.cpp$")
  list(REMOVE_ITEM ops ${loops})
  set(cold ${sources})
  list(FILTER cold INCLUDE REGEX "${cold_files}")
  set(interpreter ${level_sources})
  list(FILTER interpreter INCLUDE REGEX "/interp_")

  add_library(tenon_rt_ops OBJECT ${ops})
  target_precompile_headers(tenon_rt_ops PRIVATE ${precompiled})
  add_library(tenon_rt_cold OBJECT ${cold})
  target_precompile_headers(tenon_rt_cold REUSE_FROM tenon_rt_ops)
  add_library(tenon_rt_interpreter OBJECT ${interpreter})
  target_compile_definitions(tenon_rt_interpreter PRIVATE TN_LEVEL=v2)
  set_target_properties(tenon_rt_interpreter PROPERTIES UNITY_BUILD OFF)
  tenon_compile_in_groups(tenon_rt_ops tenon_rt_cold)
  foreach(part tenon_rt_ops tenon_rt_cold tenon_rt_interpreter)
    target_link_libraries(${part} PRIVATE tenon_private)
    target_compile_definitions(${part} PRIVATE TENON_RUNTIME)
    target_compile_options(${part} PRIVATE $<$<CONFIG:Release>:-Os>)
    target_include_directories(${part} PRIVATE ${PROJECT_SOURCE_DIR}/include)
    add_dependencies(${part} tenon_op_table)
    list(APPEND objects $<TARGET_OBJECTS:${part}>)
  endforeach()

  set(shared $<TARGET_OBJECTS:tenon_shared>)
  set(left_out_v2 "/interp_")
  set(left_out_v3 "/(interp_|fft)") # it runs Fourier transforms of v2: see --defsym
  set(left_out_v4 "/interp_")
  foreach(level v2 v3 v4)
    set(objects_of_level $<TARGET_OBJECTS:tenon_level_${level}>)
    list(APPEND shared "$<FILTER:${objects_of_level},EXCLUDE,${left_out_${level}}>")
  endforeach()

  add_library(tenon_rt SHARED ${objects} ${ARGN} ${loops} ${shared})
  add_library(tenon::rt ALIAS tenon_rt)
  target_compile_definitions(tenon_rt PRIVATE TENON_RUNTIME)
  set_source_files_properties(${PROJECT_SOURCE_DIR}/src/rt/c_api.cpp PROPERTIES
                              COMPILE_DEFINITIONS TENON_VERSION="${PROJECT_VERSION}")
  target_include_directories(
    tenon_rt PUBLIC $<BUILD_INTERFACE:${PROJECT_SOURCE_DIR}/include>
                    $<INSTALL_INTERFACE:${CMAKE_INSTALL_INCLUDEDIR}>)
  target_precompile_headers(tenon_rt REUSE_FROM tenon_shared)
  set(exports ${PROJECT_SOURCE_DIR}/cmake/rt.exports)
  target_link_libraries(tenon_rt PRIVATE $<BUILD_INTERFACE:tenon_private> zstd::libzstd_static
                                         Threads::Threads ${CMAKE_DL_LIBS})
  target_link_options(tenon_rt PRIVATE -Wl,--version-script=${exports} -Wl,--as-needed
                      -Wl,--defsym=_ZN2tn2v39fft_levelE=_ZN2tn2v29fft_levelE
                      $<$<CONFIG:Release>:-Wl,-z,defs,-s>)
  set_target_properties(tenon_rt PROPERTIES EXPORT_NAME rt VERSION ${PROJECT_VERSION}
                        SOVERSION ${PROJECT_VERSION_MAJOR}.${PROJECT_VERSION_MINOR}
                        LINK_DEPENDS ${exports})
endfunction()
