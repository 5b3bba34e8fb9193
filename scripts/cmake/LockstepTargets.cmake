# SPDX-License-Identifier: Apache-2.0
# Compiler settings and the functions that declare the project's libraries.

set(oldest_GNU 12)
set(oldest_Clang 14)
set(oldest ${oldest_${CMAKE_CXX_COMPILER_ID}})
if(oldest AND CMAKE_CXX_COMPILER_VERSION VERSION_LESS oldest)
  message(FATAL_ERROR "Lockstep needs GCC 12 or clang 14, or newer, and found ${CMAKE_CXX_COMPILER_ID} "
                      "${CMAKE_CXX_COMPILER_VERSION}: name another one, as in CXX=g++-12.")
endif()

set(CMAKE_CXX_STANDARD 20)
set(CMAKE_CXX_STANDARD_REQUIRED ON)
set(CMAKE_CXX_EXTENSIONS OFF)
set(CMAKE_EXPORT_COMPILE_COMMANDS ON)
set(CMAKE_POSITION_INDEPENDENT_CODE ON)
set(CMAKE_RUNTIME_OUTPUT_DIRECTORY ${PROJECT_BINARY_DIR}/bin)

# For whoever works on the sources: a newer compiler may warn of what it alone sees, and a user's build goes on.
option(LOCKSTEP_WERROR "Treat warnings as errors" OFF)
set(LOCKSTEP_SANITIZE "" CACHE STRING "Sanitizers to build with, for example address,undefined")

if(BUILD_SHARED_LIBS)
  message(FATAL_ERROR "Lockstep's libraries are static: set BUILD_SHARED_LIBS to OFF for it; their code is position-"
                      "independent and may go into a shared library of yours.")
endif()

# GCC compiles the headers that nearly every unit includes once (LockstepPrecompile.cmake). Not where files are compiled one
# by one, so that each is seen to include what it needs. ccache stores nothing that was compiled with them, and serves the
# other builds.
set(LOCKSTEP_PRECOMPILES OFF)
if(CMAKE_UNITY_BUILD AND CMAKE_CXX_COMPILER_ID STREQUAL "GNU" AND NOT CMAKE_CXX_COMPILER_LAUNCHER)
  set(LOCKSTEP_PRECOMPILES ON)
elseif(PROJECT_IS_TOP_LEVEL AND NOT CMAKE_CXX_COMPILER_LAUNCHER)
  find_program(CCACHE_PROGRAM ccache)
  if(CCACHE_PROGRAM)
    set(CMAKE_CXX_COMPILER_LAUNCHER ${CCACHE_PROGRAM})
  endif()
endif()

