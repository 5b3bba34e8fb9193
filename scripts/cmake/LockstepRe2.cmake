# SPDX-License-Identifier: Apache-2.0
# Finds RE2 and defines the target re2::re2 where it is there. For the build and for find_package(Lockstep). pkg-config is
# not asked: with Debian 13's RE2 it takes two seconds a question, of which CMake has twelve.
find_path(LOCKSTEP_RE2_INCLUDE_DIR re2/re2.h)
find_library(LOCKSTEP_RE2_LIBRARY re2)
if(LOCKSTEP_RE2_INCLUDE_DIR AND LOCKSTEP_RE2_LIBRARY AND NOT TARGET re2::re2)
  add_library(re2::re2 UNKNOWN IMPORTED GLOBAL)
  set_target_properties(re2::re2 PROPERTIES IMPORTED_LOCATION ${LOCKSTEP_RE2_LIBRARY}
                                            INTERFACE_INCLUDE_DIRECTORIES ${LOCKSTEP_RE2_INCLUDE_DIR})
endif()
