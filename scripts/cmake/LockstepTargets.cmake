# SPDX-License-Identifier: Apache-2.0
# Compiler settings and the functions that declare the project's libraries.

set(CMAKE_CXX_STANDARD 20)
set(CMAKE_CXX_STANDARD_REQUIRED ON)
set(CMAKE_CXX_EXTENSIONS OFF)
set(CMAKE_EXPORT_COMPILE_COMMANDS ON)
set(CMAKE_POSITION_INDEPENDENT_CODE ON)
set(CMAKE_RUNTIME_OUTPUT_DIRECTORY ${PROJECT_BINARY_DIR}/bin)

# A warning must not stop another project's build.
option(LOCKSTEP_WERROR "Treat warnings as errors" ${PROJECT_IS_TOP_LEVEL})
set(LOCKSTEP_SANITIZE "" CACHE STRING "Sanitizers to build with, for example address,undefined")

if(BUILD_SHARED_LIBS)
  message(FATAL_ERROR "Lockstep's libraries are static: set BUILD_SHARED_LIBS to OFF for it; their code is position-"
                      "independent and may go into a shared library of yours.")
endif()

if(PROJECT_IS_TOP_LEVEL)
  find_program(CCACHE_PROGRAM ccache)
  if(CCACHE_PROGRAM AND NOT CMAKE_CXX_COMPILER_LAUNCHER)
    set(CMAKE_CXX_COMPILER_LAUNCHER ${CCACHE_PROGRAM})
  endif()
else()
  # A program that links to the libraries links to theirs, which it has to know from its own folder.
  set(CMAKE_FIND_PACKAGE_TARGETS_GLOBAL TRUE)
endif()

# Headers are included by their path from the repository's root, and those that protoc makes by theirs from the build's.
# Both paths are for our own sources alone: see LockstepHeaders.cmake for those of programs.
add_library(lockstep_options INTERFACE)
target_include_directories(lockstep_options INTERFACE ${PROJECT_SOURCE_DIR})
target_include_directories(lockstep_options SYSTEM INTERFACE ${PROJECT_BINARY_DIR} ${PROJECT_BINARY_DIR}/include)
set(cxx $<COMPILE_LANGUAGE:CXX>)
set(cuda $<COMPILE_LANGUAGE:CUDA>)
target_compile_options(
  lockstep_options
  INTERFACE $<${cxx}:-Wall;-Wextra;-Wshadow;-Wnon-virtual-dtor;-Wold-style-cast;-Woverloaded-virtual>
            $<${cxx}:-Wno-missing-field-initializers>
            $<$<AND:${cxx},$<BOOL:${LOCKSTEP_WERROR}>>:-Werror>
            $<${cuda}:-Xcompiler=-Wall,-Wextra>
            $<$<AND:${cuda},$<BOOL:${LOCKSTEP_WERROR}>>:-Werror=all-warnings>)
if(LOCKSTEP_SANITIZE)
  add_compile_options($<${cxx}:-fsanitize=${LOCKSTEP_SANITIZE}> $<${cxx}:-fno-omit-frame-pointer>
                      $<${cxx}:-fno-sanitize-recover=undefined>)
  add_link_options(-fsanitize=${LOCKSTEP_SANITIZE})
  # GCC sees uninitialised values in instrumented library code that are none.
  target_compile_options(lockstep_options INTERFACE $<$<CXX_COMPILER_ID:GNU>:-Wno-maybe-uninitialized>)
endif()

# lockstep_library(NAME [FOLDERS folder...] [SOURCES file...] [DEPS target...] [PRIVATE_DEPS target...]): the library
# lockstep_NAME of the .cpp and .cu files beside the calling CMakeLists.txt and in the folders named, and of SOURCES.
function(lockstep_library name)
  cmake_parse_arguments(arg "" "" "FOLDERS;SOURCES;DEPS;PRIVATE_DEPS" ${ARGN})
  file(GLOB sources CONFIGURE_DEPENDS *.cpp *.cu)
  foreach(folder ${arg_FOLDERS})
    file(GLOB more CONFIGURE_DEPENDS ${folder}/*.cpp ${folder}/*.cu)
    list(APPEND sources ${more})
  endforeach()
  list(APPEND sources ${arg_SOURCES})
  set(target lockstep_${name})
  if(sources)
    add_library(${target} STATIC ${sources})
    target_compile_features(${target} PUBLIC cxx_std_20)
    target_link_libraries(${target} PUBLIC ${arg_DEPS} PRIVATE $<BUILD_INTERFACE:lockstep_options> ${arg_PRIVATE_DEPS})
  else()
    add_library(${target} INTERFACE)
    target_link_libraries(${target} INTERFACE ${arg_DEPS})
  endif()
  add_library(Lockstep::${name} ALIAS ${target})
  set_target_properties(${target} PROPERTIES EXPORT_NAME ${name})
  set_property(GLOBAL APPEND PROPERTY LOCKSTEP_LIBRARIES ${target})
endfunction()
