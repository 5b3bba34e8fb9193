# SPDX-License-Identifier: Apache-2.0
# The install tree. The component "command" has bin/lockstep with its pages, completions, jobs and their data;
# "development" has what another project compiles and links to.
if(NOT CMAKE_INSTALL_DOCDIR)
  set(CMAKE_INSTALL_DOCDIR share/doc/lockstep)
endif()
include(GNUInstallDirs)
include(CMakePackageConfigHelpers)

install(TARGETS lockstep RUNTIME DESTINATION ${CMAKE_INSTALL_BINDIR} COMPONENT command)
install(DIRECTORY configs DESTINATION ${CMAKE_INSTALL_DATADIR}/lockstep COMPONENT command
        PATTERN CMakeLists.txt EXCLUDE)
include(scripts/cmake/LockstepManual.cmake)

install(TARGETS ${libraries} lockstep_everything EXPORT LockstepTargets COMPONENT development
        INCLUDES DESTINATION ${CMAKE_INSTALL_INCLUDEDIR})
install(DIRECTORY ${PROJECT_BINARY_DIR}/include/lockstep DESTINATION ${CMAKE_INSTALL_INCLUDEDIR} COMPONENT development)
include(scripts/cmake/LockstepPkgConfig.cmake)

set(package ${CMAKE_INSTALL_LIBDIR}/cmake/Lockstep)
configure_package_config_file(scripts/cmake/LockstepConfig.cmake.in LockstepConfig.cmake INSTALL_DESTINATION ${package})
write_basic_package_version_file(LockstepConfigVersion.cmake COMPATIBILITY SameMinorVersion)
install(FILES ${PROJECT_BINARY_DIR}/LockstepConfig.cmake ${PROJECT_BINARY_DIR}/LockstepConfigVersion.cmake
              scripts/cmake/LockstepCudaLibraries.cmake scripts/cmake/LockstepPmix.cmake
              scripts/cmake/LockstepRe2.cmake
        DESTINATION ${package} COMPONENT development)
install(EXPORT LockstepTargets NAMESPACE Lockstep:: DESTINATION ${package} COMPONENT development)

if(PROJECT_IS_TOP_LEVEL)
  include(scripts/cmake/LockstepPackages.cmake)
endif()
