# Device code that is part of the library: src/backend/cuda/prebuilt/*.cu, compiled to PTX by clang
# without the CUDA toolkit, as text in a C++ source. Without clang there is none, and the library
# says what it cannot do then.
if(CMAKE_SCRIPT_MODE_FILE)
  set(text "")
  if(clang)
    execute_process(
      COMMAND ${clang} --target=nvptx64-nvidia-cuda -x c++ -std=c++20 -march=sm_80 -Xclang
              -target-feature -Xclang +ptx80 -O3 -ffp-contract=off -fno-exceptions -S -o ${out}.ptx
              ${source} COMMAND_ERROR_IS_FATAL ANY)
    file(READ ${out}.ptx text)
  endif()
  file(WRITE ${out} "#include \"backend/cuda/prebuilt/prebuilt.h\"

namespace tn::cuda {
std::string_view products_ptx() {
  return R\"ptx(${text})ptx\";
}
}  // namespace tn::cuda
")
  return()
endif()

find_program(TENON_CLANG NAMES clang++-19 clang++-20 clang++)
function(tenon_add_prebuilt target)
  set(source ${PROJECT_SOURCE_DIR}/src/backend/cuda/prebuilt/product_kernels.cu)
  set(script ${PROJECT_SOURCE_DIR}/cmake/prebuilt.cmake)
  set(out ${PROJECT_BINARY_DIR}/products_ptx.cpp)
  set(clang "")
  if(TENON_CLANG)
    set(clang ${TENON_CLANG})
  endif()
  add_custom_command(
    OUTPUT ${out}
    COMMAND ${CMAKE_COMMAND} -D source=${source} -D out=${out} -D clang=${clang} -P ${script}
    DEPENDS ${source} ${script}
    COMMENT "Compiling device code")
  target_sources(${target} PRIVATE ${out})
endfunction()
