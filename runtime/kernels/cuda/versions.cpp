// SPDX-License-Identifier: Apache-2.0
#include "runtime/kernels/versions.h"

#include <cublasLt.h>
#include <cudnn.h>

namespace lockstep::kernels {

namespace {

/// 91300 is 9.13.0.
std::string text(std::size_t version) {
  return std::to_string(version / 10000) + "." + std::to_string(version % 10000 / 100) + "." +
         std::to_string(version % 100);
}

}  // namespace

std::string cudnn_version() { return text(cudnnGetVersion()); }
std::string cublas_version() { return text(cublasLtGetVersion()); }

}  // namespace lockstep::kernels
