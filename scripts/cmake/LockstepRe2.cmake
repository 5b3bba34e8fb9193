# SPDX-License-Identifier: Apache-2.0
# Finds RE2 and defines the target Lockstep::re2 where it is there. For the build and for find_package(Lockstep).
# pkg_check_modules would ask pkg-config twelve times, which takes two seconds each with Debian 13's RE2.
find_path(LOCKSTEP_RE2_INCLUDE_DIR re2/re2.h)
find_library(LOCKSTEP_RE2_LIBRARY re2)
mark_as_advanced(LOCKSTEP_RE2_INCLUDE_DIR LOCKSTEP_RE2_LIBRARY)
if(LOCKSTEP_RE2_INCLUDE_DIR AND LOCKSTEP_RE2_LIBRARY AND NOT TARGET Lockstep::re2)
  add_library(Lockstep::re2 UNKNOWN IMPORTED GLOBAL)
  set_target_properties(Lockstep::re2 PROPERTIES IMPORTED_LOCATION ${LOCKSTEP_RE2_LIBRARY}
                                                 INTERFACE_INCLUDE_DIRECTORIES ${LOCKSTEP_RE2_INCLUDE_DIR})
endif()
