# `cmake --install`: headers, library, command, and what find_package and pkg-config need.
if(SKBUILD)
  return()
endif()
include(CMakePackageConfigHelpers)
set(package_folder ${CMAKE_INSTALL_LIBDIR}/cmake/tenon)

install(FILES include/tenon_rt.h DESTINATION ${CMAKE_INSTALL_INCLUDEDIR})
install(DIRECTORY include/tenon DESTINATION ${CMAKE_INSTALL_INCLUDEDIR})
install(TARGETS tenon EXPORT tenonTargets)
if(TARGET tenon_cli)
  install(TARGETS tenon_cli)
endif()
install(EXPORT tenonTargets NAMESPACE tenon:: DESTINATION ${package_folder})
# Apart, so that who only runs saved executables needs neither LLVM nor the rest.
if(TARGET tenon_rt)
  install(TARGETS tenon_rt EXPORT tenonRtTargets)
  install(EXPORT tenonRtTargets NAMESPACE tenon:: DESTINATION ${package_folder})
endif()

configure_package_config_file(cmake/tenonConfig.cmake.in tenonConfig.cmake
                              INSTALL_DESTINATION ${package_folder})
write_basic_package_version_file(tenonConfigVersion.cmake COMPATIBILITY SameMinorVersion)
install(FILES ${PROJECT_BINARY_DIR}/tenonConfig.cmake ${PROJECT_BINARY_DIR}/tenonConfigVersion.cmake
        DESTINATION ${package_folder})

execute_process(COMMAND ${LLVM_TOOLS_BINARY_DIR}/llvm-config --link-static --ldflags --libs
                        ${TENON_LLVM_COMPONENTS}
                OUTPUT_VARIABLE llvm_flags COMMAND_ERROR_IS_FATAL ANY)
string(REGEX REPLACE "[ \n]+" " " llvm_flags "${llvm_flags}")
file(RELATIVE_PATH prefix_from_pc /${CMAKE_INSTALL_LIBDIR}/pkgconfig /)
foreach(name tenon tenon_rt)
  configure_file(cmake/${name}.pc.in ${name}.pc @ONLY)
  install(FILES ${PROJECT_BINARY_DIR}/${name}.pc DESTINATION ${CMAKE_INSTALL_LIBDIR}/pkgconfig)
endforeach()
