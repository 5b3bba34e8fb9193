# SPDX-License-Identifier: Apache-2.0
# A GPU made of host memory and threads (emulated_gpu/emulation.h), for what stands above its kernels. Its functions take
# the place of those of cuda/ or no_cuda/: the linker looks into libraries only for what it has not found yet.
include_guard(GLOBAL)

file(GLOB emulated_gpu_sources CONFIGURE_DEPENDS ${CMAKE_CURRENT_LIST_DIR}/emulated_gpu/*.cpp)
add_library(emulated_gpu OBJECT ${emulated_gpu_sources})
target_link_libraries(emulated_gpu PRIVATE lockstep_group lockstep_options)
# Found before the libraries, and kept, so that no file of theirs is taken for a piece of std::string that it holds too.
target_link_options(emulated_gpu INTERFACE LINKER:--no-as-needed -lstdc++)

# The command on an emulated GPU.
add_executable(lockstep_emulated ${PROJECT_SOURCE_DIR}/launcher/main.cpp)
target_link_libraries(lockstep_emulated PRIVATE emulated_gpu lockstep_launcher spdlog::spdlog lockstep_options)
