# SPDX-License-Identifier: Apache-2.0
# Debian's packages, by cpack: lockstep, the command with all that a user reads and runs, and liblockstep-dev, which other
# programs are built with. scripts/package makes and tests them.
set(LOCKSTEP_PACKAGE_CONTACT "The Lockstep authors <lockstep@lockstep.invalid>" CACHE STRING
    "Who answers for the packages: NAME <ADDRESS>")

set(CPACK_GENERATOR DEB)
set(CPACK_PACKAGE_NAME lockstep)
set(CPACK_PACKAGE_DESCRIPTION_SUMMARY "data-parallel mixed-precision training of neural networks")
set(CPACK_PACKAGE_CONTACT ${LOCKSTEP_PACKAGE_CONTACT})
set(CPACK_PACKAGING_INSTALL_PREFIX /usr)
set(CPACK_STRIP_FILES ON)
set(CPACK_COMPONENTS_ALL command development)
set(CPACK_DEB_COMPONENT_INSTALL ON)
set(CPACK_DEBIAN_FILE_NAME DEB-DEFAULT)
set(CPACK_DEBIAN_PACKAGE_VERSION ${PROJECT_VERSION})
if(LOCKSTEP_GPU STREQUAL "cuda")
  string(APPEND CPACK_DEBIAN_PACKAGE_VERSION "+cuda")
endif()
set(CPACK_PRE_BUILD_SCRIPTS ${PROJECT_SOURCE_DIR}/scripts/cmake/DebianFiles.cmake)
set(CPACK_INSTALL_DEFAULT_DIRECTORY_PERMISSIONS OWNER_READ OWNER_WRITE OWNER_EXECUTE GROUP_READ GROUP_EXECUTE WORLD_READ
                                                WORLD_EXECUTE)

set(CPACK_DEBIAN_COMMAND_PACKAGE_NAME lockstep)
set(CPACK_DEBIAN_COMMAND_PACKAGE_SECTION science)
set(CPACK_DEBIAN_COMMAND_PACKAGE_SHLIBDEPS ON)
set(CPACK_DEBIAN_COMMAND_DESCRIPTION
"One native command trains a job, a text file, on one or many ranks: in fp16
or bf16 with loss scaling and fp32 master weights, with checkpoints from which
a run goes on to the same bits. It comes with its manual pages, documentation
and ready jobs.")
if(LOCKSTEP_MPI_FOLDER STREQUAL "mpi")
  # mpirun, which starts several ranks, and its way to other machines.
  set(CPACK_DEBIAN_COMMAND_PACKAGE_RECOMMENDS "openmpi-bin, openssh-client")
endif()

# The libraries are static: who links to them links to theirs.
file(STRINGS scripts/packages.txt packages REGEX "^build +(lib.*|.*-dev|pkg-config) ")
list(FILTER packages EXCLUDE REGEX "libcli11-dev|libjs-") # the command's alone
if(NOT LOCKSTEP_MPI_FOLDER STREQUAL "mpi")
  list(FILTER packages EXCLUDE REGEX "mpi|pmix")
endif()
list(TRANSFORM packages REPLACE "^build +([^ ]+) .*" "\\1")
list(JOIN packages ", " packages)
set(CPACK_DEBIAN_DEVELOPMENT_PACKAGE_NAME liblockstep-dev)
set(CPACK_DEBIAN_DEVELOPMENT_PACKAGE_SECTION libdevel)
set(CPACK_DEBIAN_DEVELOPMENT_PACKAGE_DEPENDS ${packages})
set(CPACK_DEBIAN_DEVELOPMENT_PACKAGE_RECOMMENDS "g++, cmake | pkg-config")
set(CPACK_DEBIAN_DEVELOPMENT_PACKAGE_SUGGESTS lockstep)
set(CPACK_DEBIAN_DEVELOPMENT_DESCRIPTION
"Headers and static libraries of Lockstep, for programs that train with its
pieces, with files for CMake's find_package and for pkg-config. Examples are
among the documentation of the package lockstep.")
include(CPack)
