# SPDX-License-Identifier: Apache-2.0
# Run by cpack on what it has installed for each package: adds the files that Debian asks for in /usr/share/doc, and
# compresses manual pages and change logs as Debian does.
cmake_policy(VERSION 3.25)
find_program(GZIP gzip REQUIRED)
string(TIMESTAMP date "%a, %d %b %Y %H:%M:%S +0000" UTC)

foreach(component ${CPACK_COMPONENTS_ALL})
  string(TOUPPER ${component} upper)
  set(name ${CPACK_DEBIAN_${upper}_PACKAGE_NAME})
  set(share ${CPACK_TEMPORARY_DIRECTORY}/${component}/usr/share)
  set(doc ${share}/doc/${name})
  file(WRITE ${doc}/changelog "lockstep (${CPACK_DEBIAN_PACKAGE_VERSION}) unstable; urgency=medium

  * The history of the sources says what changed.

 -- ${CPACK_PACKAGE_CONTACT}  ${date}
")
  configure_file(${CMAKE_CURRENT_LIST_DIR}/debian_copyright.in ${doc}/copyright @ONLY)
  file(GLOB pages ${share}/man/man1/*.1)
  execute_process(COMMAND ${GZIP} -9nf ${doc}/changelog ${pages} COMMAND_ERROR_IS_FATAL ANY)
  file(CHMOD ${doc}/changelog.gz ${doc}/copyright PERMISSIONS OWNER_READ OWNER_WRITE GROUP_READ WORLD_READ)
endforeach()
