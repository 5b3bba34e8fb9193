# SPDX-License-Identifier: Apache-2.0
# The sources of a GPU's own kernels, compiled for the host (cuda_on_host/threads.h): what they compute is tested where
# there is no GPU. Memory, streams and graphs are the emulated GPU's.
include_guard(GLOBAL)
include(${CMAKE_CURRENT_LIST_DIR}/emulated_gpu.cmake)

set(kernels ${PROJECT_SOURCE_DIR}/runtime/kernels/cuda)
set(translated_folder ${CMAKE_CURRENT_BINARY_DIR}/cuda_on_host)
set(translator ${CMAKE_CURRENT_LIST_DIR}/cuda_on_host/launches.py)
file(GLOB cuda_sources CONFIGURE_DEPENDS ${kernels}/*.cu ${kernels}/*.cuh)
set(cuda_on_host_sources)
foreach(source ${cuda_sources})
  file(RELATIVE_PATH path ${PROJECT_SOURCE_DIR} ${source})
  set(translated ${translated_folder}/${path})
  if(path MATCHES "[.]cu$")
    string(APPEND translated .cpp)
  endif()
  add_custom_command(
    OUTPUT ${translated}
    COMMAND ${Python3_EXECUTABLE} ${translator} ${source} ${translated}
    DEPENDS ${source} ${translator})
  list(APPEND cuda_on_host_sources ${translated})
endforeach()
file(MAKE_DIRECTORY ${translated_folder}/runtime/kernels/cuda)
foreach(name arena attention attention_problem backend batch_norm conv_problem convolution device_state elementwise matmul matmul_problem
             normalization pooling segment_tables tf32)
  list(APPEND cuda_on_host_sources ${kernels}/${name}.cpp)
endforeach()
file(GLOB own CONFIGURE_DEPENDS ${CMAKE_CURRENT_LIST_DIR}/cuda_on_host/*.cpp ${CMAKE_CURRENT_LIST_DIR}/emulated_gpu/*.cpp)
list(REMOVE_ITEM own ${CMAKE_CURRENT_LIST_DIR}/emulated_gpu/backend.cpp)  # the CPU's kernels
add_library(cuda_on_host OBJECT ${cuda_on_host_sources} ${own})
set_target_properties(cuda_on_host PROPERTIES UNITY_BUILD_BATCH_SIZE 20)
target_include_directories(cuda_on_host BEFORE PRIVATE ${translated_folder} ${CMAKE_CURRENT_LIST_DIR}/cuda_on_host/include)
# Without warnings: those of CUDA's compiler count.
target_compile_options(cuda_on_host PRIVATE -O1 -w -mavx2 -mfma -ffp-contract=fast)
# As CUDA's compiler gets them.
set_source_files_properties(
  ${translated_folder}/runtime/kernels/cuda/optimizer_steps.cu.cpp
  ${translated_folder}/runtime/kernels/cuda/layer_steps.cu.cpp PROPERTIES COMPILE_OPTIONS -ffp-contract=off)
target_link_libraries(cuda_on_host PRIVATE lockstep_group)
target_link_options(cuda_on_host INTERFACE LINKER:--no-as-needed -lstdc++)
