# SPDX-License-Identifier: Apache-2.0
# Finds what a build for GPUs links to, and defines the targets cudnn::cudnn and nccl::nccl, which neither library brings
# itself. Sets LOCKSTEP_CUDA_MISSING to what is not there. For the build and for find_package(Lockstep).
set(LOCKSTEP_CUDA_MISSING)
# NVIDIA's wheels, which PyTorch depends on, hold a library under this name alone; CMAKE_PREFIX_PATH may name their folders.
set(cudnn_in_wheel libcudnn.so.9)
set(nccl_in_wheel libnccl.so.2)
find_package(CUDAToolkit 12 QUIET)
if(CUDAToolkit_FOUND)
  foreach(library cudnn nccl)
    find_path(${library}_INCLUDE_DIR ${library}.h HINTS ${CUDAToolkit_INCLUDE_DIRS})
    # CMake 4 may take a folder beside the toolkit's for its LIBRARY_DIR.
    find_library(${library}_LIBRARY NAMES ${library} ${${library}_in_wheel}
                 HINTS ${CUDAToolkit_LIBRARY_DIR} ${CUDAToolkit_TARGET_DIR} PATH_SUFFIXES lib64 lib)
    if(NOT ${library}_INCLUDE_DIR OR NOT ${library}_LIBRARY)
      list(APPEND LOCKSTEP_CUDA_MISSING ${library})
    elseif(NOT TARGET ${library}::${library})
      add_library(${library}::${library} SHARED IMPORTED GLOBAL)
      set_target_properties(${library}::${library} PROPERTIES IMPORTED_LOCATION ${${library}_LIBRARY}
                                                              INTERFACE_INCLUDE_DIRECTORIES ${${library}_INCLUDE_DIR})
      target_link_libraries(${library}::${library} INTERFACE CUDA::cudart_static)
    endif()
  endforeach()
else()
  set(LOCKSTEP_CUDA_MISSING "CUDA toolkit 12 or newer")
endif()
