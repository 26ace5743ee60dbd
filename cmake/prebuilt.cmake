# Device code that is part of the library: src/backend/cuda/prebuilt/*.cu, compiled to PTX by clang
# without the CUDA toolkit, as text in a C++ source. Without clang there is none, and the library
# says what it cannot do then.
if(CMAKE_SCRIPT_MODE_FILE)
  set(text "")
  if(clang)
    execute_process(
      COMMAND ${clang} --target=nvptx64-nvidia-cuda -x c++ -std=c++20 -march=${arch} -Xclang
              -target-feature -Xclang +ptx80 -O3 -ffp-contract=off -fno-exceptions -S -o ${out}.ptx
              -I ${include} ${source} COMMAND_ERROR_IS_FATAL ANY)
    file(READ ${out}.ptx text)
    # So that the assembler knows how many registers a thread may have.
    if(threads)
      string(REGEX REPLACE "(\\.entry [^)]*\\))" "\\1\n.maxntid ${threads}, 1, 1\n.minnctapersm 1"
             text "${text}")
    endif()
  endif()
  file(WRITE ${out} "#include \"backend/cuda/prebuilt/prebuilt.h\"

namespace tn::cuda {
std::string_view ${name}_ptx() {
  return R\"ptx(${text})ptx\";
}
}  // namespace tn::cuda
")
  return()
endif()

find_program(TENON_CLANG NAMES clang++-19 clang++-20 clang++)
function(tenon_add_prebuilt target)
  set(folder ${PROJECT_SOURCE_DIR}/src/backend/cuda/prebuilt)
  set(script ${PROJECT_SOURCE_DIR}/cmake/prebuilt.cmake)
  file(GLOB headers ${folder}/*.h ${folder}/*.cuh)
  set(clang "")
  if(TENON_CLANG)
    set(clang ${TENON_CLANG})
  endif()
  foreach(name attention attention_hopper convolution joining product running scatter sort window)
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
endfunction()
