# The Python that runs the build's scripts and, where nanobind is installed, gets the module:
# the one pip builds for, else the developer's .venv, else the first found.
set(venv_python ${PROJECT_SOURCE_DIR}/.venv/bin/python)
if(NOT DEFINED Python_EXECUTABLE AND NOT SKBUILD AND EXISTS ${venv_python})
  set(Python_EXECUTABLE ${venv_python} CACHE FILEPATH "Python to build for")
endif()
find_package(Python 3.10 REQUIRED COMPONENTS Interpreter OPTIONAL_COMPONENTS Development.Module)

execute_process(COMMAND ${Python_EXECUTABLE} -m nanobind --cmake_dir OUTPUT_VARIABLE nanobind_ROOT
                OUTPUT_STRIP_TRAILING_WHITESPACE ERROR_QUIET)
file(GLOB module_sources CONFIGURE_DEPENDS ${PROJECT_SOURCE_DIR}/python/src/*.cpp
     ${PROJECT_SOURCE_DIR}/python/src/*/*.cpp)
option(TENON_PYTHON "Build the Python module, where nanobind is found" ${PROJECT_IS_TOP_LEVEL})
if(NOT module_sources OR NOT nanobind_ROOT OR NOT TARGET Python::Module)
  set(TENON_PYTHON OFF) # for this run only: sources or nanobind may appear later
endif()
