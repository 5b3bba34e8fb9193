// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <string>

namespace lockstep::kernels {

// Of the libraries that the process runs with, "3.0.0"; empty where the build has none.

std::string onednn_version();
std::string cudnn_version();
std::string cublas_version();

}  // namespace lockstep::kernels
