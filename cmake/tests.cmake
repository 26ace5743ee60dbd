# tests/cpp: one doctest program. tests/allocations: one that fails allocations. bench: one
# google-benchmark program and one that measures the machine. They are built with everything else,
# so that a change cannot break them unseen.
# Both run in the root of the source tree. Every source is compiled by itself: names are short.
set(CMAKE_UNITY_BUILD OFF)
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
  add_executable(tenon_tests ${main} ${test_sources})
  set_target_properties(tenon_tests PROPERTIES RUNTIME_OUTPUT_DIRECTORY ${PROJECT_BINARY_DIR})
  target_link_libraries(tenon_tests PRIVATE tenon tenon_private)
  target_sources(tenon_tests PRIVATE $<TARGET_OBJECTS:tenon_emulated>)
  if(TARGET tenon_rt)
    target_link_libraries(tenon_tests PRIVATE tenon_rt)
  endif()
  target_precompile_headers(tenon_tests REUSE_FROM tenon_shared)
  find_library(MPFR_LIBRARY mpfr)
  find_library(GMP_LIBRARY gmp)
  if(MPFR_LIBRARY AND GMP_LIBRARY)
    target_link_libraries(tenon_tests PRIVATE ${MPFR_LIBRARY} ${GMP_LIBRARY})
  endif()
  add_test(NAME tenon_tests COMMAND tenon_tests WORKING_DIRECTORY ${PROJECT_SOURCE_DIR})
endif()

# tests/allocations: a program of its own, which replaces malloc; sanitizers have theirs.
if(NOT CMAKE_BUILD_TYPE MATCHES "Asan|Tsan")
  add_executable(tenon_allocations ${PROJECT_SOURCE_DIR}/tests/allocations/failing_allocations.cpp)
  set_target_properties(tenon_allocations PROPERTIES RUNTIME_OUTPUT_DIRECTORY ${PROJECT_BINARY_DIR})
  target_link_libraries(tenon_allocations PRIVATE tenon tenon_private)
  add_test(NAME tenon_allocations COMMAND tenon_allocations
           WORKING_DIRECTORY ${PROJECT_SOURCE_DIR})
endif()

file(GLOB bench_sources CONFIGURE_DEPENDS ${PROJECT_SOURCE_DIR}/bench/*.cpp)
find_package(benchmark QUIET)
if(bench_sources AND benchmark_FOUND)
  list(APPEND bench_sources ${PROJECT_SOURCE_DIR}/tests/cpp/fuzz_graph.cpp
                            ${PROJECT_SOURCE_DIR}/tests/cpp/every_operation.cpp)
  add_executable(tenon_bench ${bench_sources})
  set_target_properties(tenon_bench PROPERTIES RUNTIME_OUTPUT_DIRECTORY ${PROJECT_BINARY_DIR})
  target_include_directories(tenon_bench PRIVATE ${PROJECT_SOURCE_DIR}/tests/cpp)
  target_link_libraries(tenon_bench PRIVATE tenon tenon_private benchmark::benchmark_main)
  target_precompile_headers(tenon_bench REUSE_FROM tenon_shared)
endif()

find_package(Threads REQUIRED)
add_executable(tenon_limits ${PROJECT_SOURCE_DIR}/bench/limits/limits.cpp)
set_target_properties(tenon_limits PROPERTIES RUNTIME_OUTPUT_DIRECTORY ${PROJECT_BINARY_DIR})
target_link_libraries(tenon_limits PRIVATE Threads::Threads)
