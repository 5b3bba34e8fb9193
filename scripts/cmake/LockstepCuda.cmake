# SPDX-License-Identifier: Apache-2.0
# Whether the build is for GPUs too. LOCKSTEP_CUDA AUTO: where nvcc, cuDNN, its frontend's headers and NCCL are there; ON
# fails where they are not; OFF builds for CPUs alone.
#
# Sets LOCKSTEP_GPU to the name of the folders that implement GPUs, cuda or no_cuda.
set(LOCKSTEP_CUDA AUTO CACHE STRING "Build for NVIDIA GPUs: AUTO, ON or OFF")
set_property(CACHE LOCKSTEP_CUDA PROPERTY STRINGS AUTO ON OFF)
set(LOCKSTEP_CUDA_ARCHITECTURES "" CACHE STRING
    "Compute capabilities to compile for; empty: 70, 75, 80 and 90, of which CUDA 13 has no 70")

# Only the build needs these headers, so find_package(Lockstep) does not look for them.
set(LOCKSTEP_CUDNN_FRONTEND "$ENV{LOCKSTEP_CUDNN_FRONTEND}" CACHE PATH
    "Folder that holds include/cudnn_frontend.h; empty: what scripts/fetch_cudnn_frontend fetched")
if(LOCKSTEP_CUDNN_FRONTEND)
  set(cudnn_frontend_folder ${LOCKSTEP_CUDNN_FRONTEND})
else()
  file(STRINGS scripts/fetch_cudnn_frontend cudnn_frontend_version REGEX "^version=")
  string(REPLACE "version=" "${PROJECT_SOURCE_DIR}/.cache/cudnn-frontend-" cudnn_frontend_folder
                 ${cudnn_frontend_version})
endif()

set(LOCKSTEP_GPU no_cuda)
if(NOT LOCKSTEP_CUDA STREQUAL "OFF")
  include(CheckLanguage)
  check_language(CUDA)
  if(CMAKE_CUDA_COMPILER)
    set(cuda_architectures ${LOCKSTEP_CUDA_ARCHITECTURES})
    if(NOT cuda_architectures)
      execute_process(COMMAND ${CMAKE_CUDA_COMPILER} --list-gpu-arch OUTPUT_VARIABLE known)
      foreach(architecture 70 75 80 90)
        if(known MATCHES "compute_${architecture}")
          list(APPEND cuda_architectures ${architecture})
        endif()
      endforeach()
      if(NOT cuda_architectures)
        message(FATAL_ERROR "${CMAKE_CUDA_COMPILER} knows none of the compute capabilities 7.0, 7.5, 8.0 and 9.0. Set "
                            "LOCKSTEP_CUDA_ARCHITECTURES to those to compile for, or LOCKSTEP_CUDA to OFF.")
      endif()
    endif()
    # "90a" and "80-real" begin with the number; doctor and plans ask for the oldest. "native" and "all-major" are words
    # of CMake's, which do not say it.
    string(REGEX MATCHALL "[0-9]+" numbers "${cuda_architectures}")
    if(NOT numbers)
      message(FATAL_ERROR "LOCKSTEP_CUDA_ARCHITECTURES is \"${cuda_architectures}\"; it must be a list of numbers such as "
                          "\"80;90\"")
    endif()
    list(SORT numbers COMPARE NATURAL)
    list(GET numbers 0 LOCKSTEP_OLDEST_ARCHITECTURE)
    include(scripts/cmake/LockstepCudaLibraries.cmake)
    if(NOT EXISTS ${cudnn_frontend_folder}/include/cudnn_frontend.h)
      list(APPEND LOCKSTEP_CUDA_MISSING "cudnn-frontend (run scripts/fetch_cudnn_frontend)")
    endif()
  else()
    set(LOCKSTEP_CUDA_MISSING nvcc)
  endif()
  if(NOT LOCKSTEP_CUDA_MISSING)
    set(LOCKSTEP_GPU cuda)
  elseif(LOCKSTEP_CUDA STREQUAL "ON")
    message(FATAL_ERROR "LOCKSTEP_CUDA is ON, but these are missing: ${LOCKSTEP_CUDA_MISSING}")
  endif()
  if(LOCKSTEP_CUDA_MISSING)
    message(STATUS "GPUs: no, these are missing: ${LOCKSTEP_CUDA_MISSING}")
  else()
    message(STATUS "GPUs: yes, for compute capabilities ${cuda_architectures}")
  endif()
endif()

if(LOCKSTEP_GPU STREQUAL "cuda")
  set(CMAKE_CUDA_ARCHITECTURES ${cuda_architectures})
  set(CMAKE_CUDA_COMPILER_LAUNCHER ${CMAKE_CXX_COMPILER_LAUNCHER})
  enable_language(CUDA)
  # Functions that host and device share are constexpr in the standard library, which names no device. Set before the
  # language is enabled, the flags would hide those of the environment (CUDAFLAGS) in a folder's first configuration.
  string(APPEND CMAKE_CUDA_FLAGS " --expt-relaxed-constexpr")
  # nvcc's -O is for the host's code, which launches kernels here, and took half of the time. Kernels are optimised anyway.
  string(REPLACE "-O3" "-O1" CMAKE_CUDA_FLAGS_RELEASE "${CMAKE_CUDA_FLAGS_RELEASE}")
  # Debian 12's CMake, 3.25.1, does not know yet that nvcc 12 speaks C++20.
  if(NOT DEFINED CMAKE_CUDA20_STANDARD_COMPILE_OPTION)
    set(CMAKE_CUDA20_STANDARD_COMPILE_OPTION -std=c++20)
    set(CMAKE_CUDA20_EXTENSION_COMPILE_OPTION -std=c++20)
  endif()
  set(CMAKE_CUDA_STANDARD 20)
  set(CMAKE_CUDA_STANDARD_REQUIRED ON)
  set(CMAKE_CUDA_EXTENSIONS OFF)

  add_library(lockstep_cudnn_frontend INTERFACE)
  target_include_directories(lockstep_cudnn_frontend SYSTEM INTERFACE ${cudnn_frontend_folder}/include)
  # Plans are not stored as JSON, and without it the header compiles in half the time.
  target_compile_definitions(lockstep_cudnn_frontend INTERFACE CUDNN_FRONTEND_SKIP_JSON_LIB)
  target_link_libraries(lockstep_cudnn_frontend INTERFACE cudnn::cudnn)
endif()
