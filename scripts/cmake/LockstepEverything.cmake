# SPDX-License-Identifier: Apache-2.0
# Lockstep::lockstep: every library at once, for programs in this build and outside. The name lockstep itself is the
# command's. To a program our headers are a system's: its warnings are about its own code.
get_property(libraries GLOBAL PROPERTY LOCKSTEP_LIBRARIES)
foreach(library ${libraries})
  target_include_directories(${library} SYSTEM INTERFACE $<BUILD_INTERFACE:${PROJECT_BINARY_DIR}/include>)
endforeach()
add_library(lockstep_everything INTERFACE)
add_library(Lockstep::lockstep ALIAS lockstep_everything)
target_link_libraries(lockstep_everything INTERFACE ${libraries})
set_target_properties(lockstep_everything PROPERTIES EXPORT_NAME lockstep)
