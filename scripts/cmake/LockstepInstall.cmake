# SPDX-License-Identifier: Apache-2.0
# The install tree: bin/lockstep (launcher/CMakeLists.txt), the libraries, the public headers under include/lockstep, the
# ready jobs with their data, and what find_package(Lockstep) reads.
include(GNUInstallDirs)
include(CMakePackageConfigHelpers)

# Lockstep::lockstep: every library at once. The name lockstep itself is the command's.
get_property(libraries GLOBAL PROPERTY LOCKSTEP_LIBRARIES)
add_library(lockstep_everything INTERFACE)
add_library(Lockstep::lockstep ALIAS lockstep_everything)
target_link_libraries(lockstep_everything INTERFACE ${libraries})
set_target_properties(lockstep_everything PROPERTIES EXPORT_NAME lockstep)

# The second folder is for lockstep.h itself: <lockstep/lockstep.h>.
install(TARGETS ${libraries} lockstep_everything EXPORT LockstepTargets INCLUDES DESTINATION include)

# Public are runtime/api/lockstep.h and the headers that it reaches, each by its path from the repository's root.
set(headers ${CMAKE_INSTALL_INCLUDEDIR}/lockstep)
set(public runtime/api/lockstep.h)
set(unread ${public})
while(unread)
  list(POP_FRONT unread header)
  set_property(DIRECTORY APPEND PROPERTY CMAKE_CONFIGURE_DEPENDS ${PROJECT_SOURCE_DIR}/${header})
  file(STRINGS ${PROJECT_SOURCE_DIR}/${header} includes REGEX "^#include \"")
  foreach(line ${includes})
    string(REGEX REPLACE "^#include \"([^\"]+)\".*" "\\1" included ${line})
    if(NOT included IN_LIST public)
      list(APPEND public ${included})
      list(APPEND unread ${included})
    endif()
  endforeach()
endwhile()
list(REMOVE_ITEM public runtime/api/lockstep.h)
install(FILES runtime/api/lockstep.h DESTINATION ${headers})
foreach(header ${public})
  get_filename_component(folder ${header} DIRECTORY)
  install(FILES ${header} DESTINATION ${headers}/${folder})
endforeach()
install(DIRECTORY configs DESTINATION ${CMAKE_INSTALL_DATADIR}/lockstep PATTERN CMakeLists.txt EXCLUDE)
install(FILES LICENSE README.md DESTINATION ${CMAKE_INSTALL_DOCDIR})
install(DIRECTORY docs DESTINATION ${CMAKE_INSTALL_DOCDIR})

set(package ${CMAKE_INSTALL_LIBDIR}/cmake/Lockstep)
configure_package_config_file(scripts/cmake/LockstepConfig.cmake.in LockstepConfig.cmake INSTALL_DESTINATION ${package})
write_basic_package_version_file(LockstepConfigVersion.cmake COMPATIBILITY SameMinorVersion)
install(FILES ${PROJECT_BINARY_DIR}/LockstepConfig.cmake ${PROJECT_BINARY_DIR}/LockstepConfigVersion.cmake
              scripts/cmake/LockstepCudaLibraries.cmake
        DESTINATION ${package})
install(EXPORT LockstepTargets NAMESPACE Lockstep:: DESTINATION ${package})
