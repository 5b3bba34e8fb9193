# SPDX-License-Identifier: Apache-2.0
# The install tree: bin/lockstep (launcher/CMakeLists.txt), the libraries, the headers under include/lockstep by their
# path from the repository's root, the ready jobs with their data, and what find_package(Lockstep) reads.
include(GNUInstallDirs)
include(CMakePackageConfigHelpers)

# Lockstep::lockstep: every library at once. The name lockstep itself is the command's.
get_property(libraries GLOBAL PROPERTY LOCKSTEP_LIBRARIES)
add_library(lockstep_everything INTERFACE)
add_library(Lockstep::lockstep ALIAS lockstep_everything)
target_link_libraries(lockstep_everything INTERFACE ${libraries})
set_target_properties(lockstep_everything PROPERTIES EXPORT_NAME lockstep)

install(TARGETS ${libraries} lockstep_everything EXPORT LockstepTargets)

set(headers ${CMAKE_INSTALL_INCLUDEDIR}/lockstep)
install(DIRECTORY amp comm model_zoo runtime DESTINATION ${headers} FILES_MATCHING PATTERN "*.h")
install(DIRECTORY ${PROJECT_BINARY_DIR}/configs DESTINATION ${headers}
        FILES_MATCHING PATTERN "*.pb.h" PATTERN CMakeFiles EXCLUDE)
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
