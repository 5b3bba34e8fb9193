# SPDX-License-Identifier: Apache-2.0
# What a reader and a shell get: the command writes its own manual pages and completions, the pages of docs/ come with the
# jobs and examples that they lead to.
if(NOT CMAKE_CROSSCOMPILING OR CMAKE_CROSSCOMPILING_EMULATOR)
  set(manual ${PROJECT_BINARY_DIR}/manual)
  add_custom_command(
    OUTPUT ${manual}/written
    COMMAND ${CMAKE_COMMAND} -E rm -rf ${manual}
    COMMAND ${CMAKE_COMMAND} -E make_directory ${manual}/man1
    COMMAND lockstep man --all ${manual}/man1
    COMMAND lockstep completion bash > ${manual}/lockstep
    COMMAND lockstep completion zsh > ${manual}/_lockstep
    COMMAND lockstep completion fish > ${manual}/lockstep.fish
    COMMAND ${CMAKE_COMMAND} -E touch ${manual}/written
    DEPENDS lockstep)
  add_custom_target(lockstep_manual ALL DEPENDS ${manual}/written)
  # Debian's zsh looks for what packages bring beside what an administrator installs.
  set(zsh_folder site-functions)
  if(CMAKE_INSTALL_PREFIX STREQUAL "/usr")
    set(zsh_folder vendor-completions)
  endif()
  set(share ${CMAKE_INSTALL_DATADIR})
  install(DIRECTORY ${manual}/man1 DESTINATION ${CMAKE_INSTALL_MANDIR} COMPONENT command)
  install(FILES ${manual}/lockstep DESTINATION ${share}/bash-completion/completions COMPONENT command)
  install(FILES ${manual}/_lockstep DESTINATION ${share}/zsh/${zsh_folder} COMPONENT command)
  install(FILES ${manual}/lockstep.fish DESTINATION ${share}/fish/vendor_completions.d COMPONENT command)
else()
  message(STATUS "Manual pages and completions: no, the command that writes them does not run here")
endif()

install(CODE "set(source ${PROJECT_SOURCE_DIR})
set(pages ${PROJECT_BINARY_DIR}/pages)
set(doc \"${CMAKE_INSTALL_DOCDIR}\")
set(jobs \"${CMAKE_INSTALL_DATADIR}/lockstep/configs\")
include(${PROJECT_SOURCE_DIR}/scripts/cmake/InstallPages.cmake)" COMPONENT command)
