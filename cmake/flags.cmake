# Compiler and linker settings of the whole tree.
set(CMAKE_CXX_STANDARD 20)
set(CMAKE_CXX_STANDARD_REQUIRED ON)
set(CMAKE_CXX_EXTENSIONS OFF)
set(CMAKE_CXX_VISIBILITY_PRESET hidden)
set(CMAKE_VISIBILITY_INLINES_HIDDEN ON)

if(NOT CMAKE_BUILD_TYPE)
  set(CMAKE_BUILD_TYPE Release CACHE STRING "Release, Debug, Asan, Tsan or Odr" FORCE)
endif()
set(CMAKE_CXX_FLAGS_RELEASE "-O2 -DNDEBUG")
set(CMAKE_CXX_FLAGS_DEBUG "-O0 -g")
set(CMAKE_CXX_FLAGS_ASAN
    "-O1 -g1 -fno-omit-frame-pointer -fsanitize=address,undefined -fno-sanitize-recover=all")
set(CMAKE_CXX_FLAGS_TSAN "-O1 -g1 -fno-omit-frame-pointer -fsanitize=thread")
# Types are compared when the objects are linked, at any level of optimisation.
set(CMAKE_CXX_FLAGS_ODR
    "-O0 -flto=auto -fno-fat-lto-objects -Werror=odr -Werror=lto-type-mismatch")
foreach(kind EXE SHARED MODULE)
  set(CMAKE_${kind}_LINKER_FLAGS_ASAN "-fsanitize=address,undefined")
  set(CMAKE_${kind}_LINKER_FLAGS_TSAN "-fsanitize=thread")
endforeach()

# Results must not depend on the machine that compiles: no contraction, a fixed baseline, never
# the builder's own CPU. -fPIC is spelled out so that executables can share the precompiled header.
# Public functions are inlined like others: nothing may replace them in libtenon.so.
set(TENON_FLAGS -Wall -Wextra -fPIC -fno-semantic-interposition -ffp-contract=off
                -fno-math-errno -fno-trapping-math -ffunction-sections -fdata-sections)
if(TENON_WERROR)
  list(APPEND TENON_FLAGS -Werror)
endif()
if(CMAKE_CXX_COMPILER_ID MATCHES "Clang")
  # libstdc++ 12 calls its own deprecated get_temporary_buffer in stable_sort and stable_partition.
  list(APPEND TENON_FLAGS -Wno-deprecated-declarations)
endif()
if(CMAKE_SYSTEM_PROCESSOR MATCHES "x86_64|AMD64")
  set(TENON_X86 ON)
  list(APPEND TENON_FLAGS -march=x86-64-v2)
endif()
add_link_options(-Wl,--gc-sections)

find_program(MOLD_PROGRAM mold)
if(MOLD_PROGRAM)
  add_link_options(-fuse-ld=mold)
endif()

# Precompiled headers are found again by ccache only with these settings.
find_program(CCACHE_PROGRAM ccache)
if(CCACHE_PROGRAM AND NOT CMAKE_CXX_COMPILER_LAUNCHER)
  set(CMAKE_CXX_COMPILER_LAUNCHER
      /usr/bin/env CCACHE_SLOPPINESS=pch_defines,time_macros,include_file_mtime,include_file_ctime
      ${CCACHE_PROGRAM})
  if(CMAKE_CXX_COMPILER_ID STREQUAL "GNU")
    list(APPEND TENON_FLAGS -fpch-preprocess)
  else()
    list(APPEND TENON_FLAGS "SHELL:-Xclang -fno-pch-timestamp")
  endif()
endif()
