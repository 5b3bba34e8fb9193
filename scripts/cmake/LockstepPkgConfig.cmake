# SPDX-License-Identifier: Apache-2.0
# lockstep.pc, made from the links of the libraries: our archives in the order that a linker needs, the packages that they
# require, and flags for those libraries that pkg-config does not know.
set(pc_names
    fmt::fmt=fmt
    spdlog::spdlog=spdlog
    protobuf::libprotobuf=protobuf
    nlohmann_json::nlohmann_json=nlohmann_json
    LibArchive::LibArchive=libarchive
    JPEG::JPEG=libjpeg
    PNG::PNG=libpng
    PkgConfig::libwebp=libwebp
    ZLIB::ZLIB=zlib
    PkgConfig::xxhash=libxxhash
    PkgConfig::utf8proc=libutf8proc)
list(JOIN MPI_CXX_LIBRARIES " " mpi_flags)
set(pc_flags
    "Threads::Threads=-pthread"
    "OpenMP::OpenMP_CXX=${OpenMP_CXX_FLAGS}"
    "MPI::MPI_CXX=${mpi_flags}"
    "Lockstep::re2=-lre2"
    "DNNL::dnnl=-L$<TARGET_LINKER_FILE_DIR:DNNL::dnnl> -ldnnl")

function(lockstep_pc_put list text)
  get_property(texts GLOBAL PROPERTY ${list})
  if(NOT text IN_LIST texts)
    set_property(GLOBAL PROPERTY ${list} "${text};${texts}")
  endif()
endfunction()

# Puts a link in front of all that it links to itself.
function(lockstep_pc_take link)
  get_property(taken GLOBAL PROPERTY pc_taken)
  if(link MATCHES "BUILD_INTERFACE" OR link IN_LIST taken)
    return()
  endif()
  set_property(GLOBAL APPEND PROPERTY pc_taken "${link}")
  foreach(pair IN LISTS pc_names)
    if(pair MATCHES "^${link}=(.*)")
      lockstep_pc_put(pc_requires "${CMAKE_MATCH_1}")
      return()
    endif()
  endforeach()
  foreach(pair IN LISTS pc_flags)
    if(pair MATCHES "^${link}=(.*)")
      lockstep_pc_put(pc_libs "${CMAKE_MATCH_1}")
      return()
    endif()
  endforeach()
  if(link MATCHES "^[/-]") # a file or a flag, as CUDA's targets have them
    lockstep_pc_put(pc_libs "${link}")
    return()
  endif()
  if(NOT TARGET ${link})
    lockstep_pc_put(pc_libs "-l${link}") # as CMAKE_DL_LIBS has it
    return()
  endif()
  get_target_property(next ${link} INTERFACE_LINK_LIBRARIES)
  foreach(item ${next})
    # What a static library links to privately is $<LINK_ONLY:...>.
    string(REGEX REPLACE "^[$]<LINK_ONLY:(.*)>$" "\\1" item "${item}")
    if(item AND NOT item MATCHES "[$]<")
      lockstep_pc_take("${item}")
    endif()
  endforeach()
  get_target_property(options ${link} INTERFACE_LINK_OPTIONS)
  get_target_property(type ${link} TYPE)
  if(link MATCHES "^lockstep_" AND type STREQUAL "STATIC_LIBRARY")
    lockstep_pc_put(pc_libs "-l${link}")
    if(options)
      string(REPLACE "LINKER:" "-Wl," options "${options}")
      lockstep_pc_put(pc_libs "${options}")
    endif()
  elseif(NOT type STREQUAL "INTERFACE_LIBRARY")
    lockstep_pc_put(pc_libs "$<TARGET_LINKER_FILE:${link}>")
  endif()
endfunction()

lockstep_pc_take(lockstep_everything)
get_property(libs GLOBAL PROPERTY pc_libs)
get_property(requires GLOBAL PROPERTY pc_requires)
list(SORT requires)
list(REMOVE_ITEM libs "")
list(REMOVE_ITEM requires "")
list(JOIN libs " " libs)
list(JOIN requires " " requires)
file(RELATIVE_PATH up ${CMAKE_INSTALL_FULL_LIBDIR}/pkgconfig ${CMAKE_INSTALL_PREFIX})
string(REGEX REPLACE "/$" "" up ${up})
file(GENERATE OUTPUT ${PROJECT_BINARY_DIR}/lockstep.pc CONTENT
"prefix=\${pcfiledir}/${up}
libdir=\${prefix}/${CMAKE_INSTALL_LIBDIR}
includedir=\${prefix}/${CMAKE_INSTALL_INCLUDEDIR}

Name: lockstep
Description: ${PROJECT_DESCRIPTION}
Version: ${PROJECT_VERSION}
Requires: ${requires}
Libs: -L\${libdir} ${libs}
Cflags: -I\${includedir}
")
install(FILES ${PROJECT_BINARY_DIR}/lockstep.pc DESTINATION ${CMAKE_INSTALL_LIBDIR}/pkgconfig COMPONENT development)
