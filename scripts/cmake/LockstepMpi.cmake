# SPDX-License-Identifier: Apache-2.0
# Whether the build has MPI and PMIx, with which MPI's launchers come. LOCKSTEP_MPI AUTO: where MPI is installed; ON fails
# where it is not; OFF leaves both out, and ranks find each other in torchrun's way alone.
#
# Sets LOCKSTEP_MPI_FOLDER to the name of the folders that are chosen, mpi or no_mpi.
set(LOCKSTEP_MPI AUTO CACHE STRING "Build with MPI: AUTO, ON or OFF")
set_property(CACHE LOCKSTEP_MPI PROPERTY STRINGS AUTO ON OFF)

set(LOCKSTEP_MPI_FOLDER no_mpi)
if(LOCKSTEP_MPI STREQUAL "ON")
  find_package(MPI REQUIRED COMPONENTS CXX)
elseif(NOT LOCKSTEP_MPI STREQUAL "OFF")
  find_package(MPI COMPONENTS CXX)
endif()
if(NOT LOCKSTEP_MPI STREQUAL "OFF" AND MPI_CXX_FOUND)
  set(LOCKSTEP_MPI_FOLDER mpi)
  message(STATUS "MPI: yes")
  include(scripts/cmake/LockstepPmix.cmake)
  if(NOT TARGET PMIx::PMIx)
    message(FATAL_ERROR "MPI is here and PMIx's header or library is not (Debian: libpmix-dev). "
                        "-DLOCKSTEP_MPI=OFF builds without both.")
  endif()
else()
  message(STATUS "MPI: no")
endif()
