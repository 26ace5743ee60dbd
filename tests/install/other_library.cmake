# The project that includes this has found the shared library before it looks for the static one.
find_package(tenon 0.1 REQUIRED COMPONENTS shared)
