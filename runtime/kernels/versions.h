// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <string>

namespace lockstep::kernels {

// Versions of the libraries that the process runs with, "3.0.0"; empty where the build lacks the library.

std::string onednn_version();
/// The instruction set that oneDNN uses, for example "avx512_core_bf16". On x86-64 LOCKSTEP_CPU_ISA limits it.
std::string onednn_isa();
std::string cudnn_version();
std::string cublas_version();

}  // namespace lockstep::kernels
