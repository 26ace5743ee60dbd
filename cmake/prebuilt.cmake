# Device code that is part of the library: src/backend/cuda/prebuilt/*.cu, compiled to PTX by clang
# without the CUDA toolkit, and packed in a C++ source. Without clang there is none, and the library
# says what it cannot do then.
#
# libtenon_rt has no such code: executables bring what they need of it (library_code in
# cuda_library.h), if its version is that of what launches it. The version is of the device code's
# sources alone, which define names, parameters and shapes of launches. What the interpreter
# includes from other folders is not part of it: no executable brings the interpreter.
if(CMAKE_SCRIPT_MODE_FILE AND names)
  file(GLOB files ${include}/backend/cuda/prebuilt/*.cu ${include}/backend/cuda/prebuilt/*.cuh
       ${include}/backend/cuda/prebuilt/*.h ${CMAKE_SCRIPT_MODE_FILE})
  list(SORT files)
  set(sums "")
  foreach(file ${files})
    file(MD5 ${file} sum)
    string(APPEND sums ${sum})
  endforeach()
  string(MD5 version "${sums}")
  set(texts "")
  set(list "")
  string(REPLACE "," ";" names "${names}")
  foreach(name ${names})
    if(is_rt)
      string(APPEND texts "std::string_view ${name}_ptx() { return \"${name}\"; }\n")
    endif()
    string(APPEND list "      {\"${name}\", ${name}_ptx()},\n")
  endforeach()
  file(WRITE ${out} "#include \"backend/cuda/prebuilt/prebuilt.h\"

namespace tn::cuda {
${texts}
std::span<const Prebuilt> prebuilt() {
  static const Prebuilt all[] = {
${list}  };
  return all;
}
std::string_view prebuilt_version() { return \"${version}\"; }
}  // namespace tn::cuda
")
  return()
endif()
if(CMAKE_SCRIPT_MODE_FILE)
  set(text "")
  set(packed "")
  if(clang)
    execute_process(
      COMMAND ${clang} --target=nvptx64-nvidia-cuda -x c++ -std=c++20 -march=${arch} -Xclang
              -target-feature -Xclang +ptx80 -O3 -ffp-contract=off -fno-exceptions -S -o ${out}.ptx
              -isystem ${include}/backend/cuda/prebuilt/standard -I ${include} ${source}
              COMMAND_ERROR_IS_FATAL ANY)
    file(READ ${out}.ptx text)
    # So that the assembler knows how many registers a thread may have.
    if(threads)
      string(REGEX REPLACE "(\\.entry [^)]*\\))" "\\1\n.maxntid ${threads}, 1, 1\n.minnctapersm 1"
             text "${text}")
    endif()
    file(WRITE ${out}.ptx "${text}")
    file(ARCHIVE_CREATE OUTPUT ${out}.zst PATHS ${out}.ptx FORMAT raw COMPRESSION Zstd
         COMPRESSION_LEVEL 9)
    file(READ ${out}.zst packed HEX)
    string(REGEX REPLACE "(..)" "0x\\1," packed "${packed}")
  endif()
  string(LENGTH "${text}" length)
  file(WRITE ${out} "#include \"backend/cuda/prebuilt/prebuilt.h\"
#include \"storage/unpacked.h\"

namespace tn::cuda {
std::string_view ${name}_ptx() {
  static constexpr unsigned char packed[] = {${packed}0};
  static const std::string text = unpacked({packed, sizeof packed - 1}, ${length});
  return text;
}
}  // namespace tn::cuda
")
  return()
endif()

find_program(TENON_CLANG NAMES clang++-19 clang++-20 clang++)
function(tenon_add_prebuilt target)
  set(folder ${PROJECT_SOURCE_DIR}/src/backend/cuda/prebuilt)
  set(script ${PROJECT_SOURCE_DIR}/cmake/prebuilt.cmake)
  file(GLOB headers ${folder}/*.h ${folder}/*.cuh ${folder}/standard/*
       ${PROJECT_SOURCE_DIR}/src/loop/math*.h ${PROJECT_SOURCE_DIR}/src/loop/interpreter_scalar.h
       ${PROJECT_SOURCE_DIR}/src/base/half.h)
  set(clang "")
  if(TENON_CLANG)
    set(clang ${TENON_CLANG})
  endif()
  set(names attention attention_gradient attention_gradient_hopper attention_hopper convolution
      interpreter joining product running scatter sort window)
  foreach(name ${names})
    set(source ${folder}/${name}_kernels.cu)
    set(out ${PROJECT_BINARY_DIR}/${name}_ptx.cpp)
    set(arch sm_80)
    set(threads "")
    if(name MATCHES "hopper")
      set(arch sm_90a)
      set(threads 384)
    endif()
    add_custom_command(
      OUTPUT ${out}
      COMMAND ${CMAKE_COMMAND} -D name=${name} -D arch=${arch} -D threads=${threads}
              -D source=${source} -D out=${out} -D clang=${clang}
              -D include=${PROJECT_SOURCE_DIR}/src -P ${script}
      DEPENDS ${source} ${headers} ${script}
      COMMENT "Compiling device code")
    target_sources(${target} PRIVATE ${out})
  endforeach()
  file(GLOB device_sources CONFIGURE_DEPENDS ${folder}/*.cu)
  string(REPLACE ";" "," names "${names}")
  foreach(kind library rt)
    set(out ${PROJECT_BINARY_DIR}/${kind}_prebuilt.cpp)
    set(is_rt OFF)
    if(kind STREQUAL rt)
      set(is_rt ON)
      set(rt_prebuilt ${out} PARENT_SCOPE)
    else()
      target_sources(${target} PRIVATE ${out})
    endif()
    add_custom_command(
      OUTPUT ${out}
      COMMAND ${CMAKE_COMMAND} -D names=${names} -D is_rt=${is_rt} -D out=${out}
              -D include=${PROJECT_SOURCE_DIR}/src -P ${script}
      DEPENDS ${device_sources} ${headers} ${script})
  endforeach()
endfunction()
