# SPDX-License-Identifier: Apache-2.0
# The headers that nearly every unit includes, compiled once where LOCKSTEP_PRECOMPILES says so.
set(LOCKSTEP_COMMON_HEADERS
    <fmt/format.h> <algorithm> <array> <chrono> <cmath> <cstdint> <filesystem> <functional> <map> <memory> <optional> <span>
    <string> <string_view> <utility> <vector>)
# GCC takes them only where what their sources ask for is defined alike.
target_compile_definitions(lockstep_options INTERFACE $<TARGET_PROPERTY:fmt::fmt,INTERFACE_COMPILE_DEFINITIONS>)

# lockstep_precompile(TARGET header...): TARGET, which does nothing else, compiles the common headers and others.
function(lockstep_precompile target)
  target_link_libraries(${target} PRIVATE lockstep_options)
  target_precompile_headers(${target} PRIVATE ${LOCKSTEP_COMMON_HEADERS} ${ARGN})
endfunction()

# lockstep_use_precompiled(TARGET OTHER): TARGET takes what OTHER has compiled, but where OpenMP's macro is defined.
function(lockstep_use_precompiled target other)
  get_target_property(libraries ${target} LINK_LIBRARIES)
  if(LOCKSTEP_PRECOMPILES AND NOT "OpenMP::OpenMP_CXX" IN_LIST libraries)
    target_precompile_headers(${target} REUSE_FROM ${other})
  endif()
endfunction()

if(LOCKSTEP_PRECOMPILES)
  file(CONFIGURE OUTPUT ${PROJECT_BINARY_DIR}/precompiled.cpp CONTENT "int main() {}\n")
  # GCC 14 takes them only where the level of optimisation is theirs, GCC 12 at any level; 13 is taken to be as 14. So there
  # is one set for each level of lockstep_library.
  set(levels "")
  if(CMAKE_CXX_COMPILER_VERSION VERSION_GREATER_EQUAL 13)
    set(levels -O1 -Og)
  endif()
  foreach(level "" ${levels})
    set(target lockstep_precompiled${level})
    add_library(${target} OBJECT ${PROJECT_BINARY_DIR}/precompiled.cpp)
    target_compile_features(${target} PUBLIC cxx_std_20)
    if(level)
      lockstep_optimise(${target} ${level})
    endif()
    lockstep_precompile(${target})
  endforeach()
endif()