if(NOT PROJECT_IS_TOP_LEVEL)
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
# GCC rounds a product once with the sum that it enters wherever the processor can; here nothing does that but the targets
# that ask for it, so that all processors compute the same.
add_compile_options($<${cxx}:-ffp-contract=off> $<${cuda}:-Xcompiler=-ffp-contract=off>)
# clang 19 takes a lambda's copy of a structured binding under its own name, which clang 14 needs, for a shadow.
target_compile_options(
  lockstep_options
  INTERFACE $<${cxx}:-Wall;-Wextra;-Wnon-virtual-dtor;-Wold-style-cast>
            $<$<AND:${cxx},$<CXX_COMPILER_ID:GNU>>:-Wshadow>
            $<${cxx}:-Wno-missing-field-initializers>
            # GCC takes a source within a unit for a header, whose types of its own would be others in each source.
            $<$<AND:${cxx},$<CXX_COMPILER_ID:GNU>,$<BOOL:${CMAKE_UNITY_BUILD}>>:-Wno-subobject-linkage>
            # clang goes by the order, so that these stand behind -Wall; house.nodiscard looks at what they leave out.
            $<$<AND:${cxx},$<STREQUAL:$<TARGET_PROPERTY:FOLDER>,tests>>:-Wno-unused-result;-Wno-unused-value>
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

# -O3, CMake's choice, is for loops over elements, which ask for it (runtime/kernels/cpu): elsewhere it costs the compiler
# up to a tenth more time than -O2.
string(REPLACE "-O3" "-O2" CMAKE_CXX_FLAGS_RELEASE "${CMAKE_CXX_FLAGS_RELEASE}")
# GCC begins to collect garbage at 128 MB, which takes up to a tenth of its time on a large unit. From 1 GB on the
# largest units take up to 1.9 GB of memory.
add_compile_options("$<$<COMPILE_LANG_AND_ID:CXX,GNU>:SHELL:--param ggc-min-heapsize=1000000>")

function(lockstep_optimise target level)
  target_compile_options(${target} PRIVATE $<$<AND:$<COMPILE_LANGUAGE:CXX>,$<CONFIG:Release>>:${level}>)
endfunction()

# The build for fuzzing tries parsers: what computes is neither optimised nor watched there.
option(LOCKSTEP_FUZZ "Build the libFuzzer targets; needs clang and LOCKSTEP_SANITIZE with fuzzer-no-link" OFF)
function(lockstep_not_fuzzed target)
  if(LOCKSTEP_FUZZ)
    target_compile_options(${target} PRIVATE -O0 -fno-sanitize=all)
  endif()
endfunction()
set(not_fuzzed kernels_cpu kernels_geometry kernels_reference autograd ops nn optim ddp model_zoo)

include(scripts/cmake/LockstepCudaUnits.cmake)

# lockstep_library(NAME [STEPWISE | COLD] [FOLDERS folder...] [EXCEPT file...] [SOURCES file...] [DEPS target...]
#                  [PRIVATE_DEPS target...]): the library lockstep_NAME of the .cpp and .cu files beside the calling
# CMakeLists.txt and in the folders named, but for EXCEPT, and of SOURCES.
# The compiler spends less on what never runs once an element: STEPWISE code runs once a step or an operation, COLD code
# once a run, or it speaks with people and files.
function(lockstep_library name)
  cmake_parse_arguments(arg "STEPWISE;COLD" "" "FOLDERS;EXCEPT;SOURCES;DEPS;PRIVATE_DEPS" ${ARGN})
  file(GLOB sources CONFIGURE_DEPENDS *.cpp *.cu)
  foreach(folder ${arg_FOLDERS})
    file(GLOB more CONFIGURE_DEPENDS ${folder}/*.cpp ${folder}/*.cu)
    list(APPEND sources ${more})
  endforeach()
  foreach(file ${arg_EXCEPT})
    list(REMOVE_ITEM sources ${CMAKE_CURRENT_SOURCE_DIR}/${file})
  endforeach()
  list(APPEND sources ${arg_SOURCES})
  # Tests put an emulated GPU in the place of these, file by file.
  set(of_devices ${sources})
  list(FILTER of_devices INCLUDE REGEX "/(no_)?(cuda|nccl)/")
  set_source_files_properties(${of_devices} PROPERTIES SKIP_UNITY_BUILD_INCLUSION ON)
  if(CMAKE_UNITY_BUILD)
    lockstep_unite_cuda(sources ${sources})
  endif()
  set(target lockstep_${name})
  if(sources)
    add_library(${target} STATIC ${sources})
    target_compile_features(${target} PUBLIC cxx_std_20)
    set(level "")
    if(arg_STEPWISE)
      set(level -O1)
    elseif(arg_COLD)
      set(level -Og)
    endif()
    if(level)
      lockstep_optimise(${target} ${level})
    endif()
    if(name IN_LIST not_fuzzed)
      lockstep_not_fuzzed(${target})
    endif()
    target_link_libraries(${target} PUBLIC ${arg_DEPS} PRIVATE $<BUILD_INTERFACE:lockstep_options> ${arg_PRIVATE_DEPS})
    set(precompiled lockstep_precompiled${level})
    if(NOT TARGET ${precompiled})
      set(precompiled lockstep_precompiled)
    endif()
    lockstep_use_precompiled(${target} ${precompiled})
  else()
    add_library(${target} INTERFACE)
    target_link_libraries(${target} INTERFACE ${arg_DEPS})
  endif()
  add_library(Lockstep::${name} ALIAS ${target})
  set_target_properties(${target} PROPERTIES EXPORT_NAME ${name})
  set_property(GLOBAL APPEND PROPERTY LOCKSTEP_LIBRARIES ${target})
endfunction()
