# tests/cpp: one doctest program. tests/allocations: one that fails allocations. bench: one
# google-benchmark program and one that measures the machine. `make build` leaves them out; the
# target `checks` builds them all, so that a change cannot break one unseen.
# They run in the root of the source tree. Every source is compiled by itself: names are short.
set(CMAKE_UNITY_BUILD OFF)
add_custom_target(checks)
function(tenon_add_check name)
  add_executable(${name} EXCLUDE_FROM_ALL ${ARGN})
  set_target_properties(${name} PROPERTIES RUNTIME_OUTPUT_DIRECTORY ${PROJECT_BINARY_DIR})
  add_dependencies(checks ${name})
endfunction()
file(GLOB test_sources CONFIGURE_DEPENDS ${PROJECT_SOURCE_DIR}/tests/cpp/*.cpp)
if(NOT TARGET tenon_rt)
  list(FILTER test_sources EXCLUDE REGEX "/test_rt\\.cpp$")
endif()
if(test_sources)
  set(main ${PROJECT_BINARY_DIR}/tests_main.cpp)
  # Tests see what this build compiles, and leave the user's cache alone.
  file(CONFIGURE OUTPUT ${main} CONTENT [[
#define DOCTEST_CONFIG_IMPLEMENT
#include <doctest/doctest.h>

#include <cstdlib>

int main(int argc, char** argv) {
  setenv("TENON_CACHE", "0", 0);
  return doctest::Context(argc, argv).run();
}
]])
  tenon_add_check(tenon_tests ${main} ${test_sources})
  target_link_libraries(tenon_tests PRIVATE tenon tenon_private)
  target_sources(tenon_tests PRIVATE $<TARGET_OBJECTS:tenon_emulated>)
  if(TARGET tenon_rt)
    target_link_libraries(tenon_tests PRIVATE tenon_rt)
  endif()
  # They compare sizes as programs do (src/ir/dim.h).
  target_compile_definitions(tenon_tests PRIVATE TENON_COMPARES_VALUES)
  target_precompile_headers(tenon_tests REUSE_FROM tenon_shared)
  find_library(MPFR_LIBRARY mpfr)
  find_library(GMP_LIBRARY gmp)
  if(MPFR_LIBRARY AND GMP_LIBRARY)
    target_link_libraries(tenon_tests PRIVATE ${MPFR_LIBRARY} ${GMP_LIBRARY})
  endif()
  add_test(NAME tenon_tests COMMAND tenon_tests WORKING_DIRECTORY ${PROJECT_SOURCE_DIR})
endif()

# The mock of the CUDA driver as a library, which libtenon_rt finds as it finds the driver.
if(TARGET tenon_rt)
  add_library(tenon_mock_cuda SHARED EXCLUDE_FROM_ALL
              ${PROJECT_SOURCE_DIR}/src/backend/cuda/mock/mock_driver.cpp
              ${PROJECT_SOURCE_DIR}/tests/cuda/mock_libcuda.cpp)
  target_link_libraries(tenon_mock_cuda PRIVATE tenon_private)
  set_target_properties(tenon_mock_cuda PROPERTIES OUTPUT_NAME cuda SOVERSION 1
                        LIBRARY_OUTPUT_DIRECTORY ${PROJECT_BINARY_DIR}/mock_cuda)
  add_dependencies(checks tenon_mock_cuda)
endif()

# tests/allocations: a program of its own, which replaces malloc; sanitizers have theirs.
if(NOT CMAKE_BUILD_TYPE MATCHES "Asan|Tsan")
  tenon_add_check(tenon_allocations ${PROJECT_SOURCE_DIR}/tests/allocations/failing_allocations.cpp)
  target_link_libraries(tenon_allocations PRIVATE tenon tenon_private)
  add_test(NAME tenon_allocations COMMAND tenon_allocations
           WORKING_DIRECTORY ${PROJECT_SOURCE_DIR})
endif()

file(GLOB bench_sources CONFIGURE_DEPENDS ${PROJECT_SOURCE_DIR}/bench/*.cpp)
find_package(benchmark QUIET)
if(bench_sources AND benchmark_FOUND)
  list(APPEND bench_sources ${PROJECT_SOURCE_DIR}/tests/cpp/fuzz_graph.cpp
                            ${PROJECT_SOURCE_DIR}/tests/cpp/every_operation.cpp)
  tenon_add_check(tenon_bench ${bench_sources})
  target_include_directories(tenon_bench PRIVATE ${PROJECT_SOURCE_DIR}/tests/cpp)
  target_link_libraries(tenon_bench PRIVATE tenon tenon_private benchmark::benchmark_main)
  target_precompile_headers(tenon_bench REUSE_FROM tenon_shared)
endif()

find_package(Threads REQUIRED)
tenon_add_check(tenon_limits ${PROJECT_SOURCE_DIR}/bench/limits/limits.cpp)
target_link_libraries(tenon_limits PRIVATE Threads::Threads)
