# `cmake --install`: headers, libraries, command, and what find_package and pkg-config need. `cpack`
# in the build folder makes Debian packages of the same files, one for each component.
include(CMakePackageConfigHelpers)
set(package_folder ${CMAKE_INSTALL_LIBDIR}/cmake/tenon)

install(FILES include/tenon_rt.h DESTINATION ${CMAKE_INSTALL_INCLUDEDIR} COMPONENT development)
install(DIRECTORY include/tenon DESTINATION ${CMAKE_INSTALL_INCLUDEDIR} COMPONENT development)
install(TARGETS tenon EXPORT tenonStaticTargets COMPONENT development)
install(TARGETS tenon_cli COMPONENT command)
# Apart: the shared libraries need neither LLVM nor the rest, and programs that only run saved
# executables need no more than the runtime.
if(TARGET tenon_so)
  install(TARGETS tenon_so EXPORT tenonSharedTargets LIBRARY COMPONENT library
          NAMELINK_COMPONENT development)
  install(TARGETS tenon_rt EXPORT tenonRtTargets LIBRARY COMPONENT runtime
          NAMELINK_COMPONENT development)
  set(shared_kinds Shared Rt)
endif()
foreach(kind Static ${shared_kinds})
  install(EXPORT tenon${kind}Targets NAMESPACE tenon:: DESTINATION ${package_folder}
          COMPONENT development)
endforeach()

configure_package_config_file(cmake/tenonConfig.cmake.in tenonConfig.cmake
                              INSTALL_DESTINATION ${package_folder})
write_basic_package_version_file(tenonConfigVersion.cmake COMPATIBILITY SameMinorVersion)
install(FILES ${PROJECT_BINARY_DIR}/tenonConfig.cmake ${PROJECT_BINARY_DIR}/tenonConfigVersion.cmake
        DESTINATION ${package_folder} COMPONENT development)

execute_process(COMMAND ${LLVM_TOOLS_BINARY_DIR}/llvm-config --link-static --ldflags --libs
                        ${TENON_LLVM_COMPONENTS}
                OUTPUT_VARIABLE llvm_flags COMMAND_ERROR_IS_FATAL ANY)
string(REGEX REPLACE "[ \n]+" " " llvm_flags "${llvm_flags}")
file(RELATIVE_PATH prefix_from_pc /${CMAKE_INSTALL_LIBDIR}/pkgconfig /)
foreach(name tenon tenon_static tenon_rt)
  configure_file(cmake/${name}.pc.in ${name}.pc @ONLY)
  install(FILES ${PROJECT_BINARY_DIR}/${name}.pc DESTINATION ${CMAKE_INSTALL_LIBDIR}/pkgconfig
          COMPONENT development)
endforeach()

# Debian packages. Those of shared libraries have the ABI in their names, so that two versions can
# be installed beside each other.
set(debian_library libtenon${TENON_ABI})
set(debian_runtime libtenon-rt${TENON_ABI})
set(debian_development libtenon-dev)
set(debian_command tenon)
set(CPACK_COMPONENT_LIBRARY_DESCRIPTION "Tensor compiler, shared library")
set(CPACK_COMPONENT_RUNTIME_DESCRIPTION "Runtime of executables that Tenon saved")
set(CPACK_COMPONENT_DEVELOPMENT_DESCRIPTION "Tensor compiler, headers and static library")
set(CPACK_COMPONENT_COMMAND_DESCRIPTION "Tensor compiler, command line")
foreach(component library runtime development command)
  set(name ${debian_${component}})
  string(TOUPPER ${component} COMPONENT)
  set(CPACK_DEBIAN_${COMPONENT}_PACKAGE_NAME ${name})
  set(CPACK_DEBIAN_${COMPONENT}_PACKAGE_SECTION libs)
  install(FILES LICENSE DESTINATION ${CMAKE_INSTALL_DATADIR}/doc/${name} RENAME copyright
          COMPONENT ${component})
endforeach()
set(CPACK_DEBIAN_DEVELOPMENT_PACKAGE_SECTION libdevel)
set(CPACK_DEBIAN_COMMAND_PACKAGE_SECTION science)
set(CPACK_DEBIAN_DEVELOPMENT_PACKAGE_DEPENDS
    "${debian_library} (= ${PROJECT_VERSION}), ${debian_runtime} (= ${PROJECT_VERSION})")
# For programs that link the static library.
set(CPACK_DEBIAN_DEVELOPMENT_PACKAGE_RECOMMENDS
    "llvm-${LLVM_VERSION_MAJOR}-dev, libyaml-cpp-dev, libzstd-dev, zlib1g-dev")
set(CPACK_GENERATOR DEB)
set(CPACK_PACKAGE_NAME tenon)
set(CPACK_PACKAGE_CONTACT "Tenon maintainers <maintainers@tenon.invalid>")
set(CPACK_PACKAGING_INSTALL_PREFIX /usr)
set(CPACK_STRIP_FILES ON)
set(CPACK_DEB_COMPONENT_INSTALL ON)
set(CPACK_DEBIAN_FILE_NAME DEB-DEFAULT)
set(CPACK_DEBIAN_COMPRESSION_TYPE zstd) # Debian 12 reads it, and it is fast
set(CPACK_DEBIAN_PACKAGE_SHLIBDEPS ON)
set(CPACK_DEBIAN_PACKAGE_GENERATE_SHLIBS ON)
include(CPack)
