# Makes the definition of embedded_files (backend/source/embedded_text.h) from the files of
# src/backend/source/text. The build runs this file as a script (-D folder=... -D out=...) whenever
# one of them changes.
if(CMAKE_SCRIPT_MODE_FILE)
  file(GLOB files ${folder}/*)
  foreach(path ${files})
    get_filename_component(name ${path} NAME)
    file(READ ${path} text)
    string(APPEND entries "    {\"${name}\", R\"tenon(${text})tenon\"},\n")
  endforeach()
  file(WRITE ${out} "#include \"backend/source/embedded_text.h\"

namespace tn::source {

static constexpr EmbeddedFile kFiles[] = {
${entries}};

std::span<const EmbeddedFile> embedded_files() { return kFiles; }

}  // namespace tn::source
")
  return()
endif()

function(tenon_embed_text target)
  set(folder ${PROJECT_SOURCE_DIR}/src/backend/source/text)
  file(GLOB texts CONFIGURE_DEPENDS ${folder}/*)
  set(out ${PROJECT_BINARY_DIR}/embedded_text.cpp)
  set(script ${PROJECT_SOURCE_DIR}/cmake/embedded_text.cmake)
  add_custom_command(
    OUTPUT ${out}
    COMMAND ${CMAKE_COMMAND} -D folder=${folder} -D out=${out} -P ${script}
    DEPENDS ${texts} ${script}
    COMMENT "Embedding text")
  target_sources(${target} PRIVATE ${out})
endfunction()
