# SPDX-License-Identifier: Apache-2.0
# Finds PMIx, through which the ranks of a launcher meet, and defines the target PMIx::PMIx where it is there. For the
# build and for find_package(Lockstep).
find_package(PkgConfig QUIET)
pkg_check_modules(pmix QUIET pmix)
# The library's own flags would put a path of this machine into the programs.
find_path(LOCKSTEP_PMIX_INCLUDE_DIR pmix.h PATHS ${pmix_INCLUDE_DIRS})
find_library(LOCKSTEP_PMIX_LIBRARY pmix PATHS ${pmix_LIBRARY_DIRS})
if(LOCKSTEP_PMIX_INCLUDE_DIR AND LOCKSTEP_PMIX_LIBRARY AND NOT TARGET PMIx::PMIx)
  add_library(PMIx::PMIx UNKNOWN IMPORTED GLOBAL)
  set_target_properties(PMIx::PMIx PROPERTIES IMPORTED_LOCATION ${LOCKSTEP_PMIX_LIBRARY}
                                              INTERFACE_INCLUDE_DIRECTORIES ${LOCKSTEP_PMIX_INCLUDE_DIR})
endif()
