# SPDX-License-Identifier: Apache-2.0
# Whether the build is for GPUs too. LOCKSTEP_CUDA AUTO: where nvcc, cuDNN and NCCL are installed; ON fails where they are
# not; OFF builds for CPUs alone.
#
# Sets LOCKSTEP_GPU to the name of the folders that implement GPUs, cuda or no_cuda.
set(LOCKSTEP_CUDA AUTO CACHE STRING "Build for NVIDIA GPUs: AUTO, ON or OFF")
set_property(CACHE LOCKSTEP_CUDA PROPERTY STRINGS AUTO ON OFF)
set(LOCKSTEP_CUDA_ARCHITECTURES "80;90" CACHE STRING "Compute capabilities to compile for")

set(LOCKSTEP_GPU no_cuda)
if(NOT LOCKSTEP_CUDA STREQUAL "OFF")
  include(CheckLanguage)
  check_language(CUDA)
  if(CMAKE_CUDA_COMPILER)
    include(scripts/cmake/LockstepCudaLibraries.cmake)
  else()
    set(LOCKSTEP_CUDA_MISSING nvcc)
  endif()
  if(NOT LOCKSTEP_CUDA_MISSING)
    set(LOCKSTEP_GPU cuda)
  elseif(LOCKSTEP_CUDA STREQUAL "ON")
    message(FATAL_ERROR "LOCKSTEP_CUDA is ON, but these are missing: ${LOCKSTEP_CUDA_MISSING}")
  endif()
  message(STATUS "GPUs: ${LOCKSTEP_GPU} ${LOCKSTEP_CUDA_MISSING}")
endif()

if(LOCKSTEP_GPU STREQUAL "cuda")
  # Functions that host and device share are constexpr in the standard library, which names no device.
  set(CMAKE_CUDA_FLAGS "${CMAKE_CUDA_FLAGS} --expt-relaxed-constexpr")
  set(CMAKE_CUDA_ARCHITECTURES ${LOCKSTEP_CUDA_ARCHITECTURES})
  set(CMAKE_CUDA_COMPILER_LAUNCHER ${CMAKE_CXX_COMPILER_LAUNCHER})
  enable_language(CUDA)
  set(CMAKE_CUDA_STANDARD 20)
  set(CMAKE_CUDA_STANDARD_REQUIRED ON)
  set(CMAKE_CUDA_EXTENSIONS OFF)
endif()
